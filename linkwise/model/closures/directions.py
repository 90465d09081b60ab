"""The directions that an axis makes: along it and across it, with names for the equations measured there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec, coordinate_axis

_LETTERS = "xyz"


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

    def tilt(self, R: Mat3) -> list[Scalar]:
        """The turns about the two directions across that lead the axis u to R u, as sines: those parts of u × R u.

        Zero for R u = u, and for the false root R u = -u; see :meth:`is_upright`.
        """
        return self.off(self.axis.cross(R @ self.axis))

    def is_upright(self, R: Mat3) -> bool:
        """Whether R u is nearer to u than to -u."""
        return bool(self.axis.dot(R @ self.axis) > 0.0)


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


def turn(R: Mat3) -> list[Scalar]:
    """Sin θ n of a rotation by θ about n. Zero for R = 1, and for the false roots, all half turns; see `is_near`."""
    m = R.m
    return [(m[2][1] - m[1][2]) * 0.5, (m[0][2] - m[2][0]) * 0.5, (m[1][0] - m[0][1]) * 0.5]


def is_near(R: Mat3) -> bool:
    """Whether R turns by less than a quarter turn: cos θ = (tr R - 1)/2 is positive."""
    return bool(R.m[0][0] + R.m[1][1] + R.m[2][2] > 1.0)
