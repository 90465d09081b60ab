"""Accelerations under closures of which each holds a branch: branches first, as inertias and forces on the trunk.

A branch is what hangs on one joint of the world and is held to another body by one closure, as each leg of a parallel
robot. Of its own, with ε and D of its articulated recursion and Λ = ε*D⁻¹ε (:mod:`linkwise.algorithms.constrained`), it
answers a pull λ at the closure by the acceleration Λλ + ε*ν there, so that J_b α = γ - ε*ν - Λλ at the body it holds:

    λ = K(γ - ε*ν - J_b α),    K = Λ⁻¹.

For that body the branch is an inertia J_b*KJ_b and a force J_b*K(γ - ε*ν). With these, the trunk (all other links) is
an open tree. The same elimination as that of all multipliers at the end, in another order: no matrix larger than a
branch's own Λ is factored, and the legs do not fill each other's rows.

Where a branch loses a direction of its own Λ has no inverse, though the whole system may have one. So K is that of
Λ + μW (:mod:`linkwise.algorithms.factors`), stiff instead of infinite, and what the first answer leaves of the
equations is answered once more, by the same factors. Cost O(n), as the open tree's, and O(m³) for a branch's equations.

Which closures hold a branch of their own (:func:`branching`) is decided from what hangs where, and from numbers at the
neutral configuration and beside it: a branch must be able to move the place where it is held in every direction that
the closure forbids, by freedoms of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

from linkwise.algorithms.articulated import accelerate, articulate, innovate
from linkwise.algorithms.configuration import integrate
from linkwise.algorithms.constrained import ClosureSolver, Constrained, PulledTree
from linkwise.algorithms.equations import Between, Constraint, Equations, equations
from linkwise.algorithms.factors import factorize
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, configured, each, everywhere, generalized, only_at, outward
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, SomeLinks, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus, plus
from linkwise.spatial.vectors import Force, Motion, weighted_sum

T = TypeVar("T", Force, ArticulatedInertia)

ANSWERS = 2
"""Number of times that the rest of the equations is answered, the first time included."""

EVEN = 1.0
"""Least size of W, relative to the mean of Λ's diagonal: a branch is never stiffer than 1/μ in any direction, lest
the trunk's own inertia be lost beside it."""


class Branch:
    """The links that one closure holds: how they answer pulls, and what they are to the body at its other end."""

    def __init__(self, tree: Tree, q: Flat, links: Sequence[Link], own: Equations) -> None:
        self.part, self.q = SomeLinks(links, tree.places), q
        still = (Force.zero(),) * own.count
        pulled = only_at(self.part, [(link, tuple(rows)) for link, rows in own.forces if link in links], still)
        self.pulled = PulledTree(self.part, q, Pulls(own.count, [pulled]), floor=EVEN)
        self.K = self.pulled.multipliers.inverse()
        self.place, self.rows = next((place, rows) for place, rows in own.points if place.link not in links)
        assert self.place.link is not None  # only links have points
        self.holds: Link = self.place.link

    def answered(self, missing: Flat) -> list[Scalar]:
        """λ = K r."""
        return [dot(row, missing) for row in self.K]

    def inertia(self) -> ArticulatedInertia:
        """J_b*KJ_b, on the link that is held."""
        stiff = [weighted_sum(self.rows, weights, Force.zero()) for weights in self.K]

        def entry(i: int, j: int) -> Scalar:
            return dot([row[i] for row in self.rows], [row[j] for row in stiff])

        at_place = ArticulatedInertia(
            Sym3.build_symmetric(entry),
            Mat3.build(lambda i, j: entry(i, j + 3)),
            Sym3.build_symmetric(lambda i, j: entry(i + 3, j + 3)),
        )
        carried: ArticulatedInertia = self.place.phi(self.q).congruence(at_place)
        return carried

    def force(self, multipliers: Flat) -> Force:
        """J_b*λ, on the link that is held."""
        return self.place.phi(self.q) @ weighted_sum(self.rows, multipliers, Force.zero())

    def moved(self, alpha: Field[Motion]) -> list[Scalar]:
        """J_b α."""
        at_place = self.place.phi(self.q).T @ alpha[self.holds]
        return [at_place.dot(row) for row in self.rows]


