"""The loop of steps as long as the tolerance allows."""

from __future__ import annotations

from typing import Any

from linkwise.codegen.routine import Copy, IfAny, Lookup, Record, Routine, Seek, Statement, WhileAny
from linkwise.sim.first_step import first_step
from linkwise.sim.motion import Flat
from linkwise.sim.stops import Stops, waits_for_python
from linkwise.sim.tolerance import SPAN
from linkwise.sim.work import DONE, EVENT, FAILED, RUNNING, WAITING, Step, Traceable, Work, crossing, flag, program
from linkwise.spatial.scalar import exp, log, where

# Rows of the loop's own state.
CONTROL = ("t", "h", "status", "next", "accepted", "rejected", "left", "held")


def adaptive_loop(work: Work, step: Step, *, every_step: bool, events: Traceable | None = None) -> Routine:
    """Steps as long as the tolerance allows, each state with its own.

    Rows: y; p; control (see :data:`CONTROL`); span (see :data:`SPAN`); k0, the derivative at y, which is kept from one
    call to the next so that it does not matter to the last bit how many steps a call makes. With ``every_step`` each
    accepted step is recorded, otherwise the states at the times of the table ``times`` (infinity at its end).
    """
    m = work.motion
    nc = len(CONTROL)
    work.buffer("y", m.ny, load=True, store=True)
    work.buffer("p", m.np, load=True)
    work.buffer("control", nc, load=True, store=True)
    work.buffer("span", len(SPAN), load=True)
    work.buffer("k0", m.nz, load=True, store=True)
    work.buffer("next_time", 1)
    clip = not every_step and step.dense is None
    exponent = -1.0 / (step.error_order + 1)

    def begin(control: Flat) -> dict[str, Any]:
        t, h, status, place, accepted, rejected, left, held = control
        return {
            "t": t,
            "first": flag(h <= 0.0),
            "fresh": flag((h <= 0.0) | (accepted + rejected <= 0.0) | (held < 0.0)),
            "place": place,
            "running": flag((status <= RUNNING) & (left > 0.0)),
        }

    def trim(t: Flat, control: Flat, span: Flat, next_time: Flat, *stop: Flat) -> dict[str, Any]:
        wanted = control[1]
        limited = where(wanted > span[3], span[3], wanted)
        goal = where(next_time[0] < span[0], next_time[0], span[0]) if clip else span[0]
        if stop:
            goal = where(stop[0][0] < goal, stop[0][0], goal)
        # A step that ends just before the goal would leave a crumb: stretch it, or halve what is left.
        room = goal - t[0]
        lands = limited * (1.0 + 1e-12) >= room
        later = t[0] + limited
        # The step is as long as the clock says, also where the clock is coarse.
        return {"h": where(lands, room, later - t[0]), "t_new": where(lands, goal, later)}

    def decide(control: Flat, t: Flat, t_new: Flat, h: Flat, err: Flat, span: Flat, *hit: Flat) -> dict[str, Any]:
        _, wanted, status, place, accepted, rejected, left, held = control
        running = (status <= RUNNING) & (left > 0.0)
        good = err[0] <= 1.0
        accept, reject = running & good, running & ~good
        hits = accept & (hit[0][0] > 0.0) if hit else False
        accept = accept & (hit[0][0] <= 0.0) if hit else accept
        size = where(err[0] > 1e-30, err[0], 1e-30)
        factor = 0.9 * exp(log(size) * exponent)
        grow = where(factor < 10.0, factor, 10.0)
        grow = where((held > 0.0) & (grow > 1.0), 1.0, grow)
        shrink = where((err[0] > 1.0) & (factor > 0.2), factor, 0.2)  # NaN fails the comparison and shrinks
        after_accept = h[0] * where(grow > 0.2, grow, 0.2)
        after_accept = where((h[0] < wanted) & (after_accept < wanted) & (grow >= 1.0), wanted, after_accept)
        next_h = where(accept, after_accept, where(reject, h[0] * shrink, wanted))
        next_h = where(hits, h[0], next_h)  # the step to look into
        ends = accept & (t_new[0] >= span[0])
        # Below this, time would stand still; NaN fails the comparison too.
        rounding = 4e-16 * abs(t[0])
        smallest = where(rounding > span[4], rounding, span[4])
        fails = (reject | (accept & ~ends)) & ~(next_h >= smallest)
        status = where(ends, DONE, status)
        status = where(hits, EVENT, status)
        status = where(fails, FAILED, status)
        next_t = where(accept, t_new[0], t[0])
        left = where(running, left - 1.0, left)
        control_new = [
            next_t,
            next_h,
            status,
            place,
            where(accept, accepted + 1.0, accepted),
            where(reject, rejected + 1.0, rejected),
            left,
            where(accept, 0.0, where(reject, 1.0, held)),
        ]
        return {"control_new": control_new, "accept": flag(accept)}

    def blend(
        control_new: Flat, accept: Flat, y: Flat, y_new: Flat, k0: Flat, k_next: Flat, place: Flat, *waits: Flat
    ) -> dict[str, Any]:
        yes = accept[0] > 0.0
        t, h, status, _, accepted, rejected, left, held = control_new
        if waits:
            status = where((waits[0][0] > 0.0) & (status <= RUNNING), WAITING, status)
        return {
            "control_next": [t, h, status, place[0], accepted, rejected, left, held],
            "y_next": [where(yes, a, b) for a, b in zip(y_new, y, strict=True)],
            "k0_next": [where(yes, a, b) for a, b in zip(k_next, k0, strict=True)],
            "t": t,
            "running": flag((status <= RUNNING) & (left > 0.0)),
        }

    nz, ny, one = m.nz, m.ny, 1
    stops = Stops(work, "span", len(SPAN), end=0, slack=SPAN.index("slack")) if m.stops else None
    stopping = {"stop": 1} if stops else {}
    arriving = stops.arriving("accept") if stops else ()
    body: list[Statement] = [
        *(Seek(curve.name, "t", "p", curve.offset) for curve in m.curves if m.passes(curve)),
        *work.call(program("trim", trim, {"t": 1, "control": nc, "span": len(SPAN), "next_time": 1, **stopping})),
        *step.advance,
        *step.judge,
    ]
    if events is not None:
        body += work.call(events, {"t": "t_new", "y": "y_new", "g": "g_new"})
        body += work.call(crossing(events))
    sizes = {"control": nc, "t": one, "t_new": one, "h": one, "err": one, "span": len(SPAN)}
    body += work.call(program("decide", decide, {**sizes, **({"hit": one} if events is not None else {})}))
    if stops and (every_step or clip):
        body += arriving
    if every_step:
        advance_place = program(
            "advance", lambda place, accept: {"place_next": place[0] + accept[0]}, {"place": 1, "accept": 1}
        )
        body.append(
            IfAny(
                "accept",
                (
                    Record("saved", "y_new", "place", "accept"),
                    Record("saved_t", "t_new", "place", "accept"),
                    *work.call(advance_place),
                    Copy("place_next", "place"),
                ),
            )
        )
    else:
        body += samples(work, step, clip, before_stops=stops is not None)
        if stops and not clip:
            body += arriving
    body += [
        *step.carry,
        *(from_stops(work, nz) if stops and step.carry else ()),
        *work.call(
            program(
                "blend",
                blend,
                {
                    "control_new": nc,
                    "accept": one,
                    "y": ny,
                    "y_new": ny,
                    "k0": nz,
                    "k_next": nz,
                    "place": one,
                    **({"waits": one} if waits_for_python(m) else {}),
                },
            )
        ),
        Copy("control_next", "control"),
        Copy("y_next", "y"),
        Copy("k0_next", "k0"),
        *(stops.next() if stops else ()),
    ]
    if events is not None:
        keep = program(
            "keep",
            lambda g, g_kept, accept: {
                "g_next": [where(accept[0] > 0.0, a, b) for a, b in zip(g_kept, g, strict=True)]
            },
            {"g": events.outputs[0].size, "g_kept": events.outputs[0].size, "accept": 1},
        )
        body += [*work.call(keep), Copy("g_next", "g")]
    keep_k0 = program(
        "keep_k0",
        lambda k0, k0_kept, fresh: {"k0_new": [where(fresh[0] > 0.0, a, b) for a, b in zip(k0, k0_kept, strict=True)]},
        {"k0": nz, "k0_kept": nz, "fresh": 1},
    )
    opening: list[Statement] = [
        *work.call(program("begin", begin, {"control": nc})),
        *(stops.opening() if stops else ()),
        IfAny("fresh", (Copy("k0", "k0_kept"), *step.begin, *work.call(keep_k0), Copy("k0_new", "k0"))),
    ]
    opening += first_step(work, step, nc)
    if events is not None:
        opening += work.call(events)
    if not every_step:
        opening.append(Lookup("times", "place", "next_time"))
    records = (("saved", ny), ("saved_t", 1)) if every_step else (("saved", ny),)
    return Routine(
        "adaptive_steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", tuple(body))),
        tables=() if every_step else ("times",),
        records=records,
        curves=work.curves,
    )


def from_stops(work: Work, nz: int) -> tuple[Statement, ...]:
    """After a stop the derivative is that of what acts from there on, not that of the last stage."""
    keep = program(
        "keep_k_next",
        lambda k_next, k_before, at_stop: {
            "k_after": [where(at_stop[0] > 0.0, a, b) for a, b in zip(k_next, k_before, strict=True)]
        },
        {"k_next": nz, "k_before": nz, "at_stop": 1},
    )
    there = work.rates_at("y_new", "t_new", "k_next")
    work.buffer("k_before", nz)
    inside = (Copy("k_next", "k_before"), *there, *work.call(keep), Copy("k_after", "k_next"))
    return (IfAny("at_stop", inside),)


def samples(work: Work, step: Step, clip: bool, before_stops: bool) -> list[Statement]:
    """Record the states at all output times inside the step just accepted.

    Where a step may end at a stop, the state at its very end is recorded as the start of the next step, after the stop.
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
    if clip:  # the step ends on the output time
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
