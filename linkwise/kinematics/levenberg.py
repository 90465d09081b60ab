"""Levenberg and Marquardt's steps within limits, as a routine: all passes of a state in compiled code.

A step is δ = -D J*(J D J* + μ)⁻¹e, or in other words -(J*J + μ D⁻¹)⁻¹J*e, where there are more equations than freedoms.
D is the metric of the freedoms with zeros for those that rest at a limit and would leave it. μ = c|e|² vanishes at a
solution, where the steps become Newton's at any rank of J (Yamashita and Fukushima 2001; Sugihara 2011 for robots);
c falls with each step that helps and grows with each that does not. A state whose error has not halved for some steps
has met a local minimum, and stops to make room for another start.

Motion along the null space leads, among the configurations that reach the goals, to one nearest to a preferred one. A
pass moves towards that as far as the equations allow, δ = z - D J*(J D J* + μ)⁻¹(e + J z) with z a share of the way
there, and corrects what that left of the error. It counts if the configuration is nearer and the goals are still met
well enough for :func:`reaching` to finish; the share grows and shrinks.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.factors import factorize
from linkwise.kinematics.problem import KinematicsProblem
from linkwise.spatial.scalar import Flat, Matrix, NamedNumbers, Scalar, either, is_zero, sqrt, where
from linkwise.trace.block import Block
from linkwise.trace.calls import traced
from linkwise.trace.program import Buffer, Call, Copy, Program, Statement, WhileAny

Code = Block | Program

RUNNING, REACHED, STUCK = 0.0, 1.0, 2.0
CONTROL = ("status", "damping", "waited", "halved", "passes", "left")
"""The loop's own state: ``waited`` passes since |e|² was below ``halved``; ``left`` passes in this call."""

_PATIENCE = 8.0
_PATIENCE_NEAR = 40.0  # beside a singular configuration the last digits come slowly
_NEAR = 1e-4  # of |e|²
FIRST_DAMPING = 0.1
_LEAST, _MOST = 1e-10, 1e10
_LONGEST = 1.0  # in one step, in units of the metric
_ROUNDING = 1e-13  # of the trace: keeps redundant equations from dividing by zero


def reaching(problem: KinematicsProblem) -> Program:
    """Program from a guess to a solution, or to where it gets stuck.

    Rows: q, x (what is aimed at), tolerance (of lengths, angles, closures), control; ``errors`` (a length, an angle,
    that of the closures) is stored.
    """
    m, n, nc = problem.rows, len(problem.active), len(CONTROL)
    sizes = {"q": problem.nq, "x": problem.aims, "e": m, "J": m * n, "control": nc, "tolerance": 3}

    def begin(q: Flat, x: Flat, control: Flat, tolerance: Flat) -> NamedNumbers:
        e, J = problem.equations(q, x)
        status, damping, waited, halved, passes, left = control
        cost = square(e)
        status = where((status <= RUNNING) & meets(problem, e, tolerance), REACHED, status)
        first = halved < 0.0
        state = [status, damping, waited, where(first, 0.5 * cost, halved), passes, left]
        return {"e": e, "J": flat(J), "control_next": state, "running": is_running(status, left)}

    def iterate(q: Flat, x: Flat, e: Flat, J: Flat, control: Flat, tolerance: Flat) -> NamedNumbers:
        status, damping, waited, halved, passes, left = control
        cost = square(e)
        there = problem.moved(q, step(problem, q, e, rows(J, n), damping))
        e_there, J_there = problem.equations(there, x)
        cost_there = square(e_there)
        goes = (status <= RUNNING) & (left > 0.0)
        better = goes & (cost_there < cost)
        lowered, raised = (
            where(damping > _LEAST, damping * 0.2, damping),
            where(damping < _MOST, damping * 8.0, damping),
        )
        now = where(better, cost_there, cost)
        halves = now < halved
        waited = where(halves, 0.0, waited + 1.0)
        met = better & meets(problem, e_there, tolerance)
        after = where(met, REACHED, where(waited > where(now < _NEAR, _PATIENCE_NEAR, _PATIENCE), STUCK, status))
        left_after = left - 1.0
        state = [
            where(goes, after, status),
            where(goes, where(better, lowered, raised), damping),
            where(goes, waited, control[2]),
            where(goes & halves, 0.5 * now, halved),
            where(goes, passes + 1.0, passes),
            where(goes, left_after, left),
        ]
        return {
            "q_next": either(better, there, q),
            "e_next": either(better, e_there, e),
            "J_next": either(better, flat(J_there), J),
            "control_next": state,
            "running": is_running(state[0], state[5]),
        }

    def finish(e: Flat) -> NamedNumbers:
        return {"errors": [sqrt(s) for s in worst(problem, e)]}

    first = traced("begin", begin, {k: sizes[k] for k in ("q", "x", "control", "tolerance")})
    again = traced("iterate", iterate, {k: sizes[k] for k in ("q", "x", "e", "J", "control", "tolerance")})
    last = traced("finish", finish, {"e": m})
    kept = (
        Buffer("q", problem.nq, load=True, store=True),
        Buffer("x", problem.aims, load=True),
        Buffer("tolerance", 3, load=True),
        Buffer("control", nc, load=True, store=True),
        Buffer("errors", 3, store=True),
    )
    return loop("inverse_kinematics", kept, first, again, last)


