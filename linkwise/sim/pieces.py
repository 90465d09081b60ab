"""Short pieces of equal steps in which nothing else can happen, with next to nothing around the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.sim.interrupts import held_back
from linkwise.sim.run import Run
from linkwise.sim.step_size import EqualSteps
from linkwise.sim.work import RUNNING, Clock, Span


def is_plain(run: Run) -> bool:
    """Whether nothing can happen but equal steps, to some state: no Python function, no events, no samples."""
    plan = run.plan
    quiet = plan.is_compiled and not plan.events and not plan.motion.samplers
    return isinstance(run.sizes, EqualSteps) and run.states.count > 0 and quiet


class Pieces:
    """Pieces of a plain run, on its own rows."""

    def __init__(self, run: Run, threads: int) -> None:
        assert isinstance(run.sizes, EqualSteps)
        self._run, self._sizes, self._count = run, run.sizes, run.states.count
        self._span, self._clock = run.rows["span"], run.clock
        # Rows of few numbers: a memory view is written in a fraction of the time that an array takes.
        self._first_span: Any = memoryview(self._span[0])
        self._first_clock: Any = memoryview(self._clock[0])
        kernel = run.plan.kernel(self._count, run.states.dtype)
        call = kernel.bound(run.rows, run.tables, run.records.arrays, self._count, threads)
        self._call = call if threads == 1 else lambda: _uninterrupted(call)
        self.end = run.end
        """Of the last piece, s."""

    def advance(self, t: float, duration: Any) -> bool:
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
        """Where a piece that began at ``start`` was interrupted: there, or at its end."""
        done = self._first_clock[Clock.ACCEPTED] >= self._sizes.most
        return self.end if done and self.end > start else start


def _uninterrupted(call: Callable[[], None]) -> None:
    """A call of several threads, which would go on writing."""
    with held_back():
        call()
