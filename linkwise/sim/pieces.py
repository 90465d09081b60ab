"""Short pieces of a fixed-step run in which nothing can happen but steps, with next to nothing around the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.sim.fixed_run import FixedRun
from linkwise.sim.interrupts import held_back
from linkwise.sim.work import RUNNING


def is_plain(run: FixedRun) -> bool:
    """Whether nothing can happen, to some state: no Python function, no events, no samples."""
    plan = run.plan
    return run.states.count > 0 and plan.is_compiled and not plan.events and not plan.motion.samplers


class Pieces:
    """Pieces of a plain run, on its own rows."""

    def __init__(self, run: FixedRun, threads: int) -> None:
        self._run, self._count = run, run.states.count
        self._start, self._clock = run.rows["start"], run.rows["clock"]
        # Rows of few numbers: a memory view is written in a fraction of the time that an array takes.
        self._first_start: Any = memoryview(self._start[0])
        self._first_clock: Any = memoryview(self._clock[0])
        kernel = run.plan.kernel(self._count, run.states.dtype)
        call = kernel.bound(run.rows, run.tables, {"saved": run.saved}, self._count, threads)
        self._call = call if threads == 1 else lambda: _uninterrupted(call)
        self.end = run.end
        """Of the last piece, s."""

    def advance(self, t: float, duration: Any) -> bool:
        """From t on by a duration; False if it is too long to be left alone with, or not a duration."""
        run = self._run
        if not isinstance(duration, float) or not 0.0 < duration <= run.chunk_steps * run.dt:
            return False
        run.pace(t, duration)
        if run.dt < run.rounding:  # time would stand still
            return False
        start, clock = self._first_start, self._first_clock
        clock[0], self.end = 0.0, run.end
        start[0], start[1], start[2], start[3] = t, run.h, run.end, run.slack
        clock[1], clock[2], clock[5], clock[6] = run.steps, run.every, RUNNING, t
        if self._count > 1:
            self._start[1:], self._clock[1:] = self._start[0], self._clock[0]
        self._call()
        return True

    def time(self, start: float) -> float:
        """Where a piece that began at ``start`` was interrupted: there, or at its end."""
        done = self._first_clock[0] >= self._run.steps
        return self.end if done and self.end > start else start


def _uninterrupted(call: Callable[[], None]) -> None:
    """A call of several threads, which would go on writing."""
    with held_back():
        call()
