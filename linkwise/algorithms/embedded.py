"""Accelerations in independent freedoms, without multipliers (Featherstone 2000 §3.4; embedding, Jain 2012).

With J_c split into columns of dependent and independent freedoms, J_d v_d + J_i y = 0 and J_d v̇_d + J_i ẏ = γ, so that

    v = G y,  v̇ = G ẏ + g,  G = [1; -J_d⁻¹J_i],  g = [0; J_d⁻¹γ],    (G*𝓜G) ẏ = G*(τ - c - 𝓜g),

and the multipliers follow from the dependent rows of 𝓜v̇ + c = τ + J_c*λ. Which freedoms are independent, and which
equations redundant, is decided once, at a reference configuration (:func:`reference_pivots`): not finite, and inexact
nearby, where J_d has no inverse, though the mechanism itself may be far from any singularity there. O(n²k) for k
independent freedoms, and the solution with J_d, loop by loop, beside it.

Which equation determines which freedom, the pivots of J_c, is chosen on numbers, before a text is traced. Rows have
length one; of the entries that are large enough to divide by, the one whose row and column have fewest others is taken
(Markowitz), so that each loop keeps to its own freedoms; of equals the one that concerns fewest equations and is
furthest from the base, so that what drives the others stays free. What is left of the rows when no pivot is left is
redundant, and the columns left are independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from linkwise.algorithms.constrained import ClosureSolver, Constrained, refuse_rolled
from linkwise.algorithms.equations import Constraint, Equations, equations
from linkwise.algorithms.factors import BlockTriangular, factorize
from linkwise.algorithms.inverse_dynamics import Forces, external_force
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.pulls import Pulls
from linkwise.errors import InputError
from linkwise.mechanism.closures.instances import Reference
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus


class Embedded(ClosureSolver):
    """A closed system in its independent freedoms; ``pivots`` says which equation determines which freedom."""

    def __init__(self, tree: Tree, q: Flat, found: tuple[list[Equations], Pulls], pivots: Callable[[], Pivots]) -> None:
        refuse_rolled(tree, "embedding")
        super().__init__(tree, q, found)
        chosen = pivots()
        self.rows, self.dependent = [r for r, _ in chosen], [c for _, c in chosen]
        independent = [i for i in range(tree.nv) if i not in self.dependent]
        J_c = self.pulls.generalized(tree, q)
        self.J_d = BlockTriangular([[J_c[r][c] for c in self.dependent] for r in self.rows])
        self.G = [self._motion(J_c, i) for i in independent]  # by columns, as is 𝓜G
        self.M = mass_matrix(tree, q)
        self.MG = [[dot(row, column) for row in self.M] for column in self.G]
        half = [[dot(a, b) for b in self.MG[: i + 1]] for i, a in enumerate(self.G)]
        n = range(len(half))
        self.factor = factorize([[half[max(i, j)][min(i, j)] for j in n] for i in n])
        self.redundant = None if len(self.rows) == self.pulls.count else Constrained(tree, q, found)

    def push(self, accelerations: Flat) -> None:
        """Ask for these second derivatives of all equations (first ones, of rates) instead of zero."""
        super().push(accelerations)
        if self.redundant is not None:
            self.redundant.push(accelerations)

    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""
        f = tau if b is None else minus(tau, external_force(self.tree, self.q, b))
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


def _rows(columns: Sequence[Flat], n: int) -> Matrix:
    return [[column[r] for column in columns] for r in range(n)]


Pivots = list[tuple[int, int]]
"""Equation and freedom (its place in v), in the order in which they were chosen."""

LOST = 1e-8
"""Largest remainder of a row of length one that follows from others; and a residual of a closed reference."""

LARGE = 0.1
"""Least size of a pivot, relative to the largest."""

_TINY = 1e-12


def reference_pivots(tree: Tree, constraints: Sequence[Constraint], reference: Reference) -> Pivots:
    """The pivots of J_c at the reference, none of them in the columns that are to be independent."""
    each, pulls = equations(tree, reference.q, [0.0] * tree.nv, constraints, reference.t)
    J_c = pulls.generalized(tree, reference.q)
    if not all(isinstance(x, (float, int)) for row in J_c for x in row):
        raise InputError(
            'the closure solver "embedding" needs closures that stay as they are',
            got="closures that may be attached and released",
            do='use with_closure_solver("auto")',
        )
    open_by = max((abs(x) for e in each for x in e.residual), default=0.0)
    if not open_by <= LOST:
        raise InputError(
            "the configuration at which independent freedoms were chosen does not close any more",
            got=f"a residual of {open_by:.3g} there",
            allowed=f"up to {LOST:g}",
            do='choose again: model.with_closure_solver("embedding", at=q), after the closures have changed',
        )
    found, left = pivots(J_c, reference.independent)
    if left > LOST:
        names = [f"{link.joint_name!r}" for link in tree.links if link.v_start in reference.independent]
        raise InputError(
            "the closures do not leave these freedoms independent of each other",
            got=", ".join(names),
            allowed="freedoms that can be given any rates, all at once, at the reference configuration",
            do='name others, or none: model.with_closure_solver("embedding")',
        )
    return found


def pivots(J_c: Sequence[Sequence[float]], independent: Sequence[int] = ()) -> tuple[Pivots, float]:
    """The pivots of a matrix in all but some columns, and the largest number that they leave in those."""
    rows = {r: _unit(row) for r, row in enumerate(J_c)}
    columns = {c for row in rows.values() for c in range(len(row))} - set(independent)
    shared = {c: sum(abs(row[c]) > _TINY for row in rows.values()) for c in columns}
    found: Pivots = []
    while rows and columns:
        most = max(abs(row[c]) for row in rows.values() for c in columns)
        if most <= LOST:
            break
        in_row = {r: sum(abs(row[c]) > _TINY for c in columns) for r, row in rows.items()}
        in_column = {c: sum(abs(row[c]) > _TINY for row in rows.values()) for c in columns}
        large = [(r, c) for r, row in rows.items() for c in columns if abs(row[c]) >= LARGE * most]
        r, c = min(large, key=lambda at: ((in_row[at[0]] - 1) * (in_column[at[1]] - 1), shared[at[1]], -at[1], at[0]))
        pivot = rows.pop(r)
        columns.remove(c)
        found.append((r, c))
        for other, row in rows.items():
            factor = row[c] / pivot[c]
            rows[other] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return found, max((abs(row[c]) for row in rows.values() for c in independent), default=0.0)


def _unit(row: Sequence[float]) -> list[float]:
    """Of length one, so that no equation counts less for its units; what has no effect stays zero."""
    size = math.hypot(*row)
    return [x / size if size > _TINY else 0.0 for x in row]
