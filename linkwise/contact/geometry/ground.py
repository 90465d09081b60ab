"""Contact of balls and capsules with heightfields and terrains: the facets of the ground that they come to.

A ball touches where the facets' nearest points to its centre are at its radius: on faces, edges and corners. Most of
these points say nothing: a ball that stays above the plane through the nearest of them, across its normal, comes to no
point below that plane. So the nearest is taken; then the nearest of those above its plane, as on the other flank of a
valley; and so on. Even ground and ridges have one such point, grooves two, pits three; edges inside of even ground are
in the plane of the first point, and are not felt.

A capsule is a ball at each end, and between them an axis that comes to ridges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.facets import Facet, check, over_facets
from linkwise.contact.geometry.figures import Figure
from linkwise.contact.geometry.points import (
    UNUSED_GAP,
    ContactPoint,
    Contacts,
    choose,
    chosen,
    direction,
    into,
    out_of,
    unused,
)
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import (
    Items,
    Scalar,
    absolute,
    by_digits,
    clip,
    either,
    looped_over,
    maximum,
    where,
)
from linkwise.spatial.vectors import Vec

SLOTS = {"sphere": 3, "capsule": 6, "box": 7, "cylinder": 7, "convex": 7, "ellipsoid": 1}
"""Number of contact points of each kind of shape."""

_MARGIN = 0.25
"""Of a ball's radius, how far from its surface facets are looked for."""

TOUCHING = 1e-6
"""m: points nearer than this that find no slot are counted."""

_RISE, _RISE_SINGLE = 1e-6, 1e-3
"""Slope from which on a point rises above a plane: with sixteen digits, and with seven."""

_INSIDE = 1e-6
"""Of a segment's length: what is nearer to an end is the end's."""

NONE = [UNUSED_GAP, 0.0, 0.0, 1.0]
"""Distance and normal where there is no point."""

NO_TOP = [-UNUSED_GAP, 0.0, 0.0, 1.0]
"""Level and normal where there is no facet over or under a place."""


class Near(NamedTuple):
    """A point of the ground near a place.

    Args:
        distance: to the place, m.
        normal: unit vector towards it.
    """

    distance: Scalar
    normal: Vec

    @classmethod
    def of(cls, numbers: Sequence[Scalar]) -> Near:
        """From the first four of some numbers."""
        return cls(numbers[0], Vec.of(numbers[1:4]))

    @property
    def point(self) -> Vec:
        """Where it is, seen from the place."""
        found: Vec = self.normal * -self.distance
        return found

    def rises_above(self, other: Near) -> Scalar:
        """Whether it is above the plane through another point, across that one's normal."""
        way = self.point - other.point
        height, slope = other.normal.dot(way), by_digits(other.distance, _RISE, _RISE_SINGLE)
        return (height > slope * slope * other.distance) & (height * height > slope * slope * way.dot(way))


