"""Relations between the functions, on random mechanisms of every joint type, mimics and user-defined joints included.

Everything runs on floats; derivatives are taken exactly, by running the same texts on dual numbers.
"""

from __future__ import annotations

import numpy as np

from linkwise.algorithms.catalogue import Trees
from tests.catalogue_methods import method_of
from tests.identities.relations import SEEDS, TIGHT, along, close, models
from tests.oracles.eager import Eager
from tests.random_trees import random_state


@SEEDS
def test_forward_of_inverse_is_identity(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        f_ext = rng.normal(size=(len(model.bodies), 6))
        close(eager.forward_dynamics(q, v, eager.inverse_dynamics(q, v, vdot)), vdot, 1e-9)
        tau = eager.inverse_dynamics(q, v, vdot, f_ext=f_ext)
        close(eager.forward_dynamics(q, v, tau, f_ext=f_ext), vdot, 1e-9)


@SEEDS
def test_inverse_dynamics_is_affine_in_acceleration(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        M, c = eager.mass_matrix(q), eager.bias_force(q, v)
        close(eager.inverse_dynamics(q, v, vdot), M @ vdot + c)
        columns = [eager.inverse_dynamics(q, 0 * v, unit) for unit in np.eye(model.nv)]
        close(np.array(columns).T - eager.gravity_force(q)[:, None], M)


@SEEDS
def test_mass_matrix_is_symmetric_and_positive(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        M = eager.mass_matrix(q)
        np.testing.assert_array_equal(M, M.T)
        np.linalg.cholesky(M)
        close(0.5 * v @ M @ v, eager.kinetic_energy(q, v))
        M_inverse = eager.mass_matrix_inverse(q)
        np.testing.assert_array_equal(M_inverse, M_inverse.T)
        close(M @ M_inverse, np.eye(model.nv), 1e-9)


@SEEDS
def test_external_forces_act_through_jacobians(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        f_ext = rng.normal(size=(len(model.bodies), 6))
        tau = eager.inverse_dynamics(q, v, vdot)
        for body, pose, f in zip(model.bodies, eager.poses(q), f_ext, strict=True):
            R = pose[:3, :3]
            tau = tau - eager.jacobian(q, body=body.name).T @ np.concatenate([R @ f[:3], R @ f[3:]])
        close(eager.inverse_dynamics(q, v, vdot, f_ext=f_ext), tau)
        close(eager.bias_force(q, v, f_ext=f_ext), tau - eager.mass_matrix(q) @ vdot)


@SEEDS
def test_gravity_is_the_slope_of_potential_energy(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, _, _ = random_state(model, rng)
        slope = [along(model, "potential_energy", q, unit)[0] for unit in np.eye(model.nv)]
        close(eager.gravity_force(q), slope)
        mass = sum(body.mass for body in model.bodies)
        close(eager.potential_energy(q), -mass * np.dot(model.gravity, eager.center_of_mass(q)))


@SEEDS
def test_power_balance(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        power = v @ (eager.inverse_dynamics(q, v, vdot) - eager.gravity_force(q))
        close(along(model, "kinetic_energy", q, v, vdot=vdot)[0], power)


@SEEDS
def test_coriolis_matrix(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        C = eager.coriolis_matrix(q, v)
        close(C @ v, eager.bias_force(q, v) - eager.gravity_force(q))
        rate = along(model, "mass_matrix", q, v).reshape(C.shape)
        skew = rate - 2 * C
        assert np.abs(skew + skew.T).max() < TIGHT * (1 + np.abs(C).max())


@SEEDS
def test_regressor(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        rotors = np.zeros(model.nv)
        for joint in model.joints:
            scale = joint.mimic.multiplier if joint.mimic else 1.0
            rotors[joint.v_slice] += scale**2 * np.array(joint.armature) * vdot[joint.v_slice]
        tau = eager.regressor(q, v, vdot) @ model.inertial_parameters + rotors
        close(tau, eager.inverse_dynamics(q, v, vdot))


@SEEDS
def test_operational_space(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, _, _ = random_state(model, rng)
        for body in (model.bodies[-1].name, "tool", "world"):
            J = eager.jacobian(q, body=body)
            admittance = eager.operational_admittance(q, body=body)
            close(admittance, J @ np.linalg.inv(eager.mass_matrix(q)) @ J.T, 1e-8)
            np.testing.assert_array_equal(admittance, admittance.T)
            if np.linalg.cond(admittance) < 1e6:
                close(eager.operational_inertia(q, body=body), np.linalg.inv(admittance), 1e-8)


@SEEDS
def test_layouts_agree(seed: int) -> None:
    """Aligned frames and regrouped inertias are a choice of the inside: no answer changes."""
    for model, eager, rng in models(seed):
        q, v, vdot = random_state(model, rng)
        f_ext = rng.normal(size=(len(model.bodies), 6))
        for layout in ("aligned", "in_body_frames"):
            trees = Trees(model)
            trees.__dict__["fast"] = trees.__dict__["aligned"] = getattr(trees, layout)
            other = Eager(model, trees=trees)
            for name, arrays in {
                "inverse_dynamics": (q, v, vdot), "forward_dynamics": (q, v, vdot), "bias_force": (q, v),
                "gravity_force": (q,), "mass_matrix": (q,), "mass_matrix_inverse": (q,), "coriolis_matrix": (q, v),
                "poses": (q,), "kinetic_energy": (q, v), "potential_energy": (q,), "center_of_mass": (q,),
                "momentum": (q, v), "centroidal_momentum": (q, v), "centroidal_momentum_matrix": (q,),
                "centroidal_inertia": (q,), "configuration_rate": (q, v), "integrate": (q, v),
            }.items():  # fmt: skip
                close(method_of(other, name)(*arrays), getattr(eager, name)(*arrays), 1e-9)
            forced = [each.inverse_dynamics(q, v, vdot, f_ext=f_ext) for each in (other, eager)]
            close(forced[0], forced[1])
            for name in ("pose", "jacobian", "operational_admittance"):
                close(method_of(other, name)(q, body="tool"), getattr(eager, name)(q, body="tool"), 1e-9)
            for name in ("velocity", "jacobian_rate"):
                close(getattr(other, name)(q, v, body="tool"), getattr(eager, name)(q, v, body="tool"), 1e-9)


@SEEDS
def test_only_the_direction_of_a_quaternion_counts(seed: int) -> None:
    for model, eager, rng in models(seed, types=("spherical", "free", "revolute")):
        q, v, vdot = random_state(model, rng)
        scaled = q.copy()
        for joint in model.joints:
            if joint.nq > joint.nv:
                scaled[joint.q_slice][:4] *= rng.uniform(0.01, 100) * rng.choice([-1, 1])
        close(eager.inverse_dynamics(scaled, v, vdot), eager.inverse_dynamics(q, v, vdot))
        close(eager.forward_dynamics(scaled, v, vdot), eager.forward_dynamics(q, v, vdot), 1e-9)
        close(eager.mass_matrix(scaled), eager.mass_matrix(q))
        close(eager.poses(scaled), eager.poses(q))
        close(eager.jacobian_rate(scaled, v, body="tool"), eager.jacobian_rate(q, v, body="tool"))
        close(eager.coriolis_matrix(scaled, v), eager.coriolis_matrix(q, v))
        close(eager.poses(eager.integrate(scaled, v)), eager.poses(eager.integrate(q, v)))
        close(eager.difference(scaled, eager.integrate(q, v)), eager.difference(q, eager.integrate(scaled, v)))
