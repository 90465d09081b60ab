"""A screw motion stays free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from linkwise.model.closures.base import Closure, RelativePose
from linkwise.model.closures.directions import directions, turn
from linkwise.spatial.scalar import Scalar, cos, sin
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True)
class HelicalClosure(Closure):
    """A line through each origin is one line, and b's shift along it is the pitch times b's turn about it.

    A pose does not tell how many turns were made, so the equation of the thread does not ask: with the shift s, the
    turn θ and the pitch h it is h sin(s/h - θ), which is smooth and holds after any number of whole turns. It cannot
    tell s/h = θ from s/h = θ + π: false roots, half a turn off the thread. The axis turned over is one as well.

    Args:
        pitch: m per rad, not zero.
        axis: direction of the screw in both frames, of length one.
    """

    pitch: float
    axis: tuple[float, float, float]

    numbers: ClassVar[tuple[str, ...]] = ("pitch",)

    @property
    def equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return (first, second, "thread", f"tilt {first}", f"tilt {second}")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        line = directions(self.axis)
        c, s = self._turn(X)
        due = line.along(X.p) * (1.0 / self.pitch)
        return [*line.off(X.p), (sin(due) * c - cos(due) * s) * self.pitch, *line.tilt(X.R)]

    def is_proper(self, X: RelativePose, t: float = 0.0) -> bool:
        line = directions(self.axis)
        c, s = self._turn(X)
        due = line.along(X.p) / self.pitch
        return line.is_upright(X.R) and math.cos(due) * c + math.sin(due) * s > 0.0

    def _turn(self, X: RelativePose) -> tuple[Scalar, Scalar]:
        """Cos θ and sin θ of the turn about the axis u: tr R = u·Ru + 2 cos θ, and the axial part of R is sin θ u."""
        u, m = directions(self.axis).axis, X.R.m
        c = (m[0][0] + m[1][1] + m[2][2] - u.dot(X.R @ u)) * 0.5
        return c, u.dot(Vec.of(turn(X.R)))
