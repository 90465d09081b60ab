"""Actuators and controllers: elements that fuse into the simulation's kernel.

Targets and gains may be numbers, vectors, or functions: ``target=lambda t, p: ...`` is traced like everything else, so
a batch can follow as many targets as it has states by reading them from ``p``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_finite, check_not_negative, check_positive
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array as objects
from linkwise.joints import Joint
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.model.model import Model, checked_model
from linkwise.sim.elements import (
    Element,
    Target,
    Vector,
    at,
    checked_numbers,
    checked_target,
    driven,
    gain,
    model_force,
    own_parameters,
    per_joint,
    tables_in,
    vector,
)
from linkwise.sim.limits import is_linear
from linkwise.sim.rosenbrock import factorized, solved
from linkwise.sim.states import warn_of_angles
from linkwise.sim.tables import Table
from linkwise.spatial.dual import derivative
from linkwise.spatial.scalar import Scalar, is_zero, minus, plus


class Torque(Element):
    """Joint forces given over time: constant, by a function, or from a table.

    ``Torque(model, tau)`` or, for a table, ``Torque(times, values)``.

    Args:
        model: the mechanism; or the times (T) of a table, s.
        tau: joint forces (nv) in N m or N, a function (t, p) of them, a :class:`Table`; or the values (..., T, nv) of a
            table, with leading axes if each member of a batch has its own.
        kind: of a table: ``"linear"``, ``"held"`` or ``"cubic"``.

    >>> push = Torque([0.0, 1.0, 2.0], [[0.0, 0.0], [5.0, 0.0], [0.0, 0.0]])
    >>> push.tables
    (<linear table of 3 times, 2 numbers each>,)
    """

    def __init__(self, model: Model | ArrayLike, tau: Target, kind: str = "linear") -> None:
        if isinstance(model, Model):
            self.tau = checked_target(tau, model.nv, "tau")
        else:
            self.tau = Table(model, tau, kind)
        self.tables = tables_in(self.tau)

    @property
    def signature(self) -> Hashable:
        """Tables of one kind are compiled once."""
        if not self.tables:
            return self
        return (type(self), self.tau.kind, self.tau.size)

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """As given."""
        return vector(at(self, self.tau, t, x, p), len(v), "tau")


class Disturbance(Torque):
    """Joint forces from outside, given as those of :class:`Torque`; effort limits do not apply to them."""

    is_actuator = False


class Tracking(Element):
    """Control towards targets ``q`` and ``v``, with gains ``kp`` and ``kd`` that are numbers or targets themselves."""

    model: Model

    def _track(self, model: Model, q: Target, v: Target, kp: Target, kd: Target) -> None:
        self.model = checked_model(model)
        do = "give a configuration of the whole model: that of a body that moves freely does not count without a gain"
        self.q = checked_target(q, model.nq, "the target q", do if not driven(model).all() else None)
        self.v = checked_target(v, model.nv, "the target v")
        if isinstance(self.q, np.ndarray):
            warn_of_angles("the target q", model, self.q, callers=4)  # the class of elements is one
        self.kp, self.kd = gain(model, kp, "kp"), gain(model, kd, "kd")
        self.tables = tables_in(self.q, self.v, self.kp, self.kd)

    def _errors(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """Distances of a state from the targets: q_d ⊖ q and v_d - v, nv numbers each."""
        wanted = vector(at(self, self.q, t, x, p), self.model.nq, "the target q")
        e = self.model.difference(objects(list(q)), objects(wanted))
        return list(e), minus(vector(at(self, self.v, t, x, p), self.model.nv, "the target v"), v)

    def _gains(self, t: Scalar, x: Vector, p: Vector) -> tuple[list[Scalar], list[Scalar]]:
        """kp and kd (nv); one number of a function counts for what is :func:`driven`."""
        kp, kd = (at(self, gain, t, x, p) for gain in (self.kp, self.kd))
        one_for_all = driven(self.model).tolist()
        kp, kd = ([each * value for each in one_for_all] if np.ndim(value) == 0 else value for value in (kp, kd))
        return vector(kp, self.model.nv, "a gain"), vector(kd, self.model.nv, "a gain")

    def _towards(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """kp (q_d ⊖ q) + kd (v_d - v)."""
        (error, rate), (kp, kd) = self._errors(t, q, v, x, p), self._gains(t, x, p)
        return [a * e + b * r for a, e, b, r in zip(kp, error, kd, rate, strict=True)]

    def _gravity(self, t: Scalar, q: Vector, x: Vector, p: Vector) -> list[Scalar]:
        """g(q), but not of bodies that move freely beside joints, and that no gain holds."""
        g, free = model_force(self.model, "gravity_force", p, q), self._left_free(t, x, p)
        return [0.0 if k in free else force for k, force in enumerate(g)]

    def _left_free(self, t: Scalar, x: Vector, p: Vector) -> list[int]:
        """Freedoms of bodies that move freely beside joints, and that no gain holds."""
        gains = zip(driven(self.model).tolist(), *self._gains(t, x, p), strict=True)
        return [k for k, each in enumerate(gains) if all(map(is_zero, each))]


class PD(Tracking):
    """A spring and a damper towards a target: τ = kp (q_d ⊖ q) + kd (v_d - v), with gravity compensated if wanted.

    Args:
        model: the mechanism.
        q: target configuration (nq), a function (t, p) of it, or a :class:`Table`.
        v: target velocity (nv), a function (t, p) of it, or a :class:`Table`.
        kp: N m/rad or N/m, one for each freedom, or a function (t, p) of them; one for all joints, of which bodies that
            move freely (a robot's base, a box beside an arm) are none.
        kd: N m s/rad or N s/m, likewise.
        gravity: whether to add g(q), to those that are held.
    """

    def __init__(
        self, model: Model, q: Target, v: Target = 0.0, *, kp: Target = 100.0, kd: Target = 10.0, gravity: bool = False
    ) -> None:
        self._track(model, q, v, kp, kd)
        self.gravity = bool(gravity)

    def implicit_gains(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Those of the law, where they are numbers."""
        return None if callable(self.kp) or callable(self.kd) else (self.kp, self.kd)

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Towards the target."""
        tau = self._towards(t, q, v, x, p)
        return plus(tau, self._gravity(t, q, x, p)) if self.gravity else tau


class ComputedTorque(Tracking):
    """Inverse dynamics of the target's acceleration and a PD law: the error obeys ë + kd ė + kp e = 0.

    Args:
        model: the mechanism the controller believes in.
        q: target configuration (nq), a function (t, p) of it, or a :class:`Table`.
        v: target velocity (nv), a function (t, p), or a :class:`Table`.
        vdot: target acceleration (nv), a function (t, p), or a :class:`Table`.
        kp: 1/s², one for each freedom, or a function (t, p) of them; one for all joints, as of :class:`PD`.
        kd: 1/s, likewise.

    What moves freely without a gain gets no force: it moves as it does where only the joints' motors act, which the
    joints' forces are reckoned with. What touches the base is not known to the controller.
    """

    def __init__(
        self, model: Model, q: Target, v: Target = 0.0, vdot: Target = 0.0, *, kp: Target = 100.0, kd: Target = 20.0
    ) -> None:
        self._track(model, q, v, kp, kd)
        self.vdot = checked_target(vdot, model.nv, "the target vdot")
        self.tables = (*self.tables, *tables_in(self.vdot))

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Force that moves the model as wanted."""
        wanted = vector(at(self, self.vdot, t, x, p), self.model.nv, "the target vdot")
        vdot = plus(wanted, self._towards(t, q, v, x, p))
        free = self._left_free(t, x, p)
        for k in free:
            vdot[k] = 0.0
        tau = model_force(self.model, "inverse_dynamics", p, q, v, objects(vdot))
        if not free:
            return tau
        M = self.model.mass_matrix(objects(list(q)), p=own_parameters(self.model, p))
        moves = solved(factorized([[M[i, j] for j in free] for i in free]), [-tau[i] for i in free])
        for i in range(len(tau)):
            tau[i] = 0.0 if i in free else tau[i] + sum((M[i, j] * a for j, a in zip(free, moves, strict=True)), 0.0)
        return tau


class JointSprings(Element):
    """Springs and dampers at joints: -∂U/∂q - c v with U = ½ Σ k d², d = q ⊖ rest.

    Where q̇ = v that is -k d - c v; elsewhere the gradient is taken in the joint's own chart, so that springs keep the
    energy whatever they turn. Passive: effort limits do not apply to them.

    Args:
        model: the mechanism.
        stiffness: N m/rad or N/m, one for all or one for each freedom (0 where there is no spring).
        damping: N m s/rad or N s/m.
        rest: configuration (nq) in which the springs are relaxed; the neutral one if not given.
    """

    is_actuator = False
    cause = "springs"

    def __init__(
        self, model: Model, stiffness: ArrayLike, damping: ArrayLike = 0.0, rest: ArrayLike | None = None
    ) -> None:
        self.model = checked_model(model)
        self.k, self.c = per_joint(model, stiffness, "stiffness"), per_joint(model, damping, "damping")
        for what, values in (("stiffness", self.k), ("damping", self.c)):
            if (values < 0.0).any():
                raise InputError(f"{what} is negative", got=str(values), allowed="numbers >= 0")
        self.rest = checked_numbers(model.neutral() if rest is None else rest, model.nq, "rest")

    def _springs(self) -> list[tuple[JointInstance, list[float], list[float]]]:
        """Each joint that has springs, with its stiffnesses and its relaxed coordinates."""
        return [
            (joint, self.k[joint.v_slice].tolist(), self.rest[joint.q_slice].tolist())
            for joint in self.model.joints
            if joint.mimic is None and self.k[joint.v_slice].any()
        ]

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Back to rest."""
        tau = [-(float(c) * rate) for c, rate in zip(self.c, v, strict=True)]
        for joint, k, rest in self._springs():
            start, own = joint.v_slice.start, list(q[joint.q_slice])
            for i in range(joint.nv):
                if is_linear(joint.type):
                    pull = k[i] * (own[i] - rest[i])
                else:
                    along = [1.0 if j == i else 0.0 for j in range(joint.nv)]
                    moved = partial(_moved_energy, joint.type, k, rest, own)
                    pull = derivative(moved, [0.0] * joint.nv, along)[1][0]
                tau[start + i] = tau[start + i] - pull
        return tau

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """½ Σ k d²."""
        total: Scalar = 0.0
        for joint, k, rest in self._springs():
            total = total + _spring_energy(joint.type, k, rest, list(q[joint.q_slice]))
        return total


def _spring_energy(kind: Joint, k: list[float], rest: list[float], q: Sequence[Scalar]) -> Scalar:
    """½ Σ k d² of one joint."""
    total: Scalar = 0.0
    for stiffness, d in zip(k, kind.difference(rest, q), strict=True):
        total = total + 0.5 * stiffness * (d * d)
    return total


def _moved_energy(kind: Joint, k: list[float], rest: list[float], q: list[Scalar], u: Sequence[Scalar]) -> list[Scalar]:
    """½ Σ k d² at q ∘ exp(u)."""
    return [_spring_energy(kind, k, rest, kind.integrate(q, u))]


class SeriesElastic(Element):
    """Series-elastic actuators: a motor behind a gear pushes the joint through a spring.

    The states are the motors' positions and velocities, on the joint's side of the gear: θ̈ J = τ_m - b θ̇ - k (θ - q),
    τ = k (θ - q). The motor follows ``command`` by its own torque τ_m = kp (command - θ) - kd θ̇.

    Args:
        model: the mechanism.
        joints: names of the joints (with one freedom each) that are driven.
        command: motor positions (n), or a function (t, p) of them.
        stiffness: of the springs, N m/rad or N/m.
        inertia: of the motors behind their gears, kg m² or kg.
        kp: motor position gain.
        kd: motor damping gain.
        friction: b, viscous friction in the gear.
        start: motor positions at the start (n).
    """

    def __init__(
        self,
        model: Model,
        joints: Sequence[str],
        command: Target,
        *,
        stiffness: float = 1000.0,
        inertia: float = 0.1,
        kp: float = 1000.0,
        kd: float = 20.0,
        friction: float = 0.0,
        start: Sequence[float] | None = None,
    ) -> None:
        self.model = checked_model(model)
        found = [model.joints[name] for name in joints]
        for joint in found:
            if joint.nv != 1 or joint.nq != 1 or joint.mimic is not None:
                raise InputError(f"joint {joint.name!r} does not have one freedom of its own", got=repr(joint.type))
        self.joints = tuple(joint.name for joint in found)
        self.q_places = [joint.q_slice.start for joint in found]
        self.v_places = [joint.v_slice.start for joint in found]
        check_positive(inertia=inertia)
        check_not_negative(stiffness=stiffness, friction=friction)
        check_finite(kp=kp, kd=kd)
        self.n = len(found)
        self.nx = 2 * self.n
        self.command = checked_target(command, self.n, "the command")
        self.tables = tables_in(self.command)
        self.k, self.inertia, self.b = float(stiffness), float(inertia), float(friction)
        self.kp, self.kd = float(kp), float(kd)
        self.start = checked_numbers(0.0 if start is None else start, self.n, "start", one_for_all=start is None)

    @property
    def state_names(self) -> tuple[str, ...]:
        """Of each joint its motor's position, then of each its velocity."""
        return (*(f"{name} motor" for name in self.joints), *(f"{name} motor speed" for name in self.joints))

    def initial(self) -> Sequence[float]:
        """Motors at rest."""
        return [*self.start.tolist(), *([0.0] * self.n)]

    def _stretch(self, q: Vector, x: Vector) -> list[Scalar]:
        return [x[k] - q[place] for k, place in enumerate(self.q_places)]

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The springs'."""
        tau: list[Scalar] = [0.0] * self.model.nv
        for place, stretch in zip(self.v_places, self._stretch(q, x), strict=True):
            tau[place] = self.k * stretch
        return tau

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """The motors' velocities and accelerations."""
        wanted = vector(at(self, self.command, t, x, p), self.n, "the command")
        theta, omega = list(x[: self.n]), list(x[self.n : self.nx])
        out = list(omega)
        for goal, a, w, stretch in zip(wanted, theta, omega, self._stretch(q, x), strict=True):
            out.append((self.kp * (goal - a) - (self.kd + self.b) * w - self.k * stretch) * (1.0 / self.inertia))
        return out

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """Of the springs and the motors."""
        total: Scalar = 0.0
        for stretch in self._stretch(q, x):
            total = total + (0.5 * self.k) * (stretch * stretch)
        for w in x[self.n : self.nx]:
            total = total + (0.5 * self.inertia) * (w * w)
        return total
