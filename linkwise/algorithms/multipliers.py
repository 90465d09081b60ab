"""Multipliers of constraints from Λλ = r, where Λ = J_c𝓜⁻¹J_c* may have lost rank.

A fixed, small number of proximal steps, (Λ + μW)λ ← r + μWλ from λ = 0, one factorisation, no branches. W is the
diagonal of Λ, so that metres and radians, light and heavy loops count alike. Components of λ along lost rows stay zero,
so λ is the solution least in the norm λ*Wλ; the others converge by μ/(μ + σ) a step, σ being an eigenvalue of Λ
relative to W. Rounding of size ε/μ stays in the lost rows, which do not reach the accelerations.

Which multiplier is eliminated when is decided from the zeros of Λ alone (least fill first), before any number is known:
with straight-line programs that costs nothing at run time, and loops that do not feel each other stay apart.
"""

from __future__ import annotations

from collections.abc import Callable

from linkwise.algorithms.factors import Factor, factorize
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero, minus

SOFTNESS = 1e-10
"""μ. Smaller, and lost rows gather more rounding; larger, and nearly lost ones take more steps."""

FLOOR = 1e-9
"""Least size of W, relative to the mean of Λ's diagonal: rows that move nothing have a pivot too."""

LEAST = 1e-20
"""Least size of W, in kg⁻¹ or the like: where all constraints are released, Λ is zero, and so is every λ."""

STEPS = 3


class Multipliers:
    """Λ, factored; solves for any number of right-hand sides.

    ``sure``: whether Λ is known to keep its rank. ``floor``: see :data:`FLOOR`. ``looped``: a way to solve
    in loops, which may decline.
    """

    def __init__(
        self,
        Lambda: Matrix,
        *,
        sure: bool = False,
        floor: float = FLOOR,
        looped: Callable[[Matrix, list[Scalar]], Factor | None] = lambda *_: None,
    ) -> None:
        n = len(Lambda)
        self.steps = 1 if sure else STEPS
        least = _trace(Lambda) * (floor / max(n, 1)) + LEAST
        soft: list[Scalar] = [0.0 if sure else (Lambda[i][i] + least) * SOFTNESS for i in range(n)]
        in_loops = looped(Lambda, soft)
        self.order = list(range(n)) if in_loops else elimination_order(Lambda)
        self.factor: Factor = in_loops or factorize(
            [[Lambda[i][j] + soft[i] if i == j else Lambda[i][j] for j in self.order] for i in self.order]
        )
        self.soft = self.factor.kept([soft[i] for i in self.order])

    def solve(self, r: Flat) -> list[Scalar]:
        """λ."""
        given = self.factor.kept([r[i] for i in self.order])
        solution: list[Scalar] = [0.0] * len(given)
        for _ in range(self.steps):
            pushed = [a + soft * x for a, soft, x in zip(given, self.soft, solution, strict=True)]
            solution = self.factor.solve(pushed)
        back: list[Scalar] = [0.0] * len(given)
        for place, i in enumerate(self.order):
            back[i] = solution[place]
        return back

    def inverse(self) -> Matrix:
        """(Λ + μW)⁻¹."""
        places = {i: place for place, i in enumerate(self.order)}
        inverse, n = self.factor.inverse(), range(len(self.order))
        return [[inverse[places[i]][places[j]] for j in n] for i in n]

    def softened(self, multipliers: Flat) -> list[Scalar]:
        """μWλ: what (Λ + μW)⁻¹r leaves of Λλ = r."""
        left: list[Scalar] = [0.0] * len(self.order)
        for i, soft in zip(self.order, self.soft, strict=True):
            left[i] = soft * multipliers[i]
        return left

    def of_least_norm(self, multipliers: Flat) -> list[Scalar]:
        """λ without what rounding left along lost rows: less [(Λ + μW)⁻¹μW]ⁿλ, which takes nothing from the others.

        Twice, since rounding in the factors spoils some 1e-5 of what is taken away.
        """
        cleaned = [multipliers[i] for i in self.order]
        for _ in range(2):
            lost = cleaned
            for _ in range(self.steps):
                lost = self.factor.solve([soft * x for soft, x in zip(self.soft, lost, strict=True)])
            cleaned = minus(cleaned, lost)
        back: list[Scalar] = [0.0] * len(cleaned)
        for place, i in enumerate(self.order):
            back[i] = cleaned[place]
        return back


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
