"""Wheels that store momentum: reaction wheels and control moment gyros, with their motors.

A wheel is a body on a joint, so its gyroscopic moments, its imbalance and its coupling with everything else are those
of the mechanism, with nothing left out, and the elements here are the motors. One that is balanced needs no body:
:class:`BalancedWheel` has its momentum as a state, exact as well, and less work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.checks import check_finite, check_not_negative, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.joints import Revolute
from linkwise.mechanism.placement import transform
from linkwise.model.model import Model, ModelBuilder
from linkwise.sim.elements import (
    Element,
    Vector,
    Wrenches,
    checked_direction,
    checked_numbers,
    frame_velocity,
    law,
    vector,
)
from linkwise.spatial.scalar import Scalar, clip, exp, tanh, where, within
from linkwise.spatial.vectors import Vec

Command = Any  # a number, numbers, or a function (t, q, v, p) of them

_NEAR_TOP = 0.01  # of the top speed: over this range the motor fades


def asked(command: Command, t: Scalar, q: Vector, v: Vector, p: Vector, size: int, what: str) -> list[Scalar]:
    """Numbers of a command at a state."""
    return vector(law(command, t, q, v, p) if callable(command) else command, size, what)


def checked_command(command: Command, size: int, what: str) -> Command:
    """Function as it is; numbers checked, the same for all or each its own."""
    return command if callable(command) else checked_numbers(command, size, what, one_for_all=True)


def add_wheel(
    builder: ModelBuilder,
    name: str,
    parent: str,
    axis: Sequence[float],
    *,
    inertia: float,
    across: float | None = None,
    mass: float = 1.0,
    place: Sequence[float] = (0.0, 0.0, 0.0),
    static_imbalance: float = 0.0,
    dynamic_imbalance: float = 0.0,
) -> None:
    """Add a wheel to a model that is being built: a body on a revolute joint named ``name + "_joint"``.

    Args:
        builder: of the model.
        name: of the wheel.
        parent: body that carries it.
        axis: of its spin, in the parent's axes.
        inertia: along the axis, kg m².
        across: inertia across the axis, kg m²; half of that along it, as of a thin disc, if not given.
        mass: kg.
        place: of its centre in the parent's frame, m.
        static_imbalance: mass times the distance of the mass centre from the axis, kg m.
        dynamic_imbalance: product of inertia between the axis and a direction across it, kg m².
    """
    n = checked_direction(axis, "the axis")
    check_positive(inertia=inertia, mass=mass)
    check_not_negative(static_imbalance=static_imbalance, dynamic_imbalance=dynamic_imbalance)
    sideways = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
    u = sideways / np.linalg.norm(sideways)
    # A thin disc with a product of inertia would be no rigid body: a little more thickness makes it one.
    thin = inertia / 2.0 + 4.0 * dynamic_imbalance**2 / inertia
    cross = thin if across is None else float(across)
    J = inertia * np.outer(n, n) + cross * (np.eye(3) - np.outer(n, n))
    J = J + dynamic_imbalance * (np.outer(n, u) + np.outer(u, n))
    com = tuple((u * (static_imbalance / mass)).tolist())
    builder.add_body(name, parent, Revolute(tuple(n.tolist())), transform(xyz=tuple(place)), mass, com, J)


@dataclass(frozen=True)
class Motor:
    """Motor of a wheel, with the friction of its bearing.

    Friction is viscous and dry, the latter with a peak near rest (Stribeck): -c Ω - [f + (f_s - f) exp(-(Ω/β)²)]
    tanh(Ω/ω_s). Near its top speed a motor fades, and can only brake.

    Args:
        limit: largest torque, N m.
        top_speed: rad/s.
        viscous: c, N m s/rad.
        dry: f, N m.
        static: f_s, N m; as large as ``dry`` if not given.
        static_speed: β, rad/s.
        smooth_speed: ω_s, rad/s, below which dry friction is made smooth.
    """

    limit: float = np.inf
    top_speed: float = np.inf
    viscous: float = 0.0
    dry: float = 0.0
    static: float | None = None
    static_speed: float = 0.15
    smooth_speed: float = 1e-3

    def __post_init__(self) -> None:
        check_not_negative(limit=self.limit, top_speed=self.top_speed, or_infinite=True)
        check_not_negative(viscous=self.viscous, dry=self.dry)
        check_positive(static_speed=self.static_speed, smooth_speed=self.smooth_speed)
        if self.static is not None and self.static < self.dry:
            raise InputError("static friction is less than dry friction", got=f"{self.static} < {self.dry} N m")

    @property
    def needs_speed(self) -> bool:
        """Whether what it does depends on its speed."""
        return bool(np.isfinite(self.top_speed) or self.viscous or self.dry or self.static)

    def torque(self, wanted: Scalar, speed: Scalar) -> Scalar:
        """Torque in N m, within what it can at a speed in rad/s."""
        given = within(wanted, -self.limit, self.limit)
        if np.isfinite(self.top_speed):
            left = (self.top_speed - abs(speed)) * (1.0 / (_NEAR_TOP * self.top_speed))
            given = given * where(given * speed > 0.0, clip(left, 0.0, 1.0), 1.0)
        return given

    def friction(self, speed: Scalar) -> Scalar:
        """Torque of friction at a speed in rad/s, N m."""
        out = speed * -self.viscous
        static = self.dry if self.static is None else self.static
        if static:
            peak = exp(-(speed * speed) * (1.0 / self.static_speed**2)) * (static - self.dry)
            out = out - (peak + self.dry) * tanh(speed * (1.0 / self.smooth_speed))
        return out


class Wheel(Element):
    """Motors of one or several wheels that are bodies, each on a revolute joint of the model.

    Args:
        model: the mechanism, with wheels that :func:`add_wheel` made, or any revolute joints.
        joints: name of the wheel's body or joint, or several of them.
        torque: N m, one for all, one for each, or a function ``(t, q, v, p)`` of them.
        motor: numbers of their :class:`Motor`, one for all: ``limit=0.2, top_speed=600.0, viscous=1e-4``.
    """

    def __init__(self, model: Model, joints: str | Sequence[str], torque: Command, **motor: float) -> None:
        self.model, self.places, self.names = model, *places_of(model, joints)
        self.motor = Motor(**motor)
        self.torque = checked_command(torque, len(self.places), "the torque")

    def _torques(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> list[tuple[str, int, Scalar, Scalar]]:
        """Of each wheel: its name, its place in v, the torque that is wanted, and that of the motor."""
        wanted = asked(self.torque, t, q, v, p, len(self.places), "the torque")
        return [
            (name, place, torque, self.motor.torque(torque, v[place]))
            for name, place, torque in zip(self.names, self.places, wanted, strict=True)
        ]

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Motor and friction at the wheels' joints."""
        tau: list[Scalar] = [0.0] * self.model.nv
        for _, place, _, torque in self._torques(t, q, v, p):
            tau[place] = torque + self.motor.friction(v[place])
        return tau

    def clipped(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Scalar] | None:
        """Motors that give less than they are asked for."""
        if not np.isfinite(min(self.motor.limit, self.motor.top_speed)):
            return None
        return {name: _less(wanted, given) for name, _, wanted, given in self._torques(t, q, v, p)}


