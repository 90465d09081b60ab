"""Levers: the controls of a model that a hand moves while it runs, with their names and ranges.

Their values are read from the run-time parameters p, so nothing is compiled anew when one is moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.array_types import Array
from linkwise.mechanism.actuation import Actuator
from linkwise.model.model import Model
from linkwise.model.transmissions import MovingFrames, length
from linkwise.sim.drives import Drives
from linkwise.sim.elements import Element, Function, Scalar, Vector


@dataclass(frozen=True)
class Lever:
    """One control.

    Args:
        name: of the actuator, or of the joint.
        low: least value.
        high: greatest value.
        start: value at which it does nothing to a model at rest where it starts.
    """

    name: str
    low: float
    high: float
    start: float


def levers_of(model: Model, q: Array, place: int) -> tuple[tuple[Lever, ...], Element | None]:
    """Levers of a model that starts at q (nq), and the element by which they act; none where nothing can be driven.

    One for each actuator; in a model without any, one for each freedom whose force has a limit: its joint force.

    Args:
        model: the mechanism.
        q: where it starts (nq).
        place: in p, of the value of the first.
    """
    if model.actuators:
        end = place + len(model.actuators)
        levers = tuple(_of_actuator(model, actuator, q) for actuator in model.actuators)
        return levers, Drives(model, u=lambda t, q, v, p: list(p[place:end]))
    effort = np.asarray(model.limits.effort)
    driven = np.flatnonzero(np.isfinite(effort) & (effort > 0.0)).tolist()
    if not driven:
        return (), None

    def force(t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        values: list[Scalar] = [0.0] * model.nv
        for n, k in enumerate(driven):
            values[k] = p[place + n]
        return values

    names = model.freedom_names
    return tuple(Lever(names[k], -float(effort[k]), float(effort[k]), 0.0) for k in driven), Function(force)


def _of_actuator(model: Model, actuator: Actuator, q: Array) -> Lever:
    """Lever of an actuator; a servo begins by holding what it moves where it is."""
    moving = actuator.muscle is None and (actuator.gain[1] or actuator.bias[1])
    at = float(length(MovingFrames(model, q), actuator.transmission)) if moving else 0.0
    gain, bias = (float(numbers[0] + numbers[1] * at) for numbers in (actuator.gain, actuator.bias))
    still = -bias / gain if gain else 0.0
    low, high = actuator.control_range
    reach = [abs((f - bias) / gain) for f in actuator.force_range if np.isfinite(f) and gain]
    usual = max([*reach, np.pi if actuator.bias[1] else 1.0]) if not reach or actuator.bias[1] else max(reach)
    low = low if np.isfinite(low) else min(-usual, high - usual) if np.isfinite(high) else -usual
    high = high if np.isfinite(high) else max(usual, low + usual)
    return Lever(actuator.name, float(low), float(high), float(np.clip(still, low, high)))
