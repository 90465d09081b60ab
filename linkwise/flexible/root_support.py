"""The root held, regions tied: the dofs that stay when a body hangs from its root node.

d = T c: every dof of the model follows from the free ones and from the six motions [rotation; displacement] of each
rigidly tied region. The root's six motions are the body's V and are not among c, except for a free body.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.errors import InputError
from linkwise.flexible.integrals import pairs
from linkwise.flexible.solving import SymmetricFactor
from linkwise.flexible.structure import Indices, NodeKey, Structure, cross_matrix
from linkwise.memoized import cached_property

__all__ = ["KeptNode", "Support", "kept_nodes"]


class KeptNode:
    """A node of the body: one node of the model, or a region of several that is seen as one.

    Args:
        key: its name or number.
        nodes: the nodes of the model.
        position: where it is.
    """

    def __init__(self, structure: Structure, key: NodeKey, nodes: Any, position: Any = None) -> None:
        self.key = key
        self.nodes: Indices = structure.region(nodes)
        centre = structure.positions[self.nodes].mean(axis=0)
        self.position: FloatArray = centre if position is None else np.asarray(position, dtype=float)


def kept_nodes(structure: Structure, given: Any, what: str) -> list[KeptNode]:
    """Places from one node, several, or a mapping of names to nodes or regions."""
    if isinstance(given, Mapping):
        return [KeptNode(structure, name, nodes) for name, nodes in given.items()]
    if given is None:
        return []
    if isinstance(given, (str, int, np.integer)):
        given = [given]
    try:
        keys = list(given)
    except TypeError:
        raise InputError(
            f"{what} are not nodes", got=repr(given), allowed="names or numbers, or a mapping of names to them"
        ) from None
    return [KeptNode(structure, key, key) for key in keys]


class Support:
    """The model held at its root, with tied regions.

    Args:
        structure: the free model.
        root: where it is held.
        tied: regions that move as rigid pieces.
        kept: further places that have a name here.
        free: whether the root's motion stays among c (its last six).
    """

    def __init__(
        self,
        structure: Structure,
        root: KeptNode,
        tied: list[KeptNode],
        kept: Sequence[KeptNode] = (),
        *,
        free: bool = False,
    ) -> None:
        self.structure, self.root, self.tied = structure, root, tied
        self._named = {place.key: place for place in (*kept, *tied)}
        size = structure.size
        owner = np.full(size, -1)
        regions = [*tied, root]
        for k, place in enumerate(regions):
            dofs = structure.tied(place.nodes)
            if (owner[dofs] >= 0).any():
                other = regions[int(owner[dofs].max())]
                raise InputError(
                    "two tied regions share nodes", got=f"{place.key!r} and {other.key!r}", allowed="regions apart"
                )
            owner[dofs] = k
            if np.linalg.matrix_rank(structure.rigid(place.position)[dofs], tol=1e-9) < 6:
                raise InputError(
                    f"{place.key!r} cannot hold a body: its nodes do not fix a rotation",
                    got=", ".join(structure.label(int(i)) for i in place.nodes[:6]),
                    allowed="a node with rotations, or three and more nodes not on a line",
                    do="give a region of nodes",
                )
        self.inner = np.flatnonzero(owner < 0)
        rows, columns, values = [self.inner], [np.arange(len(self.inner))], [np.ones(len(self.inner))]
        at = len(self.inner)
        for k, place in enumerate(regions if free else tied):
            dofs = np.flatnonzero(owner == k)
            block = structure.rigid(place.position)[dofs]
            rows.append(np.repeat(dofs, 6))
            columns.append(np.tile(np.arange(at, at + 6), len(dofs)))
            values.append(block.ravel())
            at += 6
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        self.T = sparse.csr_array(entries, shape=(size, at))
        self.T.eliminate_zeros()
        self.K = sparse.csr_array(self.T.T @ structure.K @ self.T)
        self.M = sparse.csr_array(self.T.T @ structure.M @ self.T)
        self.size = at

    def place(self, key: Any) -> KeptNode:
        """A place by the name that it has here, or a node of the model."""
        known = self._named.get(key) if isinstance(key, Hashable) else None
        return known or KeptNode(self.structure, key, key)

    @property
    def boundary(self) -> Indices:
        """The indices in c of the tied regions' motions."""
        return np.arange(len(self.inner), self.size)

    @cached_property
    def factor(self) -> SymmetricFactor:
        """K with the root held."""
        return SymmetricFactor(self.K, "held at its root the body is still a mechanism", self._where)

    def _where(self, c: int) -> str:
        dof = int(self.T[:, [c]].nonzero()[0][0])
        for index in range(len(self.structure.positions)):
            if dof in self.structure.tied(np.array([index])):
                return self.structure.label(index)
        return f"dof {dof}"

    def second_order(self, shapes: FloatArray) -> FloatArray | None:
        """The second-order fields of modes: q_ij = -K⁻¹ b_ij with the root held, by pairs, (N, pairs).

        A tied region turns as a rigid piece, so beyond the linear tie its nodes move by ½θ×(θ×ρ).
        """
        forces = self.structure.stretching(shapes)
        if forces is None:
            return None
        turned = self._turned(shapes)
        if turned is not None:
            forces = forces + self.structure.K @ turned
        second: FloatArray = self.T @ self.factor.solve(-(self.T.T @ forces))
        return second if turned is None else second + turned

    def _turned(self, shapes: FloatArray) -> FloatArray | None:
        regions = [place for place in self.tied if len(place.nodes) > 1]
        if not regions:
            return None
        i, j = pairs(shapes.shape[1])
        turned = np.zeros((self.structure.size, len(i)))
        for place in regions:
            spin = cross_matrix((self.structure.motion_rows(place.nodes, place.position) @ shapes)[:3].T)
            twice = 0.5 * (spin[i] @ spin[j] + spin[j] @ spin[i])
            for node in place.nodes:
                lever = self.structure.positions[node] - place.position
                dofs = self.structure.displacement_dofs(int(node))
                turned[dofs[dofs >= 0]] = (twice @ lever).T[dofs >= 0]
        return turned
