"""Signed distance of a point from the surface of a shape, and contact of balls and capsules that follows from it.

A ball touches where its centre is at its radius from the surface. A capsule is a ball whose centre runs along a
segment, and the distance from a convex shape is a convex function along it, so its least value is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import (
    ContactPoint,
    Contacts,
    choose,
    chosen,
    direction,
    ends,
    half_edges,
    into,
    length,
    signs,
    sizes,
    times,
    unused,
)
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, clip, maximum, minimum, repeated, sqrt, where
from linkwise.spatial.vectors import Vec

_HALVINGS = 22  # of a capsule's axis; a secant step follows, which squares what is left
_FLAT = 0.002  # slope of the distance along a capsule's axis up to which it lies along a surface
_APART = 0.25  # least distance of two contact points of a capsule, in its radii
_NEWTON_STEPS = 14


def signed_distance(shape: Geometry, X: Placed, p: Vec) -> tuple[Scalar, Vec]:
    """Distance of a point from a shape's surface, m, negative inside; and the unit normal of the surface there."""
    gap, normal = _DISTANCES[shape.kind](shape, into(X, p))
    return gap, X.R @ normal


def _sphere(shape: Geometry, q: Vec) -> tuple[Scalar, Vec]:
    n = direction(q, Vec.unit(2))
    return n.dot(q) - shape.size[0], n


def _capsule(shape: Geometry, q: Vec) -> tuple[Scalar, Vec]:
    half = 0.5 * shape.size[1]
    v = Vec(q.x, q.y, q.z - clip(q.z, -half, half))
    n = direction(v, Vec.unit(0))
    return n.dot(v) - shape.size[0], n


def _box(shape: Geometry, q: Vec) -> tuple[Scalar, Vec]:
    s, size, h = signs(q), sizes(q), half_edges(shape)
    beyond = Vec(size.x - h[0], size.y - h[1], size.z - h[2])
    outside = Vec(*(maximum(x, 0.0) for x in beyond))
    inside = maximum(beyond.x, maximum(beyond.y, beyond.z))
    is_x = (beyond.x >= beyond.y) & (beyond.x >= beyond.z)
    face = choose(is_x, Vec.unit(0), choose(beyond.y >= beyond.z, Vec.unit(1), Vec.unit(2)))
    n = direction(outside, face)
    return where(inside > 0.0, length(outside), inside), times(n, s)


def _cylinder(shape: Geometry, q: Vec) -> tuple[Scalar, Vec]:
    flat = Vec(q.x, q.y, 0.0)
    u = direction(flat, Vec.unit(0))
    across, along = u.dot(flat) - shape.size[0], absolute(q.z) - 0.5 * shape.size[1]
    outside = Vec(maximum(across, 0.0), maximum(along, 0.0), 0.0)
    inside = maximum(across, along)
    n = direction(outside, choose(across > along, Vec.unit(0), Vec.unit(1)))
    gap = where(inside > 0.0, length(outside), inside)
    return gap, Vec(u.x * n.x, u.y * n.x, where(q.z < 0.0, -n.y, n.y))


def _ellipsoid(shape: Geometry, q: Vec) -> tuple[Scalar, Vec]:
    """The nearest point is x = e²q/(t + e²) with |x/e| = 1: Newton on 1/|x/e|, which is concave in t.

    From the left of the root, Newton's steps stay there, and there is no pole in between. With s = t + e², e the
    least half axis, nothing cancels.
    """
    e = shape.size
    least = minimum(e[0], minimum(e[1], e[2]))
    more = [x * x - least * least for x in e]
    size = [maximum(absolute(x), 1e-9 * least) for x in q]
    s = maximum(size[0] * e[0] - more[0], maximum(size[1] * e[1] - more[1], size[2] * e[2] - more[2]))
    for _ in range(_NEWTON_STEPS):
        parts = [(x * y / (s + m), s + m) for x, y, m in zip(e, size, more, strict=True)]
        square = sum(x * x for x, _ in parts)
        slope = sum(x * x / y for x, y in parts)
        s = s + (sqrt(square) - 1.0) * square / slope
    # In a plane of symmetry, deep inside, there are two nearest points: one of them.
    outward = Vec(
        *(
            where(s + m > 1e-6 * least * least, x, where(x < 0.0, -y, y)) / (s + m)
            for x, y, m in zip(q, size, more, strict=True)
        )
    )
    long = sqrt(outward.dot(outward))
    return (s - least * least) * long, outward * (1.0 / long)


_DISTANCES: dict[str, Callable[[Geometry, Vec], tuple[Scalar, Vec]]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "box": _box,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
}


def ball_near(p: Vec, r: Scalar, b: Geometry, B: Placed) -> ContactPoint:
    """Contact of the ball of radius r about p with a shape."""
    distance, n = signed_distance(b, B, p)
    gap = distance - r
    return ContactPoint(gap, n, p - n * (r + 0.5 * gap))


def sphere_surface(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of a sphere and a box, cylinder or ellipsoid. One slot, exact, inside too."""
    return Contacts((ball_near(A.p, a.size[0], b, B),))


def capsule_surface(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """Where a capsule is nearest to a box, cylinder or ellipsoid, and the far end of where it lies along the surface.

    Two slots, one of them for the nearest point: exact as long as the capsule's axis does not enter the shape; then the
    gap is that of the deepest point of the axis.
    """
    start, end = ends(a, A)
    d, r = end - start, a.size[0]
    span = direction(d, A.R.column(2))

    def slope(s: Scalar) -> Scalar:
        return signed_distance(b, B, start + d * s)[1].dot(span)

    levels = (0.0, -_FLAT, _FLAT)

    def halved(brackets: list[Scalar]) -> list[Scalar]:
        after = []
        for k, level in enumerate(levels):
            low, high = brackets[2 * k], brackets[2 * k + 1]
            middle = 0.5 * (low + high)
            falls = slope(middle) < level
            after += [where(falls, middle, low), where(falls, high, middle)]
        return after

    low, high, *near = repeated(_HALVINGS, halved, [0.0, 1.0] * 3)
    before, after = slope(low), slope(high)
    rises = after - before > 1e-12  # else a bend of the slope, or the end of the axis
    secant = clip(-before / where(rises, after - before, 1.0), 0.0, 1.0)
    inside = (before < 0.0) & (after > 0.0)
    s = where(rises & inside, low + (high - low) * secant, where(after < 0.0, high, low))
    first, last = near[0], near[3]
    level = slope(0.5 * (first + last))

    def stretched(s: Scalar) -> Scalar:
        """The end of where the axis lies along the surface: over an edge that is passed by a little, not beyond it."""
        distance, n = signed_distance(b, B, start + d * s)
        return s - maximum(distance, 0.0) * (n.dot(span) - level) / maximum(a.size[1], 1e-9 * r + 1e-30)

    low_end, high_end = stretched(first), stretched(last)
    is_low = absolute(low_end - s) < absolute(high_end - s)
    used = where(is_low, high_end - s, s - low_end) * a.size[1] > _APART * r
    # In the order along the axis, whichever is nearer: rounding must not choose, or points change places.
    one, other = where(is_low, s, where(used, low_end, s)), where(is_low, high_end, s)
    found = [ball_near(start + d * x, r, b, B) for x in (one, other)]
    return Contacts((found[0], chosen(used, found[1], unused())))
