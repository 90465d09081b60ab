"""Contact points of two flat faces: where they overlap, and which of many points are kept."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, chosen, deepest, unused
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, maximum, minimum, where
from linkwise.spatial.vectors import Vec

_MARGIN = 0.02
_SAME = 1e-3  # of the margin: points nearer to each other than this are one


def margin_of(*shapes: Geometry) -> float:
    """How much farther from touching than the nearest point others may be to be kept, m: 2 % of the smallest shape."""
    return _MARGIN * min(radius_about_origin(shape) for shape in shapes)


def spread(candidates: Sequence[ContactPoint], n: Vec, slots: int, margin: float) -> Contacts:
    """The deepest of many points, and those within the margin that span the widest base with it.

    The deepest; the farthest from it; the farthest from the line of both; the one that adds most to the triangle; then
    each the farthest from those chosen. Points that are left out are counted as overflow.
    """
    if len(candidates) <= 1:
        return Contacts((*candidates, *(unused() for _ in range(slots - len(candidates)))))
    first = deepest(candidates)
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


def _square(v: Vec) -> Scalar:
    return v.dot(v)


def _area(n: Vec, a: ContactPoint, b: ContactPoint, c: ContactPoint) -> Scalar:
    return n.dot((b.point - a.point).cross(c.point - a.point))


def _widest(areas: Sequence[Scalar]) -> Scalar:
    a, b, c = areas
    return maximum(a, maximum(b, c))
