"""The letters of the papers: operators that are not made of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, final

import numpy as np

from linkwise.algorithms.kinematics import Place
from linkwise.array_types import Array
from linkwise.operators.blocks import Space
from linkwise.operators.engine import Engine, Stacked
from linkwise.operators.expressions import Transposed
from linkwise.operators.notation import letter
from linkwise.operators.operator import Operator
from linkwise.operators.stacked_vectors import Vector


class Atom(Operator):
    """A letter. ``word`` is its name here, as in ``ops.E_phi``."""

    is_symmetric = False

    def __init__(self, engine: Engine, word: str, rows: Space, cols: Space) -> None:
        super().__init__(engine, rows, cols)
        self.word = word

    def transposed(self) -> Operator:
        return self if self.is_symmetric else Transposed(self)

    @property
    def key(self) -> str:
        return self.word

    @property
    def name(self) -> str:
        return letter(self.word)


class EngineLetter(Atom):
    """A letter that the engine runs in one way, by name. O(n)."""

    way: ClassVar[str]

    def forward(self, x: Stacked) -> Stacked:
        run: Stacked = getattr(self.engine, self.way)(self.word, x, False)
        return run

    def adjoint(self, y: Stacked) -> Stacked:
        run: Stacked = getattr(self.engine, self.way)(self.word, y, not self.is_symmetric)
        return run


@final
class Diagonal(EngineLetter):
    """Block diagonal: H, M, R, P, D, G, τ, τ̄, Υ, the rotor inertias, and inverses of these."""

    way = "diagonal"

    def __init__(self, engine: Engine, word: str, rows: Space, cols: Space, is_symmetric: bool) -> None:
        super().__init__(engine, word, rows, cols)
        self.is_symmetric = is_symmetric


@final
class Shift(EngineLetter):
    """Blocks (parent(k), k) only, nilpotent on a tree: E_φ, E_ψ = E_φτ̄, K = E_φG (Jain 1991 eq. 19, 53)."""

    way = "shift"


@final
class Sweep(EngineLetter):
    """φ = (I - E_φ)⁻¹ and ψ = (I - E_ψ)⁻¹ (Jain 1991 eq. 20, 54): tips to base, their adjoints base to tips."""

    way = "sweep"


@final
class Tilde(EngineLetter):
    """φ~ = φ - I = φE_φ and ψ~ = ψ - I = ψE_ψ (Jain 1991 lemma 3.1)."""

    way = "tilde"


@final
class Omega(Atom):
    """Ω = ψ*H*D⁻¹Hψ (Rodriguez 1989 eq. 3.10): one sweep in, one out. O(n), common ancestors included."""

    is_symmetric = True

    def forward(self, x: Stacked) -> Stacked:
        e = self.engine
        y = e.diagonal("H", e.sweep("psi", x, False), False)
        return e.sweep("psi", e.diagonal("H", e.diagonal("D_inverse", y, False), True), True)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.forward(y)

    def block(self, i: int, j: int) -> Array:
        """Ω(i, j) = ψ*(c, i) Υ(c) ψ(c, j), c the nearest common ancestor: O(depth), and O(1) for i = j.

        DIFFERS FROM PAPER: the appendix of Rodriguez 1989 has Υ(k, m+1) where Ω(k, m+1) is meant, and zero for links on
        different branches, which holds only when the base is all they have in common.
        """
        self._check_block("row", i, self.rows)
        self._check_block("column", j, self.cols)
        above = set(self._ancestors(i))
        common = next((k for k in self._ancestors(j) if k in above), None)
        if common is None:
            return np.zeros((*self.engine.batch, self.rows.sizes[i], self.cols.sizes[j]))
        left, right = self._through(common, i), self._through(common, j)
        return left.swapaxes(-1, -2) @ self.engine.block("Upsilon", common) @ right

    def _ancestors(self, k: int) -> Iterator[int]:
        """The link itself, its parent, and so on to the base."""
        while k >= 0:
            yield k
            k = self.engine.parents[k]

    def _through(self, c: int, k: int) -> Array:
        """ψ(c, k), the product of ψ(parent, link) on the way from c out to k."""
        size = self.cols.sizes[k]
        psi: Array = np.broadcast_to(np.eye(size), (*self.engine.batch, size, size))
        while k != c:
            psi = self.engine.block("E_psi", k) @ psi
            k = self.engine.parents[k]
        return psi


@final
class PickOff(Atom):
    """B(m, k) = φ(O_m, C_k) where the point C_k is on link m (Rodriguez 1989 eq. 2.13). O(n)."""

    def __init__(self, engine: Engine, places: Sequence[Place], cols: Space) -> None:
        super().__init__(engine, "B", engine.links, cols)
        self.places = tuple(places)

    def forward(self, x: Stacked) -> Stacked:
        return self.engine.pick(self.places, x, False)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.engine.pick(self.places, y, True)

    @property
    def key(self) -> str:
        return f"B[{self.cols.name}]"


@final
class WrittenOut(Atom):
    """An operator given as a matrix: A, what closures ask of their points (Rodriguez 1989 eq. 2.16), M̂, or S[X].

    Args:
        of: the vector that S[X] or Q[X] is made of.
    """

    def __init__(
        self, engine: Engine, word: str, matrix: Array, rows: Space, cols: Space, of: Vector | None = None
    ) -> None:
        super().__init__(engine, word, rows, cols)
        self.matrix = matrix
        self.of = of

    @property
    def key(self) -> str:
        return self.word if self.of is None else f"{self.word}[{self.of.name} {id(self.of)}]"

    @property
    def name(self) -> str:
        return letter(self.word) if self.of is None else f"{self.word}[{self.of.name}]"

    def forward(self, x: Stacked) -> Stacked:
        return self.engine.written(self.matrix, x, self.cols, self.rows)

    def adjoint(self, y: Stacked) -> Stacked:
        return self.engine.written(self.matrix.swapaxes(-1, -2), y, self.rows, self.cols)


@final
class ClosureAdmittance(Atom):
    """Λ = B*ΩB at the points of closure (Rodriguez 1989 eq. 3.10): one sweep in, one out. O(n)."""

    is_symmetric = True

    def __init__(self, Omega: Operator, B: Operator) -> None:
        super().__init__(B.engine, "Lambda", B.cols, B.cols)
        self.Omega, self.B = Omega, B

    def forward(self, x: Stacked) -> Stacked:
        return self.B.adjoint(self.Omega.forward(self.B.forward(x)))

    def adjoint(self, y: Stacked) -> Stacked:
        return self.forward(y)
