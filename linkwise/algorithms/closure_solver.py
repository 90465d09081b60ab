"""Interface of solvers of a closed system: one class, two questions."""

from __future__ import annotations

from abc import ABC, abstractmethod

from linkwise.algorithms.equations import Equations
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.errors import InputError
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Scalar


class ClosureSolver(ABC):
    """A closed system at one state."""

    equations: list[Equations]
    """Those of each constraint."""

    @abstractmethod
    def push(self, accelerations: Flat) -> None:
        """Ask for these second derivatives of all equations (first ones, of rates) instead of zero."""

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
