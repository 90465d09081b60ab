"""A Rosenbrock method with the exact Jacobian, for stiff springs, dampers and friction.

Linearly implicit: each stage solves one linear system with the same matrix I/(hγ) - J, so there is no iteration that
could fail, and a step is a straight line of programs like any other. J comes from the library's linearised forward
dynamics and, for what acts on the joints, from dual numbers; entries that are constant are folded before the matrix is
factored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.mechanism.parameters import Values
from linkwise.sim.chart import Instant
from linkwise.sim.explicit import combination
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.tableaux import RODAS4, Rosenbrock
from linkwise.sim.tolerance import weighted_square
from linkwise.sim.work import Span, StepStatements, Work
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Flat, Matrix, NamedNumbers, Scalar, is_zero, minus, sqrt
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Copy, Statement, columns
from linkwise.trace.tiles import TiledSystem


def jacobian(m: EquationsOfMotion, y: Flat, t: Scalar, p: Flat) -> tuple[Matrix, list[Scalar]]:
    """∂ż/∂z (nz × nz) at the chart's centre, and ∂ż/∂t (nz)."""
    nv, nz = m.nv, m.nz
    now = m.at(t, y, p)
    at = [*m.chart_origin(y), t]
    directions = [[1.0 if i == j else 0.0 for i in range(nz + 1)] for j in range(nz + 1)]
    outside = m.body_forces(m.in_force(now))
    # Forces on bodies, and constants that vary, change with the state in ways only the whole text knows.
    if outside is not None or m.varying.elements:
        columns = [derivative(lambda s: m.rates(y, s[:nz], s[nz], p), at, direction)[1] for direction in directions]
    else:
        tau, _ = m.all_forces(now)
        lin = m.model.linearize_forward(objects(now.q), objects(now.v), objects(tau), p=m.model_parameters(p))

        def speeds(s: Flat) -> list[Scalar]:
            return m.in_axes_after(s[nv : 2 * nv], s[:nv])

        def still(s: Flat) -> list[Scalar]:
            """ẇ with v̇ as it is."""
            turning = m.axes_rate(speeds(s))
            return m.in_axes_after(minus(lin.vdot, turning), [-x for x in s[:nv]])

        def forces(s: Flat) -> list[Scalar]:
            there = Instant(s[nz], m.moved(now.q, s[:nv]), speeds(s), [*s[2 * nv : nz], *m.kept(y)], p)
            return [*m.all_forces(there)[0], *m.element_rates(there)]

        columns = []
        for j, direction in enumerate(directions):
            moved = derivative(forces, at, direction)[1]
            chart = derivative(lambda s: m.chart_rate(s[:nv], s[nv:]), at[: 2 * nv], direction[: 2 * nv])[1]
            faster = derivative(speeds, at, direction)[1]
            vdot = []
            for i, turned in enumerate(derivative(still, at, direction)[1]):
                total: Scalar = turned + (lin.dq[i, j] if j < nv else 0.0)
                for k in range(nv):
                    if not is_zero(faster[k]):
                        total = total + lin.dv[i, k] * faster[k]
                    if not is_zero(moved[k]):
                        total = total + lin.dtau[i, k] * moved[k]
                vdot.append(total)
            columns.append([*chart, *vdot, *moved[nv:]])
    J = [[columns[j][i] for j in range(nz)] for i in range(nz)]
    return J, list(columns[nz])


def add_elasticity(A: Matrix, m: EquationsOfMotion, p: Flat, by_place: Scalar, by_rate: Scalar) -> None:
    """Add K by_place + D by_rate of the bodies that deform to a matrix over the velocities."""
    values = Values(m.model, m.model_parameters(p))
    for body in m.model.bodies:
        if body.flexible is None:
            continue
        k, d = values.elasticity(body)
        for part, factor in ((body.flexible.stiffness, by_place * k), (body.flexible.damping, by_rate * d)):
            for i, j in zip(*np.nonzero(part), strict=True):
                row, column = body.v_slice.start + int(i), body.v_slice.start + int(j)
                A[row][column] = A[row][column] + float(part[i, j]) * factor


