"""Optimal control by shooting: the best controls over a horizon, with limits, from any guess of the motion.

A horizon has N steps, with states between them that may be guessed freely: where a step does not lead to the next state
there is a gap, which closes on the way (multiple shooting). Each iteration linearises all steps in one call, finds
feedback gains by a Riccati recursion, and runs the horizon under feedback with eight lengths of step side by side, one
in each lane; the longest that makes enough progress is taken. Without gaps this is the method known as iLQR, with them
as FDDP. Limits enter by an augmented Lagrangian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.control.riccati import Riccati
from linkwise.control.stages import Steps
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.model.state_space import checked_dt

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.trajectory import Trajectory

_SHARES = 0.5 ** np.arange(8.0)  # of the step; as many as lanes of the widest registers
_ENOUGH = 1e-4  # of the progress that a linear cost would make
_LEAST_DAMPING, _MOST_DAMPING = 1e-9, 1e9


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion over a horizon of N steps, with the controls that cause it.

    Attributes:
        t: times (N + 1), s.
        q: configurations (N + 1, nq).
        v: velocities (N + 1, nv).
        u: controls (N, m), each held for a step.
        gains: K (N, m, 2 nv): the best controls near the plan are u + K [q ⊖ q_plan; v - v_plan].
        cost: what the motion costs, without the limits' share.
        iterations: how many were made.
        status: ``"done"``, ``"iterations"`` where there were not enough of them, or ``"stuck"`` where no step helps.
        gap: the largest distance between where a step leads and the next state.
        excess: how far the worst limit is exceeded; zero without limits.
        multipliers, end_multipliers: of the limits (N, c) and of the conditions at the end: a later solution starts
            with them.
        weight: of the augmented Lagrangian.
    """

    model: Model
    t: Array
    q: Array
    v: Array
    u: Array
    gains: Array
    cost: float
    iterations: int
    status: str
    gap: float
    excess: float
    multipliers: Array = field(repr=False)
    end_multipliers: Array = field(repr=False)
    weight: float = field(repr=False)

    def shifted(self, steps: int = 1) -> Plan:
        """The plan as seen some steps later, its last state repeated: the start of the next solution in a loop."""
        kept = {
            name: np.concatenate([array[steps:], np.repeat(array[-1:], steps, axis=0)])
            for name in ("q", "v", "u", "gains", "multipliers")
            for array in (getattr(self, name),)
        }
        return Plan(**{**self.__dict__, **kept, "t": self.t + self.t[steps]})

    @property
    def motion(self) -> Trajectory:
        """The motion as a trajectory: to be seen, drawn and saved."""
        from linkwise.sim.trajectory import Trajectory

        return Trajectory(self.t, self.q, self.v, model=self.model, method="shooting")


