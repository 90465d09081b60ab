"""The sensors that a model's file describes, read along a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.actuation import Sensor, Transmission, ratio
from linkwise.mechanism.equipment import closing_joint
from linkwise.mechanism.placement import quaternions_of
from linkwise.memoized import cached_property
from linkwise.model.transmissions import MovingFrames, length, speed
from linkwise.sim.drives import Drives
from linkwise.sim.elements import own_parameters
from linkwise.sim.sensors import Seed, field_at, held_acceleration, model_of, noisy, outside_forces
from linkwise.sim.touched import contacts_of
from linkwise.sim.trajectory import Trajectory

__all__ = ["Instruments"]


@dataclass(frozen=True)
class Instruments:
    """The sensors of a model (``model.sensors``).

    Args:
        names: those to read; all that can be, if not given.
        drives: the :class:`Drives` of the run, first in its ``control``: sensors of their forces need to know u.
    """

    names: Sequence[str] | None = None
    drives: Drives | None = None

    def read(self, trajectory: Trajectory, rng: Seed = None) -> dict[str, Array]:
        """For each sensor its readings (..., T, size), with its noise; SI units, rad, quaternions w, x, y, z."""
        model = model_of(trajectory)
        generator = np.random.default_rng(rng)
        if self.names is None:
            of_drives = ("actuator_force", "tendon_drive_force")
            known = [s for s in model.sensors if s.kind not in of_drives or self.drives is not None]
            chosen = [s for s in known if s.kind != "touch" or contacts_of(trajectory) is not None]
        else:
            chosen = [model.sensors[name] for name in self.names]
        run = _ReadMotion(trajectory, model, self.drives)
        found = {}
        for sensor in chosen:
            clean = _READINGS[sensor.kind](run, sensor)
            read = noisy(np.asarray(clean, float), sensor.noise, 0.0, generator)
            found[sensor.name] = np.clip(read, -sensor.cutoff, sensor.cutoff) if sensor.cutoff else read
        return found


class _ReadMotion:
    """A trajectory, and what sensors ask of it.

    How all bodies move comes from two sweeps over the links, which need no compilation, for as many sensors as there
    are. Where bodies deform or parameters vary from run to run, each frame is asked for by itself, once.
    """

    def __init__(self, trajectory: Trajectory, model: Any, drives: Drives | None) -> None:
        self.trajectory, self.model, self.drives = trajectory, model, drives
        self.q, self.v, self.p = trajectory.q, trajectory.v, trajectory.model_parameters
        self.swept = self.p is None and not model._is_flexible
        self.known: dict[tuple[str, str], Array] = {}

    def _once(self, what: str, frame: str, make: Callable[[], Array]) -> Array:
        if (what, frame) not in self.known:
            self.known[what, frame] = make()
        return self.known[what, frame]

    @cached_property
    def _operators(self) -> Any:
        return self.model.operators(self.q, self.v)

    @cached_property
    def _poses(self) -> Array:
        return np.asarray(self.model.poses(self.q))

    @cached_property
    def _V(self) -> Array:
        """Of each body (..., n, 6), in its own axes."""
        return np.asarray(self._operators.V).reshape(*self.q.shape[:-1], -1, 6)

    @cached_property
    def _alpha(self) -> Array:
        """φ*(H*v̇ + a) of each body (..., n, 6): gravity is in a, as the acceleration of what holds against it."""
        ops = self._operators
        return np.asarray(ops.phi.T @ (ops.H.T @ self.trajectory.vdot + ops.a)).reshape(self._V.shape)

    def _carried(self, name: str) -> tuple[Array, Array, Array, Array]:
        """Of the body that carries a frame: R, V, α; and the way from its origin to the frame's, in its axes."""
        frame = self.model.frame(name)
        k, r = frame.body, np.array(frame.placement)[:3, 3]
        if k < 0:
            none = np.zeros((*self.q.shape[:-1], 6))
            still = none.copy()
            still[..., 3:] = -np.asarray(self.model.gravity)
            return np.broadcast_to(np.eye(3), (*none.shape[:-1], 3, 3)), none, still, r
        return self._poses[..., k, :3, :3], self._V[..., k, :], self._alpha[..., k, :], r

    def pose(self, name: str) -> Array:
        """4×4, in the world."""
        if not self.swept:
            return self._once("pose", name, lambda: self.model.pose(self.q, name, p=self.p))
        frame = self.model.frame(name)
        X = np.array(frame.placement)
        return (
            np.broadcast_to(X, (*self.q.shape[:-1], 4, 4)) if frame.body < 0 else self._poses[..., frame.body, :, :] @ X
        )

    def twist(self, name: str) -> Array:
        """[ω, v] of the frame at its origin, world axes."""
        if not self.swept:
            return self._once("twist", name, lambda: self.model.velocity(self.q, self.v, name, p=self.p))
        R, V, _, r = self._carried(name)
        omega, v = V[..., :3], V[..., 3:]
        return np.concatenate([_times(R, omega), _times(R, v + np.cross(omega, r))], axis=-1)

    def acceleration(self, name: str) -> Array:
        """[ω̇, v̇] of the frame's origin, world axes, with that of a support that holds it against gravity."""
        if not self.swept:
            return self._once("acceleration", name, lambda: held_acceleration(self.trajectory, name))
        R, V, alpha, r = self._carried(name)
        omega, turning = V[..., :3], alpha[..., :3]
        at = alpha[..., 3:] + np.cross(turning, r) + np.cross(omega, np.cross(omega, r))
        held = _times(R, at) - field_at(self.trajectory, name)
        return np.concatenate([_times(R, turning), held], axis=-1)

    def column(self, sensor: Sensor, of: Array, which: str) -> Array:
        closing = closing_joint(self.model, sensor.target)
        if closing is not None:
            if which == "q":
                return np.asarray(self.model.constraints.coordinates(self.q, p=self.p))[..., closing.q_slice]
            return np.asarray(self.model.constraints.velocities(self.q, self.v, p=self.p))[..., closing.v_slice]
        joint = self.model.joints[sensor.target]
        m, offset = (joint.mimic.multiplier, joint.mimic.offset) if joint.mimic else (1.0, 0.0)
        part = of[..., joint.q_slice if which == "q" else joint.v_slice]
        return part * m + (offset if which == "q" else 0.0)

    def by_sample(self, reading: Callable[[float, Array, Array, Array, Array], float]) -> Array:
        """A number for each sample, where the text is over scalars."""
        batch = self.q.shape[:-1]
        p = np.empty(0) if self.trajectory.p is None else np.asarray(self.trajectory.p)
        found = np.empty(batch)
        for place in np.ndindex(*batch):
            own = p[place[:-1]] if p.ndim > 1 else p
            t = self.trajectory.t[place[-1]]
            x = self.trajectory.x[place]
            found[place] = reading(float(t), self.q[place], self.v[place], x, own)
        return found[..., None]


