"""Structure, a finite-element model as the reduction sees it: matrices, nodes, and fields that can be sampled.

A source of flexible bodies is one subclass of `Structure`. Degrees of freedom (dofs) are whatever the elements use;
what a node does is a linear map of them, so that the reduction needs to know no element.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, UnknownNameError
from linkwise.flexible.integrals import Samples, SecondOrder

Indices = NDArray[np.intp]
NodeKey = Hashable
"""A node by its name (a string) or its number."""
Region: TypeAlias = Hashable | Iterable[Hashable]
"""One node or several."""
Matrix: TypeAlias = sparse.csr_array
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix


COMPONENTS = ("tx", "ty", "tz", "rx", "ry", "rz")
"""Components of a node's motion, in the order in which finite-element programs count 1 to 6."""


class Structure(ABC):
    """A free finite-element model.

    Args:
        positions: of the nodes, (n, 3).
        numbers: of the nodes, as the source counts them.
        names: nodes that have a name: name -> index.
        M: free mass matrix, sparse N×N.
        K: free stiffness matrix, sparse N×N.
        table: (n, 6): for each node the dofs of its displacements and rotations, -1 where it has none. A source whose
            nodes have other dofs too says of them what the three methods below say of these.
        file: where it was read from, for messages.
    """

    def __init__(
        self,
        positions: FloatArray,
        numbers: Sequence[int],
        names: Mapping[str, int],
        M: MatrixLike,
        K: MatrixLike,
        table: Indices,
        file: str | None = None,
    ) -> None:
        self.positions = np.asarray(positions, dtype=float)
        self.numbers = tuple(int(number) for number in numbers)
        self.names = dict(names)
        self.M = sparse.csr_array(M)
        self.K = sparse.csr_array(K)
        self.table, self.file = table, file
        self._index = {number: index for index, number in enumerate(self.numbers)}

    # ------------------------------------------------------------------------------------------------ of each source

    def rigid(self, origin: FloatArray) -> FloatArray:
        """Values (N, 6) of the dofs in the six rigid motions [ω; v] about a point: v + ω×r, and ω."""
        nodal = np.zeros((len(self.positions), 6, 6))
        nodal[:, :3, :3] = -cross_matrix(self.positions - origin)
        nodal[:, :3, 3:] = nodal[:, 3:, :3] = np.eye(3)
        values = np.zeros((self.size, 6))
        has = self.table >= 0
        values[self.table[has]] = nodal[has]
        return values

    def tied(self, nodes: Indices) -> Indices:
        """The dofs that a rigid piece made of these nodes would move."""
        dofs: Indices = self.table[nodes].ravel()
        return dofs[dofs >= 0]

    def displacement_dofs(self, node: int) -> Indices:
        """The dofs of a node's displacement along x, y and z, -1 where it has none."""
        found: Indices = self.table[node, :3]
        return found

    @abstractmethod
    def samples(self, shapes: FloatArray, second: FloatArray | None) -> Samples:
        """The points over which mass is integrated, with the modes' fields; positions in the source's frame.

        Args:
            shapes: dofs of the modes, (N, m).
            second: dofs of the second-order fields by pairs, (N, m (m + 1) / 2), as `stretching` asks for them.
        """

    @property
    def samples_are_exact(self) -> bool:
        """Whether integrals over the samples are those of the mass matrix."""
        return True

    def stretching(self, shapes: FloatArray) -> FloatArray | None:
        """Forces b of the second-order strain: b_ij·w = ∫ σ(w) : ½(∇φ_i*∇φ_j + ∇φ_j*∇φ_i) dV by pairs, (N, pairs).

        The second-order field q_ij that leaves no stress is -K⁻¹ b_ij with the root held; equivalently,
        F·q_ij = -φ_i*K_G(F)φ_j with K_G the geometric stiffness under the load F. None where the source cannot tell.
        """
        return None

    def given_second_order(self, shapes: FloatArray) -> tuple[SecondOrder, Mapping[NodeKey, FloatArray]] | None:
        """Integrals of Q, and Q at nodes, where they are known from elsewhere than `stretching`."""
        return None

    # ------------------------------------------------------------------------------------------------------- of all

    @property
    def size(self) -> int:
        """The number N of dofs."""
        return int(self.K.shape[0])

    def index(self, key: NodeKey) -> int:
        """The index of a node, found by name or number."""
        if isinstance(key, str):
            if key in self.names:
                return self.names[key]
        elif isinstance(key, (int, np.integer)) and int(key) in self._index:
            return self._index[int(key)]
        known = [*map(repr, self.names), *self.numbers[:12]]
        raise UnknownNameError("node", key, known, do="nodes are found by name, or by the number of their source")

    def region(self, nodes: Any) -> Indices:
        """The indices of one node or of several."""
        if isinstance(nodes, (str, int, np.integer)):
            return np.array([self.index(nodes)], dtype=np.intp)
        if not isinstance(nodes, Iterable):
            raise InputError("this is no node", got=repr(nodes), allowed="a name, a number, or several of them")
        found = np.unique([self.index(each if isinstance(each, str) else int(each)) for each in nodes]).astype(np.intp)
        if not len(found):
            raise InputError("a region of nodes is empty", got=repr(nodes), allowed="one node or more")
        return found

    def label(self, index: int) -> str:
        """Name of a node in messages."""
        named = [name for name, each in self.names.items() if each == index]
        number = f"node {self.numbers[index]}"
        return f"{number} ({named[0]!r})" if named else number

    def motion_rows(self, nodes: Indices, origin: FloatArray) -> Matrix:
        """The map (6×N) from dofs to the motion [rotation; displacement] of a region, seen at a point.

        For a node with six dofs it picks them; for a region of several nodes it is their mean rigid motion (least
        squares).
        """
        nodes = self._with_neighbours(nodes)
        dofs = self.tied(nodes)
        rigid = self.rigid(origin)[dofs]
        # Rotations and displacements weigh alike when lengths are measured in the region's own size.
        size = np.abs(self.positions[nodes] - origin).max() or 1.0
        column_scale = np.array([1 / size] * 3 + [1.0] * 3)
        row_scale = np.where(np.abs(rigid[:, 3:]).max(axis=1) > 0, 1.0, size)
        scaled = row_scale[:, None] * rigid * column_scale
        if np.linalg.matrix_rank(scaled, tol=1e-9) < 6:
            raise InputError(
                "the rotation of a region of nodes cannot be told",
                got=", ".join(self.label(int(i)) for i in nodes[:6]),
                allowed="nodes with rotations, or three and more not on a line",
                do="name a region of several nodes instead",
            )
        rows = column_scale[:, None] * np.linalg.pinv(scaled) * row_scale
        rows[np.abs(rows) < 1e-14 * np.abs(rows).max(axis=1, keepdims=True)] = 0.0
        columns = np.tile(dofs, 6)
        entries = (rows.ravel(), (np.repeat(np.arange(6), len(dofs)), columns))
        return sparse.csr_array(entries, shape=(6, self.size))

    def _with_neighbours(self, nodes: Indices) -> Indices:
        """The region itself; sources whose nodes cannot turn add the nodes around a lonely one."""
        return nodes


def assembled(blocks: FloatArray, dofs: Indices, size: int) -> Matrix:
    """The matrix (size, size) of elements' blocks (e, d, d), each at its dofs (e, d)."""
    rows = np.broadcast_to(dofs[:, :, None], blocks.shape)
    columns = np.broadcast_to(dofs[:, None, :], blocks.shape)
    return sparse.csr_array((blocks.ravel(), (rows.ravel(), columns.ravel())), shape=(size, size))


def vector_of(skew: FloatArray) -> FloatArray:
    """The vector x of a matrix x~ (3, 3), of which only the antisymmetric part counts."""
    return 0.5 * np.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]])


def cross_matrix(vectors: FloatArray) -> FloatArray:
    """x~ of vectors of shape (..., 3)."""
    x, y, z = np.moveaxis(np.asarray(vectors, dtype=float), -1, 0)
    zero = np.zeros_like(x)
    rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
