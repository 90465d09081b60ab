"""Spaces, fields and blocks: the small algebra in which the engine writes every recursion.

A *space* is one of stacked vectors, a block for each link, joint, point or closure. A *field* has one block for each
link: of an operator X(k), or of a stacked vector x(k). Fields and single blocks are multiplied and added like matrices
(``@ + *``, ``.T``), and ``field[link]`` is the block of a link.

The recursions are written once (:mod:`linkwise.operators.engine`); blocks are of two kinds, since neither does the
other's work:

* one link after another over any scalar (:mod:`linkwise.operators.scalar_blocks`). φ stays a product of shifts and
  turns, so that a traced expression is the recursion itself, with no operation more;
* all links of a level, all states and all right-hand sides at once as NumPy arrays
  (:mod:`linkwise.operators.array_blocks`). The scalar blocks over lanes of states take 2 times as long for 7 links and
  one state, 5 times for a tree of 30, 31 times for a chain of 300 (𝓜x and 𝓜⁻¹x).

Only these two know how wide a block is, and they have it from the links (:mod:`linkwise.operators.links`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import numpy as np

from linkwise.algorithms.kinematics import Place
from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.memoized import cached_property
from linkwise.operators.links import RigidLinks
from linkwise.spatial.scalar import Flat, Scalar

LinkT = TypeVar("LinkT")
"""Links of one step of a sweep: one, or all of a level."""
Block = Any
"""A matrix or a part of a vector, of one link or of all links of a level."""
Field = Any
"""One block for each link."""
Solution = Callable[[Any], Any]
"""Numbers of a stacked vector from those of another: a flat list, or an array (B, size, r)."""


@dataclass(frozen=True)
class Space:
    """A space of stacked vectors.

    Args:
        name: ``"links"``, ``"joints"``, ``"points"`` (and which) or ``"constraints"``.
        sizes: numbers in each block: 6 for a link or a point, nv for a joint, one for each equation of a constraint.
    """

    name: str
    sizes: tuple[int, ...]
    of_points: bool = False
    """Whether its blocks are motions of points (or forces at them)."""
    is_small: bool = False
    """Whether what is square over it may be written out and solved as a matrix: constraints are few."""

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The beginning of each block, and at last the end of all."""
        return (0, *accumulate(self.sizes))

    @property
    def size(self) -> int:
        """Numbers in a stacked vector."""
        return self.starts[-1]

    def slice(self, block: int) -> slice:
        """The place of one block in a stacked vector."""
        return slice(self.starts[block], self.starts[block + 1])


class Nothing:
    """The sum over no children."""

    def __add__(self, other: Block) -> Block:
        return other


NOTHING = Nothing()


class Blocks(ABC, Generic[LinkT]):
    """The blocks of one state or a batch, and how a step is run over the links."""

    parents: Sequence[int]
    """The parent of each link; -1 is the base."""
    links: Space
    joints: Space
    batch: tuple[int, ...]
    dtype: np.dtype[Any]

    # Stacked vectors.
    @abstractmethod
    def enter(self, space: Space, array: Array) -> Field:
        """The field of stacked vectors (..., size), one for each state or one for all."""

    @abstractmethod
    def leave(self, space: Space, field: Field) -> Array:
        """The stacked vectors (..., size) of a field."""

    @abstractmethod
    def run(self, function: Callable[[Field], Field], space_in: Space, space_out: Space, x: Array) -> Array:
        """Apply a linear function to vectors (..., size) or to columns (..., size, r), of the same form again."""

    @abstractmethod
    def zero(self, space: Space, like: Field | None = None) -> Field:
        """The stacked vector of zeros; with as many columns as ``like``."""

    # Sweeps.
    @abstractmethod
    def inward(self, step: Callable[[LinkT, Block], tuple[Block, tuple[Block, ...]]]) -> tuple[Field, ...]:
        """Tips to base: ``step(link, sum over its children)`` gives what it hands to its parent, and what it keeps."""

    @abstractmethod
    def outward(self, step: Callable[[LinkT, Block | None], Block]) -> Field:
        """Base to tips: ``step(link, its parent's block)`` gives the link's; on the base the parent's is None."""

    @abstractmethod
    def inboard(self, x: Field, base: Block | None = None) -> Field:
        """For each link the block of its parent: x(parent(k)); on the base ``base``, or zero."""

    @abstractmethod
    def outboard(self, x: Field) -> Field:
        """For each link the sum over its children k of what E(p,k) x(k) is when it arrives."""

    # Blocks that the links bring along.
    @abstractmethod
    def own(self, name: str) -> Field:
        """``E_phi``, ``H``, ``M``, ``armature``: φ(parent(k), k), H(k), M(k), J_r(k); ``articulated``: M as a P."""

    @property
    @abstractmethod
    def rates(self) -> Field:
        """The joint velocities v."""

    @abstractmethod
    def mapped(self, function: Callable[[RigidLinks, Flat], Iterable[Scalar]], x: Field) -> Field:
        """``function(link, numbers of x(k))`` for each link, or for all links of a kind at once."""

    def bias(self) -> Field | None:
        """Mφ*a + b in a way of its own, if there is a cheaper one."""
        return None

    @property
    @abstractmethod
    def upwards(self) -> Block:
        """The acceleration [0; -g] of a base that stands still in the field g."""

    @property
    @abstractmethod
    def has_armature(self) -> bool:
        """Whether any joint has rotor inertia."""

    # What is made of them.
    @abstractmethod
    def congruence(self, A: Block, X: Block) -> Block:
        """A X A* of a symmetric X."""

    @abstractmethod
    def eliminate(self, link: LinkT, P: Block) -> tuple[Block, tuple[Block, Block, Block]]:
        """P⁺ = P - GDG*, and with it D = HPH* + J_r, D⁻¹ and G = PH*D⁻¹ (Jain 1991 eq. 45)."""

    @abstractmethod
    def complement(self, G: Field, H: Field) -> Field:
        """I - GH."""

    @abstractmethod
    def inverse(self, X: Field, space: Space) -> Field:
        """X⁻¹ of symmetric blocks."""

    @abstractmethod
    def root(self, X: Field) -> Field:
        """F with F*F = X, lower triangular, of symmetric blocks between joints."""

    @abstractmethod
    def matrix(self, X: Field, rows: int, cols: int, k: int) -> Array:
        """The block of link k as an array (..., rows, cols)."""

    @abstractmethod
    def pick(self, places: Sequence[Place], x: Field, adjoint: bool) -> Field:
        """B x: forces at places summed on links; or B*x: motions at the places (Rodriguez 1989 eq. 2.13)."""

    # Matrices between spaces of few numbers, points and constraints, which are written out.
    @abstractmethod
    def written(self, rows: Sequence[Flat]) -> Array:
        """A matrix by its entries, for all states."""

    @abstractmethod
    def product(self, X: Array) -> Solution:
        """y -> X y, for :meth:`through`."""

    @abstractmethod
    def solution(self, X: Array) -> Solution:
        """y -> X⁻¹ y of a symmetric matrix; of least norm, weighed by X's diagonal, where X has lost rank."""

    @abstractmethod
    def through(self, function: Solution, x: Field, cols: Space, rows: Space) -> Field:
        """Result of a function of the numbers of a stacked vector, as a stacked vector over ``rows``."""
