"""Heightfields and terrains of triangles, looked up under the points of a shape.

The cell of a grid that a place is in is found by its number: its four nodes, between which heights are bilinear, or the
triangles that reach into it. So a look-up takes the same time however large the ground is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import UNUSED_GAP, ContactPoint, Contacts, direction, ends, into, out_of
from linkwise.contact.geometry.supports import facing, support
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Items, RowTable, Scalar, clip, looped_over, repeated, where
from linkwise.spatial.vectors import Vec

MOST_NODES = 1 << 18
"""Most nodes of a heightfield, and most triangles of a terrain."""

_ROOM = 16
"""Places for triangles in all cells of a grid, for each triangle."""


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
    """Bilinear between the four nodes of the cell that a place is in."""
    rows, columns = len(b.heights), len(b.heights[0])
    dx, dy = b.size[0] / (columns - 1), b.size[1] / (rows - 1)
    s, t = (clip(p / d + 0.5 * (n - 1), 0.0, n - 1.0) for p, d, n in ((x, dx, columns), (y, dy, rows)))
    along, across, nodes = _nodes(b.heights)
    column, row = along.at(s)[0], across.at(t)[0]
    first = row * float(columns) + column
    low, high = nodes.at(first)[1], nodes.at(first + float(columns))[1]
    u, v = s - column, t - row
    slope_x = (1.0 - v) * (low[1] - low[0]) + v * (high[1] - high[0])
    slope_y = (1.0 - u) * (high[0] - low[0]) + u * (high[1] - low[1])
    return Under(low[0] + v * (high[0] - low[0]) + u * slope_x, slope_x / dx, slope_y / dy, 1.0)


@lru_cache(maxsize=16)
def _nodes(heights: tuple[tuple[float, ...], ...]) -> tuple[RowTable, RowTable, RowTable]:
    """Tables of the numbers of columns and of rows of cells, and of the heights of two nodes beside each other."""
    rows, columns = len(heights), len(heights[0])
    numbers = [z for row in heights for z in row]
    return RowTable((), columns - 1, 0, 0), RowTable((), rows - 1, 0, 0), RowTable(numbers, len(numbers) - 1, 1, 2)


def _terrain(b: Geometry, x: Scalar, y: Scalar) -> Under:
    """The highest triangle at a place, of those whose bounding rectangles reach into the place's cell of a grid."""
    grid = _grid(b.vertices, b.faces)
    if grid is None:
        return Under(0.0, 0.0, 0.0, 0.0)
    column, row = (
        numbers.at((p - start) / size)[0]
        for numbers, p, start, size in zip(grid.cells, (x, y), grid.corner, grid.size, strict=True)
    )
    places = grid.places.at(row * float(grid.cells[0].count) + column)[1]

    def triangle(state: Sequence[Scalar], place: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        face = grid.faces.at(place[0])[1]
        corners = [face[0:2], face[2:4], face[4:6]]
        sides = [
            (c[0] - a[0]) * (y - a[1]) - (c[1] - a[1]) * (x - a[0]) >= 0.0
            for a, c in zip(corners, (*corners[1:], corners[0]), strict=True)
        ]
        level = face[8] + face[6] * (x - face[0]) + face[7] * (y - face[1])
        taken = sides[0] & sides[1] & sides[2] & (level > state[0])
        return [where(taken, a, b) for a, b in zip([level, face[6], face[7], 1.0], state, strict=True)], []

    nothing = 0.0 * x
    begin = [nothing - UNUSED_GAP, nothing, nothing, nothing]
    found = looped_over([Items(places, range(len(places)), 1)], triangle, begin)[0]
    height, along_x, along_y, there = found
    return Under(where(there > 0.5, height, 0.0), along_x, along_y, there)


class _Grid(NamedTuple):
    """Triangles by the cells of a grid.

    Args:
        corner: where it begins, m.
        size: of a cell, m.
        cells: tables of the numbers of its columns and of its rows.
        places: of each cell the numbers of its triangles, and again the last.
        faces: of each triangle its corners from above, its slopes, and the height of the first corner.
    """

    corner: tuple[float, float]
    size: tuple[float, float]
    cells: tuple[RowTable, RowTable]
    places: RowTable
    faces: RowTable


@lru_cache(maxsize=16)
def _grid(vertices: tuple[tuple[float, ...], ...], faces: tuple[tuple[int, ...], ...]) -> _Grid | None:
    """The grid of the triangles that look up; None where there are none: walls and undersides bear nothing."""
    p, q, r = np.moveaxis(np.array(vertices, float)[np.array(faces, int)], 1, 0)
    area = (q[:, 0] - p[:, 0]) * (r[:, 1] - p[:, 1]) - (q[:, 1] - p[:, 1]) * (r[:, 0] - p[:, 0])
    p, q, r, area = (each[area > 0.0] for each in (p, q, r, area))
    count = len(area)
    if not count:
        return None
    slope_x = ((q[:, 2] - p[:, 2]) * (r[:, 1] - p[:, 1]) - (q[:, 1] - p[:, 1]) * (r[:, 2] - p[:, 2])) / area
    slope_y = ((q[:, 0] - p[:, 0]) * (r[:, 2] - p[:, 2]) - (q[:, 2] - p[:, 2]) * (r[:, 0] - p[:, 0])) / area
    numbers = np.column_stack([p[:, :2], q[:, :2], r[:, :2], slope_x, slope_y, p[:, 2]])
    low, high = (pick([p[:, :2], q[:, :2], r[:, :2]], axis=0) for pick in (np.min, np.max))
    corner, whole = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
    side = max(1, math.isqrt(count // 2))
    while True:  # a coarser grid where some cells have so many triangles that there is hardly room for all
        size = np.maximum(whole, 1e-12) / side
        # Rectangles are a little larger than they are: in single precision a place is found in a neighbouring cell.
        first, last = (
            np.clip((edge - corner) / size, 0, side - 1).astype(int)
            for edge in (low - 1e-6 * whole, high + 1e-6 * whole)
        )
        wide, tall = (last - first + 1).T
        own = np.repeat(np.arange(count), wide * tall)
        turn = np.arange(len(own)) - np.repeat(np.cumsum(wide * tall) - wide * tall, wide * tall)
        cell = (first[own, 1] + turn // wide[own]) * side + first[own, 0] + turn % wide[own]
        held = np.bincount(cell, minlength=side * side)
        most = int(held.max())
        if side == 1 or side * side * most <= _ROOM * count:
            break
        side //= 2
    order = np.argsort(cell, kind="stable")
    starts = np.cumsum(held) - held
    # A cell without triangles takes some that are elsewhere; none of them is under the place.
    places = np.minimum(starts[:, None] + np.minimum(np.arange(most), np.maximum(held - 1, 0)[:, None]), len(own) - 1)
    return _Grid(
        (float(corner[0]), float(corner[1])),
        (float(size[0]), float(size[1])),
        (RowTable((), side, 0, 0), RowTable((), side, 0, 0)),
        RowTable(own[order][places].ravel().astype(float).tolist(), side * side, most, most),
        RowTable(numbers.ravel().tolist(), count, 9, 9),
    )


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
