"""Run-time parameters: constants of a mechanism turned into inputs of its functions.

A parameter is named ``body.what``, ``closure.what``, or ``gravity``:

=============  ====  ==========================================================================
``mass``       1     kg
``com``        3     mass centre in the body's frame, m
``inertia``    6     about the mass centre, body axes: xx, yy, zz, xy, xz, yz, kg m²
``xyz``        3     position of the body's inboard joint in the parent's frame, m
``rpy``        3     orientation of that joint frame, R = Rz(yaw) Ry(pitch) Rx(roll), rad
``armature``   nv    rotor inertia of the inboard joint
``stiffness``  1     factor on K of a flexible body, nominally 1
``loss``       1     factor on its damping D, nominally 1
``gravity``    3     m/s² (of the whole mechanism: no body)
``friction``   1     factor on the friction of all contacts, nominally 1 (likewise)
=============  ====  ==========================================================================

``mass``, ``com`` and ``inertia`` also take the name of a body welded to another (a payload). Of closures and couplings:

================  ====  =======================================================================
``xyz_a``         3     position of frame a on the moving body that carries it, or on its node, m
``rpy_a``         3     orientation of that frame, as above, rad
``xyz_b, rpy_b``  3     the same of frame b
``length``        1     of a Distance, m
``pitch``         1     of a helical closure, m per rad
``coefficients``  k     of a Coupling, one for each joint that it names, in order
``offset``        1     of a Coupling
================  ====  =======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.bodies_and_joints import Body, Part, Pose
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.placement import rpy_of
from linkwise.spatial.scalar import Flat, Scalar

_OF_PART = ("mass", "com", "inertia")
_SIGNLESS = ("mass", "armature", "stiffness", "loss", "friction")
_OF_BODY = ("xyz", "rpy", "armature")
_OF_FLEXIBLE = ("stiffness", "loss")


@dataclass(frozen=True)
class Parameter:
    """One named parameter, its place in p, and its nominal value."""

    name: str
    slice: slice
    nominal: tuple[float, ...]

    @property
    def is_signless(self) -> bool:
        """Whether none of its numbers can be negative: masses, rotor inertias, factors on stiffness and friction."""
        return self.name.rpartition(".")[2] in _SIGNLESS


class Values:
    """Looks up constants of a mechanism: nominal, or replaced by scalars of a parameter array."""

    def __init__(self, mechanism: Mechanism, p: Flat | None = None) -> None:
        self._given: dict[str, list[Scalar]] = {}
        if p is not None:
            for parameter in parameters(mechanism):
                self._given[parameter.name] = [p[i] for i in range(parameter.slice.start, parameter.slice.stop)]

    @property
    def any_given(self) -> bool:
        """Whether some constant is not nominal."""
        return bool(self._given)

    def part(self, part: Part, what: str) -> Flat:
        """Mass, mass centre or inertia of a part."""
        return self._given.get(f"{part.name}.{what}", _nominal_of_part(part, what))

    def placement_is_free(self, body: Body) -> bool:
        """Whether the joint's placement depends on parameters."""
        return f"{body.name}.xyz" in self._given or f"{body.name}.rpy" in self._given

    def xyz(self, body: Body) -> Flat:
        """Position of a body's joint in its parent."""
        return self._given.get(f"{body.name}.xyz", _xyz(body.placement))

    def rpy(self, body: Body) -> Flat:
        """Orientation of a body's joint in its parent."""
        return self._given.get(f"{body.name}.rpy", rpy_of(body.placement))

    def armature(self, body: Body, nominal: Sequence[float]) -> Flat:
        """Rotor inertia of a body's joint."""
        return self._given.get(f"{body.name}.armature", nominal)

    def elasticity(self, body: Body) -> tuple[Scalar, Scalar]:
        """Factors on the stiffness and the damping of a flexible body."""
        stiffness, loss = (self._given.get(f"{body.name}.{what}", (1.0,))[0] for what in _OF_FLEXIBLE)
        return stiffness, loss

    def closure_placement(self, closure: ClosureInstance, side: str) -> tuple[Flat, Flat] | None:
        """Position and orientation (roll, pitch, yaw) of frame a or b of a closure; None where they are constant."""
        names = f"{closure.name}.xyz_{side}", f"{closure.name}.rpy_{side}"
        if not any(name in self._given for name in names):
            return None
        pose = closure.placement_a if side == "a" else closure.placement_b
        return self._given.get(names[0], _xyz(pose)), self._given.get(names[1], rpy_of(pose))

    def closure_type(self, closure: ClosureInstance | RelationInstance) -> Any:
        """Closure or coupling with those of its numbers that are parameters."""
        names = {what: f"{closure.name}.{what}" for what in closure.type.numbers}
        given = {what: self._given[name] for what, name in names.items() if name in self._given}
        return closure.type.with_numbers(given) if given else closure.type

    def gravity(self, nominal: Sequence[float]) -> Flat:
        """The field of gravity."""
        return self._given.get("gravity", nominal)

    def friction(self) -> Scalar:
        """Factor on the friction of all contacts."""
        return self._given.get("friction", (1.0,))[0]


