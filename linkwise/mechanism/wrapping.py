"""Tendons around spheres and cylinders: where they touch, over any scalar.

Both are problems in a plane: that of the sphere goes through its centre and the two ends, that of the cylinder lies
across its axis, along which the way rises evenly. The way is the shortest one, so that its length changes with the ends
alone as if it were held where it touches.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from linkwise.checks import set_finite
from linkwise.dataclass import dataclass
from linkwise.errors import UnknownNameError
from linkwise.spatial.scalar import Flat, Scalar, absolute, asin, atan2, cos, cross, dot, is_constant, sin, sqrt, where

Point = Flat

_SMALL = 1e-15
_GRAZING = 1e-9  # rad: an arc of less than nothing by no more than this is rounding, not nearly a full turn
_NEWTON = 10  # steps; convergence is monotone and in the end quadratic


class WrapTouch(NamedTuple):
    """Points in which a way touches a shape, in the axes of the shape."""

    touches: Scalar
    """Whether it does; if not, the rest means nothing."""
    arc: Scalar
    """Length along the shape, m."""
    first: Point
    """The point (3) where it comes to the shape."""
    last: Point
    """The point (3) where it leaves."""


@dataclass(frozen=True, slots=True)
class Wrap:
    """A sphere or cylinder that a tendon runs around between two frames of its way.

    Args:
        frame: name of a body or frame: the centre, with the cylinder's axis along z.
        radius: m.
        shape: ``"sphere"`` or ``"cylinder"``, which is endless.
        side: name of a frame on the side where the tendon must pass; the shorter way if not given. If that frame is
            inside the shape, the tendon passes through the shape as through a ring, touching it from within.
    """

    frame: str
    radius: float
    shape: Literal["sphere", "cylinder"] = "sphere"
    side: str | None = None

    def __post_init__(self) -> None:
        if self.shape not in ("sphere", "cylinder"):
            raise UnknownNameError("shape for tendons to wrap around", self.shape, ("sphere", "cylinder"))
        set_finite(self, "radius", f"the wrap at {self.frame!r}", above=0.0)

    def touch(self, a: Point, b: Point, side: Point | None = None) -> WrapTouch:
        """Points in which the way from a to b touches; all points (3) in the axes of the shape."""
        ex, ey = _plane_through(a, b) if self.shape == "sphere" else ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
        one, two = ((dot(point, ex), dot(point, ey)) for point in (a, b))
        if side is None:
            found = _around(one, two, None, self.radius)
        else:
            towards = _unit([dot(side, ex), dot(side, ey)])
            inside = dot(side, side) < self.radius**2
            around, within = _around(one, two, towards, self.radius), _within(one, two, self.radius)
            found = _chosen(inside, within, around)
        touches, arc, (ax, ay), (bx, by) = found
        first, last = ([x * u + y * w for u, w in zip(ex, ey, strict=True)] for x, y in ((ax, ay), (bx, by)))
        if self.shape == "cylinder":
            before, after = _distance((ax, ay), one), _distance((bx, by), two)
            slope = (b[2] - a[2]) / _positive(before + arc + after)
            first[2], last[2] = a[2] + slope * before, a[2] + slope * (before + arc)
            arc = arc * sqrt(1.0 + slope * slope)
        return WrapTouch(touches, arc, first, last)


def _plane_through(a: Point, b: Point) -> tuple[Point, Point]:
    """Axes of the plane of a, b and the origin: the first towards a, the second on b's side."""
    ex = _unit(a)
    normal = cross(a, b)
    size = dot(normal, normal)
    # All in one line: any plane will do. The guess has ones but at the largest number of a.
    x, y, z = (absolute(each) for each in ex)
    largest_y, largest_z = (y > x) & (y > z), (z > x) & (z > y)
    guess = [
        where(largest_y | largest_z, 1.0, 0.0),
        where(largest_y, 0.0, 1.0),
        where(largest_z, 0.0, 1.0),
    ]
    apart = size > _SMALL**2
    normal = [where(apart, n, g) for n, g in zip(normal, cross(ex, guess), strict=True)]
    return ex, _unit(cross(normal, ex))


