"""Optimal control by shooting: the best controls over a horizon, with limits, from any guess of the motion.

A horizon has N steps, with states between them that may be guessed freely: where a step does not lead to the next state
there is a gap, which closes on the way (multiple shooting). Each iteration linearises all steps in one call, finds
feedback gains by a Riccati recursion, and runs the horizon under feedback with eight lengths of step side by side, one
in each lane; the longest that makes enough progress is taken. Without gaps this is the method known as iLQR, with them
as FDDP. Limits enter by an augmented Lagrangian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_count, checked_array
from linkwise.control.riccati import Riccati, padded
from linkwise.control.stages import FreedomGroup, Steps, Text
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.functions.function import CompiledFunction, compile
from linkwise.functions.many_steps import RolloutFunction
from linkwise.memoized import cached_property
from linkwise.model.model import checked_model
from linkwise.model.state_space import checked_dt
from linkwise.spatial.scalar import Scalar

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.trajectory import Trajectory

_SHARES = 0.5 ** np.arange(8.0)  # of the step; as many as lanes of the widest registers
_ENOUGH = 1e-4  # of the progress that a linear cost would make
_LEAST_DAMPING, _MOST_DAMPING = 1e-9, 1e9
_MOST_WEIGHT = 1e12
_NO_GAP = 1e-9


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
    t: Array = field(repr=False)
    q: Array = field(repr=False)
    v: Array = field(repr=False)
    u: Array = field(repr=False)
    gains: Array = field(repr=False)
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
        if not 0 <= steps < len(self.t):
            raise InputError("the plan ends before", got=f"steps={steps}", allowed=f"0 to {len(self.t) - 1}")
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


Start = Plan | tuple[ArrayLike, ArrayLike, ArrayLike]
"""The beginning of a solution: an earlier one, or q (N + 1, nq), v (N + 1, nv) and u (N, m)."""


class Shooting:
    """An optimal control problem over a horizon, compiled once and solved as often as needed.

    A cost is a number, of which exact second derivatives are taken, or a vector of residuals: then it is half its
    square, with the second derivatives of Gauss and Newton, which are cheap and never negative. Costs are summed over
    the steps. All functions are traced: no branches on values.

    Args:
        model: the mechanism. Closures are closed after every step; name the joints with motors as ``actuated``.
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
        method: ``"euler"`` (speeds first, then positions with the new speeds), ``"rk4"``, or ``"moreau"``: steps with
            rigid contacts and exact friction, from a start whose steps lead to each other.
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
        running: Text,
        terminal: Text | None = None,
        below: Text | None = None,
        end_below: Text | None = None,
        end_zero: Text | None = None,
        limits: bool = False,
        actuated: Sequence[str] | None = None,
        method: str = "euler",
        goal: int = 0,
    ) -> None:
        check_count(steps=steps)
        if goal != 0:
            check_count(goal=goal)
        self.model, self.count, self.goal = checked_model(model), int(steps), int(goal)
        motors = model.statics.actuation_matrix(actuated)
        if limits:
            below = _with_limits(model, motors, below)
        self.steps = Steps(
            model, checked_dt(dt), method, motors, running, terminal, below, end_below, end_zero, int(goal)
        )
        self._limits = self.steps.spent.limit_count
        self._end_limits = self.steps.spent_at_end.limit_count
        self._idle: list[_Horizon] = []

    @cached_property
    def _fed_back(self) -> RolloutFunction:
        return self.steps.fed_back(self.count)

    def _memory(self) -> _Horizon:
        """Arrays that no solution is using: one after another uses the same, several at a time have their own."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Horizon(self)

    def linearized(self, q: ArrayLike, v: ArrayLike, u: ArrayLike) -> tuple[Array, Array]:
        """A (..., 2 nv, 2 nv) and B (..., 2 nv, m) of steps from states under controls, in one call for all of them."""
        there = self.steps._led  # any next state serves: the derivatives are of where the step leads
        q, v, u = (np.asarray(x, float) for x in (q, v, u))
        kinds: dict[str, str | int | tuple[int, ...]] = {"q": "q", "v": "v", "u": self.steps.m}
        q_next, v_next = compile(lambda model, q, v, u: self.steps.next(q, v, u), self.model, kinds, "next")(q, v, u)
        by_q, by_v, B = (there.jacobian(name)(q, v, u, q_next, v_next) for name in ("q", "v", "u"))
        return np.concatenate([by_q, by_v], axis=-1), B

    def solve(
        self,
        q0: ArrayLike,
        v0: ArrayLike | None = None,
        *,
        goal: ArrayLike | None = None,
        start: Start | None = None,
        iterations: int = 200,
        tolerance: float = 1e-9,
        excess: float = 1e-6,
    ) -> Plan:
        """The best motion from a state.

        Args:
            q0: configuration (nq) at the start, with closed closures.
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


