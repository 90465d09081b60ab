"""The frame held, regions tied: the dofs that stay when a body deforms in its own frame.

d = T c: every dof of the model follows from the free ones and from the six motions [rotation; displacement] of each
rigidly tied region. Six conditions R d = 0 hold the body's frame: what they hold is the body's V and is not among c,
except for a free body. By default they are the six motions of the root; others let the root turn, as in a chord frame.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.flexible.integrals import pairs
from linkwise.flexible.mode_choice import Component, Places
from linkwise.flexible.solving import SymmetricFactor
from linkwise.flexible.structure import COMPONENTS, Indices, Matrix, NodeKey, Region, Structure, cross_matrix
from linkwise.memoized import cached_property


class KeptNode:
    """A node of the body: one node of the model, or a region of several that is seen as one.

    Args:
        key: its name or number.
        nodes: the nodes of the model.
    """

    def __init__(self, structure: Structure, key: NodeKey, nodes: Region) -> None:
        self.key = key
        self.nodes: Indices = structure.region(nodes)
        self.position: FloatArray = structure.positions[self.nodes].mean(axis=0)


def kept_nodes(structure: Structure, given: Places | None, what: str) -> list[KeptNode]:
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
    """The model with its frame held and with tied regions.

    Args:
        structure: the free model.
        root: the node that the body's joint will hold, and the origin of its frame.
        tied: regions that move as rigid pieces.
        kept: further places that have a name here.
        held: six pairs (node, component) that hold the frame; None for all of the root.
        free: whether what holds the frame stays among c.
    """

    def __init__(
        self,
        structure: Structure,
        root: KeptNode,
        tied: list[KeptNode],
        kept: Sequence[KeptNode] = (),
        *,
        held: Sequence[Component] | None = None,
        free: bool = False,
    ) -> None:
        self.structure, self.root, self.tied, self.held = structure, root, tied, held
        self._named = {place.key: place for place in (*kept, *tied, root)}
        size = structure.size
        owner = np.full(size, -1)
        # A root that is a point, held elsewhere as well, is no rigid piece: its dofs are like those of any node.
        self.rigid_root = held is None or self._fixes_rotation(root)
        regions = [*tied, root] if self.rigid_root else tied
        for k, place in enumerate(regions):
            dofs = structure.tied(place.nodes)
            if (owner[dofs] >= 0).any():
                other = regions[int(owner[dofs].max())]
                raise InputError(
                    "two tied regions share nodes", got=f"{place.key!r} and {other.key!r}", allowed="regions apart"
                )
            owner[dofs] = k
            if not self._fixes_rotation(place):
                raise InputError(
                    f"{place.key!r} cannot hold a body: its nodes do not fix a rotation",
                    got=", ".join(structure.label(int(i)) for i in place.nodes[:6]),
                    allowed="a node with rotations, or three and more nodes not on a line",
                    do="give a region of nodes, or say with held=[(node, component), …] what else holds the frame",
                )
        self._moving = regions if free or held is not None else tied
        self._inner = np.flatnonzero(owner < 0)
        rows, columns, values = [self._inner], [np.arange(len(self._inner))], [np.ones(len(self._inner))]
        at = len(self._inner)
        for k, place in enumerate(self._moving):
            dofs = np.flatnonzero(owner == k)
            block = structure.rigid(place.position)[dofs]
            rows.append(np.repeat(dofs, 6))
            columns.append(np.tile(np.arange(at, at + 6), len(dofs)))
            values.append(block.ravel())
            at += 6
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        every = sparse.csr_array(entries, shape=(size, at))
        every.eliminate_zeros()
        self.reading = self._conditions()
        gone = [] if free or held is None else self._columns_held(every)
        self._left = np.setdiff1d(np.arange(at), gone)
        first = len(self._inner)
        self.boundary = np.flatnonzero((self._left >= first) & (self._left < first + 6 * len(tied)))
        """The indices in c of the tied regions' motions."""
        self.interior = np.setdiff1d(np.arange(len(self._left)), self.boundary)
        """All others."""
        self.T = every if not len(gone) else sparse.csr_array(every[:, self._left])
        self.K = sparse.csr_array(self.T.T @ structure.K @ self.T)
        self.M = sparse.csr_array(self.T.T @ structure.M @ self.T)
        self.size = len(self._left)

    def in_frame(self, d: FloatArray) -> FloatArray:
        """Fields (N, k) less the rigid motions by which they break R d = 0."""
        rigid = self.structure.rigid(self.root.position)
        relative: FloatArray = d - rigid @ np.linalg.solve(self.reading @ rigid, self.reading @ d)
        return relative

    def coordinates(self, d: FloatArray) -> FloatArray:
        """The c of fields d = T c, (N, k) each."""
        regions = [self.structure.motion_rows(place.nodes, place.position) @ d for place in self._moving]
        c: FloatArray = np.vstack([d[self._inner], *regions])[self._left]
        return c

    def root_motion(self, d: FloatArray) -> FloatArray:
        """[rotation; displacement] of the root in fields d (N, k): nothing where it holds the frame."""
        if self.held is None:
            return np.zeros((6, d.shape[1]))
        motion: FloatArray = self.structure.motion_rows(self.root.nodes, self.root.position) @ d
        if not self.rigid_root:  # seen with its neighbours for its rotation; its displacement is its own
            motion[3:] = np.stack([self._component(self.root, name) @ d for name in COMPONENTS[:3]])[:, 0]
        return motion

    def _fixes_rotation(self, place: KeptNode) -> bool:
        dofs = self.structure.tied(place.nodes)
        return bool(np.linalg.matrix_rank(self.structure.rigid(place.position)[dofs], tol=1e-9) == 6)

    def _component(self, place: KeptNode, component: str) -> Matrix:
        """The row (1×N, sparse) that reads a component of a node's motion."""
        if component not in COMPONENTS:
            raise UnknownNameError("component", component, COMPONENTS)
        which = COMPONENTS.index(component)
        own = self.structure.displacement_dofs(int(place.nodes[0])) if len(place.nodes) == 1 and which < 3 else None
        if own is not None and own[which] >= 0:
            return sparse.csr_array(([1.0], ([0], [own[which]])), shape=(1, self.structure.size))
        return self.structure.motion_rows(place.nodes, place.position)[[(which + 3) % 6]]

    def _conditions(self) -> Matrix:
        """R, sparse 6×N."""
        if self.held is None:
            return self.structure.motion_rows(self.root.nodes, self.root.position)
        try:
            pairs_held = [(self.place(node), str(component)) for node, component in self.held]
        except (TypeError, ValueError):
            raise _not_six(repr(self.held)[:80]) from None
        rows = sparse.vstack([self._component(*pair) for pair in pairs_held], format="csr") if pairs_held else None
        if rows is None or rows.shape[0] != 6:
            raise _not_six(f"{len(pairs_held)} pairs")
        rigid = self.structure.rigid(self.root.position)
        extent = np.abs(self.structure.positions - self.root.position).max()
        if np.linalg.matrix_rank((rows @ rigid) / np.array([extent] * 3 + [1.0] * 3), tol=1e-9) < 6:
            raise ModelError(
                "what shall hold the body's frame does not: the body can still move as a whole",
                got=repr(list(self.held))[:120],
                do="hold the root's tx, ty, tz, and turns by components of nodes apart from it",
            )
        return rows

    def _columns_held(self, every: Matrix) -> list[int]:
        """The columns of d = T c that the conditions make zero."""
        found = []
        for row, pair in zip((self.reading @ every).toarray(), self.held or (), strict=True):
            (which,) = np.nonzero(np.abs(row) > 1e-9)
            if len(which) != 1:
                raise InputError(
                    "a component that shall hold the body's frame is not a dof of the model",
                    got=repr(pair),
                    allowed="components that a node has itself, or any of the root or of an interface",
                    do="make the region an interface",
                )
            found.append(int(which[0]))
        return found

    def place(self, key: Any) -> KeptNode:
        """A place by the name that it has here, or a node of the model."""
        known = self._named.get(key) if isinstance(key, Hashable) else None
        return known or KeptNode(self.structure, key, key)

    @cached_property
    def factor(self) -> SymmetricFactor:
        """K with the frame held."""
        return SymmetricFactor(self.K, "held at its root the body is still a mechanism", self._where)

    def _where(self, c: int) -> str:
        dof = int(self.T[:, [c]].nonzero()[0][0])
        for index in range(len(self.structure.positions)):
            if dof in self.structure.tied(np.array([index])):
                return self.structure.label(index)
        return f"dof {dof}"

    def second_order(self, shapes: FloatArray) -> FloatArray | None:
        """The second-order fields of modes: q_ij = -K⁻¹ b_ij with the frame held, by pairs, (N, pairs).

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
        turning = [*self.tied, self.root] if self.held is not None and self.rigid_root else self.tied
        regions = [place for place in turning if len(place.nodes) > 1]
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


def _not_six(got: str) -> InputError:
    return InputError(
        "six components of nodes hold a body's frame",
        got=got,
        allowed='six pairs (node, component), e.g. ("root", "tx"), …, ("tip", "ty")',
    )
