"""The loop of steps as long as the tolerance allows."""

from __future__ import annotations

from typing import Any

from linkwise.sim.adaptive_output import at_times, each_step
from linkwise.sim.first_step import first_step
from linkwise.sim.motion import Flat
from linkwise.sim.step_size import CONTROL, Text, deciding, goes_on, trimming
from linkwise.sim.stops import Stops, waits_for_python
from linkwise.sim.tolerance import SPAN
from linkwise.sim.work import RUNNING, WAITING, Step, Traceable, Work, crossing, flag, program, watching
from linkwise.spatial.scalar import Scalar, where
from linkwise.trace.program import Copy, IfAny, Lookup, Program, Seek, Statement, WhileAny


def adaptive_loop(work: Work, step: Step, *, every_step: bool, events: Traceable | None = None) -> Program:
    """Steps as long as the tolerance allows, each state with its own.

    Rows: y; p; control (see :data:`CONTROL`); span (see :data:`SPAN`); k0, the derivative at y, which is kept from one
    call to the next so that it does not matter to the last bit how many steps a call makes; g, where there are events
    (see :func:`watching`). With ``every_step`` each
    accepted step is recorded, otherwise the states at the times of the table ``times`` (infinity at its end).
    """
    m = work.motion
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("control", len(CONTROL), load=True, store=True)
    work.buffer("span", len(SPAN), load=True)
    work.buffer("k0", m.nz, load=True, store=True)
    work.buffer("next_time", 1)
    loop = _AdaptiveLoop(work, step, every_step, events)
    one_pass = (*loop.attempt(), *loop.notice(), *loop.decide(), *loop.record(), *loop.go_on())
    opening = loop.opening()
    return Program(
        "adaptive_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", one_pass)),
        tables=() if every_step else ("times",),
        records=(("saved", m.ny), ("saved_t", 1)) if every_step else (("saved", m.ny),),
        curves=work.curves,
    )