class Shooting:
    """An optimal control problem over a horizon, compiled once and solved as often as needed.

    A cost is a number, of which exact second derivatives are taken, or a vector of residuals: then it is half its
    square, with the second derivatives of Gauss and Newton, which are cheap and never negative. Costs are summed over
    the steps. All functions are traced: no branches on values.

    Args:
        model: the mechanism, without closures.
        steps: N, how many steps the horizon has.
        dt: length of a step, s.
        running: ``running(model, q, v, u)``: what a step costs.
        terminal: ``terminal(model, q, v)``: what the end costs.
        below: ``below(model, q, v, u)``: what must not be above zero at any step.
        end_below, end_zero: ``(model, q, v)``: what must not be above zero at the end, and what must be zero there: the
            terminal set.
        limits: whether the model's limits of positions, velocities and efforts hold too, at every step.
        actuated: names of the joints with motors, as for :meth:`linkwise.Model.state_space`; all but floating bases if
            not given.
        method: ``"euler"`` (speeds first, then positions with the new speeds) or ``"rk4"``.
        goal: how many numbers of a goal all functions take as a last argument; :meth:`solve` gives their values.

    Example:
        >>> import numpy as np
        >>> from linkwise import control, samples
        >>> arm = samples.planar_arm(2)
        >>> problem = control.Shooting(
        ...     arm, 50, 0.02,
        ...     running=lambda model, q, v, u: 0.1 * u,
        ...     terminal=lambda model, q, v: 10.0 * np.concatenate([q - 1.0, v]),
        ... )
        >>> plan = problem.solve([0.0, 0.0])
        >>> plan.status, bool(np.abs(plan.q[-1] - 1.0).max() < 0.02)
        ('done', True)
    """

    def __init__(
        self,
        model: Model,
        steps: int,
        dt: float,
        *,
        running: Callable[..., Any],
        terminal: Callable[..., Any] | None = None,
        below: Callable[..., Any] | None = None,
        end_below: Callable[..., Any] | None = None,
        end_zero: Callable[..., Any] | None = None,
        limits: bool = False,
        actuated: Sequence[str] | None = None,
        method: str = "euler",
        goal: int = 0,
    ) -> None:
        if model.closures:
            raise InputError(
                "shooting takes mechanisms without closures",
                got=", ".join(closure.name for closure in model.closures),
                do="embed them, or give their residuals as end_zero and in the cost",
            )
        if isinstance(steps, bool) or steps != int(steps) or steps < 1:
            raise InputError("a horizon has at least one step", got=repr(steps), allowed="1, 2, 3, …")
        if method not in ("euler", "rk4"):
            raise InputError("there is no such step", got=repr(method), allowed='"euler" or "rk4"')
        self.model, self.count, self.goal = model, int(steps), int(goal)
        motors = model.statics.actuation_matrix(actuated)
        if limits:
            below = _with_limits(model, motors, below)
        self.steps = Steps(
            model, checked_dt(dt), method, motors, running, terminal, below, end_below, end_zero, int(goal)
        )
        self._limits = self.steps.spent.limit_count
        self._end_limits = self.steps.spent_at_end.limit_count
        self._riccati = Riccati(2 * model.nv, self.steps.m)

    @cached_property
    def _fed_back(self) -> Any:
        return self.steps.fed_back(self.count)

    def linearized(self, q: ArrayLike, v: ArrayLike, u: ArrayLike) -> tuple[Array, Array]:
        """A (..., 2 nv, 2 nv) and B (..., 2 nv, m) of steps from states under controls, in one call for all of them."""
        there = self.steps._led  # any next state serves: the derivatives are of where the step leads
        q, v, u = (np.asarray(x, float) for x in (q, v, u))
        q_next, v_next = _led_to(self.steps)(q, v, u)
        by_q, by_v, B = (there.jacobian(name)(q, v, u, q_next, v_next) for name in ("q", "v", "u"))
        return np.concatenate([by_q, by_v], axis=-1), B

    def solve(
        self,
        q0: ArrayLike,
        v0: ArrayLike | None = None,
        *,
        goal: ArrayLike | None = None,
        start: Plan | tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
        iterations: int = 200,
        tolerance: float = 1e-9,
        excess: float = 1e-6,
    ) -> Plan:
        """The best motion from a state.

        Args:
            q0: configuration (nq) at the start.
            v0: velocity (nv) at the start; at rest if not given.
            goal: its numbers (goal), or those for each step and the end (N + 1, goal).
            start: where to begin: an earlier plan, or (q (N + 1, nq), v (N + 1, nv), u (N, m)), which need not fit
                together. At rest in q0, with the forces that hold it, if not given.
            iterations: at most so many.
            tolerance: of the progress that one more step is expected to make, and of gaps.
            excess: by how much limits may be exceeded.
        """
        search = _Search(self, q0, v0, goal, start)
        return search.run(iterations, tolerance, excess)


