"""What a loop of adaptive steps records: each step, or the states at given times, looked up inside the steps."""

from __future__ import annotations

from typing import Any

from linkwise.sim.motion import Flat
from linkwise.sim.tolerance import SPAN
from linkwise.sim.work import Step, Work, flag, program
from linkwise.spatial.scalar import where
from linkwise.trace.program import Copy, IfAny, Lookup, Record, Statement, WhileAny


def each_step(work: Work) -> list[Statement]:
    """Record the end of the step just accepted, and its time."""
    onward = program("advance", lambda place, accept: {"place_next": place[0] + accept[0]}, {"place": 1, "accept": 1})
    inside: tuple[Statement, ...] = (
        Record("saved", "y_new", "place", "accept"),
        Record("saved_t", "t_new", "place", "accept"),
        *work.call(onward),
        Copy("place_next", "place"),
    )
    return [IfAny("accept", inside)]


def at_times(work: Work, step: Step, clip: bool, before_stops: bool) -> list[Statement]:
    """Record the states at all output times inside the step just accepted.

    With ``clip`` steps end on output times; else the method's dense output gives the state there. Where a step may end
    at a stop, the state at its very end is recorded as the start of the next step, after the stop.
    """

    def due_text(accept: Flat, next_time: Flat, t_new: Flat, span: Flat) -> dict[str, Any]:
        inside = next_time[0] <= t_new[0]
        if before_stops and not clip:
            inside = (next_time[0] < t_new[0]) | (inside & (t_new[0] >= span[0]))
        return {"pending": flag((accept[0] > 0.0) & inside)}

    due = program("due", due_text, {"accept": 1, "next_time": 1, "t_new": 1, "span": len(SPAN)})
    onward = program("onward", lambda place, pending: {"place_next": place[0] + pending[0]}, {"place": 1, "pending": 1})
    again: list[Statement] = [
        *work.call(onward),
        Copy("place_next", "place"),
        Lookup("times", "place", "next_time"),
        *work.call(due),
    ]
    if clip:
        inside: list[Statement] = [WhileAny("pending", (Record("saved", "y_new", "place", "pending"), *again))]
    else:
        theta = program(
            "theta",
            lambda next_time, t, h, pending: {"theta": where(pending[0] > 0.0, (next_time[0] - t[0]) / h[0], 0.0)},
            {"next_time": 1, "t": 1, "h": 1, "pending": 1},
        )
        looking = (*work.call(theta), *step.look, Record("saved", "y_at", "place", "pending"), *again)
        inside = [*(step.dense or ()), WhileAny("pending", looking)]
    return [*work.call(due), IfAny("pending", tuple(inside))]
