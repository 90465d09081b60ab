"""Contact with heightfields and terrains: the facets of the ground that shapes rest on, and those they come to.

A ball touches where the facets' nearest points to its centre are at its radius: on faces, edges and corners. Most of
these points say nothing: a ball that stays above the plane through the nearest of them, across its normal, comes to no
point below that plane. So the nearest is taken; then the nearest of those above its plane, as on the other flank of a
valley; and so on. Even ground and ridges have one such point, grooves two, pits three; edges inside of even ground are
in the plane of the first point, and are not felt.

A capsule is a ball at each end, and between them an axis that comes to ridges. A shape with flat faces has the points
with which it would touch a plane, that of the facet under its middle, each over a facet of its own; its other corners;
and, of a box and of a cylinder that stands (the square in its cap), ridges as far as they run over the face that looks
down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.box_plane import box_plane
from linkwise.contact.geometry.convex_plane import convex_plane
from linkwise.contact.geometry.cylinder_plane import cylinder_plane
from linkwise.contact.geometry.ellipsoid_plane import ellipsoid_plane
from linkwise.contact.geometry.facets import Facet, check, over_facets
from linkwise.contact.geometry.figures import Figure
from linkwise.contact.geometry.manifold import margin_of
from linkwise.contact.geometry.points import (
    UNUSED_GAP,
    ContactPoint,
    Contacts,
    choose,
    chosen,
    direction,
    half_edges,
    into,
    out_of,
    tangents,
    unused,
)
from linkwise.contact.geometry.supports import facing, radius_about_origin
from linkwise.mechanism.description import Geometry
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import (
    Items,
    Scalar,
    absolute,
    by_digits,
    clip,
    either,
    looped_over,
    maximum,
    minimum,
    where,
)
from linkwise.spatial.vectors import Vec

SLOTS = {"sphere": 3, "capsule": 6, "box": 7, "cylinder": 7, "convex": 7, "ellipsoid": 1}
"""Number of contact points of each kind of shape."""

_MARGIN = 0.25
"""Of a ball's radius, how far from its surface facets are looked for."""

_TOUCHING = 1e-6
"""m: points nearer than this that find no slot are counted."""

_RISE, _RISE_SINGLE = 1e-6, 1e-3
"""Slope from which on a point rises above a plane: with sixteen digits, and with seven."""

_INSIDE = 1e-6
"""Of a segment's length: what is nearer to an end is the end's."""

_DEEP = 0.5
"""Of a shape's radius, how far behind its face a ridge may be."""

_NONE = [UNUSED_GAP, 0.0, 0.0, 1.0]
_NO_TOP = [-UNUSED_GAP, 0.0, 0.0, 1.0]


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
    top, rows = over_facets(b, p, _reach(a), lambda top, facet: (_topmost(top, facet), _nearest(facet)), _NO_TOP)
    found, left = _for_ball(top, rows, r, SLOTS["sphere"])
    return Contacts(tuple(_contact(B, p, r, near) for near in found), left)


def _reach(a: Geometry) -> float:
    """How far from the origin of a shape facets are looked for, m; of a figure, for all of its kind."""
    most = a.most if isinstance(a, Figure) and a.most is not None else a
    rounding = most.size[0] if most.kind in ("sphere", "capsule") else 0.0
    return float(radius_about_origin(most) + _MARGIN * rounding)


def _topmost(top: list[Scalar], facet: Facet) -> list[Scalar]:
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
        return [Near.of(_NONE)] * slots, 0.0
    is_under, n = top[0] > 0.0, Vec.of(top[1:4])
    above = where(is_under, 0.0, 1.0)
    found: list[Near] = []

    def is_free(row: Sequence[Scalar]) -> Scalar:
        free = above > 0.5
        for other in found:
            free = free & Near.of(row).rises_above(other)
        return free

    first = Near.of(_least(rows, lambda row: above > 0.5, _NONE))
    found.append(Near(where(is_under, -n.z * top[0], first.distance), choose(is_under, n, first.normal)))
    while len(found) < slots:
        found.append(Near.of(_least(rows, is_free, _NONE)))
    return found, _any_left(rows, is_free, r + _TOUCHING)


