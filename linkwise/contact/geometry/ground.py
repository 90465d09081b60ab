"""Heightfields and terrains of triangles, looked up under the points of a shape.

The height over a place is found in loops: over the strips of a heightfield, and the cells of the one strip that counts
(bilinear between nodes), or over all triangles, whose number the time of a look-up grows with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, direction, ends, into, out_of
from linkwise.contact.geometry.supports import facing, support
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Items, Scalar, clip, looped_over, repeated, where
from linkwise.spatial.vectors import Vec

MOST_NODES = 1 << 18
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
    """Bilinear between nodes: a loop over strips between two rows, and in those that are asked for over their cells."""
    rows, columns = len(b.heights), len(b.heights[0])
    dx, dy = b.size[0] / (columns - 1), b.size[1] / (rows - 1)
    s, t = (clip(p / d + 0.5 * (n - 1), 0.0, n - 1.0) for p, d, n in ((x, dx, columns), (y, dy, rows)))
    strips = [[float(k), *b.heights[k], *b.heights[k + 1]] for k in range(rows - 1)]
    numbers = [[float(k)] for k in range(columns - 1)]

    def in_strip(state: Sequence[Scalar], strip: Sequence[Scalar]) -> Any:
        return _between(t, strip[0], rows)

    def strip(state: Sequence[Scalar], strip: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        first, second = (Items(strip[1:], range(at, at + columns - 1), 2) for at in (0, columns))
        v = t - strip[0]

        def in_cell(state: Sequence[Scalar], number: Sequence[Scalar], *_: Sequence[Scalar]) -> Any:
            return in_strip(state, strip) & _between(s, number[0], columns)

        def cell(
            state: Sequence[Scalar], number: Sequence[Scalar], low: Sequence[Scalar], high: Sequence[Scalar]
        ) -> tuple[list[Scalar], list[Scalar]]:
            u = s - number[0]
            along = [(1.0 - v) * (low[1] - low[0]) + v * (high[1] - high[0])]
            along.append((1.0 - u) * (high[0] - low[0]) + u * (high[1] - low[1]))
            height = low[0] + v * (high[0] - low[0]) + u * along[0]
            found = [height, along[0] / dx, along[1] / dy]
            there = in_cell(state, number)
            return [where(there, a, b) for a, b in zip(found, state, strict=True)], []

        return looped_over([Items.rows(numbers), first, second], cell, state, (in_cell,))[0], []

    height, along_x, along_y = looped_over([Items.rows(strips)], strip, [0.0 * x, 0.0 * x, 0.0 * x], (in_strip,))[0]
    return Under(height, along_x, along_y, 1.0)


def _between(s: Scalar, number: Scalar, count: int) -> Any:
    """Whether s is in [k, k + 1) for the number k of one of the intervals between so many nodes; the last is closed."""
    away = s - number
    return (away >= 0.0) & ((away < 1.0) | (s >= count - 1.0) & (away <= 1.0))


def _terrain(b: Geometry, x: Scalar, y: Scalar) -> Under:
    """The highest triangle at a place: a loop over all."""
    rows = []
    for face in b.faces:
        p, q, r = (b.vertices[k] for k in face)
        area = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
        if not area > 0.0:
            continue  # a wall, or the underside
        slope_x = ((q[2] - p[2]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[2] - p[2])) / area
        slope_y = ((q[0] - p[0]) * (r[2] - p[2]) - (q[2] - p[2]) * (r[0] - p[0])) / area
        rows.append([*p[:2], *q[:2], *r[:2], slope_x, slope_y, p[2]])
    if not rows:
        return Under(0.0, 0.0, 0.0, 0.0)

    def is_inside(state: Sequence[Scalar], face: Sequence[Scalar]) -> Any:
        corners = [face[0:2], face[2:4], face[4:6]]
        sides = [
            (c[0] - a[0]) * (y - a[1]) - (c[1] - a[1]) * (x - a[0]) >= 0.0
            for a, c in zip(corners, (*corners[1:], corners[0]), strict=True)
        ]
        return sides[0] & sides[1] & sides[2]

    def triangle(state: Sequence[Scalar], face: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        level = face[8] + face[6] * (x - face[0]) + face[7] * (y - face[1])
        taken = is_inside(state, face) & (level > state[0])
        return [where(taken, a, b) for a, b in zip([level, face[6], face[7], 1.0], state, strict=True)], []

    nothing = 0.0 * x
    begin = [nothing - UNUSED_GAP, nothing, nothing, nothing]
    height, along_x, along_y, there = looped_over([Items.rows(rows)], triangle, begin, (is_inside,))[0]
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
            do="take a coarser one",
        )
