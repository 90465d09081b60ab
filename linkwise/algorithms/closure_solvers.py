"""How the accelerations of a closed system are found, by name. Each is one answer to the same two questions.

=================  ====================================================================================================
``"auto"``         "branches" where it can be, else "multipliers"
``"multipliers"``  λ first, inside the articulated recursion (:mod:`linkwise.algorithms.constrained`)
``"branches"``     what one closure each holds first, as inertia (:mod:`linkwise.algorithms.branches`)
``"kkt"``          the full system of v̇ and λ at once (:mod:`linkwise.algorithms.full_system`)
``"embedding"``    v̇ of independent freedoms, without multipliers (:mod:`linkwise.algorithms.embedded`)
``"nullspace"``    v̇ in the null space of J_c, with a rank test: on numbers only, one state after another, outside
                   the compiled code (:mod:`linkwise.model.null_space`)
=================  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.branches import Branches
from linkwise.algorithms.constrained import ClosureSolver, Constrained
from linkwise.algorithms.embedded import Embedded
from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.full_system import FullSystem
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Scalar

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