class _Horizon:
    """The arrays of a horizon, and compiled functions bound to them."""

    def __init__(self, problem: Shooting) -> None:
        steps, N, nv, m = problem.steps, problem.count, problem.model.nv, problem.steps.m
        n, lanes = 2 * nv, len(_SHARES)
        self.q = q = np.empty((N + 1, problem.model.nq))
        self.v, self.u, self.goals = v, u, goals = (
            np.empty((N + 1, nv)),
            np.empty((N, m)),
            np.empty((N + 1, problem.goal)),
        )
        self.multipliers, self.end_multipliers = np.zeros((N, problem._limits)), np.zeros((1, problem._end_limits))
        self.weight = np.empty((N, 1))
        # What a linearisation fills.
        self.cost, self.excess = np.empty((N, 1)), np.empty((N, problem._limits))
        self.end_cost, self.end_excess = np.empty((1, 1)), np.empty((1, problem._end_limits))
        self.gaps, self._end_value = np.empty((N, n)), np.empty((n, padded(n + 1)))
        stage, groups = steps.by_groups
        self.parts = [_GroupRecursion(group, nv, N, steps.dt if steps.by_speeds else None) for group in groups]
        further = ([goals[:-1]] if problem.goal else []) + ([self.multipliers, self.weight] if problem._limits else [])
        filled = [array for part in self.parts for array in (part.F, part.lead, part.H_x, part.H_u)]
        given = [q[:-1], v[:-1], u, q[1:], v[1:], *further]
        self._stage = _evaluated(stage, given, [*filled, self.cost, self.excess])
        at_end = [goals[-1:]] if problem.goal else []
        of_limits = [self.end_multipliers, self.weight] if problem._end_limits else []
        filled = [self._end_value, self.end_cost, self.end_excess]
        self._end = _evaluated(steps.end, [q[-1:], v[-1:], *at_end, *of_limits], filled, 1)
        # What runs under feedback, a length of step in each lane.
        self.q_tried, self.v_tried = np.empty((lanes, N, problem.model.nq)), np.empty((lanes, N, nv))
        self.u_tried, self.cost_tried = np.empty((lanes, N, m)), np.empty((lanes, N, 1))
        self._tried = _repeated(
            problem._fed_back,
            {"q": q[0], "v": v[0], "cost": np.zeros(1), "share": _SHARES[:, None], "weight": self.weight[0]},
            {
                "q_old": q[:-1],
                "v_old": v[:-1],
                "u_old": u,
                "gap": self.gaps,
                **{f"gains{k}": part.gains for k, part in enumerate(self.parts)},
                "goal": goals[:-1],
                "multipliers": self.multipliers,
            },
            [self.q_tried, self.v_tried, self.cost_tried, self.u_tried],
            lanes,
        )
        self.reached = np.empty((lanes, 1))
        self._ends = [np.empty((lanes, problem.model.nq)), np.empty((lanes, nv))]
        self._end_goals = [np.empty((lanes, problem.goal)) for _ in at_end]
        self._end_limits = [np.empty((lanes, problem._end_limits)), np.empty((lanes, 1))] if problem._end_limits else []
        unused = [np.empty((lanes, self._end_value.size)), self.reached, np.empty((lanes, problem._end_limits))]
        self._end_tried = _evaluated(steps.end, [*self._ends, *self._end_goals, *self._end_limits], unused, lanes)

    def linearize(self) -> float:
        """Fill all matrices; the whole cost."""
        self._stage()
        self._end()
        for part in self.parts:
            self.gaps[:, part.x] = part.gaps()
        return float(self.cost.sum() + self.end_cost[0, 0])

    def back(self, damping: float) -> float | None:
        """Gains, from the last step to the first; the progress that they promise, or None."""
        total = 0.0
        for part in self.parts:
            promised = part.back(self._end_value, damping)
            if promised is None:
                return None
            total += promised
        return total

    @property
    def costate(self) -> float:
        """The largest gradient of the value behind a step."""
        return max(float(np.abs(part.costates).max()) for part in self.parts)

    def gains(self) -> Array:
        """K (N, m, 2 nv)."""
        found = np.zeros((*self.u.shape, self.gaps.shape[1]))
        for part in self.parts:
            found[:, np.array(part.group.controls)[:, None], part.x] = part.gains[:, :, :-1]
        return found

    def forth(self) -> Array:
        """Costs of the lengths of step (8)."""
        self._tried()
        self._ends[0][:], self._ends[1][:] = self.q_tried[:, -1], self.v_tried[:, -1]
        for goals in self._end_goals:
            goals[:] = self.goals[-1]
        if self._end_limits:
            self._end_limits[0][:], self._end_limits[1][:] = self.end_multipliers, self.weight[0]
        self._end_tried()
        return self.cost_tried[:, -1, 0] + self.reached[:, 0]

    def take(self, lane: int) -> None:
        """Go where a length of step leads."""
        self.q[1:], self.v[1:], self.u[:] = self.q_tried[lane], self.v_tried[lane], self.u_tried[lane]


