"""A run of equal steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.codegen.home import Home
from linkwise.codegen.processor import PROCESSOR
from linkwise.errors import InputError, message
from linkwise.sim.curves import RunTables
from linkwise.sim.fixed_loop import CLOCK, START
from linkwise.sim.plans import Plan
from linkwise.sim.run import CHUNK_SECONDS, Run, storage
from linkwise.sim.states import States
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.work import DONE, EVENT, RUNNING

Array = NDArray[Any]

_SINGLE_STEPS = 2**24


class FixedRun(Run):
    """Equal steps."""

    def __init__(
        self,
        plan: Plan,
        states: States,
        t0: float,
        duration: float,
        dt: float,
        save_every: int,
        times: Array | None,
        curves: RunTables,
        out: Trajectory | None = None,
        home: Home = PROCESSOR,
    ) -> None:
        super().__init__(plan, states, t0, duration, curves, home)
        self.dt = dt
        self.pace(self.t0, duration)
        self.times = times
        self.between: Array | None = None  # output times that lie between samples
        self.every = int(save_every) if times is None else _stride(times, t0, self.h, self.steps)
        count = states.count
        saves = self.steps // self.every
        dtype = states.dtype
        self.saved = storage(home, out, (count, saves + 1, plan.motion.ny), dtype)
        self.saved[:, 0] = self.y
        self.rows["start"] = home.brought(self._start())
        self.rows["clock"] = np.empty((count, len(CLOCK)), dtype)
        self._rewind()
        if "memory" in plan.routine.sizes:
            self.rows["memory"] = home.brought(np.zeros((count, plan.routine.sizes["memory"]), dtype))
        if dtype == np.float32 and self.steps > _SINGLE_STEPS:
            raise InputError(
                "too many steps to be counted in float32",
                got=str(self.steps),
                allowed=f"up to {_SINGLE_STEPS}",
                do="pass float64 arrays",
            )
        self.chunk_steps = 16
        if plan.is_compiled:
            self.chunk_steps = max(1, int(CHUNK_SECONDS / home.seconds(plan.routine.operations, count)))

    def pace(self, t0: float, duration: float) -> None:
        """Equal steps from a time on, of at most the dt that was asked for."""
        super().pace(t0, duration)
        self.steps = max(1, math.ceil(duration / self.dt - 1e-9))
        self.h = duration / self.steps
        self.slack = max(self.slack, 1e-9 * self.h)

    def resume(self, t0: float, duration: float) -> None:
        """Make ready to go on from a time, by a duration, in steps of at most the dt that was asked for."""
        super().resume(t0, duration)
        self.rows["start"] = self.home.brought(self._start())
        self._rewind()

    def _start(self) -> Array:
        """What the loop is given (count, 4), see :data:`linkwise.sim.fixed_loop.START`."""
        return np.full((self.states.count, len(START)), [self.t0, self.h, self.end, self.slack], self.states.dtype)

    def _rewind(self) -> None:
        """Set the clock of all states to the beginning."""
        self.clock[...] = [0.0, 0.0, self.every, self.every, 1.0, RUNNING, self.t0]

    @property
    def clock(self) -> Array:
        """The loop's own state (count, 7), see :data:`linkwise.sim.fixed_loop.CLOCK`."""
        return np.asarray(self.rows["clock"])

    def is_running(self) -> bool:
        """Whether any state has steps to make."""
        return bool(((self.clock[:, 0] < self.steps) & ~self.ended).any())

    def chunk(self, kernel: Any, threads: int) -> None:
        """Run the kernel for about as long as a chunk may last."""
        done = float(self.clock[~self.ended, 0].min())
        self.clock[:, 1] = np.where(self.ended, self.clock[:, 0], min(self.steps, done + self.chunk_steps))
        kernel.run(self.rows, self.tables, {"saved": self.saved}, self.states.count, threads)

    def answer(self) -> None:
        """Sample the Python functions that the kernel waits for."""
        for k in self.sampled_by_python(self.clock[:, 5], self.clock[:, 6]):
            self.clock[k, 5] = RUNNING
            k, place = int(k), int(self.clock[k, 4]) - 1  # what was recorded here shows the side after the sample
            if self.clock[k, 2] == self.every and self.clock[k, 6] > self.time(self.clock[k, 0]) - self.slack:
                self.saved[k, place] = self.y[k]

    def adapt(self, seconds: float) -> None:
        """Make the next chunk longer or shorter, given the seconds that one took."""
        if seconds < 0.5 * CHUNK_SECONDS:
            self.chunk_steps = min(2 * self.chunk_steps, max(16, self.steps))
        elif seconds > 2.0 * CHUNK_SECONDS:
            self.chunk_steps = max(1, self.chunk_steps // 2)

    def fraction(self) -> float:
        """The part that is done, 0 to 1."""
        return float(self.clock[:, 0].mean()) / self.steps

    def handle_events(self) -> None:
        """Finish the step in which an event happened by hand, so that the state is back on the grid."""
        for k in np.flatnonzero((self.clock[:, 5] == EVENT) & ~self.ended):
            number, _, countdown, every, place, _, now = (float(x) for x in self.clock[k])
            y, final = self._finished_step(int(k), number, now if self.plan.motion.stops else self.time(number))
            self.home.put(self.y, int(k), y)
            if "memory" in self.rows:
                self.rows["memory"][int(k), 0] = 0.0  # what came before is no guide
            if final:
                self.ended[k] = True
                self.saved[int(k), int(place) :] = np.nan
                self.clock[k, 5] = DONE
                continue
            if countdown < 1.5:
                self.home.put(self.saved, (int(k), int(place)), y)
                countdown, place = every + 1.0, place + 1.0
            self.clock[k] = [number + 1.0, self.steps, countdown - 1.0, every, place, RUNNING, self.time(number + 1.0)]

    def _finished_step(self, k: int, number: float, t: float) -> tuple[Array, bool]:
        """One state at the end of a step with events in it, or where a terminal one ended it, and whether one did.

        ``t`` is where it is now: at the start of the step, or at a stop within.
        """
        locator, tables = self.plan.locator, self.curves.of(k)
        goal, y = self.time(number + 1.0), self.state(k).astype(float)
        final = False
        while t < goal and not final:
            p = self.parameters_at(k, t)
            stop = self.plan.next_stop(y, p, t + self.slack)
            aim = goal if stop >= goal - self.slack else stop
            h = aim - t
            found = locator.first(t, y, p, h, tables, self.sides(k))
            if found is None:
                found = h, locator.at(t, y, p, np.array([h]), tables)[0][0], []
            size, y, which = found
            t = aim if t + size >= aim else t + size
            y, final = self.happen(k, t, y, which, h)
            if t >= aim and self.plan.motion.samplers and t < self.end - self.slack:
                y = self.plan.sampled(np.array([t]), y[None], self.parameters_at(k, t)[None], self.slack)[0]
        return y, final

    def time(self, number: float) -> float:
        """When a step begins; the end of the run after the last."""
        return self.end if number >= self.steps else self.t0 + number * self.h

    def times_reached(self) -> Array:
        """When each state was last (count)."""
        return np.array([self.time(float(number)) for number in self.clock[:, 0]])

    def _statuses(self) -> Array:
        """How each state ended (count)."""
        finite = self.home.fetched(self.home.xp.isfinite(self.y).all(axis=1))
        done = self.clock[:, 0] >= self.steps
        code = np.where(done, np.where(finite, 1, 3), 0)
        code[self.ended] = 2
        return np.asarray(np.array(["interrupted", "done", "event", "failed"])[code])

    def counts(self) -> tuple[Array, Array]:
        """Steps accepted and rejected, (count) each."""
        return self.clock[:, 0], np.zeros(self.states.count)

    def _ending(self, k: int, who: str) -> str:
        """What stopped one state."""
        lost = np.flatnonzero(~np.isfinite(self.home.taken(self.saved, k)).all(axis=1))
        since = self.t0 + self.every * self.h * float(lost[0]) if len(lost) else self.end
        why = (
            ", or the iteration for a step did not converge"
            if self.plan.method in ("variational", "generalized_alpha")
            else ""
        )
        return message(
            f"{who} diverged: a value is infinite or not a number{why}",
            got=f"from t = {since:.9g} s, with steps of {self.h:g} s",
            do='a smaller dt, method="rodas4" if it is stiff; see whether the control lets the motion diverge',
        )

    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""
        y = self.saved
        t = self.t0 + (self.every * np.arange(y.shape[1])) * self.h
        if self.every * (len(t) - 1) == self.steps:
            t[-1] = self.end
        if self.interrupted:
            whole = int(self.clock[~self.ended, 4].min(initial=float(len(t))))
            t, y = t[:whole], y[:, :whole]
        if not self.states.shape:
            y = self.home.fetched(y)
            if self.ended.any():
                alive = np.isfinite(y[0]).all(axis=1)
                t, y = t[alive], y[:, alive]
            if self.jumps and self.times is None:
                return self._with_jumps(t, y)
        return (t, y) if self.times is None else self._at_times(t, y, self.times)

    def _at_times(self, t: Array, y: Any, times: Array) -> tuple[Array, Any]:
        """The samples at the output times, if all lie on samples; else all, and :attr:`between` says what is wanted."""
        end = max([float(t[-1]) if len(t) else -math.inf, *(jump.t for jump in self.jumps)])
        inside = times[times <= end + 1e-12]
        k = np.rint((inside - self.t0) / (self.every * self.h)).astype(int)
        known = k < len(t)
        if known.all() and np.allclose(t[k], inside, rtol=0.0, atol=1e-7 * self.h):
            k = k if isinstance(y, np.ndarray) else self.home.brought(k)
            return inside, y[:, k]
        self.between = inside
        return t, y

    def _with_jumps(self, t: Array, y: Array) -> tuple[Array, Array]:
        """Both sides of events among the samples of a single state; one that lies at such a time is a side already."""
        moved = [jump for jump in self.jumps if not np.array_equal(jump.before, jump.after)]
        extra_t = np.array([jump.t for jump in (*self.jumps, *moved)])
        extra_y = [*(jump.before for jump in self.jumps), *(jump.after for jump in moved)]
        keep = ~np.isin(t, extra_t)
        whole_t = np.concatenate([t[keep], extra_t])
        whole_y = np.concatenate([y[0, keep], np.array(extra_y, y.dtype).reshape(-1, y.shape[-1])])
        order = np.argsort(whole_t, kind="stable")  # of two at one time the first stays first
        return whole_t[order], whole_y[None, order]

    def trajectory(self, threads: int) -> Trajectory:
        """The result, at the output times if there are any."""
        whole = super().trajectory(threads)
        return whole if self.between is None else whole.at(self.between)


def _stride(times: Array, t0: float, h: float, steps: int) -> int:
    """The most steps between records that still meets all times; 1 where they are not multiples of the step."""
    numbers = (times - t0) / h
    whole = np.rint(numbers)
    if np.abs(numbers - whole).max(initial=0.0) > 1e-7:
        return 1
    return int(np.gcd.reduce([int(n) for n in whole if n > 0])) if whole.max(initial=0.0) > 0 else steps
