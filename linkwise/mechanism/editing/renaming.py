"""Other names for bodies, frames, joints, closures and what drives and measures them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.actuation import Actuator, JointTransmission, PathTransmission, Spring, Transmission
from linkwise.mechanism.bodies_and_joints import Body, JointInstance, Part
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.editing.taken_apart import MechanismT, Pieces, apart, on_joints, together

New = Callable[[str], str]
"""An old name to the new one."""
DriveT = TypeVar("DriveT", Actuator, Spring)
NamedT = TypeVar("NamedT", JointInstance, Part, Geometry)


def renamed(mechanism: MechanismT, names: Mapping[str, str] | Callable[[str], str]) -> MechanismT:
    """A copy with other names; see :meth:`linkwise.Model.renamed`."""
    pieces = apart(mechanism)
    table = _table(names, _names(pieces))

    def new(name: str) -> str:
        return table.get(name, name)

    _rename_bodies(pieces, new)
    pieces.frames = [(replace(frame, name=new(frame.name)), new(on)) for frame, on in pieces.frames]
    pieces.closures = [(replace(each, name=new(each.name)), new(a), new(b)) for each, a, b in pieces.closures]
    pieces.relations = [(new(name), on_joints(relation, table)) for name, relation in pieces.relations]
    pieces.order = [new(name) for name in pieces.order]
    pieces.actuators = [_driving(each, new) for each in pieces.actuators]
    pieces.springs = [_driving(each, new) for each in pieces.springs]
    pieces.fields = [replace(each, name=new(each.name), frame=new(each.frame)) for each in pieces.fields]
    pieces.sensors = [
        replace(each, name=new(each.name), target=new(each.target), reference=each.reference and new(each.reference))
        for each in pieces.sensors
    ]
    pieces.configurations = {
        key: ({_coordinate(j, new): x for j, x in q.items()}, {_coordinate(j, new): x for j, x in v.items()})
        for key, (q, v) in pieces.configurations.items()
    }
    parameters = tuple(_parameter(name, new) for name in mechanism._parameter_names)
    result = together(replace(mechanism, _parameter_names=parameters), pieces)
    if mechanism._closure_reference is None:
        return result
    return replace(result, _closure_reference=mechanism._closure_reference, _closure_solver=mechanism._closure_solver)


def _table(names: Mapping[str, str] | Callable[[str], str], known: Iterable[str]) -> dict[str, str]:
    """Old names to new ones, checked."""
    if callable(names):
        table = {name: names(name) for name in known}
    else:
        table = {str(old): new for old, new in names.items()}
        for old in table:
            if old not in known:
                raise UnknownNameError("name of a body, frame, joint or closure", old, known)
    for old, wanted in table.items():
        if not str(wanted):
            raise InputError(f"the new name of {old!r} is not a name", got=repr(wanted), allowed="a text, not empty")
    return table


def _rename_bodies(pieces: Pieces, new: New) -> None:
    """Bodies with their joints, parts and shapes."""

    def alone(each: NamedT) -> NamedT:
        return replace(each, name=new(each.name))

    def whole(body: Body) -> Body:
        return replace(
            body,
            name=new(body.name),
            parts=tuple(map(alone, body.parts)),
            visuals=tuple(map(alone, body.visuals)),
            collisions=tuple(map(alone, body.collisions)),
        )

    pieces.bodies = [
        (
            whole(body),
            new(parent),
            replace(alone(joint), mimic=joint.mimic and replace(joint.mimic, joint=new(joint.mimic.joint))),
        )
        for body, parent, joint in pieces.bodies
    ]
    pieces.base = whole(pieces.base)
    pieces.contact_excludes = [(new(a), new(b)) for a, b in pieces.contact_excludes]


def _driving(each: DriveT, new: New) -> DriveT:
    """An actuator or a spring, and what it acts along."""
    way: Transmission = each.transmission
    if isinstance(way, JointTransmission):
        way = JointTransmission([(new(joint), gear) for joint, gear in way.gears])
    elif isinstance(way, PathTransmission):
        way = way.renamed(new)
    else:
        way = replace(way, frame=new(way.frame))
    return replace(each, name=new(each.name), transmission=way)


def _names(pieces: Pieces) -> dict[str, None]:
    """All names there are, but the world's."""
    found: dict[str, None] = {}
    for body, _, joint in pieces.bodies:
        found |= dict.fromkeys([body.name, joint.name, *(part.name for part in body.parts)])
    found |= dict.fromkeys(part.name for part in pieces.base.parts)
    found |= dict.fromkeys(frame.name for frame, _ in pieces.frames)
    found |= dict.fromkeys(pieces.order)
    for group in (pieces.actuators, pieces.sensors, pieces.springs, pieces.fields):
        found |= dict.fromkeys(each.name for each in group)
    found.pop("world", None)
    return found


def _coordinate(name: str, new: New) -> str:
    """Of a joint, or of the modes of a body."""
    body, dot, modes = name.rpartition(".")
    return f"{new(body)}.eta" if dot and modes == "eta" and new(name) == name else new(name)


def _parameter(name: str, new: New) -> str:
    body, dot, what = name.rpartition(".")
    return f"{new(body)}.{what}" if dot else name
