"""Blocks over any scalar (traced, SymPy, CasADi, mpmath, …): one state, one link after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

import numpy as np

from linkwise.algorithms import sweeps
from linkwise.algorithms.factors import Multipliers, factorize
from linkwise.algorithms.kinematics import Place, at_rest, next_motion
from linkwise.array_types import Array
from linkwise.mechanism.tree import LinkByLink, Tree
from linkwise.operators.blocks import NOTHING, Block, Blocks, Solution, Space
from linkwise.operators.links import RigidLinks, blocks_of
from linkwise.operators.maps import (
    AxisEntries,
    BlockByEntries,
    Crossing,
    Map,
    Passage,
    Shape,
    complement,
    eliminated,
    gain,
    joint_inertia_inverse,
    joint_map,
    lower_root,
    rotors,
    symmetric,
    times,
    triangular,
)
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero
from linkwise.spatial.vectors import Motion, Vec


@final
class LinkField:
    """One block for each link, in a list."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[Block]) -> None:
        self.values = list(values)

    def __getitem__(self, link: RigidLinks) -> Block:
        return self.values[link.index]

    def __matmul__(self, other: LinkField) -> LinkField:
        return LinkField(a @ b for a, b in zip(self.values, other.values, strict=True))

    def __add__(self, other: LinkField) -> LinkField:
        return LinkField(a + b for a, b in zip(self.values, other.values, strict=True))

    def __mul__(self, scale: Scalar) -> LinkField:
        return LinkField(times(a, scale) for a in self.values)

    @property
    def T(self) -> LinkField:
        """The adjoint of each block."""
        return LinkField(a.T for a in self.values)

    def congruence(self, other: LinkField) -> LinkField:
        """A X A* of each block."""
        return LinkField(a.congruence(b) for a, b in zip(self.values, other.values, strict=True))


class _Listed(LinkByLink):
    """Links in order, as the sweeps take them."""

    def __init__(self, links: Sequence[RigidLinks]) -> None:
        self.links = links

    def __iter__(self) -> Iterator[RigidLinks]:
        return iter(self.links)


