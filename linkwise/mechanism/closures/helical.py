"""A screw motion stays free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import axial, directions, half_angle
from linkwise.spatial.scalar import Scalar, cos, sin
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True)
class HelicalClosure(Closure):
    """A line through each origin is one line, and b's shift along it is the pitch times b's turn about it.

    A pose does not tell how many turns were made, so the equation of the thread does not ask: with the shift s, the
    turn θ and the pitch h it is 2h sin(δ/2) with δ = s/h - θ less its whole turns.

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
        ahead = [sin(due) * c - cos(due) * s]
        if not X.closed:
            ahead = half_angle(cos(due) * c + sin(due) * s, ahead)
        return [*line.off(X.p), ahead[0] * self.pitch, *line.tilt(X)]

    def _turn(self, X: RelativePose) -> tuple[Scalar, Scalar]:
        """Cos θ and sin θ of the turn about the axis u: tr R = u·Ru + 2 cos θ, and the axial part of R is sin θ u."""
        u, m = directions(self.axis).axis, X.R.m
        c = (m[0][0] + m[1][1] + m[2][2] - u.dot(X.R @ u)) * 0.5
        return c, u.dot(Vec.of(axial(X.R)))
