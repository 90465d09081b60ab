"""Blocks of numbers as NumPy arrays: all states and right-hand sides at once, level by level.

Every array has the link (by depth) as its first axis, then the flat batch: blocks are (n, B, rows, columns), stacked
vectors (n, B, rows, r). Links and joints of different widths are filled up with zeros to the widest. One sweep is one
small matrix product for each level: time linear in n, whatever the depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from typing import final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from linkwise.algorithms.factors import FLOOR
from linkwise.algorithms.kinematics import Place
from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.operators.blocks import Block, Blocks, Space
from linkwise.operators.levels import Level, TreeLayout
from linkwise.operators.links import AlikeLinks, Lanes, RigidLinks, alike_links, blocks_of, numbers, width
from linkwise.spatial.flexible import FlexibleForce, NodeFactor, RootFactor
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform

_RANK = 4096
"""Eigenvalues below so many units of rounding of the largest are zero."""


@final
class LevelField:
    """One block for each link, in one array (n, B, rows, columns)."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, level: Level) -> Array:
        return self.array[level.here]

    def __matmul__(self, other: LevelField) -> LevelField:
        return LevelField(self.array @ other.array)

    def __add__(self, other: LevelField) -> LevelField:
        return LevelField(self.array + other.array)

    def __mul__(self, scale: Scalar) -> LevelField:
        return LevelField(self.array * scale)

    @property
    def T(self) -> LevelField:
        """The adjoint of each block."""
        return LevelField(self.array.swapaxes(-1, -2))

    def congruence(self, other: LevelField) -> LevelField:
        """A X A* of each block."""
        return LevelField(_congruence(self.array, other.array))