def _in_own_axes(run: _ReadMotion, sensor: Sensor, vector: Array) -> Array:
    return _times(np.swapaxes(run.pose(sensor.target)[..., :3, :3], -1, -2), vector)


def _in_reference(run: _ReadMotion, sensor: Sensor, vector: Array) -> Array:
    """A vector in the axes of the reference; those of the world where there is none."""
    if sensor.reference is None:
        return vector
    return _times(np.swapaxes(run.pose(sensor.reference)[..., :3, :3], -1, -2), vector)


def _position(run: _ReadMotion, sensor: Sensor) -> Array:
    p = run.pose(sensor.target)[..., :3, 3]
    if sensor.reference is not None:
        p = p - run.pose(sensor.reference)[..., :3, 3]
    return _in_reference(run, sensor, p)


def _orientation(run: _ReadMotion, sensor: Sensor) -> Array:
    R = run.pose(sensor.target)[..., :3, :3]
    if sensor.reference is not None:
        R = np.swapaxes(run.pose(sensor.reference)[..., :3, :3], -1, -2) @ R
    return _quaternion(R)


def _linear_velocity(run: _ReadMotion, sensor: Sensor) -> Array:
    v = run.twist(sensor.target)[..., 3:]
    if sensor.reference is not None:
        base = run.twist(sensor.reference)
        arm = run.pose(sensor.target)[..., :3, 3] - run.pose(sensor.reference)[..., :3, 3]
        v = v - base[..., 3:] - np.cross(base[..., :3], arm)
    return _in_reference(run, sensor, v)


