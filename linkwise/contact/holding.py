"""Closures and joints that follow others, beside contacts: held exactly, and eliminated before cones are looked at.

Their rows c are equations, Λ_cc P_c + Λ_cp P = Δ_c, with P the impulses along the pulls of contacts and joints and Δ_c
the change of velocity that is missing along c. So P_c = Λ_cc⁺(Δ_c - Λ_cp P), and what contacts feel is

    Λ_pp - Λ_pc Λ_cc⁺ Λ_cp,

of a mechanism that is closed: sweeps over contacts need not know of closures, and redundant ones harm nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.multipliers import Multipliers
from linkwise.algorithms.pulls import Pulls, joined, mimic_pulls
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Matrix, Scalar, is_zero

Flat = Sequence[Scalar]


class Holding:
    """Equations of closures and of joints that follow others, at the middle of a step of size h.

    A closure that is e off at the start, with the rate ė, gets e⁺ ≈ 0 and ė⁺ ≈ 0 at the end: along its rows in the
    middle v changes by ė - 2ė_m - e/h, second order where the motion is smooth, since rows turn on the way. A step of
    no length is an impact: v changes by -ė.
    """

    def __init__(
        self,
        tree: Tree,
        constraints: Sequence[Constraint],
        start: tuple[Flat, Flat],
        middle: tuple[Flat, Flat],
        t: Scalar,
        h: Scalar,
    ) -> None:
        self.missing: list[Scalar] = []
        """Δ_c, by which J_c v has to change."""
        self.pulls = Pulls(0)
        if constraints and is_zero(h):
            in_middle, self.pulls = equations(tree, *middle, constraints, t)
            self.missing += [-rate for now in in_middle for rate in now.rate]
        elif constraints:
            at_start, _ = equations(tree, *start, constraints, t)
            in_middle, self.pulls = equations(tree, *middle, constraints, t + 0.5 * h)
            for before, now in zip(at_start, in_middle, strict=True):
                off = [*before.residual, *[0.0] * (before.count - len(before.residual))]
                for e, rate, rate_now in zip(off, before.rate, now.rate, strict=True):
                    self.missing.append(rate - 2.0 * rate_now - e / h)
        self.closes = bool(constraints)
        if tree.has_mimics:
            followers = mimic_pulls(tree)
            self.pulls = joined(self.pulls, followers)
            self.missing += [0.0] * followers.count

    def eliminate(self, Lambda: Matrix) -> Matrix:
        """Λ of the pulls before these, with these held; ``Lambda`` has both."""
        self.first = len(Lambda) - self.pulls.count
        n = range(self.first)
        if not self.pulls.count:
            return Lambda
        self.across = [row[: self.first] for row in Lambda[self.first :]]
        self.block = [row[self.first :] for row in Lambda[self.first :]]
        self.factored = Multipliers(self.block, sure=not self.closes)
        held = [self.factored.solve([row[j] for row in self.across]) for j in n]
        return [[_less(Lambda[i][j], [row[i] for row in self.across], held[j]) for j in n] for i in n]

    def impulses(self, free: Flat, pushed: Flat) -> list[Scalar]:
        """P_c, for what the free motion changes J_c v by and for the impulses P along the other pulls."""
        if not self.pulls.count:
            return []
        return self.factored.solve(
            [_less(d - f, row, pushed) for d, f, row in zip(self.missing, free, self.across, strict=True)]
        )

    def felt(self, held: Flat) -> list[Scalar]:
        """Λ_pc P_c: how these impulses move the other pulls."""
        total: list[Scalar] = [0.0] * self.first
        for row, x in zip(self.across, held, strict=True) if held else ():
            total = [a + b * x for a, b in zip(total, row, strict=True)]
        return total


def _less(x: Scalar, a: Flat, b: Flat) -> Scalar:
    for u, v in zip(a, b, strict=True):
        x = x - u * v
    return x
