"""Sensors: what instruments would have read along a trajectory, with noise that a seed repeats.

A sensor is a frozen description; ``read(trajectory, rng)`` returns an array (..., T, n). Noise is white with a standard
deviation for each sample; biases are drawn once for each state of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import LinkwiseError
from linkwise.sim.trajectory import Trajectory

Array = NDArray[Any]
Seed = np.random.Generator | int | None
_HALVES = (slice(0, 3), slice(3, 6))


def _noisy(clean: Array, noise: Any, bias: Any, rng: np.random.Generator) -> Array:
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
        joints: names; all joints with one freedom if not given.
        counts: per turn (or per metre); 0 for no quantisation.
        noise: standard deviation, rad or m.
        bias: standard deviation of a constant offset, rad or m.
    """

    joints: Sequence[str] | None = None
    counts: int = 0
    noise: float = 0.0
    bias: float = 0.0

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """Positions (..., T, n), rad or m."""
        model = _model(trajectory)
        if self.joints is None:
            found = [j for j in model.joints if j.mimic is None and j.nq == 1 and j.nv == 1]
        else:
            found = [model.joint(name) for name in self.joints]
        columns = [j.q_slice.start for j in found]
        clean = _noisy(trajectory.q[..., columns], self.noise, self.bias, np.random.default_rng(rng))
        if not self.counts:
            return clean
        turning = np.array([not _slides(j) for j in found])
        size = np.where(turning, 2.0 * np.pi / self.counts, 1.0 / self.counts)
        return np.asarray(np.floor(clean / size + 0.5) * size)


@dataclass(frozen=True)
class IMU:
    """A gyroscope and an accelerometer fixed to a body or frame.

    Args:
        body: name of the body or frame; its axes and origin are the instrument's.
        gyro_noise: standard deviation, rad/s.
        accel_noise: standard deviation, m/s².
        gyro_bias: standard deviation of a constant offset, rad/s.
        accel_bias: standard deviation of a constant offset, m/s².
    """

    body: str
    gyro_noise: float = 0.0
    accel_noise: float = 0.0
    gyro_bias: float = 0.0
    accel_bias: float = 0.0

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """[ω, specific force] (..., T, 6) in the instrument's axes: at rest the accelerometer shows -g."""
        model = _model(trajectory)
        q, v = trajectory.q, trajectory.v
        R = model.pose(q, self.body)[..., :3, :3]
        twist = model.velocity(q, v, self.body)
        J = model.jacobian(q, self.body)
        Jdot = model.jacobian_rate(q, v, self.body)
        a = np.einsum("...ij,...j->...i", J, trajectory.vdot) + np.einsum("...ij,...j->...i", Jdot, v)
        force = a[..., 3:] - np.asarray(model.gravity)
        clean = np.concatenate([np.einsum("...ji,...j->...i", R, x) for x in (twist[..., :3], force)], axis=-1)
        noise = [self.gyro_noise] * 3 + [self.accel_noise] * 3
        bias = [self.gyro_bias] * 3 + [self.accel_bias] * 3
        return _noisy(clean, noise, bias, np.random.default_rng(rng))


@dataclass(frozen=True)
class ForceTorque:
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

        Newton and Euler for all that the joint carries, less the forces that elements (thrusters, wheels) exert on it.
        A trajectory from a CSV file has lost those forces; one from npz has them.
        """
        model = _model(trajectory)
        index = model.joint(self.joint).index
        carried = [index]
        for k in range(index + 1, len(model.bodies)):
            if model.parents[k] in carried:
                carried.append(k)
        q, v, vdot = trajectory.q, trajectory.v, trajectory.vdot
        poses = model.poses(q)
        origin = poses[..., index, :3, 3]
        R = poses[..., index, :3, :3]
        moment, force = np.zeros((*q.shape[:-1], 3)), np.zeros((*q.shape[:-1], 3))
        for k in carried:
            body = model.bodies[k]
            J, Jdot = model.jacobian(q, body.name), model.jacobian_rate(q, v, body.name)
            twist = model.velocity(q, v, body.name)[..., :3]
            a = np.einsum("...ij,...j->...i", J, vdot) + np.einsum("...ij,...j->...i", Jdot, v)
            for part in body.parts:
                place = np.asarray(part.placement)
                R_part = poses[..., k, :3, :3] @ place[:3, :3]
                arm = np.einsum(
                    "...ij,j->...i", poses[..., k, :3, :3], place[:3, :3] @ np.asarray(part.com) + place[:3, 3]
                )
                xx, yy, zz, xy, xz, yz = part.inertia
                I = R_part @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ np.swapaxes(R_part, -1, -2)
                alpha = a[..., :3]
                a_com = a[..., 3:] + np.cross(alpha, arm) + np.cross(twist, np.cross(twist, arm))
                f = part.mass * (a_com - np.asarray(model.gravity))
                spin = np.einsum("...ij,...j->...i", I, twist)
                n = np.einsum("...ij,...j->...i", I, alpha) + np.cross(twist, spin)
                force = force + f
                moment = moment + n + np.cross(poses[..., k, :3, 3] + arm - origin, f)
        if trajectory.f_ext is not None:
            for k in carried:
                turned = poses[..., k, :3, :3]
                n, f = (np.einsum("...ij,...j->...i", turned, trajectory.f_ext[..., k, part]) for part in _HALVES)
                force = force - f
                moment = moment - n - np.cross(poses[..., k, :3, 3] - origin, f)
        clean = np.concatenate([np.einsum("...ji,...j->...i", R, x) for x in (moment, force)], axis=-1)
        moment_noise = self.noise / 10 if self.moment_noise is None else self.moment_noise
        return _noisy(clean, [moment_noise] * 3 + [self.noise] * 3, 0.0, np.random.default_rng(rng))


def _slides(joint: Any) -> bool:
    from linkwise.model.joints import Prismatic

    return isinstance(joint.type, Prismatic)


def _model(trajectory: Trajectory) -> Any:
    if trajectory.model is None:
        raise LinkwiseError("a sensor needs the model", do="give it to Trajectory.load(path, model=…)")
    return trajectory.model
