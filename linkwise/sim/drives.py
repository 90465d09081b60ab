"""The actuators that a model's file describes, as an element of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.actuation import Activation, Actuator, Transmission
from linkwise.model.model import Model, checked_model
from linkwise.model.transmissions import (
    MovingFrames,
    add_pulled,
    closure_forces,
    closures_along,
    joint_forces,
    length,
    speed,
    wrenches,
)
from linkwise.sim.elements import Element, Target, Vector, Wrenches, at, checked_target, law, own_parameters, tables_in
from linkwise.sim.tables import Table
from linkwise.spatial.scalar import Scalar, beyond, where, within

__all__ = ["Drives"]

Control = ArrayLike | Mapping[str, float | Callable[..., Scalar]] | Callable[..., Vector] | Table


class Drives(Element):
    """The actuators of a model (``model.actuators``), driven by a control u.

    Args:
        model: the mechanism.
        u: one number for all or one for each actuator; a function ``(t, q, v, p)`` that returns them; a mapping of
            names to numbers or such functions, the others at zero; a :class:`~linkwise.Table`; or, with ``times``, the
            values (T, n) of a linear one.
        times: of these values, s, increasing.
        names: the actuators that act, in the order of u; all of the model if not given.

    Example:
        >>> import linkwise as lw
        >>> b = lw.ModelBuilder("arm")
        >>> b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), joint_name="pin")
        >>> pin = lw.equipment.JointTransmission({"pin": 1.0})
        >>> b.add_actuator(lw.equipment.Actuator("servo", pin, gain=(50, 0, 0), bias=(0, -50, -5)))
        >>> model = b.build()
        >>> motion = lw.simulate(model, [0.0], duration=5.0, control=lw.Drives(model, u=0.5))
        >>> round(float(motion.q[-1, 0]), 3)
        0.457
    """

    def __init__(
        self, model: Model, u: Control = 0.0, *, times: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> None:
        if not checked_model(model).actuators:
            raise InputError(f"the model {model.name!r} has no actuators", do="add some: builder.add_actuator(…)")
        known = {actuator.name: actuator for actuator in model.actuators}
        for name in names or ():
            if name not in known:
                raise UnknownNameError("actuator", name, known)
        self.model = model
        self.actuators: tuple[Actuator, ...] = tuple(known[name] for name in (known if names is None else names))
        n = len(self.actuators)
        self.u: Target
        if times is not None:
            u = Table(times, u)  # type: ignore[arg-type]  # which refuses what has no values
        if isinstance(u, Mapping):
            own = [actuator.name for actuator in self.actuators]
            for name in u:
                if name not in own:
                    raise UnknownNameError("actuator", name, own)
            self.u = tuple(u.get(name, 0.0) for name in own)
        else:
            self.u = checked_target(u, n, "u")
        self.tables = tables_in(self.u)
        self.nx = sum(_states(actuator) for actuator in self.actuators)

    def initial(self) -> Sequence[float]:
        """Activations at zero, fibres as their muscles say."""
        found: list[float] = []
        for actuator in self.actuators:
            found += [0.0] if actuator.activation is not None else []
            found += actuator.muscle.initial() if actuator.muscle is not None else ()
        return found

    def _given(
        self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector
    ) -> Iterator[tuple[Actuator, Scalar, Scalar, Sequence[Scalar]]]:
        """Each actuator, its control, the state of its activation, or the control again, and those of its muscle."""
        first = 0
        for actuator, u in zip(self.actuators, self.controls(t, q, v, x, p), strict=True):
            own = list(x[first : first + _states(actuator)])
            first += len(own)
            a = u if actuator.activation is None else own.pop(0)
            yield actuator, u, a, own

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of each actuator its name for the state of its activation, and "fibre" beside it for that of its muscle."""
        found: list[str] = []
        for actuator in self.actuators:
            found += [actuator.name] if actuator.activation is not None else []
            found += [f"{actuator.name} fibre"] * (0 if actuator.muscle is None else actuator.muscle.states)
        return tuple(found)

    def controls(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """U, within the ranges of the actuators; one number for each."""
        asked = self._asked_for(t, q, v, x, p)
        return [within(value, *a.control_range) for value, a in zip(asked, self.actuators, strict=True)]

    def _asked_for(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """U, as it was given."""
        values: list[Scalar]
        if self.tables:
            values = at(self, self.u, t, x, p)
        elif callable(self.u):
            values = list(np.asarray(law(self.u, t, q, v, p), dtype=object).reshape(-1))
        else:
            values = [law(each, t, q, v, p) if callable(each) else float(each) for each in self.u]
        if len(values) != len(self.actuators):
            raise InputError("the control u has the wrong length", got=len(values), allowed=len(self.actuators))
        return values

    def forces(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """F of each actuator along its transmission, N m or N."""
        return self._forces(MovingFrames(self.model, q, v, own_parameters(self.model, p)), t, x, p)

    def _forces(self, places: MovingFrames, t: Scalar, x: Vector, p: Vector) -> list[Scalar]:
        asked = self._wanted(places, t, x, p)
        return [within(f, *actuator.force_range) for f, actuator in zip(asked, self.actuators, strict=True)]

    def clipped(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Scalar] | None:
        """Actuators that are at the end of the range of their control, or of that of their force."""
        places = MovingFrames(self.model, q, v, own_parameters(self.model, p))
        asked, wanted = self._asked_for(t, q, v, x, p), self._wanted(places, t, x, p)
        found = {}
        for actuator, u, f in zip(self.actuators, asked, wanted, strict=True):
            if np.isfinite((*actuator.control_range, *actuator.force_range)).any():
                at_control, at_force = beyond(u, *actuator.control_range), beyond(f, *actuator.force_range)
                found[actuator.name] = where(at_control > at_force, at_control, at_force)
        return found or None

    def _wanted(self, places: MovingFrames, t: Scalar, x: Vector, p: Vector) -> list[Scalar]:
        """F before the ranges of forces."""
        found = []
        for actuator, _, a, own in self._given(t, places.q, places.v, x, p):
            if actuator.activation is not None:
                a = within(a, *actuator.activation.range)
            way = actuator.transmission
            if actuator.muscle is not None:
                found.append(actuator.muscle.pull(a, length(places, way), speed(places, way), own))
            else:
                found.append(_affine(places, way, actuator.gain) * a + _affine(places, way, actuator.bias))
        return found

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Forces on the joints."""
        tau: list[Scalar] = [0.0] * self.model.nv
        for actuator, f in zip(self.actuators, self.forces(t, q, v, x, p), strict=True):
            joint_forces(self.model, actuator.transmission, f, tau)
        return tau

    def closure_force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Vector] | None:
        """Forces on the freedoms of closures."""
        found: dict[str, list[Scalar]] = {}
        if any(closures_along(self.model, actuator.transmission) for actuator in self.actuators):
            for actuator, f in zip(self.actuators, self.forces(t, q, v, x, p), strict=True):
                closure_forces(self.model, actuator.transmission, f, found)
        return found or None

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches | None:
        """Wrenches on bodies by actuators at frames."""
        places = MovingFrames(self.model, q, v, own_parameters(self.model, p))
        units = [wrenches(places, actuator.transmission) for actuator in self.actuators]
        if not any(units):
            return None
        found: dict[str, list[Scalar]] = {}
        for own, f in zip(units, self._forces(places, t, x, p), strict=True):
            add_pulled(found, own, f)
        return found

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """ȧ, and those of muscles; nothing leads out of the range of an activation."""
        found: list[Scalar] = []
        places = MovingFrames(self.model, q, v, own_parameters(self.model, p))
        for actuator, u, a, own in self._given(t, q, v, x, p):
            if actuator.activation is not None:
                found.append(_rate(actuator.activation, u, a))
                a = within(a, *actuator.activation.range)
            if own and actuator.muscle is not None:
                way = actuator.transmission
                found += actuator.muscle.rate(a, length(places, way), speed(places, way), own)
        return found


def _states(actuator: Actuator) -> int:
    """Numbers in the states of an actuator: of its activation, then of its muscle."""
    return (actuator.activation is not None) + (0 if actuator.muscle is None else actuator.muscle.states)


def _rate(activation: Activation, u: Scalar, a: Scalar) -> Scalar:
    """ȧ."""
    if activation.kind == "integrator":
        rate = u
    elif activation.kind == "filter":
        rate = (u - a) * (1.0 / activation.time_constant)
    else:
        excess = within(u, 0.0, 1.0) - a
        slowing = 0.5 + 1.5 * within(a, 0.0, 1.0)
        rising, falling = activation.time_constant * slowing, activation.release_time / slowing
        if activation.smoothing < 1e-15:
            time = where(excess > 0.0, rising, falling)
        else:
            s = within(excess * (1.0 / activation.smoothing) + 0.5, 0.0, 1.0)
            time = falling + (rising - falling) * (s * s * s * (s * (6.0 * s - 15.0) + 10.0))
        rate = excess / time
    low, high = activation.range
    if np.isfinite(high):
        rate = where(a > high, where(rate > 0.0, 0.0, rate), rate)
    if np.isfinite(low):
        rate = where(a < low, where(rate < 0.0, 0.0, rate), rate)
    return rate


def _affine(places: MovingFrames, way: Transmission, numbers: Sequence[float]) -> Scalar:
    constant, per_length, per_speed = numbers
    total: Scalar = constant
    if per_length:
        total = total + length(places, way) * per_length
    if per_speed:
        total = total + speed(places, way) * per_speed
    return total
