"""Explicit steps: any Runge–Kutta method that is given as a tableau, and the semi-implicit Euler method.

Dense output looks through interpolants, sums of stages inside a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.tableaux import Row, Tableau
from linkwise.sim.tolerance import weighted_square
from linkwise.sim.work import Span, StepStatements, Work
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, sqrt, where
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Statement


def combination(row: Row, k: Sequence[Flat], i: int) -> Scalar:
    """Σ w_j k_j, one component of it."""
    total: Scalar = 0.0
    for stage, weight in row.items():
        total = total + k[stage][i] * weight
    return total


def advanced(motion: EquationsOfMotion, y: Flat, h: Scalar, row: Row, k: Sequence[Flat]) -> list[Scalar]:
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

        def by_powers(y: Flat, h: Flat, theta: Flat, *k: Flat) -> NamedNumbers:
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

    def nested(y: Flat, h: Flat, *k: Flat) -> NamedNumbers:
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

    def look(y: Flat, theta: Flat, bends: Flat) -> NamedNumbers:
        z = []
        for i, start in enumerate(m.chart_origin(y)):
            total: Scalar = 0.0
            for j in reversed(range(powers)):
                total = (total + bends[j * m.nz + i]) * (theta[0] if j % 2 == 0 else 1.0 - theta[0])
            z.append(start + total)
        return {"y_at": m.from_chart(y, z)}

    sizes = {"y": m.ny, "theta": 1, "bends": powers * m.nz}
    return tuple(extra), work.call(program("look", look, sizes))


def runge_kutta(work: Work, tableau: Tableau) -> StepStatements:
    """One step of an explicit method, given the first stage k0."""
    m = work.motion
    rates = work.rates
    names = [f"k{i}" for i in range(tableau.stages + len(tableau.extra_nodes))]
    work.buffer("h", 1)
    begin = work.rates_at("y", "t", "k0")

    def stage(i: int, node: float, row: Row) -> list[Statement]:
        used = sorted(row)

        def text(y: Flat, t: Flat, h: Flat, *k: Flat) -> NamedNumbers:
            by_stage = dict(zip(used, k, strict=True))
            z = advanced(m, y, h[0], row, [by_stage.get(j, ()) for j in range(i)])
            return {"z": z, "t_stage": t[0] + h[0] * node}

        sizes = {"y": m.ny, "t": 1, "h": 1, **{names[j]: m.nz for j in used}}
        return [*work.call(program(f"stage{i}", text, sizes)), *rates("y", "z", "t_stage", names[i])]

    advance: list[Statement] = []
    for i in range(1, tableau.stages):
        advance += stage(i, tableau.nodes[i], tableau.rows[i])
    used = sorted(tableau.weights)

    def finish(y: Flat, h: Flat, *k: Flat) -> NamedNumbers:
        by_stage = dict(zip(used, k, strict=True))
        z = advanced(m, y, h[0], tableau.weights, [by_stage.get(j, ()) for j in range(tableau.stages)])
        return {"y_new": m.from_chart(y, z)}

    advance += work.call(program("finish", finish, {"y": m.ny, "h": 1, **{names[j]: m.nz for j in used}}))
    if not tableau.adaptive:
        return StepStatements(begin, tuple(advance))

    rows = tableau.error
    judged = sorted({j for row in rows for j in row})

    def judge(y: Flat, y_new: Flat, t: Flat, h: Flat, p: Flat, span: Flat, *k: Flat) -> NamedNumbers:
        by_stage = dict(zip(judged, k, strict=True))
        every = [by_stage.get(j, ()) for j in range(tableau.stages)]
        errors = ([combination(row, every, i) for i in range(m.nz)] for row in rows)
        lasting = [m.lasting_error(t[0] + h[0], y_new, p, error, span[Span.RTOL]) for error in errors]
        squares = [weighted_square(m, y, y_new, span, error) for error in lasting]
        if len(squares) == 1:
            return {"err": h[0] * sqrt(squares[0] * (1.0 / m.nz))}
        blend = (squares[0] + squares[1] * 0.01) * float(m.nz)
        # Nothing moves: no error, instead of 0/0.
        return {"err": h[0] * squares[0] / sqrt(where(blend > 0.0, blend, 1.0))}

    sizes = {"y": m.ny, "y_new": m.ny, "t": 1, "h": 1, "p": m.np, "span": Span.SIZE}
    sizes |= {names[j]: m.nz for j in judged}
    judgement = work.call(program("judge", judge, sizes))

    if tableau.first_same_as_last:

        def carry_text(y: Flat, y_new: Flat, k: Flat) -> NamedNumbers:
            """In the chart around y_new, u̇ = v and axes are those of the step's end."""
            faster = m.in_axes_after(k[m.nv : 2 * m.nv], m.way(m.parts(y)[0], m.parts(y_new)[0]))
            return {"k_next": [*m.parts(y_new)[1], *faster, *k[2 * m.nv :]]}

        last = names[tableau.stages - 1]
        sizes = {"y": m.ny, "y_new": m.ny, last: m.nz}
        carry: tuple[Statement, ...] = work.call(program("carry", carry_text, sizes))
    else:
        carry = work.rates_at("y_new", "t_new", "k_next")
    dense, look = interpolant(work, tableau, names, stage)
    return StepStatements(begin, tuple(advance), judgement, carry, dense, look, tableau.error_order)


def semi_implicit_euler(work: Work) -> StepStatements:
    """v first, then q with the new v: first order, and symplectic where the mass matrix is constant."""
    m = work.motion

    def text(y: Flat, h: Flat, k0: Flat) -> NamedNumbers:
        _, w, x = m.chart_parts([a + h[0] * b for a, b in zip(m.chart_origin(y), k0, strict=True)])
        return {"y_new": m.from_chart(y, [*(h[0] * a for a in w), *w, *x])}

    step = work.call(program("step", text, {"y": m.ny, "h": 1, "k0": m.nz}))
    return StepStatements(work.rates_at("y", "t", "k0"), step)
