"""Tables of actuators, sensors, springs across joints, fields and named configurations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from linkwise.cli.printing import number, table
from linkwise.mechanism.actuation import Actuator, FrameTransmission, JointTransmission, Sensor, Transmission
from linkwise.model.model import Model

_MOST_SENSORS = 40
_MOST_NUMBERS = 12


def tables(model: Model) -> Iterator[str]:
    """Tables of the equipment, one for each sort."""
    if model.actuators:
        rows = [
            [each.name, _along(each.transmission), _affine(each), _range(each.control_range), _range(each.force_range)]
            for each in model.actuators
        ]
        yield table(["actuator", "on", "force", "control", "force range"], rows)
    if model.springs:
        rows = [
            [s.name, _along(s.transmission), *map(number, (s.stiffness, s.damping, s.friction)), _range(s.limits)]
            for s in model.springs
        ]
        yield table(["spring", "on", "stiffness", "damping", "friction", "limits"], rows)
    if model.fields:
        yield table(["field", "kind", "on"], [[each.name, type(each).__name__, each.frame] for each in model.fields])
    if model.sensors:
        rows = [[each.name, each.kind, _target(each)] for each in model.sensors[:_MOST_SENSORS]]
        left = len(model.sensors) - _MOST_SENSORS
        yield table(["sensor", "kind", "on"], rows) + (f"\n… and {left} more" if left > 0 else "")
    if model.configurations:
        rows = []
        for name, q in model.configurations.items():
            shown = " ".join(number(x) for x in q[:_MOST_NUMBERS])
            rows.append([name, shown + (" …" if len(q) > _MOST_NUMBERS else "")])
        yield table(["configuration", "q"], rows)


def facts(model: Model) -> dict[str, Any]:
    """Equipment as data."""
    return {
        "actuators": [
            {
                "name": each.name,
                "on": _along(each.transmission),
                "gain": each.gain,
                "bias": each.bias,
                "control_range": each.control_range,
                "force_range": each.force_range,
                "activation": None if each.activation is None else each.activation.kind,
                "muscle": None if each.muscle is None else type(each.muscle).__name__,
            }
            for each in model.actuators
        ],
        "springs": [
            {
                "name": s.name,
                "on": _along(s.transmission),
                **{each: getattr(s, each) for each in ("stiffness", "damping", "friction", "limits")},
            }
            for s in model.springs
        ],
        "fields": [{"name": f.name, "kind": type(f).__name__, "on": f.frame} for f in model.fields],
        "sensors": [{"name": s.name, "kind": s.kind, "on": _target(s)} for s in model.sensors],
        "configurations": {name: q.tolist() for name, q in model.configurations.items()},
    }


def _along(transmission: Transmission) -> str:
    if isinstance(transmission, JointTransmission):
        terms = (f"{_gear(gear)}{joint}" for joint, gear in transmission.gears)
        return " + ".join(terms).replace("+ -", "- ")
    if isinstance(transmission, FrameTransmission):
        return f"frame {transmission.frame}"
    shown = [[s if isinstance(s, str) else f"({s.shape} {s.frame})" for s in stops] for stops, _ in transmission.paths]
    return "; ".join(" - ".join(stops) for stops in shown)


def _gear(gear: tuple[float, ...]) -> str:
    if set(gear) == {1.0}:
        return ""
    return f"{number(gear[0])} " if len(gear) == 1 else f"({', '.join(map(number, gear))}) "


def _affine(actuator: Actuator) -> str:
    """The force as a formula: l is the length, l' its rate, u the control, a its filtered or integrated value."""
    control = "u" if actuator.activation is None else f"a ({actuator.activation.kind})"
    if actuator.muscle is not None:
        return f"{type(actuator.muscle).__name__}, {number(actuator.muscle.force)} N at {control} = 1"
    gain = _sum(actuator.gain)
    first = "" if gain == "0" else control if gain == "1" else f"{gain} {control}"
    if sum(x != 0.0 for x in actuator.gain) > 1:
        first = f"({gain}) {control}"
    bias = _sum(actuator.bias)
    if bias == "0":
        return first or "0"
    return f"{first} + {bias}".replace("+ -", "- ") if first else bias


def _sum(numbers: tuple[float, float, float]) -> str:
    parts = [f"{number(x)}{unit}" for x, unit in zip(numbers, ("", " l", " l'"), strict=True) if x]
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _range(bounds: tuple[float, float]) -> str:
    return "-" if not any(map(math.isfinite, bounds)) else f"{number(bounds[0])} to {number(bounds[1])}"


def _target(sensor: Sensor) -> str:
    return (sensor.target or "-") + (f" in {sensor.reference}" if sensor.reference else "")
