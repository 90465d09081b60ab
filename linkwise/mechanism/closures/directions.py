"""Directions that an axis makes, with names for the equations measured there; and turns, told without false roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from linkwise.mechanism.closures.base import RelativePose
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, is_zero, sqrt, where
from linkwise.spatial.vectors import Vec, coordinate_axis

_LETTERS = "xyz"
_STRAIGHT = 1e-28  # sin²θ past a quarter turn: below it, rounding alone says where the turn leads


@dataclass(frozen=True, eq=False)
class Directions:
    """A unit axis and two more, at right angles to it and to each other."""

    axis: Vec
    across: tuple[Vec, Vec]
    axis_name: str
    across_names: tuple[str, str]

    def along(self, p: Vec) -> Scalar:
        """How far p lies along the axis."""
        return self.axis.dot(p)

    def off(self, p: Vec) -> list[Scalar]:
        """How far p lies off the axis, in the two directions across."""
        return [e.dot(p) for e in self.across]

    def tilt(self, X: RelativePose) -> list[Scalar]:
        """The turns about the two directions across that lead the axis u to R u; see :func:`half_angle`."""
        turned = X.R @ self.axis
        sines = self.off(self.axis.cross(turned))
        return sines if X.closed else half_angle(self.axis.dot(turned), sines)


@cache
def directions(axis: tuple[float, float, float]) -> Directions:
    """Across a coordinate axis, the two others; across any other, two that no letter names."""
    u = Vec.of(axis)
    k = coordinate_axis(axis)
    if k is not None:
        i, j = (n for n in range(3) if n != k)
        return Directions(u, (Vec.unit(i), Vec.unit(j)), _LETTERS[k], (_LETTERS[i], _LETTERS[j]))
    least = min(range(3), key=lambda n: abs(axis[n]))
    e1 = u.cross(Vec.unit(least))
    e1 = e1 * (1.0 / e1.dot(e1) ** 0.5)
    return Directions(u, (e1, u.cross(e1)), "along", ("across 1", "across 2"))


def turn(X: RelativePose) -> list[Scalar]:
    """The turn that leads frame a's axes to frame b's, in three parts; see :func:`half_angle`."""
    m, sines = X.R.m, axial(X.R)
    return sines if X.closed else half_angle((m[0][0] + m[1][1] + m[2][2] - 1.0) * 0.5, sines)


def axial(R: Mat3) -> list[Scalar]:
    """Sin θ n of a rotation by θ about n."""
    m = R.m
    return [(m[2][1] - m[1][2]) * 0.5, (m[0][2] - m[2][0]) * 0.5, (m[1][0] - m[0][1]) * 0.5]


def half_angle(cosine: Scalar, sines: Sequence[Scalar]) -> list[Scalar]:
    """2 sin(θ/2) n from cos θ and sin θ n: the vector part of a quaternion, twice, with its sign chosen.

    It grows from 0 to 2 with θ from 0 to π, and vanishes for θ = 0 alone, where it is sin θ n up to terms of third
    order. No such function is continuous everywhere: at half a turn, where n and -n say the same, it jumps.
    """
    near = cosine > 0.0
    square: Scalar = sum((s * s for s in sines), 0.0)
    straight = square > _STRAIGHT
    # 2 sin(θ/2) / sin θ: past a quarter turn as the quotient of its parts, without the difference 1 + cos θ.
    above = where(near, 2.0, (1.0 - cosine) * 2.0)
    factor = sqrt(above / where(near, 1.0 + cosine, where(straight, square, 1.0)))
    made = [s * factor for s in sines]
    # At half a turn no number tells where to; some direction, but none that the mechanism never turns about.
    k = next((i for i, s in enumerate(sines) if not is_zero(s)), 0)
    made[k] = where(near, made[k], where(straight, made[k], factor))
    return made