def loop(name: str, kept: Sequence[Buffer], first: Code, again: Code, last: Code | None = None) -> Program:
    """``first``, then ``again`` while any state runs; what ``again`` calls ``…_next`` takes the place of its inputs."""
    known = {buffer.name: buffer for buffer in kept}
    programs = [p for p in (first, again, last) if p is not None]
    for spec in (spec for program in programs for spec in (*program.inputs, *program.outputs)):
        known.setdefault(spec.name, Buffer(spec.name, spec.size))
    calls = [Call(p, tuple(a.name for a in p.inputs), tuple(a.name for a in p.outputs)) for p in programs]
    copies = [
        [Copy(a.name, a.name.removesuffix("_next")) for a in p.outputs if a.name.endswith("_next")] for p in programs
    ]
    statements: tuple[Statement, ...] = (calls[0], *copies[0], WhileAny("running", (calls[1], *copies[1])), *calls[2:])
    return Program(name, tuple(known.values()), statements)


def step(
    problem: KinematicsProblem, q: Flat, e: Flat, J: Matrix, damping: Scalar, wish: Flat | None = None
) -> list[Scalar]:
    """A step of the active freedoms that lowers the error; along the null space of J it follows the wish."""
    n = len(problem.active)
    D: list[Scalar] = list(problem.metric)
    z: list[Scalar] = [0.0] * n if wish is None else list(wish)
    for j, bound in enumerate(problem.bounds(q)):
        if bound is not None:
            x, lower, upper = bound
            push = z[j]
            for row, value in zip(J, e, strict=True):
                push = push - row[j] * value
            held = ((x <= lower) & (push < 0.0)) | ((x >= upper) & (push > 0.0))
            D[j], z[j] = where(held, 0.0, D[j]), where(held, 0.0, z[j])
    wanted = [
        _sum([-value, *(-(row[j] * z[j]) for j in range(n) if not is_zero(z[j]))])
        for row, value in zip(J, e, strict=True)
    ]
    mu = damping * square(e)
    dual = len(e) <= n
    A = [[_sum([a[j] * D[j] * b[j] for j in range(n)]) for b in J] for a in J] if dual else _normal(J, D)
    trace = _sum([A[i][i] for i in range(len(A))])
    mu = mu + trace * _ROUNDING + 1e-300
    if dual:
        y = factorize(_shifted(A, [mu] * len(A))).solve(wanted)
        found = [z[j] + D[j] * _sum([row[j] * value for row, value in zip(J, y, strict=True)]) for j in range(n)]
    else:  # with r² = D: (r J*J r + μ) s = r J*w, δ = z + r s
        right = [sqrt(D[j]) * _sum([row[j] * w for row, w in zip(J, wanted, strict=True)]) for j in range(n)]
        s = factorize(_shifted(A, [mu] * n)).solve(right)
        found = [z[j] + sqrt(D[j]) * s[j] for j in range(n)]
    longest: Scalar = 0.0
    for value, unit in zip(found, problem.metric, strict=True):
        size = abs(value) * unit**-0.5
        longest = where(size > longest, size, longest)
    shrink = where(longest > _LONGEST, _LONGEST / where(longest > _LONGEST, longest, 1.0), 1.0)
    return [value * shrink for value in found]


def meets(problem: KinematicsProblem, e: Flat, tolerance: Flat) -> Scalar:
    """Whether all errors are within their tolerances."""
    found: Scalar = True
    for kind, size in enumerate(worst(problem, e)):
        if not is_zero(size):
            good = size <= tolerance[kind] * tolerance[kind]
            found = good if found is True else found & good
    return found


