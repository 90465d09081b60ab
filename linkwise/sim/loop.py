"""The loop around a step, and a single step to look into.

Steps end at stops: the samples of controllers, and the times of tables. What acts may jump there, and no integrator
likes a jump inside a step. When a step has arrived at a stop, the rows of tables are found anew, and held states
change; what a stop shows is the side after it. Times that differ by no more than ``slack``, a few units of rounding,
are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.records import Records
from linkwise.sim.step_size import Given, StepSize, Text, goes_on
from linkwise.sim.work import RUNNING, WAITING, Clock, Span, StepStatements, Traceable, Work, crossing, flag, watching
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar, either, where
from linkwise.trace.calls import list_of
from linkwise.trace.calls import traced as program
from linkwise.trace.program import Copy, IfAny, Program, Seek, Statement, WhileAny


def next_stop(m: EquationsOfMotion, y: Flat, p: Flat, after: Scalar) -> Scalar:
    """The first stop after a time, of a state y that has settled there and of the rows in p that are in force."""
    _, _, x = m.parts(y)
    found = [curve.stop(p, within=not m.passes_smooth) for curve in m.curves]
    found += [element.next_sample(m.own_states(k, x)) for k, element in enumerate(m.elements) if element.nh]
    soonest: Scalar = _NEVER
    for due in found:
        soonest = where((due > after) & (due < soonest), due, soonest)
    return soonest


_NEVER = 1e300


def seeking(m: EquationsOfMotion) -> tuple[Statement, ...]:
    """The rows of all tables at the time in the buffer ``t_seek``."""
    return tuple(Seek(curve.name, "t_seek", "p", curve.offset) for curve in m.curves)


def waits_for_python(m: EquationsOfMotion) -> bool:
    """Whether samples come back to Python."""
    return any(element.in_python for element in m.samplers)


def rows_from(work: Work, t: str) -> tuple[Statement, ...]:
    """The rows of all tables that are in force from a time on, by the name of its buffer."""
    moment = program("moment", lambda t, span: {"t_seek": t[0] + span[Span.SLACK]}, {"t": 1, "span": Span.SIZE})
    return (*work.call(moment, {"t": t}), *seeking(work.motion))


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

        def text(y: Flat, t: Flat, p: Flat, span: Flat) -> NamedNumbers:
            return {"stop": next_stop(m, y, p, t[0] + span[Span.SLACK])}

        return self.work.call(program("next_stop", text, {"y": m.ny, "t": 1, "p": m.np, "span": Span.SIZE}))

    def arriving(self) -> tuple[Statement, ...]:
        """At the end of an accepted step from y, t to y_new, t_new: what is due there happens, in place."""
        m = self.motion

        def arrive(t: Flat, t_new: Flat, y: Flat, accept: Flat, stop: Flat, span: Flat) -> NamedNumbers:
            end, slack = span[Span.END], span[Span.SLACK]
            here = (accept[0] > 0.0) & (stop[0] <= t_new[0] + slack)
            # Where a step did not arrive the rows stay, whatever the time it tried to reach.
            found = {"at_stop": flag(here), "t_seek": where(here, t_new[0], t[0]) + slack}
            if waits_for_python(m):
                _, _, x = m.parts(y)
                waits: Scalar = False
                for k, element in enumerate(m.elements):
                    if element.in_python and element.nh:
                        due = element.next_sample(m.own_states(k, x)) <= t_new[0] + slack
                        waits = due if waits is False else waits | due
                found["waits"] = flag(here & waits & (t_new[0] < end - slack))
            return found

        def settle(y: Flat, t: Flat, at_stop: Flat, span: Flat, p: Flat) -> NamedNumbers:
            goes_on = (at_stop[0] > 0.0) & (t[0] < span[Span.END] - span[Span.SLACK])
            after = m.sampled(t[0], y, p, span[Span.SLACK], in_python=False)
            return {"y_settled": [where(goes_on, a, b) if a is not b else b for a, b in zip(after, y, strict=True)]}

        sizes = {"t": 1, "t_new": 1, "y_new": m.ny, "accept": 1, "stop": 1, "span": Span.SIZE}
        arrived = self.work.call(program("arrive", arrive, sizes))
        inside: list[Statement] = [*seeking(m)]
        if any(not element.in_python for element in m.samplers):
            sizes = {"y_new": m.ny, "t_new": 1, "at_stop": 1, "span": Span.SIZE, "p": m.np}
            inside += [*self.work.call(program("settle_stop", settle, sizes)), Copy("y_settled", "y_new")]
        return (*arrived, IfAny("at_stop", tuple(inside)))


def one_step(work: Work, step: StepStatements, events: Traceable) -> Program:
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


def loop(
    work: Work, step: StepStatements, sizes: type[StepSize], records: type[Records], events: Traceable | None = None
) -> Program:
    """Steps of some sizes, until each state has made as many as it may, is at the end, or something happened to it.

    Rows: y; p; clock and span, see :class:`Clock` and :class:`Span`; g, where there are events, see :func:`watching`;
    what else the step keeps: memory; and where steps are judged k0, the derivative at y, so that it does not matter to
    the last bit how many steps a call makes.
    """
    written = LoopWriter(work, step, sizes, records, events)
    opening = written.opening()
    one_pass = (*written.attempt(), *written.notice(), *written.go_on())
    return Program(
        "steps",
        tuple(work.buffers.values()),
        (*opening, WhileAny("running", one_pass)),
        tables=records.tables,
        records=records.rows(work.motion),
        curves=work.curves,
    )


class LoopWriter:
    """A loop while it is written. One pass attempts a step, notices events, decides, records, and goes on from there.

    Statements that a run does not need are left out, so that they cost it nothing.
    """

    def __init__(
        self, work: Work, step: StepStatements, sizes: type[StepSize], records: type[Records], events: Traceable | None
    ) -> None:
        m = self.motion = work.motion
        self.work, self.step, self.sizes, self.records, self.events = work, step, sizes, records, events
        work.buffer("p", m.np, load=True)
        work.buffer("clock", Clock.SIZE, load=True, store=True)
        work.buffer("span", Span.SIZE, load=True)
        self.kept = {"y": "y_new"}
        """Values kept from step to step, and what a step makes of them."""
        work.buffer("y", m.ny, load=True, store=True)
        if sizes.judges:
            self.kept["k0"] = "k_next"
            work.buffer("k0", m.nz, load=True, store=True)
        if step.memory:
            self.kept["memory"] = "memory_new"
            work.buffer("memory", step.memory, load=True, store=True)
        if events is not None:
            self.kept["g"] = "g_kept"
        self.stops = Stops(work) if m.stops else None
        self.clips = records.at_times and step.dense is None
        """Whether steps end on the output times, of a method without dense output."""

    def opening(self) -> list[Statement]:
        """Before the first step: where each state stands, what steps begin with, and what comes next."""
        begun = [*self.sizes.begin(self), *(self.stops.opening() if self.stops else ()), *self.sizes.choose(self)]
        if self.events is not None:
            begun += watching(self.work, self.events)
        return [*begun, *self.records.opening(self.work)]

    def attempt(self) -> list[Statement]:
        """A step of the size that is wanted, where nothing is in the way; where steps are judged, its error."""
        m, step, aim = self.motion, self.step, self.sizes.aim(self)
        if not self.sizes.judges:
            return [*aim, *step.begin, *step.advance]
        smooth = [Seek(curve.name, "t", "p", curve.offset) for curve in m.curves if m.passes(curve)]
        return [*smooth, *aim, *step.advance, *step.judge]

    def notice(self) -> list[Statement]:
        """Whether an event happened in the step."""
        if self.events is None:
            return []
        at_end = self.work.call(self.events, {"t": "t_new", "y": "y_new", "g": "g_new"})
        return [*at_end, *self.work.call(crossing(self.events))]

    def go_on(self) -> list[Statement]:
        """Decide, record, and go on from the end of an accepted step, from its start after one that was not."""
        inputs, decide = self.sizes.decide(self)
        mask, stops = self.records.mask, self.stops
        waits = ["waits"] if waits_for_python(self.motion) else []
        forgets = ["at_stop"] if stops and self.step.memory else []
        taken = [*self.kept, *self.kept.values(), *([] if mask else ["place"]), *waits, *forgets]

        def blend(given: Given) -> NamedNumbers:
            accepted = given["accept"][0] > 0.0
            clock, kept = list(given["clock_new"]), {old: given[new] for old, new in self.kept.items()}
            if forgets:  # what acts may have jumped
                first, *others = kept["memory"]
                kept["memory"] = [where(given["at_stop"][0] > 0.0, 0.0, first), *others]
            place = clock[Clock.PLACE]
            clock[Clock.PLACE] = place + given[mask][0] if mask else given["place"][0]
            if waits:
                due = (given["waits"][0] > 0.0) & (clock[Clock.STATUS] <= RUNNING)
                clock[Clock.STATUS] = where(due, WAITING, clock[Clock.STATUS])
            return {
                "clock_next": clock,
                **{f"{old}_next": either(accepted, new, given[old]) for old, new in kept.items()},
                **({"place": place} if mask else {}),
                "t": clock[Clock.T],
                "running": flag(goes_on(clock)),
            }

        def at_once(given: Given) -> NamedNumbers:
            decided = decide(given)
            after = blend({**given, **{name: list_of(value) for name, value in decided.items()}})
            return {**after, **{name: decided[name] for name in decided if name == mask}}

        if mask and not stops:  # nothing stands between the two: one block costs less
            settled = [*self._carried(), *self._named("go_on", at_once, [*inputs, *taken])]
        else:
            settled = [*self._named("decide", decide, inputs), *self._between(), *self._carried()]
            flags = dict.fromkeys(["clock_new", "accept", *([mask] if mask else [])])
            settled += self._named("go_on", blend, [*flags, *taken])
        return [
            *settled,
            *(Copy(f"{each}_next", each) for each in ("clock", *self.kept)),
            *(stops.next() if stops else ()),
            *self.records.behind(),
        ]

    def _between(self) -> list[Statement]:
        """Statements before a step goes on: at a stop, which comes before its end is looked at, and inside."""
        arriving, inside = self.stops.arriving() if self.stops else (), self.records.inside(self)
        return [*arriving, *inside] if self.clips else [*inside, *arriving]

    def _carried(self) -> list[Statement]:
        """The derivative at the end of a step, with which the next begins, where steps are judged."""
        if not self.sizes.judges:
            return []
        return [*self.step.carry, *([self._derivative_after_stop()] if self.stops and self.step.carry else [])]

    def _derivative_after_stop(self) -> Statement:
        """After a stop the derivative is that of what acts from there on, not that of the last stage."""
        there = self.work.rates_at("y_new", "t_new", "k_next")
        self.work.buffer("k_before", self.motion.nz)
        choose = self.call("keep_k_next", chosen("k_after"), "k_next", "k_before", "at_stop")
        return IfAny("at_stop", (Copy("k_next", "k_before"), *there, *choose, Copy("k_after", "k_next")))

    def derivative_at_start(self) -> Statement:
        """k0 at y, for states that do not bring it from the call before."""
        self.work.buffer("k0_kept", self.motion.nz)
        choose = self.call("keep_k0", chosen("k0_new"), "k0", "k0_kept", "fresh")
        return IfAny("fresh", (Copy("k0", "k0_kept"), *self.step.begin, *choose, Copy("k0_new", "k0")))

    def _named(self, name: str, text: Text, inputs: Sequence[str]) -> tuple[Statement, ...]:
        """A text of what has these names."""
        return self.call(name, lambda *rows: text(dict(zip(inputs, rows, strict=True))), *inputs)

    def call(self, name: str, text: Callable[..., NamedNumbers], *inputs: str) -> tuple[Statement, ...]:
        """A text, traced, on buffers of these names, which are known."""
        return self.work.call(program(name, text, {each: self.work.buffers[each].size for each in inputs}))


def chosen(name: str) -> Callable[..., NamedNumbers]:
    """(one, other, which) to the one where ``which`` is set, else the other, under a name."""
    return lambda one, other, which: {name: either(which[0] > 0.0, one, other)}
