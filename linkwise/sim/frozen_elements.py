"""Elements, controls and events as they are when a simulation begins.

A simulation is compiled from formulas. Functions of the user are traced at each call, which takes some tenths of a
millisecond; the formulas, not the functions, decide which compiled code is used. What a function reads may change
before the next call: other formulas, another simulation. Within one nothing changes, whenever its parts are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from linkwise.errors import InputError
from linkwise.functions.frozen import FrozenFunction, freeze, frozen_alike, is_of_the_user, name_of
from linkwise.memoized import Memory
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Field, Function, Vector, identity, law, states_in, takes_states, with_states
from linkwise.sim.events import Event
from linkwise.sim.tables import Table
from linkwise.spatial.scalar import Scalar

_KEPT = 64  # functions of each model that are known to have no effects

TRACEABLE = "functions of (t, q, v, p) with lw.math.where instead of `if` and lw.math.sin instead of math.sin"
_ADVICE = (
    "keep what changes in the state of lw.Controller(model, law, state=...); draw noise beforehand, "
    "lw.Torque(times, values) or lw.Table.noise(...); or call it once for each sample, "
    "lw.Sampled(model, control, rate, python=True)"
)


def _formula(name: str) -> Any:
    """Method of (t, q, v, x, p) as a formula says it; as :class:`Element` does where there is none."""
    unsaid = vars(Element)[name]

    def method(self: FrozenElement, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        formula = self.formulas.get(name)
        return unsaid(self, t, q, v, x, p) if formula is None else formula(t, q, v, x, p, states_in(p))

    return method


class FrozenElement(Element):
    """The formulas of an element; elements with the same formulas are compiled alike."""

    def __init__(self, element: Element, formulas: Mapping[str, FrozenFunction]) -> None:
        self.nx, self.nh, self.tables = element.nx, element.nh, element.tables
        self.in_python, self.is_actuator = element.in_python, element.is_actuator
        own = type(element).__repr__ is not Element.__repr__  # which may tell more than the formulas depend on
        self.start, self.name = tuple(element.initial()), name_of(element) if own else type(element).__name__
        self.names = tuple(element.state_names)
        self.formulas, self.own_gains = dict(formulas), element.implicit_gains()
        self.asked = element if element.in_python else None

    @classmethod
    def of(cls, element: Element, model: Model, n_parameters: int, n_states: int) -> FrozenElement:
        """An element with all that it says traced; ``n_states``: of all elements."""
        states = element.nx + element.nh
        sizes = _sizes(model, n_parameters, states + sum(table.size for table in element.tables))
        sizes["states"] = n_states
        sizes_of = {"force": sizes, "wrench": sizes, "closure_force": sizes, "clipped": sizes, "parameters": sizes}
        sizes_of["energy"] = {"q": model.nq, "x": states, "p": n_parameters}
        if element.nx:
            sizes_of["rate"] = sizes
        if element.nh:
            sizes_of["next_sample"] = {"x": states}
            if not element.in_python:
                sizes_of["sample"] = sizes
        sizes_of["acceleration"] = sizes | {"point": 3}
        sizes_of["potential"] = sizes_of["energy"] | {"point": 3}
        texts = {name: getattr(element, name) for name in sizes_of}  # of its class, or given to it alone
        said = [name for name, text in texts.items() if getattr(text, "__func__", None) is not vars(Element)[name]]
        texts |= {name: _at_point(texts[name]) for name in ("acceleration", "potential")}
        texts |= {name: _knowing_all(text) for name, text in texts.items() if "states" in sizes_of[name]}
        return cls(element, {name: freeze(texts[name], sizes_of[name]) for name in said})

    @property
    def signature(self) -> Hashable:
        """The formulas, and what else is compiled."""
        tables = tuple((table.size, table.degree, table.is_smooth) for table in self.tables)
        asked = None if self.asked is None else identity(self.asked)
        gains = None if self.own_gains is None else tuple(map(tuple, self.own_gains))
        told = self.nx, self.nh, self.is_actuator, self.in_python, tables, asked, self.names, gains
        return (*self.formulas.items(), *told)

    @property
    def state_names(self) -> tuple[str, ...]:
        """As they were."""
        return self.names

    def __repr__(self) -> str:
        return self.name

    def initial(self) -> Sequence[float]:
        """As it was."""
        return self.start

    def implicit_gains(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """As they were."""
        return self.own_gains

    def next_sample(self, x: Vector) -> Scalar:
        """By its formula."""
        return self.formulas["next_sample"](x) if "next_sample" in self.formulas else super().next_sample(x)

    def sample(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """By its formula; by Python, if that is what it does."""
        return _formula("sample")(self, t, q, v, x, p) if self.asked is None else self.asked.sample(t, q, v, x, p)

    force, wrench, closure_force = _formula("force"), _formula("wrench"), _formula("closure_force")
    parameters, clipped, rate = _formula("parameters"), _formula("clipped"), _formula("rate")

    def acceleration(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Field | None:
        """By its formula, as a function of a point or as what is linear."""
        found: Field | None = self._field("acceleration", t, q, v, x, p, states_in(p))
        return found

    def potential(self, q: Vector, x: Vector, p: Vector) -> Callable[[Vector], Scalar] | None:
        """By its formula, as a function of a point."""
        found: Callable[[Vector], Scalar] | None = self._field("potential", q, x, p)
        return found

    def _field(self, name: str, *given: Vector) -> Any:
        formula = self.formulas.get(name)
        if formula is None or formula.structure is None:
            return None
        if isinstance(formula.structure, list) and len(formula.structure) == 2:  # linear, and so asked for no point
            return tuple(formula(*given, [0.0, 0.0, 0.0]))
        return lambda point: formula(*given, point)

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """By its formula."""
        return self.formulas["energy"](q, x, p) if "energy" in self.formulas else 0.0


def _knowing_all(text: Callable[..., Vector]) -> Callable[..., Vector]:
    """A method of (t, q, v, x, p), and of a point, as a function that takes the states of all elements after p."""

    def knowing(t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector, states: Vector, *point: Vector) -> Vector:
        return text(t, q, v, x, with_states(p, states), *point)

    return knowing


def _at_point(text: Callable[..., Vector]) -> Callable[..., Vector]:
    """A method that may give a function of a point, as a function that takes the point last."""

    def at(*arguments: Vector) -> Vector:
        *given, point = arguments
        found = text(*given)
        return found(point) if callable(found) else found

    return at


def frozen_element(element: Element, model: Model, n_parameters: int, n_states: int) -> Element:
    """The element with its formulas, if a function of the user's has a part in them; else itself.

    A control that cannot be traced stays a :class:`Function`, which then knows why.
    """
    if isinstance(element, FrozenElement) or not _asks_the_user(element):
        return element
    if not isinstance(element, Function):
        return FrozenElement.of(element, model, n_parameters, n_states)
    sizes = _sizes(model, n_parameters, 0) | {"states": n_states}
    text = _knowing_all(element.force)
    formula, reason = _without_effects(text, element.function, repr(element), model, sizes)
    if formula is None or formula.structure is None:
        return Function(element.function, reason or "it returns None")
    return FrozenElement(element, {"force": formula})


def frozen_event(event: Event, model: Model, n_parameters: int, n_states: int) -> Event:
    """The event with the formula of its function. Its action is called in Python, and stays as it is."""
    if isinstance(event.function, FrozenFunction):
        return event
    sizes = _sizes(model, n_parameters) | ({"states": n_states} if takes_states(event.function) else {})

    def text(t: Scalar, q: Vector, v: Vector, p: Vector, states: Vector = ()) -> Vector:
        return law(event.function, t, q, v, with_states(p, states) if len(states) else p)

    formula, reason = _without_effects(text, event.function, f"the event {event.name!r}", model, sizes)
    count = 0 if formula is None else len(formula.program.results[0])
    if formula is None or count != 1:
        raise InputError(
            f"the event {event.name!r} cannot be compiled",
            got=reason or f"it returns {count} numbers, not one",
            allowed="a function of (t, q, v, p) that does not branch on values",
            do="use lw.math.where, lw.math.sin and NumPy arithmetic instead of `if` and math.*",
        )
    return replace(event, function=formula)


def _sizes(model: Model, n_parameters: int, states: int | None = None) -> dict[str, int | None]:
    """Of the arguments (t, q, v, x, p); without x where an event or a function has none."""
    own = {} if states is None else {"x": states}
    return {"t": None, "q": model.nq, "v": model.nv, **own, "p": n_parameters}


def _without_effects(
    text: Callable[..., Vector],
    function: Callable[..., Vector],
    what: str,
    model: Model,
    sizes: Mapping[str, int | None],
) -> tuple[FrozenFunction | None, str]:
    """The formulas of a function, or why there are none; one that does more than compute is refused.

    That is looked for once, as long as the same function gives the same formulas.
    """
    known: _Known = Memory.of(model).recent("known functions", identity(function), lambda: _Known(function), _KEPT)
    formula, reason = frozen_alike(text, what, sizes, _ADVICE, function, known.formulas)
    if formula is not None:
        known.formulas = {formula}
    return formula, reason


class _Known:
    """A function, and the formulas that it had when it was last found to have no effects."""

    def __init__(self, function: Callable[..., Vector]) -> None:
        self.function = function  # kept, so that no other takes its identity
        self.formulas: set[FrozenFunction] = set()


def _asks_the_user(element: Element) -> bool:
    """Whether a function or a class of the user's has a part in what an element says.

    Tables can be called too; where an element's signature says what it is compiled from, they are numbers.
    """
    values = vars(element)
    if type(element).signature is not Element.signature:
        values = {name: value for name, value in values.items() if name != "tables" and not isinstance(value, Table)}
    return is_of_the_user(type(element)) or any(_is_function(value, element) for value in values.values())


def _is_function(value: object, element: Element) -> bool:
    """Whether this is a function that the user gave, or holds one; an element's own methods are none."""
    if isinstance(value, tuple):
        return any(_is_function(each, element) for each in value)
    if isinstance(value, Mapping):
        return any(_is_function(each, element) for each in value.values())
    return callable(value) and getattr(value, "__self__", None) is not element
