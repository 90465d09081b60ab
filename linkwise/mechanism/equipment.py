"""Whether actuators, springs, sensors and fields fit the mechanism that they are fixed to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from linkwise.errors import InputError, ModelError, UnknownNameError
from linkwise.mechanism.actuation import (
    SENSOR_KINDS,
    Actuator,
    FrameTransmission,
    JointTransmission,
    PathTransmission,
    Sensor,
    Spring,
    Transmission,
)
from linkwise.mechanism.fields import Field

if TYPE_CHECKING:
    from linkwise.joints import Joint
    from linkwise.mechanism.closures.instances import ClosureFreedoms
    from linkwise.mechanism.mechanism import Mechanism

Driven = TypeVar("Driven", Actuator, Spring)


def fitted_drives(mechanism: Mechanism, drives: Iterable[Driven], kind: str) -> tuple[Driven, ...]:
    """Actuators or springs whose names are their own and whose transmissions end at what there is."""
    found = [
        replace(each, transmission=_fitted(mechanism, each.transmission, f"{kind} {each.name!r}")) for each in drives
    ]
    _check_names(found, kind)
    return tuple(found)


def fitted_sensors(
    mechanism: Mechanism, sensors: Iterable[Sensor], actuators: Sequence[Actuator], springs: Sequence[Spring]
) -> tuple[Sensor, ...]:
    """Sensors whose names are their own and which are fixed to what there is."""
    found = list(sensors)
    _check_names(found, "sensor")
    for sensor in found:
        of = SENSOR_KINDS[sensor.kind][0]
        if of == "joint":
            joint = joint_type(mechanism, sensor.target)
            wanted = {"ball_orientation": (4, 3), "ball_angular_velocity": (4, 3)}.get(sensor.kind, (1, 1))
            if sensor.kind == "joint_drive_force" and closing_joint(mechanism, sensor.target) is not None:
                raise ModelError(
                    f"the sensor {sensor.name!r} cannot read closure {sensor.target!r}",
                    got=sensor.kind,
                    allowed="a joint of the tree",
                    do="read the actuator: actuator_force",
                )
            if (joint.nq, joint.nv) != wanted:
                raise ModelError(
                    f"the sensor {sensor.name!r} cannot read joint {sensor.target!r}",
                    got=f"{sensor.kind} of {joint!r}",
                    allowed="a joint with one freedom" if wanted == (1, 1) else "a spherical joint",
                )
        elif of in ("actuator", "spring"):
            known = [each.name for each in (actuators if of == "actuator" else springs)]
            if sensor.target not in known:
                raise UnknownNameError(f"{of} for sensor {sensor.name!r}", sensor.target, known)
        elif of == "frame":
            mechanism.frame(sensor.target)
            if sensor.reference is not None:
                mechanism.frame(sensor.reference)
    return tuple(found)


def fitted_fields(mechanism: Mechanism, fields: Iterable[Field]) -> tuple[Field, ...]:
    """Fields whose names are their own and which are fixed to what there is."""
    found = list(fields)
    _check_names(found, "field")
    for field in found:
        mechanism.frame(field.frame)
    return tuple(found)


def closing_joint(mechanism: Mechanism, name: str) -> ClosureFreedoms | None:
    """The freedoms of the closure of this name, where no joint of the tree has it and the closure leaves some."""
    if not mechanism._closure_freedoms or any(joint.name == name for joint in mechanism.joints):
        return None
    return next((each for each in mechanism._closure_freedoms if each.name == name), None)


def joint_type(mechanism: Mechanism, name: str) -> Joint:
    """The type of a joint of the tree, or of one that closes a loop."""
    closing = closing_joint(mechanism, name)
    return mechanism.joints[name].type if closing is None else closing.joint


def _fitted(mechanism: Mechanism, transmission: Transmission, whose: str) -> Transmission:
    """The same, with a gear for each freedom of its joints."""
    if isinstance(transmission, PathTransmission):
        for frame in transmission.frames:
            mechanism.frame(frame)
        return transmission
    if isinstance(transmission, FrameTransmission):
        mechanism.frame(transmission.frame)
        return transmission
    gears = []
    for name, gear in transmission.gears:
        joint = joint_type(mechanism, name)
        if joint.nq != joint.nv and (joint.nq, joint.nv) != (4, 3):
            raise ModelError(
                f"the {whose} cannot drive joint {name!r} by a gear",
                got=repr(joint),
                allowed="a joint whose freedoms have coordinates, or a spherical one",
                do="let it act on the body: lw.equipment.FrameTransmission(body, wrench)",
            )
        if len(gear) not in (1, joint.nv):
            raise InputError(
                f"the gear of the {whose} has the wrong length",
                got=f"{len(gear)} numbers for joint {name!r}",
                allowed=f"one number, or nv = {joint.nv}",
            )
        gears.append((name, gear * joint.nv if len(gear) == 1 else gear))
    return JointTransmission(gears)


def _check_names(elements: Sequence[Actuator | Spring | Sensor | Field], kind: str) -> None:
    seen: set[str] = set()
    for element in elements:
        if element.name in seen:
            raise ModelError(
                f"the name {element.name!r} is taken by another {kind}", allowed=f"a name unlike any other {kind}"
            )
        seen.add(element.name)
