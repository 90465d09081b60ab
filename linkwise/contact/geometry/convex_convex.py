"""Any two convex shapes, by their support functions.

The points b - a of two shapes make a convex set, and its support function h(n) = max n·(b - a) is minus their distance
along n: the signed distance is the largest -h(n) over all unit vectors n. So n is the normal of the set where it is
nearest to the origin, from outside or from inside. A pass takes a point over the set, straight out along the n at
hand, and finds by one step of Gilbert, Johnson and Keerthi (1988) the nearest point of the set to it; the way from
there is the next n. Since the point stays outside, at a distance, nothing is lost where the shapes touch, and depth is
found as distance is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.figures import Figure
from linkwise.contact.geometry.manifold import margin_of, overlap
from linkwise.contact.geometry.points import (
    UNUSED_GAP,
    ContactPoint,
    Contacts,
    along_segment,
    choose,
    direction,
    halfway,
)
from linkwise.contact.geometry.supports import facing, radius_about_origin, support
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import (
    Flat,
    Items,
    Scalar,
    absolute,
    clip,
    either,
    looped_over,
    maximum,
    minimum,
    plainly_looped_over,
    where,
)
from linkwise.spatial.vectors import Vec

_PASSES, _CURVED_PASSES = 24, 40
_CURVED = ("cylinder", "ellipsoid")
_ABOVE = 1e-3, 2e-2  # distance of the point from the set, in radii of the smaller shape: least and most
_STILL = 1e-30  # square of the turn of n in a pass that changes nothing any more
_ROUND = ("sphere", "capsule")
_TURNED = ("capsule", "cylinder")


def convex_convex(
    a: Geometry, A: Placed, b: Geometry, B: Placed, *, slots: int = 4, within: Scalar | None = None
) -> Contacts:
    """Contact points of two convex shapes: the nearest points, and the corners of where two flat faces overlap.

    Args:
        slots: number of contact points; one for spheres and ellipsoids. Points of the overlap that touch and find no
            slot are counted as overflow.
        within: see :func:`closest`.
    """
    nearest = closest(a, A, b, B, within=within)
    if slots == 1:
        return Contacts((nearest,))
    n = nearest.normal
    return overlap(facing(a, A, -n), facing(b, B, n), nearest, slots, margin_of(a, b))


def closest(
    a: Geometry, A: Placed, b: Geometry, B: Placed, passes: int | None = None, within: Scalar | None = None
) -> ContactPoint:
    """The nearest points of two convex shapes, where they overlap those that the least shift parts.

    Deep inside each other, where several ways out are about as long, it may be another way than the shortest.

    Args:
        a: a convex shape: of spheres and capsules the axis is taken, and the radius added.
        A: its placement in the common frame.
        b: another.
        B: likewise.
        passes: the most passes; fewer where none changes anything any more.
        within: distance beyond which a bound from below is enough, m; none if not given.
    """
    if passes is None:
        passes = _CURVED_PASSES if a.kind in _CURVED or b.kind in _CURVED else _PASSES
    (core_a, r_a), (core_b, r_b) = _core(a), _core(b)
    size = maximum(1e-6, minimum(radius_about_origin(a), radius_about_origin(b)))

    def over(n: Vec, h: Scalar) -> Vec:
        """The point over the set along n: as high as the set is deep there, so that corners are left behind fast."""
        above = clip(absolute(h), _ABOVE[0] * size, _ABOVE[1] * size)
        point: Vec = n * maximum(h + above, 0.0)
        return point

    def farthest(n: Vec) -> tuple[Vec, Vec]:
        return support(core_a, A, -n), support(core_b, B, n)

    def height(n: Vec) -> Scalar:
        on_a, on_b = farthest(n)
        return n.dot(on_b - on_a)

    def is_open(least: Scalar) -> Any:
        """Whether a bound from below is not enough yet."""
        return True if within is None else -least < within + (r_a + r_b)

    n, least = _start(a, A, b, B, height, is_open)
    on_a, on_b = farthest(n)

    def goes_on(state: Flat, *_: Flat) -> Any:
        return state[25] > 0.0

    def step(state: Flat, _: Flat) -> tuple[list[Scalar], list[Scalar]]:
        vectors = [Vec.of(state[3 * k : 3 * k + 3]) for k in range(8)]
        kept_a, kept_b, n, best = vectors[0:3], vectors[3:6], vectors[6], vectors[7]
        least = state[24]
        new_a, new_b = farthest(n)
        h = n.dot(new_b - new_a)
        better = h < least
        best, least = choose(better, n, best), where(better, h, least)
        p = over(best, least)
        corners_a, corners_b = [*kept_a, new_a], [*kept_b, new_b]
        point, pick = _nearest_triangle([y - x - p for x, y in zip(corners_a, corners_b, strict=True)])
        following = direction(-point, n)
        turned = following - n
        more = better | (turned.dot(turned) > _STILL)  # else all passes would be like this one
        more = more & is_open(least)
        made = (*pick(corners_a), *pick(corners_b), following, best)
        after = [*(x for v in made for x in v), least, where(more, 1.0, 0.0)]
        return either(goes_on(state), after, state), []

    begin = [*(x for v in (on_a, on_a, on_a, on_b, on_b, on_b, n, n) for x in v), least, 1.0]
    found, _ = looped_over([Items([0.0], [0] * passes, 1)], step, begin, (goes_on,))
    vectors = [Vec.of(found[3 * k : 3 * k + 3]) for k in range(8)]
    n = vectors[7]
    h = height(n)
    gap = -h - (r_a + r_b)
    # Weights of the last triangle, seen from straight above, are those of the points on both shapes.
    corners = [y - x - over(n, h) for x, y in zip(vectors[0:3], vectors[3:6], strict=True)]
    weights = _weights(*corners)
    x, y = (
        sum((v * w for v, w in zip(three, weights, strict=True)), Vec.zero()) for three in (vectors[:3], vectors[3:6])
    )
    point = halfway(x - n * r_a, y + n * r_b)
    if a.kind == b.kind == "ellipsoid":  # whose support points are the only ones
        point = halfway(support(a, A, -n), support(b, B, n))
    return ContactPoint(gap, n, point)


def apart_between_axes(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Scalar:
    """Less than the distance of two convex shapes: how far they are apart along the way between their axes.

    Of cylinders side by side it is the distance. Shapes that are not round about an axis have their origins instead.
    """
    (p, d), (c, e) = (_axis(shape, X) for shape, X in ((a, A), (b, B)))
    dd, ee, de, between = d.dot(d), e.dot(e), d.dot(e), p - c
    crossing = dd * ee - de * de
    skew = crossing > 1e-12 * dd * ee
    s = clip((de * e.dot(between) - d.dot(between) * ee) / where(skew, crossing, 1.0), 0.0, 1.0)
    on_b = c + e * along_segment(p + d * where(skew, s, 0.5), c, e)
    on_a = p + d * along_segment(on_b, p, d)
    n = direction(on_a - on_b, Vec.unit(2))
    return n.dot(support(a, A, -n) - support(b, B, n))


def _axis(shape: Geometry, X: Placed) -> tuple[Vec, Vec]:
    """One end of a shape's axis, and the way to the other."""
    if shape.kind not in _TURNED:
        return X.p, Vec.zero()
    half = X.R.column(2) * (0.5 * shape.size[1])
    return X.p - half, half * 2.0


