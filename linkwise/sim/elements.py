"""Elements, which act on a mechanism besides gravity: the interface of actuators, springs and thrusters.

An element says, over any scalar, which joint forces and which forces on bodies it exerts, how its own states change and
which energy it stores. Elements are traced into the simulation's kernel, so the rules of compiled functions hold: no
``if`` on values (``lw.math.where`` instead), no ``math`` (``lw.math.sin`` and the like), no randomness inside.

Targets that elements follow are numbers, functions of time, or tables.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Callable, Hashable, Sequence
from types import MappingProxyType, MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.kinematics import Reference
from linkwise.array_types import Array
from linkwise.errors import FrozenElementError, InputError
from linkwise.functions.scalar_arrays import ScalarArray
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.model.model import Model
from linkwise.sim.tables import Table
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, NamedNumbers, Scalar
from linkwise.spatial.vectors import Vec


class WithStates(ScalarArray):
    """Parameters of a run, with the states of all elements."""

    states: Array | None = None


class NumbersWithStates(np.ndarray):
    """The same, of numbers."""

    states: Array | None = None


def with_states(p: Array, states: Array) -> Array:
    """Parameters that know the states of all elements."""
    made = p.view(WithStates) if p.dtype == object else p.view(NumbersWithStates)
    made.states = states
    return made


def states_in(p: Flat | Array) -> Array:
    """The states of all elements; none where they are not known."""
    found: Array | None = getattr(p, "states", None)
    return np.empty(0) if found is None else found


def takes_states(function: Callable[..., object]) -> bool:
    """Whether a function of (t, q, v, p) asks for the states of all elements as a fifth argument."""
    return _number_taken(function) == 5


Vector = Any  # an array of scalars of any kind, or a sequence of them

FrameKey = str | tuple[str, str | int]
"""Name of a body or frame; or those of a flexible body and of a node of it."""

Wrenches = dict[Any, Vector]
"""[moment, force] (6), N m and N, by the frames that they act at: see :data:`FrameKey`."""

Field = Flat | Callable[[Vector], Flat]
"""Acceleration (3), m/s² in world axes; it and its gradient (3, 3); or a function of a point (3) that gives it."""


def law(function: Callable[..., Vector], t: Scalar, q: Vector, v: Vector, p: Vector) -> Vector:
    """Value of a function of the user: of (t, q, v), of (t, q, v, p), or of (t, q, v, p, x)."""
    taken = _number_taken(function)
    return function(*(t, q, v, p)[:taken]) if taken < 5 else function(t, q, v, p, states_in(p))


def _number_taken(function: Callable[..., object]) -> int:
    """Number of (t, q, v, p, x) that a function takes: four, if it does not say that it needs one more or one less."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return 4
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = [each for each in places if each.default is each.empty]
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return 4
    return 5 if len(required) == 5 else min(len(places), 4)


