"""Happenings in a run: events, their actions, and the sides of event functions that are remembered."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.closed_states import Capture, ClosedStates, offset_between
from linkwise.sim.events import Event, Occurrence
from linkwise.sim.plans import SimulationPlan
from linkwise.sim.states import States
from linkwise.sim.tables import RunTables

_INSTANT = 1e-14  # of the time: events no farther apart happen at once
_IDLE = 32  # events in a row that let no time pass: there will be no end of them


class Jump(NamedTuple):
    """A state of the batch at an event that moved it or ended its run: when, and both sides (ny)."""

    state: int
    t: float
    before: Array
    after: Array


class Zeno(NamedTuple):
    """Events that happen ever faster, until no time passes between them: which, when, and how often there were."""

    name: str
    t: float
    times: int


@dataclass(eq=False)
class Happenings:
    """Events of a run, found inside steps and carried out; all of it on the host."""

    plan: SimulationPlan
    states: States
    curves: RunTables
    slack: float = 0.0
    """Times that differ by no more are one."""
    events: list[Occurrence] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)
    zeno: dict[int, Zeno] = field(default_factory=dict)
    """States that were ended by events without end."""
    _last: dict[int, tuple[float, int]] = field(default_factory=dict)
    """Time of an event's last happening, and the number of those in a row that let no time pass."""

    @cached_property
    def g(self) -> Array:
        """By their signs, the sides on which the event functions were last, see :func:`linkwise.sim.work.watching`."""
        return np.zeros((self.states.count, len(self.plan.events)), self.states.dtype)

    def parameters_at(self, k: int, t: float) -> Array:
        """p of one state (np) with the rows of tables that are in force from t on."""
        return np.asarray(self.curves.filled(self.states.p[k : k + 1], np.array([t + self.slack]), np.array([k]))[0])

    def inside(self, k: int, t: float, y: Array, sizes: Array) -> Array:
        """One state (n, ny) after steps of some sizes (n) from t, y."""
        return self.plan.locator.at(t, y, self.parameters_at(k, t), sizes, self.curves.of(k))[0]

    def first(self, k: int, t: float, y: Array, h: float) -> tuple[float, Array, list[int]]:
        """The first events in a step h of one state: after which part of it, the state there, and which.

        The whole step and none where a sign changed twice, or only by rounding: that is passed over.
        """
        sides = np.asarray(self.g[k], float)
        found = self.plan.locator.first(t, y, self.parameters_at(k, t), h, self.curves.of(k), sides)
        return (h, self.inside(k, t, y, np.array([h]))[0], []) if found is None else found

    def happen(self, state: int, t: float, y: Array, which: list[int], h: float) -> tuple[Array, bool]:
        """Note events that were found in a step h, run their actions; where it goes on, and whether this is the end.

        None at all where a sign changed twice in the step, or only by rounding.
        """
        m = self.plan.motion
        events = [event for event in (self.plan.events[k] for k in which) if not self._holds_already(event, y)]
        index = tuple(int(i) for i in np.unravel_index(state, self.states.shape)) if self.states.shape else ()
        after, found = y.copy(), []
        for event in events:
            q, v = after[: m.nq].copy(), after[m.nq : m.nq + m.nv].copy()
            if event.action is not None:
                moved = event.moved(float(t), q.copy(), v.copy(), self.parameters_at(state, t))
                after[: m.nq + m.nv] = _after(event, moved, m.model)
            impulses = self._closed(event, state, t, after) if event.changes and m.model.closures else None
            later = after[: m.nq].copy(), after[m.nq : m.nq + m.nv].copy()
            found.append(Occurrence(event.name, float(t), index, q, v, *later, impulses))
        changes = any(event.changes for event in events)
        self.g[state] = self._sides_after(state, t, y, after if changes else None, which, h)
        self.events += found
        final = any(event.terminal for event in events) or self._has_no_end(state, t, h, found)
        if final or changes:
            self.jumps.append(Jump(state, float(t), y.copy(), after.copy()))
        return after, final

    def _sides_after(self, state: int, t: float, y: Array, after: Array | None, which: list[int], h: float) -> Array:
        """The sides on which event functions are to be seen from a place on where some events have just happened.

        Where events have changed the motion the place may still lie on the surface that was reached, or by rounding
        beyond it. Then the result of the action says which side counts: where it leads on through the surface, that is
        done; where it leads back, or nowhere, the surface is still to be passed, and that will be an event again.
        """
        locator, p = self.plan.locator, self.parameters_at(state, t)
        passed = locator.sides_after(t, y, p, np.asarray(self.g[state], float), which)
        if after is None:
            return passed
        before, values = locator.now(t, y, p), locator.now(t, after, p)
        sides = np.where(values == before, passed, np.sign(values))
        reached = np.abs(values) <= np.abs(before)
        on_surface = [k for k in which if reached[k] and sides[k] * passed[k] >= 0.0]
        if on_surface:
            leaves = locator.leaves(t, after, p, h, self.curves.of(state))
            sides[on_surface] = np.where(leaves == passed, passed, -passed)[on_surface]
        return sides

    def _has_no_end(self, state: int, t: float, h: float, found: list[Occurrence]) -> bool:
        """Whether events in a state follow each other without time passing, again and again."""
        if not found:
            return False
        last, idle = self._last.get(state, (-math.inf, 0))
        idle = idle + 1 if t - last <= _INSTANT * max(abs(t), h) else 0
        self._last[state] = (t, idle)
        if idle <= max(_IDLE, len(self.plan.events)):
            return False
        name, index = found[-1].name, found[-1].state
        times = sum(event.name == name and event.state == index for event in self.events)
        self.zeno[state] = Zeno(name, float(t), times)
        return True

    def _holds_already(self, event: Event, y: Array) -> bool:
        """Whether an event would change nothing: closed equations cross zero again and again."""
        m = self.plan.motion
        if not event.switches or event.action is not None or event.terminal:
            return False
        names = [closure.name for closure in m.model.closures]
        flags = y[m.ny - m.switches :]
        wanted = [(name, 1.0) for name in event.attach] + [(name, 0.0) for name in event.release]
        return all(flags[names.index(name)] == value for name, value in wanted)

    def _capture(self, event: Event, name: str, state: int, t: float, y: Array) -> None:
        """Keep in y where a closure takes hold, if it can do so anywhere."""
        m = self.plan.motion
        for k, element in enumerate(m.elements):
            if isinstance(element, Capture) and element.closure == name:
                place = m.places(k)[1]
                there = np.zeros(6)
                if event.where == "here":
                    at = m.in_force(m.at(t, y.tolist(), self.states.p[state].tolist()))
                    there = offset_between(m.model, name, at.q, list(m.model_parameters(at.p)))
                start = m.nq + m.nv
                y[start + place.start : start + place.stop] = [*there, t]

    def _closed(self, event: Event, state: int, t: float, y: Array) -> Array | None:
        """Let closures take hold and let go, and put the state y (in place) where it obeys them; their impulses."""
        m = self.plan.motion
        if event.switches:
            flags = y[m.ny - m.switches :]
            names = [closure.name for closure in m.model.closures]
            for name in event.attach:
                flags[names.index(name)] = 1.0
                self._capture(event, name, state, t, y)
            for name in event.release:
                flags[names.index(name)] = 0.0
        if not m.projects and not event.attach:
            return None
        states = ClosedStates(m, np.array([t]), y[None], self.states.p[state : state + 1])
        states.close(f"let the event {event.name!r} happen, or its action lead, where the closure is closed")
        impulses = states.obey()
        y[: m.nq], y[m.nq : m.nq + m.nv] = states.q[0], states.v[0]
        return np.asarray(impulses[0])


def _after(event: Event, result: Iterable[ArrayLike], model: Model) -> Array:
    """State that an event's action returned, as [q, v] with quaternions of length one."""
    try:
        q, v = (np.asarray(part, float) for part in result)
        fits = q.shape == (model.nq,) and v.shape == (model.nv,)
        got = f"shapes {q.shape} and {v.shape}"
    except (TypeError, ValueError):
        fits, got = False, repr(result)[:80]
    if not fits:
        raise InputError(
            f"the action of the event {event.name!r} returned something other than (q, v)",
            got=got,
            allowed=f"q ({model.nq},) and v ({model.nv},)",
        )
    return np.concatenate([model.integrate(q, np.zeros(model.nv)), v])
