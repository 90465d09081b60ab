"""Comparison of two models by their actuators, springs, fields, sensors and named configurations.

Each is put into the terms of the first model: joints by the names that they have there, places in its body frames. Then
what is said of it is a list of facts, and facts can be compared whatever they are about. An element without a namesake
is the same as one of another name that says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from linkwise.files.correspondence import Correspondence, shown, two_values
from linkwise.mechanism.actuation import (
    SENSOR_KINDS,
    Activation,
    Actuator,
    FrameTransmission,
    JointTransmission,
    Sensor,
    Spring,
    Transmission,
)
from linkwise.mechanism.fields import Field, GravityCompensation
from linkwise.mechanism.muscles import HillMuscle, Muscle
from linkwise.mechanism.wrapping import Wrap
from linkwise.model.model import Model

Facts = dict[str, Any]
"""Facts of an element: words, or arrays of numbers."""


def compare_equipment(bodies: Correspondence, tolerance: float, note: Callable[[str], None]) -> None:
    """Note in a line each how actuators, springs, fields, sensors and configurations differ."""
    a, b = bodies.a, bodies.b
    tell = partial(_compared, tolerance=tolerance, note=note)
    actuators = tell("actuator", *({x.name: _actuator(bodies, m, x) for x in m.actuators} for m in (a, b)))
    springs = tell("spring", *({x.name: _spring(bodies, m, x) for x in m.springs} for m in (a, b)))
    tell("field", *({x.name: _field(bodies, m, x) for x in m.fields} for m in (a, b)))
    known = {"actuator": actuators, "spring": springs}
    tell("sensor", *({x.name: _sensor(bodies, m, x, known) for x in m.sensors} for m in (a, b)))
    if (a.nq, a.nv) == (b.nq, b.nv):
        tell("configuration", *({n: _configuration(bodies, m, n) for n in m.configurations} for m in (a, b)))


def _compared(
    what: str, first: Mapping[str, Facts], second: Mapping[str, Facts], tolerance: float, note: Callable[[str], None]
) -> dict[str, str]:
    """Note what differs; which of the second is which of the first, by name."""
    known = {name: name for name in second if name in first}
    left = [name for name in second if name not in first]
    for name in first:
        if name not in second:
            same = next((n for n in left if not any(_differing(first[name], second[n], tolerance))), None)
            if same is None:
                note(f"{what} {name!r} ({first[name]['it is']}) is in the first only")
            else:
                left.remove(same)
                known[same] = name
    for name in left:
        note(f"{what} {name!r} ({second[name]['it is']}) is in the second only")
    for name in first:
        if name in second:
            for fact in _differing(first[name], second[name], tolerance):
                x, y = (_said(each.get(fact)) for each in (first[name], second[name]))
                if fact == "it is":
                    note(f"{what} {name!r} is {x} and {y}")
                    break  # the rest is about other things
                note(two_values(f"the {fact} of {what} {name!r}", fact, x, y))
    return known


def _differing(x: Facts, y: Facts, tolerance: float) -> Iterable[str]:
    for fact in dict.fromkeys([*x, *y]):
        if not _equal(x.get(fact), y.get(fact), tolerance):
            yield fact


def _equal(x: object, y: object, tolerance: float) -> bool:
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        return type(x) is type(y) and bool(x == y)
    scale = max((float(np.abs(z[np.isfinite(z)]).max(initial=0.0)) for z in (x, y)), default=0.0)
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=tolerance, atol=tolerance * scale))


def _said(x: object) -> str:
    return "none" if x is None else shown(x) if isinstance(x, np.ndarray) else str(x)


def _actuator(bodies: Correspondence, model: Model, actuator: Actuator) -> Facts:
    facts = _transmission(bodies, model, actuator.transmission)
    for name in ("gain", "bias", "control_range", "force_range"):
        facts[name.replace("_", " ")] = np.array(getattr(actuator, name))
    activation: Activation | None = actuator.activation
    if activation is not None:
        facts["activation"] = activation.kind
        if activation.kind == "filter":
            facts["time constant"] = np.array(activation.time_constant)
        if activation.kind == "muscle":
            times = (activation.time_constant, activation.release_time)
            facts["time constants"], facts["smoothing"] = np.array(times), np.array(activation.smoothing)
        facts["range of the activation"] = np.array(activation.range)
    if actuator.muscle is not None:
        facts["it is"] += f", {type(actuator.muscle).__name__}"
        facts |= _numbers(actuator.muscle)
    return facts


def _spring(bodies: Correspondence, model: Model, spring: Spring) -> Facts:
    facts = _transmission(bodies, model, spring.transmission)
    return facts | {
        name: np.array(getattr(spring, name)) for name in ("stiffness", "damping", "rest", "friction", "limits")
    }


def _field(bodies: Correspondence, model: Model, field: Field) -> Facts:
    body, X = bodies.frame(model, field.frame)
    facts = {"it is": f"{type(field).__name__} on {bodies.name(body)!r}", "place": X[:3, 3]}
    turned = {} if isinstance(field, GravityCompensation) else {"orientation": X[:3, :3]}
    return facts | turned | _numbers(field)


def _numbers(element: Field | Muscle | HillMuscle) -> Facts:
    """All that an element says in numbers."""
    found = {each.name: getattr(element, each.name) for each in fields(element)}
    return {name.replace("_", " "): np.array(x, float) for name, x in found.items() if not isinstance(x, str | None)}


def _transmission(bodies: Correspondence, model: Model, transmission: Transmission) -> Facts:
    if isinstance(transmission, JointTransmission):
        gears = sorted((bodies.joint_name(joint, model), gear) for joint, gear in transmission.gears)
        numbers = np.array([x for _, gear in gears for x in gear])
        return {"it is": f"along {', '.join(repr(joint) for joint, _ in gears)}", "gear": numbers}
    if isinstance(transmission, FrameTransmission):
        body, X = bodies.frame(model, transmission.frame)
        moment, force = (X[:3, :3] @ np.array(part) for part in np.split(np.array(transmission.wrench), 2))
        wrench = np.concatenate([moment + np.cross(X[:3, 3], force), force])  # at the body's origin, in its axes
        return {"it is": f"a force on {bodies.name(body)!r}", "wrench": wrench}
    ways = []
    for on_way, factor in transmission.paths:
        stops = [_stop(bodies, model, stop) for stop in on_way]
        ways.append((min(stops, stops[::-1]), factor))  # there and back is the same way
    ways.sort()
    over = "; ".join(", ".join(repr(bodies.name(body)) for body, *_ in stops) for stops, _ in ways)
    points = np.array([x for stops, _ in ways for _, *point in stops for x in point])
    return {"it is": f"a tendon over {over}", "points": points, "factor": np.array([factor for _, factor in ways])}


def _stop(bodies: Correspondence, model: Model, stop: str | Wrap) -> tuple[Any, ...]:
    """Its body, then numbers: where it is; of a shape to wrap around also its axis, radius and side."""
    if isinstance(stop, str):
        body, X = bodies.frame(model, stop)
        return (body, *np.round(X[:3, 3], 9).tolist())
    body, X = bodies.frame(model, stop.frame)
    more = np.round([*X[:3, 3], *(X[:3, 2] if stop.shape == "cylinder" else (0.0,) * 3), stop.radius], 9).tolist()
    if stop.side is not None:
        other, at = bodies.frame(model, stop.side)
        more += [float(other), *np.round(at[:3, 3], 9).tolist()]
    return (body, *more)


def _sensor(bodies: Correspondence, model: Model, sensor: Sensor, known: Mapping[str, Mapping[str, str]]) -> Facts:
    fixed_to = SENSOR_KINDS[sensor.kind][0]
    facts: Facts = {"it is": sensor.kind}
    if fixed_to == "joint":
        facts["it is"] += f" of {bodies.joint_name(sensor.target, model)!r}"
    elif fixed_to in known:
        first = known[fixed_to].get(sensor.target, sensor.target) if model is bodies.b else sensor.target
        facts["it is"] += f" of {first!r}"
    elif fixed_to == "frame":
        body, X = bodies.frame(model, sensor.target)
        facts["it is"] += f" on {bodies.name(body)!r}"
        facts["place"], facts["orientation"] = X[:3, 3], X[:3, :3]
    if sensor.reference is not None:
        body, X = bodies.frame(model, sensor.reference)
        facts["reference"] = f"on {bodies.name(body)!r}"
        facts["place of the reference"], facts["orientation of the reference"] = X[:3, 3], X[:3, :3]
    return facts | {name: np.array(getattr(sensor, name)) for name in ("noise", "cutoff", "field")}


def _configuration(bodies: Correspondence, model: Model, name: str) -> Facts:
    """The coordinates and velocities in the order of the first model."""
    q, v = model.configurations[name], model.configurations.velocity(name)
    v = np.zeros(model.nv) if v is None else v
    whole, moving = np.array(q), np.array(v)
    for joint in model.joints:
        if joint.mimic is None:
            mine = bodies.a.joints[bodies.joint(joint.index, model)]
            if mine.mimic is None and mine.nq == joint.nq:
                whole[mine.q_slice], moving[mine.v_slice] = q[joint.q_slice], v[joint.v_slice]
    return {"it is": "a configuration", "q": whole, "v": moving}
