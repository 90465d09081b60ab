"""A run of equal steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError, message
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
        out: Trajectory | None = None,
    ) -> None:
        super().__init__(plan, states, t0, duration)
        self.steps = max(1, math.ceil(duration / dt - 1e-9))
        self.h = duration / self.steps
        self.times = times
        self.every = int(save_every) if times is None else _stride(times, t0, self.h, self.steps)
        count = states.count
        saves = self.steps // self.every
        dtype = states.dtype
        self.saved = storage(out, (count, saves + 1, plan.motion.ny), dtype)
        self.saved[:, 0] = self.y
        self.rows["start"] = np.tile(np.array([self.t0, self.h], dtype), (count, 1))
        clock = [0.0, 0.0, self.every, self.every, 1.0, RUNNING]
        self.rows["clock"] = np.tile(np.array(clock, dtype), (count, 1))
        if dtype == np.float32 and self.steps > _SINGLE_STEPS:
            raise InputError(
                "too many steps to be counted in float32",
                got=str(self.steps),
                allowed=f"up to {_SINGLE_STEPS}",
                do="pass float64 arrays",
            )
        nodes = sum(len(program.nodes) for program in plan.routine.programs)
        self.chunk_steps = 16
        if plan.routine.is_compilable:
            self.chunk_steps = max(1, int(CHUNK_SECONDS / (2e-9 + nodes * count * 4e-10)))

    @property
    def clock(self) -> Array:
        """The loop's own state (count, 6), see :data:`linkwise.sim.fixed_loop.CLOCK`."""
        return self.rows["clock"]

    def is_running(self) -> bool:
        """Whether any state has steps to make."""
        return bool(((self.clock[:, 0] < self.steps) & ~self.ended).any())

    def chunk(self, kernel: Any, threads: int) -> None:
        """Run the kernel for about as long as a chunk may last."""
        done = float(self.clock[~self.ended, 0].min())
        self.clock[:, 1] = np.where(self.ended, self.clock[:, 0], min(self.steps, done + self.chunk_steps))
        kernel.run(self.rows, {}, {"saved": self.saved}, self.states.count, threads)

    def adapt(self, seconds: float) -> None:
        """Make the next chunk longer or shorter, given the seconds that one took."""
        if seconds < 0.5 * CHUNK_SECONDS:
            self.chunk_steps *= 2
        elif seconds > 2.0 * CHUNK_SECONDS:
            self.chunk_steps = max(1, self.chunk_steps // 2)

    def fraction(self) -> float:
        """The part that is done, 0 to 1."""
        return float(self.clock[:, 0].mean()) / self.steps

    def handle_events(self) -> None:
        """Finish the step in which an event happened by hand, so that the state is back on the grid."""
        for k in np.flatnonzero(self.clock[:, 5] == EVENT):
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
                self.clock[k, 5] = DONE
                continue
            self.y[k] = y
            if countdown < 1.5:
                self.saved[k, int(place)] = y
                countdown, place = every + 1.0, place + 1.0
            self.clock[k] = [number + 1.0, self.steps, countdown - 1.0, every, place, RUNNING]

    def statuses(self) -> Array:
        """How each state ended (count)."""
        done = np.where(self.clock[:, 0] >= self.steps, "done", "interrupted").astype(object)
        done[self.ended] = "event"
        done[(done == "done") & ~np.isfinite(self.y).all(axis=1)] = "failed"
        return np.asarray(done, dtype=np.str_)

    def counts(self) -> tuple[Array, Array]:
        """Steps accepted and rejected, (count) each."""
        return self.clock[:, 0], np.zeros(self.states.count)

    def ending(self, k: int, who: str) -> str:
        """What stopped one state."""
        lost = np.flatnonzero(~np.isfinite(self.saved[k]).all(axis=1))
        since = self.t0 + self.every * self.h * float(lost[0]) if len(lost) else self.end
        why = ", or the iteration for a step did not converge" if self.plan.method == "variational" else ""
        return message(
            f"{who} left the numbers: a value is infinite or not a number{why}",
            got=f"from t = {since:.9g} s, with steps of {self.h:g} s",
            do='a smaller dt, method="rodas4" if it is stiff; see whether the control lets the motion diverge',
        )

    def samples(self) -> tuple[Array, Array]:
        """Times (T) and states (count, T, ny)."""
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
        """The result, at the output times if there are any."""
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
