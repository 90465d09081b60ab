"""Lengths of steps: all equal, on a grid, or as long as a tolerance allows.

That is all that runs by different methods differ in. A class has the texts that decide in the loop, over any scalar,
and what follows from it around the loop: how many steps there may be, and how a run goes on after an event.

In a loop, ``begin`` says where each state stands (t, place, running), ``choose`` finds a first size, ``aim`` is the
step that is tried (h, and where anybody looks at it t_new), and ``decide`` names what it needs and is the text that
says whether the step is accepted (``accept``), and what the clock is then (``clock_new``). A good step in which an
event happened is neither accepted nor rejected: it is to be looked into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import message
from linkwise.sim.tolerance import first_step, next_sizes, smallest
from linkwise.sim.work import DONE, EVENT, EXHAUSTED, FAILED, RUNNING, Clock, Span, flag
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, where
from linkwise.trace.program import Statement

if TYPE_CHECKING:
    from linkwise.sim.loop import LoopWriter
    from linkwise.sim.run import Run

Given = dict[str, Flat]
Text = Callable[[Given], NamedNumbers]

_CALL_STEPS = 4096  # with a tolerance, in one call of a kernel
_LEAST = 1e-15  # s, the smallest step of a run of a second or more


def goes_on(clock: Flat) -> Scalar:
    """Whether a state has steps to try."""
    return (clock[Clock.STATUS] <= RUNNING) & (clock[Clock.LEFT] > 0.0)


class EqualSteps:
    """Equal steps on a grid, of at most dt; every so many of them the state is recorded.

    A step with a stop in it is made in parts.
    """

    judges = False  # all steps are good
    spent = DONE  # after all steps that there may be

    def __init__(self, dt: float, every: int = 1) -> None:
        self.dt, self.every = dt, every

    @staticmethod
    def begin(loop: LoopWriter) -> Sequence[Statement]:
        """The time is counted from the first step on, unless stops have parted the steps."""

        def text(clock: Flat, span: Flat) -> NamedNumbers:
            t = clock[Clock.T] if loop.stops else span[Span.T0] + clock[Clock.ACCEPTED] * clock[Clock.H]
            return {"t": t, "h": clock[Clock.H], "place": clock[Clock.PLACE], "running": flag(goes_on(clock))}

        return loop.call("begin", text, "clock", "span")

    @staticmethod
    def choose(loop: LoopWriter) -> Sequence[Statement]:
        """Nothing: all sizes are given."""
        return ()

    @staticmethod
    def aim(loop: LoopWriter) -> Sequence[Statement]:
        """To the end of the step, or to a stop before it; nothing to aim at where there are none."""

        def later(t: Flat, h: Flat) -> NamedNumbers:
            return {"t_new": t[0] + h[0]}

        def aim(clock: Flat, span: Flat, t: Flat, stop: Flat) -> NamedNumbers:
            t0, number, h = span[Span.T0], clock[Clock.ACCEPTED], clock[Clock.H]
            grid, whole = t0 + number * h, t0 + (number + 1.0) * h
            lands = stop[0] >= whole - span[Span.SLACK]
            t_new = where(lands, whole, stop[0])
            return {"t_new": t_new, "h": where(lands & (t[0] <= grid), h, t_new - t[0]), "lands": flag(lands)}

        if loop.stops:
            return loop.call("aim", aim, "clock", "span", "t", "stop")
        return () if loop.events is None else loop.call("later", later, "t", "h")

    @staticmethod
    def decide(loop: LoopWriter) -> tuple[list[str], Text]:
        """All steps are accepted but those with an event; ``save`` where one is to be recorded."""
        inputs = ["clock", "span", *(["hit"] if loop.events else []), *(["lands", "t_new"] if loop.stops else [])]

        def text(given: Given) -> NamedNumbers:
            clock, span = given["clock"], given["span"]
            t, h, status, place, number, rejected, left, countdown = clock
            accept = goes_on(clock)
            if "hit" in given:
                hit = given["hit"][0]
                status = where(accept & (hit > 0.0), EVENT, status)
                accept = accept & (hit <= 0.0)
            counts = accept & (given["lands"][0] > 0.0) if loop.stops else accept
            number = where(counts, number + 1.0, number)
            countdown = where(counts, countdown - 1.0, countdown)
            left = where(counts, left - 1.0, left)
            save = counts & (countdown < 0.5)
            countdown = where(save, span[Span.EVERY], countdown)
            t = where(accept, given["t_new"][0], t) if loop.stops else span[Span.T0] + number * h
            return {
                "clock_new": [t, h, status, place, number, rejected, left, countdown],
                "accept": flag(accept),
                "save": flag(save),
            }

        return inputs, text

    def pace(self, duration: float, slack: float) -> float:
        """Make ready for a duration; what times may differ by that are one, given what rounding makes of it."""
        self.most = max(1, math.ceil(duration / self.dt - 1e-9))
        self.h = duration / self.most
        self.at_once = max(16, self.most)
        return max(slack, 1e-9 * self.h)

    def stride(self, times: Array, t0: float) -> int:
        """The most steps between records that still meets all times; 1 where they are not multiples of the step."""
        numbers = (times - t0) / self.h
        whole = np.rint(numbers)
        if np.abs(numbers - whole).max(initial=0.0) > 1e-7:
            return 1
        return int(np.gcd.reduce([int(n) for n in whole if n > 0])) if whole.max(initial=0.0) > 0 else self.most

    def given(self, t0: float) -> list[float]:
        """The part of :class:`Span` behind its end and slack: the grid."""
        return [0.0, 0.0, 0.0, 0.0, t0, float(self.every)]

    def time(self, run: Run, number: float) -> float:
        """Time at which a step begins; the end of the run after the last."""
        return run.end if number >= self.most else run.t0 + number * self.h

    def pass_events(self, run: Run, k: int) -> None:
        """Finish the step in which an event happened by hand, so that the state is back on the grid."""
        clock = run.clock[k]
        number, countdown = float(clock[Clock.ACCEPTED]), float(clock[Clock.COUNTDOWN])
        now = float(clock[Clock.T]) if run.plan.motion.stops else self.time(run, number)
        y, final = self._finished_step(run, k, number, now)
        run.home.put(run.y, k, y)
        if "memory" in run.rows:
            run.rows["memory"][k, 0] = 0.0  # what came before is no guide
        if final:
            run.ended[k] = True
            run.records.end(k)
            return
        if countdown < 1.5:
            run.records.put(k, int(clock[Clock.PLACE]), y)
            countdown = self.every + 1.0
            clock[Clock.PLACE] += 1.0
        clock[Clock.T], clock[Clock.STATUS] = self.time(run, number + 1.0), RUNNING
        clock[Clock.ACCEPTED], clock[Clock.COUNTDOWN] = number + 1.0, countdown - 1.0

    def _finished_step(self, run: Run, k: int, number: float, t: float) -> tuple[Array, bool]:
        """One state at the end of a step with events in it, or where a terminal one ended it, and whether one did.

        ``t`` is where it is now: at the start of the step, or at a stop within.
        """
        goal, y = self.time(run, number + 1.0), run.state(k).astype(float)
        final = False
        while t < goal and not final:
            stop = run.plan.next_stop(y, run.happened.parameters_at(k, t), t + run.slack)
            aim = goal if stop >= goal - run.slack else stop
            size, before, which = run.happened.first(k, t, y, aim - t)
            start, t = t, aim if t + size >= aim else t + size
            y, final = run.happened.happen(k, t, before, which, aim - start)
            if t >= aim and run.plan.motion.samplers and t < run.end - run.slack:
                p = run.happened.parameters_at(k, t)
                y = run.plan.sampled(np.array([t]), y[None], p[None], run.slack)[0]
        return y, final

    def ending(self, run: Run, k: int, who: str) -> str:
        """Reason why one state stopped, for people: it diverged."""
        saved = run.home.taken(run.records.saved, k)
        lost = np.flatnonzero(~np.isfinite(saved).all(axis=1))
        since = run.t0 + self.every * self.h * float(lost[0]) if len(lost) else run.end
        between = self.every * self.h
        blame = run.blamed(k, since - between, saved[lost[0] - 1], between) if len(lost) and lost[0] else ""
        why = (
            ", or the iteration for a step did not converge"
            if run.plan.method in ("variational", "generalized_alpha")
            else ""
        )
        rodas4 = "" if run.plan.method == "moreau" else ', method="rodas4" if it is stiff'
        return message(
            f"{who} diverged: a value is infinite or not a number{why}",
            got="; ".join(filter(None, (f"from t = {since:.9g} s, with steps of {self.h:g} s", blame))),
            do=f"a smaller dt{rodas4}; see whether the control lets the motion diverge",
        )

    def doubt(self, run: Run) -> str:
        """Sentence on steps that are too long for the motion, by step doubling; empty if none is known to be."""
        return roughness(run, self)


class ToleratedSteps:
    """Steps as long as the tolerance allows, each state with its own."""

    judges = True  # by their errors
    spent = EXHAUSTED
    at_once = _CALL_STEPS
    every = 0

    def __init__(
        self, dt: float | None, rtol: float, atol: float, max_step: float, min_step: float, max_steps: int
    ) -> None:
        self.h = 0.0 if dt is None else float(dt)
        """The first step that is tried; 0: it is chosen."""
        self.most, self.floor = max_steps, min_step
        self.rtol, self.atol, self.max_step = rtol, max(atol, 1e-300), max_step

    @staticmethod
    def begin(loop: LoopWriter) -> Sequence[Statement]:
        """Also ``first``, whether a size is to be chosen, and ``fresh``, whether the derivative must be found."""

        def text(clock: Flat) -> NamedNumbers:
            t, h, _, place, accepted, rejected, _, held = clock
            return {
                "t": t,
                "first": flag(h <= 0.0),
                "fresh": flag((h <= 0.0) | (accepted + rejected <= 0.0) | (held < 0.0)),
                "place": place,
                "running": flag(goes_on(clock)),
            }

        return loop.call("begin", text, "clock")

    @staticmethod
    def choose(loop: LoopWriter) -> Sequence[Statement]:
        """From the derivative at the start."""
        return loop.derivative_at_start(), first_step(loop.work, loop.step)

    @staticmethod
    def aim(loop: LoopWriter) -> Sequence[Statement]:
        """No longer than allowed, and not beyond the end, a stop or an output time on which steps end."""
        goals = [*(["next_time"] if loop.clips else []), *(["stop"] if loop.stops else [])]

        def trim(t: Flat, clock: Flat, span: Flat, *before: Flat) -> NamedNumbers:
            wanted, longest, goal = clock[Clock.H], span[Span.H_MAX], span[Span.END]
            limited = where(wanted > longest, longest, wanted)
            for each in before:
                goal = where(each[0] < goal, each[0], goal)
            # A step that ends just before the goal would leave a crumb: stretch it, or halve what is left.
            room = goal - t[0]
            lands = limited * (1.0 + 1e-12) >= room
            later = t[0] + limited
            # The step is as long as the clock says, also where the clock is coarse.
            return {"h": where(lands, room, later - t[0]), "t_new": where(lands, goal, later)}

        return loop.call("trim", trim, "t", "clock", "span", *goals)

    @staticmethod
    def decide(loop: LoopWriter) -> tuple[list[str], Text]:
        """Those whose error is within the tolerance are accepted; the next one is as long as the error allows."""
        inputs = ["clock", "span", "t_new", "h", "err", *(["hit"] if loop.events else [])]

        def text(given: Given) -> NamedNumbers:
            clock, span = given["clock"], given["span"]
            t_new, h, err, *hit = (given[each][0] for each in inputs[2:])
            t, wanted, status, place, accepted, rejected, left, held = clock
            running = goes_on(clock)
            good = err <= 1.0
            accept, reject = running & good, running & ~good
            hits = accept & (hit[0] > 0.0) if hit else False
            accept = accept & (hit[0] <= 0.0) if hit else accept
            longer, shorter = next_sizes(err, h, wanted, held, loop.step.error_order)
            next_h = where(accept, longer, where(reject, shorter, wanted))
            next_h = where(hits, h, next_h)
            ends = accept & (t_new >= span[Span.END])
            fails = (reject | (accept & ~ends)) & ~(next_h >= smallest(t, span))  # NaN fails the comparison too
            status = where(ends, DONE, status)
            status = where(hits, EVENT, status)
            status = where(fails, FAILED, status)
            clock_new = [
                where(accept, t_new, t),
                next_h,
                status,
                place,
                where(accept, accepted + 1.0, accepted),
                where(reject, rejected + 1.0, rejected),
                where(running, left - 1.0, left),
                where(accept, 0.0, where(reject, 1.0, held)),
            ]
            return {"clock_new": clock_new, "accept": flag(accept)}

        return inputs, text

    def pace(self, duration: float, slack: float) -> float:
        """The smallest step follows from the first duration."""
        self.floor = self.floor or _LEAST * min(1.0, duration)
        return slack

    def given(self, t0: float) -> list[float]:
        """The tolerances, and the longest and the smallest step."""
        return [self.rtol, self.atol, self.max_step, self.floor, 0.0, 0.0]

    def pass_events(self, run: Run, k: int) -> None:
        """Go on from the event."""
        clock = run.clock[k]
        start, t, h = run.state(k), float(clock[Clock.T]), float(clock[Clock.H])
        size, before, which = run.happened.first(k, t, start, h)
        there = t + size
        y, final = run.happened.happen(k, there, before, which, h)
        ends = final or there >= run.end
        run.records.event(k, t, there, (start, before, y))
        run.home.put(run.y, k, y)
        run.ended[k] = final
        if not ends:  # an event may lie on a stop
            run.settle(np.array([k]), np.array([there]))
        # What follows may be quite different: start small, so that the next event is not stepped over.
        clock[Clock.T], clock[Clock.H] = there, 0.0
        clock[Clock.STATUS] = EVENT if final else DONE if ends else RUNNING
        clock[Clock.ACCEPTED] += 1.0

    def ending(self, run: Run, k: int, who: str) -> str:
        """Reason why one state stopped, for people: its steps became too many or too small."""
        m = run.plan.motion
        t, h, status = (float(x) for x in run.clock[k, :3])
        speed = float(np.abs(run.state(k)[m.nq :][: m.nv]).max(initial=0.0))
        where = f"t = {t:.9g} s of {run.end:g} s, steps of {h:.1e} s, the largest velocity is {speed:.2g} rad/s or m/s"
        if status == EXHAUSTED:
            return message(
                f"{who} stopped after max_steps = {self.most} steps",
                got=where,
                do='method="rodas4" if springs, dampers or gains are stiff; see whether the control lets the motion '
                "diverge; a larger rtol or max_steps",
            )
        floor = max(self.floor, 4e-16 * abs(t))
        return message(
            f"{who} could not go on: the step fell below {floor:.0e} s, or a value is not a number",
            got="; ".join(filter(None, (where, run.blamed(k, t, run.state(k), _AHEAD)))),
            do="look at control and model at this time: a jump, a value that is not a number, a motion that diverges; "
            'method="rodas4" if it is stiff',
        )

    def doubt(self, run: Run) -> str:
        """None: steps have been judged."""
        return ""


StepSize = EqualSteps | ToleratedSteps


_AHEAD = 1e-3  # s: a run that ends at the border of a table ends before it
_STEPS_PER_LOOK = 300  # a look costs three steps, so all of them a hundredth of the run
_MOST_LOOKS = 128
_INTERVAL = 32  # samples; intervals in which a velocity changes most are looked through
_LOOKED_THROUGH = 2**13  # velocities among the samples, at most
_ROUGH = 5e-3  # of the largest velocity: the error of a single step that is told


def roughness(run: Run, sizes: EqualSteps) -> str:
    """Sentence on steps that are too long, found by step doubling at some of the samples.

    At those behind which the velocity changes most, and evenly among all. Where a motion is too fast for the step, it
    mostly is so for moments, which looks at regular intervals miss; so half of the looks are where it is steepest,
    which the samples show at little cost. Nothing else is compiled.
    """
    m, saved = run.plan.motion, run.records.reached
    samples = saved.shape[1] - 1
    count = 1 if m.curves else run.states.count  # others may have tables of their own
    looks = min(sizes.most * count // _STEPS_PER_LOOK, _MOST_LOOKS)
    if m.contacts is not None:  # where surfaces meet or stick, velocities jump, however short the step
        return ""
    if looks < 16 or not m.nv or not run.plan.is_compiled or samples < 2:
        return ""
    interval = max(1, min(_INTERVAL, samples // 8))
    every = -(-count * samples * m.nv // (interval * _LOOKED_THROUGH))  # states
    speeds = slice(m.nq, m.nq + m.nv)
    coarse = np.asarray(run.home.to_host(saved[:count:every, :-1:interval, speeds]), float)
    size = np.abs(coarse).max(axis=1)
    size = np.maximum(size, 1e-3 * size.max(axis=1, keepdims=True)) + 1e-12
    change = _steepness(coarse, size[:, None])
    half = min(looks // 2, change.size)
    state, place = np.unravel_index(np.argpartition(change, -half, axis=None)[-half:], change.shape)
    inside = place[:, None] * interval + np.arange(interval + 1)
    fine = run.home.taken(saved, (run.home.to_device(state[:, None] * every), run.home.to_device(inside)))
    place = place * interval + np.argmax(_steepness(fine[..., speeds], size[state][:, None]), axis=1)
    among = np.linspace(0, len(coarse) * samples - 1, looks - half).astype(int)
    state, place = np.append(state, among // samples), np.append(place, among % samples)
    y = np.asarray(run.home.taken(saved, (run.home.to_device(state * every), run.home.to_device(place))))
    t = run.t0 + place * (sizes.every * sizes.h)
    ends = [_trial(run, sizes.h, state * every, t, y, parts) for parts in (1, 2)]
    off = (np.abs(ends[0] - ends[1])[:, speeds] / size[state]).max(axis=1)
    off = np.nan_to_num(off, nan=0.0)  # ended before, or an event or a sample in Python came between
    worst = int(np.argmax(off))
    if off[worst] <= _ROUGH:
        return ""
    return message(
        f"steps of {sizes.h:g} s are too long for this motion: what follows may be far from the truth",
        got=f"near t = {t[worst]:.9g} s a step and two of half its length end {off[worst]:.2g} of the largest "
        f"velocity apart; {int((off > _ROUGH).sum())} of {len(off)} steps that were looked at are such",
        do='a smaller dt and see whether the motion stays; or an adaptive method, "dop853" or "rodas4"',
    )


def _trial(run: Run, h: float, states: Array, t: Array, y: Array, parts: int) -> Array:
    """The ends (n, ny) of single steps h from y (n, ny) at times t (n), made in so many parts; NaN if one stopped."""
    n, dtype, home = len(t), run.states.dtype, run.home
    clock = np.zeros((n, Clock.SIZE), dtype)
    clock[:, Clock.T], clock[:, Clock.H], clock[:, Clock.STATUS], clock[:, Clock.LEFT] = t, h / parts, RUNNING, parts
    clock[:, Clock.COUNTDOWN] = parts + 1.0  # nothing is recorded
    span = np.zeros((n, Span.SIZE), dtype)
    span[:, Span.END], span[:, Span.SLACK], span[:, Span.T0] = t + h, run.slack, t
    rows: dict[str, Array] = {"span": span, "y": np.array(y, dtype), "p": run.curves.widened(run.states.p[states])}
    rows |= {name: np.zeros((n, len(run.rows[name][0])), dtype) for name in ("memory", "g") if name in run.rows}
    rows = {name: home.to_device(array) for name, array in rows.items()} | {"clock": clock}
    saved = home.empty((n, 1, run.plan.motion.ny), dtype)
    tables = {name: home.to_device(a) for name, a in run.curves.of(int(states[0])).items()}
    run.kernel().run(rows, tables, {"saved": saved}, n)
    stopped = (clock[:, Clock.STATUS] != RUNNING) | (clock[:, Clock.ACCEPTED] < parts)
    return np.where(stopped[:, None], math.nan, home.to_host(rows["y"]).astype(float))


def _steepness(v: Array, size: Array) -> Array:
    """The largest change of any velocity from one sample to the next (..., T - 1), of v (..., T, nv) by their sizes."""
    found = np.zeros((*v.shape[:-2], v.shape[-2] - 1))
    for k in range(v.shape[-1]):  # a maximum over few numbers side by side takes ten times as long
        np.fmax(found, np.abs(np.diff(v[..., k], axis=-1)) / size[..., k], out=found)
    return found