@dataclass(frozen=True)
class BranchAnswer:
    """Accelerations of the trunk's axes, those of its links, and λ of each branch."""

    axes: Field[list[Scalar]]
    alpha: Field[Motion]
    multipliers: Matrix
    left: Matrix
    """Remainder of each branch's equations: μW times what λ was last changed by."""


class Branches(ClosureSolver):
    """A closed system whose closures hold one branch each; ``links`` has the indices of each closure's."""

    def __init__(
        self, tree: Tree, q: Flat, found: tuple[list[Equations], Pulls], links: Sequence[Sequence[int]]
    ) -> None:
        super().__init__(tree, q, found)
        self.branches = [
            Branch(tree, q, [tree.links[k] for k in own], e) for own, e in zip(links, self.equations, strict=True)
        ]
        inner = {k for own in links for k in own}
        self.trunk = SomeLinks([link for link in tree.links if link.index not in inner], tree.places)
        held = self._on_trunk([branch.inertia() for branch in self.branches], ArticulatedInertia.zero())
        self.axes = articulate(self.trunk, q, held)

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """v̇ (nv)."""
        return self._solved(self._by_branch(self.gamma), lambda link: link.rates(tau), b)

    def project(self, rates: Flat) -> list[Scalar]:
        """The change of v, least in kinetic energy, that changes J_c v by these amounts."""
        return self._solved(self._by_branch(rates), lambda link: [0.0] * link.joint.nv, None)

    # Multipliers of least norm, at any rank, are another question.
    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""
        whole = self._whole()
        whole.gamma = self.gamma
        return self.accelerations(tau, b), whole.solve(tau, b)[1]

    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v, and its impulses."""
        return self.project(rates), self._whole().held(rates)[1]

    def _whole(self) -> Constrained:
        return Constrained(self.tree, self.q, (self.equations, self.pulls))

    def _by_branch(self, numbers: Flat) -> list[Flat]:
        ends = list(accumulate((e.count for e in self.equations), initial=0))
        return [numbers[start:end] for start, end in pairwise(ends)]

    def _solved(self, gamma: Sequence[Flat], efforts: Callable[[Link], Flat], b: Forces) -> list[Scalar]:
        free = [branch.pulled.innovations(efforts, b) for branch in self.branches]
        missing = [
            minus(own, branch.pulled.accelerations_along(nu))
            for own, branch, nu in zip(gamma, self.branches, free, strict=True)
        ]
        answer = self._answer(missing, efforts, b)
        for _ in range(ANSWERS - 1):
            answer = self._improved(answer, efforts, b)
        whole = Field(list(answer.axes.values))
        for branch, nu, multipliers in zip(self.branches, free, answer.multipliers, strict=True):
            vdot = accelerate(branch.part, self.q, branch.pulled.axes, branch.pulled.with_pulls(nu, multipliers))
            for link in branch.part.links:
                whole.values[link.index] = vdot[link]
        return generalized(self.tree, whole)

    def _answer(self, missing: Sequence[Flat], efforts: Callable[[Link], Flat], b: Forces) -> BranchAnswer:
        """Answer to γ - ε*ν of the branches and to forces on the trunk."""
        first = [branch.answered(r) for branch, r in zip(self.branches, missing, strict=True)]
        nu = innovate(self.trunk, self.q, self.axes, efforts, self._forces(first, b))
        vdot = accelerate(self.trunk, self.q, self.axes, nu)
        alpha = outward(
            self.trunk,
            lambda link, parent: link.phi(self.q).T @ parent + combination(link.S(self.q), vdot[link]),
            Motion.zero(),
        )
        multipliers = [
            minus(own, branch.answered(branch.moved(alpha))) for own, branch in zip(first, self.branches, strict=True)
        ]
        left = [branch.pulled.multipliers.softened(own) for branch, own in zip(self.branches, multipliers, strict=True)]
        return BranchAnswer(vdot, alpha, multipliers, left)

    def _improved(self, answer: BranchAnswer, efforts: Callable[[Link], Flat], b: Forces) -> BranchAnswer:
        """With what it leaves of the closures' equations and, by rounding, of the trunk's answered in turn."""
        pulls = self._forces(answer.multipliers, b)
        left = each(self.trunk, lambda link: pulls[link] + link.M(self.q) @ answer.alpha[link])

        def unbalanced(link: Link) -> Flat:
            spent = [J * x for J, x in zip(link.armature, answer.axes[link], strict=True)]
            return minus(efforts(link), spent)

        more = self._answer(answer.left, unbalanced, left)
        return BranchAnswer(
            each(self.trunk, lambda link: plus(answer.axes[link], more.axes[link])),
            each(self.trunk, lambda link: answer.alpha[link] + more.alpha[link]),
            [plus(x, y) for x, y in zip(answer.multipliers, more.multipliers, strict=True)],
            more.left,
        )

    def _forces(self, multipliers: Sequence[Flat], b: Forces) -> Field[Force]:
        """Load on the trunk's links: b - J_b*λ."""
        pulls = self._on_trunk(
            [branch.force(own) for branch, own in zip(self.branches, multipliers, strict=True)], Force.zero()
        )
        return each(self.trunk, lambda link: -pulls[link] if b is None else b[link] - pulls[link])

    def _on_trunk(self, values: Sequence[T], nothing: T) -> Field[T]:
        """One value for each branch, summed on the links they hold."""
        field = everywhere(self.trunk, nothing)
        for branch, value in zip(self.branches, values, strict=True):
            field.values[branch.holds.index] = field[branch.holds] + value
        return field