def _core(shape: Geometry) -> tuple[Geometry, float]:
    """A shape without its roundness, and the radius of that."""
    if shape.kind not in _ROUND:
        return shape, 0.0
    return replace(shape, size=(0.0, *shape.size[1:])), shape.size[0]


def _start(
    a: Geometry,
    A: Placed,
    b: Geometry,
    B: Placed,
    height: Callable[[Vec], Scalar],
    is_open: Callable[[Scalar], Any],
) -> tuple[Vec, Scalar]:
    """The best of the way between the origins of both shapes, their axes, and the normals of two axes."""
    between = A.p - B.p
    n = direction(between, Vec.unit(2))
    least = height(n)
    axes = [_axes(shape, X, between) for shape, X in ((a, A), (b, B))]

    def tried(found: Flat, way: Flat) -> tuple[list[Scalar], list[Scalar]]:
        out = Vec.of(way) * where(Vec.of(way).dot(between) < 0.0, -1.0, 1.0)
        h = height(out)
        return either(h < found[3], [*out, h], found), []

    ways = [*axes[0], *axes[1], *(direction(x.cross(y), n) for x in axes[0] for y in axes[1])]
    loop = looped_over if isinstance(a, Figure) or isinstance(b, Figure) else plainly_looped_over
    asks = () if is_open(least) is True else (lambda found, _: is_open(found[3]),)
    found, _ = loop([Items.rows([[*way] for way in ways])], tried, [*n, least], asks)
    return Vec.of(found[:3]), found[3]


