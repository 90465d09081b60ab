"""Accelerations under constraints: J_c v̇ = γ beside 𝓜v̇ = τ - Hφb + J_c*λ. Rodriguez 1989 §3, steps A–F, in one sweep.

In the innovations' form, 𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK], all that the multipliers need is gathered on the way in: with
ε = [I - HψK]J_c* the pulls' innovations and ν those of the free motion,

    Λ = ε*D⁻¹ε,    Λλ = γ - ε*ν,    v̇ = [I - HψK]*(ν + D⁻¹ελ),

so that constraints cost one more inward quantity and no more sweeps (Popov and Vereshchagin's order of elimination;
Rodriguez 1989 takes a sweep for each of its steps). O(n) for each row of J_c, and the solution for λ beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from linkwise.algorithms.articulated import accelerate, articulate, innovate, pull
from linkwise.algorithms.equations import Equations
from linkwise.algorithms.factors import FLOOR, Multipliers
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.pulls import Pulls, joined, mimic_pulls, of_freedoms, own_efforts
from linkwise.algorithms.sweeps import Field, each, everywhere, total
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Sweeps, Tree
from linkwise.spatial.scalar import Flat, Scalar, minus, plus


class ClosureSolver(ABC):
    """A closed system at one state: the equations of each constraint, and the pulls of all of them together."""

    def __init__(self, tree: Tree, q: Flat, found: tuple[list[Equations], Pulls]) -> None:
        self.tree, self.q = tree, q
        self.equations, self.pulls = found
        self.gamma: list[Scalar] = [-x for e in self.equations for x in e.bias]
        """γ of J_c v̇ = γ."""

    def push(self, accelerations: Flat) -> None:
        """Ask for these second derivatives of all equations (first ones, of rates) instead of zero."""
        self.gamma = plus(self.gamma, accelerations)

    @abstractmethod
    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""

    @abstractmethod
    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v, least in kinetic energy, that changes J_c v by these amounts; and its impulses."""

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """v̇ alone."""
        return self.solve(tau, b)[0]

    def project(self, rates: Flat) -> list[Scalar]:
        """The change of v alone."""
        return self.held(rates)[0]


def refuse_rolled(tree: Tree, name: str) -> None:
    """For solvers that write their system out: they do not run as loops over links."""
    if tree.rolls:
        raise InputError(
            f'the closure solver "{name}" has no rolled form',
            do='use with_closure_solver("auto"), or with_sweeps("unrolled")',
        )


@dataclass(frozen=True, slots=True)
class Sums:
    """Several numbers that are added one by one."""

    numbers: tuple[Scalar, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(tuple(a + b for a, b in zip(self.numbers, other.numbers, strict=True)))


class PulledTree:
    """A tree with its articulated inertias, and what unit pulls do to it: Λ and the innovations ε."""

    def __init__(
        self,
        tree: Sweeps,
        q: Flat,
        pulls: Pulls,
        *,
        sure: bool = False,
        floor: float = FLOOR,
    ) -> None:
        self.tree, self.q, self.count = tree, q, pulls.count
        self.axes = articulate(tree, q)
        self.eps, self.Lambda = pull(tree, q, self.axes, pulls)
        looped = tree.looped_system
        self.multipliers = Multipliers(self.Lambda, sure=sure, floor=floor, looped=looped)

    def innovations(self, efforts: Callable[[Link], Flat], b: Forces) -> Field[list[Scalar]]:
        """ν of the free motion."""
        return innovate(self.tree, self.q, self.axes, efforts, b)

    def accelerations_along(self, nu: Field[list[Scalar]]) -> list[Scalar]:
        """J_c v̇ of the motion with innovations ν: ε*ν."""

        def own(link: Link) -> Sums:
            sums: list[Scalar] = [0.0] * self.count
            for eps, x in zip(self.eps[link], nu[link], strict=True):
                sums = [s + e * x for s, e in zip(sums, eps, strict=True)]
            return Sums(tuple(sums))

        return list(total(self.tree, own, Sums((0.0,) * self.count)).numbers)

    def with_pulls(self, nu: Field[list[Scalar]], multipliers: Flat) -> Field[list[Scalar]]:
        """ν + D⁻¹ελ."""
        shared = everywhere(self.tree, tuple(multipliers))

        def step(link: Link) -> list[Scalar]:
            moved = []
            for axis, eps, x in zip(self.axes[link], self.eps[link], nu[link], strict=True):
                pulled: Scalar = 0.0
                for e, l in zip(eps, shared[link], strict=True):
                    pulled = pulled + e * l
                moved.append(x + pulled * axis.d_inverse)
            return moved

        return each(self.tree, step)

    def axis_accelerations(
        self, efforts: Callable[[Link], Flat], b: Forces, gamma: Flat
    ) -> tuple[Field[list[Scalar]], list[Scalar]]:
        """The acceleration of every axis with J_c v̇ = γ, and λ."""
        nu = self.innovations(efforts, b)
        missing = minus(gamma, self.accelerations_along(nu))
        multipliers = self.multipliers.solve(missing)
        vdot = accelerate(self.tree, self.q, self.axes, self.with_pulls(nu, multipliers))
        return vdot, self.multipliers.of_least_norm(multipliers)


class Constrained(ClosureSolver):
    """The accelerations that closures and couplings allow, and the multipliers that hold them."""

    def __init__(self, tree: Tree, q: Flat, found: tuple[list[Equations], Pulls]) -> None:
        super().__init__(tree, q, found)
        self.count = self.pulls.count
        # A joint that follows another is one more coupling.
        pulls = joined(self.pulls, mimic_pulls(tree)) if tree.has_mimics else self.pulls
        self.pulled = PulledTree(tree, q, pulls)

    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations, in order."""
        gamma = self.gamma + [0.0] * (self.pulled.count - self.count)
        vdot, multipliers = self.pulled.axis_accelerations(lambda link: own_efforts(link, tau), b, gamma)
        return of_freedoms(self.tree, vdot), multipliers[: self.count]

    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v, least in kinetic energy, that takes J_c v by these amounts, and its impulses P.

        δv = 𝓜⁻¹J_c*P with P = Λ⁺ rates.
        """
        still = each(self.tree, lambda link: [0.0] * link.joint.nv)
        missing = [*rates, *[0.0] * (self.pulled.count - self.count)]
        impulses = self.pulled.multipliers.solve(missing)
        nu = self.pulled.with_pulls(still, impulses)
        change = of_freedoms(self.tree, accelerate(self.tree, self.pulled.q, self.pulled.axes, nu))
        return change, self.pulled.multipliers.of_least_norm(impulses)[: self.count]
