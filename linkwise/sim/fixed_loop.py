"""The loop of equal steps, and a single step to look into."""

from __future__ import annotations

from typing import Any

from linkwise.sim.motion import Flat
from linkwise.sim.stops import Stops, waits_for_python
from linkwise.sim.work import EVENT, RUNNING, WAITING, Step, Traceable, Work, crossing, flag, program, watching
from linkwise.spatial.scalar import where
from linkwise.trace.program import Copy, IfAny, Program, Record, Statement, WhileAny

# Rows of the loop's own state.
CLOCK = ("step", "stop", "countdown", "every", "next", "status", "t")
# What the loop is given.
START = ("t0", "h", "end", "slack")


def one_step(work: Work, step: Step, events: Traceable) -> Program:
    """A single step, to look into it: rows y, p, t, h; y_new and the event functions g_new at its end are stored."""
    m = work.motion
    for name, size in (("y", m.ny), ("p", m.np), ("t", 1), ("h", 1)):
        work.buffer(name, size, load=True)
    work.buffer("y_new", m.ny, store=True)
    work.buffer("g_new", events.outputs[0].size, store=True)
    later = program("later", lambda t, h: {"t_new": t[0] + h[0]}, {"t": 1, "h": 1})
    blank = program("blank", lambda t: {"memory": [0.0] * step.memory}, {"t": 1})
    statements = (
        *(work.call(blank) if step.memory else ()),
        *step.begin,
        *step.advance,
        *work.call(later),
        *work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"}),
    )
    return Program("one_step", tuple(work.buffers.values()), statements, curves=work.curves)


def fixed_loop(work: Work, step: Step, events: Traceable | None = None) -> Program:
    """Steps of equal size; every so many of them the state is recorded.

    Rows: y; p; start (see :data:`START`); clock (see :data:`CLOCK`): steps done and to do, steps until the next record
    and between records, the next record's place, the status, the time; memory, where the step has some; g, where there
    are events (see :func:`watching`). A step with a stop in it is made in parts.
    """
    m = work.motion
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("start", len(START), load=True)
    work.buffer("clock", len(CLOCK), load=True, store=True)
    if step.memory:
        work.buffer("memory", step.memory, load=True, store=True)
    stops = Stops(work, "start", len(START), end=START.index("end"), slack=START.index("slack")) if m.stops else None

    def begin(clock: Flat, start: Flat) -> dict[str, Any]:
        running = (clock[0] < clock[1]) & (clock[5] <= RUNNING)
        t = clock[6] if stops else start[0] + clock[0] * start[1]
        return {"t": t, "h": start[1], "running": flag(running)}

    def later(t: Flat, h: Flat) -> dict[str, Any]:
        return {"t_new": t[0] + h[0]}

    def aim(clock: Flat, start: Flat, t: Flat, stop: Flat) -> dict[str, Any]:
        """To the end of the step, or to a stop before it."""
        grid, whole = start[0] + clock[0] * start[1], start[0] + (clock[0] + 1.0) * start[1]
        lands = stop[0] >= whole - start[3]
        t_new = where(lands, whole, stop[0])
        return {"t_new": t_new, "h": where(lands & (t[0] <= grid), start[1], t_new - t[0]), "lands": flag(lands)}

    def arrived(clock: Flat, *hit: Flat) -> dict[str, Any]:
        goes = (clock[5] <= RUNNING) & (clock[0] < clock[1])
        return {"goes": flag(goes & (hit[0][0] <= 0.0) if hit else goes)}

    def tick(clock: Flat, start: Flat, y: Flat, y_new: Flat, *more: Flat) -> dict[str, Any]:
        number, stop, countdown, every, place, status, now = clock
        given = dict(zip(extra, more, strict=True))
        goes = (status <= RUNNING) & (number < stop)
        if events is not None:
            hit = given["hit"][0]
            status = where(goes & (hit > 0.0), EVENT, status)
            goes = goes & (hit <= 0.0)
        counts = goes & (given["lands"][0] > 0.0) if stops else goes
        number = where(counts, number + 1.0, number)
        countdown = where(counts, countdown - 1.0, countdown)
        save = counts & (countdown < 0.5)
        after = where(save, place + 1.0, place)
        now = where(goes, given["t_new"][0], now) if stops else start[0] + number * start[1]
        if "waits" in given:
            status = where(goes & (given["waits"][0] > 0.0), WAITING, status)
        found: dict[str, Any] = {} if not step.memory else {"memory_next": remembered(goes, given)}
        if events is not None:
            found["g_next"] = [where(goes, a, b) for a, b in zip(given["g_kept"], given["g"], strict=True)]
        return found | {
            "clock_new": [number, stop, where(save, every, countdown), every, after, status, now],
            "place": place,
            "save": flag(save),
            "t": now,
            "running": flag((number < stop) & (status <= RUNNING)),
            "y_next": [where(goes, a, b) for a, b in zip(y_new, y, strict=True)],
        }

    def remembered(goes: Any, given: dict[str, Flat]) -> list[Any]:
        """What is known of the past at the next step: nothing after a stop, where what acts may have jumped."""
        later = list(given["memory_new"])
        if stops:
            later[0] = where(given["at_stop"][0] > 0.0, 0.0, later[0])
        return [where(goes, a, b) for a, b in zip(later, given["memory"], strict=True)]

    body: list[Statement] = []
    if stops:
        body += work.call(program("aim", aim, {"clock": len(CLOCK), "start": len(START), "t": 1, "stop": 1}))
    body += [*step.begin, *step.advance]
    if events is not None:
        if not stops:
            body += work.call(program("later", later, {"t": 1, "h": 1}))
        body += work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"})
        body += work.call(crossing(events), {})
    hit = {"hit": 1} if events is not None else {}
    extra = dict(hit) | ({} if events is None else dict.fromkeys(("g", "g_kept"), events.outputs[0].size))
    if stops:
        body += work.call(program("arrived", arrived, {"clock": len(CLOCK), **hit}))
        body += stops.arriving("goes")
        extra |= {"lands": 1, "t_new": 1, **({"waits": 1} if waits_for_python(m) else {})}
    if step.memory:
        extra |= {"memory": step.memory, "memory_new": step.memory, **({"at_stop": 1} if stops else {})}
    sizes = {"clock": len(CLOCK), "start": len(START), "y": m.ny, "y_new": m.ny, **extra}
    body += [*work.call(program("tick", tick, sizes)), Copy("clock_new", "clock"), Copy("y_next", "y")]
    if step.memory:
        body.append(Copy("memory_next", "memory"))
    if events is not None:
        body.append(Copy("g_next", "g"))
    if stops:
        body += stops.next()
    body.append(IfAny("save", (Record("saved", "y", "place", "save"),)))
    opening: list[Statement] = [*work.call(program("begin", begin, {"clock": len(CLOCK), "start": len(START)}))]
    opening += stops.opening() if stops else ()
    if events is not None:
        opening += watching(work, events)
    return Program(
        "fixed_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", tuple(body))),
        records=(("saved", m.ny),),
        curves=work.curves,
    )
