"""Events: functions of the state whose sign changes are found, to the last digit, while a simulation runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_choice, check_not_negative
from linkwise.contact.scene import kept_points
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.frozen import FrozenFunction
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.model.model import Model
from linkwise.sim.elements import Vector, identity, law, own_parameters
from linkwise.sim.limits import Limit
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.work import EvaluationRoutine, Traceable
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar
from linkwise.trace.calls import traced as program

_CANDIDATES = 16  # places inside a step that are tried side by side


@dataclass(frozen=True)
class Event:
    """A sign change to look for.

    A function that is zero at the start changes its sign when it leaves zero, and that is an event if the direction is
    right. Where an event has changed the motion (a bounce), leaving zero on the side that it came from is none.

    Args:
        function: ``(t, q, v) -> number``, traced into the kernel (so ``lw.math.where`` instead of ``if``); or
            ``(t, q, v, p)``, or ``(t, q, v, p, x)`` with the states of all elements in the order of ``Trajectory.x``.
        direction: 1 for changes from minus to plus, -1 for plus to minus, 0 for both.
        terminal: whether the simulation ends there.
        action: ``(t, q, v) -> (q, v)``, called in Python at the event with arrays (nq) and (nv); what it returns is
            where the simulation goes on (a bounce, a catch). The trajectory keeps both sides: one state that is sampled
            at every step has two samples at that time, before and after; a sample that was asked for at just that time
            is the one after.
        name: found again in ``Trajectory.events``.
        attach: closures that take hold there, by name; they must be closed at that place. Where the mechanism moves
            against them they catch it: the velocity changes by the least impulse (``Occurrence.impulses``), and energy
            is lost.
        release: closures that let go there. Nothing is compiled again for either.
        where: ``"closed"``, or ``"here"``: the closures take hold where their frames are, however far apart (so events
            should look at how far that is), and the impulse is that of their velocities alone, in the axes of frame b.
            Where that was is among ``Trajectory.x``.
        latch: s in which a closure that took hold ``"here"`` is drawn in, smoothly, until it is closed; 0: it stays.
    """

    function: Callable[..., Scalar]
    direction: int = 0
    terminal: bool = False
    action: Callable[..., tuple[ArrayLike, ArrayLike]] | None = None
    name: str = "event"
    attach: str | Sequence[str] = ()
    release: str | Sequence[str] = ()
    where: str = "closed"
    latch: float = 0.0

    def __post_init__(self) -> None:
        check_choice("where", self.where, ("closed", "here"))
        check_not_negative(latch=self.latch)
        if self.where != "here" and self.latch:
            raise InputError(
                f"the event {self.name!r} has nothing to draw in", got=f"latch={self.latch}", do='say where="here"'
            )
        for side in ("attach", "release"):
            given = getattr(self, side)
            object.__setattr__(self, side, (given,) if isinstance(given, str) else tuple(given))
        calls: tuple[tuple[str, object], ...] = (("function", self.function), ("action", self.action or self.function))
        for what, given in calls:
            if not callable(given):
                raise InputError(f"the {what} of the event {self.name!r} cannot be called", got=repr(given))
        if self.direction not in (-1, 0, 1):
            raise InputError(
                f"the event {self.name!r} has no such direction",
                got=repr(self.direction),
                allowed="1 (minus to plus), -1 (plus to minus), 0 (both)",
            )

    @property
    def signature(self) -> Hashable:
        """Events of equal signature are one event; a function counts by its formula, where that is known."""
        function = self.function if isinstance(self.function, FrozenFunction) else identity(self.function)
        facts = self.direction, self.terminal, self.name, self.attach, self.release, self.where, self.latch
        return (function, None if self.action is None else identity(self.action), *facts)

    def moved(self, t: float, q: Array, v: Array, p: Array) -> Iterable[ArrayLike]:
        """The state that the action leads to, for the run-time parameters p that are in force."""
        assert self.action is not None
        return self.action(t, q, v)

    @property
    def changes(self) -> bool:
        """Whether the motion goes on differently after it."""
        return self.action is not None or self.switches

    @property
    def switches(self) -> bool:
        """Whether closures take hold or let go."""
        return bool(self.attach or self.release)


class Occurrence(NamedTuple):
    """An event that happened.

    Its name, when (s), in which state of the batch (its index, () for one), where, and where its action led to (the
    same place if it has none). ``impulses`` (m) are those of the closures, in N s and N m s, where something changed at
    the event; None where nothing did.
    """

    name: str
    t: float
    state: tuple[int, ...]
    q: Array
    v: Array
    q_after: Array
    v_after: Array
    impulses: Array | None = None


def as_events(events: object) -> tuple[Event, ...]:
    """One event or function, or several of them."""
    if events is None:
        return ()
    if isinstance(events, Event):
        return (events,)
    if isinstance(events, (list, tuple)):
        return tuple(event for part in events for event in as_events(part))
    if callable(events):
        return (Event(events, name=getattr(events, "__name__", "event").strip("<>")),)
    raise InputError(
        "events holds something that is not an event",
        got=repr(events),
        allowed="lw.Event(function, ...) or a function (t, q, v, p) -> number, or a list of these",
    )


def limit_events(motion: EquationsOfMotion) -> tuple[Event, ...]:
    """Reaching a joint limit ends the simulation, and so does leaving it outwards; resting on it does not."""

    def reach(limit: Limit) -> Callable[..., Scalar]:
        return lambda t, q, v, p: limit.depth(q) - limit.rounding

    return tuple(Event(reach(limit), direction=1, terminal=True, name=limit.name) for limit in motion.limits)


def event_program(motion: EquationsOfMotion, events: Sequence[Event]) -> Traceable:
    """All event functions at once: (t, y, p) to their values g, and the directions that count."""

    def text(t: Flat, y: Flat, p: Flat) -> NamedNumbers:
        q, v, x = motion.parts(y)
        given = t[0], objects(q), objects(v), motion.given(p, x)
        values = [np.asarray(law(event.function, *given), dtype=object).reshape(-1)[0] for event in events]
        return {"g": values, "directions": [float(event.direction) for event in events]}

    return program("events", text, {"t": 1, "y": motion.ny, "p": motion.np})


def crossed(events: Sequence[Event], before: Array, after: Array) -> Array:
    """For each event, whether it happened between two sets of values (..., n), as truth values; as in the kernel."""
    direction = np.array([event.direction for event in events])
    up = (before <= 0.0) & (after >= 0.0) & (before < after) & (direction >= 0)
    down = (before >= 0.0) & (after <= 0.0) & (before > after) & (direction <= 0)
    return np.asarray(up | down)


class Locator:
    """Finds the first event inside one step by making shorter steps from its start, many side by side.

    In double precision, also for runs in single precision.
    """

    def __init__(self, step: EvaluationRoutine, values: EvaluationRoutine, events: Sequence[Event]) -> None:
        self.step, self.values, self.events = step, values, tuple(events)

    def now(self, t: float, y: Array, p: Array) -> Array:
        """The event functions at one state (n)."""
        return np.asarray(self.values({"t": np.array([[t]]), "y": y[None], "p": p[None]})["g"][0])

    def at(self, t: float, y: Array, p: Array, h: Array, tables: Mapping[str, Array]) -> tuple[Array, Array]:
        """States (n, ny) and event values (n, ·) after steps of sizes h (n); ``tables`` are the state's own."""
        y, p = (np.tile(each, (len(h), 1)) for each in (y, p))
        made = self.step({"y": y, "p": p, "t": np.full((len(h), 1), t), "h": h[:, None]}, tables)
        return made["y_new"], made["g_new"]

    def _seen(self, t: float, y: Array, p: Array, sides: Array) -> Array:
        """Sides (n); where none is known, what the functions are."""
        return sides if sides.all() else np.where(sides == 0.0, self.now(t, y, p), sides)

    def sides_after(self, t: float, y: Array, p: Array, sides: Array, which: list[int]) -> Array:
        """On which sides (n) the functions are at a place where some events have just happened: -1, 1, or 0."""
        before = np.sign(sides)
        found = np.sign(self._clear(self.now(t, y, p), before, t, y, p))
        before[which] *= -1.0
        return np.where(found == 0.0, before, found)

    def _clear(self, values: Array, before: Array, t: float, y: Array, p: Array) -> Array:
        """Values (..., n) of functions that have left zero: still zero while rounding of a state y may be all there is.

        That is known from the values around y, a few units in the last place away.
        """
        if before.all():
            return values
        sign = np.where(np.arange(len(y)) % 2, 1.0, -1.0)
        near = (self.now(t, y * (1.0 + 4.0 * np.finfo(float).eps * s), p) for s in (1.0, -1.0, sign, -sign))
        noise = 4.0 * np.max(np.abs(np.array(list(near)) - self.now(t, y, p)), axis=0)
        return np.where((before == 0.0) & (np.abs(values) <= noise), 0.0, values)

    def leaves(self, t: float, y: Array, p: Array, h: float, tables: Mapping[str, Array]) -> Array:
        """Whether the functions (n) grow, 1, or fall, -1, from here on; 0 where rounding does not tell.

        Their slopes, from two short steps: parts of a thousandth of a step h.
        """
        first, second = self.at(t, y, p, np.array([1e-3, 2e-3]) * h, tables)[1]
        slope = 4.0 * first - second - 3.0 * self.now(t, y, p)
        known = np.abs(slope) > 1e3 * np.finfo(float).eps * max(1.0, float(np.abs(y).max(initial=0.0)))
        return np.where(known, np.sign(slope), 0.0)

    def first(
        self, t: float, y: Array, p: Array, h: float, tables: Mapping[str, Array], sides: Array
    ) -> tuple[float, Array, list[int]] | None:
        """The first event in (t, t + h]: its step size, the state just after it, and which events; None if none.

        ``sides``: by their signs, the sides (n) that the functions were on last; 0 where nothing is known, and then
        what they are at t counts.
        """
        low, high = 0.0, h
        before = self._seen(t, y, p, sides)
        state, values = (a[0] for a in self.at(t, y, p, np.array([h]), tables))
        values = self._clear(values, before, t, y, p)
        if not crossed(self.events, before, values).any():
            return None
        resolution = 4.0 * np.finfo(float).eps * max(abs(t), abs(t + h), h)
        while high - low > resolution:
            tries = low + (high - low) * np.arange(1, _CANDIDATES + 1) / (_CANDIDATES + 1)
            states, found = self.at(t, y, p, tries, tables)
            found = self._clear(found, before, t, y, p)
            hits = crossed(self.events, before, found).any(axis=1)
            if hits.any():
                k = int(np.argmax(hits))
                high, state, values = float(tries[k]), states[k], found[k]
                low = float(tries[k - 1]) if k else low
            else:
                low = float(tries[-1])
        return high, state, [int(i) for i in np.flatnonzero(crossed(self.events, before, values))]


