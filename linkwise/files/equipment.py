"""Actuators, sensors, springs across joints, fields and named configurations of a file, on the bodies that are built.

A joint that is locked has no coordinate: it stands in the length of a transmission with its value, and what was on it
alone is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from linkwise.files.bodies import Body
from linkwise.files.description import Description, PolynomialWritten
from linkwise.mechanism.actuation import SENSOR_KINDS, Actuator, JointTransmission, Spring, Transmission
from linkwise.mechanism.closures import Coupling, PolynomialCoupling

__all__ = ["equip"]


def equip(builder: Any, bodies: Sequence[Body], description: Description) -> None:
    """Add what the description has besides bodies, frames, closures and couplings."""
    locked = {body.joint.name: body.locked for body in bodies if body.locked is not None}
    for polynomial in description.polynomials:
        _couple(builder, polynomial, locked)
    driven, sprung = set(), set()
    for written in description.actuators:
        actuator = _freed(written.what, locked)
        if actuator is not None:
            builder.add_actuator(actuator)
            driven.add(actuator.name)
    for each in description.springs:
        spring = _freed(each.what, locked)
        if spring is not None:
            builder.add_spring(spring)
            sprung.add(spring.name)
    for fixed in description.fields:
        builder.add_field(fixed.what)
    for item in description.sensors:
        of, target = SENSOR_KINDS[item.what.kind][0], item.what.target
        gone = {"joint": target in locked, "actuator": target not in driven, "spring": target not in sprung}
        if gone.get(of, False):
            continue
        builder.add_sensor(item.what)
    for name, values in description.configurations:
        builder.add_configuration(name, {joint: q for joint, q in values.items() if joint not in locked})


def _freed(drive: Any, locked: Mapping[str, float]) -> Any:
    """An actuator or spring without the joints that are locked; None where none is left."""
    left, l_0 = _split(drive.transmission, locked)
    if left is None:
        return None
    drive = replace(drive, transmission=left)
    if l_0 == 0.0:
        return drive
    if isinstance(drive, Spring):
        rest, limits = ((low - l_0, high - l_0) for low, high in (drive.rest, drive.limits))
        return replace(drive, rest=rest, limits=limits)
    assert isinstance(drive, Actuator)
    gain, bias = ((c + k * l_0, k, d) for c, k, d in (drive.gain, drive.bias))
    return replace(drive, gain=gain, bias=bias, muscle=drive.muscle and drive.muscle.shortened(l_0))


def _split(transmission: Transmission, locked: Mapping[str, float]) -> tuple[Transmission | None, float]:
    """Moving part of a transmission, and the length of the rest."""
    if not isinstance(transmission, JointTransmission):
        return transmission, 0.0
    left = [(joint, gear) for joint, gear in transmission.gears if joint not in locked]
    l_0 = sum(gear[0] * locked[joint] for joint, gear in transmission.gears if joint in locked)
    return (JointTransmission(left) if left else None), l_0


def _couple(builder: Any, written: PolynomialWritten, locked: Mapping[str, float]) -> None:
    left = {joint: c for joint, c in written.left.items() if joint not in locked}
    right = {joint: c for joint, c in written.right.items() if joint not in locked}
    l_0 = sum(c * locked[joint] for joint, c in written.left.items() if joint in locked)
    start = written.start - sum(c * locked[joint] for joint, c in written.right.items() if joint in locked)
    a_0, *more = written.polynomial
    if left and right:
        builder.add_coupling(written.name, PolynomialCoupling(left, right, (a_0 - l_0, *more), start))
    elif left:
        value = sum(a * (-start) ** k for k, a in enumerate(written.polynomial))
        builder.add_coupling(written.name, Coupling(left, value - l_0))