class _Search:
    """One solution on its way."""

    def __init__(self, problem: Shooting, q0: ArrayLike, v0: ArrayLike | None, goal: Any, start: Any) -> None:
        model, N, m = problem.model, problem.count, problem.steps.m
        self.problem = problem
        first = _shaped("q0", q0, (model.nq,)), _shaped("v0", np.zeros(model.nv) if v0 is None else v0, (model.nv,))
        if start is None:
            self.q, self.v = np.tile(first[0], (N + 1, 1)), np.zeros((N + 1, model.nv))
            hold = model.inverse_dynamics(first[0], np.zeros(model.nv), np.zeros(model.nv))
            self.u = np.tile(np.linalg.lstsq(problem.steps.motors, hold, rcond=None)[0], (N, 1))
        else:
            q, v, u = (start.q, start.v, start.u) if isinstance(start, Plan) else start
            self.q = _shaped("q of the start", q, (N + 1, model.nq)).copy()
            self.v = _shaped("v of the start", v, (N + 1, model.nv)).copy()
            self.u = _shaped("u of the start", u, (N, m)).copy()
        self.q[0], self.v[0] = first
        numbers = np.empty(0) if goal is None else np.asarray(goal, float)
        if numbers.shape[-1:] != (problem.goal,) or numbers.ndim > 2 or numbers.shape[:-1] not in ((), (N + 1,)):
            raise InputError(
                "the goal does not fit",
                got=f"shape {numbers.shape}",
                allowed=f"({problem.goal},) or ({N + 1}, {problem.goal})",
            )
        self.goals = np.ascontiguousarray(np.broadcast_to(numbers, (N + 1, problem.goal)))
        earlier = start if isinstance(start, Plan) else None
        self.multipliers = np.zeros((N, problem._limits)) if earlier is None else earlier.multipliers
        self.end_multipliers = np.zeros(problem._end_limits) if earlier is None else earlier.end_multipliers
        self.weight = 10.0 if earlier is None else earlier.weight
        self.damping, self.price, self.made = 0.0, 0.0, 0
        n = 2 * model.nv
        self.gains, self.costates = np.empty((N, m, n + 1)), np.empty((N, n))

    # What compiled functions take behind the state.
    def _of_steps(self, *, weights: bool) -> list[Array]:
        problem = self.problem
        found = [self.goals[:-1]] if problem.goal else []
        if problem._limits:
            weight = np.full(problem.count if weights else len(_SHARES), self.weight)
            found += [self.multipliers, weight]
        return found

    def _of_end(self) -> list[Array]:
        problem = self.problem
        found = [self.goals[-1]] if problem.goal else []
        return found + ([self.end_multipliers, np.array(self.weight)] if problem._end_limits else [])

    def _linearize(self) -> None:
        steps = self.problem.steps
        self.stage = steps.stage(
            self.q[:-1], self.v[:-1], self.u, self.q[1:], self.v[1:], *self._of_steps(weights=True)
        )
        self.end = steps.end(self.q[-1], self.v[-1], *self._of_end())
        self.total = float(self.stage.cost.sum() + self.end.cost)
        self.gaps = np.ascontiguousarray(self.stage.F[:, :, 2 * self.problem.model.nv])
        self.gap = float(np.abs(self.gaps).max())

    def _feedback(self) -> float:
        """Gains, from the last step to the first; the progress that they promise."""
        while True:
            V = self.end.H_x.copy()
            promised = self.problem._riccati(
                self.stage.F, self.stage.H_x, self.stage.H_u, V, self.damping, self.gains, self.costates
            )
            if promised is not None:
                return promised
            if not self._damp():
                raise InputError(
                    "the cost is not convex in the controls, nor can it be made so",
                    got=f"damping {self.damping:g}",
                    do="let every control cost something; check that the start has finite costs",
                )

    def _damp(self) -> bool:
        self.damping = max(10.0 * self.damping, _LEAST_DAMPING)
        return self.damping < _MOST_DAMPING

    def _step(self, promised: float) -> bool:
        """Go on by the longest of the steps that makes enough progress; whether there is one."""
        problem = self.problem
        ends = problem._fed_back(
            np.broadcast_to(self.q[0], (len(_SHARES), problem.model.nq)),
            np.broadcast_to(self.v[0], (len(_SHARES), problem.model.nv)),
            np.zeros(len(_SHARES)),
            _SHARES,
            self.q[:-1, None],
            self.v[:-1, None],
            self.u[:, None],
            self.gains[:, None],
            self.gaps[:, None],
            *(array[:, None] if array.ndim == 2 else array for array in self._of_steps(weights=False)),
        )
        last = problem.steps.end(
            ends.q[-1], ends.v[-1], *(np.broadcast_to(x, (len(_SHARES), *x.shape)) for x in self._of_end())
        )
        open_gaps = float(np.abs(self.gaps).sum())
        if open_gaps:
            self.price = max(self.price, 2.0 * float(np.abs(self.costates).max()))
        reached = ends.cost[-1] + last.cost + self.price * open_gaps * (1.0 - _SHARES)
        needed = self.total + self.price * open_gaps - _ENOUGH * _SHARES * promised
        good = np.flatnonzero(reached <= needed)
        if not len(good):
            return False
        k = good[0]
        self.q[1:], self.v[1:], self.u[:] = ends.q[:, k], ends.v[:, k], ends.u[:, k]
        if k <= 1:
            self.damping = self.damping / 10.0 if self.damping > _LEAST_DAMPING else 0.0
        return True

    def _excess(self) -> float:
        end = self.problem.steps.spent_at_end._one_sided()
        over = [np.maximum(self.stage.excess, 0.0).max(initial=0.0)]
        over += [max(x, 0.0) if bound else abs(x) for x, bound in zip(self.end.excess, end, strict=True)]
        return float(max(over))

    def _press(self) -> None:
        """New multipliers from what is exceeded, and more weight."""
        self.multipliers = np.maximum(self.multipliers + self.weight * self.stage.excess, 0.0)
        pressed = self.end_multipliers + self.weight * self.end.excess
        bound = np.array(self.problem.steps.spent_at_end._one_sided(), bool)
        self.end_multipliers = np.where(bound, np.maximum(pressed, 0.0), pressed)

    def run(self, iterations: int, tolerance: float, allowed: float) -> Plan:
        """Iterate until nothing is left to gain and every limit is kept."""
        limited = bool(self.problem._limits or self.problem._end_limits)
        status, worst = "iterations", np.inf
        self._linearize()
        while True:
            promised = self._feedback()
            settled = promised <= tolerance * max(1.0, 1.0 if not limited else abs(self.total)) and self.gap <= 1e-9
            if settled:
                over = self._excess() if limited else 0.0
                if over <= allowed:
                    status = "done"
                    break
                self._press()
                if over > 0.25 * worst:
                    self.weight *= 10.0
                worst, self.price = over, 0.0
                if self.weight > 1e12:
                    status = "stuck"
                    break
                self._linearize()
                continue
            if self.made >= iterations:
                break
            if self._step(promised):
                self.made += 1
                self._linearize()
            elif not self._damp():
                status = "stuck"
                break
        return self._plan(status)

    def _plan(self, status: str) -> Plan:
        problem = self.problem
        share = 0.0
        if problem._limits or problem._end_limits:
            share = self._limits_share()
        return Plan(
            problem.model,
            problem.steps.dt * np.arange(problem.count + 1),
            self.q,
            self.v,
            self.u,
            self.gains[:, :, :-1],
            self.total - share,
            self.made,
            status,
            self.gap,
            self._excess(),
            self.multipliers,
            self.end_multipliers,
            self.weight,
        )

    def _limits_share(self) -> float:
        """Part of the cost that the augmented Lagrangian is."""
        pressed = np.maximum(self.multipliers + self.weight * self.stage.excess, 0.0)
        at_end = self.end_multipliers + self.weight * self.end.excess
        bound = np.array(self.problem.steps.spent_at_end._one_sided(), bool)
        at_end = np.where(bound, np.maximum(at_end, 0.0), at_end)
        return float((pressed**2).sum() + (at_end**2).sum()) / (2.0 * self.weight)