def _around(a: Point, b: Point, side: Point | None, r: float) -> WrapTouch:
    """Around a circle, in the plane.

    The way turns as the line from a to b does, seen from the centre, and touches where that line would cut the circle.
    Where the line passes behind the centre, seen from the side where the tendon must be, it goes the other way round.
    """
    s_a, s_b = dot(a, a), dot(b, b)
    way = [y - x for x, y in zip(a, b, strict=True)]
    square = dot(way, way)
    outside, apart = (s_a >= r * r) & (s_b >= r * r), square >= _SMALL
    along = -dot(way, a) / where(apart, square, 1.0)
    along = where(along < 0.0, 0.0, where(along > 1.0, 1.0, along))
    cuts = _square([x + along * w for x, w in zip(a, way, strict=True)]) <= r * r
    turn = where(_turned(a, b) < 0.0, -1.0, 1.0)  # 1 against the clock
    touches = outside & apart & cuts
    if side is not None:
        of_a, of_b = _turned(side, a), _turned(side, b)
        # Where the line meets that through the centre and the side: before or behind the centre.
        behind = (of_a * of_b < 0.0) & (
            (of_a * dot(side, b) - of_b * dot(side, a)) * where(of_a > of_b, 1.0, -1.0) < 0.0
        )
        touches, turn = outside & apart & (cuts | behind), where(behind, -turn, turn)
    # The tangents from a point at distance s touch at r²/s along the way to it and r sqrt(s² - r²)/s across.
    first, last = (
        _tangent(end, r * r / _positive(s), r * sense * sqrt(where(outside, s - r * r, 1.0)) / _positive(s))
        for end, s, sense in ((a, s_a, turn), (b, s_b, -turn))
    )
    angle = atan2(_turned(first, last) * turn, dot(first, last))
    angle = where(angle < -_GRAZING, angle + 2.0 * math.pi, angle)
    return WrapTouch(touches, angle * r, first, last)


def _within(a: Point, b: Point, r: float) -> WrapTouch:
    """From a to b, both outside of a circle, touching its inside: at one point, where both parts meet it alike.

    With φ the angle of incidence: asin(A sin φ) + asin(B sin φ) - 2φ + γ = 0, A and B the radius by the distances of
    the ends and γ the angle between them. The left is concave and falls, so Newton's method from φ = π/2 never passes
    the root.
    """
    l_a, l_b = sqrt(_positive(dot(a, a))), sqrt(_positive(dot(b, b)))
    way = [y - x for x, y in zip(a, b, strict=True)]
    square = dot(way, way)
    apart = square > _SMALL
    along = -dot(way, a) / where(apart, square, 1.0)
    nearest = [x + along * w for x, w in zip(a, way, strict=True)]
    passes = apart & (along > 0.0) & (along < 1.0) & (dot(nearest, nearest) <= r * r)
    cross = _turned(a, b)
    gamma = atan2(absolute(cross), dot(a, b))
    opposite = gamma > math.pi - 1e-7
    outside = (l_a > r) & (l_b > r)
    A, B = (where(outside, r / l, 0.5) for l in (l_a, l_b))
    phi: Scalar = 0.5 * math.pi

    def value(phi: Scalar) -> Scalar:
        return asin(A * sin(phi)) + asin(B * sin(phi)) - 2.0 * phi + gamma

    solvable = value(phi) < 0.0
    gamma = where(solvable, gamma, 0.5)
    for _ in range(_NEWTON):
        s, c = sin(phi), cos(phi)
        slope = A * c / sqrt(1.0 - (A * s) * (A * s)) + B * c / sqrt(1.0 - (B * s) * (B * s)) - 2.0
        phi = phi - value(phi) / slope
    left = cross > 0.0
    start = _unit([where(left, x, y) for x, y in zip(a, b, strict=True)])
    turn = phi - asin(where(left, A, B) * sin(phi))
    c, s = cos(turn), sin(turn)
    middle = _unit([x + y for x, y in zip(a, b, strict=True)])
    point = [
        where(solvable, c * start[0] - s * start[1], middle[0]) * r,
        where(solvable, s * start[0] + c * start[1], middle[1]) * r,
    ]
    touches = outside & (where(passes | opposite, 1.0, 0.0) < 0.5)
    return WrapTouch(touches, 0.0, point, point)


def _chosen(condition: Scalar, one: WrapTouch, other: WrapTouch) -> WrapTouch:
    """One where the condition holds, else the other."""
    if isinstance(condition, bool):
        return one if condition else other
    touches = where(condition, where(one.touches, 1.0, 0.0), where(other.touches, 1.0, 0.0)) > 0.5
    points = (
        [where(condition, x, y) for x, y in zip(first, second, strict=True)]
        for first, second in ((one.first, other.first), (one.last, other.last))
    )
    return WrapTouch(touches, where(condition, one.arc, other.arc), *points)


def _tangent(a: Point, along: Scalar, across: Scalar) -> Point:
    return [a[0] * along - a[1] * across, a[1] * along + a[0] * across]


def _turned(a: Point, b: Point) -> Scalar:
    """|a| |b| sin of the angle from a to b, in the plane."""
    return a[0] * b[1] - a[1] * b[0]


def _positive(x: Scalar) -> Scalar:
    """The same, or one where it is zero, so that it can be divided by and has a root."""
    if is_constant(x):
        return x if x > 0.0 else 1.0
    return where(x > 0.0, x, 1.0)


def _unit(a: Point) -> Point:
    """Direction; the first axis where there is none."""
    square = dot(a, a)
    there = square > _SMALL**2
    size = sqrt(where(there, square, 1.0))
    return [where(there, x / size, 1.0 if k == 0 else 0.0) for k, x in enumerate(a)]


def _distance(a: Point, b: Point) -> Scalar:
    square = _square([x - y for x, y in zip(a, b, strict=True)])
    return where(square > 0.0, sqrt(_positive(square)), 0.0)


def _square(a: Point) -> Scalar:
    return dot(a, a)