class _Finished(ABCMeta):
    """Elements are frozen when they have been made, whatever class they are of."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        made = super().__call__(*args, **keywords)
        made.__setstate__(vars(made))
        return made


class Element(metaclass=_Finished):
    """One thing that acts. Subclasses override what applies to them; all methods are pure functions.

    Frozen once it is made, since kernels are compiled from it: attributes cannot be set after ``__init__``, arrays in
    them become copies that cannot be written to, lists become tuples.

    Arguments, everywhere: ``t`` time in s, ``q`` (nq), ``v`` (nv), ``x`` the element's own states, ``p`` the run-time
    parameters that ``simulate`` was given. In ``x`` come first the nx states that flow, then the nh that are held
    between samples, then the values at the time t of the element's ``tables``, one behind the other.
    """

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_if_finished(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_if_finished(name)
        super().__delattr__(name)

    def _refuse_if_finished(self, name: str) -> None:
        if "_finished" in self.__dict__:
            raise FrozenElementError(
                f"{type(self).__name__} is frozen: simulations are compiled from it",
                got=f"a new value for {name!r}",
                do=f"make a new one: lw.{type(self).__name__}(...); or read what changes from p",
            )

    def __getstate__(self) -> dict[str, object]:
        """For pickle and copies."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update({name: _frozen(value) for name, value in state.items()}, _finished=True)

    def __repr__(self) -> str:
        """Its constants in one line; functions by their names."""
        said = [f"{name} = {text}" for name, value in vars(self).items() if (text := _shown(name, value))]
        model = getattr(vars(self).get("model"), "name", None)
        of = "" if model is None else f" for {model!r}"
        line = f"<{type(self).__name__}{of}{': ' if said else ''}{', '.join(said)}"
        return f"{line if len(line) < _LONGEST else line[: _LONGEST - 2] + ' …'}>"

    nx: int = 0
    """Numbers in the element's own state that flow, with a rate."""
    nh: int = 0
    """Numbers in the element's own state that change at samples only, and are held in between."""
    tables: tuple[Table, ...] = ()
    """Values given over time, which the kernel looks up."""
    in_python: bool = False
    """Whether samples call Python: steps are compiled, and the run comes back to Python at each sample."""
    is_actuator: bool = True
    """Whether the model's effort limits hold for its joint forces; not for springs and other passive parts."""

    changes_closures: bool = False
    """Whether its ``parameters`` may name closures; they then stay the same within a step."""

    def fitted(self, model: Model) -> Model:
        """The model that it acts on, changed where it needs that."""
        return model

    @property
    def cause(self) -> str:
        """Its name in ``Trajectory.forces``: ``"control"``, ``"external"``, or ``"springs"`` with their dampers."""
        return "control" if self.is_actuator else "external"

    def initial(self) -> Sequence[float]:
        """The own states at the start, nx + nh numbers."""
        return [0.0] * (self.nx + self.nh)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the own states, nx + nh of them: heads of columns, and labels of plots."""
        return tuple(f"{type(self).__name__}[{k}]" for k in range(self.nx + self.nh))

    @property
    def signature(self) -> Hashable:
        """Elements of equal signature are compiled alike: only the numbers in their tables differ."""
        return self

    def next_sample(self, x: Vector) -> Scalar:
        """Next time at which held states change, s; a step ends there. At the start, earlier ones are due at once."""
        return np.inf

    def sample(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The held states from a sample on, nh numbers; asked for when it is due."""
        return list(x[self.nx : self.nx + self.nh])

    def implicit_gains(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Stiffness and damping (nv each) that its joint forces have, for steps that take them implicitly; or None."""
        return None

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector | None:
        """Joint forces (nv) in N m or N; None for none."""
        return None

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches | None:
        """For each place [moment, force] (6) at its origin and in its own axes; None for none.

        A place is the name of a body or frame, or (body, node) for a node of a flexible body. Modes are moved by what
        acts at nodes: the origin of a flexible body is its root, and a wrench there, as the sum of a field of forces
        over the body would be, reaches none.
        """
        return None

    def acceleration(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Field | None:
        """A field of acceleration that acts on all mass, besides the model's gravity; None for none.

        Either 3 numbers, m/s² in world axes, for a field that is the same everywhere (a base that is shaken by a(t) is
        the field -a(t)), or a function of a point (3), m in world axes, that gives them. The function is asked for the
        field at each body's mass centre, and dual numbers give its gradient there: forces, moments and, of flexible
        bodies, the forces on modes follow from the bodies' mass integrals. Exact for fields that are linear in the
        place; of others, what is dropped is of the order (size of a body / size of the field)².

        Or two things, 3 numbers g and a matrix G (3, 3): the field g + G r at r, linear everywhere. A field that takes
        long is better given so, evaluated once, at a point c of the mechanism: ``return f - G @ c, G``.
        """
        return None

    def parameters(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> NamedNumbers | None:
        """Constants of the model that change during the run, by name, as ``{"tank.mass": m}``; None for none.

        Names and sizes as in ``model.with_parameters``, which the model need not have been given: masses, mass centres,
        inertias, placements, armatures, gravity; not closures. The names are the same at all times. Other elements and
        sensors, which have a model of their own, see its nominal constants.

        At each time the mechanism moves as the rigid one with the constants of that time: mass that leaves takes along
        the momentum that it has at its place, and the speed at which a placement changes counts for nothing. What
        flows, say from a tank to a nozzle, exerts forces besides: the thrust, and those of
        :func:`linkwise.sim.varying.flow_wrench` (jet damping).
        """
        return None

    def trouble(self, t: float, q: Vector, v: Vector, x: Vector, p: Vector) -> str:
        """Why forces, fields or rates are not numbers in a state of numbers, for people; empty where it is not known.

        Asked when a run has ended because of it: a table that was left, a place where a field has no value.
        """
        return ""

    def potential(self, q: Vector, x: Vector, p: Vector) -> Callable[[Vector], Scalar] | None:
        """Function of a point (3), m in world axes, that gives the potential U of its field there, J/kg; None for none.

        Its integral over all mass, to second order in the bodies' sizes, counts in ``Trajectory.energy``.
        """
        return None

    def closure_force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Vector] | None:
        """For each closure, by name, forces in N m or N along the freedoms that its joint leaves; None for none."""
        return None

    def clipped(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Scalar] | None:
        """By the names of actuators, 1 where a limit of their own holds one back, else 0; None where none has any."""
        return None

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Rates of the own states, nx numbers."""
        return [0.0] * self.nx

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """Energy stored in the element in J; counted in ``Trajectory.energy``."""
        return 0.0


class Function(Element):
    """A plain ``control(t, q, v)`` that returns joint forces (nv); or of (t, q, v, p), or (t, q, v, p, x), all states.

    ``why_hosted``: why it runs in Python, where it cannot be traced.
    """

    def __init__(self, function: Callable[..., Vector], why_hosted: str = "") -> None:
        self.function, self.why_hosted = function, why_hosted

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Value of the function."""
        return law(self.function, t, q, v, p)

    @property
    def signature(self) -> Hashable:
        """The function itself; its own idea of being equal to another does not count."""
        return identity(self.function)

    def __repr__(self) -> str:
        return f"the control {getattr(self.function, '__name__', repr(self.function))}"


_LONGEST = 160


def _shown(name: str, value: object) -> str:
    """An attribute in a few characters; empty where it does not help."""
    if name.startswith("_") or name in ("tables", "nx", "nh") or value is None:
        return ""
    if isinstance(value, (bool, int, float, str)):
        return f"{value:.6g}" if isinstance(value, float) else repr(value)
    if isinstance(value, Table):
        return repr(value)
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    try:
        numbers = np.array(value, float).reshape(-1)
    except (TypeError, ValueError):
        return ""
    if not numbers.size:
        return ""
    if (numbers == numbers[0]).all():
        return f"{numbers[0]:.6g}"
    if numbers.size <= 8:
        return "(" + ", ".join(f"{each:.4g}" for each in numbers) + ")"
    return f"{numbers.size} numbers, {numbers.min():.4g} … {numbers.max():.4g}"


def identity(function: object) -> Hashable:
    """Key of a function as long as it is kept: of a method, the object and the function of its class."""
    if isinstance(function, MethodType):
        return id(function.__func__), id(function.__self__)
    return id(function)


def _frozen(value: Any) -> Any:
    """The same where it cannot be changed: copies of arrays, tuples instead of lists, and so on inside."""
    if isinstance(value, np.ndarray):
        array = value.copy()
        array.flags.writeable = False
        return array
    if type(value) in (list, tuple):
        return tuple(map(_frozen, value))
    if type(value) in (dict, MappingProxyType):
        return MappingProxyType({key: _frozen(each) for key, each in value.items()})
    return frozenset(value) if type(value) is set else value


def _plain(value: Any) -> Any:
    """Value that :func:`_frozen` made, as pickle takes it."""
    if type(value) is tuple:
        return tuple(map(_plain, value))
    return {key: _plain(each) for key, each in value.items()} if type(value) is MappingProxyType else value


def as_elements(control: object) -> tuple[Element, ...]:
    """None, one element or function, or several of them, as elements."""
    if control is None:
        return ()
    if isinstance(control, Element):
        return (control,)
    if isinstance(control, (list, tuple)):
        return tuple(element for part in control for element in as_elements(part))
    if callable(control):
        _check_call(control)
        return (Function(control),)
    raise InputError(
        "control is neither a function nor an element",
        got=repr(control),
        allowed="a function (t, q, v, p) -> tau, an element such as lw.PD(...), or a list of these",
    )


def state_names(elements: Sequence[Element]) -> list[str]:
    """Names of the own states of elements, in their order: first those that flow, then those that are held."""
    named = [(element.nx, element.state_names) for element in elements]
    return [name for nx, names in named for name in names[:nx]] + [name for nx, names in named for name in names[nx:]]


def _check_call(function: Callable[..., object]) -> None:
    """Found out before it is traced, where the message would be lost."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have none
        return
    try:
        signature.bind(*((0.0, (), (), (), ())[: max(_number_taken(function), 3)]))
    except TypeError as error:
        raise InputError(
            f"{getattr(function, '__name__', repr(function))} cannot be called as a control",
            got=f"{signature}: {error}",
            allowed="control(t, q, v) or control(t, q, v, p) -> joint forces (nv), with parameters p, or "
            "control(t, q, v, p, x), with the states of elements",
        ) from None


def driven(model: Model) -> Array:
    """Of each freedom (nv) 1, or 0 where it is of a body that moves freely, as a robot's base, beside joints."""
    free = [joint.type.flies and body.parent < 0 for joint, body in zip(model.joints, model.bodies, strict=True)]
    moved = np.ones(model.nv)
    for joint, is_free in zip(model.joints, free, strict=True):
        moved[joint.v_slice] = not is_free or all(free)
    return moved


def per_joint(model: Model, values: ArrayLike, what: str) -> Array:
    """One finite number for each freedom, from one for each, or one for all those that are :func:`driven`."""
    given = checked_numbers(values, model.nv, what, one_for_all=True)
    return given * driven(model) if np.ndim(values) == 0 else given


def gain(model: Model, value: Target, what: str) -> Target:
    """Gains: a function or a table of nv numbers, or what :func:`per_joint` takes."""
    is_told = isinstance(value, Table) or callable(value)
    return checked_target(value, model.nv, what) if is_told else per_joint(model, value, what)


def checked_numbers(values: ArrayLike, size: int, what: str, one_for_all: bool = False, do: str | None = None) -> Array:
    """A copy (size) of numbers that are all finite."""
    allowed = f"one finite number, or {size}" if one_for_all else f"{size} finite numbers"
    try:
        array = np.array(values, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not made of numbers", got=repr(values)[:80], allowed=allowed) from None
    if array.shape != (size,) and not (one_for_all and array.ndim == 0):
        raise InputError(f"{what} has the wrong length", got=f"shape {array.shape}", allowed=allowed, do=do)
    if not np.isfinite(array).all():
        raise InputError(f"{what} is not finite", got=repr(values)[:80], allowed=allowed)
    return np.array(np.broadcast_to(array, (size,)))


def checked_direction(value: ArrayLike, what: str) -> Array:
    """A vector (3) of length one."""
    given = checked_numbers(value, 3, what)
    length = float(np.linalg.norm(given))
    if not length > 0.0:
        raise InputError(f"{what} has no direction", got=repr(value), allowed="three numbers, not all 0")
    return given / length


Target = Any  # a vector, a function (t, p) -> vector, or a table


def checked_target(value: Target, size: int, what: str, do: str | None = None) -> Target:
    """A function as it is; tables and numbers checked, the latter one for all or one for each."""
    if isinstance(value, Table):
        if value.size != size:
            raise InputError(f"{what} has the wrong length", got=f"a table of {value.size} numbers", allowed=str(size))
        return value
    return value if callable(value) else checked_numbers(value, size, what, one_for_all=True, do=do)


def tables_in(*targets: Target) -> tuple[Table, ...]:
    """Those of the targets that are tables."""
    return tuple(target for target in targets if isinstance(target, Table))


def at(element: Element, target: Target, t: Scalar, x: Vector, p: Vector) -> Vector:
    """A target of an element at a time; a table's value is in the element's x."""
    if isinstance(target, Table):
        place = element.nx + element.nh
        for table in element.tables:
            if table is target:
                return list(x[place : place + table.size])
            place += table.size
    return target(t, p) if callable(target) else target


def vector(value: Vector, size: int, what: str) -> list[Scalar]:
    """So many scalars; one stands for all."""
    values = list(
        np.broadcast_to(np.asarray(value, dtype=object), (size,))
        if np.ndim(value) == 0
        else np.asarray(value, dtype=object).reshape(-1)
    )
    if len(values) != size:
        raise InputError(f"{what} has the wrong length", got=str(len(values)), allowed=str(size))
    return [float(x) if isinstance(x, (int, float, np.floating, np.integer)) else x for x in values]


def model_force(model: Model, function: str, p: Vector, *arguments: Vector) -> list[Scalar]:
    """A function of the model, with its own part of p."""
    given = (objects(list(a)) for a in arguments)
    return list(getattr(model, function)(*given, p=own_parameters(model, p)))


def frame_pose(model: Model, q: Vector, p: Vector, body: str, node: str | int | None = None) -> tuple[Mat3, Vec]:
    """Rotation and place of a body, frame or node in the world."""
    X = model.pose(objects(list(q)), body, node=node, p=own_parameters(model, p))
    return Mat3(X[:3, :3].tolist()), Vec.of(X[:3, 3].tolist())


def frame_velocity(
    model: Model,
    q: Vector,
    v: Vector,
    p: Vector,
    body: str,
    node: str | int | None = None,
    reference: Reference = "mixed",
) -> tuple[Vec, Vec]:
    """Angular velocity of a body, frame or node, and velocity of its origin; in the world's axes by default."""
    own, states = own_parameters(model, p), (objects(list(q)), objects(list(v)))
    six = model.velocity(*states, body, node=node, reference=reference, p=own).tolist()
    return Vec.of(six[:3]), Vec.of(six[3:])


def own_parameters(model: Model, p: Vector) -> Array | None:
    """The part of p that is the model's, or None."""
    size = len(model.parameters.nominal)
    return objects(list(p[:size])) if size else None