def _with_limits(model: Model, motors: Array, below: Callable[..., Any] | None) -> Callable[..., Any]:
    """The model's own limits beside those given."""
    low, high = np.array(model.limits.lower, float), np.array(model.limits.upper, float)
    fastest, strongest = np.array(model.limits.velocity, float), np.array(model.limits.effort, float)

    def limited(model: Model, q: Any, v: Any, u: Any, *goal: Any) -> Any:
        tau = motors.astype(object) @ np.asarray(u, object)
        found: list[Any] = [] if below is None else list(below(model, q, v, u, *goal))
        for values, lower, upper in ((q, low, high), (v, -fastest, fastest), (tau, -strongest, strongest)):
            for x, a, b in zip(values, lower, upper, strict=True):
                found += ([a - x] if np.isfinite(a) else []) + ([x - b] if np.isfinite(b) else [])
        return np.array(found, object)

    return limited


def _led_to(steps: Steps) -> Any:
    """The state after a step, compiled."""
    from linkwise.functions.function import compile

    return compile(lambda model, q, v, u: steps.next(q, v, u), steps.model, {"q": "q", "v": "v", "u": steps.m}, "next")


def _shaped(what: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, float)
    if array.shape != shape:
        raise InputError(f"{what} has the wrong shape", got=str(array.shape), allowed=str(shape))
    return array


def shoot(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    *,
    steps: int,
    dt: float,
    running: Callable[..., Any],
    terminal: Callable[..., Any] | None = None,
    **more: Any,
) -> Plan:
    """The best motion over a horizon, found once: :class:`Shooting` and its :meth:`~Shooting.solve` in one.

    Further arguments are those of either.
    """
    of_solve = {key: more.pop(key) for key in ("start", "iterations", "tolerance", "excess") if key in more}
    return Shooting(model, steps, dt, running=running, terminal=terminal, **more).solve(q0, v0, **of_solve)
