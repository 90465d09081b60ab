"""Two turns about crossing axes, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from linkwise.errors import InputError
from linkwise.joints.base import Joint, SeriesJoint, turn_about, unit_axis
from linkwise.joints.directions import RelativePose
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Motion, Vec


class Universal(Joint):
    """A Cardan joint. q: the two angles in rad; v: their rates.

    Args:
        axis1: first axis, fixed in the joint frame.
        axis2: second axis, carried by the first turn; at q = 0 given in the joint frame too.
    """

    nq = 2
    nv = 2
    fixed_axes: ClassVar[bool] = False
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"sdf": ("universal", "revolute2")}
    joins_origins: ClassVar[bool] = True

    def __init__(self, axis1: Sequence[float] = (1.0, 0.0, 0.0), axis2: Sequence[float] = (0.0, 1.0, 0.0)) -> None:
        self.axis1 = unit_axis(axis1, "Universal")
        self.axis2 = unit_axis(axis2, "Universal")
        across = Vec.of(self.axis1).cross(Vec.of(self.axis2))
        if across.dot(across) < 1e-12:
            raise InputError(
                "the two axes of Universal are parallel",
                got=f"axis1={self.axis1}, axis2={self.axis2}",
                allowed="axes that cross",
                do="use Revolute for a single axis",
            )

    def transform(self, q: Flat) -> Transform:
        return Transform(turn_about(self.axis1, q[0]), turn_about(self.axis2, q[1]))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        first = turn_about(self.axis2, q[1]).rotate_back(Vec.of(self.axis1))
        return (Motion(first, Vec.zero()), Motion(Vec.of(self.axis2), Vec.zero()))

    def subspace_rate(self, q: Flat, v: Flat) -> Motion:
        # The first axis, seen from the child, turns backwards about the second.
        first = turn_about(self.axis2, q[1]).rotate_back(Vec.of(self.axis1))
        return Motion(first.cross(Vec.of(self.axis2)) * (v[0] * v[1]), Vec.zero())

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia(0.0, M.h, M.J), RigidInertia(M.m, Vec.zero(), Sym3.zero())

    def closing_equations(self) -> tuple[str, ...]:
        return ("x", "y", "z", "twist")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """The origins coincide, and the angle between the axis of a and that of b stays what it is at R = 1.

        No false roots: whatever keeps that angle is a turn about the first axis followed by one about the second.
        """
        u1, u2 = Vec.of(self.axis1), Vec.of(self.axis2)
        normal = u1.cross(u2)
        # Its slope by a turn about the normal to both axes is the sine of their angle: divided by it, one.
        return [*X.p, (u1.dot(u2) - u1.dot(X.R @ u2)) * (1.0 / normal.dot(normal) ** 0.5)]

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self.changed(axis1=turning(self.axis1, signs), axis2=turning(self.axis2, signs)))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("turn", self.axis1), SeriesJoint("turn", self.axis2, freedom=1))
