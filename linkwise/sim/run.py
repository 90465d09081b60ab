"""What runs of fixed and of adaptive steps share: chunks, events and results."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, message
from linkwise.model.model import Model
from linkwise.sim.checks import spacing
from linkwise.sim.closed_states import OPEN, ClosedStates, drift
from linkwise.sim.curves import RunTables
from linkwise.sim.events import Event, Occurrence
from linkwise.sim.interrupts import held_back
from linkwise.sim.jumps import Jumps
from linkwise.sim.plans import Plan
from linkwise.sim.progress import Progress
from linkwise.sim.states import States
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.work import WAITING
from linkwise.targets.home import Home
from linkwise.targets.processor import PROCESSOR

CHUNK_SECONDS = 0.1  # the kernel comes up for air this often: for the progress bar and for Ctrl-C
_INSTANT = 1e-14  # of the time: events no farther apart happen at once
_IDLE = 32  # events in a row that let no time pass: there will be no end of them


class IntegrationWarning(UserWarning):
    """A simulation could not reach its end, or what it gives is not to be trusted."""


class Jump(NamedTuple):
    """A state of the batch at an event that moved it or ended its run: when, and both sides (ny)."""

    state: int
    t: float
    before: Array
    after: Array


class Zeno(NamedTuple):
    """Events that happen ever faster, until no time passes between them: which, when, and how often there were."""

    name: str
    t: float
    times: int


class Run(ABC):
    """What fixed and adaptive runs share: chunks, events and results.

    States, samples and tables live at ``home``, where the kernel runs. What says how far each state is, a few numbers,
    is on the host and travels with each chunk; of states and samples only those with events do.
    """

    def __init__(
        self, plan: Plan, states: States, t0: float, duration: float, curves: RunTables, home: Home = PROCESSOR
    ) -> None:
        self.plan, self.states, self.curves, self.home = plan, states, curves, home
        Run.pace(self, float(t0), float(duration))
        everyone = np.arange(states.count)
        y = self._settled(everyone, np.full(states.count, self.t0), states.y.copy())
        self.rows: dict[str, Any] = {"y": home.to_device(y), "p": home.to_device(curves.widened(states.p))}
        self.tables: dict[str, Any] = {name: home.to_device(array) for name, array in curves.arrays.items()}
        self.events: list[Occurrence] = []
        self.jumps: list[Jump] = []
        self.ended = np.zeros(states.count, bool)  # by a terminal event, or by events without end
        self.zeno: dict[int, Zeno] = {}  # which of them by the latter
        self._last: dict[int, tuple[float, int]] = {}  # when an event last was, and how many in a row let no time pass
        if plan.events:
            self.rows["g"] = np.zeros((states.count, len(plan.events)), states.dtype)  # see `watching`
        self.interrupted = False
        self.trouble = ""

    def go(self, bar: Progress, threads: int) -> None:
        """Run chunk after chunk until all states are done, or the user has had enough."""
        kernel = self.plan.kernel(self.states.count, self.states.dtype, self.home)
        whole = self._compiled_chunk if self.plan.is_compiled else self._hosted_chunk
        try:
            while self.is_running():
                start = time.perf_counter()
                whole(kernel, threads)
                self.adapt(time.perf_counter() - start)
                if self.plan.motion.samplers:
                    self.answer()
                if self.plan.events:
                    self.handle_events()
                if bar.is_watched:
                    bar.update(self.fraction())
        except KeyboardInterrupt:
            self.interrupted = True

    def _compiled_chunk(self, kernel: Any, threads: int) -> None:
        with held_back():  # chunks are short
            self.chunk(kernel, threads)

    def _hosted_chunk(self, kernel: Any, threads: int) -> None:
        """A chunk that calls Python functions, which must be open to an interrupt: then it has not been."""
        start = {name: array.copy() for name, array in self.rows.items()}
        try:
            self.chunk(kernel, threads)
        except KeyboardInterrupt:
            for name, array in start.items():
                self.rows[name][...] = array
            raise

    @property
    def y(self) -> Any:
        """The states (count, ny), at home."""
        return self.rows["y"]

    def state(self, k: int) -> Array:
        """One of them (ny), on the host."""
        return np.asarray(self.home.taken(self.y, k))

    def pace(self, t0: float, duration: float) -> None:
        """From when to when."""
        self.t0, self.end = t0, t0 + duration
        self.rounding = spacing(max(abs(t0), abs(self.end)), self.states.dtype)
        self.slack = 8.0 * self.rounding
        """Times that differ by no more are one."""

    def resume(self, t0: float, duration: float) -> None:
        """Make ready to go on from a time, by a duration; what was recorded is forgotten."""
        self.pace(t0, duration)
        self.jumps.clear()
        self.interrupted = False
        going_on = np.flatnonzero(~self.ended)
        self.settle(going_on, np.full(len(going_on), t0))

    def leave_out(self, ended: Array) -> None:
        """States (count) that had ended before this run: they stay as they were."""
        self.ended |= ended
        self.y[self.home.to_device(ended)] = self.home.to_device(self.states.y[ended])

    @abstractmethod
    def is_running(self) -> bool:
        """Whether any state has steps to make."""

    @abstractmethod
    def chunk(self, kernel: Any, threads: int) -> None:
        """Run the kernel for about as long as a chunk may last."""

    @abstractmethod
    def adapt(self, seconds: float) -> None:
        """Make the next chunk longer or shorter, given the seconds that one took."""

    @abstractmethod
    def fraction(self) -> float:
        """The part that is done, 0 to 1."""

    @abstractmethod
    def handle_events(self) -> None:
        """Find what happened in the steps at which the kernel stopped, and go on from there."""

    def parameters_at(self, k: int, t: float) -> Array:
        """p of one state (np) with the rows of tables that are in force from t on."""
        return np.asarray(self.curves.filled(self.states.p[k : k + 1], np.array([t + self.slack]), np.array([k]))[0])

    def settle(self, which: Array, t: Array, python_only: bool = False) -> None:
        """The samples of some states (n) that are due at times (n), in place."""
        if self.plan.motion.samplers and len(which):
            self.home.put(self.y, which, self._settled(which, t, self.home.taken(self.y, which), python_only))

    def _settled(self, which: Array, t: Array, y: Array, python_only: bool = False) -> Array:
        """States (n, ny) of the host after the samples that are due."""
        if not self.plan.motion.samplers or not len(which):
            return y
        p = self.curves.filled(self.states.p[which], t + self.slack, which)
        return self.plan.sampled(t, y, p, self.slack, python_only).astype(y.dtype, copy=False)

    @abstractmethod
    def answer(self) -> None:
        """Sample the Python functions that the kernel waits for; outside of it, so that they are open to interrupts."""

    def sampled_by_python(self, code: Array, t: Array) -> Array:
        """The states (n) that waited, which have been sampled."""
        which = np.flatnonzero((code == WAITING) & ~self.ended)
        self.settle(which, t[which].astype(float), python_only=True)
        return which

    def sides(self, state: int) -> Array:
        """By their signs, the sides (n) on which a state's event functions were last, for :meth:`Locator.first`."""
        return np.asarray(self.rows["g"][state], float)

    def happen(self, state: int, t: float, y: Array, which: list[int], h: float) -> tuple[Array, bool]:
        """Note events that were found in a step h, run their actions; where it goes on, and whether this is the end.

        None at all where a sign changed twice in the step, or only by rounding.
        """
        m = self.plan.motion
        events = [event for event in (self.plan.events[k] for k in which) if not self._holds_already(event, y)]
        index = tuple(int(i) for i in np.unravel_index(state, self.states.shape)) if self.states.shape else ()
        after, found = y.copy(), []
        for event in events:
            q, v = after[: m.nq].copy(), after[m.nq : m.nq + m.nv].copy()
            if event.action is not None:
                after[: m.nq + m.nv] = _after(event, event.action(float(t), q.copy(), v.copy()), m.model)
            impulses = self._closed(event, state, t, after) if event.changes and m.model.closures else None
            later = after[: m.nq].copy(), after[m.nq : m.nq + m.nv].copy()
            found.append(Occurrence(event.name, float(t), index, q, v, *later, impulses))
        changes = any(event.changes for event in events)
        self.rows["g"][state] = self._sides_after(state, t, y, after if changes else None, which, h)
        self.events += found
        final = any(event.terminal for event in events) or self._has_no_end(state, t, h, found)
        if final or changes:
            self.jumps.append(Jump(state, float(t), y.copy(), after.copy()))
        return after, final

    def _sides_after(self, state: int, t: float, y: Array, after: Array | None, which: list[int], h: float) -> Array:
        """The sides on which event functions are to be seen from a place on where some events have just happened.

        Where events have changed the motion the place may still lie on the surface that was reached, or by rounding
        beyond it. Then the result of the action says which side counts: where it leads on through the surface, that is
        done; where it leads back, or nowhere, the surface is still to be passed, and that will be an event again.
        """
        locator, p = self.plan.locator, self.parameters_at(state, t)
        passed = locator.sides_after(t, y, p, self.sides(state), which)
        if after is None:
            return passed
        before, values = locator.now(t, y, p), locator.now(t, after, p)
        sides = np.where(values == before, passed, np.sign(values))
        reached = np.abs(values) <= np.abs(before)
        on_surface = [k for k in which if reached[k] and sides[k] * passed[k] >= 0.0]
        if on_surface:
            leaves = locator.leaves(t, after, p, h, self.curves.of(state))
            sides[on_surface] = np.where(leaves == passed, passed, -passed)[on_surface]
        return sides

    def _has_no_end(self, state: int, t: float, h: float, found: list[Occurrence]) -> bool:
        """Whether events in a state follow each other without time passing, again and again."""
        if not found:
            return False
        last, idle = self._last.get(state, (-math.inf, 0))
        idle = idle + 1 if t - last <= _INSTANT * max(abs(t), h) else 0
        self._last[state] = (t, idle)
        if idle <= max(_IDLE, len(self.plan.events)):
            return False
        name, index = found[-1].name, found[-1].state
        times = sum(event.name == name and event.state == index for event in self.events)
        self.zeno[state] = Zeno(name, float(t), times)
        return True

    def _holds_already(self, event: Event, y: Array) -> bool:
        """Whether an event would change nothing: closed equations cross zero again and again."""
        m = self.plan.motion
        if not event.switches or event.action is not None or event.terminal:
            return False
        names = [closure.name for closure in m.model.closures]
        flags = y[m.ny - m.switches :]
        wanted = [(name, 1.0) for name in event.attach] + [(name, 0.0) for name in event.release]
        return all(flags[names.index(name)] == value for name, value in wanted)

    def _closed(self, event: Event, state: int, t: float, y: Array) -> Array | None:
        """Let closures take hold and let go, and put the state y (in place) where it obeys them; their impulses."""
        m = self.plan.motion
        if event.switches:
            flags = y[m.ny - m.switches :]
            names = [closure.name for closure in m.model.closures]
            for name in event.attach:
                flags[names.index(name)] = 1.0
            for name in event.release:
                flags[names.index(name)] = 0.0
        if not m.projects and not event.attach:
            return None
        states = ClosedStates(m, np.array([t]), y[None], self.states.p[state : state + 1])
        states.close(f"let the event {event.name!r} happen, or its action lead, where the closure is closed")
        impulses = states.obey()
        y[: m.nq], y[m.nq : m.nq + m.nv] = states.q[0], states.v[0]
        return np.asarray(impulses[0])

    def statuses(self) -> Array:
        """How each state ended (count)."""
        found = self._statuses()
        found[list(self.zeno)] = "zeno"
        return found

    @abstractmethod
    def _statuses(self) -> Array:
        """How each state ended (count), those with events without end left out."""

    @abstractmethod
    def counts(self) -> tuple[Array, Array]:
        """Steps accepted and rejected, (count) each."""

    @abstractmethod
    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""

    def trajectory(self, threads: int) -> Trajectory:
        """The result."""
        plan, states = self.plan, self.states
        m = plan.motion
        t, samples = self.samples()
        home, y = self.home, self.home.to_device(samples)
        y = y.reshape(*states.shape, *y.shape[1:])
        p = states.p.reshape(*states.shape, m.n_given)
        statuses = self.statuses()
        status = statuses.reshape(states.shape)
        steps, rejected = (a.astype(np.int64).reshape(states.shape) for a in self.counts())
        reasons = self._reasons(statuses)
        self.trouble = self._trouble(reasons) or self._drift() or self._roughness()
        members = np.arange(states.count).reshape(states.shape)
        derived: Any = lambda: plan.observe(t, y, p, threads, self.curves, members, self.slack, home)  # noqa: E731
        return Trajectory(
            t,
            home.as_callers_library(y[..., : m.nq]),
            home.as_callers_library(y[..., m.nq : m.nq + m.nv]),
            home.as_callers_library(y[..., m.own_x]),
            p=home.as_callers_library(home.to_device(p)),
            model=m.model,
            jumps=self._jumps(threads),
            derived=derived() if plan.hosted else derived,
            events=self.events,
            status=status if states.shape else str(statuses[0]),
            steps=steps if states.shape else int(steps),
            rejected=rejected if states.shape else int(rejected),
            note="\n".join(filter(None, (plan.note, self.trouble))),
            reasons=reasons,
            method=plan.method,
            storage=getattr(self, "saved", None),
            home=home,
        )

    def _drift(self) -> str:
        """Which closure did not stay closed to the end; empty if all did, or nobody saw to it."""
        m = self.plan.motion
        if not m.projects:
            return ""
        y = self.home.to_host(self.y)
        return drift(m, self.times_reached(), y, self.states.p, OPEN if y.dtype == np.float64 else 1e-3)

    def _roughness(self) -> str:
        """Where steps are too long for the motion; empty if none is known to be."""
        return ""

    @abstractmethod
    def times_reached(self) -> Array:
        """When each state was last (count)."""

    def _jumps(self, threads: int) -> Jumps | None:
        if not self.jumps:
            return None
        plan, m = self.plan, self.plan.motion
        t = np.array([jump.t for jump in self.jumps])
        state = np.array([jump.state for jump in self.jumps])
        y = np.array([(jump.before, jump.after) for jump in self.jumps], self.states.dtype)
        parts = {"q": y[..., : m.nq], "v": y[..., m.nq : m.nq + m.nv], "x": y[..., m.own_x]}
        derived: Any = lambda: plan.observe(  # noqa: E731
            t[:, None], y, self.states.p[state], threads, self.curves, state, self.slack
        )
        return Jumps(t, state, parts, derived() if plan.hosted else derived)

    def ending(self, k: int, who: str) -> str:
        """What stopped one state, for people."""
        zeno = self.zeno.get(k)
        if zeno is None:
            return self._ending(k, who)
        return message(
            f"{who} ended: the event {zeno.name!r} happens again and again without time passing (Zeno behaviour)",
            got=f"{zeno.times} times until t = {zeno.t:.9g} s",
            do="let the action end what repeats (a ball that has come to rest should stop bouncing: attach it, or let "
            "it lie), or make the event terminal",
        )

    @abstractmethod
    def _ending(self, k: int, who: str) -> str:
        """What stopped one state other than events without end, for people."""

    def _reasons(self, statuses: Array) -> dict[tuple[int, ...], str]:
        """For each state that did not reach the end, by its index in the batch, what stopped it."""
        lost = np.flatnonzero(np.isin(statuses, ("failed", "max_steps", "zeno")))
        found = {}
        for k in lost:
            place = tuple(int(i) for i in np.unravel_index(k, self.states.shape)) if self.states.shape else ()
            who = f"state {place if len(place) > 1 else place[0]} of the batch" if place else "the simulation"
            found[place] = self.ending(int(k), who)
        return found

    def _trouble(self, reasons: dict[tuple[int, ...], str]) -> str:
        """Why states did not reach the end, told of the first of them; empty if all did."""
        if not reasons:
            return ""
        first = next(iter(reasons.values()))
        if not self.states.shape:
            return first
        share = f"({len(reasons)} of {self.states.count} did not reach the end)"
        return first.replace("of the batch", f"of the batch {share}", 1)


