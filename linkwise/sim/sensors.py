"""Sensors: what instruments would have read along a trajectory, with noise that a seed repeats.

A sensor is a frozen description; ``read(trajectory, rng)`` returns an array (..., T, n). Noise is white with a standard
deviation for each sample; biases are drawn once for each state of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_count, check_not_negative
from linkwise.contact.scene import meetings_of
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, LinkwiseError
from linkwise.mechanism.bodies_and_joints import JointInstance
from linkwise.sim.touched import contacts_of
from linkwise.sim.trajectory import Trajectory

Seed = np.random.Generator | int | None


def noisy(clean: Array, noise: ArrayLike, bias: ArrayLike, rng: np.random.Generator) -> Array:
    """With white noise on each sample and a bias for each state; standard deviations may differ between columns."""
    if np.any(bias):
        shape = (*clean.shape[:-2], 1, clean.shape[-1])
        clean = clean + rng.normal(size=shape) * np.asarray(bias, float)
    if np.any(noise):
        clean = clean + rng.normal(size=clean.shape) * np.asarray(noise, float)
    return clean


@dataclass(frozen=True)
class Encoder:
    """Joint positions in steps of finite size, and velocities from their differences if wanted.

    Args:
        joints: names of joints with one coordinate, including those that follow others; all that have one of their own
            if not given.
        counts: per turn (or per metre); 0 for no quantisation.
        noise: standard deviation, rad or m.
        bias: standard deviation of a constant offset, rad or m.
    """

    joints: Sequence[str] | None = None
    counts: int = 0
    noise: float = 0.0
    bias: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.joints, str):
            raise InputError("joints are given as a list of names", got=repr(self.joints), allowed=f"[{self.joints!r}]")
        object.__setattr__(self, "joints", None if self.joints is None else tuple(self.joints))
        if self.counts:
            check_count(counts=self.counts)
        check_not_negative(noise=self.noise, bias=self.bias)

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """Positions (..., T, n), rad or m."""
        model = model_of(trajectory)
        if self.joints is None:
            found = [j for j in model.joints if j.mimic is None and j.nq == 1 and j.nv == 1]
        else:
            found = [_with_one_coordinate(model.joints[name]) for name in self.joints]
        places = trajectory.q[..., [j.q_slice.start for j in found]]
        scale = np.array([j.mimic.multiplier if j.mimic else 1.0 for j in found], places.dtype)
        offset = np.array([j.mimic.offset if j.mimic else 0.0 for j in found], places.dtype)
        clean = noisy(places * scale + offset, self.noise, self.bias, np.random.default_rng(rng))
        if not self.counts:
            return clean
        turning = np.array([not j.type.slides(0) for j in found])
        size = np.where(turning, 2.0 * np.pi / self.counts, 1.0 / self.counts)
        return np.asarray(np.floor(clean / size + 0.5) * size)


@dataclass(frozen=True)
class IMU:
    """A gyroscope and an accelerometer fixed to a body or frame, or to a node of a flexible body.

    Args:
        body: name of the body or frame; its axes and origin are the instrument's.
        gyro_noise: standard deviation, rad/s.
        accel_noise: standard deviation, m/s².
        gyro_bias: standard deviation of a constant offset, rad/s.
        accel_bias: standard deviation of a constant offset, m/s².
        node: of a flexible body, the node that it sits on, by name or number; the root if not given.
    """

    body: str
    gyro_noise: float = 0.0
    accel_noise: float = 0.0
    gyro_bias: float = 0.0
    accel_bias: float = 0.0
    node: str | int | None = None

    def __post_init__(self) -> None:
        check_not_negative(gyro_noise=self.gyro_noise, accel_noise=self.accel_noise)
        check_not_negative(gyro_bias=self.gyro_bias, accel_bias=self.accel_bias)

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """[ω, specific force] (..., T, 6) in the instrument's axes: at rest the accelerometer shows -g."""
        model = model_of(trajectory)
        q, v, p = trajectory.q, trajectory.v, trajectory.model_parameters
        R = model.pose(q, self.body, node=self.node, p=p)[..., :3, :3]
        omega = model.velocity(q, v, self.body, node=self.node, p=p)[..., :3]
        force = held_acceleration(trajectory, self.body, self.node)[..., 3:]
        clean = np.concatenate([np.einsum("...ji,...j->...i", R, x) for x in (omega, force)], axis=-1)
        noise = [self.gyro_noise] * 3 + [self.accel_noise] * 3
        bias = [self.gyro_bias] * 3 + [self.accel_bias] * 3
        return noisy(clean, noise, bias, np.random.default_rng(rng))


class _WrenchSensor:
    """A sensor of six numbers, [moment, force]."""

    noise: float
    moment_noise: float | None

    def __post_init__(self) -> None:
        check_not_negative(noise=self.noise, moment_noise=0.0 if self.moment_noise is None else self.moment_noise)

    def _noisy(self, clean: Array, rng: Seed) -> Array:
        """Readings of clean ones (..., 6)."""
        moment_noise = self.noise / 10 if self.moment_noise is None else self.moment_noise
        return noisy(clean, [moment_noise] * 3 + [self.noise] * 3, 0.0, np.random.default_rng(rng))