def _axes(shape: Geometry, X: Placed, between: Vec) -> list[Vec]:
    """The axes of a shape; of one that is round about an axis, that, the way to the other shape, and across both."""
    if shape.kind not in _TURNED:
        return [X.R.column(i) for i in range(3)]
    z = X.R.column(2)
    x = direction(between - z * z.dot(between), X.R.column(0))
    return [x, z.cross(x), z]


Weights = tuple[Scalar, Scalar, Scalar]


def _inside(a: Vec, b: Vec, c: Vec) -> tuple[Any, Weights]:
    """Whether the origin is over a triangle, and the weights of the corners whose sum is the point under it."""
    ab, bc = b - a, c - b
    area = ab.cross(bc)
    square = area.dot(area)
    flat = square > 1e-24 * ab.dot(ab) * bc.dot(bc)
    inverse = 1.0 / where(flat, square, 1.0)
    u, v, w = (area.dot(p.cross(q)) * inverse for p, q in ((b, c), (c, a), (a, b)))
    return flat & (u >= 0.0) & (v >= 0.0) & (w >= 0.0), (u, v, w)


def _weights(a: Vec, b: Vec, c: Vec) -> Weights:
    """Weights of the corners of a triangle whose sum is its point nearest to the origin; corners may coincide."""
    ab, bc, ca = b - a, c - b, a - c
    inside, over = _inside(a, b, c)
    origin = Vec.zero()
    s, t, r = along_segment(origin, a, ab), along_segment(origin, b, bc), along_segment(origin, c, ca)
    edges = ((1.0 - s, s, 0.0), (0.0, 1.0 - t, t), (r, 0.0, 1.0 - r))
    found, least = edges[0], _square(a + ab * s)
    for weights, point in ((edges[1], b + bc * t), (edges[2], c + ca * r)):
        near = _square(point)
        nearer = near < least
        found = _picked(nearer, weights, found)
        least = where(nearer, near, least)
    return _picked(inside, over, found)


def _picked(condition: Any, a: Weights, b: Weights) -> Weights:
    x, y, z = (where(condition, one, other) for one, other in zip(a, b, strict=True))
    return x, y, z


def _square(v: Vec) -> Scalar:
    return v.dot(v)


def _nearest_triangle(corners: Sequence[Vec]) -> tuple[Vec, Callable[[Sequence[Vec]], list[Vec]]]:
    """The point of a tetrahedron's surface that is nearest to the origin, and a choice of its triangle's corners.

    It is on an edge, or within one of the four triangles; an edge is taken with the corner that was found last.
    """
    triangles = ((0, 1, 3), (0, 2, 3), (1, 2, 3), (0, 1, 2))
    edges = {(0, 1): 0, (0, 2): 1, (0, 3): 1, (1, 2): 2, (1, 3): 2, (2, 3): 2}
    found: list[tuple[Scalar, Vec, int]] = []
    for (i, j), k in edges.items():
        d = corners[j] - corners[i]
        point = corners[i] + d * along_segment(Vec.zero(), corners[i], d)
        found.append((_square(point), point, k))
    for k, triangle in enumerate(triangles):
        three = [corners[i] for i in triangle]
        inside, weights = _inside(*three)
        point = sum((v * w for v, w in zip(three, weights, strict=True)), Vec.zero())
        found.append((where(inside, _square(point), UNUSED_GAP), point, k))
    least, nearest, _ = found[0]
    which: Scalar = 0.0
    for near, point, k in found[1:]:
        nearer = near < least
        least, nearest = where(nearer, near, least), choose(nearer, point, nearest)
        which = where(nearer, float(k), which)

    def pick(points: Sequence[Vec]) -> list[Vec]:
        a, b, c, d = points
        one, last = (which > 1.5) & (which < 2.5), which > 2.5
        return [choose(one, b, a), choose((which > 0.5) & (which < 2.5), c, b), choose(last, c, d)]

    return nearest, pick
