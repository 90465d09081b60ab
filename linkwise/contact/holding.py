"""Closures and joints that follow others, beside contacts: held exactly, and eliminated before cones are looked at.

Their rows c are equations, Λ_cc P_c + Λ_cp P = Δ_c, with P the impulses along the pulls of contacts and joints and Δ_c
the change of velocity that is missing along c. So P_c = Λ_cc⁺(Δ_c - Λ_cp P), and what contacts feel is

    Λ_pp - Λ_pc Λ_cc⁺ Λ_cp,

of a mechanism that is closed: sweeps over contacts need not know of closures, and redundant ones harm nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.articulated import Axis, accelerate, pull
from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.factors import Multipliers
from linkwise.algorithms.pulls import Pulls, joined, mimic_pulls, of_freedoms
from linkwise.algorithms.sweeps import Field, each
from linkwise.contact.elimination import sparse_product
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Items, Matrix, Scalar, by_digits, is_zero, less_products, looped_over

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
        self.closes, self.of_closures = bool(constraints), self.pulls
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
        return [[less_products(Lambda[i][j], [row[i] for row in self.across], held[j]) for j in n] for i in n]

    def impulses(self, free: Flat, pushed: Flat) -> list[Scalar]:
        """P_c, for what the free motion changes J_c v by and for the impulses P along the other pulls."""
        if not self.pulls.count:
            return []
        return self.factored.solve(
            [less_products(d - f, row, pushed) for d, f, row in zip(self.missing, free, self.across, strict=True)]
        )

    def felt(self, held: Flat) -> list[Scalar]:
        """Λ_pc P_c: how these impulses move the other pulls."""
        total: list[Scalar] = [0.0] * self.first
        for row, x in zip(self.across, held, strict=True) if held else ():
            total = [a + b * x for a, b in zip(total, row, strict=True)]
        return total


HEAVIER = 1e7, 1e3
"""How many times as heavy as it is a motion counts, that closures forbid: with sixteen digits, and with seven."""


class Held:
    """𝓜⁻¹ of a mechanism, whose closures hold and whose followers follow.

    Args:
        tree: of links.
        q: configuration.
        axes: of articulated bodies.
        holding: what is held.
    """

    def __init__(self, tree: Tree, q: Flat, axes: Field[list[Axis]], holding: Holding) -> None:
        self.tree, self.q, self.axes, self.holding = tree, q, axes, holding
        self.closes = holding.closes
        if holding.pulls.count:
            self.eps, Lambda = pull(tree, q, axes, holding.pulls)
            holding.eliminate(Lambda)

    def changed(self, nu: Field[list[Scalar]]) -> list[Scalar]:
        """The change of v along closures that innovations ν of an effort lead to."""
        return self._moved(nu, lambda along: self.holding.factored.solve([-x for x in along]))

    def gained(self, nu: Field[list[Scalar]], h: Scalar) -> list[Scalar]:
        """The change of v in a time h, after which closures hold again."""
        by_step = each(self.tree, lambda link: [h * x for x in nu[link]])
        return self._moved(by_step, lambda along: self.holding.impulses(along, []))

    def _moved(self, nu: Field[list[Scalar]], impulses: Callable[[list[Scalar]], Flat]) -> list[Scalar]:
        count = self.holding.pulls.count
        if count:
            along: list[Scalar] = [0.0] * count
            for link in self.tree:
                for own, x in zip(self.eps[link], nu[link], strict=True):
                    along = [a + e * x for a, e in zip(along, own, strict=True)]
            pushed, free = impulses(along), nu

            def both(link: Link) -> list[Scalar]:
                axes = zip(self.axes[link], self.eps[link], free[link], strict=True)
                return [x + axis.d_inverse * sparse_product(own, pushed) for axis, own, x in axes]

            nu = each(self.tree, both)
        return of_freedoms(self.tree, accelerate(self.tree, self.q, self.axes, nu))

    def heavier(self, M: Matrix, h: Scalar) -> Items:
        """Rows of 𝓜 + κJ_c*Λ_cc⁺J_c, so large along what closures forbid that next to nothing moves there.

        Its inverse is that of the closed mechanism but for the part 1/(1 + κ) of what closures take from 𝓜⁻¹.
        """
        if not self.closes:  # through a loop, so that all of it stands in one array
            return Items.rows(looped_over([Items.rows(M)], lambda _, row: ([], list(row)), [])[1])
        closures, followers = self.holding.of_closures, self.holding.pulls.count - self.holding.of_closures.count
        J = closures.generalized(self.tree, self.q)
        weight = by_digits(h, *HEAVIER)

        def weighed(_: Flat, column: Flat) -> tuple[list[Scalar], list[Scalar]]:
            found = self.holding.factored.solve([*column, *[0.0] * followers])
            return [], [weight * x for x in found[: closures.count]]

        columns = looped_over([Items.rows([list(column) for column in zip(*J, strict=True)])], weighed, [])[1]

        def row(_: Flat, line: Flat, column: Flat) -> tuple[list[Scalar], list[Scalar]]:
            def one(total: Flat, forbidden: Flat, factor: Flat) -> tuple[list[Scalar], list[Scalar]]:
                return [a + factor[0] * b for a, b in zip(total, forbidden, strict=True)], []

            factors = Items(column, range(closures.count), 1)
            return [], looped_over([Items.rows(J), factors], one, list(line))[0]

        return Items.rows(looped_over([Items.rows(M), Items.rows(columns)], row, [])[1])