class Parameters(tuple[Parameter, ...]):
    """Run-time parameters of a model, in the order in which they stand in p."""

    __slots__ = ()

    @property
    def names(self) -> tuple[str, ...]:
        """As they were declared."""
        return tuple(parameter.name for parameter in self)

    @property
    def nominal(self) -> FloatArray:
        """Parameters p (np) with the values the model was built with."""
        return np.array([x for parameter in self for x in parameter.nominal], float)


def parameters(mechanism: Mechanism) -> Parameters:
    """The declared parameters in order, with their places in p."""
    found, start = [], 0
    for name in mechanism._parameter_names:
        nominal = _nominal(mechanism, name)
        found.append(Parameter(name, slice(start, start + len(nominal)), nominal))
        start += len(nominal)
    return Parameters(found)


def check_names(mechanism: Mechanism, names: Iterable[str]) -> tuple[str, ...]:
    """The names, if every one is a parameter of this mechanism and none comes twice."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError("parameters are given as a list of names", got=repr(names), allowed=f"[{str(names)!r}]")
    checked: list[str] = []
    for name in names:
        _nominal(mechanism, name)
        if name in checked:
            raise InputError(f"parameter {name!r} is named twice", got=repr(list(names)), allowed="each name once")
        checked.append(name)
    return tuple(checked)


def _nominal(mechanism: Mechanism, name: str) -> tuple[float, ...]:
    if name == "gravity":
        return mechanism.gravity
    rubs = ["friction"] if any(body.collisions for body in mechanism.bodies) else []
    if name in rubs:
        return (1.0,)
    owner, _, what = str(name).rpartition(".")
    flexible = [body.name for body in mechanism.bodies if body.flexible is not None]
    parts = {part.name: part for body in mechanism.bodies for part in body.parts if part.name not in flexible}
    if what in _OF_FLEXIBLE and owner in flexible:
        return (1.0,)
    if what in _OF_PART and owner in parts:
        return tuple(_nominal_of_part(parts[owner], what))
    for body in mechanism.bodies:
        if body.name == owner and what in _OF_BODY:
            if what == "armature":
                return mechanism.joints[body.index].armature
            return _xyz(body.placement) if what == "xyz" else rpy_of(body.placement)
    for closure in mechanism.closures:
        if closure.name == owner and (numbers := _nominal_of_closure(closure).get(what)) is not None:
            return numbers
    known = ["gravity", *rubs, *(f"{part}.{w}" for part in parts for w in _OF_PART)]
    known += [f"{body.name}.{w}" for body in mechanism.bodies for w in _OF_BODY]
    known += [f"{name}.{w}" for name in flexible for w in _OF_FLEXIBLE]
    known += [f"{closure.name}.{w}" for closure in mechanism.closures for w in _nominal_of_closure(closure)]
    raise UnknownNameError("parameter", name, known)


def _nominal_of_closure(closure: ClosureInstance | RelationInstance) -> dict[str, tuple[float, ...]]:
    """All parameters that a closure or coupling has."""
    found: dict[str, tuple[float, ...]] = {}
    if isinstance(closure, ClosureInstance):
        for side, pose in (("a", closure.placement_a), ("b", closure.placement_b)):
            found |= {f"xyz_{side}": _xyz(pose), f"rpy_{side}": rpy_of(pose)}
    own = {what: closure.type.nominal(what) for what in closure.type.numbers}
    return found | {what: numbers for what, numbers in own.items() if numbers is not None}


def _nominal_of_part(part: Part, what: str) -> tuple[float, ...]:
    return (part.mass,) if what == "mass" else getattr(part, what)


def _xyz(placement: Pose) -> tuple[float, ...]:
    return tuple(placement[i][3] for i in range(3))