def _less(wanted: Scalar, given: Scalar) -> Scalar:
    return where(abs(wanted - given) > 1e-9 * abs(wanted), 1.0, 0.0)


class BalancedWheel(Element):
    """Wheel on a body that is no body of the model: balanced, and symmetric about its axis.

    The state is the wheel's momentum about its own axis n, h = J (Ω + n·ω) with Ω its speed against the body; the body
    feels -ḣ n - ω × (n h), and ḣ is the torque of motor and friction. This is exact when the body's inertia includes
    the wheel's mass and its inertia across the axis, but *not* the inertia J along it. The body's own share of the
    spin, J n·ω, is in h: a wheel at rest against a turning body starts with ``start=J * n·ω``. If the model's inertia
    does include J, the body reacts by J / (its inertia along n) too slowly. Total momentum, the body's plus n h, is
    kept in both cases.

    Args:
        model: the mechanism.
        body: name of the body that carries the wheel.
        axis: spin axis in the body's frame.
        torque: motor torque in N m, a number or a function ``(t, q, v, p)``.
        start: spin momentum at the start, N m s.
        inertia: J in kg m²; if given, the wheel's energy h²/(2 J) counts in ``Trajectory.energy``. Friction and a top
            speed need it.
        motor: numbers of its :class:`Motor`.
    """

    nx = 1

    def __init__(
        self,
        model: Model,
        body: str,
        axis: Sequence[float],
        torque: Command,
        *,
        start: float = 0.0,
        inertia: float | None = None,
        **motor: float,
    ) -> None:
        self.motor = Motor(**motor)
        if inertia is not None:
            check_positive(inertia=inertia)
        elif self.motor.needs_speed:
            raise InputError(
                "the speed of a wheel follows from its momentum by its inertia", got="inertia=None", do="give inertia"
            )
        check_finite(start=start)
        self.model, self.body, self.inertia = model, model.bodies[body].name, inertia
        self.axis = tuple(checked_direction(axis, "the axis").tolist())
        self.torque, self.start = checked_command(torque, 1, "the torque"), float(start)

    def initial(self) -> Sequence[float]:
        """The spin given."""
        return [self.start]

    def _turning(self, q: Vector, v: Vector, p: Vector) -> Vec:
        """Angular velocity of the body in its axes."""
        return frame_velocity(self.model, q, v, p, self.body, reference="local")[0]

    def _torques(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> tuple[Scalar, Scalar, Scalar]:
        """Torque that is wanted of the motor, what it gives, and what friction does."""
        (wanted,) = asked(self.torque, t, q, v, p, 1, "the torque")
        speed: Scalar = 0.0
        if self.motor.needs_speed and self.inertia is not None:
            speed = x[0] * (1.0 / self.inertia) - Vec.of(self.axis).dot(self._turning(q, v, p))
        return wanted, self.motor.torque(wanted, speed), self.motor.friction(speed)

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """Reaction and gyroscopic moment on the body."""
        n, (_, push, friction) = Vec.of(self.axis), self._torques(t, q, v, x, p)
        moment = n * -(push + friction) - self._turning(q, v, p).cross(n * x[0])
        return {self.body: [*moment, 0.0, 0.0, 0.0]}

    def rate(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Torque of motor and friction."""
        _, push, friction = self._torques(t, q, v, x, p)
        return [push + friction]

    def clipped(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> dict[str, Scalar] | None:
        """Whether the motor gives less than it is asked for."""
        if not np.isfinite(min(self.motor.limit, self.motor.top_speed)):
            return None
        wanted, given, _ = self._torques(t, q, v, x, p)
        return {f"{self.body} wheel": _less(wanted, given)}

    def energy(self, q: Vector, x: Vector, p: Vector) -> Scalar:
        """h²/(2 J), if J is known."""
        return 0.0 if self.inertia is None else x[0] * x[0] * (0.5 / float(self.inertia))


def places_of(model: Model, joints: str | Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Places in v of joints with one freedom each, given by their names or by those of their bodies, and the names."""
    names = (joints,) if isinstance(joints, str) else tuple(joints)
    if not names:
        raise InputError("no wheel is named", got=repr(joints), allowed="names of joints or bodies")
    found = [model.joints[name if name in model.joints.names else f"{name}_joint"] for name in names]
    for joint in found:
        if joint.nv != 1 or joint.nq != 1 or joint.mimic is not None:
            raise InputError(f"joint {joint.name!r} does not have one freedom of its own", got=repr(joint.type))
    return tuple(joint.v_slice.start for joint in found), names


def add_gyro(
    builder: ModelBuilder,
    name: str,
    parent: str,
    spin: Sequence[float],
    gimbal: Sequence[float],
    *,
    inertia: float,
    across: float | None = None,
    mass: float = 1.0,
    gimbal_mass: float = 1.0,
    gimbal_inertia: float = 0.01,
    place: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Add a control moment gyro: a gimbal, a body named ``name + " gimbal"``, and in it a rotor named ``name``.

    Args:
        builder: of the model.
        name: of the rotor.
        parent: body that carries the gimbal.
        spin: axis of the rotor at the gimbal's zero, in the parent's axes.
        gimbal: axis of the gimbal, in the parent's axes.
        inertia: of the rotor along its axis, kg m².
        across: of the rotor across its axis, kg m²; half of that along it if not given.
        mass: of the rotor, kg.
        gimbal_mass: kg.
        gimbal_inertia: of the gimbal, about any axis, kg m².
        place: of the centre in the parent's frame, m.
    """
    g, s = checked_direction(gimbal, "the gimbal's axis"), checked_direction(spin, "the spin axis")
    if abs(float(g @ s)) > 1e-9:
        raise InputError("spin and gimbal axes are not at right angles", got=f"cosine {float(g @ s):.3g}")
    check_positive(gimbal_inertia=gimbal_inertia)
    frame, J = f"{name} gimbal", gimbal_inertia * np.eye(3)
    builder.add_body(
        frame, parent, Revolute(tuple(g.tolist())), transform(xyz=tuple(place)), gimbal_mass, (0.0, 0.0, 0.0), J
    )
    add_wheel(builder, name, frame, s.tolist(), inertia=inertia, across=across, mass=mass)


class ControlMomentGyro(Element):
    """Motors of a control moment gyro: a servo turns the gimbal at a rate; the rotor keeps its speed, or is driven too.

    Args:
        model: the mechanism, with a gyro that :func:`add_gyro` made.
        name: of the gyro.
        rate: of the gimbal, rad/s, a number or a function ``(t, q, v, p)``.
        gain: of the servo, N m s/rad.
        limit: largest torque of the gimbal's motor, N m.
        spin: speed in rad/s that a regulator keeps the rotor at; None leaves it to itself, without friction.
        spin_gain: of that regulator, N m s/rad.
        spin_torque: motor torque of a rotor of variable speed, N m, a number or a function ``(t, q, v, p)``.
    """

    def __init__(
        self,
        model: Model,
        name: str,
        rate: Command,
        *,
        gain: float = 100.0,
        limit: float = np.inf,
        spin: float | None = None,
        spin_gain: float = 10.0,
        spin_torque: Command | None = None,
    ) -> None:
        self.model, self.name = model, name
        (self.gimbal, self.rotor), _ = places_of(model, (f"{name} gimbal", name))
        check_positive(gain=gain, spin_gain=spin_gain)
        check_not_negative(limit=limit, or_infinite=True)
        if spin is not None:
            check_finite(spin=spin)
            if spin_torque is not None:
                raise InputError("a rotor is regulated or driven, not both", got="spin and spin_torque")
        self.gain, self.limit, self.spin, self.spin_gain = float(gain), float(limit), spin, float(spin_gain)
        self.rate_asked = checked_command(rate, 1, "the rate")
        self.spin_torque = None if spin_torque is None else checked_command(spin_torque, 1, "the torque")

    def force(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Vector:
        """Torques of both motors."""
        tau: list[Scalar] = [0.0] * self.model.nv
        servo = (asked(self.rate_asked, t, q, v, p, 1, "the rate")[0] - v[self.gimbal]) * self.gain
        tau[self.gimbal] = within(servo, -self.limit, self.limit)
        if self.spin is not None:
            tau[self.rotor] = (float(self.spin) - v[self.rotor]) * self.spin_gain
        elif self.spin_torque is not None:
            tau[self.rotor] = asked(self.spin_torque, t, q, v, p, 1, "the torque")[0]
        return tau
