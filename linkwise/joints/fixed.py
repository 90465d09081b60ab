"""No freedom: the child is part of the parent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from linkwise.joints.base import Joint, SeriesJoint
from linkwise.joints.directions import RelativePose, turn
from linkwise.joints.mirrored import MirrorImage, Signs
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Motion


class Fixed(Joint):
    """A weld. The builder merges the child into its parent; the child's name stays known as a frame."""

    nq = 0
    nv = 0
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"urdf": ("fixed",), "sdf": ("fixed",)}
    joins_origins: ClassVar[bool] = True

    def transform(self, q: Flat) -> Transform:
        return Transform()

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return ()

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia.zero(), M

    def closing_equations(self) -> tuple[str, ...]:
        return ("x", "y", "z", "turn x", "turn y", "turn z")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """The two frames coincide."""
        return [*X.p, *turn(X)]

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self)

    def series(self) -> tuple[SeriesJoint, ...]:
        return ()