@final
class ArrayBlocks(Blocks[Level]):
    """The blocks of a batch of numeric states.

    Args:
        plan: the tree.
        links: the links' own blocks, all links of a kind at once.
        batch: leading axes of the state.
        dtype: of the state.
        rates: v (..., nv), where velocity terms are asked for.
        gravity: in the base's frame.
    """

    def __init__(
        self,
        plan: TreeLayout,
        links: Sequence[RigidLinks],
        batch: tuple[int, ...],
        dtype: DTypeLike,
        rates: Array | None = None,
        gravity: Sequence[float] = (0.0, 0.0, 0.0),
    ) -> None:
        self.plan = plan
        self.groups = links
        self.parents = plan.parents
        self.levels = plan.levels
        self.links, self.joints = plan.links.space, plan.joints.space
        self.batch, self.dtype = batch, np.dtype(dtype)
        self.states = math.prod(batch)
        self._rates = rates
        self._gravity = gravity
        self._own: dict[str, LevelField] = {}

    @classmethod
    def of(cls, tree: Tree, q: Array, v: Array | None) -> ArrayBlocks:
        """The blocks of a tree at q (..., nq) and v (..., nv)."""
        plan, sorted_links = _planned(tree)
        states = math.prod(q.shape[:-1])
        flat = q.reshape(states, tree.nq), None if v is None else v.reshape(states, tree.nv)
        links = [kind.at(*flat) for kind in sorted_links]
        return cls(plan, links, q.shape[:-1], q.dtype, v, list(tree.gravity))

    # Stacked vectors.
    def enter(self, space: Space, array: Array) -> LevelField:
        core = array.shape[len(self.batch) :] if self._is_matrix(array) else array.shape[-1:]
        x = np.broadcast_to(array, self.batch + core).reshape(self.states, space.size, math.prod(core[1:]))
        return LevelField(self.plan.packing(space).packed(x))

    def _is_matrix(self, array: Array) -> bool:
        return int(array.ndim) == len(self.batch) + 2

    def leave(self, space: Space, field: LevelField) -> Array:
        return self._left(space, field)[..., 0]

    def _left(self, space: Space, field: LevelField) -> Array:
        x = self.plan.packing(space).unpacked(field.array)
        return x.reshape(*self.batch, *x.shape[1:])

    def run(self, function: Callable[[LevelField], LevelField], space_in: Space, space_out: Space, x: Array) -> Array:
        y = self._left(space_out, function(self.enter(space_in, x)))
        return y if self._is_matrix(x) else y[..., 0]

    def zero(self, space: Space, like: LevelField | None = None) -> LevelField:
        columns = 1 if like is None else like.array.shape[-1]
        packing = self.plan.packing(space)
        return LevelField(np.zeros((len(space.sizes), self.states, packing.width, columns), self.dtype))

    # Sweeps.
    def inward(self, step: Callable[[Level, Block], tuple[Block, tuple[Block, ...]]]) -> tuple[LevelField, ...]:
        return tuple(LevelField(array) for array in self.levels.inward(step))

    def outward(self, step: Callable[[Level, Block | None], Block]) -> LevelField:
        return LevelField(self.levels.outward(step))

    def inboard(self, x: LevelField, base: Block | None = None) -> LevelField:
        y = np.zeros_like(x.array)
        y[self.levels.inner] = x.array[self.levels.parents]
        if base is not None:
            y[self.levels.roots] = base
        return LevelField(y)

    def outboard(self, x: LevelField) -> LevelField:
        y, handed = np.zeros_like(x.array), x.array[self.levels.inner]
        if len(self.levels.families) < len(handed):
            handed = np.add.reduceat(handed, self.levels.families, axis=0)
        y[self.levels.parents[self.levels.families]] = handed
        return LevelField(y)

    # Blocks that the links bring along.
    def own(self, name: str) -> LevelField:
        if name == "articulated":
            return self.own("M")
        if name not in self._own:
            rows, cols, of = _OWN[name]
            sizes = {"links": self.plan.links.width, "joints": self.plan.joints.width}
            self._own[name] = self._gathered((sizes[rows], sizes[cols]), of)
        return self._own[name]

    def _gathered(self, shape: tuple[int, int], of: Callable[[RigidLinks], Rows]) -> LevelField:
        """An array (n, B, *shape) from the rows of each kind's blocks, over lanes; what they leave out is zero."""
        entries = [
            (self.levels.position[group.indices], i, j, numbers(entry))
            for group in self.groups
            for i, row in enumerate(of(group))
            for j, entry in enumerate(row)
            if not (isinstance(entry, float) and entry == 0.0)
        ]
        states = self.states if any(np.shape(x)[-1:] not in ((), (1,)) for *_, x in entries) else 1
        out = np.zeros((len(self.parents), states, *shape), self.dtype)
        for at, i, j, entry in entries:
            out[at, :, i, j] = entry
        return LevelField(np.broadcast_to(out, (len(out), self.states, *shape)))

    @property
    def rates(self) -> LevelField:
        return self.enter(self.joints, np.asarray(self._rates))

    def mapped(self, function: Callable[[RigidLinks, Flat], Iterable[Scalar]], x: LevelField) -> LevelField:
        def rows(group: RigidLinks) -> Rows:
            at = self.levels.position[group.indices]
            return [[y] for y in function(group, [Lanes(x.array[at, :, i, 0]) for i in range(x.array.shape[2])])]

        return self._gathered((self.plan.links.width, 1), rows)

    @property
    def upwards(self) -> Array:
        up = np.zeros((self.plan.links.width, 1))
        up[3:6, 0] = [-g for g in self._gravity]
        return up

    @cached_property
    def has_armature(self) -> bool:
        return bool(self.own("armature").array.any())

    # What is made of them.
    def congruence(self, A: Array, X: Array) -> Array:
        return _congruence(A, X)

    @cached_property
    def _rotors(self) -> LevelField:
        return LevelField(self.own("armature").array + self.plan.joints.pad.astype(self.dtype))

    def eliminate(self, link: Level, P: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        H = self.own("H")[link]
        u = P @ H.swapaxes(-1, -2)
        D = H @ u + self._rotors[link]
        D_inverse = self._inverted(D, link)
        G = u @ D_inverse
        P_plus = P - G @ u.swapaxes(-1, -2)
        # an asymmetry of rounding would grow from link to link
        return 0.5 * (P_plus + P_plus.swapaxes(-1, -2)), (D, D_inverse, G)

    def _inverted(self, D: Array, level: Level) -> Array:
        try:
            return 1.0 / D if D.shape[-1] == 1 and D.all() else np.linalg.inv(D)
        except np.linalg.LinAlgError:
            names = [self.plan.names[k] for k in self.levels.order[level.here]]
            raise InputError(
                "D = HPH* has no inverse: a joint moves no inertia",
                got=f"zero inertia about an axis of one of {', '.join(map(repr, names[:8]))}",
                allowed="mass or rotor inertia beyond every joint",
            ) from None

    def complement(self, G: LevelField, H: LevelField) -> LevelField:
        return LevelField(np.eye(G.array.shape[-2], dtype=self.dtype) - G.array @ H.array)

    def inverse(self, X: LevelField, space: Space) -> LevelField:
        return LevelField(np.linalg.inv(X.array + self.plan.packing(space).pad.astype(self.dtype)))

    def root(self, X: LevelField) -> LevelField:
        turned = X.array[..., ::-1, ::-1]  # Cholesky's factors of what is read backwards are lower F* F
        return LevelField(np.linalg.cholesky(turned)[..., ::-1, ::-1].swapaxes(-1, -2))

    def matrix(self, X: LevelField, rows: int, cols: int, k: int) -> Array:
        block: Array = X.array[self.levels.position[k]][:, :rows, :cols]
        return block.reshape(*self.batch, rows, cols)

    def pick(self, places: Sequence[Place], x: LevelField, adjoint: bool) -> LevelField:
        written = [rows_of(place.offset) for place in places]
        moving = any(isinstance(entry, Lanes) for rows in written for row in rows for entry in row)
        cells = np.zeros((len(places), self.states if moving else 1, self.plan.links.width, 6))
        for cell, rows in zip(cells, written, strict=True):
            for i, row in enumerate(rows):
                for j, entry in enumerate(row):
                    cell[:, i, j] = numbers(entry)
        links = self.levels.position[[place.link.index for place in places if place.link is not None]]
        if adjoint:
            return LevelField(cells.swapaxes(-1, -2) @ x.array[links])
        handed = cells @ x.array
        y = np.zeros((len(self.parents), *handed.shape[1:]), handed.dtype)
        np.add.at(y, links, handed)
        return LevelField(y)

    # Matrices that are written out.
    def written(self, rows: Rows) -> Array:
        out = np.empty((self.states, len(rows), len(rows[0])), self.dtype)
        for i, row in enumerate(rows):
            for j, entry in enumerate(row):
                out[:, i, j] = numbers(entry)
        return out.reshape(*self.batch, *out.shape[1:])

    def product(self, X: Array) -> Callable[[Array], Array]:
        flat = X.reshape(self.states, *X.shape[-2:])
        return lambda y: flat @ y

    def solution(self, X: Array) -> Callable[[Array], Array]:
        flat = X.reshape(self.states, *X.shape[-2:])
        W = np.diagonal(flat, axis1=-2, axis2=-1)
        W = W + FLOOR * W.mean(-1, keepdims=True)
        scale = 1.0 / np.sqrt(np.maximum(W, np.finfo(self.dtype).tiny))[..., None]
        sizes, basis = np.linalg.eigh(scale * flat * scale.swapaxes(-1, -2))
        kept = sizes > _RANK * np.finfo(self.dtype).eps * sizes[..., -1:]
        inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)[..., None]
        return lambda y: scale * (basis @ (inverse * (basis.swapaxes(-1, -2) @ (scale * y))))

    def through(self, function: Callable[[Array], Array], x: LevelField, cols: Space, rows: Space) -> LevelField:
        return LevelField(self.plan.packing(rows).packed(function(self.plan.packing(cols).unpacked(x.array))))