def _angular_velocity(run: _ReadMotion, sensor: Sensor) -> Array:
    omega = run.twist(sensor.target)[..., :3]
    if sensor.reference is not None:
        omega = omega - run.twist(sensor.reference)[..., :3]
    return _in_reference(run, sensor, omega)


def _through_joint(run: _ReadMotion, sensor: Sensor, part: slice) -> Array:
    """Wrench of the body on its parent, at the frame's origin and in its axes: [moment, force]."""
    model, trajectory = run.model, run.trajectory
    frame = model.frame(sensor.target)
    wrenches = model.joint_wrenches(run.q, run.v, trajectory.vdot, outside_forces(trajectory), p=run.p)
    on_body = wrenches[..., frame.body, :]
    X = np.array(frame.placement)
    moment = on_body[..., :3] - np.cross(X[:3, 3], on_body[..., 3:])
    both = np.concatenate([moment @ X[:3, :3], on_body[..., 3:] @ X[:3, :3]], axis=-1)
    return np.asarray(both[..., part])


def _touch(run: _ReadMotion, sensor: Sensor) -> Array:
    """The sum of the normal forces at the points of the body that lie in the sensor's zone."""
    X, zone = run.pose(sensor.target), sensor.zone
    frame = run.model.frame(sensor.target)
    if frame.body < 0:
        raise InputError(
            f"the touch sensor {sensor.name!r} is fixed to the world",
            got=repr(sensor.target),
            allowed="a moving body, or a frame on one",
        )

    def within(points: Array) -> Array:
        place = _times(np.swapaxes(X[..., :3, :3], -1, -2), points - X[..., :3, 3])
        return zone.holds(place) if zone is not None else np.ones(place.shape[:-1], bool)

    return run.trajectory.contacts.pressing(run.model.bodies[frame.body].name, within)[..., None]


def _subtree(run: _ReadMotion, sensor: Sensor) -> tuple[Array, Array, Array]:
    """Mass centre, its velocity, and the angular momentum about it, of a body and all that it carries."""
    model = run.model
    root = model.bodies[sensor.target].index
    carried = {root}
    for body in model.bodies[root + 1 :]:
        if body.parent in carried:
            carried.add(body.index)
    mass, parts = 0.0, []
    for k in sorted(carried):
        body = model.bodies[k]
        X, V = run.pose(body.name), run.twist(body.name)
        for part in body.parts:
            A = np.array(part.placement)
            R = X[..., :3, :3] @ A[:3, :3]
            arm = _times(X[..., :3, :3], A[:3, :3] @ np.array(part.com) + A[:3, 3])
            velocity = V[..., 3:] + np.cross(V[..., :3], arm)
            xx, yy, zz, xy, xz, yz = part.inertia
            I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            spin = _times(R, _times(I, _times(np.swapaxes(R, -1, -2), V[..., :3])))
            parts.append((part.mass, X[..., :3, 3] + arm, velocity, spin))
            mass += part.mass
    centre = sum(m * c for m, c, _, _ in parts) / mass
    drift = sum(m * u for m, _, u, _ in parts) / mass
    momentum = sum(h + m * np.cross(c - centre, u - drift) for m, c, u, h in parts)
    return np.asarray(centre), np.asarray(drift), np.asarray(momentum)


def _drive(run: _ReadMotion, sensor: Sensor, what: str) -> Array:
    actuator = run.model.actuators[sensor.target]
    if what != "force":
        return _along(run, actuator.transmission, what)
    if run.drives is None or actuator not in run.drives.actuators:
        raise InputError(
            f"the sensor {sensor.name!r} reads the force of an actuator, which depends on its control",
            do="lw.Instruments(drives=actuators) with the lw.Drives of the run",
        )
    return _drive_forces(run, [run.drives.actuators.index(actuator)])


def _along(run: _ReadMotion, way: Transmission, what: str) -> Array:
    """The length of a transmission, or its rate."""
    text, model = (length if what == "position" else speed), run.model
    return run.by_sample(lambda t, q, v, x, p: float(text(MovingFrames(model, q, v, own_parameters(model, p)), way)))