def factorized(A: Matrix) -> Matrix:
    """L (below the diagonal, unit) and U, without pivoting, with the diagonal of U inverted.

    The coordinates come first, with 1/(hγ) on their diagonal; what is left for the velocities is 𝓜⁻¹ times
    𝓜/(hγ) + D + hγ K, which is positive where springs and dampers are.
    """
    n = len(A)
    A = [list(row) for row in A]
    for k in range(n):
        A[k][k] = 1.0 / A[k][k]
        for i in range(k + 1, n):
            if is_zero(A[i][k]):
                continue
            A[i][k] = A[i][k] * A[k][k]
            for j in range(k + 1, n):
                if not is_zero(A[k][j]):
                    A[i][j] = A[i][j] - A[i][k] * A[k][j]
    return A


def solved(LU: Matrix, b: Sequence[Scalar]) -> list[Scalar]:
    """The solution of A x = b."""
    n = len(b)
    x = list(b)
    for i in range(n):
        for j in range(i):
            if not is_zero(LU[i][j]):
                x[i] = x[i] - LU[i][j] * x[j]
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            if not is_zero(LU[i][j]):
                x[i] = x[i] - LU[i][j] * x[j]
        x[i] = x[i] * LU[i][i]
    return x


class PackedFactors:
    """Factors of a matrix, every operation on its own, as numbers of a program: constants are kept out of it."""

    def __init__(self, n: int) -> None:
        self.constants: list[list[float | None]] = [[None] * n for _ in range(n)]

    def packed(self, A: Matrix) -> list[Scalar]:
        """The factors of a matrix (n × n) that are no constants."""
        LU = factorized(A)
        self.constants = [[float(x) if isinstance(x, (int, float)) else None for x in row] for row in LU]
        return [x for row in LU for x in row if not isinstance(x, (int, float))]

    def solved(self, packed: Flat, b: Sequence[Scalar]) -> list[Scalar]:
        """The solution of A x = b."""
        entries = iter(packed)
        return solved([[next(entries) if c is None else c for c in row] for row in self.constants], b)


@dataclass(frozen=True)
class _StageSystem:
    """I/(hγ) - J: the statements that factor it at y, t, and those that solve with it.

    ``solve(i)`` makes u_i from the rates in ``f_stage`` (``k0`` for the first) and the u before it.
    """

    factor: tuple[Statement, ...]
    solve: Callable[[int], tuple[Statement, ...]]


def rosenbrock(work: Work, method: Rosenbrock = RODAS4) -> StepStatements:
    """One step of a stiffly accurate Rosenbrock method."""
    m, nz = work.motion, work.motion.nz
    rates = work.rates
    names = _stage_names(method)
    # Accelerations under constraints are long texts, whose derivatives in all directions are not written out.
    in_tiles = m.model._rolls or bool(m.model.closures)
    system = _in_tiles(work, method) if in_tiles else _written_out(work, method)
    advance: list[Statement] = [*system.factor]
    for i in range(len(method.alpha)):
        if i:

            def place(y: Flat, t: Flat, h: Flat, *u: Flat, i: int = i) -> NamedNumbers:
                start = m.chart_origin(y)
                z = [start[k] + combination(method.a[i], u, k) for k in range(nz)]
                return {"z": z, "t_stage": t[0] + h[0] * method.alpha[i]}

            sizes = {"y": m.ny, "t": 1, "h": 1, **dict.fromkeys(names[:i], nz)}
            advance += [*work.call(program(f"place{i}", place, sizes)), *rates("y", "z", "t_stage", "f_stage")]
        advance += system.solve(i)

    last = len(names) - 1

    def finish(y: Flat, *u: Flat) -> NamedNumbers:
        start = m.chart_origin(y)
        z = [start[k] + combination(method.a[last], u, k) + u[last][k] for k in range(nz)]
        return {"y_new": m.from_chart(y, z)}

    advance += work.call(program("finish", finish, {"y": m.ny, **dict.fromkeys(names, nz)}))

    def judge(y: Flat, y_new: Flat, t: Flat, h: Flat, p: Flat, span: Flat, u: Flat) -> NamedNumbers:
        lasting = m.lasting_error(t[0] + h[0], y_new, p, u, span[Span.RTOL])
        return {"err": sqrt(weighted_square(m, y, y_new, span, lasting) * (1.0 / nz))}

    sizes = {"y": m.ny, "y_new": m.ny, "t": 1, "h": 1, "p": m.np, "span": Span.SIZE, names[last]: nz}
    judging = program("judge", judge, sizes)
    return StepStatements(
        work.rates_at("y", "t", "k0"),
        tuple(advance),
        work.call(judging),
        work.rates_at("y_new", "t_new", "k_next"),
        None,
        (),
        method.error_order,
    )