@dataclass(frozen=True)
class ForceTorque(_WrenchSensor):
    """The force that goes through a joint, as a sensor between the joint and its body would feel it.

    Args:
        joint: name of the joint.
        noise: standard deviation of the force, N; the moment's is a tenth of it in N m unless given.
        moment_noise: standard deviation of the moment, N m.
    """

    joint: str
    noise: float = 0.0
    moment_noise: float | None = None

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """[moment, force] (..., T, 6) exerted on the body through its joint, at the body's origin, in its axes.

        What all that the joint carries takes to move, less the forces that elements (thrusters, wheels) exert on it.
        A trajectory from a CSV file has lost those forces; one from npz has them.
        """
        model = model_of(trajectory)
        index = model.joints[self.joint].index
        wrenches = model.joint_wrenches(
            trajectory.q, trajectory.v, trajectory.vdot, outside_forces(trajectory), p=trajectory.model_parameters
        )
        return self._noisy(wrenches[..., index, :], rng)


@dataclass(frozen=True)
class Touch:
    """Sensors under the surfaces of bodies, that feel how hard these are pressed on.

    Args:
        bodies: names of bodies, links or shapes; all bodies that may touch something if not given.
        noise: standard deviation, N.
    """

    bodies: Sequence[str] | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.bodies, str):
            raise InputError("bodies are given as a list of names", got=repr(self.bodies), allowed=f"[{self.bodies!r}]")
        object.__setattr__(self, "bodies", None if self.bodies is None else tuple(self.bodies))
        check_not_negative(noise=self.noise)

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """Normal forces (..., T, n), N; 0 where nothing touches."""
        touched, model = trajectory.contacts, model_of(trajectory)
        there = {body.index for pair in meetings_of(model) for body in (pair.body, pair.other) if body is not None}
        names = [model.bodies[k].name for k in sorted(there)] if self.bodies is None else self.bodies
        clean = np.stack([touched.pressing(name) for name in names], axis=-1)
        return noisy(clean, self.noise, 0.0, np.random.default_rng(rng))


@dataclass(frozen=True)
class FootForce(_WrenchSensor):
    """The force that all that a body touches exerts on it, as a sensor in its sole would feel it.

    Args:
        body: its name, or that of a link or a shape that is part of it.
        noise: standard deviation of the force, N; the moment's is a tenth of it in N m unless given.
        moment_noise: standard deviation of the moment, N m.
    """

    body: str
    noise: float = 0.0
    moment_noise: float | None = None

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """[moment, force] (..., T, 6) on the body, at its origin, in its axes, N m and N: means of a step."""
        return self._noisy(trajectory.contacts.wrench_on(self.body), rng)


def outside_forces(trajectory: Trajectory) -> Array | None:
    """Wrenches of elements and contacts on bodies (..., T, n_bodies, 6); None if nothing does."""
    outside, touched = trajectory.f_ext, contacts_of(trajectory)
    if touched is None:
        return outside
    return touched.wrenches if outside is None else outside + touched.wrenches


def _with_one_coordinate(joint: JointInstance) -> JointInstance:
    if joint.nq != 1:
        raise InputError(
            f"an encoder cannot read the joint {joint.name!r}",
            got=repr(joint.type),
            allowed="a joint with one coordinate",
            do="name the joints to read: lw.Encoder([...])",
        )
    return joint


def held_acceleration(trajectory: Trajectory, name: str, node: str | int | None = None) -> Array:
    """[ω̇, v̇] (..., T, 6) of a frame's origin, world axes, with that of a support that holds it against gravity."""
    model, q, v, p = model_of(trajectory), trajectory.q, trajectory.v, trajectory.model_parameters
    J, Jdot = model.jacobian(q, name, node=node, p=p), model.jacobian_rate(q, v, name, node=node, p=p)
    a: Array = np.einsum("...ij,...j->...i", J, trajectory.vdot) + np.einsum("...ij,...j->...i", Jdot, v)
    a[..., 3:] -= gravity_of(trajectory) + field_at(trajectory, name, node)
    return a


def gravity_of(trajectory: Trajectory) -> Array:
    """The run's gravity (3), or (..., 1, 3) where it is a run-time parameter."""
    model, p = model_of(trajectory), trajectory.model_parameters
    declared = {parameter.name: parameter.slice for parameter in model.parameters}
    return np.asarray(model.gravity if p is None or "gravity" not in declared else p[..., declared["gravity"]])


def field_at(trajectory: Trajectory, name: str, node: str | int | None = None) -> Array | float:
    """Acceleration (..., T, 3) by fields of elements at a body, frame or node, world axes; 0 where there are none."""
    around = trajectory._values.get("field")
    if around is None:
        return 0.0
    model, q, p = model_of(trajectory), trajectory.q, trajectory.model_parameters
    body = model.frame(name, node).body
    if body < 0:
        raise InputError(
            "fields of acceleration are known along a run where bodies move",
            got=f"{name!r}, which stands in the world",
            do="put the instrument on a body",
        )
    carrier = model.pose(q, model.bodies[body].name, p=p)
    R, offset = carrier[..., :3, :3], model.pose(q, name, node=node, p=p)[..., :3, 3] - carrier[..., :3, 3]
    own = around.reshape(*around.shape[:-1], -1, 12)[..., body, :]
    E = own[..., 3:].reshape(*own.shape[:-1], 3, 3)
    arm = np.einsum("...ji,...j->...i", R, offset)
    there = own[..., :3] + np.einsum("...ij,...j->...i", E, arm)
    turned: Array = np.einsum("...ij,...j->...i", R, there)
    return turned


def model_of(trajectory: Trajectory) -> Any:
    """Its model, which sensors need."""
    if trajectory.model is None:
        raise LinkwiseError("a sensor needs the model", do="give it to Trajectory.load(path, model=…)")
    return trajectory.model