def _drive_forces(run: _ReadMotion, numbers: Sequence[int]) -> Array:
    """The sum of the forces of some of the drives of the run."""
    drives = run.drives
    assert drives is not None

    def force(t: float, q: Array, v: Array, x: Array, p: Array) -> float:
        own = np.concatenate([x[: drives.nx], *(table(t) for table in drives.tables)])
        return float(sum(np.array(drives.forces(t, q, v, own, p), float)[list(numbers)]))

    return run.by_sample(force)


def _on_tendon(run: _ReadMotion, sensor: Sensor) -> Array:
    """The sum of the forces of the drives that act along all of a tendon's way, as in MuJoCo before their gears."""
    way = run.model.springs[sensor.target].transmission
    if run.drives is None:
        raise InputError(
            f"the sensor {sensor.name!r} reads the force of drives, which depends on their control",
            do="lw.Instruments(drives=actuators) with the lw.Drives of the run",
        )
    drives = enumerate(run.drives.actuators)
    return _drive_forces(run, [k for k, actuator in drives if ratio(actuator.transmission, way) is not None])


def _times(A: Array, x: Array) -> Array:
    return np.asarray(np.einsum("...ij,...j->...i", A, x))


def _quaternion(R: Array) -> Array:
    """W, x, y, z with w >= 0."""
    q = quaternions_of(R)
    return np.asarray(np.where(q[..., :1] < 0, -q, q))


_READINGS: dict[str, Callable[[_ReadMotion, Sensor], Array]] = {
    "joint_position": lambda run, s: run.column(s, run.q, "q"),
    "joint_velocity": lambda run, s: run.column(s, run.v, "v"),
    "joint_drive_force": lambda run, s: run.trajectory.tau[..., run.model.joints[s.target].v_slice],
    "ball_orientation": lambda run, s: run.q[..., run.model.joints[s.target].q_slice],
    "ball_angular_velocity": lambda run, s: run.v[..., run.model.joints[s.target].v_slice],
    "actuator_position": lambda run, s: _drive(run, s, "position"),
    "actuator_velocity": lambda run, s: _drive(run, s, "velocity"),
    "actuator_force": lambda run, s: _drive(run, s, "force"),
    "tendon_position": lambda run, s: _along(run, run.model.springs[s.target].transmission, "position"),
    "tendon_velocity": lambda run, s: _along(run, run.model.springs[s.target].transmission, "velocity"),
    "tendon_drive_force": _on_tendon,
    "gyroscope": lambda run, s: _in_own_axes(run, s, run.twist(s.target)[..., :3]),
    "accelerometer": lambda run, s: _in_own_axes(run, s, run.acceleration(s.target)[..., 3:]),
    "velocimeter": lambda run, s: _in_own_axes(run, s, run.twist(s.target)[..., 3:]),
    "magnetometer": lambda run, s: _in_own_axes(run, s, np.broadcast_to(s.field, (*run.q.shape[:-1], 3))),
    "touch": _touch,
    "force": lambda run, s: _through_joint(run, s, slice(3, 6)),
    "torque": lambda run, s: _through_joint(run, s, slice(0, 3)),
    "frame_position": _position,
    "frame_orientation": _orientation,
    "frame_x_axis": lambda run, s: _in_reference(run, s, run.pose(s.target)[..., :3, 0]),
    "frame_y_axis": lambda run, s: _in_reference(run, s, run.pose(s.target)[..., :3, 1]),
    "frame_z_axis": lambda run, s: _in_reference(run, s, run.pose(s.target)[..., :3, 2]),
    "frame_linear_velocity": _linear_velocity,
    "frame_angular_velocity": _angular_velocity,
    "frame_linear_acceleration": lambda run, s: run.acceleration(s.target)[..., 3:],
    "frame_angular_acceleration": lambda run, s: run.acceleration(s.target)[..., :3],
    "subtree_center_of_mass": lambda run, s: _subtree(run, s)[0],
    "subtree_linear_velocity": lambda run, s: _subtree(run, s)[1],
    "subtree_angular_momentum": lambda run, s: _subtree(run, s)[2],
    "kinetic_energy": lambda run, s: run.model.kinetic_energy(run.q, run.v, p=run.p)[..., None],
    "potential_energy": lambda run, s: (run.trajectory.energy - run.model.kinetic_energy(run.q, run.v, p=run.p))[
        ..., None
    ],
    "clock": lambda run, s: np.broadcast_to(run.trajectory.t[..., None], (*run.q.shape[:-1], 1)),
}