class _AdaptiveLoop:
    """The parts of the loop. One pass attempts a step, notices events, decides, records, and goes on from there."""

    def __init__(self, work: Work, step: Step, every_step: bool, events: Traceable | None) -> None:
        m = self.motion = work.motion
        self.work, self.step, self.every_step, self.events = work, step, every_step, events
        self.clip = not every_step and step.dense is None
        """Whether steps end on the output times, of a method without dense output."""
        self.stops = Stops(work, "span", len(SPAN), end=0, slack=SPAN.index("slack")) if m.stops else None
        self.arriving = self.stops.arriving("accept") if self.stops else ()

    def opening(self) -> list[Statement]:
        """Before the first step: where each state stands, its derivative, a size to try, and what comes next."""
        begun: list[Statement] = [
            *self._call("begin", _begin, "control"),
            *(self.stops.opening() if self.stops else ()),
            self._derivative_at_start(),
            *first_step(self.work, self.step, len(CONTROL)),
        ]
        if self.events is not None:
            begun += watching(self.work, self.events)
        if not self.every_step:
            begun.append(Lookup("times", "place", "next_time"))
        return begun

    def _derivative_at_start(self) -> Statement:
        """k0 at y, for states that do not bring it from the call before."""
        kept = Copy("k0", "k0_kept")
        choose = self._call("keep_k0", _chosen("k0_new"), "k0", "k0_kept", "fresh")
        return IfAny("fresh", (kept, *self.step.begin, *choose, Copy("k0_new", "k0")))

    def attempt(self) -> list[Statement]:
        """A step of the size that is wanted, where nothing is in the way, and its error."""
        m = self.motion
        smooth = [Seek(curve.name, "t", "p", curve.offset) for curve in m.curves if m.passes(curve)]
        stop = ["stop"] if self.stops else []
        trim = self._call("trim", trimming(self.clip), "t", "control", "span", "next_time", *stop)
        return [*smooth, *trim, *self.step.advance, *self.step.judge]

    def notice(self) -> list[Statement]:
        """Whether an event happened in the step."""
        if self.events is None:
            return []
        at_end = self.work.call(self.events, {"t": "t_new", "y": "y_new", "g": "g_new"})
        return [*at_end, *self.work.call(crossing(self.events))]

    def decide(self) -> list[Statement]:
        """Accept the step or reject it; the size of the next."""
        hit = ["hit"] if self.events is not None else []
        text = deciding(self.step.error_order)
        return self._call("decide", text, "control", "t", "t_new", "h", "err", "span", *hit)

    def record(self) -> list[Statement]:
        """What is to be kept of an accepted step; what is due at a stop happens before its end is looked at."""
        if self.every_step:
            return [*self.arriving, *each_step(self.work)]
        samples = at_times(self.work, self.step, self.clip, before_stops=self.stops is not None)
        return [*self.arriving, *samples] if self.clip else [*samples, *self.arriving]

    def go_on(self) -> list[Statement]:
        """From the end of an accepted step, from its start after a rejected one."""
        waits = ["waits"] if waits_for_python(self.motion) else []
        taken = ("control_new", "accept", "y", "y_new", "k0", "k_next", "place", *waits)
        onward = [
            *self.step.carry,
            *([self._derivative_after_stop()] if self.stops and self.step.carry else ()),
            *self._call("blend", _blend, *taken),
            Copy("control_next", "control"),
            Copy("y_next", "y"),
            Copy("k0_next", "k0"),
            *(self.stops.next() if self.stops else ()),
        ]
        if self.events is not None:
            onward += [*self._call("keep", _values_kept, "g", "g_kept", "accept"), Copy("g_next", "g")]
        return onward

    def _derivative_after_stop(self) -> Statement:
        """After a stop the derivative is that of what acts from there on, not that of the last stage."""
        there = self.work.rates_at("y_new", "t_new", "k_next")
        self.work.buffer("k_before", self.motion.nz)
        choose = self._call("keep_k_next", _chosen("k_after"), "k_next", "k_before", "at_stop")
        return IfAny("at_stop", (Copy("k_next", "k_before"), *there, *choose, Copy("k_after", "k_next")))

    def _call(self, name: str, text: Text, *inputs: str) -> list[Statement]:
        """A text, traced, on buffers of these names."""
        m = self.motion
        sizes = {"control": len(CONTROL), "control_new": len(CONTROL), "span": len(SPAN), "y": m.ny, "y_new": m.ny}
        sizes |= dict.fromkeys(("k0", "k0_kept", "k_next", "k_before"), m.nz)
        if self.events is not None:
            sizes |= dict.fromkeys(("g", "g_kept"), self.events.outputs[0].size)
        return list(self.work.call(program(name, text, {each: sizes.get(each, 1) for each in inputs})))


def _begin(control: Flat) -> dict[str, Any]:
    t, h, status, place, accepted, rejected, left, held = control
    return {
        "t": t,
        "first": flag(h <= 0.0),
        "fresh": flag((h <= 0.0) | (accepted + rejected <= 0.0) | (held < 0.0)),
        "place": place,
        "running": flag(goes_on(status, left)),
    }


def _blend(
    control_new: Flat, accept: Flat, y: Flat, y_new: Flat, k0: Flat, k_next: Flat, place: Flat, *waits: Flat
) -> dict[str, Any]:
    """The end of the step where it was accepted, else its start."""
    yes = accept[0] > 0.0
    t, h, status, _, accepted, rejected, left, held = control_new
    if waits:
        status = where((waits[0][0] > 0.0) & (status <= RUNNING), WAITING, status)
    return {
        "control_next": [t, h, status, place[0], accepted, rejected, left, held],
        "y_next": _either(yes, y_new, y),
        "k0_next": _either(yes, k_next, k0),
        "t": t,
        "running": flag(goes_on(status, left)),
    }


def _values_kept(g: Flat, g_kept: Flat, accept: Flat) -> dict[str, Any]:
    """The event functions' values to compare with next."""
    return {"g_next": _either(accept[0] > 0.0, g_kept, g)}


def _chosen(name: str) -> Text:
    """(one, other, which) to the one where ``which`` is set, else the other, under a name."""
    return lambda one, other, which: {name: _either(which[0] > 0.0, one, other)}


def _either(condition: Any, one: Flat, other: Flat) -> list[Scalar]:
    return [where(condition, a, b) for a, b in zip(one, other, strict=True)]