def sphere_ground(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The points of the ground that a ball may come to, three at most: exact, as long as its centre is above it.

    Under the ground the facet above the centre is the only one.
    """
    check(b)
    p, r = into(B, A.p), a.size[0]
    top, rows = over_facets(b, p, reach(a), lambda top, facet: (topmost(top, facet), _nearest(facet)), NO_TOP)
    found, left = _for_ball(top, rows, r, SLOTS["sphere"])
    return Contacts(tuple(contact_of_ball(B, p, r, near) for near in found), left)


def reach(a: Geometry) -> float:
    """How far from the origin of a shape facets are looked for, m; of a figure, for all of its kind."""
    most = a.most if isinstance(a, Figure) and a.most is not None else a
    rounding = most.size[0] if most.kind in ("sphere", "capsule") else 0.0
    return float(radius_about_origin(most) + _MARGIN * rounding)


def topmost(top: list[Scalar], facet: Facet) -> list[Scalar]:
    """The level and the normal of the highest facet over or under a place, once one more is looked at."""
    level = facet.level()
    return either(facet.is_over() & (level > top[0]), [level, *facet.normal], top)


def _nearest(facet: Facet) -> list[Scalar]:
    distance, normal = facet.nearest()
    return [distance, *normal]


def _for_ball(
    top: Sequence[Scalar], rows: Sequence[Sequence[Scalar]], r: Scalar, slots: int
) -> tuple[list[Near], Scalar]:
    """The points of the ground that a ball may come to, and one where it touches more than that.

    Args:
        top: level and normal of the highest facet over or under its centre, from there.
        rows: of all facets near it the nearest points.
        r: its radius.
        slots: how many points.
    """
    if not rows:
        return [Near.of(NONE)] * slots, 0.0
    is_under, n = top[0] > 0.0, Vec.of(top[1:4])
    above = where(is_under, 0.0, 1.0)
    found: list[Near] = []

    def is_free(row: Sequence[Scalar]) -> Scalar:
        free = above > 0.5
        for other in found:
            free = free & Near.of(row).rises_above(other)
        return free

    first = Near.of(least_row(rows, lambda row: above > 0.5, NONE))
    found.append(Near(where(is_under, -n.z * top[0], first.distance), choose(is_under, n, first.normal)))
    while len(found) < slots:
        found.append(Near.of(least_row(rows, is_free, NONE)))
    return found, any_left(rows, is_free, r + TOUCHING)


def least_row(
    rows: Sequence[Sequence[Scalar]], is_free: Callable[[Sequence[Scalar]], Scalar], none: Sequence[Scalar]
) -> list[Scalar]:
    """The row with the least first number, of those that are free; what is given if there is none."""

    def step(best: list[Scalar], row: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        return either((row[0] < best[0]) & is_free(row), row, best), []

    return looped_over([Items.rows(rows)], step, none)[0]


def any_left(rows: Sequence[Sequence[Scalar]], is_free: Callable[[Sequence[Scalar]], Scalar], limit: Scalar) -> Scalar:
    """One where a free row has a first number below a limit, else zero."""

    def step(left: list[Scalar], row: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        return [where((row[0] < limit) & is_free(row), 1.0, left[0])], []

    return looped_over([Items.rows(rows)], step, [0.0], (lambda left, row: row[0] < limit,))[0][0]


def contact_of_ball(B: Placed, p: Vec, r: Scalar, near: Near) -> ContactPoint:
    """The contact of a ball about a place with a point of the ground."""
    gap = near.distance - r
    point = out_of(B, p - near.normal * (r + 0.5 * gap))
    return chosen(near.distance < UNUSED_GAP, ContactPoint(gap, B.R @ near.normal, point), unused())


def capsule_ground(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The points of the ground that a capsule may come to: two of the ball at each end, and two ridges between them.

    Of the ridges the nearest is taken, and the nearest of those above the lines from it to the points of both ends.
    """
    check(b)
    centre, r = into(B, A.p), a.size[0]
    half = B.R.transpose_times(A.R.column(2)) * (0.5 * a.size[1])
    places = (-half, half)

    def seen(tops: list[Scalar], facet: Facet) -> tuple[list[Scalar], list[Scalar]]:
        from_ends = [facet.from_place(place) for place in places]
        both = [x for k, one in enumerate(from_ends) for x in topmost(tops[4 * k : 4 * k + 4], one)]
        return both, [*(x for one in from_ends for x in _nearest(one)), *_beside(facet, half)]

    tops, rows = over_facets(b, centre, reach(a), seen, [*NO_TOP, *NO_TOP])
    points: list[ContactPoint] = []
    ends: list[tuple[Vec, Scalar]] = []
    left: Scalar = 0.0
    for k, place in enumerate(places):
        found, over = _for_ball(tops[4 * k : 4 * k + 4], [row[4 * k : 4 * k + 4] for row in rows], r, 2)
        points += [contact_of_ball(B, centre + place, r, near) for near in found]
        ends.append((place + found[0].point, float(k)))
        left = left + over
    between: list[tuple[Vec, Scalar]] = []

    def is_free(row: Sequence[Scalar]) -> Scalar:
        near, s = Near.of(row), row[4]
        point = half * (2.0 * s - 1.0) + near.point
        free = near.distance < UNUSED_GAP
        for there, at in between:
            before = s < at
            one = choose(before, ends[0][0], there), where(before, 0.0, at)
            other = choose(before, there, ends[1][0]), where(before, at, 1.0)
            free = free & _is_above(point, near.normal, s, one, other)
        return free

    ridges = [row[8:] for row in rows]
    for _ in range(2 if ridges else 0):
        row = least_row(ridges, is_free, [*NONE, 0.5])
        near, along = Near.of(row), half * (2.0 * row[4] - 1.0)
        points.append(contact_of_ball(B, centre + along, r, near))
        between.append((along + near.point, row[4]))
    left = left + (any_left(ridges, is_free, r + TOUCHING) if ridges else 0.0)
    return Contacts((*points, *[unused()] * (SLOTS["capsule"] - len(points))), left)


def _is_above(point: Vec, normal: Vec, s: Scalar, one: tuple[Vec, Scalar], other: tuple[Vec, Scalar]) -> Scalar:
    """Whether a point is above the line through two others, along a normal; it is at s of the way between them."""
    (p, at), (q, end) = one, other
    way = q - p
    height = normal.dot(point - p - way * ((s - at) / where(end > at, end - at, 1.0)))
    slope = by_digits(end - at + 1.0, _RISE, _RISE_SINGLE)
    found: Scalar = height * absolute(height) > slope * slope * way.dot(way)
    return found


def _beside(facet: Facet, half: Vec) -> list[Scalar]:
    """The point of a facet's ridges that is nearest to a segment about the origin between its ends, and where: 0 to 1.

    Of a ridge along the segment it is where it begins.
    """
    best: list[Scalar] = [*NONE, 0.5]
    d = half * 2.0
    a = d.dot(d)
    for (p, q), is_ridge in zip(facet.edges(), facet.ridges, strict=True):
        edge, away = q - p, -half - p
        b, c, e, f = d.dot(edge), d.dot(away), edge.dot(edge), edge.dot(away)
        square = a * e - b * b
        crosses = square > 1e-12 * a * e
        s = clip(where(crosses, (b * f - c * e) / where(crosses, square, 1.0), 0.0), 0.0, 1.0)
        free = where(crosses, (b * s + f) / where(crosses, e, 1.0), 0.0)
        t = clip(free, 0.0, 1.0)
        s = where(crosses & (free > 0.0) & (free < 1.0), s, (b * t - c) / maximum(a, 1e-30))
        to = away + d * s - edge * t
        n = direction(to, facet.normal)
        inside = (s > _INSIDE) & (s < 1.0 - _INSIDE) & (n.z > 0.0) & (is_ridge > 0.5)
        best = either(inside & (n.dot(to) < best[0]), [n.dot(to), *n, s], best)
    return best
