"""Inside a step: sums of stages, and the interpolants that dense output looks through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.sim.motion import Flat, Motion
from linkwise.sim.tableaux import Row, Tableau
from linkwise.sim.work import Work, program
from linkwise.spatial.scalar import Scalar
from linkwise.trace.program import Statement


def combination(row: Row, k: Sequence[Flat], i: int) -> Scalar:
    """Σ w_j k_j, one component of it."""
    total: Scalar = 0.0
    for stage, weight in row.items():
        total = total + k[stage][i] * weight
    return total


def advanced(motion: Motion, y: Flat, h: Scalar, row: Row, k: Sequence[Flat]) -> list[Scalar]:
    """z + h Σ a_j k_j in the chart around y."""
    start = motion.chart_origin(y)
    return [start[i] + h * combination(row, k, i) for i in range(motion.nz)]


def interpolant(
    work: Work, tableau: Tableau, names: list[str], stage: Callable[[int, float, Row], list[Statement]]
) -> tuple[tuple[Statement, ...] | None, tuple[Statement, ...]]:
    """Statements before the first look into a step, and those of a look: theta to y_at.

    None and nothing for methods without an interpolant.
    """
    m = work.motion
    if tableau.dense is not None:
        table = tableau.dense
        used = sorted(table)

        def by_powers(y: Flat, h: Flat, theta: Flat, *k: Flat) -> dict[str, Any]:
            weights: Row = {}
            for n, j in enumerate(used):
                total: Scalar = 0.0
                for coefficient in reversed(table[j]):
                    total = (total + coefficient) * theta[0]
                weights[n] = total
            return {"y_at": m.from_chart(y, advanced(m, y, h[0], weights, k))}

        sizes = {"y": m.ny, "h": 1, "theta": 1, **{names[j]: m.nz for j in used}}
        return (), work.call(program("look", by_powers, sizes))
    if not tableau.nested:
        return None, ()
    first = tableau.stages
    extra: list[Statement] = []
    for n, (node, row) in enumerate(zip(tableau.extra_nodes, tableau.extra_rows, strict=True)):
        extra += stage(first + n, node, row)
    used = sorted({0, first - 1, *tableau.weights, *(j for row in tableau.nested for j in row)})

    def nested(y: Flat, h: Flat, *k: Flat) -> dict[str, Any]:
        by_stage = dict(zip(used, k, strict=True))
        every = [by_stage.get(j, ()) for j in range(max(used) + 1)]
        columns = []
        for i in range(m.nz):
            delta = h[0] * combination(tableau.weights, every, i)
            f_0, f_1 = h[0] * every[0][i], h[0] * every[first - 1][i]
            higher = [h[0] * combination(row, every, i) for row in tableau.nested]
            columns.append([delta, f_0 - delta, 2.0 * delta - (f_1 + f_0), *higher])
        return {"bends": [column[j] for j in range(len(columns[0])) for column in columns]}

    powers = 3 + len(tableau.nested)
    sizes = {"y": m.ny, "h": 1, **{names[j]: m.nz for j in used}}
    extra += work.call(program("bends", nested, sizes))

    def look(y: Flat, theta: Flat, bends: Flat) -> dict[str, Any]:
        z = []
        for i, start in enumerate(m.chart_origin(y)):
            total: Scalar = 0.0
            for j in reversed(range(powers)):
                total = (total + bends[j * m.nz + i]) * (theta[0] if j % 2 == 0 else 1.0 - theta[0])
            z.append(start + total)
        return {"y_at": m.from_chart(y, z)}

    sizes = {"y": m.ny, "theta": 1, "bends": powers * m.nz}
    return tuple(extra), work.call(program("look", look, sizes))
