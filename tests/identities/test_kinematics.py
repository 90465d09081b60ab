"""Relations between positions, velocities, Jacobians and momenta, on random mechanisms of every joint type."""

from __future__ import annotations

import numpy as np

from tests.identities.relations import SEEDS, along, close, integrate_rate, models
from tests.random_trees import random_state


@SEEDS
def test_jacobian_times_velocity(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        for body in (*(each.name for each in model.bodies), "tool", "world"):
            close(eager.jacobian(q, body=body) @ v, eager.velocity(q, v, body=body))


@SEEDS
def test_velocity_is_the_rate_of_the_pose(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        for body in (model.bodies[0].name, "tool"):
            pose, rate = eager.pose(q, body=body), along(model, "pose", q, v, body=body).reshape(4, 4)
            turning = rate[:3, :3] @ pose[:3, :3].T
            omega = [turning[2, 1], turning[0, 2], turning[1, 0]]
            close(eager.velocity(q, v, body=body), [*omega, *rate[:3, 3]])


@SEEDS
def test_jacobian_at_a_point(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        point = rng.normal(size=3)
        J, pose = eager.jacobian(q, body="tool"), eager.pose(q, body="tool")
        arm = pose[:3, :3] @ point
        moved = np.vstack([J[:3], J[3:] + np.cross(J[:3], arm, axis=0)])
        close(eager.jacobian(q, body="tool", point=point), moved)
        h = 1e-3
        at = {k: eager.jacobian(eager.integrate(q, k * h * v), body="tool", point=point) for k in (-2, -1, 1, 2)}
        differences = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * h)
        close(eager.jacobian_rate(q, v, body="tool", point=point), differences, 1e-7)


@SEEDS
def test_jacobian_rate(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        J_dot = eager.jacobian_rate(q, v, body="tool")
        close(J_dot, along(model, "jacobian", q, v, body="tool").reshape(6, -1))
        acceleration = along(model, "velocity", q, v, vdot=vdot, body="tool")
        close(acceleration, eager.jacobian(q, body="tool") @ vdot + J_dot @ v)


@SEEDS
def test_configuration_rate(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        close(eager.configuration_rate(q, v), integrate_rate(model, q, v))


@SEEDS
def test_momentum(seed: int) -> None:
    """The sum over bodies of what each carries, and the ways between the origin and the mass centre."""
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        h, com, mass = eager.momentum(q, v), eager.center_of_mass(q), sum(body.mass for body in model.bodies)
        close(h[3:], mass * along(model, "center_of_mass", q, v))
        about_com = eager.centroidal.momentum(q, v)
        close(about_com, [*(h[:3] - np.cross(com, h[3:])), *h[3:]])
        close(eager.centroidal.momentum_matrix(q) @ v, about_com)
        total = np.zeros(6)
        for body, pose in zip(model.bodies, eager.poses(q), strict=True):
            V = eager.velocity(q, v, body=body.name)
            for part in body.parts:
                X = pose @ np.array(part.placement)
                c, R = X[:3, :3] @ part.com + X[:3, 3], X[:3, :3]
                xx, yy, zz, xy, xz, yz = part.inertia
                I_c = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
                p = part.mass * (V[3:] + np.cross(V[:3], c - pose[:3, 3]))
                total += [*(I_c @ V[:3] + np.cross(c, p)), *p]
        close(h, total)


@SEEDS
def test_momentum_changes_by_outer_forces_only(seed: int) -> None:
    """A floating mechanism: ḣ is the weight and what is applied from outside, whatever the joints do."""
    for model, eager, rng in models(seed, floating=True, mimic=0.0):
        q, v, tau = random_state(model, rng)
        tau[:6] = 0.0
        f_ext = rng.normal(size=(len(model.bodies), 6))
        vdot = eager.forward_dynamics(q, v, tau, f_ext=f_ext)
        weight = sum(body.mass for body in model.bodies) * np.array(model.gravity)
        expected = np.concatenate([np.cross(eager.center_of_mass(q), weight), weight])
        for pose, f in zip(eager.poses(q), f_ext, strict=True):
            force, moment = pose[:3, :3] @ f[3:], pose[:3, :3] @ f[:3]
            expected += [*(moment + np.cross(pose[:3, 3], force)), *force]
        close(along(model, "momentum", q, v, vdot=vdot), expected, 1e-9)


@SEEDS
def test_centroidal_inertia(seed: int) -> None:
    """Moved as one rigid piece, the whole has the momentum I V, and I is block diagonal about the mass centre."""
    for model, eager, rng in models(seed, floating=True):
        q, v, _ = random_state(model, rng)
        v[6:] = 0.0
        I, mass = eager.centroidal.inertia(q), sum(body.mass for body in model.bodies)
        np.testing.assert_allclose(I[:3, 3:], 0.0, atol=1e-12 * mass)
        close(I[3:, 3:], mass * np.eye(3))
        np.testing.assert_allclose(I, I.T, atol=1e-12 * mass)
        V = eager.velocity(q, v, body=model.bodies[0].name)
        arm = eager.center_of_mass(q) - eager.pose(q, body=model.bodies[0].name)[:3, 3]
        V_com = np.concatenate([V[:3], V[3:] + np.cross(V[:3], arm)])
        close(I @ V_com, eager.centroidal.momentum(q, v))
