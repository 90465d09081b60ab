"""Which equation of a closed system determines which freedom: pivots of J_c at a reference configuration.

Chosen on numbers, before a text is traced. Rows have length one; of the entries that are large enough to divide by, the
one whose row and column have fewest others is taken (Markowitz), so that each loop keeps to its own freedoms; of equals
the one that concerns fewest equations and is furthest from the base, so that what drives the others stays free. What is
left of the rows when no pivot is left is redundant, and the columns left are independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from linkwise.algorithms.equations import Constraint, equations
from linkwise.errors import InputError
from linkwise.mechanism.closures.reference import Reference
from linkwise.mechanism.tree import Tree

Pivots = list[tuple[int, int]]
"""Equation and freedom (its place in v), in the order in which they were chosen."""

LOST = 1e-8
"""Largest remainder of a row of length one that follows from others; and a residual of a closed reference."""

LARGE = 0.1
"""How large a pivot is at least, relative to the largest."""

_TINY = 1e-12


def reference_pivots(tree: Tree, constraints: Sequence[Constraint], reference: Reference) -> Pivots:
    """The pivots of J_c at the reference, none of them in the columns that are to be independent."""
    each, pulls = equations(tree, reference.q, [0.0] * tree.nv, constraints, reference.t)
    J_c = pulls.generalized(tree, reference.q)
    if not all(isinstance(x, (float, int)) for row in J_c for x in row):
        raise InputError(
            'the closure solver "embedding" needs closures that stay as they are',
            got="closures that may be attached and released",
            do='use with_closure_solver("auto")',
        )
    open_by = max((abs(x) for e in each for x in e.residual), default=0.0)
    if not open_by <= LOST:
        raise InputError(
            "the configuration at which independent freedoms were chosen does not close any more",
            got=f"a residual of {open_by:.3g} there",
            allowed=f"up to {LOST:g}",
            do='choose again: model.with_closure_solver("embedding", at=q), after the closures have changed',
        )
    found, left = pivots(J_c, reference.independent)
    if left > LOST:
        names = [f"{link.joint_name!r}" for link in tree.links if link.v_start in reference.independent]
        raise InputError(
            "the closures do not leave these freedoms independent of each other",
            got=", ".join(names),
            allowed="freedoms that can be given any rates, all at once, at the reference configuration",
            do='name others, or none: model.with_closure_solver("embedding")',
        )
    return found


def pivots(J_c: Sequence[Sequence[float]], independent: Sequence[int] = ()) -> tuple[Pivots, float]:
    """The pivots of a matrix in all but some columns, and the largest number that they leave in those."""
    rows = {r: _unit(row) for r, row in enumerate(J_c)}
    columns = {c for row in rows.values() for c in range(len(row))} - set(independent)
    shared = {c: sum(abs(row[c]) > _TINY for row in rows.values()) for c in columns}
    found: Pivots = []
    while rows and columns:
        most = max(abs(row[c]) for row in rows.values() for c in columns)
        if most <= LOST:
            break
        in_row = {r: sum(abs(row[c]) > _TINY for c in columns) for r, row in rows.items()}
        in_column = {c: sum(abs(row[c]) > _TINY for row in rows.values()) for c in columns}
        large = [(r, c) for r, row in rows.items() for c in columns if abs(row[c]) >= LARGE * most]
        r, c = min(large, key=lambda at: ((in_row[at[0]] - 1) * (in_column[at[1]] - 1), shared[at[1]], -at[1], at[0]))
        pivot = rows.pop(r)
        columns.remove(c)
        found.append((r, c))
        for other, row in rows.items():
            factor = row[c] / pivot[c]
            rows[other] = [x - factor * y for x, y in zip(row, pivot, strict=True)]
    return found, max((abs(row[c]) for row in rows.values() for c in independent), default=0.0)


def _unit(row: Sequence[float]) -> list[float]:
    """Of length one, so that no equation counts less for its units; what has no effect stays zero."""
    size = math.hypot(*row)
    return [x / size if size > _TINY else 0.0 for x in row]
