"""A slide along one direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from linkwise.joints.base import Joint, unit_axis
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Motion, Vec


class Prismatic(Joint):
    """A slide. q: distance in m; v: its rate.

    Args:
        axis: direction of the slide in the joint frame.
    """

    nq = 1
    nv = 1
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "direction"
    usual: ClassVar[tuple[float, ...]] = (1.0,)

    def __init__(self, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Prismatic")

    def neutral(self) -> tuple[float, ...]:
        return (0.0,)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[0])))

    def subspace(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        return (Motion.unit(5),)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        # The child turns with the parent: its second moment belongs to either.
        return RigidInertia(M.m, M.h, Sym3.zero()), RigidInertia(0.0, Vec.zero(), M.J)
