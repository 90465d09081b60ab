"""Contact points of two flat faces: where they overlap, and which of many points are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, tangents
from linkwise.contact.geometry.supports import Face, radius_about_origin
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, maximum, minimum, where
from linkwise.spatial.vectors import Vec

_MARGIN = 0.02
_SAME = 1e-3  # of the margin: points nearer to each other than this are one, and surfaces nearer than this touch
_TIE = 1e-9  # of the margin: a corner is taken before another point of the face unless it is this much higher
_LEVEL = 1e-7  # of the margin: corners within it are at one height, and the first of them is taken
_ALIKE = 1.0 + 1e-7  # likewise of bases: rounding must not choose, or points change places from step to step
_EDGE = 1e-6  # of a face's size: how far outside of its edges a corner still counts as inside


class Spot(NamedTuple):
    """A contact point seen along the normal: its gap, where it is in the plane, and its height."""

    gap: Scalar
    x: Scalar
    y: Scalar
    z: Scalar


class Seen(NamedTuple):
    """A frame whose third axis is the normal of contact."""

    origin: Vec
    u: Vec
    w: Vec
    n: Vec

    @classmethod
    def along(cls, n: Vec, origin: Vec) -> Seen:
        """The frame about an origin."""
        return cls(origin, *tangents(n), n)

    def within(self, p: Vec) -> Vec:
        """A point in this frame."""
        away = p - self.origin
        return Vec(self.u.dot(away), self.w.dot(away), self.n.dot(away))

    def point(self, spot: Spot) -> ContactPoint:
        """A spot as a contact point."""
        return ContactPoint(spot.gap, self.n, self.origin + self.u * spot.x + self.w * spot.y + self.n * spot.z)


_UNUSED = Spot(UNUSED_GAP, 0.0, 0.0, 0.0)


def margin_of(*shapes: Geometry) -> Scalar:
    """How much farther from touching than the nearest point others may be to be kept, m: 2 % of the smallest shape."""
    first, *others = (radius_about_origin(shape) for shape in shapes)
    for radius in others:
        first = minimum(first, radius)
    margin: float = _MARGIN * first
    return margin


def spread(spots: Sequence[Spot], frame: Seen, slots: int, margin: Scalar, lowest: Scalar = UNUSED_GAP) -> Contacts:
    """The deepest of many points, and those within the margin that span the widest base with it.

    The deepest; the farthest from it; the farthest from the line of both; the one that adds most to the triangle; then
    each the farthest from those chosen. Points that touch and are left out are counted as overflow; one that comes to
    touch is the deepest in the next step, and has its place then.

    Args:
        spots: the points, unused ones among them.
        frame: that they are seen in.
        slots: how many are kept.
        margin: see :func:`margin_of`.
        lowest: gap of the frame's origin, which is taken as the deepest where no point is as deep.
    """
    first, deepest = spots[0], spots[0].gap
    for spot in spots[1:]:
        first = _chosen(spot.gap < first.gap - _LEVEL * margin, spot, first)
        deepest = minimum(deepest, spot.gap)
    first = _chosen(lowest < deepest - _TIE * margin, Spot(lowest, 0.0, 0.0, 0.0), first)
    limit = minimum(maximum(first.gap, 0.0) + margin, 0.5 * UNUSED_GAP)
    touching = _SAME * margin
    same = touching**2
    away = [where(spot.gap < limit, _square(spot, first), 0.0) for spot in spots]
    taken = [first]
    for k in range(1, slots):
        if k == 2:  # a base without breadth is a line
            scores = [absolute(_area(taken[0], taken[1], spot)) for spot in spots]
        elif k == 3:
            turn = where(_area(*taken) < 0.0, -1.0, 1.0)
            edges = ((0, 1), (1, 2), (2, 0))
            scores = [_largest([-turn * _area(taken[i], taken[j], spot) for i, j in edges]) for spot in spots]
        else:
            scores = away
        best, found = 0.0, _UNUSED
        for spot, score, distance in zip(spots, scores, away, strict=True):
            better = (distance > same) & (score > _ALIKE * best)
            best, found = where(better, score, best), _chosen(better, spot, found)
        if k in (2, 3):
            breadth = best * best > same * _square(taken[1], first)
            found = _chosen(breadth & (taken[k - 1].gap < UNUSED_GAP), found, _UNUSED)
        used = found.gap < UNUSED_GAP
        away = [where(used, minimum(x, _square(spot, found)), x) for x, spot in zip(away, spots, strict=True)]
        taken.append(found)
    left = sum(where((x > same) & (spot.gap < touching), 1.0, 0.0) for x, spot in zip(away, spots, strict=True))
    return Contacts(tuple(frame.point(spot) for spot in taken), left)


def overlap(face_a: Face, face_b: Face, nearest: ContactPoint, slots: int, margin: Scalar) -> Contacts:
    """Contact points of two faces that look at each other: the corners of what they have in common, seen along n.

    Corners of the one over the other, and places where their edges cross; each with its own gap, so that faces which
    are not parallel touch where they are near. An edge or a point is a face whose corners coincide.

    Args:
        face_a: four corners of the first shape's face, in order.
        face_b: likewise of the second's.
        nearest: the nearest points of both shapes, whose normal is that of all points.
        slots: how many points are kept.
        margin: see :func:`margin_of`.
    """
    frame = Seen.along(nearest.normal, nearest.point)
    a, b = ([frame.within(p) for p in face] for face in (face_a, face_b))
    spots = []

    def add(valid: Any, x: Scalar, y: Scalar, high: Scalar, low: Scalar) -> None:
        gap = maximum(high - low, nearest.gap)  # no point is deeper; a corner just outside of an edge might seem so
        spots.append(Spot(where(valid, gap, UNUSED_GAP), x, y, 0.5 * (high + low)))

    for corners, face, is_first in ((a, b, True), (b, a, False)):
        is_over, height = _over(face)
        for p in corners:
            other = height(p.x, p.y)
            add(is_over(p.x, p.y), p.x, p.y, *((p.z, other) if is_first else (other, p.z)))
    for i in range(4):
        p, d = a[i], a[(i + 1) % 4] - a[i]
        for j in range(4):
            c, e = b[j], b[(j + 1) % 4] - b[j]
            turn = d.x * e.y - d.y * e.x
            crosses = turn * turn > 1e-12 * (d.x * d.x + d.y * d.y) * (e.x * e.x + e.y * e.y)
            inverse = 1.0 / where(crosses, turn, 1.0)
            s = ((c.x - p.x) * e.y - (c.y - p.y) * e.x) * inverse
            t = ((c.x - p.x) * d.y - (c.y - p.y) * d.x) * inverse
            within = crosses & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
            add(within, p.x + d.x * s, p.y + d.y * s, p.z + d.z * s, c.z + e.z * t)
    return spread(spots, frame, slots, margin, nearest.gap)


def _over(face: Sequence[Vec]) -> tuple[Callable[[Scalar, Scalar], Any], Callable[[Scalar, Scalar], Scalar]]:
    """Whether a place is over a face of four corners, and how high the face is there; z is up."""
    a, b, c, e = face
    normal = (c - a).cross(e - b)
    centre = (a + b + c + e) * 0.25
    breadth = (c - a).dot(c - a) + (e - b).dot(e - b)
    flat = absolute(normal.z) > 1e-6 * breadth
    up = 1.0 / where(flat, normal.z, 1.0)
    turn = where(normal.z < 0.0, -1.0, 1.0)

    def is_over(x: Scalar, y: Scalar) -> Any:
        within = flat
        for p, q in ((a, b), (b, c), (c, e), (e, a)):
            within = within & (turn * ((q.x - p.x) * (y - p.y) - (q.y - p.y) * (x - p.x)) > -_EDGE * breadth)
        return within

    def height(x: Scalar, y: Scalar) -> Scalar:
        return centre.z - (normal.x * (x - centre.x) + normal.y * (y - centre.y)) * up

    return is_over, height


def _chosen(condition: Any, a: Spot, b: Spot) -> Spot:
    return Spot(*(where(condition, x, y) for x, y in zip(a, b, strict=True)))


def _square(a: Spot, b: Spot) -> Scalar:
    x, y = a.x - b.x, a.y - b.y
    return x * x + y * y


def _area(a: Spot, b: Spot, c: Spot) -> Scalar:
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)


def _largest(areas: Sequence[Scalar]) -> Scalar:
    a, b, c = areas
    return maximum(a, maximum(b, c))
