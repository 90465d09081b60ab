"""Accelerations from forces: v̇ = 𝓜⁻¹(τ - Hφb).

The one place that decides it. Algorithms ask :func:`solver` and do not branch:

* :class:`Articulated`: the articulated-body recursion, 𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK] (Jain 1991 eq. 57). O(n) for each
  right-hand side.
* :class:`Factored`: 𝓜 = LᵀDL with the zeros of the tree (Featherstone 2005). Needed where joints share a freedom, since
  no elimination order along the tree exists then; and cheaper for many right-hand sides on a shallow tree.
* :class:`Coupled`: joints that share a freedom in sweeps that run as loops, without a mass matrix: every axis moves by
  itself, and multipliers couple them. A mimic's axis obeys v̇_f - c v̇_l = 0: its pull is one on its own axis and -c on
  that of the joint it follows. Those that follow are few, so this stays O(n) where a factor of 𝓜 would not.
"""

from __future__ import annotations

from typing import Protocol

from linkwise.algorithms.articulated import articulate, pull, solve
from linkwise.algorithms.constrained import PulledTree
from linkwise.algorithms.factors import Multipliers
from linkwise.algorithms.inverse_dynamics import Forces, external_force
from linkwise.algorithms.mass_matrix import mass_factor
from linkwise.algorithms.pulls import Pulls, joined, mimic_pulls, of_freedoms, own_efforts
from linkwise.mechanism.tree import Tree
from linkwise.memoized import cached_property
from linkwise.spatial.matrices import transposed
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, is_zero, less_products, minus
from linkwise.spatial.vectors import Force


class Solver(Protocol):
    """𝓜⁻¹ of one configuration."""

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """v̇ = 𝓜⁻¹(τ - Hφb), nv numbers, for joint forces τ and forces b that the links take."""

    def columns(self, matrix: Matrix) -> Matrix:
        """𝓜⁻¹ times a matrix."""

    def inverse(self) -> Matrix:
        """𝓜⁻¹ itself."""

    def admittance(self, pulls: Pulls) -> Matrix:
        """Λ = J_c𝓜⁻¹J_c*, count × count, for pulls J_c*."""


def solver(tree: Tree, q: Flat) -> Solver:
    """The way that suits the mechanism."""
    if not tree.has_mimics:
        return Articulated(tree, q)
    return Coupled(tree, q) if tree.rolls else Factored(tree, q)


def many_sided_solver(tree: Tree, q: Flat) -> Solver:
    """The way that suits the mechanism where there are as many right-hand sides as freedoms."""
    if tree.rolls:
        return solver(tree, q)
    inboard = sum(link.joint.nv * ancestor.joint.nv for link in tree for ancestor in tree.ancestors(link))
    return Factored(tree, q) if inboard <= FACTORED_UP_TO * tree.nv else solver(tree, q)


FACTORED_UP_TO = 20
"""Freedoms inboard of a freedom, on average, up to which a factor of 𝓜 is the cheaper way to many right-hand sides."""


class Articulated:
    """By articulated bodies; ``tip`` is an extra force at the outer end of each leaf."""

    def __init__(self, tree: Tree, q: Flat, tip: Force | None = None) -> None:
        self.tree, self.q, self.tip = tree, q, tip
        self.axes = articulate(tree, q)

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """One inward and one outward sweep."""
        return solve(self.tree, self.q, self.axes, tau, b, self.tip)

    def columns(self, matrix: Matrix) -> Matrix:
        """One column at a time."""
        return transposed([self.accelerations(column) for column in zip(*matrix, strict=True)])

    def inverse(self) -> Matrix:
        """One unit force at a time; no matrix is inverted. O(n²)."""
        n = self.tree.nv
        return mirrored([self.accelerations([1.0 if i == j else 0.0 for i in range(n)]) for j in range(n)])

    def admittance(self, pulls: Pulls) -> Matrix:
        """Gathered in one inward sweep."""
        Lambda: Matrix = pull(self.tree, self.q, self.axes, pulls)[1]
        return Lambda


class Factored:
    """By the factors of 𝓜."""

    def __init__(self, tree: Tree, q: Flat) -> None:
        self.tree, self.q = tree, q
        self.factor = mass_factor(tree, q)

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """Two triangular solves."""
        if b is not None:
            tau = minus(tau, external_force(self.tree, self.q, b))
        return self.factor.solve(tau)

    def columns(self, matrix: Matrix) -> Matrix:
        """Each column by the inverse where that or the column has zeros enough, else by the factors."""
        lower = sum(not is_zero(x) for i, row in enumerate(self.factor.L) for x in row[:i])
        solve_cost = self.tree.nv + 2 * lower
        solved = []
        for column in zip(*matrix, strict=True):
            terms = sum(_both(x, y) for row in self._inverse for x, y in zip(row, column, strict=True))
            by_product = terms <= solve_cost
            solved.append([dot(row, column) for row in self._inverse] if by_product else self.factor.solve(column))
        return transposed(solved)

    def inverse(self) -> Matrix:
        """Unit vectors through the factors."""
        return self._inverse

    def admittance(self, pulls: Pulls) -> Matrix:
        """Row by row through the factors."""
        J = pulls.generalized(self.tree, self.q)
        columns = [self.factor.solve(row) for row in J]
        n = range(pulls.count)
        return [[dot(J[min(r, s)], columns[max(r, s)]) for s in n] for r in n]

    @cached_property
    def _inverse(self) -> Matrix:
        return self.factor.inverse()


def mirrored(columns: Matrix) -> Matrix:
    """A symmetric matrix: entry (i, j) from the column of the outer of the two, whose inward sweep is the shorter."""
    n = len(columns)
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def _both(x: Scalar, y: Scalar) -> bool:
    return not is_zero(x) and not is_zero(y)


class Coupled:
    """𝓜⁻¹ where some joints follow others."""

    def __init__(self, tree: Tree, q: Flat) -> None:
        self.tree, self.q = tree, q
        self.couplings = mimic_pulls(tree)
        self.pulled = PulledTree(tree, q, self.couplings, sure=True)

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """One sweep in, one out."""
        vdot, _ = self.pulled.axis_accelerations(lambda link: own_efforts(link, tau), b, [0.0] * self.couplings.count)
        return of_freedoms(self.tree, vdot)

    def columns(self, matrix: Matrix) -> Matrix:
        """One column at a time."""
        return [list(row) for row in zip(*(self.accelerations(c) for c in zip(*matrix, strict=True)), strict=True)]

    def inverse(self) -> Matrix:
        """One unit force at a time."""
        n = self.tree.nv
        return self.columns([[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)])

    def admittance(self, pulls: Pulls) -> Matrix:
        """Λ of the pulls less what the couplings hold back: Λ_pp - Λ_pc Λ_cc⁻¹ Λ_cp."""
        n = pulls.count
        Lambda = PulledTree(self.tree, self.q, joined(pulls, self.couplings), sure=True).Lambda
        within = Multipliers([row[n:] for row in Lambda[n:]], sure=True)
        held = [within.solve(row[n:]) for row in Lambda[:n]]
        return [[less_products(Lambda[i][j], Lambda[i][n:], held[j]) for j in range(n)] for i in range(n)]
