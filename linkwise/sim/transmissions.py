"""What a transmission does, over any scalar: its length, its speed, and where its force goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.model.actuation import FrameTransmission, JointTransmission, Spring, Transmission
from linkwise.model_api.model import Model
from linkwise.sim.elements import Element, Scalar, Vector
from linkwise.spatial.scalar import where

__all__ = ["ModelSprings", "joint_forces", "length", "speed", "wrench"]


def length(model: Model, transmission: Transmission, q: Vector) -> Scalar:
    """Σ g·q; of a ball joint, g · log q."""
    total: Scalar = 0.0
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        joint = model.joint(name)
        own = list(q[joint.q_slice])
        m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        if joint.nq != joint.nv:
            own = list(joint.type.difference(joint.type.neutral(), own))
        for g, x in zip(gear, own, strict=True):
            if g:
                total = total + (x * m + offset if joint.mimic else x) * g
    return total


def speed(model: Model, transmission: Transmission, q: Vector, v: Vector) -> Scalar:
    """l̇."""
    total: Scalar = 0.0
    if isinstance(transmission, FrameTransmission):
        from linkwise.sim.motion import objects

        places, moving = objects(list(q)), objects(list(v))
        R = model.pose(places, transmission.frame)[:3, :3]
        twist = model.velocity(places, moving, transmission.frame)
        own = [*(R.T @ twist[:3]), *(R.T @ twist[3:])]
        for g, x in zip(transmission.wrench, own, strict=True):
            total = total + x * g if g else total
        return total
    for name, gear in transmission.gears:
        joint = model.joint(name)
        m = joint.mimic.multiplier if joint.mimic else 1.0
        for g, x in zip(gear, v[joint.v_slice], strict=True):
            total = total + x * (g * m) if g else total
    return total


def joint_forces(model: Model, transmission: Transmission, force: Scalar, tau: list[Scalar]) -> None:
    """Add what the joints feel to nv numbers."""
    for name, gear in transmission.gears if isinstance(transmission, JointTransmission) else ():
        joint = model.joint(name)
        m = joint.mimic.multiplier if joint.mimic else 1.0
        for i, g in enumerate(gear, joint.v_slice.start):
            if g:
                tau[i] = tau[i] + force * (g * m)


def wrench(model: Model, transmission: Transmission, force: Scalar) -> tuple[str, list[Scalar]] | None:
    """The body that feels it, and [moment, force] (6) at its origin, in its frame; None where no body does."""
    if not isinstance(transmission, FrameTransmission):
        return None
    frame = model.frame(transmission.frame)
    if frame.body < 0:
        return None
    X = np.array(frame.placement)
    moment, push = np.reshape(transmission.wrench, (2, 3))
    f = X[:3, :3] @ push
    unit = [*(X[:3, :3] @ moment + np.cross(X[:3, 3], f)), *f]
    return model.bodies[frame.body].name, [force * float(x) for x in unit]


class ModelSprings(Element):
    """The springs across joints that a model has; passive, part of every simulation."""

    is_actuator = False

    def __init__(self, model: Model, springs: bool = True, damping: bool = True) -> None:
        self.model, self.springs, self.damping = model, springs, damping

    def _pull(self, spring: Spring, q: Vector, v: Vector) -> Scalar:
        total: Scalar = 0.0
        if self.springs and spring.stiffness:
            total = self._stretch(spring, q) * (-spring.stiffness)
        if self.damping and spring.damping:
            total = total - speed(self.model, spring.transmission, q, v) * spring.damping
        return total

    def _stretch(self, spring: Spring, q: Vector) -> Scalar:
        """How far beyond its slack."""
        l = length(self.model, spring.transmission, q)
        low, high = spring.rest
        if low == high:
            return l - low
        over = where(l > high, l - high, 0.0) if np.isfinite(high) else 0.0
        return where(l < low, l - low, over) if np.isfinite(low) else over

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector | None:
        """Of those along joints."""
        if not self.model.springs:
            return None
        tau: list[Scalar] = [0.0] * self.model.nv
        for spring in self.model.springs:
            joint_forces(self.model, spring.transmission, self._pull(spring, q, v), tau)
        return tau

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Vector] | None:
        """Of those at frames."""
        found: dict[str, Any] = {}
        for spring in self.model.springs:
            felt = wrench(self.model, spring.transmission, 1.0)
            if felt is not None:
                pull = self._pull(spring, q, v)
                body, unit = felt
                own = [pull * each for each in unit]
                found[body] = [a + b for a, b in zip(found[body], own, strict=True)] if body in found else own
        return found or None

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """½ Σ k d²."""
        total: Scalar = 0.0
        for spring in self.model.springs if self.springs else ():
            d = self._stretch(spring, q)
            total = total + d * d * (0.5 * spring.stiffness)
        return total
