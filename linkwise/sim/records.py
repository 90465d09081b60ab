"""Samples that a run records: every so many steps, each step with its time, or the states at given times.

A class has the statements that record in the loop, and the memory that they fill.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.step_size import EqualSteps
from linkwise.sim.work import Clock, Span, Work, flag
from linkwise.spatial.scalar import Flat, NamedNumbers, where
from linkwise.trace.program import Copy, IfAny, Lookup, Record, Statement, WhileAny

if TYPE_CHECKING:
    from linkwise.sim.loop import LoopWriter
    from linkwise.sim.run import Run
    from linkwise.sim.trajectory import Trajectory
    from linkwise.targets.device import Device

_SINGLE_STEPS = 2**24


class Records:
    """Samples of a run, ``saved`` (count, T, ny) at its home.

    Args:
        run: with states, and step sizes that are ready for its duration.
        times: output times, if there are any.
        out: an earlier result, whose memory is used again.
    """

    at_times: ClassVar[bool] = False
    mask: ClassVar[str | None]
    """The flag of the states whose step is recorded; None where that is another matter."""
    tables: ClassVar[tuple[str, ...]] = ()
    begun: int
    """The place of the first record that a run makes."""
    between: Array | None = None
    """Output times that lie between samples, if they do."""
    saved: Array
    arrays: dict[str, Array]
    """Arrays that a kernel fills."""
    storage: Array | None = None
    """The memory that another run can use again."""

    def __init__(self, run: Run, times: Array | None, out: Trajectory | None) -> None:
        self.run, self.times = run, times

    def _keep(self, out: Trajectory | None, samples: int) -> None:
        """Find memory for so many."""
        run = self.run
        shape = (run.states.count, samples, run.plan.motion.ny)
        self.saved = self.storage = _memory(run.home, out, shape, run.states.dtype)
        self.arrays = {"saved": self.saved}

    @staticmethod
    def rows(m: EquationsOfMotion) -> tuple[tuple[str, int], ...]:
        """Names and sizes of the arrays that are filled."""
        return (("saved", m.ny),)

    @staticmethod
    def opening(work: Work) -> Sequence[Statement]:
        """Statements before the first step."""
        return ()

    @staticmethod
    def inside(loop: LoopWriter) -> Sequence[Statement]:
        """Record what is due inside a step that is accepted or not."""
        return ()

    @staticmethod
    def behind() -> Sequence[Statement]:
        """Record the end of a step, from which the next goes on."""
        return ()

    @property
    def reached(self) -> Array:
        """The samples that there are; the rest of the memory of an interrupted run is anything."""
        return self.saved

    def begin(self) -> None:
        """Another duration begins; what was recorded is forgotten."""

    def gather(self) -> None:
        """Take what a call of the kernel has recorded."""

    def sampled(self, k: int) -> None:
        """Show the side after a sample by a Python function, where one state was recorded just there."""

    def put(self, k: int, place: int, y: Array) -> None:
        """Record one state by hand."""
        self.run.home.put(self.saved, (k, place), y)

    def event(self, k: int, t: float, there: float, states: tuple[Array, Array, Array]) -> None:
        """Record what lies between a step's start, at t, and an event: states at the start and at the event's sides."""

    def end(self, k: int) -> None:
        """There is nothing more of one state."""
        self.saved[k, int(self.run.clock[k, Clock.PLACE]) :] = np.nan

    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""
        raise NotImplementedError


class OnGrid(Records):
    """Every so many of equal steps."""

    mask, begun = "save", 1

    def __init__(self, run: Run, times: Array | None, out: Trajectory | None) -> None:
        super().__init__(run, times, out)
        assert isinstance(run.sizes, EqualSteps)
        sizes = self.sizes = run.sizes
        if times is not None:
            sizes.every = sizes.stride(times, run.t0)
        if run.states.dtype == np.float32 and sizes.most > _SINGLE_STEPS:
            raise InputError(
                "too many steps to be counted in float32",
                got=str(sizes.most),
                allowed=f"up to {_SINGLE_STEPS}",
                do="pass float64 arrays",
            )
        self._keep(out, sizes.most // sizes.every + 1)
        self.saved[:, 0] = run.y

    @staticmethod
    def behind() -> Sequence[Statement]:
        """Statements behind a step where a sample is due."""
        return (IfAny("save", (Record("saved", "y", "place", "save"),)),)

    def sampled(self, k: int) -> None:
        """Take the state where a step of state k ended at a sample of the grid."""
        clock, sizes = self.run.clock[k], self.sizes
        on_grid = clock[Clock.T] > sizes.time(self.run, clock[Clock.ACCEPTED]) - self.run.slack
        if clock[Clock.COUNTDOWN] == sizes.every and on_grid:
            self.saved[k, int(clock[Clock.PLACE]) - 1] = self.run.y[k]

    @property
    def reached(self) -> Array:
        """Those that all states have reached."""
        run, saved = self.run, self.saved
        if not run.interrupted:
            return saved
        return saved[:, : int(run.clock[~run.ended, Clock.PLACE].min(initial=float(saved.shape[1])))]

    def samples(self) -> tuple[Array, Array]:
        """All of them, with the sides of events; those at the output times, if there are any."""
        run, sizes, y = self.run, self.sizes, self.reached
        t = run.t0 + (sizes.every * np.arange(y.shape[1])) * sizes.h
        if sizes.every * (len(t) - 1) == sizes.most:
            t[-1] = run.end
        if not run.states.shape:
            y = run.home.to_host(y)
            if run.ended.any():
                alive = np.isfinite(y[0]).all(axis=1)
                t, y = t[alive], y[:, alive]
            if run.happened.jumps and self.times is None:
                return self._with_jumps(t, y)
        return (t, y) if self.times is None else self._at_times(t, y, self.times)

    def _at_times(self, t: Array, y: Array, times: Array) -> tuple[Array, Array]:
        """The samples at the output times, if all lie on samples; else all, and :attr:`between` says what is wanted."""
        end = max([float(t[-1]) if len(t) else -math.inf, *(jump.t for jump in self.run.happened.jumps)])
        inside = times[times <= end + 1e-12]
        k = np.rint((inside - self.run.t0) / (self.sizes.every * self.sizes.h)).astype(int)
        known = k < len(t)
        if known.all() and np.allclose(t[k], inside, rtol=0.0, atol=1e-7 * self.sizes.h):
            return inside, y[:, self.run.home.to_device(k) if self.run.home.owns(y) else k]
        self.between = inside
        return t, y

    def _with_jumps(self, t: Array, y: Array) -> tuple[Array, Array]:
        """Both sides of events among the samples of a single state; one that lies at such a time is a side already."""
        jumps = self.run.happened.jumps
        moved = [jump for jump in jumps if not np.array_equal(jump.before, jump.after)]
        extra_t = np.array([jump.t for jump in (*jumps, *moved)])
        extra_y = [*(jump.before for jump in jumps), *(jump.after for jump in moved)]
        keep = ~np.isin(t, extra_t)
        whole_t = np.concatenate([t[keep], extra_t])
        whole_y = np.concatenate([y[0, keep], np.array(extra_y, y.dtype).reshape(-1, y.shape[-1])])
        order = np.argsort(whole_t, kind="stable")  # of two at one time the first stays first
        return whole_t[order], whole_y[None, order]


class EachStep(Records):
    """Each step of a single state, with its time."""

    mask, begun = "accept", 0

    def __init__(self, run: Run, times: Array | None, out: Trajectory | None) -> None:
        super().__init__(run, times, out)
        if out is not None:
            raise InputError(
                "out cannot hold every step of an adaptive method: their number is not known beforehand",
                allowed="runs with output_times",
                do="give output_times, or drop the out= argument",
            )
        capacity = run.sizes.at_once
        rows = self.rows(run.plan.motion)
        self.arrays = {name: run.home.empty((1, capacity, size), np.float64) for name, size in rows}
        self.pieces: list[tuple[Array, Array]] = [(np.array([run.t0]), run.home.to_host(run.y[:1].copy()))]

    @staticmethod
    def rows(m: EquationsOfMotion) -> tuple[tuple[str, int], ...]:
        """States and times."""
        return (("saved", m.ny), ("saved_t", 1))

    @staticmethod
    def behind() -> Sequence[Statement]:
        """State and time."""
        return (IfAny("accept", (Record("saved", "y", "place", "accept"), Record("saved_t", "t", "place", "accept"))),)

    def gather(self) -> None:
        """Make room for the next call."""
        clock = self.run.clock
        made = int(clock[0, Clock.PLACE])
        y, t = (self.run.home.to_host(array[0, :made].copy()) for array in self.arrays.values())
        self.pieces.append((t[:, 0], y))
        clock[:, Clock.PLACE] = 0.0

    def sampled(self, k: int) -> None:
        """The last step ended there."""
        if len(self.pieces[-1][1]):
            self.pieces[-1][1][-1] = self.run.state(0)

    def event(self, k: int, t: float, there: float, states: tuple[Array, Array, Array]) -> None:
        """Both sides of the event, where they differ."""
        _, before, after = states
        sides = [before] if np.array_equal(before, after) else [before, after]
        self.pieces.append((np.full(len(sides), there), np.array(sides)))

    def samples(self) -> tuple[Array, Array]:
        """All steps."""
        t, y = (np.concatenate([piece[part] for piece in self.pieces]) for part in (0, 1))
        return t, y[None]


class AtTimes(Records):
    """The states at given times, looked up inside the steps: infinity is at the end of the table ``times``.

    By the method's dense output, or steps end there. Where a step may end at a stop, the state at its very end is
    recorded as the start of the next step, after the stop.
    """

    at_times, mask, tables = True, None, ("times",)
    times: Array

    def __init__(self, run: Run, times: Array | None, out: Trajectory | None) -> None:
        super().__init__(run, times, out)
        self._table()
        self._keep(out, len(self.times))
        self.saved[...] = np.nan
        if self.begun:
            self.saved[:, 0] = run.y

    def _table(self) -> None:
        run = self.run
        run.tables["times"] = run.home.to_device(np.append(self.times, np.inf))
        self.begun = int(self.times[0] <= run.t0)

    @staticmethod
    def opening(work: Work) -> Sequence[Statement]:
        """The first of the times."""
        work.buffer("next_time", 1)
        return (Lookup("times", "place", "next_time"),)

    @staticmethod
    def inside(loop: LoopWriter) -> Sequence[Statement]:
        """The states at all output times inside the step just accepted."""
        later = loop.stops is not None and not loop.clips

        def due_text(accept: Flat, next_time: Flat, t_new: Flat, span: Flat) -> NamedNumbers:
            inside = next_time[0] <= t_new[0]
            if later:
                inside = (next_time[0] < t_new[0]) | (inside & (t_new[0] >= span[Span.END]))
            return {"pending": flag((accept[0] > 0.0) & inside)}

        def theta(next_time: Flat, t: Flat, h: Flat, pending: Flat) -> NamedNumbers:
            return {"theta": where(pending[0] > 0.0, (next_time[0] - t[0]) / h[0], 0.0)}

        due = loop.call("due", due_text, "accept", "next_time", "t_new", "span")
        onward = loop.call("onward", lambda place, pending: {"place_next": place[0] + pending[0]}, "place", "pending")
        again = (*onward, Copy("place_next", "place"), Lookup("times", "place", "next_time"), *due)
        if loop.clips:
            looking: Sequence[Statement] = (Record("saved", "y_new", "place", "pending"), *again)
        else:
            look = (*loop.call("theta", theta, "next_time", "t", "h", "pending"), *loop.step.look)
            looking = (*look, Record("saved", "y_at", "place", "pending"), *again)
        return (*due, IfAny("pending", (*(loop.step.dense or ()), WhileAny("pending", tuple(looking)))))

    def begin(self) -> None:
        """A piece has two times, its ends."""
        self.times = np.array([self.run.t0, self.run.end])
        self._table()

    def event(self, k: int, t: float, there: float, states: tuple[Array, Array, Array]) -> None:
        """The output times from the last whole step to the event. One at its very time, to rounding, is after it."""
        run, (start, _, after) = self.run, states
        place = int(run.clock[k, Clock.PLACE])
        due = self.times[place:]
        due = due[due < there]
        if len(due):
            found = run.happened.inside(k, t, start, due - t)
            run.home.put(self.saved, (k, slice(place, place + len(due))), found)
            place += len(due)
        at_once = int(np.count_nonzero(self.times[place:] <= there + 4.0 * np.spacing(abs(there))))
        if at_once:
            run.home.put(self.saved, (k, slice(place, place + at_once)), np.tile(after, (at_once, 1)))
        run.clock[k, Clock.PLACE] = place + at_once

    def samples(self) -> tuple[Array, Array]:
        """Those that were reached; of a batch all, with NaN."""
        run, t, y = self.run, self.times, self.saved
        place = run.clock[:, Clock.PLACE]
        if run.interrupted:  # what an unfinished chunk wrote is not there
            y[run.home.to_device(np.arange(len(t)) >= place[:, None])] = np.nan
        if run.interrupted or not run.states.shape:
            most = int(place.max(initial=0.0))
            t, y = t[:most], y[:, :most]
        return t, y


def _memory(home: Device, out: Trajectory | None, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Memory for samples: that of an earlier trajectory, or new."""
    memory: Array | None = getattr(out, "storage", None)
    if out is None:
        try:
            fresh: Array = home.empty(shape, dtype)
            return fresh
        except (MemoryError, ValueError):  # NumPy's two ways to say so
            raise InputError(
                "the samples do not fit into memory",
                got=f"{shape[0]} states, {shape[1]} times: {math.prod(shape) * np.dtype(dtype).itemsize / 1e9:.3g} GB",
                do="a larger save_every, or output_times",
            ) from None
    if memory is None or memory.shape != shape or memory.dtype != dtype or not home.owns(memory):
        raise InputError(
            "out does not fit this simulation",
            got=repr(out) if memory is None else f"samples {memory.shape} {memory.dtype} on {out.home.name}",
            allowed=f"a trajectory with samples {shape} {np.dtype(dtype)}: (states, times, nq + nv + nx), "
            f"on {home.name}",
            do="give the result of an earlier run with the same batch, times and model",
        )
    return memory