@final
class ScalarBlocks(Blocks[RigidLinks]):
    """The blocks of one state over any scalar.

    Args:
        links: one for each link, parents first.
        rates: v, where velocity terms are asked for.
        gravity: in the base's frame.
        bias: Mφ*a + b, if there is a cheaper way to it than this text.
    """

    def __init__(
        self,
        links: Sequence[RigidLinks],
        rates: Flat | None = None,
        gravity: Vec | None = None,
        bias: Callable[[], Sequence[Block]] | None = None,
    ) -> None:
        self.each = _Listed(links)
        self.parents = [link.parent for link in links]
        self.shapes = [Shape(len(list(link.vectors.zero())), link.vectors) for link in links]
        self.links = Space("links", tuple(shape.size for shape in self.shapes))
        self.joints = Space("joints", tuple(len(link.S) for link in links))
        self.batch = ()
        self.dtype = np.dtype(object)
        self._rates = rates
        self._gravity = gravity
        self._bias = bias

    @classmethod
    def of(cls, tree: Tree, q: Flat, v: Flat | None) -> ScalarBlocks:
        """The blocks of a tree at q and v."""

        def bias() -> list[Block]:
            """The motion of v̇ = 0 swept outwards in one, not from a."""
            rest = at_rest(tree.gravity)
            moving = sweeps.outward(tree, lambda link, parent: next_motion(link, parent, q, v or (), None), rest)
            return [link.wrench(q, moving[link]) for link in tree]

        links = []
        for link in tree:
            kind = blocks_of(link)
            own_q, own_v = kind.reads(link)
            rates = None if v is None else [v[i] for i in own_v]
            links.append(kind([link.index], link.alone(), [q[i] for i in own_q], rates))
        return cls(links, v, tree.gravity, bias if all(type(link) is RigidLinks for link in links) else None)

    # Stacked vectors.
    def enter(self, space: Space, array: Array) -> LinkField:
        flat = [float(x) if isinstance(x, (int, np.floating, np.integer)) else x for x in array]
        types = self._types(space)
        return LinkField(kind.of(flat[space.slice(k)]) for k, kind in enumerate(types))

    def _types(self, space: Space) -> list[Block]:
        if space == self.links:
            return [shape.type for shape in self.shapes]
        return [Motion if space.of_points else AxisEntries] * len(space.sizes)

    def leave(self, space: Space, field: LinkField) -> Array:
        out = np.empty(space.size, object)
        for k, part in enumerate(field.values):
            for i, x in enumerate(part, space.starts[k]):
                out[i] = x
        return out

    def run(self, function: Callable[[LinkField], LinkField], space_in: Space, space_out: Space, x: Array) -> Array:
        if x.ndim == 1:
            return self.leave(space_out, function(self.enter(space_in, x)))
        columns = [self.leave(space_out, function(self.enter(space_in, column))) for column in x.T]
        return np.stack(columns, axis=-1) if columns else np.empty((space_out.size, 0), object)

    def zero(self, space: Space, like: LinkField | None = None) -> LinkField:
        types = self._types(space)
        return LinkField(kind.of([0.0] * size) for kind, size in zip(types, space.sizes, strict=True))

    # Sweeps.
    def inward(self, step: Callable[[RigidLinks, Block], tuple[Block, tuple[Block, ...]]]) -> tuple[LinkField, ...]:
        def crossed(link: RigidLinks, outboard: Block) -> tuple[Block, tuple[Block, ...]]:
            handed, kept = step(link, outboard)
            return handed.arrived() if isinstance(handed, Crossing) else handed, kept

        kept = self.each.inward(crossed, NOTHING).values
        return tuple(LinkField(column) for column in zip(*kept, strict=True))

    def outward(self, step: Callable[[RigidLinks, Block | None], Block]) -> LinkField:
        return LinkField(self.each.outward(step, None, keeps=False).values)

    def inboard(self, x: LinkField, base: Block | None = None) -> LinkField:
        at_base = Motion.zero() if base is None else base
        return LinkField(at_base if parent < 0 else x.values[parent] for parent in self.parents)

    def outboard(self, x: LinkField) -> LinkField:
        total = self.zero(self.links).values
        for parent, crossing in zip(self.parents, x.values, strict=True):
            if parent >= 0:
                total[parent] = total[parent] + crossing.arrived()
        return LinkField(total)

    # Blocks that the links bring along.
    def own(self, name: str) -> LinkField:
        return LinkField(_OWN[name](self, link) for link in self.each)

    def _phi(self, link: RigidLinks) -> Passage:
        above = Shape(6, Motion) if link.parent < 0 else self.shapes[link.parent]
        return Passage(link.phi, above, self.shapes[link.index])

    def _h(self, link: RigidLinks) -> Map:
        return joint_map(link.S, self.shapes[link.index])

    @property
    def rates(self) -> LinkField:
        return self.enter(self.joints, np.asarray(self._rates, object))

    def mapped(self, function: Callable[[RigidLinks, Flat], Iterable[Scalar]], x: LinkField) -> LinkField:
        return LinkField(function(link, list(x[link])) for link in self.each)

    def bias(self) -> LinkField | None:
        return None if self._bias is None else LinkField(self._bias())

    @property
    def upwards(self) -> Motion:
        return Motion(Vec.zero(), Vec.zero() if self._gravity is None else -self._gravity)

    @property
    def has_armature(self) -> bool:
        return any(not is_zero(x) for link in self.each for x in link.armature)

    # What is made of them.
    def congruence(self, A: Block, X: Block) -> Block:
        return A.congruence(X)

    def eliminate(self, link: RigidLinks, P: Block) -> tuple[Block, tuple[Block, Block, Block]]:
        P_plus, axes = eliminated(P, link.S, link.armature)
        H, J_r = self._h(link), rotors(link.armature)
        D = symmetric(lambda x: H @ (P @ H.adjoint(x)) + J_r @ x, H.rows)
        return P_plus, (D, joint_inertia_inverse(axes), gain(axes, H.cols))

    def complement(self, G: LinkField, H: LinkField) -> LinkField:
        return LinkField(complement(g, h) for g, h in zip(G.values, H.values, strict=True))

    def inverse(self, X: LinkField, space: Space) -> LinkField:
        shapes = self.shapes if space == self.links else [Shape(size, AxisEntries) for size in space.sizes]
        pairs = zip(X.values, shapes, strict=True)
        return LinkField(BlockByEntries(factorize(_columns(x, shape)).inverse(), shape) for x, shape in pairs)

    def root(self, X: LinkField) -> LinkField:
        pairs = zip(X.values, self.joints.sizes, strict=True)
        return LinkField(triangular(lower_root(_columns(x, Shape(size, AxisEntries)))) for x, size in pairs)

    def matrix(self, X: LinkField, rows: int, cols: int, k: int) -> Array:
        block = X.values[k]
        out = np.empty((rows, cols), object)
        for j, unit in enumerate(block.cols.units()):
            for i, x in enumerate(block.forward(unit)):
                out[i, j] = x
        return out

    def pick(self, places: Sequence[Place], x: LinkField, adjoint: bool) -> LinkField:
        on = [(place.offset, place.link.index) for place in places if place.link is not None]
        if adjoint:
            return LinkField(offset.T @ x.values[k] for offset, k in on)
        total = self.zero(self.links).values
        for (offset, k), part in zip(on, x.values, strict=True):
            total[k] = total[k] + offset @ part
        return LinkField(total)

    # Matrices that are written out.
    def written(self, rows: Sequence[Flat]) -> Array:
        out = np.empty((len(rows), len(rows[0])), object)
        for i, row in enumerate(rows):
            for j, x in enumerate(row):
                out[i, j] = x
        return out

    def product(self, X: Array) -> Solution:
        return lambda y: [AxisEntries(row).dot(y) for row in X]

    def solution(self, X: Array) -> Solution:
        return Multipliers(X.tolist()).solve

    def through(self, function: Solution, x: LinkField, cols: Space, rows: Space) -> LinkField:
        return self.enter(rows, function([number for part in x.values for number in part]))


_OWN: dict[str, Callable[[ScalarBlocks, RigidLinks], Block]] = {
    "E_phi": ScalarBlocks._phi,
    "H": ScalarBlocks._h,
    "M": lambda blocks, link: link.inertia,
    "articulated": lambda blocks, link: link.articulated,
    "armature": lambda blocks, link: rotors(link.armature),
}


def _columns(X: Block, shape: Shape) -> Matrix:
    return [list(X @ unit) for unit in shape.units()]
