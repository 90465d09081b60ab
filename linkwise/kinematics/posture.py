"""Motion along the null space: among the configurations that reach the goals, to one nearest to a preferred one.

A pass moves towards the preferred configuration as far as the equations allow, δ = z - D J*(J D J* + μ)⁻¹(e + J z) with
z a share of the way there, and corrects what that left of the error. It counts if the configuration is nearer and the
goals are still met well enough for :func:`linkwise.kinematics.levenberg.reaching` to finish; the share grows and
shrinks.
"""

from __future__ import annotations

from linkwise.kinematics.levenberg import flat, is_running, loop, rows, square, step
from linkwise.kinematics.problem import KinematicsProblem
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, either, where
from linkwise.trace.calls import traced
from linkwise.trace.program import Buffer, Program

RUNNING, SETTLED = 0.0, 1.0
CONTROL = ("status", "share", "distance", "left")
FIRST_SHARE = 1.0
_LEAST_SHARE = 1e-4
_DAMPING = 1e-3
_ASTRAY = 1e-5  # of |e|²
_GAIN = 1e-13  # of the square of the distance: less is not worth a pass


def settling(problem: KinematicsProblem) -> Program:
    """Program from a solution to the nearest one. Rows: q, x, rest (nq), control."""
    m, n = problem.rows, len(problem.active)
    sizes = {"q": problem.nq, "x": problem.aims, "rest": problem.nq, "e": m, "J": m * n, "control": len(CONTROL)}

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
        Buffer("control", len(CONTROL), load=True, store=True),
    )
    first = traced("begin", begin, {k: sizes[k] for k in ("q", "x", "rest", "control")})
    body = traced("again", again, {k: sizes[k] for k in ("q", "x", "rest", "e", "J", "control")})
    return loop("settling", kept, first, body)
