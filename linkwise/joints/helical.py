"""A screw: a turn about an axis with a shift along it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from linkwise.errors import InputError
from linkwise.joints.base import Joint, SeriesJoint, lamina_and_symmetric, unit_axis
from linkwise.joints.directions import RelativePose, axial, directions, half_angle, turn_about_z
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.joints.revolute import Revolute
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Scalar, cos, sin
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


class Helical(Joint):
    """A screw. q: angle in rad; v: its rate.

    Args:
        pitch: shift along the axis in m per rad of turn.
        axis: direction of the screw in the joint frame.
    """

    nq = 1
    nv = 1
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "axis"
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"sdf": ("screw",)}
    numbers: ClassVar[tuple[str, ...]] = ("pitch",)
    axis: tuple[float, float, float]

    def __init__(self, pitch: float, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Helical")
        self.pitch = float(pitch)
        if not math.isfinite(self.pitch):
            raise InputError("the pitch of Helical is not finite", got=repr(pitch), allowed="m per rad")

    def transform(self, q: Flat) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[0] * self.pitch)), Turn.by(2, q[0]))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion(Vec(0.0, 0.0, 1.0), Vec(0.0, 0.0, self.pitch)),)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return lamina_and_symmetric(M)

    def closing(self) -> Joint:
        return self if self.pitch else Revolute(self.axis)

    def closing_equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return (first, second, "thread", f"tilt {first}", f"tilt {second}")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """A line through each origin is one line, and the child's shift along it is the pitch times its turn about it.

        A pose does not tell how many turns were made, so the equation of the thread does not ask: with the shift s,
        the turn θ and the pitch h it is 2h sin(δ/2) with δ = s/h - θ less its whole turns.
        """
        line, m = directions(self.axis), X.R.m
        # Of the turn about the axis u: tr R = u·Ru + 2 cos θ, and the axial part of R is sin θ u.
        c = (m[0][0] + m[1][1] + m[2][2] - line.axis.dot(X.R @ line.axis)) * 0.5
        s = line.axis.dot(Vec.of(axial(X.R)))
        due = line.along(X.p) * (1.0 / self.pitch)
        ahead = [sin(due) * c - cos(due) * s]
        if not X.closed:
            ahead = half_angle(cos(due) * c + sin(due) * s, ahead)
        return [*line.off(X.p), ahead[0] * self.pitch, *line.tilt(X)]

    def nearest(self, X: RelativePose) -> Flat:
        # The shift knows how many turns were made.
        return (X.p.z * (1.0 / self.pitch) if self.pitch else turn_about_z(X.R),)

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self.changed(pitch=-self.pitch, axis=turning(self.axis, signs)))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("turn", self.axis), SeriesJoint("slide", self.axis, ratio=self.pitch))
