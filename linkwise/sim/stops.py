"""Times at which steps end: the samples of controllers, and the times of tables.

What acts may jump there, and no integrator likes a jump inside a step. A step never passes a stop; when it has arrived
at one, the rows of tables are found anew, and held states change. What a stop shows is the side after it.

Times that differ by no more than ``slack``, a few units of rounding, are one.
"""

from __future__ import annotations

from typing import Any

from linkwise.sim.motion import Flat, Motion
from linkwise.sim.work import Span, Work, flag, program
from linkwise.spatial.scalar import Scalar, where
from linkwise.trace.program import Copy, IfAny, Seek, Statement


def next_stop(m: Motion, y: Flat, p: Flat, after: Scalar) -> Scalar:
    """The first stop after a time, of a state y that has settled there and of the rows in p that are in force."""
    _, _, x = m.parts(y)
    found = [curve.stop(p, within=not m.passes_smooth) for curve in m.curves]
    found += [element.next_sample(m.own_states(k, x)) for k, element in enumerate(m.elements) if element.nh]
    soonest: Scalar = _NEVER
    for due in found:
        soonest = where((due > after) & (due < soonest), due, soonest)
    return soonest


_NEVER = 1e300


def seeking(m: Motion, at: str) -> tuple[Statement, ...]:
    """The rows of all tables at a time, by the name of its buffer."""
    return tuple(Seek(curve.name, at, "p", curve.offset) for curve in m.curves)


def waits_for_python(m: Motion) -> bool:
    """Whether samples come back to Python."""
    return any(element.in_python for element in m.samplers)


def rows_from(work: Work, t: str) -> tuple[Statement, ...]:
    """The rows of all tables that are in force from a time on, by the name of its buffer."""
    moment = program("moment", lambda t, span: {"t_seek": t[0] + span[Span.SLACK]}, {"t": 1, "span": Span.SIZE})
    return (*work.call(moment, {"t": t}), *seeking(work.motion, "t_seek"))


class Stops:
    """The statements that a loop needs for its stops.

    Buffers: ``stop``, the next one; ``at_stop``, whether a step has just arrived there; ``waits``, whether Python must
    be asked; ``t_seek``.
    """

    def __init__(self, work: Work) -> None:
        self.work, self.motion = work, work.motion
        work.buffer("t_seek", 1)

    def opening(self) -> tuple[Statement, ...]:
        """Before the first step: rows, and the first stop."""
        return (*rows_from(self.work, "t"), *self.next())

    def next(self) -> tuple[Statement, ...]:
        """``stop`` from y, t and p."""
        m = self.motion

        def text(y: Flat, t: Flat, p: Flat, span: Flat) -> dict[str, Any]:
            return {"stop": next_stop(m, y, p, t[0] + span[Span.SLACK])}

        return self.work.call(program("next_stop", text, {"y": m.ny, "t": 1, "p": m.np, "span": Span.SIZE}))

    def arriving(self) -> tuple[Statement, ...]:
        """At the end of an accepted step from y, t to y_new, t_new: what is due there happens, in place."""
        m = self.motion

        def arrive(t: Flat, t_new: Flat, y: Flat, accept: Flat, stop: Flat, span: Flat) -> dict[str, Any]:
            end, slack = span[Span.END], span[Span.SLACK]
            here = (accept[0] > 0.0) & (stop[0] <= t_new[0] + slack)
            # Where a step did not arrive the rows stay, whatever the time it tried to reach.
            found = {"at_stop": flag(here), "t_seek": where(here, t_new[0], t[0]) + slack}
            if waits_for_python(m):
                _, _, x = m.parts(y)
                waits: Any = False
                for k, element in enumerate(m.elements):
                    if element.in_python and element.nh:
                        due = element.next_sample(m.own_states(k, x)) <= t_new[0] + slack
                        waits = due if waits is False else waits | due
                found["waits"] = flag(here & waits & (t_new[0] < end - slack))
            return found

        def settle(y: Flat, t: Flat, at_stop: Flat, span: Flat, p: Flat) -> dict[str, Any]:
            goes_on = (at_stop[0] > 0.0) & (t[0] < span[Span.END] - span[Span.SLACK])
            after = m.sampled(t[0], y, p, span[Span.SLACK], in_python=False)
            return {"y_settled": [where(goes_on, a, b) if a is not b else b for a, b in zip(after, y, strict=True)]}

        sizes = {"t": 1, "t_new": 1, "y_new": m.ny, "accept": 1, "stop": 1, "span": Span.SIZE}
        arrived = self.work.call(program("arrive", arrive, sizes))
        inside: list[Statement] = [*seeking(m, "t_seek")]
        if any(not element.in_python for element in m.samplers):
            sizes = {"y_new": m.ny, "t_new": 1, "at_stop": 1, "span": Span.SIZE, "p": m.np}
            inside += [*self.work.call(program("settle_stop", settle, sizes)), Copy("y_settled", "y_new")]
        return (*arrived, IfAny("at_stop", tuple(inside)))
