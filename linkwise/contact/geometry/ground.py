"""Heightfields and terrains of triangles, looked up under the points of a shape.

The height over a place is a sum over all nodes of a heightfield (bilinear between them), or a choice among all
triangles: constants of the program, whose number the time of a look-up grows with.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, direction, ends, into, out_of
from linkwise.contact.geometry.supports import facing, support
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, clip, maximum, repeated, where
from linkwise.spatial.vectors import Vec

MOST_NODES = 4096
"""Most nodes of a heightfield, and most triangles of a terrain."""


class Under(NamedTuple):
    """The ground under a place: its height, its slopes along x and y, and 1 where there is some, else 0."""

    height: Scalar
    along_x: Scalar
    along_y: Scalar
    there: Scalar


def shape_ground(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """Points of a shape over a heightfield or a terrain; as many slots as :data:`FEET` says.

    A sphere, the two ends of a capsule, the four corners of the face that looks down of a box, a cylinder or a convex
    mesh, or the lowest point of an ellipsoid, each against the tangent plane of the ground where it is nearest to the
    ground. Exact on even ground; edges of the ground between the points of a face are not seen. Beyond its edges a
    heightfield goes on at the height it has there; there is no terrain beyond its triangles.
    """
    _check(b)
    feet, r = _feet(a, A, -B.R.column(2))
    queue: list[Scalar] = []
    for foot in feet:
        p = into(B, foot)
        queue += [*p, p.x, p.y, 0.0, 0.0, 0.0, 0.0]

    def sought(queue: list[Scalar]) -> list[Scalar]:
        """The ground under the first foot's place, and the next place to look: the foot of the perpendicular on it."""
        p, (x, y) = Vec.of(queue[:3]), queue[3:5]
        under = ground_under(b, x, y)
        n = direction(Vec(-under.along_x, -under.along_y, 1.0), Vec.unit(2))
        distance = n.dot(p - Vec(x, y, under.height))
        gap = where(under.there > 0.5, distance - r, UNUSED_GAP)
        return [*queue[_FOOT:], *p, p.x - n.x * distance, p.y - n.y * distance, gap, *n]

    # One look-up in the program, for all feet: each pass takes the first of them, and puts it behind the others.
    found = repeated(2 * len(feet), sought, queue)
    points = []
    for k in range(len(feet)):
        numbers = found[_FOOT * k : _FOOT * (k + 1)]
        p, gap, n = Vec.of(numbers[:3]), numbers[5], Vec.of(numbers[6:])
        points.append(ContactPoint(gap, B.R @ n, out_of(B, p - n * where(gap < UNUSED_GAP, r + 0.5 * gap, 0.0))))
    return Contacts(tuple(points))


_FOOT = 9  # numbers of a foot in the queue: its point, the place looked at, its gap and its normal

FEET = {"sphere": 1, "capsule": 2, "box": 4, "cylinder": 4, "convex": 4, "ellipsoid": 1}
"""Number of points that each kind of shape stands on."""


def _feet(a: Geometry, A: Placed, down: Vec) -> tuple[tuple[Vec, ...], float]:
    if a.kind == "sphere":
        return (A.p,), a.size[0]
    if a.kind == "capsule":
        return ends(a, A), a.size[0]
    if a.kind == "ellipsoid":
        return (support(a, A, down),), 0.0
    return facing(a, A, down), 0.0


def ground_under(b: Geometry, x: Scalar, y: Scalar) -> Under:
    """The ground of a heightfield or a terrain under a place, all in its own frame."""
    return _heightfield(b, x, y) if b.kind == "heightfield" else _terrain(b, x, y)


def _heightfield(b: Geometry, x: Scalar, y: Scalar) -> Under:
    rows, columns = len(b.heights), len(b.heights[0])
    dx, dy = b.size[0] / (columns - 1), b.size[1] / (rows - 1)
    weights_x, slopes_x = _hats(clip(x / dx + 0.5 * (columns - 1), 0.0, columns - 1.0), columns, dx)
    weights_y, slopes_y = _hats(clip(y / dy + 0.5 * (rows - 1), 0.0, rows - 1.0), rows, dy)
    even, across = ([_product(w, [row[c] for row in b.heights]) for c in range(columns)] for w in (weights_y, slopes_y))
    return Under(_product(weights_x, even), _product(slopes_x, even), _product(weights_x, across), 1.0)


def _hats(s: Scalar, count: int, step: float) -> tuple[list[Scalar], list[Scalar]]:
    """Weights of evenly spaced nodes at s (node 0 at 0, node 1 at 1, …), and how they change with the way."""
    away = [s - float(k) for k in range(count)]
    weights = [maximum(1.0 - absolute(x), 0.0) for x in away]
    # Of the two nodes around s: in [k, k + 1), the last node in the last interval too.
    last = float(count - 1)
    above = [where((x >= 0.0) & (x < 1.0), 1.0, 0.0) for x in away[:-1]]
    above[-1] = where((s >= last - 1.0) & (s <= last), 1.0, 0.0)
    zero: list[Scalar] = [0.0]
    slopes = [(before - after) * (1.0 / step) for before, after in zip(zero + above, above + zero, strict=True)]
    return weights, slopes


def _product(weights: list[Scalar], values: list[Scalar]) -> Scalar:
    return sum(w * x for w, x in zip(weights, values, strict=True))


def _terrain(b: Geometry, x: Scalar, y: Scalar) -> Under:
    height, along_x, along_y, there = -UNUSED_GAP, 0.0, 0.0, 0.0
    for face in b.faces:
        p, q, r = (b.vertices[k] for k in face)
        area = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        if not area > 0.0:
            continue  # a wall, or the underside
        inside = None
        for a, c in ((p, q), (q, r), (r, p)):
            left = (c[0] - a[0]) * (y - a[1]) - (c[1] - a[1]) * (x - a[0]) >= 0.0
            inside = left if inside is None else inside & left
        slope_x = ((q[2] - p[2]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[2] - p[2])) / area
        slope_y = ((q[0] - p[0]) * (r[2] - p[2]) - (q[2] - p[2]) * (r[0] - p[0])) / area
        level = p[2] + slope_x * (x - p[0]) + slope_y * (y - p[1])
        taken = inside & (level > height)
        height, there = where(taken, level, height), where(taken, 1.0, there)
        along_x, along_y = where(taken, slope_x, along_x), where(taken, slope_y, along_y)
    return Under(where(there > 0.5, height, 0.0), along_x, along_y, there)


def _check(b: Geometry) -> None:
    if b.kind == "heightfield":
        count = len(b.heights) * len(b.heights[0] if b.heights else ())
        if len(b.heights) < 2 or len(b.heights[0]) < 2 or any(len(row) != len(b.heights[0]) for row in b.heights):
            raise InputError(
                f"the heightfield of {b.name!r} is no grid",
                got=f"rows of {[len(row) for row in b.heights][:8]} heights",
                allowed="two or more rows, all of two or more heights",
            )
    else:
        count = len(b.faces)
    if not 0 < count <= MOST_NODES:
        raise InputError(
            f"the {b.kind} of {b.name!r} has too many nodes to be looked up in a compiled function, or none",
            got=count,
            allowed=f"1 to {MOST_NODES}",
            do="take a coarser one, or cut it into several of which bodies meet few",
        )
