"""Accelerations in independent freedoms, without multipliers (Featherstone 2000 §3.4; embedding, Jain 2012).

With J_c split into columns of dependent and independent freedoms, J_d v_d + J_i y = 0 and J_d v̇_d + J_i ẏ = γ, so that

    v = G y,  v̇ = G ẏ + g,  G = [1; -J_d⁻¹J_i],  g = [0; J_d⁻¹γ],    (G*𝓜G) ẏ = G*(τ - c - 𝓜g),

and the multipliers follow from the dependent rows of 𝓜v̇ + c = τ + J_c*λ. Which freedoms are independent, and which
equations redundant, is decided once, at a reference configuration (:mod:`linkwise.algorithms.pivots`): not finite, and
inexact nearby, where J_d has no inverse, though the mechanism itself may be far from any singularity there.
O(n²k) for k independent freedoms, and the solution with J_d, loop by loop, beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.block_triangular import BlockTriangular, dot
from linkwise.algorithms.closure_solver import ClosureSolver, refuse_rolled
from linkwise.algorithms.constrained import Constrained
from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.inverse_dynamics import Forces, external_force
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.pivots import Pivots
from linkwise.algorithms.sparse_factor import factorize
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


class Embedded(ClosureSolver):
    """A closed system in its independent freedoms; ``pivots`` says which equation determines which freedom."""

    def __init__(
        self,
        tree: Tree,
        q: Flat,
        v: Flat,
        constraints: Sequence[Constraint],
        t: Scalar,
        pivots: Callable[[], Pivots],
        *,
        closed: bool = False,
    ) -> None:
        refuse_rolled(tree, "embedding")
        self.tree, self.q = tree, q
        self.equations, pulls = equations(tree, q, v, constraints, t, closed=closed)
        self.gamma = [-x for e in self.equations for x in e.bias]
        chosen = pivots()
        self.rows, self.dependent = [r for r, _ in chosen], [c for _, c in chosen]
        independent = [i for i in range(tree.nv) if i not in self.dependent]
        J_c = pulls.generalized(tree, q)
        self.J_d = BlockTriangular([[J_c[r][c] for c in self.dependent] for r in self.rows])
        self.G = [self._motion(J_c, i) for i in independent]  # by columns, as is 𝓜G
        self.M = mass_matrix(tree, q)
        self.MG = [[dot(row, column) for row in self.M] for column in self.G]
        half = [[dot(a, b) for b in self.MG[: i + 1]] for i, a in enumerate(self.G)]
        n = range(len(half))
        self.factor = factorize([[half[max(i, j)][min(i, j)] for j in n] for i in n])
        whole = len(self.rows) == pulls.count
        self.redundant = None if whole else Constrained(tree, q, v, constraints, t, closed=closed)

    def push(self, accelerations: Flat) -> None:
        """Ask for these second derivatives of all equations (first ones, of rates) instead of zero."""
        self.gamma = [x + a for x, a in zip(self.gamma, accelerations, strict=True)]
        if self.redundant is not None:
            self.redundant.push(accelerations)

    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""
        f = tau if b is None else [x - c for x, c in zip(tau, external_force(self.tree, self.q, b), strict=True)]
        vdot, multipliers = self._solved(f, self.gamma)
        return vdot, multipliers if self.redundant is None else self.redundant.solve(tau, b)[1]

    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v, least in kinetic energy, that changes J_c v by these amounts, and its impulses."""
        change, impulses = self._solved([0.0] * self.tree.nv, rates)
        return change, impulses if self.redundant is None else self.redundant.held(rates)[1]

    def _solved(self, f: Flat, gamma: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """x and λ with 𝓜x = f + J_c*λ and J_c x = γ."""
        g = self._spread(self.J_d.solve([gamma[r] for r in self.rows]))
        pushed = [dot(G, f) - dot(MG, g) for G, MG in zip(self.G, self.MG, strict=True)]
        y = self.factor.solve(pushed)
        x = [dot(row, y) + own for row, own in zip(_rows(self.G, self.tree.nv), g, strict=True)]
        MG = _rows(self.MG, self.tree.nv)
        lacking = [dot(MG[c], y) + dot(self.M[c], g) - f[c] for c in self.dependent]
        multipliers: list[Scalar] = [0.0] * len(gamma)
        for r, value in zip(self.rows, self.J_d.solve_adjoint(lacking), strict=True):
            multipliers[r] = value
        return x, multipliers

    def _motion(self, J_c: Sequence[Flat], i: int) -> list[Scalar]:
        """The motion in which one independent freedom has rate one, and the others stay: a column of G."""
        column = self._spread(self.J_d.solve([-J_c[r][i] for r in self.rows]))
        column[i] = 1.0
        return column

    def _spread(self, numbers: Flat) -> list[Scalar]:
        """Over all freedoms, from those of the dependent ones."""
        whole: list[Scalar] = [0.0] * self.tree.nv
        for c, x in zip(self.dependent, numbers, strict=True):
            whole[c] = x
        return whole


def _rows(columns: Sequence[Flat], n: int) -> list[list[Scalar]]:
    return [[column[r] for column in columns] for r in range(n)]
