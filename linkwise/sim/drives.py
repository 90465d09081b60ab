"""The actuators that a model's file describes, as an element of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.actuation import Actuator
from linkwise.model.model import Model
from linkwise.model.transmissions import add_pulled, joint_forces, length, speed, wrenches
from linkwise.sim.elements import Element, Scalar, Vector, checked_numbers
from linkwise.sim.targets import own_parameters
from linkwise.spatial.scalar import where

__all__ = ["Actuators"]

Control = float | ArrayLike | Mapping[str, Any] | Callable[..., Any]
_LONGEST_TABLE = 2000


class Actuators(Element):
    """The actuators of a model (``model.actuators``), driven by a control u.

    Args:
        model: the mechanism.
        u: one number for all or one for each actuator; a function ``(t, q, v, p)`` that returns them; a mapping of
            names to numbers or such functions, the others at zero; or, with ``times``, a table (T, n).
        times: when the rows of a table hold, s, increasing; linear between, constant before and after.
        names: the actuators that act, in the order of u; all of the model if not given.

    Example:
        >>> import linkwise as lw
        >>> b = lw.ModelBuilder("arm")
        >>> b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), joint_name="pin")
        >>> b.add_actuator(lw.Actuator("servo", lw.JointTransmission({"pin": 1.0}), gain=(50, 0, 0), bias=(0, -50, -5)))
        >>> model = b.build()
        >>> motion = lw.simulate(model, [0.0], duration=5.0, control=lw.Actuators(model, u=0.5))
        >>> round(float(motion.q[-1, 0]), 3)
        0.457
    """

    def __init__(
        self, model: Model, u: Control = 0.0, *, times: ArrayLike | None = None, names: Sequence[str] | None = None
    ) -> None:
        if not model.actuators:
            raise InputError(f"the model {model.name!r} has no actuators", do="add some: builder.add_actuator(…)")
        known = {actuator.name: actuator for actuator in model.actuators}
        for name in names or ():
            if name not in known:
                raise UnknownNameError("actuator", name, known)
        self.model = model
        self.actuators: tuple[Actuator, ...] = tuple(known[name] for name in (known if names is None else names))
        self.times: Any = None
        n = len(self.actuators)
        if times is not None:
            self.times, self.u = _table(times, u, n)
        elif isinstance(u, Mapping):
            own = [actuator.name for actuator in self.actuators]
            for name in u:
                if name not in own:
                    raise UnknownNameError("actuator", name, own)
            self.u = tuple(u.get(name, 0.0) for name in own)
        elif callable(u):
            self.u = u
        else:
            self.u = tuple(checked_numbers(u, n, "u", one_for_all=True).tolist())
        self.nx = sum(actuator.activation is not None for actuator in self.actuators)

    def controls(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> list[Scalar]:
        """U, within the ranges of the actuators; one number for each."""
        if self.times is not None:
            values = self._looked_up(t)
        elif callable(self.u):
            values = list(np.asarray(self.u(t, q, v, p), dtype=object).reshape(-1))
        else:
            values = [each(t, q, v, p) if callable(each) else float(each) for each in self.u]
        if len(values) != len(self.actuators):
            raise InputError("the control u has the wrong length", got=len(values), allowed=len(self.actuators))
        return [_within(value, a.control_range) for value, a in zip(values, self.actuators, strict=True)]

    def forces(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """F of each actuator along its transmission, N m or N."""
        found, state = [], 0
        for actuator, a in zip(self.actuators, self.controls(t, q, v, p), strict=True):
            if actuator.activation is not None:
                a = _within(x[state], actuator.activation.range)
                state += 1
            f = self._affine(actuator, actuator.gain, q, v, p) * a + self._affine(actuator, actuator.bias, q, v, p)
            found.append(_within(f, actuator.force_range))
        return found

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """What the joints feel."""
        tau: list[Scalar] = [0.0] * self.model.nv
        for actuator, f in zip(self.actuators, self.forces(t, q, v, x, p), strict=True):
            joint_forces(self.model, actuator.transmission, f, tau)
        return tau

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Vector] | None:
        """What bodies feel of actuators at frames."""
        felt = [
            wrenches(self.model, actuator.transmission, q, own_parameters(self.model, p)) for actuator in self.actuators
        ]
        if not any(felt):
            return None
        found: dict[str, Any] = {}
        for own, f in zip(felt, self.forces(t, q, v, x, p), strict=True):
            add_pulled(found, own, f)
        return found

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """ȧ; nothing leads out of the range of an activation."""
        found: list[Scalar] = []
        for actuator, u in zip(self.actuators, self.controls(t, q, v, p), strict=True):
            activation = actuator.activation
            if activation is None:
                continue
            a = x[len(found)]
            rate = u if activation.kind == "integrator" else (u - a) * (1.0 / activation.time_constant)
            low, high = activation.range
            if np.isfinite(high):
                rate = where(a > high, where(rate > 0.0, 0.0, rate), rate)
            if np.isfinite(low):
                rate = where(a < low, where(rate < 0.0, 0.0, rate), rate)
            found.append(rate)
        return found

    def _affine(self, actuator: Actuator, numbers: Sequence[float], q: Vector, v: Vector, p: Vector) -> Scalar:
        constant, per_length, per_speed = numbers
        own = own_parameters(self.model, p)
        total: Scalar = constant
        if per_length:
            total = total + length(self.model, actuator.transmission, q, own) * per_length
        if per_speed:
            total = total + speed(self.model, actuator.transmission, q, v, own) * per_speed
        return total

    def _looked_up(self, t: Scalar) -> list[Scalar]:
        """u₀ + Σ slope · (the part of each interval that is over)."""
        values: list[Scalar] = [float(x) for x in self.u[0]]
        for k in range(len(self.times) - 1):
            start, end = float(self.times[k]), float(self.times[k + 1])
            change = self.u[k + 1] - self.u[k]
            if not change.any():
                continue
            share = (where(t < start, start, where(t > end, end, t)) - start) * (1.0 / (end - start))
            values = [x + share * float(d) if d else x for x, d in zip(values, change, strict=True)]
        return values


def _table(times: ArrayLike, u: Any, n: int) -> tuple[Any, Any]:
    at = np.asarray(times, float).reshape(-1)
    table = np.asarray(u, float)
    table = table[:, None] if table.ndim == 1 and n == 1 else table
    if table.shape != (len(at), n) or not (np.isfinite(table).all() and np.isfinite(at).all()):
        raise InputError(
            "the table of controls does not fit", got=f"shape {table.shape} for {len(at)} times", allowed=f"(T, {n})"
        )
    if not 0 < len(at) <= _LONGEST_TABLE or not (np.diff(at) > 0.0).all():
        raise InputError(
            "the times of a table of controls are not possible",
            got=f"{len(at)} times",
            allowed=f"1 to {_LONGEST_TABLE}, increasing",
            do="thin the table out, or simulate piece by piece with x0=motion.x[-1]",
        )
    return at, table


def _within(value: Scalar, bounds: tuple[float, float]) -> Scalar:
    low, high = bounds
    if np.isfinite(high):
        value = where(value > high, high, value)
    return where(value < low, low, value) if np.isfinite(low) else value
