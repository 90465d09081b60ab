"""How the accelerations of a closed system are found, by name. Each is one answer to the same two questions.

================  =====================================================================================================
``"multipliers"``  λ first, inside the articulated recursion (:mod:`linkwise.algorithms.constrained`); what "auto" takes
``"kkt"``          the full system of v̇ and λ at once (:mod:`linkwise.algorithms.full_system`)
``"embedding"``    v̇ of independent freedoms, without multipliers (:mod:`linkwise.algorithms.embedded`)
``"nullspace"``    v̇ in the null space of J_c, with a rank test: on numbers only, one state after another, outside
                   the compiled code (:mod:`linkwise.model_api.null_space`)
================  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from linkwise.algorithms.constrained import Constrained
from linkwise.algorithms.embedded import Embedded
from linkwise.algorithms.equations import Constraint, Equations
from linkwise.algorithms.full_system import FullSystem
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.pivots import Pivots
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


class ClosureSolver(Protocol):
    """A closed system at one state."""

    equations: list[Equations]
    """Those of each constraint."""

    def push(self, accelerations: Flat) -> None:
        """Ask for these second derivatives of all equations (first ones, of rates) instead of zero."""

    def solve(self, tau: Flat, b: Forces = None) -> tuple[list[Scalar], list[Scalar]]:
        """v̇ (nv) and the multipliers λ of all equations."""

    def held(self, rates: Flat) -> tuple[list[Scalar], list[Scalar]]:
        """The change of v, least in kinetic energy, that changes J_c v by these amounts; and its impulses."""


TRACED: dict[str, Callable[..., ClosureSolver]] = {
    "auto": Constrained,
    "multipliers": Constrained,
    "kkt": FullSystem,
    "embedding": Embedded,
}
"""Solvers that are texts over any scalar."""

BY_NUMBERS = ("nullspace",)
"""Solvers that look at values, and so are no texts."""


def closure_solver(
    name: str,
    tree: Tree,
    q: Flat,
    v: Flat,
    constraints: Sequence[Constraint],
    t: Scalar,
    pivots: Callable[[], Pivots] | None = None,
) -> ClosureSolver:
    """The solver of this name; for symbols, those that look at values leave their place to the usual one.

    ``pivots``: for those that choose freedoms beforehand.
    """
    make = TRACED.get(name, Constrained)
    return make(tree, q, v, constraints, t) if pivots is None else make(tree, q, v, constraints, t, pivots)