def _least(
    rows: Sequence[Sequence[Scalar]], is_free: Callable[[Sequence[Scalar]], Scalar], none: Sequence[Scalar]
) -> list[Scalar]:
    """The row with the least first number, of those that are free; what is given if there is none."""

    def step(best: list[Scalar], row: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        return either((row[0] < best[0]) & is_free(row), row, best), []

    return looped_over([Items.rows(rows)], step, none)[0]


def _any_left(rows: Sequence[Sequence[Scalar]], is_free: Callable[[Sequence[Scalar]], Scalar], limit: Scalar) -> Scalar:
    """One where a free row has a first number below a limit, else zero."""

    def step(left: list[Scalar], row: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        return [where((row[0] < limit) & is_free(row), 1.0, left[0])], []

    return looped_over([Items.rows(rows)], step, [0.0], (lambda left, row: row[0] < limit,))[0][0]


def _contact(B: Placed, p: Vec, r: Scalar, near: Near) -> ContactPoint:
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
        both = [x for k, one in enumerate(from_ends) for x in _topmost(tops[4 * k : 4 * k + 4], one)]
        return both, [*(x for one in from_ends for x in _nearest(one)), *_beside(facet, half)]

    tops, rows = over_facets(b, centre, _reach(a), seen, [*_NO_TOP, *_NO_TOP])
    points: list[ContactPoint] = []
    ends: list[tuple[Vec, Scalar]] = []
    left: Scalar = 0.0
    for k, place in enumerate(places):
        found, over = _for_ball(tops[4 * k : 4 * k + 4], [row[4 * k : 4 * k + 4] for row in rows], r, 2)
        points += [_contact(B, centre + place, r, near) for near in found]
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
        row = _least(ridges, is_free, [*_NONE, 0.5])
        near, along = Near.of(row), half * (2.0 * row[4] - 1.0)
        points.append(_contact(B, centre + along, r, near))
        between.append((along + near.point, row[4]))
    left = left + (_any_left(ridges, is_free, r + _TOUCHING) if ridges else 0.0)
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
    best: list[Scalar] = [*_NONE, 0.5]
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


_ON_PLANES: dict[str, Callable[..., Contacts]] = {
    "box": box_plane,
    "cylinder": cylinder_plane,
    "convex": convex_plane,
    "ellipsoid": ellipsoid_plane,
}


def faces_ground(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The points with which a shape would touch a plane, each over its own facet; and more of its corners, and ridges.

    The plane is that of the facet under the shape's middle, or under its lowest point where it is round.
    """
    check(b)
    centre = into(B, A.p)
    plane = _plane_under(b, centre)
    on_plane = _on_plane(a, A, B, centre, plane)
    for _ in range(_TURNS if a.kind == "ellipsoid" else 0):
        (foot,) = (into(B, foot) for foot in _feet(on_plane))
        plane = _plane_under(b, foot)
        on_plane = _on_plane(a, A, B, foot, plane)
    feet = [into(B, foot) for foot in _feet(on_plane)]

    def over(_: list[Scalar], foot: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        near = _plane_under(b, Vec.of(foot))
        return [], [near.distance, *near.normal]

    found = looped_over([Items.rows([[*foot] for foot in feet])], over, [])[1]
    points = [
        chosen(plain.gap < UNUSED_GAP, _contact(B, p, 0.0, Near.of(one)), unused())
        for plain, p, one in zip(on_plane.points, feet, found, strict=True)
    ]
    if SLOTS[a.kind] == len(points):
        return Contacts(tuple(points), on_plane.overflow)
    rows = _corners(a, A, b, B, feet)
    if a.kind != "convex":
        rows += _ridges_over(a, A, b, B, centre, plane.normal)
    more, left = _spread(rows, SLOTS[a.kind] - len(points), margin_of(a))
    for row in more:
        gap, n, p = row[0], Vec.of(row[1:4]), Vec.of(row[4:7])
        one = ContactPoint(gap, B.R @ n, out_of(B, p + n * (0.5 * gap)))
        points.append(chosen(gap < UNUSED_GAP, one, unused()))
    return Contacts(tuple(points), left)


_TURNS = 2
"""How often the lowest point of a round shape is looked for anew, over the facet under it."""


def _plane_under(b: Geometry, p: Vec) -> Near:
    """The plane of the facet of the ground under or over a place."""
    level, *n = over_facets(b, p, 0.0, lambda top, facet: (_topmost(top, facet), []), _NO_TOP)[0]
    return Near(where(level > -UNUSED_GAP, -n[2] * level, UNUSED_GAP), Vec.of(n))


def _on_plane(a: Geometry, A: Placed, B: Placed, p: Vec, plane: Near) -> Contacts:
    """Contact of a shape with a plane through a point near a place of the ground."""
    n = B.R @ plane.normal
    u, w = tangents(n)
    R = Mat3([list(row) for row in zip(u, w, n, strict=True)])
    distance = where(plane.distance < UNUSED_GAP, plane.distance, 0.0)
    return _ON_PLANES[a.kind](a, A, a, Placed(R, out_of(B, p - plane.normal * distance)))


def _feet(on_plane: Contacts) -> list[Vec]:
    """The points of a shape that touch a plane."""
    return [p.point + p.normal * (0.5 * where(p.gap < UNUSED_GAP, p.gap, 0.0)) for p in on_plane.points]


def _corners(a: Geometry, A: Placed, b: Geometry, B: Placed, feet: Sequence[Vec]) -> list[list[Scalar]]:
    """The corners of a shape over their facets, but for those that are feet: gap, normal and the ground's point."""
    if a.kind == "box":
        h = half_edges(a)
        corners = [[x * y for x, y in zip(h, signs, strict=True)] for signs in product((-1.0, 1.0), repeat=3)]
    elif a.kind == "convex":
        corners = [list(corner) for corner in a.vertices]
    else:
        return []
    size = _SAME * radius_about_origin(a)

    def over(_: list[Scalar], corner: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        p = into(B, out_of(A, Vec.of(corner)))
        near = _plane_under(b, p)
        known = near.distance >= UNUSED_GAP
        for foot in feet:
            known = known | ((p - foot).dot(p - foot) < size * size)
        gap = where(known, UNUSED_GAP, near.distance)
        return [], [gap, *near.normal, *(p + near.normal * where(known, 0.0, -gap))]

    return looped_over([Items.rows(corners)], over, [])[1]


_SAME = 1e-9
"""Of a shape's radius, up to which a corner and a foot are one."""


def _ridges_over(a: Geometry, A: Placed, b: Geometry, B: Placed, centre: Vec, up: Vec) -> list[list[Scalar]]:
    """Where ridges begin and end over the face of a shape that looks down: gap, normal and the ground's point."""
    face = [into(B, corner) - centre for corner in facing(a, A, -(B.R @ up))]
    area = (face[2] - face[0]).cross(face[3] - face[1])
    area = area * where(area.dot(up) > 0.0, 1.0, -1.0)
    far = radius_about_origin(a)
    flat = area.dot(area) > 1e-12 * far**4
    n = direction(area, up)
    middle = (face[0] + face[2]) * 0.5
    sides = []
    for p, q in zip(face, (*face[1:], face[0]), strict=True):
        inward = n.cross(q - p)
        sides.append((inward * where(inward.dot(middle - p) < 0.0, -1.0, 1.0), p))

    def seen(_: list[Scalar], facet: Facet) -> tuple[list[Scalar], list[Scalar]]:
        made: list[Scalar] = []
        for (p, q), is_ridge in zip(facet.edges(), facet.ridges, strict=True):
            edge = q - p
            first: Scalar = 0.0
            last: Scalar = 1.0
            for inward, at in sides:
                rate, missing = inward.dot(edge), inward.dot(at - p)
                when = missing / where(rate * rate > 0.0, rate, 1.0)
                first = where(rate > 0.0, maximum(first, when), first)
                last = where(rate < 0.0, minimum(last, when), last)
                last = where((rate * rate <= 0.0) & (missing > 0.0), -1.0, last)
            there = flat & (is_ridge > 0.5) & (first <= last)
            for t in (first, last):
                point = p + edge * t
                gap = n.dot(middle - point)
                made += [where(there & (gap > -_DEEP * far), gap, UNUSED_GAP), *n, *(centre + point)]
        return [], made

    rows = over_facets(b, centre, _reach(a), seen, [])[1]
    return [row[k : k + 7] for row in rows for k in range(0, len(row), 7)]


def _spread(rows: Sequence[Sequence[Scalar]], slots: int, margin: Scalar) -> tuple[list[list[Scalar]], Scalar]:
    """The row of the least gap, and those within a margin that are farthest from the ones taken; one if more touch."""
    none = [*_NONE, 0.0, 0.0, 0.0]
    taken = [_least(rows, lambda row: row[0] < UNUSED_GAP, none)]
    limit = minimum(maximum(taken[0][0], 0.0) + margin, 0.5 * UNUSED_GAP)
    same = (_NEAR * margin) * (_NEAR * margin)

    def away(row: Sequence[Scalar]) -> Scalar:
        squares = [sum(((x - y) * (x - y) for x, y in zip(row[4:7], one[4:7], strict=True)), 0.0) for one in taken]
        least = squares[0]
        for x in squares[1:]:
            least = minimum(least, x)
        return least

    def step(best: list[Scalar], row: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        far = away(row)
        return either((row[0] < limit) & (far > best[0]), [far, *row], best), []

    while len(taken) < slots:
        asks = (lambda best, row: row[0] < limit,)
        taken.append(looped_over([Items.rows(rows)], step, [same, *none], asks)[0][1:])
    return taken, _any_left(rows, lambda row: away(row) > same, _TOUCHING)


_NEAR = 1e-2
"""Of the margin: points nearer to each other than this are one."""
