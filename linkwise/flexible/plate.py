"""Rectangular plates: the element of Bogner, Fox and Schmit (1965), for bending and for the plate's own plane.

u, v and w are products of Hermite's cubics along x and y, with the dofs f, f_x, f_y and f_xy of each at every node. The
field is smooth (C¹) as Kirchhoff's theory wants it, so the element is conforming: frequencies converge from above, as
h⁴ where the solution is smooth. Everything but the second-order strain is a Kronecker product of matrices of one
dimension.

Mass is consistent, with the rotary inertia ρt³/12. In the plane: plane stress. Second order: the membrane strain
½∇w∇w* of a deflection, which the plate's plane gives way to (von Kármán): the foreshortening of a beam, for plates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.errors import InputError
from linkwise.flexible.integrals import Samples, pairs
from linkwise.flexible.section import poisson, positive
from linkwise.flexible.structure import Indices, Matrix, Structure

# Four points integrate products of two cubics; six those of the second-order strain (fourth powers times squares).
_MASS_POINTS, _STRAIN_POINTS = 4, 6


class PlateStructure(Structure):
    """A rectangular plate 0 <= x <= length, |y| <= width/2. Dof of node k: 12 k + 4 (u, v, w) + (f, f_x, f_y, f_xy)."""

    def __init__(
        self,
        length: float,
        width: float,
        thickness: float,
        E: float,
        nu: float,
        density: float,
        elements: tuple[int, int],
    ) -> None:
        sizes = {"length": length, "width": width, "thickness": thickness, "E": E, "density": density}
        for name, value in sizes.items():
            positive(value, f"the {name} of a plate")
        poisson(nu)
        try:
            nx, ny = (int(each) for each in elements)
        except (TypeError, ValueError):
            nx = ny = 0
        if not (1 <= nx <= 200 and 1 <= ny <= 200):
            raise InputError(
                "elements of a plate are two numbers", got=repr(elements), allowed="1 to 200 along x and y"
            )
        self._shape = (nx + 1, ny + 1)
        self._grid = (np.linspace(0, length, nx + 1), np.linspace(-width / 2, width / 2, ny + 1))
        self._thickness, self._density = float(thickness), float(density)
        self._membrane = E * thickness / (1 - nu**2) * np.array([[1, nu, 0], [nu, 1, 0], [0, 0, (1 - nu) / 2]])
        X = [_line_matrices(self._grid[0]), _line_matrices(self._grid[1])]
        place = self._places()

        def product(a: int, b: int, c: int, d: int) -> Matrix:
            """∫ ∂x^a ∂y^c f · ∂x^b ∂y^d g over the plate, in the order of `place`."""
            full = sparse.kron(X[0][a, b], X[1][c, d], format="csr")
            return sparse.csr_array(full[place][:, place])

        D = E * thickness**3 / (12 * (1 - nu**2))
        bending = product(2, 2, 0, 0) + product(0, 0, 2, 2) + nu * (product(2, 0, 0, 2) + product(0, 2, 2, 0))
        bending = D * (bending + 2 * (1 - nu) * product(1, 1, 1, 1))
        C, G = self._membrane[0, 0], self._membrane[2, 2]
        along_x, along_y, mixed = product(1, 1, 0, 0), product(0, 0, 1, 1), product(1, 0, 0, 1)
        K = [
            [C * along_x + G * along_y, C * nu * mixed + G * mixed.T, None],
            [C * nu * mixed.T + G * mixed, C * along_y + G * along_x, None],
            [None, None, bending],
        ]
        flat = product(0, 0, 0, 0) * (density * thickness)
        M = [
            [flat, None, None],
            [None, flat, None],
            [None, None, flat + density * thickness**3 / 12 * (along_x + along_y)],
        ]
        nodes = self._shape[0] * self._shape[1]
        # From (field, node, derivative) to (node, field, derivative).
        order = np.arange(12 * nodes).reshape(3, nodes, 4).transpose(1, 0, 2).ravel()
        stack = [sparse.csr_array(sparse.block_array(blocks, format="csr"))[order][:, order] for blocks in (M, K)]
        y, x = np.meshgrid(self._grid[1], self._grid[0])
        positions = np.stack([x.ravel(), y.ravel(), np.zeros(nodes)], axis=1)
        last = nodes - 1
        names = {"left": last, "right": last - ny}
        if ny % 2 == 0:
            names = {"tip": last - ny // 2, **names}
        table = np.full((nodes, 6), -1)
        table[:, :3] = 12 * np.arange(nodes)[:, None] + (0, 4, 8)  # u, v and w
        super().__init__(positions, range(nodes), names, stack[0], stack[1], table)

    def _places(self) -> Indices:
        """Places of node k's four dofs f, f_x, f_y, f_xy in the Kronecker product of (value, slope) along x and y."""
        nx, ny = self._shape
        i, j = np.meshgrid(np.arange(nx), np.arange(ny), indexing="ij")
        at = [(2 * i + a) * 2 * ny + 2 * j + b for a, b in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return np.stack(at, axis=-1).reshape(-1)

    def at(self, point: Sequence[float]) -> int:
        """The node at a point (x, y) of the grid."""
        try:
            x, y = (float(each) for each in point)
        except (TypeError, ValueError):
            raise InputError("a point of a plate is two numbers", got=repr(point), allowed="(x, y)") from None
        i, j = int(np.abs(self._grid[0] - x).argmin()), int(np.abs(self._grid[1] - y).argmin())
        size = max(self._grid[0][1], np.ptp(self._grid[1][:2]))
        if math.hypot(self._grid[0][i] - x, self._grid[1][j] - y) > 1e-6 * size:
            nearest = f"({self._grid[0][i]:.6g}, {self._grid[1][j]:.6g})"
            raise InputError(
                "there is no node of the plate at this point", got=repr(point), allowed=f"nearest: {nearest}"
            )
        return i * self._shape[1] + j

    def edge(self) -> list[int]:
        """The nodes of the edge x = 0."""
        return list(range(self._shape[1]))

    def rigid(self, origin: FloatArray) -> FloatArray:
        """U = v_x - ω_z(y - y₀) - ω_y z₀, and so on, with the slopes that go with it; w_x = -ω_y, w_y = ω_x."""
        r = self.positions - origin
        values = np.zeros((len(r), 3, 4, 6))
        x, y, z = r.T
        values[:, 0, 0, 1], values[:, 0, 0, 2] = z, -y
        values[:, 1, 0, 0], values[:, 1, 0, 2] = -z, x
        values[:, 2, 0, 0], values[:, 2, 0, 1] = y, -x
        values[:, [0, 1, 2], 0, [3, 4, 5]] = 1.0
        values[:, 0, 2, 2], values[:, 1, 1, 2] = -1.0, 1.0  # u_y, v_x
        values[:, 2, 2, 0], values[:, 2, 1, 1] = 1.0, -1.0  # w_y, w_x
        return values.reshape(-1, 6)

    def tied(self, nodes: Indices) -> Indices:
        """Displacements and slopes of w, displacements and slopes in the plane.

        A tied edge neither bends nor stretches, but strain across it stays free; a tied area cannot deform at all; a
        single node is a small spot that moves and turns.
        """
        across_x, across_y = np.ptp(self.positions[nodes, :2], axis=0) > 0
        if len(nodes) == 1:
            offsets = [0, 2, 4, 5, 8, 9, 10]
        elif across_x and across_y:
            offsets = list(range(12))
        elif across_y:
            offsets = [0, 2, 4, 6, 8, 9, 10, 11]
        else:
            offsets = [0, 1, 4, 5, 8, 9, 10, 11]
        dofs: Indices = (12 * nodes[:, None] + np.array(offsets)).ravel()
        return dofs

    def stretching(self, shapes: FloatArray) -> FloatArray:
        """∫ N(u) : ½(∇w_i∇w_j* + ∇w_j∇w_i*) dA: forces on u and v."""
        values = self._at_points(_STRAIN_POINTS)
        i, j = pairs(shapes.shape[1])
        w = shapes.reshape(-1, 3, 4, shapes.shape[1])[:, 2].reshape(-1, shapes.shape[1])
        w_x, w_y = values.dx @ w, values.dy @ w
        strain = np.stack([w_x[:, i] * w_x[:, j], w_y[:, i] * w_y[:, j], w_x[:, i] * w_y[:, j] + w_y[:, i] * w_x[:, j]])
        N = values.weight[:, None] * np.einsum("ab,bnp->anp", self._membrane, strain)
        forces = np.zeros((len(self.positions), 3, 4, len(i)))
        forces[:, 0] = (values.dx.T @ N[0] + values.dy.T @ N[2]).reshape(-1, 4, len(i))
        forces[:, 1] = (values.dy.T @ N[1] + values.dx.T @ N[2]).reshape(-1, 4, len(i))
        return forces.reshape(-1, len(i))

    def samples(self, shapes: FloatArray, second: FloatArray | None) -> Samples:
        """Quadrature points, two through the thickness at ±t/√12, which turn with the normal."""
        values = self._at_points(_MASS_POINTS)
        z = self._thickness / math.sqrt(12)

        def fields(dofs: FloatArray) -> tuple[FloatArray, FloatArray]:
            k = dofs.shape[1]
            u, v, w = (dofs.reshape(-1, 3, 4, k)[:, a].reshape(-1, k) for a in range(3))
            middle = np.stack([values.at @ u, values.at @ v, values.at @ w], axis=1)
            return middle, np.stack([values.dx @ w, values.dy @ w], axis=1)

        G, slope = fields(shapes)
        lean = np.concatenate([-slope, np.zeros_like(slope[:, :1])], axis=1)
        position = np.column_stack([values.x, values.y, np.zeros(len(values.x))])
        up = np.array([0.0, 0.0, z])
        Q = None
        if second is not None:
            i, j = pairs(shapes.shape[1])
            middle, slope_2 = fields(second)
            # The normal keeps its length: its end sinks by ½|∇w|² of the half thickness.
            sink = -(slope[:, 0, i] * slope[:, 0, j] + slope[:, 1, i] * slope[:, 1, j])
            tilt = np.concatenate([-slope_2, sink[:, None]], axis=1)
            Q = np.concatenate([middle + z * tilt, middle - z * tilt])
        weight = 0.5 * self._density * self._thickness * values.weight
        return Samples(
            position=np.concatenate([position + up, position - up]),
            shapes=np.concatenate([G + z * lean, G - z * lean]),
            second=Q,
            weight=np.concatenate([weight, weight]),
        )

    def motion_rows(self, nodes: Indices, origin: FloatArray) -> Matrix:
        """Displacement of a node, and its rotation (w_y, -w_x, ½(v_x - u_y)); of a region, its mean rigid motion."""
        if len(nodes) > 1:
            return super().motion_rows(nodes, origin)
        first = 12 * int(nodes[0])
        entries = [(0, 10, 1.0), (1, 9, -1.0), (2, 5, 0.5), (2, 2, -0.5), (3, 0, 1.0), (4, 4, 1.0), (5, 8, 1.0)]
        rows, columns, values = zip(*entries, strict=True)
        return sparse.csr_array((values, (rows, first + np.array(columns))), shape=(6, self.size))

    def _at_points(self, count: int) -> _PointValues:
        """A scalar field of the plate at quadrature points of every element."""
        along = [_line_values(grid, count) for grid in self._grid]
        place = self._places()

        def both(a: int, b: int) -> Matrix:
            return sparse.csr_array(
                sparse.kron(along[0].derivatives[a], along[1].derivatives[b], format="csr")[:, place]
            )

        x, y = along[0].at, along[1].at
        return _PointValues(
            x=np.repeat(x, len(y)),
            y=np.tile(y, len(x)),
            weight=np.outer(along[0].weight, along[1].weight).ravel(),
            at=both(0, 0),
            dx=both(1, 0),
            dy=both(0, 1),
        )


class _PointValues(NamedTuple):
    """Quadrature points of the plate, their weights, and sparse maps from the dofs of f to f, f_x and f_y there."""

    x: FloatArray
    y: FloatArray
    weight: FloatArray
    at: Matrix
    dx: Matrix
    dy: Matrix


class _LineValues(NamedTuple):
    """Hermite's cubics on a line: sparse maps from (value, slope) at the nodes to f, f', f'' at quadrature points."""

    at: FloatArray
    weight: FloatArray
    derivatives: list[Matrix]


def _line_values(grid: FloatArray, count: int) -> _LineValues:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    s, h = (nodes + 1) / 2, float(grid[1] - grid[0])
    cubics = [np.polynomial.Polynomial(c) for c in ([1, 0, -3, 2], [0, h, -2 * h, h], [0, 0, 3, -2], [0, 0, -h, h])]
    elements = len(grid) - 1
    rows = np.repeat(np.arange(elements * count).reshape(elements, count, 1), 4, axis=2)
    columns = np.broadcast_to(2 * np.arange(elements)[:, None, None] + np.arange(4), rows.shape)
    maps = []
    for order in range(3):
        values = np.stack([cubic.deriv(order)(s) if order else cubic(s) for cubic in cubics], axis=1) / h**order
        entries = np.broadcast_to(values, rows.shape)
        shape = (elements * count, 2 * len(grid))
        maps.append(sparse.csr_array((entries.ravel(), (rows.ravel(), columns.ravel())), shape=shape))
    at = (grid[:-1, None] + h * s).ravel()
    return _LineValues(at, np.tile(h * weights / 2, elements), maps)


def _line_matrices(grid: FloatArray) -> dict[tuple[int, int], Matrix]:
    """∫ f^(a) g^(b) dx for derivatives up to the second."""
    line = _line_values(grid, 4)
    weight = sparse.diags_array(line.weight)
    return {(a, b): line.derivatives[a].T @ weight @ line.derivatives[b] for a in range(3) for b in range(3)}
