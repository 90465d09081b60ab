"""A model known by its matrices and nodes alone, as other programs hand it over.

Mass integrals. Where every node has three displacements and M = W ⊗ 1 (solid elements), ∫f g dm = f*Wg is exact.
Where nodes turn as well but M couples no two of them (lumped masses, with offsets and moments of inertia), each is a
rigid piece: exact too. Where M couples nodes that turn (consistent mass of beams and shells) it does not tell how the
mass lies between them; then what needs no more than M is taken from it (all integrals without η), and those of first
and second order in η from the masses lumped at the nodes, with an error that falls as the square of the elements'
size. Of all sources this is the only one whose mass matrix may lose its definiteness at large deflections: where that
counts, write a lumped mass matrix.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from linkwise.array_types import Array, FloatArray
from linkwise.errors import InputError, ModelError, ModelFileError, UnknownNameError
from linkwise.flexible.integrals import Samples, SecondOrder
from linkwise.flexible.structure import Indices, Matrix, MatrixLike, NodeKey, Structure, cross_matrix, vector_of
from linkwise.memoized import cached_property

_AXES = "xyz"
Nodes = Sequence[ArrayLike] | Array | Mapping[NodeKey, ArrayLike]
"""Positions, numbered from 0, or by the name or number of each node."""
Loads = Mapping[Any, MatrixLike]
"""Geometric stiffness matrices by their loads, as `FlexibleBody.from_arrays` has them."""


class NodalStructure(Structure):
    """Nodes with up to six dofs each.

    Args:
        positions: (n, 3).
        numbers: of the nodes.
        names: name -> index.
        M: N×N.
        K: N×N.
        table: (n, 6): the row of each node's dofs, -1 where it has none.
        K_geo: as in `FlexibleBody.from_arrays`.
        file: where it was read from.
    """

    def __init__(
        self,
        positions: FloatArray,
        numbers: Sequence[int],
        names: Mapping[str, int],
        M: MatrixLike,
        K: MatrixLike,
        table: Indices,
        K_geo: Loads | None = None,
        file: str | None = None,
    ) -> None:
        super().__init__(positions, numbers, names, M, K, table, file)
        self._K_geo = self._checked_geometric(K_geo)

    @property
    def samples_are_exact(self) -> bool:
        """Whether M is that of an interpolation or of lumped masses."""
        return self._interpolation is not None or self._is_lumped

    def samples(self, shapes: FloatArray, second: FloatArray | None) -> Samples:
        """Nodes, with the mass matrix of the interpolation as weight where there is one, lumped masses elsewhere."""
        if self._interpolation is not None:
            return Samples(self.positions, self._displacements(shapes), None, self._interpolation)
        masses = self._lumped()
        position, G, mass = self.positions, self._displacements(shapes), masses
        extra = self._lumped_inertias(shapes, masses)
        if extra is not None:
            used, position_e, G_e, mass_e = extra
            position = np.concatenate([position[~used], position_e])
            G = np.concatenate([G[~used], G_e])
            mass = np.concatenate([mass[~used], mass_e])
        return Samples(position, G, None, mass)

    def given_second_order(self, shapes: FloatArray) -> tuple[SecondOrder, Mapping[NodeKey, FloatArray]] | None:
        """∫Q_a dm = -Φ*K_geo[a]Φ, ∫x_aQ_b dm = -Φ*K_geo[ab]Φ, and at nodes: the work of each unit load through Q."""
        if self._K_geo is None:
            return None
        m = shapes.shape[1]
        mean, moment = np.zeros((3, m, m)), np.zeros((3, 3, m, m))
        at: dict[NodeKey, FloatArray] = {}
        for key, matrix in self._K_geo.items():
            work = -(shapes.T @ (matrix @ shapes))
            work = 0.5 * (work + work.T)
            if isinstance(key, tuple):
                at.setdefault(key[0], np.zeros((3, m, m)))[_AXES.index(key[1])] = work
            elif len(key) == 1:
                mean[_AXES.index(key)] = work
            else:
                moment[_AXES.index(key[0]), _AXES.index(key[1])] = work
        return SecondOrder(mean, moment), at

    def _checked_geometric(self, given: Loads | None) -> dict[Any, Matrix] | None:
        if not given:
            return None
        known = [*_AXES, *(a + b for a in _AXES for b in _AXES)]
        matrices = {}
        for key, matrix in given.items():
            of_node = isinstance(key, tuple) and len(key) == 2 and key[1] in tuple(_AXES)
            if of_node:
                self.index(key[0])
            elif key not in known:
                raise UnknownNameError("load of a geometric stiffness", key, [*known, '(node, "x")', "…"])
            matrices[key] = _square(matrix, f"K_geo[{key!r}]", self.size, self.file)
        return matrices

    def _displacements(self, shapes: FloatArray) -> FloatArray:
        padded = np.vstack([shapes, np.zeros((1, shapes.shape[1]))])
        return padded[self.table[:, :3]]

    @cached_property
    def _interpolation(self) -> Matrix | None:
        """W where M = W ⊗ 1 on displacements and nothing turns; None elsewhere."""
        if (self.table[:, 3:] >= 0).any() or (self.table[:, :3] < 0).any():
            return None
        x, y, z = (self.table[:, a] for a in range(3))
        W = self.M[x][:, x]
        scale = float(np.abs(W.diagonal()).max())
        for rows, columns, expected in ((y, y, W), (z, z, W), (x, y, None), (y, z, None), (x, z, None)):
            part = self.M[rows][:, columns]
            off = part if expected is None else part - expected
            if off.nnz and np.abs(off.data).max() > 1e-9 * scale:
                return None
        return W

    @cached_property
    def _is_lumped(self) -> bool:
        """Whether M couples no two nodes."""
        owner = np.full(self.size, -1)
        for a in range(6):
            rows = self.table[:, a]
            owner[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
        entries = self.M.tocoo()
        return not bool((owner[entries.row] != owner[entries.col]).any())

    def _lumped(self) -> FloatArray:
        """Masses at nodes: row sums of M over displacements, or where one is negative, shares by the diagonal."""
        ones = np.zeros((self.size, 3))
        for a in range(3):
            rows = self.table[:, a]
            ones[rows[rows >= 0], a] = 1.0
        product = self.M @ ones
        diagonal = self.M.diagonal()
        sums, shares = np.zeros((len(self.positions), 3)), np.zeros((len(self.positions), 3))
        for a in range(3):
            rows = self.table[:, a]
            has = rows >= 0
            sums[has, a] = product[rows[has], a]
            shares[has, a] = diagonal[rows[has]]
        total = sums.sum(axis=0)
        if (sums < -1e-12 * total).any():
            sums = shares * (total / np.maximum(shares.sum(axis=0), np.finfo(float).tiny))
        return np.asarray(np.maximum(sums.mean(axis=1), 0.0))

    def _lumped_inertias(
        self, shapes: FloatArray, masses: FloatArray
    ) -> tuple[NDArray[np.bool_], FloatArray, FloatArray, FloatArray] | None:
        """Nodes with offset masses or moments of inertia of their own, as six particles that turn with them."""
        if not self._is_lumped:
            return None
        used = np.zeros(len(masses), dtype=bool)
        positions, fields, weights = [], [], []
        displacement = self._displacements(shapes)
        for node in np.flatnonzero((self.table[:, 3:] >= 0).all(axis=1) & (masses > 0)):
            rows = self.table[node]
            block = self.M[rows][:, rows].toarray()
            if not np.abs(block[3:, 3:]).max() > 1e-14 * masses[node]:
                continue
            lever = block[3:, :3] / masses[node]  # c~ of the mass centre
            c = vector_of(lever)
            J = block[3:, 3:] - masses[node] * (c @ c * np.eye(3) - np.outer(c, c))
            spread, axes = np.linalg.eigh(0.5 * np.trace(J) * np.eye(3) - J)
            radius = np.sqrt(3 * np.maximum(spread, 0.0) / masses[node])
            offsets = c + np.concatenate([(axes * radius).T, -(axes * radius).T])
            turn = shapes[rows[3:]]
            used[node] = True
            positions.append(self.positions[node] + offsets)
            fields.append(displacement[node] - cross_matrix(offsets) @ turn)
            weights.append(np.full(6, masses[node] / 6))
        if not used.any():
            return None
        return used, np.concatenate(positions), np.concatenate(fields), np.concatenate(weights)

    def _with_neighbours(self, nodes: Indices) -> Indices:
        """A node that cannot turn is seen with those that its stiffness touches."""
        if len(nodes) > 1 or (self.table[nodes, 3:] >= 0).all():
            return nodes
        touched = np.unique(self.K[self.tied(nodes)].indices)
        return np.flatnonzero(np.isin(self.table, touched).any(axis=1))


def nodal_structure(
    nodes: Nodes,
    M: MatrixLike,
    K: MatrixLike,
    *,
    dofs: Sequence[tuple[NodeKey, int]] | None = None,
    K_geo: Loads | None = None,
    file: str | None = None,
) -> NodalStructure:
    """Arrays as users have them, checked for shape."""
    positions, numbers, names = _nodes(nodes, file)
    stiffness = _square(K, "K", None, file)
    size = stiffness.shape[0]
    mass = _square(M, "M", size, file)
    table = _table(dofs, len(positions), numbers, names, size, file)
    return NodalStructure(positions, numbers, names, mass, stiffness, table, K_geo, file)


def _nodes(nodes: Nodes, file: str | None) -> tuple[FloatArray, list[int], dict[str, int]]:
    keys: list[Hashable] = list(nodes) if isinstance(nodes, Mapping) else list(range(len(nodes)))
    try:
        values = [nodes[key] for key in keys] if isinstance(nodes, Mapping) else nodes
        positions = np.array(values, dtype=float)
    except (TypeError, ValueError):
        positions = np.empty(0)
    if positions.shape != (len(keys), 3) or not len(keys):
        raise _error(
            file, "the nodes are not points", got=f"an array {positions.shape}", allowed="(n, 3), or name: (x, y, z)"
        )
    if not np.isfinite(positions).all():
        bad = keys[int(np.flatnonzero(~np.isfinite(positions).all(axis=1))[0])]
        raise _error(file, "a node is not at a finite place", got=f"node {bad!r}", allowed="finite coordinates")
    names = {key: k for k, key in enumerate(keys) if isinstance(key, str)}
    taken = {int(key) for key in keys if isinstance(key, (int, np.integer))}
    free = (k for k in range(len(keys) + len(taken)) if k not in taken)
    numbers = [int(key) if isinstance(key, (int, np.integer)) else next(free) for key in keys]
    return positions, numbers, names


def _square(matrix: Any, name: str, size: int | None, file: str | None) -> Matrix:
    try:
        if np.iscomplexobj(matrix):
            raise TypeError
        if sparse.issparse(matrix):
            square = sparse.csr_array(matrix.astype(float))
        else:
            square = sparse.csr_array(np.atleast_2d(np.asarray(matrix, dtype=float)))
    except (TypeError, ValueError):
        raise _error(file, f"{name} is not a matrix of real numbers", got=type(matrix).__name__) from None
    n = square.shape[0]
    if square.shape != (n, n) or (size is not None and n != size):
        allowed = "square" if size is None else f"({size}, {size}), as K"
        raise _error(file, f"{name} has the wrong shape", got=str(square.shape), allowed=allowed)
    if not np.isfinite(square.data).all():
        entry = square.tocoo()
        k = int(np.flatnonzero(~np.isfinite(entry.data))[0])
        raise _error(
            file, f"{name} is not finite", got=f"{entry.data[k]} in row {entry.row[k]}, column {entry.col[k]} (from 0)"
        )
    square.eliminate_zeros()
    return square


def _table(
    dofs: Sequence[tuple[NodeKey, int]] | None,
    n: int,
    numbers: Sequence[int],
    names: Mapping[str, int],
    size: int,
    file: str | None,
) -> Indices:
    table = np.full((n, 6), -1, dtype=np.intp)
    if dofs is None:
        if size not in (3 * n, 6 * n):
            raise _error(
                file,
                "the matrices do not fit the nodes",
                got=f"{size} rows for {n} nodes",
                allowed=f"{3 * n} (displacements) or {6 * n} (with rotations)",
                do="say with dofs=[(node, component), …] what the rows are; or nodes are missing",
            )
        per_node = size // n
        table[:, :per_node] = np.arange(size).reshape(n, per_node)
        return table
    if len(dofs) != size:
        raise _error(file, "dofs does not name every row", got=f"{len(dofs)} for {size} rows", allowed=f"{size} pairs")
    index: dict[NodeKey, int] = {number: k for k, number in enumerate(numbers)}
    index.update(names)
    for row, (node, component) in enumerate(dofs):
        key = int(node) if isinstance(node, np.integer) else node
        if key not in index:
            raise _error(
                file,
                "a row of the matrices belongs to a node that is missing",
                got=f"row {row} (from 0): node {key!r}, component {component}",
                do="add the node's position",
            )
        if int(component) not in range(1, 7):
            raise _error(
                file, "a component is not one of a node's six", got=f"{component!r} at node {key!r}", allowed="1 to 6"
            )
        if table[index[key], int(component) - 1] >= 0:
            raise _error(file, "two rows of the matrices are the same dof", got=f"node {key!r}, component {component}")
        table[index[key], int(component) - 1] = row
    return table


def _error(file: str | None, what: str, **parts: Any) -> Exception:
    if file is not None:
        return ModelFileError(what, file=file, **parts)
    return (
        InputError(what, **parts) if "shape" in what or "fit" in what or "dofs" in what else ModelError(what, **parts)
    )
