"""Facets of a heightfield or a terrain around a place: triangles, found by the number of a cell.

A heightfield is two triangles a cell, cut from its first corner to the opposite one, as it is drawn and as in MuJoCo.
The triangles of a terrain are known by cells of a grid of their own. So a look-up takes the same time however large the
ground is; it takes longer the more facets are within reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.contact.geometry.points import UNUSED_GAP, along_segment, choose, direction
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Items, RowTable, Scalar, clip, looped_over, where
from linkwise.spatial.vectors import Vec

MOST_NODES = 1 << 18
"""Most nodes of a heightfield, and most triangles of a terrain."""

MOST_ACROSS = 24
"""Most cells of a heightfield along x and along y that are looked at around a place."""

_ROOM = 16
"""Places for triangles in all cells of a grid, for each triangle."""

_EVEN, _LEAST = 1e-9, 1e-9
"""Of all heights, and of the least that counts as such (m), by which facets may be out of one plane without a ridge."""

_STEEP = -1e-9  # of a unit normal's z, from which on a triangle of a terrain does not look down

Corners = tuple[Vec, Vec, Vec]
"""Of a facet, counterclockwise seen from above."""


class Facet(NamedTuple):
    """A facet from a place that is the origin.

    Args:
        corners: of it.
        normal: that looks out of the ground.
        ridges: of the edges from each corner to the next, one for a ridge or an end of the ground, of one of the facets
            that it belongs to; else zero.
    """

    corners: Corners
    normal: Vec
    ridges: tuple[Scalar, Scalar, Scalar]

    @classmethod
    def of(cls, corners: Corners, ridges: tuple[Scalar, Scalar, Scalar]) -> Facet:
        """From its corners."""
        a, b, c = corners
        return cls(corners, direction((b - a).cross(c - a), Vec.unit(2)), ridges)

    def from_place(self, p: Vec) -> Facet:
        """The same from another place."""
        a, b, c = self.corners
        return Facet((a - p, b - p, c - p), self.normal, self.ridges)

    def is_over(self) -> Scalar:
        """Whether the place is over or under the facet, vertically."""
        sides = [p.x * q.y - p.y * q.x >= 0.0 for p, q in self.edges()]
        found: Scalar = sides[0] & sides[1] & sides[2] & (self.normal.z > 0.0)
        return found

    def edges(self) -> tuple[tuple[Vec, Vec], tuple[Vec, Vec], tuple[Vec, Vec]]:
        """Both ends of each edge, in order."""
        a, b, c = self.corners
        return (a, b), (b, c), (c, a)

    def level(self) -> Scalar:
        """Height of the facet's plane over the place."""
        up = where(self.normal.z > 0.0, self.normal.z, 1.0)
        found: Scalar = self.normal.dot(self.corners[0]) / up
        return found

    def nearest(self) -> tuple[Scalar, Vec]:
        """Distance of the place from the facet, and the unit vector from the facet's nearest point to the place.

        ``UNUSED_GAP`` where the place looks at the back of the facet.
        """
        height, within = -self.normal.dot(self.corners[0]), True
        best, away = UNUSED_GAP * UNUSED_GAP, self.normal
        for p, q in self.edges():
            edge = q - p
            within = within & (self.normal.dot(p.cross(q)) >= 0.0)
            to = -(p + edge * along_segment(Vec.zero(), p, edge))
            square = to.dot(to)
            nearer = square < best
            best, away = where(nearer, square, best), choose(nearer, to, away)
        n = choose(within, self.normal, direction(away, self.normal))
        return where(within, where(height < 0.0, UNUSED_GAP, height), n.dot(away)), n