class _GroupRecursion:
    """The matrices of a group, and its recursion."""

    def __init__(self, group: FreedomGroup, nv: int, N: int, dt: float | None) -> None:
        half, m = len(group.freedoms), len(group.controls)
        n = 2 * half
        self.group, self.n, self.dt = group, n, dt
        self.x = np.array([*group.freedoms, *(nv + i for i in group.freedoms)])
        riccati = Riccati(n, m, dt)
        long, short = padded(n + 1 + m), padded(n + 1)
        self.F, self.lead = np.empty((N, riccati.rows, long)), np.empty((N, n - riccati.rows))
        self.H_x, self.H_u, self.value = np.empty((N, n, short)), np.empty((N, m, long)), np.zeros((n, short))
        self.gains, self.costates = np.empty((N, m, n + 1)), np.empty((N, n))
        self._run = riccati.bound(self.F, self.lead, self.H_x, self.H_u, self.value, self.gains, self.costates)

    def gaps(self) -> Array:
        """From the next states to where steps lead (N, n)."""
        own = self.F[:, :, self.n]
        return own if self.dt is None else np.concatenate([self.lead + self.dt * own, own], axis=1)

    def back(self, end: Array, damping: float) -> float | None:
        """The recursion from the value of all states at the end."""
        n, whole = self.n, 2 * (end.shape[0] // 2)
        self.value[:, :n], self.value[:, n] = end[self.x[:, None], self.x], end[self.x, whole]
        return self._run(damping)


def _evaluated(
    function: CompiledFunction, inputs: Sequence[Array], outputs: Sequence[Array], count: int | None = None
) -> Callable[[], None]:
    """A compiled function on these very arrays, (count, …) each."""
    rows = len(inputs[0]) if count is None else count
    kernel = function.kernel(np.dtype(float), few_states=rows < 2)
    flat_in = [array[:rows].reshape(rows, -1) for array in inputs]
    flat_out = [array.reshape(rows, -1) for array in outputs]
    return lambda: kernel.evaluate(flat_in, flat_out, rows)


def _repeated(
    function: RolloutFunction,
    given: Mapping[str, Array],
    sequences: Mapping[str, Array],
    records: Sequence[Array],
    lanes: int,
) -> Callable[[], None]:
    """Repeated steps on these very arrays: what is given at the start, one row for each step, what is recorded."""
    kernel, routine = function.kernel(np.dtype(float)), function.routine
    names = [name for name, _ in function.inputs]
    rows = {name: np.empty((lanes, given[name].shape[-1])) for name in names if name in given}
    passed = {routine.given(names.index(name)): row for name, row in rows.items()}
    passed[routine.CLOCK] = np.tile([0.0, float(function.steps)], (lanes, 1))
    series = {
        routine.given(names.index(name)): array.reshape(1, function.steps, -1)
        for name, array in sequences.items()
        if name in names
    }
    run = kernel.bound(passed, series, {routine.made(k): array for k, array in enumerate(records)}, lanes)

    def call(held: object = (passed, series, records)) -> None:
        for name, row in rows.items():  # those that are fed back were overwritten
            row[:] = given[name]
        run()

    return call


class _Search:
    """One solution on its way."""

    def __init__(
        self, problem: Shooting, q0: ArrayLike, v0: ArrayLike | None, goal: ArrayLike | None, start: Start | None
    ) -> None:
        model, N, m = problem.model, problem.count, problem.steps.m
        self.problem = problem
        first = (
            checked_array("q0", q0, (model.nq,)),
            checked_array("v0", np.zeros(model.nv) if v0 is None else v0, (model.nv,)),
        )
        model.constraints.check(*first)
        q: ArrayLike
        v: ArrayLike
        u: ArrayLike
        if start is None:
            q, v = first[0], np.zeros(model.nv)
            u = np.linalg.lstsq(problem.steps.motors, model.inverse_dynamics(q, v, v), rcond=None)[0]
        else:
            parts = (start.q, start.v, start.u) if isinstance(start, Plan) else start
            if len(parts) != 3:
                raise InputError("a start is not (q, v, u)", got=f"{len(parts)} arrays", allowed="a plan, or (q, v, u)")
            q, v, u = parts
            q = checked_array("q of the start", q, (N + 1, model.nq))
            v = checked_array("v of the start", v, (N + 1, model.nv))
            u = checked_array("u of the start", u, (N, m))
        numbers = np.empty(0) if goal is None else np.asarray(goal, float)
        if numbers.shape[-1:] != (problem.goal,) or numbers.ndim > 2 or numbers.shape[:-1] not in ((), (N + 1,)):
            raise InputError(
                "the goal does not fit",
                got=f"shape {numbers.shape}",
                allowed=f"({problem.goal},) or ({N + 1}, {problem.goal})",
            )
        self.h = h = problem._memory()
        h.q[:], h.v[:], h.u[:], h.goals[:] = q, v, u, numbers
        h.q[0], h.v[0] = first
        earlier = start if isinstance(start, Plan) else None
        h.multipliers[:] = 0.0 if earlier is None else earlier.multipliers
        h.end_multipliers[0] = 0.0 if earlier is None else earlier.end_multipliers
        self.weight = 10.0 if earlier is None else earlier.weight
        self.damping, self.price, self.made = 0.0, 0.0, 0

    def _linearize(self) -> None:
        self.h.weight[:] = self.weight
        self.total = self.h.linearize()
        self.gap = float(np.abs(self.h.gaps).max())

    def _feedback(self) -> float:
        """Gains; the progress that they promise."""
        while True:
            promised = self.h.back(self.damping)
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
        costs = self.h.forth()
        open_gaps = float(np.abs(self.h.gaps).sum())
        if open_gaps:
            self.price = max(self.price, 2.0 * self.h.costate)
        reached = costs + self.price * open_gaps * (1.0 - _SHARES)
        needed = self.total + self.price * open_gaps - _ENOUGH * _SHARES * promised
        good = np.flatnonzero(reached <= needed)
        if not len(good):
            return False
        self.h.take(good[0])
        if good[0] <= 1:
            self.damping = self.damping / 10.0 if self.damping > _LEAST_DAMPING else 0.0
        return True

    @property
    def _one_sided(self) -> Array:
        """For each condition at the end, whether it may be below zero."""
        return np.array(self.problem.steps.spent_at_end.one_sided, bool)

    def _excess(self) -> float:
        at_end = np.where(self._one_sided, np.maximum(self.h.end_excess, 0.0), np.abs(self.h.end_excess))
        return float(max(np.maximum(self.h.excess, 0.0).max(initial=0.0), at_end.max(initial=0.0)))

    def _pressed(self) -> tuple[Array, Array]:
        """Multipliers that what is exceeded asks for, of the steps and of the end."""
        along = np.maximum(self.h.multipliers + self.weight * self.h.excess, 0.0)
        at_end = self.h.end_multipliers + self.weight * self.h.end_excess
        return along, np.where(self._one_sided, np.maximum(at_end, 0.0), at_end)

    def run(self, iterations: int, tolerance: float, allowed: float) -> Plan:
        """Iterate until nothing is left to gain and every limit is kept."""
        limited = bool(self.problem._limits or self.problem._end_limits)
        status, worst = "iterations", np.inf
        self._linearize()
        while True:
            promised = self._feedback()
            if promised <= tolerance * (max(1.0, abs(self.total)) if limited else 1.0) and self.gap <= _NO_GAP:
                over = self._excess() if limited else 0.0
                if over <= allowed:
                    status = "done"
                    break
                slow = over > 0.25 * worst
                if slow and self.weight >= _MOST_WEIGHT:
                    status = "stuck"
                    break
                self.h.multipliers[:], self.h.end_multipliers[:] = self._pressed()
                self.weight *= 10.0 if slow else 1.0
                worst, self.price = over, 0.0
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
        h, problem = self.h, self.problem
        of_limits = sum(float(np.sum(part * part)) for part in self._pressed()) / (2.0 * self.weight)
        plan = Plan(
            problem.model,
            problem.steps.dt * np.arange(problem.count + 1),
            h.q.copy(),
            h.v.copy(),
            h.u.copy(),
            h.gains(),
            self.total - of_limits,
            self.made,
            status,
            self.gap,
            self._excess(),
            h.multipliers.copy(),
            h.end_multipliers[0].copy(),
            self.weight,
        )
        problem._idle.append(h)
        return plan


def _with_limits(model: Model, motors: Array, below: Text | None) -> Text:
    """The model's own limits beside those given."""
    low, high = np.array(model.limits.lower, float), np.array(model.limits.upper, float)
    fastest, strongest = np.array(model.limits.velocity, float), np.array(model.limits.effort, float)

    def limited(model: Model, q: Array, v: Array, u: Array, *goal: Array) -> Array:
        tau = motors.astype(object) @ np.asarray(u, object)
        found: list[Scalar] = [] if below is None else list(below(model, q, v, u, *goal))
        for values, lower, upper in ((q, low, high), (v, -fastest, fastest), (tau, -strongest, strongest)):
            for x, a, b in zip(values, lower, upper, strict=True):
                found += ([a - x] if np.isfinite(a) else []) + ([x - b] if np.isfinite(b) else [])
        return np.array(found, object)

    return limited


def shoot(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    *,
    steps: int,
    dt: float,
    running: Text,
    terminal: Text | None = None,
    goal: ArrayLike | None = None,
    **more: Any,
) -> Plan:
    """The best motion over a horizon, found once: :class:`Shooting` and its :meth:`~Shooting.solve` in one.

    Further arguments are those of either; a goal is its numbers.
    """
    of_solve = {key: more.pop(key) for key in ("start", "iterations", "tolerance", "excess") if key in more}
    size = 0 if goal is None else np.shape(goal)[-1]
    problem = Shooting(model, steps, dt, running=running, terminal=terminal, goal=size, **more)
    return problem.solve(q0, v0, goal=goal, **of_solve)
