"""The engine: every recursion of the papers, stated once as a step over the links.

The operators know of each other only that they are block diagonal, shifted towards the parents (E), or a sweep
(I - E)⁻¹. The engine knows their blocks, for every link k with parent p (Jain 1991 eq. 18, 24, 53; Rodriguez 1989 eq.
A.3):

=============  =========================================  =====================================
diagonal       H, M, R, P, D, G, tau, tau_bar, Upsilon    and ``armature``, ``D_inverse``, ``D_inverse_root``, …
shift          E_phi, E_psi, K                            φ(p,k), φ(p,k) τ̄(k), φ(p,k) G(k)
sweep          phi, psi                                   (I - E_φ)⁻¹, (I - E_ψ)⁻¹
=============  =========================================  =====================================

What a block is (traced scalars of one state, or arrays of many) is left to :class:`linkwise.operators.blocks.Blocks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.algorithms.kinematics import Place
from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.operators.blocks import Block, Blocks, Field, Solution, Space
from linkwise.spatial.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.operators.state import Operators


@dataclass(frozen=True)
class Stacked:
    """A stacked vector: direct + Σ over the children of what is still to arrive from them.

    E x is not summed on the parents before that is needed: a sweep takes up what is on its way together with its own,
    z(p) = x(p) + Σ (E z + E' x')(k). So ψ(KT + b) crosses each joint once although it names E_φ twice (K = E_φG and
    E_ψ = E_φτ̄): it is the articulated-body algorithm itself (Jain 1991 eq. 46), not merely equal to it.
    """

    direct: Field
    arriving: Field | None = None


class Engine:
    """The operators' blocks and sweeps for one state or a batch."""

    owner: Operators
    """The ``Operators`` whose letters this engine runs."""

    def __init__(self, blocks: Blocks[Any]) -> None:
        self.blocks = blocks
        self.parents = blocks.parents
        self.links, self.joints = blocks.links, blocks.joints
        self.batch, self.dtype = blocks.batch, blocks.dtype
        self._cells: dict[str, Field] = {}
        self._motions: dict[str, Field] = {}

    # Stacked vectors.
    def enter(self, space: Space, array: Array) -> Stacked:
        """The value of stacked vectors (..., size), one for each state or one for all."""
        return Stacked(self.blocks.enter(space, array))

    def leave(self, space: Space, value: Stacked) -> Array:
        """The array (..., size) of a value."""
        return self.blocks.leave(space, self._settled(value))

    def run(self, function: Callable[[Stacked], Stacked], space_in: Space, space_out: Space, x: Array) -> Array:
        """Apply a linear function to vectors (..., size) or to columns (..., size, r), of the same form again."""
        return self.blocks.run(lambda field: self._settled(function(Stacked(field))), space_in, space_out, x)

    def is_matrix(self, x: Array) -> bool:
        """Whether an array holds columns (..., size, r) rather than one vector (..., size) for each state."""
        return int(x.ndim) == len(self.batch) + 2

    def dense(self, space: Space) -> Array:
        """The identity (..., size, size): its columns make an operator dense."""
        return np.broadcast_to(np.eye(space.size), (*self.batch, space.size, space.size))

    def zero(self, space: Space, like: Stacked) -> Stacked:
        """The stacked vector of zeros, with as many columns as another."""
        return Stacked(self.blocks.zero(space, like.direct))

    def combined(self, terms: Sequence[tuple[Scalar, Stacked]]) -> Stacked:
        """The sum of stacked vectors times numbers."""

        def added(fields: list[tuple[Scalar, Field]]) -> Field:
            scaled = (x if isinstance(c, float) and c == 1.0 else x * c for c, x in fields)
            return reduce(add, scaled)

        arriving = [(c, x.arriving) for c, x in terms if x.arriving is not None]
        return Stacked(added([(c, x.direct) for c, x in terms]), added(arriving) if arriving else None)

    def _settled(self, x: Stacked) -> Field:
        return x.direct if x.arriving is None else x.direct + self.blocks.outboard(x.arriving)

    # Operators.
    def diagonal(self, name: str, x: Stacked, adjoint: bool) -> Stacked:
        """Block by block: X(k) x(k), or X*(k) x(k)."""
        X = self.cells(name)
        return Stacked((X.T if adjoint else X) @ self._settled(x))

    def shift(self, name: str, x: Stacked, adjoint: bool) -> Stacked:
        """E x: y(p) = Σ E(p,k) x(k) over the children k of p; or E*x: y(k) = E*(p,k) x(p)."""
        E, direct = self.cells(name), self._settled(x)
        if adjoint:
            return Stacked(E.T @ self.blocks.inboard(direct))
        return Stacked(self.blocks.zero(self.links, like=direct), E @ direct)

    def sweep(self, name: str, x: Stacked, adjoint: bool) -> Stacked:
        """(I - E)⁻¹ x, tips to base: z(p) = x(p) + Σ E(p,k) z(k); or its adjoint, base to tips."""
        E = self.cells("E_" + name)
        if adjoint:
            E_star, own = E.T, self._settled(x)

            def outward(link: object, parent: Block | None) -> Block:
                return own[link] if parent is None else own[link] + E_star[link] @ parent

            return Stacked(self.blocks.outward(outward))
        direct, arriving = x.direct, x.arriving

        def inward(link: object, outboard: Block) -> tuple[Block, tuple[Block]]:
            z = outboard + direct[link]
            return E[link] @ z if arriving is None else E[link] @ z + arriving[link], (z,)

        return Stacked(*self.blocks.inward(inward))

    def tilde(self, name: str, x: Stacked, adjoint: bool) -> Stacked:
        """φ~ = φE_φ or ψ~ = ψE_ψ, the sweep without its own diagonal; φ~* = E_φ*φ*."""
        name = name.removesuffix("_tilde")
        if adjoint:
            return self.shift("E_" + name, self.sweep(name, x, True), True)
        return self.sweep(name, self.shift("E_" + name, x, False), False)

    def pick(self, places: Sequence[Place], x: Stacked, adjoint: bool) -> Stacked:
        """B x: forces at places summed on links; or B*x: motions at the places (Rodriguez 1989 eq. 2.13)."""
        return Stacked(self.blocks.pick(places, self._settled(x), adjoint))

    def written(self, X: Array, x: Stacked, cols: Space, rows: Space) -> Stacked:
        """X x of a matrix that is written out."""
        return Stacked(self.blocks.through(self.blocks.product(X), self._settled(x), cols, rows))

    def solved(self, solution: Solution, x: Stacked, space: Space) -> Stacked:
        """X⁻¹ x, by what :meth:`linkwise.operators.blocks.Blocks.solution` makes of X."""
        return Stacked(self.blocks.through(solution, self._settled(x), space, space))

    # Blocks.
    def block(self, name: str, k: int) -> Array:
        """The block (..., rows, cols) of link k: of an operator over the links, or (parent(k), k) of E_φ or E_ψ."""
        above = self.parents[k] if name.startswith("E_") else k
        return self.blocks.matrix(self.cells(name), self.links.sizes[above], self.links.sizes[k], k)

    def cells(self, name: str) -> Field:
        """The blocks of an operator, made when first asked for."""
        if name not in self._cells:
            if name in _ARTICULATED:
                self._cells.update(zip(_ARTICULATED, self._articulated(), strict=True))
            elif name in _MADE:
                self._cells[name] = _MADE[name](self)
            elif name.endswith("_inverse"):
                word = name.removesuffix("_inverse")
                space = self.joints if word == "armature" else self.links
                self._cells[name] = self.blocks.inverse(self.cells(word), space)
            else:
                self._cells[name] = self.blocks.own(name)
        return self._cells[name]

    def _composite(self) -> Field:
        """R = M + E_φ R E_φ* (Jain 1991 eq. 25), tips to base."""
        phi, M = self.cells("E_phi"), self.cells("M")

        def step(link: object, outboard: Block) -> tuple[Block, tuple[Block]]:
            R = outboard + M[link]
            return self.blocks.congruence(phi[link], R), (R,)

        return self.blocks.inward(step)[0]

    def _articulated(self) -> tuple[Field, ...]:
        """P = M + E_φ P⁺ E_φ*, and with it D, D⁻¹ and G (Jain 1991 eq. 45), tips to base."""
        phi, M = self.cells("E_phi"), self.cells("articulated")

        def step(link: object, outboard: Block) -> tuple[Block, tuple[Block, ...]]:
            P = outboard + M[link]
            P_plus, joint = self.blocks.eliminate(link, P)
            return self.blocks.congruence(phi[link], P_plus), (P, *joint)

        return self.blocks.inward(step)

    def _admittance(self) -> Field:
        """Υ(k) = H*D⁻¹H + ψ*(p,k)Υ(p)ψ(p,k) (Rodriguez 1989 eq. A.3), base to tips."""
        joint = self.cells("H").T.congruence(self.cells("D_inverse"))
        psi_star = self.cells("E_psi").T

        def step(link: object, parent: Block | None) -> Block:
            own = joint[link]
            return own if parent is None else own + self.blocks.congruence(psi_star[link], parent)

        return self.blocks.outward(step)

    # Velocity terms.
    def motion(self, name: str) -> Stacked:
        """A stacked vector of the velocity: ``V``, ``a``, ``b``, or ``f`` = Mφ*a + b."""
        if name not in self._motions:
            self._motions[name] = _MOTIONS[name](self)
        return Stacked(self._motions[name])

    def _velocity(self) -> Field:
        """V = φ*H*v."""
        return self.sweep("phi", self.diagonal("H", Stacked(self.blocks.rates), True), True).direct

    def _acceleration(self) -> Field:
        """a: what the velocities cause, and φ*(base, k)[0; -g] on the base's links."""
        standing = self.blocks.inboard(self.blocks.zero(self.links), base=self.blocks.upwards)
        caused = self.blocks.mapped(lambda link, V: link.coriolis(V), self.blocks.inboard(self.motion("V").direct))
        return caused + self.cells("E_phi").T @ standing

    def _bias(self) -> Field:
        """Mφ*a + b."""
        swept = self.blocks.bias()
        if swept is not None:
            return swept
        alpha = self.sweep("phi", self.motion("a"), True)
        return self.diagonal("M", alpha, False).direct + self.motion("b").direct


_ARTICULATED = ("P", "D", "D_inverse", "G")

_MADE: dict[str, Callable[[Engine], Field]] = {
    "R": Engine._composite,
    "tau": lambda e: e.cells("G") @ e.cells("H"),
    "tau_bar": lambda e: e.blocks.complement(e.cells("G"), e.cells("H")),
    "E_psi": lambda e: e.cells("E_phi") @ e.cells("tau_bar"),
    "K": lambda e: e.cells("E_phi") @ e.cells("G"),
    "Upsilon": Engine._admittance,
    "D_inverse_root": lambda e: e.blocks.root(e.cells("D_inverse")),
}

_MOTIONS: dict[str, Callable[[Engine], Field]] = {
    "V": Engine._velocity,
    "a": Engine._acceleration,
    "b": lambda e: e.blocks.mapped(lambda link, V: link.gyroscopic(V), e.motion("V").direct),
    "f": Engine._bias,
}