Rows = Sequence[Flat]


@singledispatch
def rows_of(block: Block) -> Rows:
    """The rows of a block; one of a further type says them itself, in ``rows()``."""
    rows: Rows = block.rows()
    return rows


@rows_of.register
def _(phi: Transform) -> Rows:
    """[[R, l~R], [0, R]]; with rows for the modes of the parent and columns for those of the link."""
    if any(isinstance(factor, (NodeFactor, RootFactor)) for factor in phi.factors):
        modes = sum(factor.modes for factor in phi.factors if isinstance(factor, RootFactor))
        units = [FlexibleForce.of([1.0 if i == j else 0.0 for j in range(modes + 6)]) for i in range(modes + 6)]
        return [list(row) for row in zip(*(list(phi @ unit) for unit in units), strict=True)]
    R, l = phi.matrix()
    lR = Mat3.cross(l).times(R)
    return [[*R.m[i], *lR.m[i]] for i in range(3)] + [[0.0, 0.0, 0.0, *R.m[i]] for i in range(3)]


@rows_of.register
def _(M: RigidInertia) -> Rows:
    """[[J, h~], [-h~, m]]."""
    h = Mat3.cross(M.h).m
    upper = [[*M.J.m[i], *h[i]] for i in range(3)]
    return upper + [[*(-x for x in h[i]), *(M.m if i == j else 0.0 for j in range(3))] for i in range(3)]


_OWN: dict[str, tuple[str, str, Callable[[RigidLinks], Rows]]] = {
    "E_phi": ("links", "links", lambda links: rows_of(links.phi)),
    "H": ("joints", "links", lambda links: [list(s) for s in links.S]),
    "M": ("links", "links", lambda links: rows_of(links.inertia)),
    "armature": (
        "joints",
        "joints",
        lambda links: [[J if i == j else 0.0 for j in range(i + 1)] for i, J in enumerate(links.armature)],
    ),
}


def _congruence(A: Array, X: Array) -> Array:
    return A @ X @ A.swapaxes(-1, -2)


_known: WeakKeyDictionary[Tree, tuple[TreeLayout, tuple[AlikeLinks, ...]]] = WeakKeyDictionary()


def _planned(tree: Tree) -> tuple[TreeLayout, tuple[AlikeLinks, ...]]:
    """The plan and the kinds of a tree, made when first asked for."""
    if tree not in _known:
        widths, freedoms = [width(link) for link in tree], [blocks_of(link).freedoms(link) for link in tree]
        plan = TreeLayout([link.parent for link in tree], widths, freedoms, [link.name for link in tree])
        _known[tree] = plan, alike_links(tree)
    return _known[tree]
