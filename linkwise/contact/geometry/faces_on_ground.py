"""Contact of shapes with faces, corners or a round outside with heightfields and terrains.

Such a shape has the points with which it would touch a plane, that of the facet under its middle, each over a facet of
its own; its other corners; and, of a box and of a cylinder that stands (the square in its cap), ridges as far as they
run over the face that looks down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.box_plane import box_plane
from linkwise.contact.geometry.convex_plane import convex_plane
from linkwise.contact.geometry.cylinder_plane import cylinder_plane
from linkwise.contact.geometry.ellipsoid_plane import ellipsoid_plane
from linkwise.contact.geometry.facets import Facet, check, over_facets
from linkwise.contact.geometry.ground import (
    NO_TOP,
    NONE,
    SLOTS,
    TOUCHING,
    Near,
    any_left,
    contact_of_ball,
    least_row,
    reach,
    topmost,
)
from linkwise.contact.geometry.manifold import margin_of
from linkwise.contact.geometry.points import (
    UNUSED_GAP,
    ContactPoint,
    Contacts,
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
from linkwise.spatial.scalar import Items, Scalar, either, looped_over, maximum, minimum, where
from linkwise.spatial.vectors import Vec

_DEEP = 0.5
"""Of a shape's radius, how far behind its face a ridge may be."""

_TURNS = 2
"""How often the lowest point of a round shape is looked for anew, over the facet under it."""

_SAME = 1e-9
"""Of a shape's radius, up to which a corner and a foot are one."""

_NEAR = 1e-2
"""Of the margin: points nearer to each other than this are one."""

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
        chosen(plain.gap < UNUSED_GAP, contact_of_ball(B, p, 0.0, Near.of(one)), unused())
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


def _plane_under(b: Geometry, p: Vec) -> Near:
    """The plane of the facet of the ground under or over a place."""
    level, *n = over_facets(b, p, 0.0, lambda top, facet: (topmost(top, facet), []), NO_TOP)[0]
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

    rows = over_facets(b, centre, reach(a), seen, [])[1]
    return [row[k : k + 7] for row in rows for k in range(0, len(row), 7)]


def _spread(rows: Sequence[Sequence[Scalar]], slots: int, margin: Scalar) -> tuple[list[list[Scalar]], Scalar]:
    """The row of the least gap, and those within a margin that are farthest from the ones taken; one if more touch."""
    none = [*NONE, 0.0, 0.0, 0.0]
    taken = [least_row(rows, lambda row: row[0] < UNUSED_GAP, none)]
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
    return taken, any_left(rows, lambda row: away(row) > same, TOUCHING)