def over_facets(
    b: Geometry,
    p: Vec,
    reach: float,
    step: Callable[[list[Scalar], Facet], tuple[list[Scalar], list[Scalar]]],
    state: Sequence[Scalar],
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """The numbers after ``state, made = step(state, facet)`` for all facets near a place, and what was made of each.

    Args:
        b: a heightfield or a terrain.
        p: the place in its frame, the origin of facets.
        reach: horizontally, m: what is nearer is among the facets, but for what is beyond ``MOST_ACROSS`` cells.
        step: of one facet.
        state: to begin with.
    """
    return (_over_cells if b.kind == "heightfield" else _over_triangles)(b, p, reach, step, list(state))


Step = Callable[[list[Scalar], Facet], tuple[list[Scalar], list[Scalar]]]


def _over_cells(
    b: Geometry, p: Vec, reach: float, step: Step, state: list[Scalar]
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Facets of the cells of a heightfield, which beyond its edges goes on at the height it has there."""
    numbers = (len(b.heights[0]), len(b.heights))
    sizes = [edge / (n - 1) for edge, n in zip(b.size, numbers, strict=True)]
    across = [min(MOST_ACROSS, math.ceil(2.0 * reach / d) + 1) for d in sizes]
    here, first = [], []
    for x, d, n, count in zip((p.x, p.y), sizes, numbers, across, strict=True):
        beyond = float(count)
        s = clip(x / d + 0.5 * (n - 1), -beyond, n - 1 + beyond)
        begin = s - min(reach / d, 0.5 * (count - 1))
        cells = RowTable((), n + 4 * count, 0, 0)
        here.append(s)
        first.append(cells.at(begin + 2.0 * beyond)[0] - 2.0 * beyond)
    nodes, ridges = _nodes(b.heights)

    def cell(state: list[Scalar], at: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        column, row = first[0] + at[0], first[1] + at[1]
        i, j = (clip(k + 1.0, 0.0, float(n)) for k, n in zip((column, row), numbers, strict=True))
        place = j * float(numbers[0] + 2) + i
        below, across, left = ridges.at(place)[1]
        low, high = nodes.at(place)[1], nodes.at(place + float(numbers[0] + 2))[1]
        x, y = (column - here[0]) * sizes[0], (row - here[1]) * sizes[1]
        corners = [
            Vec(x + u * sizes[0], y + v * sizes[1], z - p.z)
            for v, level in ((0.0, low), (1.0, high))
            for u, z in zip((0.0, 1.0), level, strict=True)
        ]
        made: list[Scalar] = []
        for three, own in (((0, 1, 3), (below, 0.0, across)), ((0, 3, 2), (0.0, 0.0, left))):
            a, c, e = (corners[k] for k in three)
            state, found = step(state, Facet.of((a, c, e), own))
            made += found
        return state, made

    places = [[float(i), float(j)] for j in range(across[1]) for i in range(across[0])]
    state, made = looped_over([Items.rows(places)], cell, state)
    half = len(made[0]) // 2
    return state, [row[k : k + half] for row in made for k in (0, half)] if half else []


@lru_cache(maxsize=16)
def _nodes(heights: tuple[tuple[float, ...], ...]) -> tuple[RowTable, RowTable]:
    """Heights of two nodes beside each other, and which edges of a cell are ridges: below, across and left.

    The outer nodes are there once more beyond the edges.
    """
    z = np.pad(np.array(heights, float), 2, mode="edge")
    a, b, c, d = z[1:-1, 1:-1], z[1:-1, 2:], z[2:, 1:-1], z[2:, 2:]
    rises = a + b - d - z[:-2, 1:-1], a + d - b - c, a + c - d - z[1:-1, :-2]
    ridges = np.stack(rises, axis=-1) > _EVEN * max(float(np.ptp(z)), _LEAST)
    numbers = a.ravel().tolist()
    return RowTable(numbers, len(numbers) - 1, 1, 2), RowTable(ridges.ravel().astype(float).tolist(), a.size, 3, 3)


def _over_triangles(
    b: Geometry, p: Vec, reach: float, step: Step, state: list[Scalar]
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """Facets of a terrain whose bounding rectangles are within reach of the place's cell of a grid."""
    grid = _grid(b.vertices, b.faces, reach)
    if grid is None:
        return state, []
    column, row = (
        numbers.at((x - start) / size)[0]
        for numbers, x, start, size in zip(grid.cells, (p.x, p.y), grid.corner, grid.size, strict=True)
    )
    places = grid.places.at(row * float(grid.cells[0].count) + column)[1]

    def triangle(state: list[Scalar], place: Sequence[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        face = grid.faces.at(place[0])[1]
        x, y, z = (Vec.of(face[k : k + 3]) - p for k in (0, 3, 6))
        return step(state, Facet((x, y, z), Vec.of(face[9:12]), (face[12], face[13], face[14])))

    return looped_over([Items(places, range(len(places)), 1)], triangle, state)


class _Grid(NamedTuple):
    """Triangles by the cells of a grid.

    Args:
        corner: where it begins, m.
        size: of a cell, m.
        cells: tables of the numbers of its columns and of its rows.
        places: of each cell the numbers of its triangles, and again the last.
        faces: of each triangle its corners, its normal and its ridges.
    """

    corner: tuple[float, float]
    size: tuple[float, float]
    cells: tuple[RowTable, RowTable]
    places: RowTable
    faces: RowTable


@lru_cache(maxsize=16)
def _grid(vertices: tuple[tuple[float, ...], ...], faces: tuple[tuple[int, ...], ...], reach: float) -> _Grid | None:
    """The grid of the triangles that do not look down, each in all cells that it reaches; None where there are none."""
    corners = np.array(vertices, float)[np.array(faces, int)]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    bears = (area > 0.0) & (normal[:, 2] >= _STEEP * area)
    corners, normal = corners[bears], normal[bears] / area[bears, None]
    count = len(corners)
    if not count:
        return None
    numbers = np.column_stack([corners.reshape(-1, 9), normal, _ridges(corners, normal)])
    low, high = corners[..., :2].min(axis=1), corners[..., :2].max(axis=1)
    corner, whole = low.min(axis=0), high.max(axis=0) - low.min(axis=0)
    side = max(1, math.isqrt(count // 2))
    while True:  # a coarser grid where some cells have so many triangles that there is hardly room for all
        size = np.maximum(whole, 1e-12) / side
        # Rectangles are a little larger than they are: in single precision a place is found in a neighbouring cell.
        first, last = (
            np.clip((edge - corner) / size, 0, side - 1).astype(int)
            for edge in (low - reach - 1e-6 * whole, high + reach + 1e-6 * whole)
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
        RowTable(numbers.ravel().tolist(), count, 15, 15),
    )


def _ridges(corners: FloatArray, normal: FloatArray) -> FloatArray:
    """Of the edges of each triangle, one for a ridge or an end of the ground, of the first that it belongs to."""
    _, names = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    names = names.reshape(-1, 3)
    edges = np.sort(np.stack([names, np.roll(names, -1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    _, first, name, times = np.unique(edges, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(name.ravel(), kind="stable")
    other = order[np.cumsum(times) - 1]  # the last triangle with an edge: itself at an end of the ground
    mine, its = first // 3, other // 3
    opposite = corners[its, (other + 2) % 3] - corners[mine, first % 3]
    size = np.abs(corners[mine] - corners[mine, :1]).max(axis=(1, 2))
    below = (opposite * normal[mine]).sum(axis=1) < -_EVEN * size
    found = np.zeros(names.size)
    found[first] = (times != 2) | below
    return found.reshape(-1, 3)


def check(b: Geometry) -> None:
    """Refuse a ground that cannot be looked up."""
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