def worst(problem: KinematicsProblem, e: Flat) -> list[Scalar]:
    """The largest square of an error of each kind, in m, rad and as the closures say."""
    found: list[Scalar] = [0.0, 0.0, 0.0]
    for group in problem.groups:
        size, known = square([e[i] * (1.0 / group.scale) for i in group.rows]), found[group.kind]
        found[group.kind] = size if is_zero(known) else where(size > known, size, known)
    return found


def _normal(J: Matrix, D: list[Scalar]) -> Matrix:
    n = len(D)
    return [[_sum([row[i] * row[j] for row in J]) * sqrt(D[i]) * sqrt(D[j]) for j in range(n)] for i in range(n)]


def _shifted(A: Matrix, mu: list[Scalar]) -> Matrix:
    return [[a + mu[i] if i == j else a for j, a in enumerate(row)] for i, row in enumerate(A)]


def is_running(status: Scalar, left: Scalar) -> Scalar:
    """1.0 where a state goes on, else 0.0."""
    return where((status <= RUNNING) & (left > 0.0), 1.0, 0.0)


def square(e: Flat) -> Scalar:
    """|e|²."""
    return _sum([x * x for x in e])


def _sum(values: list[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for value in values:
        if not is_zero(value):
            total = value if is_zero(total) else total + value
    return total


def flat(J: Matrix) -> list[Scalar]:
    """A matrix row by row."""
    return [x for row in J for x in row]


def rows(J: Flat, n: int) -> Matrix:
    """The matrix of n columns that is stored row by row."""
    return [list(J[k : k + n]) for k in range(0, len(J), n)]


SETTLED = 1.0
POSTURE_CONTROL = ("status", "share", "distance", "left")
FIRST_SHARE = 1.0
_LEAST_SHARE = 1e-4
_DAMPING = 1e-3
_ASTRAY = 1e-5  # of |e|²
_GAIN = 1e-13  # of the square of the distance: less is not worth a pass


def settling(problem: KinematicsProblem) -> Program:
    """Program from a solution to the nearest one. Rows: q, x, rest (nq), control."""
    m, n = problem.rows, len(problem.active)
    sizes = {
        "q": problem.nq,
        "x": problem.aims,
        "rest": problem.nq,
        "e": m,
        "J": m * n,
        "control": len(POSTURE_CONTROL),
    }

    def distance(q: Flat, rest: Flat) -> Scalar:
        way = problem.posture_step(q, rest)
        return square([x * unit**-0.5 for x, unit in zip(way, problem.metric, strict=True)])

    def begin(q: Flat, x: Flat, rest: Flat, control: Flat) -> NamedNumbers:
        e, J = problem.equations(q, x)
        status, share, _, left = control
        state = [status, share, distance(q, rest), left]
        return {"e": e, "J": flat(J), "control_next": state, "running": is_running(status, left)}

    def again(q: Flat, x: Flat, rest: Flat, e: Flat, J: Flat, control: Flat) -> NamedNumbers:
        status, share, before, left = control
        wish = [share * z for z in problem.posture_step(q, rest)]
        stepped = problem.moved(q, step(problem, q, e, rows(J, n), _DAMPING, wish))
        e_stepped, J_stepped = problem.equations(stepped, x)
        there = problem.moved(stepped, step(problem, stepped, e_stepped, J_stepped, _DAMPING))
        e_there, J_there = problem.equations(there, x)
        after_step = distance(there, rest)
        goes_on = (status <= RUNNING) & (left > 0.0)
        gain = before - after_step
        better = goes_on & (gain > 0.0) & (square(e_there) < _ASTRAY)
        ends = (better & (gain <= _GAIN * before)) | (~better & (share * 0.5 < _LEAST_SHARE))
        after = where(better, where(share < 0.7, share * 1.3, 1.0), share * 0.5)
        state = [
            where(goes_on & ends, SETTLED, status),
            where(goes_on, after, share),
            where(better, after_step, before),
            where(goes_on, left - 1.0, left),
        ]
        return {
            "q_next": either(better, there, q),
            "e_next": either(better, e_there, e),
            "J_next": either(better, flat(J_there), J),
            "control_next": state,
            "running": is_running(state[0], state[3]),
        }

    kept = (
        Buffer("q", problem.nq, load=True, store=True),
        Buffer("x", problem.aims, load=True),
        Buffer("rest", problem.nq, load=True),
        Buffer("control", len(POSTURE_CONTROL), load=True, store=True),
    )
    first = traced("begin", begin, {k: sizes[k] for k in ("q", "x", "rest", "control")})
    body = traced("again", again, {k: sizes[k] for k in ("q", "x", "rest", "e", "J", "control")})
    return loop("settling", kept, first, body)