@dataclass(frozen=True)
class ImpactEvent(Event):
    """Two surfaces that meet; rigid contacts of a simulation with such events are left to them."""

    def moved(self, t: float, q: Array, v: Array, p: Array) -> Iterable[ArrayLike]:
        """Velocities after the impact."""
        assert self.action is not None
        return self.action(t, q, v, p)


def impacts(model: Model) -> tuple[ImpactEvent, ...]:
    """Events at which surfaces of a model meet, and part by the laws of their materials (:meth:`Model.impact`).

    For bodies that fly between impacts: what lies, rolls or slides would meet its ground without end, and the run ends
    as ``"zeno"`` where bounces have died away. ``method="moreau"`` goes on from there.

    >>> import linkwise as lw
    >>> b = lw.ModelBuilder("ball")
    >>> ball = lw.Geometry("sphere", (0.1,), None, (1, 1, 1), lw.transform(), "ball")
    >>> b.add_body("ball", joint=lw.Free(), mass=1.0, inertia=[[0.004, 0, 0], [0, 0.004, 0], [0, 0, 0.004]],
    ...            collisions=[ball])
    >>> model = b.build().with_contacts(lw.Ground(), material=lw.Material(restitution=0.8, threshold=0.0))
    >>> motion = lw.simulate(model, [1, 0, 0, 0, 0, 0, 1.1], duration=1.0, events=lw.impacts(model))
    >>> [f"{event.name} at {event.t:.6f} s" for event in motion.events]
    ['ball on ground at 0.451524 s']

    Args:
        model: with contacts.

    Returns:
        One event for each contact point.
    """
    if not isinstance(model, Model):
        raise InputError("impacts are those of a model", got=repr(model)[:80], allowed="a model with contacts")
    model._check_contacts("impacts")
    if kept_points(model) is not None:
        raise InputError(
            f"{model.name!r} has too many points for impacts as events",
            got=f"{len(model.contacts.pairs)} pairs of shapes, of which the nearest points are kept",
            do='only=[…] the bodies that touch, or method="moreau"',
        )

    def reach(k: int) -> Callable[..., Scalar]:
        def gap(t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
            points: Any = model._run("contact_points", q, p=own_parameters(model, p))
            return points.gap[k]

        return gap

    def leave(t: float, q: Array, v: Array, p: Array) -> tuple[Array, Array]:
        own = p[: len(model.parameters.nominal)] if model.parameters else None
        return q, np.asarray(model.contacts.impact(q, v, t=t if timed else None, p=own).v)

    timed = any(closure.type.time_dependent for closure in model.closures)
    return tuple(
        ImpactEvent(reach(k), direction=-1, action=leave, name=name) for k, name in enumerate(model.contacts.names)
    )
