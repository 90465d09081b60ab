"""No freedom: the child is part of the parent."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.joints.base import Joint
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Motion


class Fixed(Joint):
    """A weld. The builder merges the child into its parent; the child's name stays known as a frame."""

    nq = 0
    nv = 0

    def neutral(self) -> tuple[float, ...]:
        return ()

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform()

    def subspace(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        return ()

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia.zero(), M
