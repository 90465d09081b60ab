"""A run of equal steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, message
from linkwise.sim.curves import RunTables
from linkwise.sim.fixed_loop import CLOCK, START
from linkwise.sim.plans import Plan
from linkwise.sim.run import CHUNK_SECONDS, Run, storage
from linkwise.sim.states import States
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.work import DONE, EVENT, RUNNING
from linkwise.targets.home import Home
from linkwise.targets.processor import PROCESSOR

_SINGLE_STEPS = 2**24
_STEPS_PER_LOOK = 300  # a look costs three steps, so all of them a hundredth of the run
_MOST_LOOKS = 128
_INTERVAL = 32  # samples; intervals in which a velocity changes most are looked through
_LOOKED_THROUGH = 2**13  # velocities among the samples, at most
_ROUGH = 5e-3  # of the largest velocity: the error of a single step that is told


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
        self.rows["start"] = home.to_device(self._start())
        self.rows["clock"] = np.empty((count, len(CLOCK)), dtype)
        self._rewind()
        if "memory" in plan.routine.sizes:
            self.rows["memory"] = home.to_device(np.zeros((count, plan.routine.sizes["memory"]), dtype))
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
        self.rows["start"] = self.home.to_device(self._start())
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
        finite = self.home.to_host(self.home.xp.isfinite(self.y).all(axis=1))
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

    def _roughness(self) -> str:
        """By step doubling, at some of the samples: those behind which the velocity changes most, and evenly among all.

        Where a motion is too fast for the step, it mostly is so for moments, which looks at regular intervals miss; so
        half of the looks are where it is steepest, which the samples show at little cost. Nothing else is compiled.
        """
        m, samples = self.plan.motion, self.saved.shape[1] - 1
        count = 1 if m.curves else self.states.count  # others may have tables of their own
        looks = min(self.steps * count // _STEPS_PER_LOOK, _MOST_LOOKS)
        if looks < 16 or not m.nv or not self.plan.is_compiled or samples < 2:
            return ""
        interval = max(1, min(_INTERVAL, samples // 8))
        every = -(-count * samples * m.nv // (interval * _LOOKED_THROUGH))  # states
        speeds = slice(m.nq, m.nq + m.nv)
        coarse = np.asarray(self.home.to_host(self.saved[:count:every, :-1:interval, speeds]), float)
        size = np.abs(coarse).max(axis=1)
        size = np.maximum(size, 1e-3 * size.max(axis=1, keepdims=True)) + 1e-12
        change = _steepness(coarse, size[:, None])
        half = min(looks // 2, change.size)
        state, place = np.unravel_index(np.argpartition(change, -half, axis=None)[-half:], change.shape)
        inside = place[:, None] * interval + np.arange(interval + 1)
        fine = self.home.taken(self.saved, (self.home.to_device(state[:, None] * every), self.home.to_device(inside)))
        place = place * interval + np.argmax(_steepness(fine[..., speeds], size[state][:, None]), axis=1)
        among = np.linspace(0, len(coarse) * samples - 1, looks - half).astype(int)
        state, place = np.append(state, among // samples), np.append(place, among % samples)
        y = np.asarray(self.home.taken(self.saved, (self.home.to_device(state * every), self.home.to_device(place))))
        t = self.t0 + place * (self.every * self.h)
        ends = [self._trial(state * every, t, y, parts) for parts in (1, 2)]
        off = (np.abs(ends[0] - ends[1])[:, speeds] / size[state]).max(axis=1)
        off = np.nan_to_num(off, nan=0.0)  # ended before, or an event or a sample in Python came between
        worst = int(np.argmax(off))
        if off[worst] <= _ROUGH:
            return ""
        return message(
            f"steps of {self.h:g} s are too long for this motion: what follows may be far from the truth",
            got=f"near t = {t[worst]:.9g} s a step and two of half its length end {off[worst]:.2g} of the largest "
            f"velocity apart; {int((off > _ROUGH).sum())} of {len(off)} steps that were looked at are such",
            do='a smaller dt and see whether the motion stays; or an adaptive method, "dop853" or "rodas4"',
        )

    def _trial(self, states: Array, t: Array, y: Array, parts: int) -> Array:
        """The ends (n, ny) of single steps from y (n, ny) at times t (n), made in so many parts; NaN if one stopped."""
        n, dtype = len(t), self.states.dtype
        h = np.full(n, self.h)
        clock = np.zeros((n, len(CLOCK)), dtype)
        clock[:, 1:] = np.stack([np.full(n, x) for x in (parts, self.steps, self.steps, 0.0, RUNNING)] + [t], axis=1)
        rows = {"start": np.stack([t, h / parts, t + h, np.full(n, self.slack)], axis=1).astype(dtype)}
        rows |= {"y": np.array(y, dtype), "p": self.curves.widened(self.states.p[states])}
        rows |= {name: np.zeros((n, len(self.rows[name][0])), dtype) for name in ("memory", "g") if name in self.rows}
        rows = {name: self.home.to_device(array) for name, array in rows.items()} | {"clock": clock}
        saved = self.home.empty((n, 1, self.plan.motion.ny), dtype)
        tables = {name: self.home.to_device(a) for name, a in self.curves.of(int(states[0])).items()}
        kernel = self.plan.kernel(self.states.count, dtype, self.home)
        kernel.run(rows, tables, {"saved": saved}, n)
        stopped = (clock[:, 5] != RUNNING) | (clock[:, 0] < parts)
        return np.where(stopped[:, None], math.nan, self.home.to_host(rows["y"]).astype(float))

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
            y = self.home.to_host(y)
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
            k = k if isinstance(y, np.ndarray) else self.home.to_device(k)
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


def _steepness(v: Array, size: Array) -> Array:
    """The largest change of any velocity from one sample to the next (..., T - 1), of v (..., T, nv) by their sizes."""
    found = np.zeros((*v.shape[:-2], v.shape[-2] - 1))
    for k in range(v.shape[-1]):  # a maximum over few numbers side by side takes ten times as long
        np.fmax(found, np.abs(np.diff(v[..., k], axis=-1)) / size[..., k], out=found)
    return found


def _stride(times: Array, t0: float, h: float, steps: int) -> int:
    """The most steps between records that still meets all times; 1 where they are not multiples of the step."""
    numbers = (times - t0) / h
    whole = np.rint(numbers)
    if np.abs(numbers - whole).max(initial=0.0) > 1e-7:
        return 1
    return int(np.gcd.reduce([int(n) for n in whole if n > 0])) if whole.max(initial=0.0) > 0 else steps
