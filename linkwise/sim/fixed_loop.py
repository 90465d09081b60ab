"""The loop of equal steps, and a single step to look into."""

from __future__ import annotations

from typing import Any

from linkwise.codegen.routine import Copy, IfAny, Record, Routine, Statement, WhileAny
from linkwise.sim.motion import Flat
from linkwise.sim.work import EVENT, RUNNING, Step, Traceable, Work, crossing, flag, program
from linkwise.spatial.scalar import where

# Rows of the loop's own state.
CLOCK = ("step", "stop", "countdown", "every", "next", "status")


def one_step(work: Work, step: Step, events: Traceable) -> Routine:
    """A single step, to look into it: rows y, p, t, h; y_new and the event functions g_new at its end are stored."""
    m = work.motion
    for name, size in (("y", m.ny), ("p", m.np), ("t", 1), ("h", 1)):
        work.buffer(name, size, load=True)
    work.buffer("y_new", m.ny, store=True)
    work.buffer("g_new", events.outputs[0].size, store=True)
    later = program("later", lambda t, h: {"t_new": t[0] + h[0]}, {"t": 1, "h": 1})
    statements = (
        *step.begin,
        *step.advance,
        *work.call(later),
        *work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"}),
    )
    return Routine("one_step", tuple(work.buffers.values()), statements)


def fixed_loop(work: Work, step: Step, events: Traceable | None = None) -> Routine:
    """Steps of equal size; every so many of them the state is recorded.

    Rows: y; p; start = [t0, h]; clock (see :data:`CLOCK`): steps done and to do, steps until the next record and
    between records, the next record's place, the status.
    """
    m = work.motion
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("start", 2, load=True)
    work.buffer("clock", len(CLOCK), load=True, store=True)

    def begin(clock: Flat, start: Flat) -> dict[str, Any]:
        running = (clock[0] < clock[1]) & (clock[5] <= RUNNING)
        return {"t": start[0] + clock[0] * start[1], "h": start[1], "running": flag(running)}

    def tick(clock: Flat, start: Flat, y: Flat, y_new: Flat, *hit: Flat) -> dict[str, Any]:
        number, stop, countdown, every, place, status = clock
        goes = (status <= RUNNING) & (number < stop)
        if hit:
            status = where(goes & (hit[0][0] > 0.0), EVENT, status)
            goes = goes & (hit[0][0] <= 0.0)
        number = where(goes, number + 1.0, number)
        countdown = where(goes, countdown - 1.0, countdown)
        save = goes & (countdown < 0.5)
        after = where(save, place + 1.0, place)
        return {
            "clock_new": [number, stop, where(save, every, countdown), every, after, status],
            "place": place,
            "save": flag(save),
            "t": start[0] + number * start[1],
            "running": flag((number < stop) & (status <= RUNNING)),
            "y_next": [where(goes, a, b) for a, b in zip(y_new, y, strict=True)],
        }

    sizes = {"clock": len(CLOCK), "start": 2, "y": m.ny, "y_new": m.ny, **({"hit": 1} if events is not None else {})}
    ticking = work.call(program("tick", tick, sizes))
    body: list[Statement] = [*step.begin, *step.advance]
    if events is not None:
        later = program("later", lambda t, h: {"t_new": t[0] + h[0]}, {"t": 1, "h": 1})
        body += [*work.call(later), *work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"})]
        body += work.call(crossing(events), {})
    body += [*ticking, Copy("clock_new", "clock"), Copy("y_next", "y")]
    if events is not None:
        body.append(Copy("g_kept", "g"))
    body.append(IfAny("save", (Record("saved", "y", "place", "save"),)))
    opening: list[Statement] = [*work.call(program("begin", begin, {"clock": len(CLOCK), "start": 2}))]
    if events is not None:
        opening += work.call(events)
    return Routine(
        "fixed_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", tuple(body))),
        records=(("saved", m.ny),),
    )
