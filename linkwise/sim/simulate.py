"""Simulation: from a state and a duration to a trajectory."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.dynamics import Model
from linkwise.errors import InputError
from linkwise.sim import stepping
from linkwise.sim.elements import as_elements
from linkwise.sim.events import Occurrence, as_events, limit_events
from linkwise.sim.motion import JointRules, Motion
from linkwise.sim.plans import ADAPTIVE, Plan, checked_method, plan_for
from linkwise.sim.progress import Progress
from linkwise.sim.trajectory import Trajectory

Array = NDArray[Any]

_CHUNK_SECONDS = 0.1  # the kernel comes up for air this often: for the progress bar and for Ctrl-C
_STEP_CAPACITY = 4096  # accepted steps that one call of a kernel can record
_SINGLE_STEPS = 2**24
_BATCH_SAMPLES = 101  # for a batch that asks for no output times
_STATUS = {stepping.RUNNING: "interrupted", stepping.DONE: "done", stepping.EVENT: "event", stepping.FAILED: "failed"}


class SlowControlWarning(UserWarning):
    """A control function could not be traced and runs in Python."""


class IntegrationWarning(UserWarning):
    """A simulation could not reach its end."""


def simulate(
    model: Model,
    q0: ArrayLike,
    v0: ArrayLike | None = None,
    duration: float = 10.0,
    dt: float | None = None,
    method: str = "dop853",
    rtol: float = 1e-9,
    atol: float | None = None,
    control: Any = None,
    output_times: ArrayLike | None = None,
    events: Any = None,
    p: ArrayLike | None = None,
    progress: bool | Callable[[float], None] | None = None,
    *,
    t0: float = 0.0,
    x0: ArrayLike | None = None,
    save_every: int = 1,
    rules: JointRules | None = None,
    limits: str | None = None,
    max_step: float = math.inf,
    threads: int = 1,
) -> Trajectory:
    """Simulate a mechanism from one state, or from a batch of them, in one compiled kernel.

    Damping, dry friction, joint limits and effort limits of the model act; see :class:`JointRules`.

    Methods. Fixed step: ``"euler"`` (semi-implicit), ``"rk4"``, ``"variational"`` (symplectic: its energy error stays
    bounded for ever). Adaptive: ``"dop853"`` and ``"dopri5"`` (Dormand and Prince, 8(5,3) and 5(4)), ``"rk56"``
    (Verner), ``"cash_karp"``, and ``"rodas4"`` for stiff springs, dampers and friction (linearly implicit, L-stable,
    with exact derivatives). All Runge–Kutta methods work in a chart around each step's start (Munthe-Kaas), so
    quaternions stay of length one.

    Fixed steps run in float32, at twice the speed, if q0, v0, p and x0 are all float32.

    Args:
        model: the mechanism.
        q0: configuration(s) at the start (..., nq).
        v0: velocities at the start (..., nv); at rest if not given.
        duration: s.
        dt: the step in s of a fixed-step method (made a little smaller where it does not divide the duration; 1e-3 if
            not given); the first step tried by an adaptive one.
        method: the integrator.
        rtol: relative tolerance of an adaptive method.
        atol: absolute tolerance, SI units; rtol/100 if not given.
        control: ``control(t, q, v, p) -> tau`` (nv), an element such as :class:`PD`, or a list of these. It is traced
            once and becomes part of the kernel; what it computes may depend on t, q, v and p only. A function that
            cannot be traced (it branches on values, calls other libraries) is called in Python, which is some thousand
            times slower: a warning and ``Trajectory.note`` say why.
        output_times: times (T) of the samples, increasing, from t0 to t0 + duration. If not given: every
            ``save_every``-th step of a fixed-step method, every step of an adaptive one, 101 equal intervals for a
        batch with an adaptive one. events: :class:`Event` objects or functions ``(t, q, v, p) -> number`` whose sign
        changes are found. p: run-time parameters (..., np): those of the model first, then whatever control and events
        want to know. progress: a bar on stderr for long runs; None: only on a terminal. A function is called with the
        fraction done. t0: time at the start, s.
        x0: states of the actuators at the start (..., nx); their own choice if not given.
        save_every: steps between samples of a fixed-step method.
        rules: what the model's damping, friction and limits do.
        limits: short for ``rules=JointRules(limits=...)``: ``"spring"`` (a stiff spring at each joint limit, the
            default), ``"stop"`` (reaching one ends the simulation), ``"ignore"``.
        max_step: largest step of an adaptive method, s.
        threads: threads to split a batch over.

    Returns:
        The motion. Ctrl-C ends a run early and returns what was computed so far, with the status ``"interrupted"``.
    """
    name = checked_method(method)
    adaptive = name in ADAPTIVE
    rules = JointRules() if rules is None else rules
    if limits is not None:
        rules = JointRules(**{**rules.__dict__, "limits": limits})
    _check_choice("limits", rules.limits, ("spring", "stop", "ignore"))
    _check_positive("duration", duration)
    elements = as_elements(control)
    states = _States(model, elements, q0, v0, p, x0, single=not adaptive and _all_single(q0, v0, p, x0))
    chosen = as_events(events)
    if rules.limits != "ignore":
        limited = _limited(model, rules)
        _check_start(limited, states.y)
        if rules.limits == "stop":
            chosen = (*chosen, *limit_events(limited))
    times = _checked_times(output_times, t0, duration)
    every_step = adaptive and times is None and not states.shape
    if adaptive and times is None and states.shape:
        times = t0 + duration * np.arange(_BATCH_SAMPLES) / (_BATCH_SAMPLES - 1.0)
        times[-1] = t0 + duration
    plan = plan_for(model, elements, rules, states.p.shape[-1], name, every_step, chosen)
    if plan.note:
        warnings.warn(plan.note, SlowControlWarning, stacklevel=2)
    bar = Progress(progress, model.name)
    try:
        if adaptive:
            _check_positive("rtol", rtol)
            run: _Run = _Adaptive(
                plan, states, t0, duration, dt, rtol, rtol / 100 if atol is None else atol, max_step, times
            )
        else:
            run = _Fixed(plan, states, t0, duration, 1e-3 if dt is None else dt, save_every, times)
        run.go(bar, _checked_threads(threads))
    finally:
        bar.close()
    return run.trajectory(threads)


class _States:
    """Starting states, broadcast against each other and laid out in rows."""

    def __init__(self, model: Model, elements: Any, q0: Any, v0: Any, p: Any, x0: Any, single: bool) -> None:
        self.model = model
        self.dtype = np.dtype(np.float32 if single else np.float64)
        q = _vector("q0", q0, model.nq)
        v = _vector("v0", np.zeros(model.nv) if v0 is None else v0, model.nv)
        nominal = model.nominal_parameters
        given = np.asarray(nominal if p is None else p, float)
        if given.ndim == 0 or given.shape[-1] < len(nominal):
            raise InputError(
                "p has the wrong shape",
                got=str(given.shape),
                allowed=f"(..., n) with n at least {len(nominal)}, the model's",
            )
        x = np.array([value for element in elements for value in element.initial()], float)
        x = _vector("x0", x if x0 is None else x0, len(x))
        try:
            self.shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], given.shape[:-1], x.shape[:-1])
        except ValueError:
            raise InputError(
                "the batches of q0, v0, p and x0 do not fit together",
                got=", ".join(str(a.shape[:-1]) for a in (q, v, given, x)),
                allowed="equal leading axes, or none where one value serves all",
            ) from None
        self.count = math.prod(self.shape)
        q, v, x, given = (
            np.broadcast_to(a, (*self.shape, a.shape[-1])).reshape(self.count, a.shape[-1]) for a in (q, v, x, given)
        )
        self.y = np.ascontiguousarray(np.concatenate([q, v, x], axis=1))
        self.p = np.ascontiguousarray(given, self.dtype)
        # Quaternions of length one, once at the start: steps keep them so.
        self.y[:, : model.nq] = model.integrate(self.y[:, : model.nq], np.zeros(model.nv))
        self.y = self.y.astype(self.dtype, copy=False)


class _Run:
    """What fixed and adaptive runs share: chunks, events and results."""

    def __init__(self, plan: Plan, states: _States, t0: float, duration: float) -> None:
        self.plan, self.states = plan, states
        self.t0, self.end = float(t0), float(t0) + float(duration)
        self.y = states.y.copy()
        self.rows: dict[str, Array] = {"y": self.y, "p": states.p}
        self.events: list[Occurrence] = []
        self.ended = np.zeros(states.count, bool)  # by a terminal event
        self.interrupted = False

    def go(self, bar: Progress, threads: int) -> None:
        """Run chunk after chunk until all states are done, or the user has had enough."""
        kernel = self.plan.kernel(self.states.count, self.states.dtype)
        try:
            while self.is_running():
                start = time.perf_counter()
                self.chunk(kernel, threads)
                self.adapt(time.perf_counter() - start)
                self.handle_events()
                bar.update(self.fraction())
        except KeyboardInterrupt:
            self.interrupted = True

    def is_running(self) -> bool:
        raise NotImplementedError

    def chunk(self, kernel: Any, threads: int) -> None:
        raise NotImplementedError

    def adapt(self, seconds: float) -> None:
        raise NotImplementedError

    def fraction(self) -> float:
        raise NotImplementedError

    def handle_events(self) -> None:
        raise NotImplementedError

    def happen(self, state: int, t: float, y: Array, which: list[int]) -> tuple[Array, bool]:
        """Note events, run their actions; the state to go on from, and whether this is the end."""
        m = self.plan.motion
        final = False
        y = y.copy()
        index = tuple(int(i) for i in np.unravel_index(state, self.states.shape)) if self.states.shape else ()
        for k in which:
            event = self.plan.events[k]
            q, v = y[: m.nq].copy(), y[m.nq : m.nq + m.nv].copy()
            self.events.append(Occurrence(event.name, float(t), index, q, v))
            if event.action is not None:
                q, v = event.action(t, q.copy(), v.copy())
                y[: m.nq], y[m.nq : m.nq + m.nv] = q, v
            final = final or event.terminal
        return y, final

    def statuses(self) -> Array:
        raise NotImplementedError

    def counts(self) -> tuple[Array, Array]:
        raise NotImplementedError

    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""
        raise NotImplementedError

    def trajectory(self, threads: int) -> Trajectory:
        """The result."""
        plan, states = self.plan, self.states
        m = plan.motion
        t, y = self.samples()
        y = y.reshape(*states.shape, *y.shape[1:])
        p = states.p.reshape(*states.shape, m.np)
        status = self.statuses().reshape(states.shape)
        steps, rejected = (a.astype(np.int64).reshape(states.shape) for a in self.counts())
        failed = int((status == "failed").sum())
        if failed:
            what = "the simulation" if not states.shape else f"{failed} of {states.count} simulations"
            warnings.warn(
                f"{what} could not reach the end: the step size went to zero, or a value is not a number",
                IntegrationWarning,
                stacklevel=3,
            )
        derived: Any = lambda: plan.observe(t, y, p, threads)  # noqa: E731
        return Trajectory(
            t,
            y[..., : m.nq],
            y[..., m.nq : m.nq + m.nv],
            y[..., m.nq + m.nv :],
            model=m.model,
            derived=plan.observe(t, y, p, threads) if plan.hosted else derived,
            events=self.events,
            status=str(status) if not states.shape else status,
            steps=int(steps) if not states.shape else steps,
            rejected=int(rejected) if not states.shape else rejected,
            note=plan.note,
            method=plan.method,
        )


class _Fixed(_Run):
    """Equal steps."""

    def __init__(
        self, plan: Plan, states: _States, t0: float, duration: float, dt: float, save_every: int, times: Array | None
    ) -> None:
        super().__init__(plan, states, t0, duration)
        _check_positive("dt", dt)
        if int(save_every) != save_every or save_every < 1:
            raise InputError("save_every is not a positive whole number", got=repr(save_every), allowed="1, 2, 3, …")
        self.steps = max(1, math.ceil(duration / dt - 1e-9))
        self.h = duration / self.steps
        self.times = times
        self.every = int(save_every) if times is None else _stride(times, t0, self.h, self.steps)
        count = states.count
        saves = self.steps // self.every
        dtype = states.dtype
        self.saved = np.empty((count, saves + 1, plan.motion.ny), dtype)
        self.saved[:, 0] = self.y
        self.rows["start"] = np.tile(np.array([self.t0, self.h], dtype), (count, 1))
        clock = [0.0, 0.0, self.every, self.every, 1.0, stepping.RUNNING]
        self.rows["clock"] = np.tile(np.array(clock, dtype), (count, 1))
        if dtype == np.float32 and self.steps > _SINGLE_STEPS:
            raise InputError(
                "too many steps to be counted in float32",
                got=str(self.steps),
                allowed=f"up to {_SINGLE_STEPS}",
                do="pass float64 arrays",
            )
        nodes = sum(len(program.nodes) for program in plan.routine.programs)
        self.chunk_steps = max(1, int(_CHUNK_SECONDS / (2e-9 + nodes * count * 4e-10)))

    @property
    def clock(self) -> Array:
        return self.rows["clock"]

    def is_running(self) -> bool:
        return bool(((self.clock[:, 0] < self.steps) & ~self.ended).any())

    def chunk(self, kernel: Any, threads: int) -> None:
        done = float(self.clock[~self.ended, 0].min())
        self.clock[:, 1] = np.where(self.ended, self.clock[:, 0], min(self.steps, done + self.chunk_steps))
        kernel.run(self.rows, {}, {"saved": self.saved}, self.states.count, threads)

    def adapt(self, seconds: float) -> None:
        if seconds < 0.5 * _CHUNK_SECONDS:
            self.chunk_steps *= 2
        elif seconds > 2.0 * _CHUNK_SECONDS:
            self.chunk_steps = max(1, self.chunk_steps // 2)

    def fraction(self) -> float:
        return float(self.clock[:, 0].mean()) / self.steps

    def handle_events(self) -> None:
        """Finish the step in which an event happened by hand, so that the state is back on the grid."""
        for k in np.flatnonzero(self.clock[:, 5] == stepping.EVENT):
            number, _, countdown, every, place, _ = (float(x) for x in self.clock[k])
            t, y = self.t0 + number * self.h, self.y[k].astype(float)
            goal = self.t0 + (number + 1.0) * self.h
            final = False
            while goal > t and not final:
                found = self.plan.locator.first(t, y, self.states.p[k], goal - t)
                if found is None:
                    y = self.plan.locator.at(t, y, self.states.p[k], np.array([goal - t]))[0][0]
                    break
                t, (y, final) = t + found[0], self.happen(int(k), t + found[0], found[1], found[2])
            if final:
                self.ended[k] = True
                self.saved[k, int(place) :] = np.nan
                self.clock[k, 5] = stepping.DONE
                continue
            self.y[k] = y
            if countdown < 1.5:
                self.saved[k, int(place)] = y
                countdown, place = every + 1.0, place + 1.0
            self.clock[k] = [number + 1.0, self.steps, countdown - 1.0, every, place, stepping.RUNNING]

    def statuses(self) -> Array:
        done = np.where(self.clock[:, 0] >= self.steps, "done", "interrupted").astype(object)
        done[self.ended] = "event"
        done[(done == "done") & ~np.isfinite(self.y).all(axis=1)] = "failed"
        return np.asarray(done, dtype=np.str_)

    def counts(self) -> tuple[Array, Array]:
        return self.clock[:, 0], np.zeros(self.states.count)

    def samples(self) -> tuple[Array, Array]:
        y = self.saved
        t = self.t0 + self.every * self.h * np.arange(y.shape[1])
        if self.every * (len(t) - 1) == self.steps:
            t[-1] = self.end
        if self.interrupted:
            whole = int(self.clock[~self.ended, 4].min(initial=float(len(t))))
            t, y = t[:whole], y[:, :whole]
        if not self.states.shape and self.ended.any():
            alive = np.isfinite(y[0]).all(axis=1)
            t, y = t[alive], y[:, alive]
        return t, y

    def trajectory(self, threads: int) -> Trajectory:
        whole = super().trajectory(threads)
        if self.times is None:
            return whole
        inside = self.times[self.times <= whole.t[-1] + 1e-12]
        k = np.rint((inside - self.t0) / (self.every * self.h)).astype(int)
        if np.allclose(whole.t[np.clip(k, 0, len(whole.t) - 1)], inside, rtol=0.0, atol=1e-7 * self.h):
            picked = _picked(whole, k)
            picked.t = inside
            return picked
        return whole.at(inside)


class _Adaptive(_Run):
    """Steps as long as the tolerance allows."""

    def __init__(
        self,
        plan: Plan,
        states: _States,
        t0: float,
        duration: float,
        dt: float | None,
        rtol: float,
        atol: float,
        max_step: float,
        times: Array | None,
    ) -> None:
        super().__init__(plan, states, t0, duration)
        count, ny = states.count, plan.motion.ny
        if not max_step > 0.0:
            raise InputError("max_step is not positive", got=repr(max_step), allowed="seconds, or inf")
        if atol < 0.0:
            raise InputError("atol is negative", got=repr(atol), allowed="numbers >= 0")
        self.rows["span"] = np.tile([self.end, rtol, max(atol, 1e-300), max_step], (count, 1))
        first = 0.0 if dt is None else float(dt)
        self.rows["control"] = np.tile([self.t0, first, stepping.RUNNING, 0.0, 0.0, 0.0, 0.0, 0.0], (count, 1))
        self.times = times
        self.tables: dict[str, Array] = {}
        self.pieces: list[tuple[Array, Array]] = [(np.array([self.t0]), self.y[:1].copy())]
        if times is not None:
            self.tables["times"] = np.append(times, np.inf)
            self.saved = np.full((count, len(times), ny), np.nan)
            if times[0] <= self.t0:
                self.saved[:, 0] = self.y
                self.control[:, 3] = 1.0
            self.records = {"saved": self.saved}
        else:
            self.records = {"saved": np.empty((1, _STEP_CAPACITY, ny)), "saved_t": np.empty((1, _STEP_CAPACITY, 1))}
        self.budget = 64 if plan.hosted else 1024

    @property
    def control(self) -> Array:
        return self.rows["control"]

    def is_running(self) -> bool:
        return bool((self.control[:, 2] == stepping.RUNNING).any())

    def chunk(self, kernel: Any, threads: int) -> None:
        self.control[:, 6] = self.budget
        if self.times is None:
            self.control[:, 3] = 0.0
        kernel.run(self.rows, self.tables, self.records, self.states.count, threads)
        if self.times is None:
            made = int(self.control[0, 3])
            self.pieces.append((self.records["saved_t"][0, :made, 0].copy(), self.records["saved"][0, :made].copy()))

    def adapt(self, seconds: float) -> None:
        if seconds < 0.5 * _CHUNK_SECONDS:
            self.budget = min(2 * self.budget, _STEP_CAPACITY)
        elif seconds > 2.0 * _CHUNK_SECONDS:
            self.budget = max(1, self.budget // 2)

    def fraction(self) -> float:
        return float((self.control[:, 0] - self.t0).mean()) / (self.end - self.t0)

    def handle_events(self) -> None:
        for k in np.flatnonzero((self.control[:, 2] == stepping.EVENT) & ~self.ended):
            t, h = (float(x) for x in self.control[k, :2])
            locator, p = self.plan.locator, self.states.p[k]
            found = locator.first(t, self.y[k], p, h)
            if found is None:  # the sign changed twice, or only by rounding: pass over it
                found = h, locator.at(t, self.y[k], p, np.array([h]))[0][0], []
            self._fill(int(k), t, t + found[0])
            y, final = self.happen(int(k), t + found[0], found[1], found[2])
            if self.times is None:
                self.pieces.append((np.array([t + found[0]]), found[1][None]))
            self.y[k] = y
            self.control[k, 0] = t + found[0]
            # What follows may be quite different: start small, so that the next event is not stepped over.
            self.control[k, 1] = 0.0
            self.ended[k] = final
            if not final:
                self.control[k, 2] = stepping.RUNNING if t + found[0] < self.end else stepping.DONE

    def _fill(self, k: int, start: float, stop: float) -> None:
        """Samples at the output times between the last whole step and an event."""
        if self.times is None:
            return
        place = int(self.control[k, 3])
        due = self.times[place:]
        due = due[due <= stop]
        if len(due):
            self.saved[k, place : place + len(due)] = self.plan.locator.at(
                start, self.y[k], self.states.p[k], due - start
            )[0]
            self.control[k, 3] = place + len(due)

    def statuses(self) -> Array:
        return np.array([_STATUS[float(code)] for code in self.control[:, 2]])

    def counts(self) -> tuple[Array, Array]:
        return self.control[:, 4], self.control[:, 5]

    def samples(self) -> tuple[Array, Array]:
        if self.times is None:
            t = np.concatenate([piece[0] for piece in self.pieces])
            return t, np.concatenate([piece[1] for piece in self.pieces])[None]
        t, y = self.times, self.saved
        most = int(self.control[:, 3].max(initial=0.0))
        if self.interrupted or not self.states.shape:
            t, y = t[:most], y[:, :most]
        return t, y


def _picked(whole: Trajectory, k: Array) -> Trajectory:
    """Some of the samples."""

    def derived() -> dict[str, Array]:
        return {n: a[..., k] if n == "energy" else a[..., k, :] for n, a in whole._values.items()}

    return Trajectory(
        whole.t[k],
        whole.q[..., k, :],
        whole.v[..., k, :],
        whole.x[..., k, :],
        model=whole.model,
        derived=derived,
        events=whole.events,
        status=whole.status,
        steps=whole.steps,
        rejected=whole.rejected,
        note=whole.note,
        method=whole.method,
    )


def _stride(times: Array, t0: float, h: float, steps: int) -> int:
    """The most steps between records that still meets all times; 1 where they are not multiples of the step."""
    numbers = (times - t0) / h
    whole = np.rint(numbers)
    if np.abs(numbers - whole).max(initial=0.0) > 1e-7:
        return 1
    return int(np.gcd.reduce([int(n) for n in whole if n > 0])) if whole.max(initial=0.0) > 0 else steps


def _all_single(*given: Any) -> bool:
    """Whether everything that was given is float32."""
    return all(getattr(array, "dtype", None) == np.float32 for array in given if array is not None)


def _vector(name: str, value: Any, size: int) -> Array:
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not made of numbers", got=repr(value)[:80], allowed=f"(..., {size})") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has the wrong shape", got=str(array.shape), allowed=f"(..., {size})")
    return array


def _checked_times(times: Any, t0: float, duration: float) -> Array | None:
    if times is None:
        return None
    array = np.array(times, float)
    slack = 1e-9 * max(1.0, duration)
    inside = array.size and array.ndim == 1 and np.isfinite(array).all()
    if not inside or (np.diff(array) <= 0).any() or array[0] < t0 - slack or array[-1] > t0 + duration + slack:
        raise InputError(
            "output_times do not fit the simulation",
            got=repr(times)[:80],
            allowed=f"increasing times from {t0:g} to {t0 + duration:g} s",
        )
    return np.asarray(np.clip(array, t0, t0 + duration))


def _limited(model: Model, rules: JointRules) -> Motion:
    """The model's limits under these rules, kept with the model: they take a mass matrix."""
    known: dict[JointRules, Motion] = model.__dict__.setdefault("_simulation_limits", {})
    if rules not in known:
        known[rules] = Motion(model, (), rules, 0)
    return known[rules]


def _check_start(motion: Motion, y: Array) -> None:
    """Nothing starts beyond a joint limit: its spring would fire the joint off."""
    beyond = {
        limit.joint: limit.bound
        for limit in motion.limits
        if ((y[:, limit.q] - limit.bound) * limit.side > 1e-9 * max(1.0, abs(limit.bound))).any()
    }
    if beyond:
        raise InputError(
            "q0 is beyond joint limits",
            got=", ".join(f"{name} (limit {bound:g})" for name, bound in beyond.items()),
            allowed="model.lower <= q0 <= model.upper",
            do='start inside, or pass limits="ignore"',
        )


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"no such {name}", got=repr(value), allowed=", ".join(map(repr, allowed)))


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, (int, float, np.floating, np.integer)) or not 0.0 < float(value) < math.inf:
        raise InputError(f"{name} is not a positive number", got=repr(value), allowed="a finite number above 0")


def _checked_threads(threads: Any) -> int:
    if not isinstance(threads, (int, np.integer)) or threads < 1:
        raise InputError("threads is not a positive whole number", got=repr(threads), allowed="1, 2, 3, …")
    return int(threads)