Branching = list[list[int]]
"""For each closure the indices of the links that it holds."""

STIFF = 1e3
"""The largest inverse pivot of a branch's Λ, its diagonal made one, that is far enough from a lost direction."""

_ASIDE = 0.3  # rad or m


def branching(tree: Tree, constraints: Sequence[Constraint]) -> Branching | None:
    """The branch of each closure; None where some closure has none, or may not have it somewhere."""
    if tree.has_mimics or tree.has_modes:
        return None
    found = _branches(tree, constraints)
    if found is None or not all(_move_freely(tree, constraints, found, aside) for aside in (0.0, _ASIDE)):
        return None
    return found


def _branches(tree: Tree, constraints: Sequence[Constraint]) -> Branching | None:
    """By what hangs where: each closure takes the smaller of the branches at its ends that no other one touches."""
    root = [min(link.index for link in tree.ancestors(link)) for link in tree.links]
    links: dict[int, list[int]] = {}
    for index, own in enumerate(root):
        links.setdefault(own, []).append(index)
    touched: list[list[int]] = []
    for constraint in constraints:
        if not isinstance(constraint, Between) or constraint.a.link is None or constraint.b.link is None:
            return None
        touched.append([root[constraint.a.link.index], root[constraint.b.link.index]])
    times = [own for ends in touched for own in set(ends)]
    found, taken = [], set[int]()
    for ends in touched:
        alone = [own for own in ends if times.count(own) == 1 and own not in taken]
        if not alone or len(set(ends)) < 2:  # shared with another closure, or within one branch
            return None
        own = min(alone, key=lambda own: (len(links[own]), own))
        found.append(links[own])
        taken.update(ends)
    return found


def _move_freely(tree: Tree, constraints: Sequence[Constraint], found: Branching, aside: float) -> bool:
    q = configured(tree, each(tree, lambda link: list(link.joint.neutral())))
    if aside:
        q = integrate(tree, q, [aside * (1.0 - 2.0 * ((i * 0.618) % 1.0)) for i in range(tree.nv)])
    found_equations, _ = equations(tree, q, [0.0] * tree.nv, constraints, 0.0, closed=True)
    for own, e in zip(found, found_equations, strict=True):
        branch = Branch(tree, q, [tree.links[k] for k in own], e)
        Lambda = branch.pulled.Lambda
        if not all(Lambda[i][i] > 0.0 for i in range(e.count)):
            return False
        size = [Lambda[i][i] ** 0.5 for i in range(e.count)]
        n = range(e.count)
        pivots = factorize([[Lambda[i][j] / (size[i] * size[j]) for j in n] for i in n]).d_inverse
        if not all(0.0 < x < STIFF for x in pivots):
            return False
    return True
