"""A run: the kernel of a plan called again and again, what happens in between, and its result."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import message
from linkwise.memoized import once
from linkwise.model.closures import OPEN
from linkwise.sim.chart import Instant
from linkwise.sim.closed_states import drift
from linkwise.sim.contact_notes import doubts, overlap_note
from linkwise.sim.events import ImpactEvent
from linkwise.sim.happenings import Happenings
from linkwise.sim.plans import RunSamples, SimulationPlan
from linkwise.sim.progress import Progress
from linkwise.sim.states import States
from linkwise.sim.step_size import EqualSteps, StepSize
from linkwise.sim.tables import RunTables
from linkwise.sim.trajectory import Jumps, Trajectory
from linkwise.sim.work import DONE, EVENT, EXHAUSTED, FAILED, RUNNING, WAITING, Clock, CompiledLoop, Span
from linkwise.targets.device import Device
from linkwise.targets.llvm.device import PROCESSOR

_CHUNK_SECONDS = 0.1  # the kernel comes up for air this often: for the progress bar and for Ctrl-C
_STATUS = {RUNNING: "interrupted", DONE: "done", EVENT: "event", FAILED: "failed", EXHAUSTED: "max_steps"}
_STATUS[WAITING] = "interrupted"
_NAMES = np.array([_STATUS[code] for code in sorted(_STATUS)])  # they are counted from 0


@contextmanager
def held_back() -> Iterator[None]:
    """Let an interrupt wait until the block is left.

    Compiled code cannot be interrupted anyhow; what this protects is the Python around it and the other threads, which
    would go on writing. Only the main thread is ever interrupted.
    """
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    waiting: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if waiting:
        usual(*waiting[-1])


class Run:
    """Steps of some sizes from states on, for a duration; with records at output times, if there are any.

    States, samples and tables live at ``home``, where the kernel runs. What says how far each state is, a few numbers,
    is on the host and travels with each chunk; of states and samples only those with events do.
    """

    def __init__(
        self,
        plan: SimulationPlan,
        states: States,
        t0: float,
        duration: float,
        sizes: StepSize,
        curves: RunTables,
        times: Array | None = None,
        out: Trajectory | None = None,
        home: Device = PROCESSOR,
    ) -> None:
        self.plan, self.states, self.sizes, self.curves, self.home = plan, states, sizes, curves, home
        self.happened = Happenings(plan, states, curves)
        self.pace(float(t0), float(duration))
        count, dtype = states.count, states.dtype
        y = self._settled(np.arange(count), np.full(count, self.t0), states.y.copy())
        p = curves.widened(states.p) if curves.curves else states.p
        self.clock = np.zeros((count, Clock.SIZE), dtype)
        self.rows: dict[str, Array] = {"y": home.to_device(y), "p": home.to_device(p)}
        self.rows |= {"clock": self.clock, **({"g": self.happened.g} if plan.events else {})}
        for buffer in plan.routine.kept:
            if buffer.name not in self.rows:
                self.rows[buffer.name] = home.to_device(np.zeros((count, buffer.size), dtype))
        self.tables: dict[str, Array] = {name: home.to_device(array) for name, array in curves.arrays.items()}
        self.ended = np.zeros(count, bool)  # by a terminal event, or by events without end
        self.interrupted = False
        self.trouble = self.saturation = ""
        self.records = plan.records(self, times, out)
        self._begin()
        self.budget = 16  # steps that the next call of the kernel may make
        if plan.operations is not None:
            seconds = (plan.operations + 1) * max(home.alone, count * home.together)
            self.budget = max(1, min(sizes.at_once, int(_CHUNK_SECONDS / seconds)))

    def _begin(self) -> None:
        """Set the clocks of all states to the beginning."""
        sizes = self.sizes
        self.clock[...] = [self.t0, sizes.h, RUNNING, self.records.begun, 0.0, 0.0, 0.0, sizes.every]  # as in Clock
        self.rows["span"][...] = self.home.to_device(np.array([self.end, self.slack, *sizes.given(self.t0)]))

    def go(self, bar: Progress | None, threads: int) -> None:
        """Run chunk after chunk until all states are done, or the user has had enough."""
        kernel = self.kernel()
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
                if bar is not None:
                    bar.update(self.fraction())
        except KeyboardInterrupt:
            self.interrupted = True

    def kernel(self) -> CompiledLoop:
        """The compiled loop, for few states or for many; run by the interpreter where Python must be asked."""
        plan, dtype, few = self.plan, self.states.dtype, self.states.count < 3
        key = dtype, few, self.home.name
        known = plan.kernels.get(key)
        return known or once(plan.kernels, key, lambda: self.home.kernel(plan.routine, dtype, few))

    def _compiled_chunk(self, kernel: CompiledLoop, threads: int) -> None:
        with held_back():  # chunks are short
            self.chunk(kernel, threads)

    def _hosted_chunk(self, kernel: CompiledLoop, threads: int) -> None:
        """A chunk that calls Python functions, which must be open to an interrupt: then it has not been."""
        start = {name: array.copy() for name, array in self.rows.items()}
        try:
            self.chunk(kernel, threads)
        except KeyboardInterrupt:
            for name, array in start.items():
                self.rows[name][...] = array
            raise

    @property
    def y(self) -> Array:
        """The states (count, ny), at home."""
        return self.rows["y"]

    def state(self, k: int) -> Array:
        """One of them (ny), on the host."""
        return np.asarray(self.home.taken(self.y, k))

    def pace(self, t0: float, duration: float) -> None:
        """From when to when."""
        self.t0, self.end = t0, t0 + duration
        self.rounding = self.states.spacing(max(abs(t0), abs(self.end)))
        self.slack = self.happened.slack = self.sizes.pace(duration, 8.0 * self.rounding)
        """Times that differ by no more are one."""

    def resume(self, t0: float, duration: float) -> None:
        """Make ready to go on from a time, by a duration, in steps as long as the last; records are forgotten."""
        self.pace(t0, duration)
        self.happened.jumps.clear()
        self.interrupted = False
        self.records.begin()
        h, status = self.clock[:, Clock.H].copy(), self.status.copy()
        self._begin()
        if self.sizes.judges:
            self.clock[:, Clock.H] = h
        over = self.ended | (status == FAILED) | (status == EXHAUSTED)
        self.clock[over, Clock.STATUS] = status[over]
        going_on = np.flatnonzero(~self.ended)
        self.settle(going_on, np.full(len(going_on), t0))

    def leave_out(self, ended: Array) -> None:
        """States (count) that had ended before this run: they stay as they were."""
        self.ended |= ended
        self.clock[ended, Clock.STATUS] = EVENT
        self.y[self.home.to_device(ended)] = self.home.to_device(self.states.y[ended])

    @property
    def status(self) -> Array:
        """Status of each state, as a number (count)."""
        return self.clock[:, Clock.STATUS]

    @property
    def tried(self) -> Array:
        """Steps that each state has made or tried (count)."""
        return self.clock[:, Clock.ACCEPTED] + self.clock[:, Clock.REJECTED]

    def is_running(self) -> bool:
        """Whether any state has steps to make."""
        return bool((self.status == RUNNING).any())

    def chunk(self, kernel: CompiledLoop, threads: int) -> None:
        """Run the kernel for about as long as a chunk may last."""
        self.clock[:, Clock.LEFT] = np.minimum(self.budget, self.sizes.most - self.tried)
        kernel.run(self.rows, self.tables, self.records.arrays, self.states.count, threads)
        self.records.gather()
        self._finish()

    def adapt(self, seconds: float) -> None:
        """Make the next chunk longer or shorter, given the seconds that one took."""
        if seconds < 0.5 * _CHUNK_SECONDS:
            self.budget = min(2 * self.budget, self.sizes.at_once)
        elif seconds > 2.0 * _CHUNK_SECONDS:
            self.budget = max(1, self.budget // 2)

    def fraction(self) -> float:
        """The part that is done, 0 to 1."""
        return float((self.times_reached() - self.t0).mean()) / (self.end - self.t0)

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

    def answer(self) -> None:
        """Sample the Python functions that the kernel waits for; outside of it, so that they are open to interrupts."""
        waited = np.flatnonzero(self.status == WAITING)
        self.settle(waited, self.clock[waited, Clock.T].astype(float), python_only=True)
        for k in waited:
            self.clock[k, Clock.STATUS] = RUNNING
            self.records.sampled(int(k))
            if self.sizes.judges:
                self.clock[k, Clock.HELD] = -1.0  # what acts has changed, and so has the derivative

    def handle_events(self) -> None:
        """Find what happened in the steps at which the kernel stopped, and go on from there."""
        for k in np.flatnonzero((self.status == EVENT) & ~self.ended):
            self.sizes.pass_events(self, int(k))
        self._finish()

    def _finish(self) -> None:
        """States that have made all the steps they may."""
        spent = (self.tried >= self.sizes.most) & (self.status == RUNNING)
        self.clock[spent, Clock.STATUS] = self.sizes.spent

    def times_reached(self) -> Array:
        """The last time of each state (count)."""
        return np.where(self.status == DONE, self.end, self.clock[:, Clock.T].astype(float))

    def statuses(self) -> Array:
        """The way each state ended (count)."""
        found: Array = _NAMES[self.status.astype(int)]
        found[(self.status == EVENT) & ~self.ended] = "interrupted"  # before it could be looked into
        found[(found == "done") & ~self.home.to_host(self.home.xp.isfinite(self.y).all(axis=1))] = "failed"
        found[list(self.happened.zeno)] = "zeno"
        return found

    def trajectory(self, threads: int) -> Trajectory:
        """The result, at the output times if there are any."""
        plan, states = self.plan, self.states
        m = plan.motion
        t, samples = self.records.samples()
        home, y = self.home, self.home.to_device(samples)
        y = y.reshape(*states.shape, *y.shape[1:])
        p = states.p.reshape(*states.shape, m.n_given)
        statuses = self.statuses()
        status = statuses.reshape(states.shape)
        steps, rejected = (
            a.astype(np.int64).reshape(states.shape)
            for a in (self.clock[:, c] for c in (Clock.ACCEPTED, Clock.REJECTED))
        )
        reasons = self._reasons(statuses)
        self.trouble = self._trouble(reasons) or self._drift() or self.sizes.doubt(self) or self._contact_doubts(t, y)
        members = np.arange(states.count).reshape(states.shape)
        seen = RunSamples(t, y, p, threads, self.curves, members, self.slack, home)
        if home is PROCESSOR and plan.clipping[0]:
            self.saturation = _told(t, plan.clipped(seen))
        notes = plan.note, self.trouble, self.saturation, self._start_of_contacts(), plan.surfaces
        whole = Trajectory(
            t,
            home.as_callers_library(y[..., : m.nq]),
            home.as_callers_library(y[..., m.nq : m.nq + m.nv]),
            home.as_callers_library(y[..., m.own_x]),
            p=home.as_callers_library(home.to_device(p)),
            model=m.varying.given,
            jumps=self._jumps(threads),
            derived=plan.observe(seen) if plan.hosted else partial(plan.observe, seen),
            events=self.happened.events,
            status=status if states.shape else str(statuses[0]),
            steps=steps if states.shape else int(steps),
            rejected=rejected if states.shape else int(rejected),
            note="\n".join(filter(None, notes)),
            reasons=reasons,
            method=plan.method,
            columns={"x": m.state_names},
            storage=self.records.storage,
            home=home,
        )
        return whole if self.records.between is None else whole.at(self.records.between)

    def _drift(self) -> str:
        """Sentence on the closure that did not stay closed to the end; empty if all did, or nobody saw to it."""
        m = self.plan.motion
        if not m.projects:
            return ""
        y = self.home.to_host(self.y)
        return drift(m, self.times_reached(), y, self.states.p, OPEN if y.dtype == np.float64 else 1e-3)

    def _contact_doubts(self, t: Array, y: Array) -> str:
        """Warnings of what contacts may have missed in samples y (..., T, ny)."""
        m = self.plan.motion
        end = m.ny - m.switches
        return doubts(m, t, self.home.to_host(y[..., end - m.touching : end])) if m.touching else ""

    def _start_of_contacts(self) -> str:
        """A note on surfaces that overlap where the run starts."""
        m = self.plan.motion
        end = m.ny - m.switches
        return overlap_note(m, self.home.to_host(self.states.y)[:, end - m.touching : end]) if m.touching else ""

    def _jumps(self, threads: int) -> Jumps | None:
        jumps, plan, m = self.happened.jumps, self.plan, self.plan.motion
        if not jumps:
            return None
        t = np.array([jump.t for jump in jumps])
        state = np.array([jump.state for jump in jumps])
        y = np.array([(jump.before, jump.after) for jump in jumps], self.states.dtype)
        parts = {"q": y[..., : m.nq], "v": y[..., m.nq : m.nq + m.nv], "x": y[..., m.own_x]}
        seen = RunSamples(t[:, None], y, self.states.p[state], threads, self.curves, state, self.slack)
        return Jumps(t, state, parts, plan.observe(seen) if plan.hosted else partial(plan.observe, seen))

    def ending(self, k: int, who: str) -> str:
        """Reason why one state stopped, for people."""
        zeno = self.happened.zeno.get(k)
        if zeno is None:
            return self.sizes.ending(self, k, who)
        do = (
            "let the action end what repeats (a ball that has come to rest should stop bouncing: attach it, or let it "
            "lie), or make the event terminal"
        )
        if any(isinstance(event, ImpactEvent) and event.name == zeno.name for event in self.plan.events):
            do = 'method="moreau", without these events, goes on where surfaces have come to rest on each other'
        return message(
            f"{who} ended: the event {zeno.name!r} happens again and again without time passing (Zeno behaviour)",
            got=f"{zeno.times} times until t = {zeno.t:.9g} s",
            do=do,
        )

    def blamed(self, k: int, t: float, y: Array, ahead: float) -> str:
        """Element that has no value in a state of a run, or where that leads to in a time ahead; empty if all have."""
        m, p = self.plan.motion, self.happened.parameters_at(k, t).tolist()
        q, v, x = m.parts(y.tolist())
        places = [(t, q)]
        with suppress(ArithmeticError, ValueError):  # numbers of Python: what moves so fast gets nowhere
            places.append((t + ahead, m.moved(q, [ahead * each for each in v])))
        found = (m.without_value(Instant(when, place, v, x, p)) for when, place in places)
        return next(filter(None, found), "")

    def _reasons(self, statuses: Array) -> dict[tuple[int, ...], str]:
        """For each state that did not reach the end, by its index in the batch, what stopped it."""
        found = {}
        for k in np.flatnonzero((statuses != "done") & (statuses != "event") & (statuses != "interrupted")):
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


_MOST_TOLD = 5


def _told(t: Array, clipped: dict[str, Array]) -> str:
    """Sentence on the actuators that were at their limits and for how long, the longest first; empty if none was."""
    if not clipped or len(t) < 2:
        return ""
    weights = np.concatenate([[0.0], np.diff(t)]) / 2.0 + np.concatenate([np.diff(t), [0.0]]) / 2.0
    times = {name: flags @ weights for name, flags in clipped.items()}
    longest = sorted(times, key=lambda name: -float(np.max(times[name])))
    shown = []
    for name in longest[:_MOST_TOLD]:
        each = times[name]
        states = f" at most, in {np.count_nonzero(each)} of {each.size} states" if each.ndim else ""
        shown.append(f"{name} for {float(np.max(each)):.3g} s{states}")
    more = [f"and {len(longest) - _MOST_TOLD} more"] if len(longest) > _MOST_TOLD else []
    return message(
        f"actuators were at their limits, within {t[-1] - t[0]:.4g} s, as far as the samples tell",
        got=", ".join(shown + more),
        do="ask for less; lw.JointRules(effort=False) lets joints push as hard as they are told",
    )


def is_plain(run: Run) -> bool:
    """Whether nothing can happen but equal steps, to some state: no Python function, no events, no samples."""
    plan = run.plan
    quiet = plan.is_compiled and not plan.events and not plan.motion.samplers
    return isinstance(run.sizes, EqualSteps) and run.states.count > 0 and quiet


class RunPieces:
    """Pieces of a plain run, on its own rows."""

    def __init__(self, run: Run, threads: int) -> None:
        assert isinstance(run.sizes, EqualSteps)
        self._run, self._sizes, self._count = run, run.sizes, run.states.count
        self._span, self._clock = run.rows["span"], run.clock
        # Rows of few numbers: a memory view is written in a fraction of the time that an array takes.
        self._first_span: Any = memoryview(self._span[0])
        self._first_clock: Any = memoryview(self._clock[0])
        call = run.kernel().bound(run.rows, run.tables, run.records.arrays, self._count, threads)
        self._call = call if threads == 1 else lambda: _uninterrupted(call)
        self.end = run.end
        """Of the last piece, s."""

    def advance(self, t: float, duration: object) -> bool:
        """From t on by a duration; False if it is too long to be left alone with, or not a duration."""
        run, sizes = self._run, self._sizes
        if not isinstance(duration, float) or not 0.0 < duration <= run.budget * sizes.dt:
            return False
        run.pace(t, duration)
        if sizes.dt < run.rounding:  # time would stand still
            return False
        span, clock = self._first_span, self._first_clock
        clock[Clock.ACCEPTED], self.end = 0.0, run.end
        span[Span.END], span[Span.SLACK], span[Span.T0] = run.end, run.slack, t
        clock[Clock.T], clock[Clock.H], clock[Clock.STATUS] = t, sizes.h, RUNNING
        clock[Clock.LEFT], clock[Clock.COUNTDOWN] = sizes.most, sizes.every
        if self._count > 1:
            self._span[1:], self._clock[1:] = self._span[0], self._clock[0]
        self._call()
        return True

    def time(self, start: float) -> float:
        """Time at which a piece that began at ``start`` was interrupted: there, or at its end."""
        done = self._first_clock[Clock.ACCEPTED] >= self._sizes.most
        return self.end if done and self.end > start else start


def _uninterrupted(call: Callable[[], None]) -> None:
    """A call of several threads, which would go on writing."""
    with held_back():
        call()