def _stage_names(method: Rosenbrock) -> list[str]:
    return [f"u{i}" for i in range(len(method.alpha))]


def _right(method: Rosenbrock, i: int, slope: Flat, h: Scalar, f: Flat, u: Sequence[Flat]) -> list[Scalar]:
    """The right side of stage i."""
    over = 1.0 / h
    return [f[k] + over * combination(method.c[i], u, k) + (h * method.gammas[i]) * slope[k] for k in range(len(f))]


def _written_out(work: Work, method: Rosenbrock) -> _StageSystem:
    """Every operation on its own: for few freedoms, where constants of the factors fold."""
    m, nz, names = work.motion, work.motion.nz, _stage_names(method)
    factors = PackedFactors(nz)

    def linear(y: Flat, t: Flat, h: Flat, p: Flat) -> NamedNumbers:
        J, slope = jacobian(m, y, t[0], p)
        diagonal = 1.0 / (h[0] * method.gamma)
        A = [[(diagonal if i == j else 0.0) - J[i][j] for j in range(nz)] for i in range(nz)]
        return {"factors": factors.packed(A), "slope": slope}

    factoring = program("linearize", linear, {"y": m.ny, "t": 1, "h": 1, "p": m.np})
    n_factors = factoring.outputs[0].size

    def solve(i: int) -> tuple[Statement, ...]:
        def text(packed: Flat, slope: Flat, h: Flat, f: Flat, *u: Flat) -> NamedNumbers:
            return {names[i]: factors.solved(packed, _right(method, i, slope, h[0], f, u))}

        sizes = {"factors": n_factors, "slope": nz, "h": 1, "f_stage": nz, **dict.fromkeys(names[:i], nz)}
        return work.call(program(f"solve{i}", text, sizes), {"f_stage": "f_stage" if i else "k0"})

    return _StageSystem(work.call(factoring), solve)


def _in_tiles(work: Work, method: Rosenbrock) -> _StageSystem:
    """J column by column along unit vectors, factored by tiles: for many freedoms, compiled in constant time."""
    m, nv, nz, names = work.motion, work.motion.nv, work.motion.nz, _stage_names(method)
    pattern = np.zeros((nz, nz), bool)
    pattern[nv:] = True
    for joint in m._own_joints:  # u̇ of a joint is its own affair
        i = np.arange(joint.v_slice.start, joint.v_slice.stop)
        pattern[np.ix_(i, [*i, *(i + nv)])] = True
    system = TiledSystem(pattern, nz + 1)

    def change(y: Flat, t: Flat, p: Flat, unit: Flat) -> NamedNumbers:
        at = [*m.chart_origin(y), t[0]]
        return {"column": derivative(lambda s: m.rates(y, s[:nz], s[nz], p), at, unit)[1]}

    sizes = {"y": m.ny, "t": 1, "p": m.np, "unit": nz + 1}
    column = work.call(program("change", change, sizes))
    shifting = program("shift", lambda h: {"shift": 1.0 / (h[0] * method.gamma)}, {"h": 1})
    work.buffer("matrix", nz * (nz + 1))
    work.buffer("slope", nz)
    factor: tuple[Statement, ...] = (
        columns("unit", nz + 1, "column", nz, "matrix", column),
        Copy("column", "slope"),  # the last one, along t
        *work.call(shifting),
        *work.call(system.factor),
    )

    def solve(i: int) -> tuple[Statement, ...]:
        def text(slope: Flat, h: Flat, f: Flat, *u: Flat) -> NamedNumbers:
            return {"right": _right(method, i, slope, h[0], f, u)}

        sizes = {"slope": nz, "h": 1, "f_stage": nz, **dict.fromkeys(names[:i], nz)}
        made = work.call(program(f"right{i}", text, sizes), {"f_stage": "f_stage" if i else "k0"})
        return (*made, *work.call(system.solve, {"x": names[i]}))

    return _StageSystem(factor, solve)
