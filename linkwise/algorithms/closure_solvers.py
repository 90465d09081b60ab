"""Ways to find the accelerations of a closed system, by name. Each is one answer to the same two questions.

=================  ====================================================================================================
``"auto"``         "branches" where it can be, else "multipliers"
``"multipliers"``  λ first, inside the articulated recursion (:mod:`linkwise.algorithms.constrained`)
``"branches"``     what one closure each holds first, as inertia (:mod:`linkwise.algorithms.branches`)
``"kkt"``          the full system of v̇ and λ at once (:class:`FullSystem`)
``"embedding"``    v̇ of independent freedoms, without multipliers (:mod:`linkwise.algorithms.embedded`)
``"nullspace"``    v̇ in the null space of J_c, with a rank test: on numbers only, one state after another, outside
                   the compiled code (:mod:`linkwise.model.null_space`)
=================  ====================================================================================================

"kkt" solves [𝓜, J_c*; J_c, 0][v̇; -λ] = [τ - c; γ] (Featherstone 2000 eq. 21). O((n + m)³). The same proximal steps as
in :mod:`linkwise.algorithms.factors`, but on the whole system: with -μW in place of the zero block it is
quasi-definite, so that it has factors LᵀDL in any order and at any rank. Kept as a solver that shares nothing with the
articulated recursion: the two check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.branches import Branches
from linkwise.algorithms.constrained import ClosureSolver, Constrained, refuse_rolled
from linkwise.algorithms.embedded import Embedded
from linkwise.algorithms.equations import Constraint, Equations, equations
from linkwise.algorithms.factors import FLOOR, LEAST, SOFTNESS, STEPS, Factor, factorize
from linkwise.algorithms.inverse_dynamics import Forces, external_force
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.pulls import Pulls
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Scalar, minus


class FullSystem(ClosureSolver):
    """The factors of the system at one state."""

    def __init__(self, tree: Tree, q: Flat, found: tuple[list[Equations], Pulls]) -> None:
        refuse_rolled(tree, "kkt")
        super().__init__(tree, q, found)
        J_c, M = self.pulls.generalized(tree, q), mass_matrix(tree, q)
        self.m = m = self.pulls.count
        self.soft = _softness(factorize(M), J_c)
        corner = [[-self.soft[i] if i == j else 0.0 for j in range(m)] for i in range(m)]
        upper = [[*corner[i], *J_c[i]] for i in range(m)]
        lower = [[*(J_c[r][i] for r in range(m)), *M[i]] for i in range(tree.nv)]
        self.factor = factorize([*upper, *lower])  # begins with the last row: 𝓜 before the multipliers

    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""
        if b is not None:
            tau = minus(tau, external_force(self.tree, self.q, b))
        return self._solved(tau, self.gamma)

    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v that changes J_c v by these amounts, and its impulses."""
        return self._solved([0.0] * self.tree.nv, rates)

    def _solved(self, forces: Flat, gamma: Flat) -> tuple[list[Scalar], list[Scalar]]:
        m = self.m
        whole: list[Scalar] = [0.0] * (m + self.tree.nv)
        for _ in range(STEPS):
            given = [g - soft * y for g, soft, y in zip(gamma, self.soft, whole, strict=False)]
            whole = self.factor.solve([*given, *forces])
        return whole[m:], [-y for y in self._of_least_norm(whole[:m])]

    def _of_least_norm(self, multipliers: Flat) -> Flat:
        """Without what rounding left along lost rows; see :mod:`linkwise.algorithms.factors`."""
        for _ in range(2):
            lost = multipliers
            for _ in range(STEPS):
                given = [-soft * y for soft, y in zip(self.soft, lost, strict=True)]
                lost = self.factor.solve([*given, *[0.0] * self.tree.nv])[: self.m]
            multipliers = minus(multipliers, lost)
        return multipliers


def _softness(mass: Factor, J_c: Sequence[Flat]) -> list[Scalar]:
    """μW, with W the diagonal of Λ = J_c𝓜⁻¹J_c*."""
    diagonal: list[Scalar] = []
    for row in J_c:
        own: Scalar = 0.0
        for x, y in zip(row, mass.solve(row), strict=True):
            own = own + x * y
        diagonal.append(own)
    floor: Scalar = LEAST
    for x in diagonal:
        floor = floor + x * (FLOOR / len(diagonal))
    return [(x + floor) * SOFTNESS for x in diagonal]


TRACED: dict[str, Callable[..., ClosureSolver]] = {
    "auto": Constrained,
    "multipliers": Constrained,
    "branches": Branches,
    "kkt": FullSystem,
    "embedding": Embedded,
}
"""Solvers that are texts over any scalar."""

BY_NUMBERS = ("nullspace",)
"""Solvers that look at values, and so are no texts."""


def closure_solver(
    name: str, tree: Tree, q: Flat, v: Flat, constraints: Sequence[Constraint], t: Scalar, *chosen: object, closed: bool
) -> ClosureSolver:
    """The solver of this name; for symbols, those that look at values leave their place to the usual one.

    Args:
        name: of the solver.
        tree: the links.
        q: configuration (nq).
        v: velocity (nv).
        constraints: what closes the tree.
        t: time.
        chosen: what the solver has chosen on numbers beforehand: pivots for "embedding", links for "branches".
        closed: whether accelerations alone are asked for; see :func:`linkwise.algorithms.equations.equations`.
    """
    return TRACED.get(name, Constrained)(tree, q, equations(tree, q, v, constraints, t, closed=closed), *chosen)
