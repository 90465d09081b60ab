"""A run of steps as long as the tolerance allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, message
from linkwise.sim.curves import RunTables
from linkwise.sim.plans import Plan
from linkwise.sim.run import CHUNK_SECONDS, Run, storage
from linkwise.sim.states import States
from linkwise.sim.trajectory import Trajectory
from linkwise.sim.work import DONE, EVENT, EXHAUSTED, FAILED, RUNNING, WAITING
from linkwise.targets.home import Home
from linkwise.targets.processor import PROCESSOR

_STEP_CAPACITY = 4096  # accepted steps that one call of a kernel can record
_STATUS = {RUNNING: "interrupted", DONE: "done", EVENT: "event", FAILED: "failed", EXHAUSTED: "max_steps"}
_STATUS[WAITING] = "interrupted"
_NAMES = np.array([_STATUS[code] for code in sorted(_STATUS)])  # they are counted from 0
_LEAST = 1e-15  # s, the smallest step of a run of a second or more


class AdaptiveRun(Run):
    """Steps as long as the tolerance allows."""

    def __init__(
        self,
        plan: Plan,
        states: States,
        t0: float,
        duration: float,
        dt: float | None,
        rtol: float,
        atol: float,
        max_step: float,
        min_step: float,
        max_steps: int,
        times: Array | None,
        curves: RunTables,
        out: Trajectory | None = None,
        home: Home = PROCESSOR,
    ) -> None:
        super().__init__(plan, states, t0, duration, curves, home)
        count, ny = states.count, plan.motion.ny
        self.max_steps = max_steps
        self.floor = min_step or _LEAST * min(1.0, duration)
        span = [self.end, rtol, max(atol, 1e-300), max_step, self.floor, self.slack]
        self.rows["span"] = home.to_device(np.tile(span, (count, 1)))
        first = 0.0 if dt is None else float(dt)
        self.rows["control"] = np.tile([self.t0, first, RUNNING, 0.0, 0.0, 0.0, 0.0, 0.0], (count, 1))
        self.rows["k0"] = home.to_device(np.zeros((count, plan.motion.nz)))
        self.times = times
        self.pieces: list[tuple[Array, Array]] = [(np.array([self.t0]), home.to_host(self.y[:1].copy()))]
        if times is not None:
            self.tables["times"] = home.to_device(np.append(times, np.inf))
            self.saved = storage(home, out, (count, len(times), ny), np.float64)
            self.saved[...] = np.nan
            if times[0] <= self.t0:
                self.saved[:, 0] = self.y
                self.control[:, 3] = 1.0
            self.records = {"saved": self.saved}
        else:
            if out is not None:
                raise InputError(
                    "out cannot hold every step of an adaptive method: their number is not known beforehand",
                    allowed="runs with output_times",
                    do="give output_times, or drop the out= argument",
                )
            sizes = {"saved": ny, "saved_t": 1}
            self.records = {name: home.empty((1, _STEP_CAPACITY, n), np.float64) for name, n in sizes.items()}
        self.budget = 16
        if plan.is_compiled and not plan.motion.model.rolls:
            at_once = CHUNK_SECONDS / home.seconds(plan.routine.operations, count)
            self.budget = max(self.budget, min(1024, int(at_once)))

    def resume(self, t0: float, duration: float) -> None:
        """Make ready to go on from a time, by a duration, with steps as long as the last ones."""
        super().resume(t0, duration)
        self.rows["span"][:, 0], self.rows["span"][:, 5] = self.end, self.slack
        over = np.isin(self.control[:, 2], (FAILED, EXHAUSTED)) | self.ended
        self.control[:, 0], self.control[:, 3:] = t0, 0.0
        self.control[~over, 2] = RUNNING
        self.times = np.array([t0, self.end])
        self.tables["times"] = self.home.to_device(np.append(self.times, np.inf))
        self.control[:, 3] = 1.0  # the first is the start

    def leave_out(self, ended: Array) -> None:
        """States (count) that had ended before this run: they stay as they were."""
        super().leave_out(ended)
        self.control[ended, 2] = EVENT

    @property
    def control(self) -> Array:
        """The loop's own state (count, 8), see :data:`linkwise.sim.step_size.CONTROL`."""
        return np.asarray(self.rows["control"])

    def is_running(self) -> bool:
        """Whether any state has steps to make."""
        return bool((self.control[:, 2] == RUNNING).any())

    def chunk(self, kernel: Any, threads: int) -> None:
        """Run the kernel for about as long as a chunk may last."""
        tried = self.control[:, 4] + self.control[:, 5]
        self.control[:, 6] = np.minimum(self.budget, self.max_steps - tried)
        if self.times is None:
            self.control[:, 3] = 0.0
        kernel.run(self.rows, self.tables, self.records, self.states.count, threads)
        if self.times is None:
            made = int(self.control[0, 3])
            t, y = (self.home.to_host(self.records[name][0, :made].copy()) for name in ("saved_t", "saved"))
            self.pieces.append((t[:, 0], y))
        spent = self.control[:, 4] + self.control[:, 5] >= self.max_steps
        self.control[spent & (self.control[:, 2] == RUNNING), 2] = EXHAUSTED

    def answer(self) -> None:
        """Sample the Python functions that the kernel waits for."""
        waited = self.sampled_by_python(self.control[:, 2], self.control[:, 0])
        self.control[waited, 2] = RUNNING
        self.control[waited, 7] = -1.0  # what acts has changed, and so has the derivative
        if len(waited) and self.times is None and len(self.pieces[-1][1]):
            self.pieces[-1][1][-1] = self.state(0)  # the side after the sample is shown

    def adapt(self, seconds: float) -> None:
        """Make the next chunk longer or shorter, given the seconds that one took."""
        if seconds < 0.5 * CHUNK_SECONDS:
            self.budget = min(2 * self.budget, _STEP_CAPACITY)
        elif seconds > 2.0 * CHUNK_SECONDS:
            self.budget = max(1, self.budget // 2)

    def fraction(self) -> float:
        """The part that is done, 0 to 1."""
        return float((self.control[:, 0] - self.t0).mean()) / (self.end - self.t0)

    def handle_events(self) -> None:
        """Find what happened in the steps at which the kernel stopped, and go on from there."""
        for k in np.flatnonzero((self.control[:, 2] == EVENT) & ~self.ended):
            t, h = (float(x) for x in self.control[k, :2])
            locator, p, tables = self.plan.locator, self.parameters_at(int(k), t), self.curves.of(int(k))
            start = self.state(int(k))
            found = locator.first(t, start, p, h, tables, self.sides(int(k)))
            if found is None:  # the sign changed twice, or only by rounding: pass over it
                found = h, locator.at(t, start, p, np.array([h]), tables)[0][0], []
            size, before, which = found
            y, final = self.happen(int(k), t + size, before, which, h)
            ends = final or t + size >= self.end
            if self.times is None:
                sides = [before] if np.array_equal(before, y) else [before, y]
                self.pieces.append((np.full(len(sides), t + size), np.array(sides)))
            else:
                self._fill(int(k), t, t + size, start, y)
            self.home.put(self.y, int(k), y)
            self.ended[k] = final
            if not ends:  # an event may lie on a stop
                self.settle(np.array([k]), np.array([t + size]))
            # What follows may be quite different: start small, so that the next event is not stepped over.
            status = EVENT if final else DONE if ends else RUNNING
            self.control[k, [0, 1, 2]] = t + size, 0.0, status
            self.control[k, 4] += 1.0

    def _fill(self, k: int, start: float, stop: float, before: Array, after: Array) -> None:
        """Samples at the output times from the last whole step, at ``before``, to an event, which leads to ``after``.

        One at the very time of the event, to rounding, is the one after it.
        """
        assert self.times is not None
        place = int(self.control[k, 3])
        due = self.times[place:]
        due = due[due < stop]
        if len(due):
            found, _ = self.plan.locator.at(start, before, self.parameters_at(k, start), due - start, self.curves.of(k))
            self.home.put(self.saved, (k, slice(place, place + len(due))), found)
            place += len(due)
        at_once = int(np.count_nonzero(self.times[place:] <= stop + 4.0 * np.spacing(abs(stop))))
        if at_once:
            self.home.put(self.saved, (k, slice(place, place + at_once)), np.tile(after, (at_once, 1)))
        self.control[k, 3] = place + at_once

    def times_reached(self) -> Array:
        """When each state was last (count)."""
        return self.control[:, 0].copy()

    def _statuses(self) -> Array:
        """How each state ended (count)."""
        found: Array = _NAMES[self.control[:, 2].astype(int)]
        found[(self.control[:, 2] == EVENT) & ~self.ended] = "interrupted"  # before it could be looked into
        return found

    def counts(self) -> tuple[Array, Array]:
        """Steps accepted and rejected, (count) each."""
        return self.control[:, 4], self.control[:, 5]

    def _ending(self, k: int, who: str) -> str:
        """What stopped one state."""
        t, h, status = (float(x) for x in self.control[k, :3])
        speed = float(np.abs(self.state(k)[self.plan.motion.nq :][: self.plan.motion.nv]).max(initial=0.0))
        where = f"t = {t:.9g} s of {self.end:g} s, steps of {h:.1e} s, the largest velocity is {speed:.2g} rad/s or m/s"
        if status == EXHAUSTED:
            return message(
                f"{who} stopped after max_steps = {self.max_steps} steps",
                got=where,
                do='method="rodas4" if springs, dampers or gains are stiff; see whether the control lets the motion '
                "diverge; a larger rtol or max_steps",
            )
        floor = max(self.floor, 4e-16 * abs(t))
        return message(
            f"{who} could not go on: the step fell below {floor:.0e} s, or a value is not a number",
            got=where,
            do="look at control and model at this time: a jump, a value that is not a number, a motion that diverges; "
            'method="rodas4" if it is stiff',
        )

    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""
        if self.times is None:
            t = np.concatenate([piece[0] for piece in self.pieces])
            return t, np.concatenate([piece[1] for piece in self.pieces])[None]
        t, y = self.times, self.saved
        most = int(self.control[:, 3].max(initial=0.0))
        if self.interrupted:  # what an unfinished chunk wrote is not there
            y[self.home.to_device(np.arange(len(t)) >= self.control[:, 3:4])] = np.nan
        if self.interrupted or not self.states.shape:
            t, y = t[:most], y[:, :most]
        return t, y
