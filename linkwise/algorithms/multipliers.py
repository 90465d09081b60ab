"""Multipliers of constraints from Λλ = r, where Λ = J_c𝓜⁻¹J_c* may have lost rank.

A fixed, small number of proximal steps, (Λ + μ)λ ← r + μλ from λ = 0, one factorisation, no branches. Components of λ
along lost rows stay zero, so λ is the solution of least norm; the others converge by μ/(μ + σ) a step, σ being an
eigenvalue of Λ. Rounding of size ε/μ stays in the lost rows, which do not reach the accelerations.

Which multiplier is eliminated when is decided from the zeros of Λ alone (least fill first), before any number is known:
with straight-line programs that costs nothing at run time, and loops that do not feel each other stay apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.sparse_factor import Factor, factorize
from linkwise.spatial.scalar import Scalar, is_zero

Matrix = list[list[Scalar]]

SOFTNESS = 1e-10
"""μ relative to the mean diagonal entry of Λ."""

STEPS = 3


class Multipliers:
    """Λ, factored; solves for any number of right-hand sides. ``sure``: whether Λ is known to keep its rank."""

    def __init__(self, Lambda: Matrix, *, sure: bool = False) -> None:
        n = len(Lambda)
        self.steps = 1 if sure else STEPS
        self.order = elimination_order(Lambda)
        self.mu: Scalar = 0.0 if sure else _trace(Lambda) * (SOFTNESS / max(n, 1))
        softened = [[Lambda[i][j] for j in self.order] for i in self.order]
        for i in range(n):
            softened[i][i] = softened[i][i] + self.mu
        self.factor: Factor = factorize(softened)

    def solve(self, r: Sequence[Scalar]) -> list[Scalar]:
        """λ."""
        given = [r[i] for i in self.order]
        solution: list[Scalar] = [0.0] * len(given)
        for _ in range(self.steps):
            solution = self.factor.solve([a + self.mu * x for a, x in zip(given, solution, strict=True)])
        back: list[Scalar] = [0.0] * len(given)
        for place, i in enumerate(self.order):
            back[i] = solution[place]
        return back

    def of_least_norm(self, multipliers: Sequence[Scalar]) -> list[Scalar]:
        """λ without what rounding left along lost rows: λ - [μ(Λ + μ)⁻¹]ⁿλ, the rest as it was."""
        lost = [multipliers[i] for i in self.order]
        for _ in range(self.steps):
            lost = self.factor.solve([self.mu * x for x in lost])
        cleaned = list(multipliers)
        for place, i in enumerate(self.order):
            cleaned[i] = cleaned[i] - lost[place]
        return cleaned


def elimination_order(matrix: Matrix) -> list[int]:
    """The order of rows for :func:`factorize`, which begins with the last: each time the row with fewest neighbours."""
    n = len(matrix)
    neighbours = [{j for j in range(n) if j != i and not is_zero(matrix[i][j])} for i in range(n)]
    left = set(range(n))
    eliminated = []
    while left:
        i = min(left, key=lambda k: (len(neighbours[k]), k))
        left.remove(i)
        eliminated.append(i)
        for j in neighbours[i]:
            neighbours[j] |= neighbours[i] - {j}
            neighbours[j].discard(i)
    return eliminated[::-1]


def _trace(matrix: Matrix) -> Scalar:
    total: Scalar = 0.0
    for i, row in enumerate(matrix):
        total = total + row[i]
    return total
