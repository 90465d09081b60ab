"""A slide along one direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from linkwise.joints.base import Joint, SeriesJoint, unit_axis
from linkwise.joints.directions import RelativePose, directions, turn
from linkwise.joints.mirrored import MirrorImage, Signs, pointing
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Flat, Scalar
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
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "urdf": ("prismatic",),
        "sdf": ("prismatic",),
        "mjcf": ("slide",),
    }
    axis: tuple[float, float, float]

    def __init__(self, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Prismatic")

    def transform(self, q: Flat) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[0])))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.unit(5),)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        # The child turns with the parent: its second moment belongs to either.
        return RigidInertia(M.m, M.h, Sym3.zero()), RigidInertia(0.0, Vec.zero(), M.J)

    def closing_equations(self) -> tuple[str, ...]:
        return (*directions(self.axis).across_names, "turn x", "turn y", "turn z")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """The axes of the frames are parallel, and the child's origin is on a line through the other."""
        return [*directions(self.axis).off(X.p), *turn(X)]

    def nearest(self, X: RelativePose) -> Flat:
        return (X.p.z,)

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self.changed(axis=pointing(self.axis, signs)))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("slide", self.axis),)
