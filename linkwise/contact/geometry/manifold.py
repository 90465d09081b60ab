"""Contact points of two flat faces: where they overlap, and which of many points are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, chosen, deepest, tangents, unused
from linkwise.contact.geometry.supports import Face, radius_about_origin
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, maximum, minimum, where
from linkwise.spatial.vectors import Vec

_MARGIN = 0.02
_SAME = 1e-3  # of the margin: points nearer to each other than this are one
_TIE = 1e-9  # of the margin: a corner is taken before another point of the face unless it is this much higher
_EDGE = 1e-6  # of a face's size: how far outside of its edges a corner still counts as inside


def margin_of(*shapes: Geometry) -> float:
    """How much farther from touching than the nearest point others may be to be kept, m: 2 % of the smallest shape."""
    return _MARGIN * min(radius_about_origin(shape) for shape in shapes)


def spread(
    candidates: Sequence[ContactPoint], n: Vec, slots: int, margin: float, lowest: ContactPoint | None = None
) -> Contacts:
    """The deepest of many points, and those within the margin that span the widest base with it.

    The deepest; the farthest from it; the farthest from the line of both; the one that adds most to the triangle; then
    each the farthest from those chosen. Points that are left out are counted as overflow.

    Args:
        candidates: the points, unused ones among them.
        n: normal of all of them.
        slots: how many are kept.
        margin: see :func:`margin_of`.
        lowest: a point that is taken as the deepest where no candidate is as deep.
    """
    first = deepest(candidates)
    if lowest is not None:
        first = chosen(lowest.gap < first.gap - _TIE * margin, lowest, first)
    limit = minimum(maximum(first.gap, 0.0) + margin, 0.5 * UNUSED_GAP)
    same = (_SAME * margin) ** 2
    taken = [first]
    found = [_square(one.point - first.point) for one in candidates]
    counts = [one.gap < limit for one in candidates]
    turn: Scalar = 1.0
    for k in range(1, slots):
        if k == 2:
            scores = [absolute(_area(n, taken[0], taken[1], one)) for one in candidates]
        elif k == 3:
            edges = ((0, 1), (1, 2), (2, 0))
            turn = where(_area(n, *taken) < 0.0, -1.0, 1.0)
            scores = [_widest([-turn * _area(n, taken[i], taken[j], one) for i, j in edges]) for one in candidates]
        else:
            scores = found
        best, next_one = -1.0, unused()
        for one, score, near, counted in zip(candidates, scores, found, counts, strict=True):
            better = counted & (near > same) & (score > best)
            best, next_one = where(better, score, best), chosen(better, one, next_one)
        if k in (2, 3):  # a base without breadth is a line
            wide = (best > 0.0) & (best * best > same * _square(taken[1].point - first.point))
            next_one = chosen(wide & (taken[k - 1].gap < UNUSED_GAP), next_one, unused())
        taken.append(next_one)
        found = [
            minimum(near, where(next_one.gap < UNUSED_GAP, _square(one.point - next_one.point), near))
            for one, near in zip(candidates, found, strict=True)
        ]
    left = sum(where(counted & (near > same), 1.0, 0.0) for near, counted in zip(found, counts, strict=True))
    return Contacts(tuple(taken), left)


def overlap(face_a: Face, face_b: Face, nearest: ContactPoint, slots: int, margin: float) -> Contacts:
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
    n = nearest.normal
    u, w = tangents(n)
    origin = nearest.point
    a, b = ([Vec(u.dot(p - origin), w.dot(p - origin), n.dot(p - origin)) for p in face] for face in (face_a, face_b))
    candidates = []

    def add(valid: object, x: Scalar, y: Scalar, high: Scalar, low: Scalar) -> None:
        point = origin + u * x + w * y + n * (0.5 * (high + low))
        candidates.append(chosen(valid, ContactPoint(high - low, n, point), ContactPoint(UNUSED_GAP, n, origin)))

    for corners, face, is_first in ((a, b, True), (b, a, False)):
        inside, height = _over(face)
        for p in corners:
            below = height(p.x, p.y)
            add(inside(p.x, p.y), p.x, p.y, *((p.z, below) if is_first else (below, p.z)))
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
    return spread(candidates, n, slots, margin, nearest)


def _over(face: Sequence[Vec]) -> tuple[Callable[[Scalar, Scalar], object], Callable[[Scalar, Scalar], Scalar]]:
    """Whether a place is over a face of four corners, and how high the face is there; z is up."""
    a, b, c, e = face
    normal = (c - a).cross(e - b)
    centre = (a + b + c + e) * 0.25
    breadth = _square(c - a) + _square(e - b)
    flat = absolute(normal.z) > 1e-6 * breadth
    up = where(flat, normal.z, 1.0)
    turn = where(normal.z < 0.0, -1.0, 1.0)

    def inside(x: Scalar, y: Scalar) -> object:
        within = flat
        for p, q in ((a, b), (b, c), (c, e), (e, a)):
            within = within & (turn * ((q.x - p.x) * (y - p.y) - (q.y - p.y) * (x - p.x)) > -_EDGE * breadth)
        return within

    def height(x: Scalar, y: Scalar) -> Scalar:
        return centre.z - (normal.x * (x - centre.x) + normal.y * (y - centre.y)) / up

    return inside, height


def _square(v: Vec) -> Scalar:
    return v.dot(v)


def _area(n: Vec, a: ContactPoint, b: ContactPoint, c: ContactPoint) -> Scalar:
    return n.dot((b.point - a.point).cross(c.point - a.point))


def _widest(areas: Sequence[Scalar]) -> Scalar:
    a, b, c = areas
    return maximum(a, maximum(b, c))