def _after(event: Event, result: Any, model: Model) -> Array:
    """What an event's action returned, as [q, v] with quaternions of length one."""
    try:
        q, v = (np.asarray(part, float) for part in result)
        fits = q.shape == (model.nq,) and v.shape == (model.nv,)
        got = f"shapes {q.shape} and {v.shape}"
    except (TypeError, ValueError):
        fits, got = False, repr(result)[:80]
    if not fits:
        raise InputError(
            f"the action of the event {event.name!r} returned something other than (q, v)",
            got=got,
            allowed=f"q ({model.nq},) and v ({model.nv},)",
        )
    return np.concatenate([model.integrate(q, np.zeros(model.nv)), v])


def storage(home: Home, out: Trajectory | None, shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory for samples (count, T, ny): that of an earlier trajectory, or new."""
    if out is None:
        try:
            return home.empty(shape, dtype)
        except (MemoryError, ValueError):  # NumPy's two ways to say so
            raise InputError(
                "the samples do not fit into memory",
                got=f"{shape[0]} states, {shape[1]} times: {math.prod(shape) * np.dtype(dtype).itemsize / 1e9:.3g} GB",
                do="a larger save_every, or output_times",
            ) from None
    memory: Any = getattr(out, "storage", None)
    if memory is None or memory.shape != shape or memory.dtype != dtype or not home.owns(memory):
        raise InputError(
            "out does not fit this simulation",
            got=repr(out) if memory is None else f"samples {memory.shape} {memory.dtype} on {out.home.name}",
            allowed=f"a trajectory with samples {shape} {np.dtype(dtype)}: (states, times, nq + nv + nx), "
            f"on {home.name}",
            do="give the result of an earlier run with the same batch, times and model",
        )
    return memory
