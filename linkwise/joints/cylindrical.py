"""A turn about an axis and a free shift along it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from linkwise.joints.base import Joint, SeriesJoint, lamina_and_symmetric, unit_axis
from linkwise.joints.directions import RelativePose, directions, turn_about_z
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


class Cylindrical(Joint):
    """Turn and slide on one axis. q: [angle in rad, distance in m]; v: their rates.

    Args:
        axis: direction in the joint frame.
    """

    nq = 2
    nv = 2
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "axis"
    usual: ClassVar[tuple[float, ...]] = (math.pi, 1.0)
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"sdf": ("piston",)}
    axis: tuple[float, float, float]

    def __init__(self, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Cylindrical")

    def transform(self, q: Flat) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[1])), Turn.by(2, q[0]))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.unit(2), Motion.unit(5))

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return lamina_and_symmetric(M)

    def closing_equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return (first, second, f"tilt {first}", f"tilt {second}")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """A line through each origin, along the axis, is one line."""
        line = directions(self.axis)
        return [*line.off(X.p), *line.tilt(X)]

    def nearest(self, X: RelativePose) -> Flat:
        return (turn_about_z(X.R), X.p.z)

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self.changed(axis=turning(self.axis, signs)), (1.0, -1.0), (1.0, -1.0))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("turn", self.axis), SeriesJoint("slide", self.axis, freedom=1))
