"""The Coriolis matrix and the regressor of mechanisms with flexible bodies."""

import numpy as np
import pytest

import linkwise as lw
from tests.flexible.mechanisms import arm, panels, small_beam, state, tree

CHORD = [("root", "tx"), ("root", "ty"), ("root", "tz"), ("root", "rx"), ("tip", "ty"), ("tip", "tz")]


def pinned():
    """Two beams on pins, each in the frame of its chord."""
    rod = small_beam(modes=(2, 0), torsion_modes=0, held=CHORD)
    b = lw.ModelBuilder("pinned")
    b.add_body("one", joint=lw.Revolute(axis=(0, 0, 1)), flexible=rod)
    place = lw.transform(rpy=(0.4, 0.3, 0.1))
    b.add_body("two", parent="one", at="tip", joint=lw.Revolute(axis=(0, 0, 1)), placement=place, flexible=rod)
    b.add_body("load", parent="two", at=3, mass=0.7, com=(0.1, 0.2, 0.0), inertia=0.1 * np.eye(3))
    return b.build()


MECHANISMS = {"arm": arm, "tree": tree, "panels": panels, "pinned": pinned}


@pytest.mark.parametrize("name", MECHANISMS)
def test_coriolis_matrix(name):
    """C v is the part of the bias force that is quadratic in v, and 𝓜̇ = C + C*."""
    model = MECHANISMS[name]()
    q, v = state(model, 1)
    C = model.coriolis_matrix(q, v)
    quadratic = 0.5 * (model.bias_force(q, v) + model.bias_force(q, -v)) - model.bias_force(q, 0 * v)
    np.testing.assert_allclose(C @ v, quadratic, rtol=0, atol=1e-12 * np.abs(quadratic).max())
    h = 1e-4
    M = [model.mass_matrix(model.integrate(q, s * h * v)) for s in (-2, -1, 1, 2)]
    M_rate = (M[0] - 8 * M[1] + 8 * M[2] - M[3]) / (12 * h)
    np.testing.assert_allclose(C + C.T, M_rate, rtol=0, atol=1e-9 * np.abs(C).max())


@pytest.mark.parametrize("name", MECHANISMS)
def test_christoffel_symbols(name):
    """Where velocities are rates of coordinates, C_ij = ½Σ_k(∂_kM_ij + ∂_jM_ik - ∂_iM_jk)v_k: no other C is so."""
    model = MECHANISMS[name]()
    q, v = state(model, 2)
    h, n = 1e-4, model.nv
    unit = np.eye(n)
    slopes = np.array(
        [
            sum(w * model.mass_matrix(q + s * h * unit[k]) for s, w in ((-2, 1), (-1, -8), (1, 8), (2, -1))) / (12 * h)
            for k in range(n)
        ]
    )
    C = 0.5 * (
        np.einsum("kij,k->ij", slopes, v) + np.einsum("jik,k->ij", slopes, v) - np.einsum("ijk,k->ij", slopes, v)
    )
    np.testing.assert_allclose(model.coriolis_matrix(q, v), C, rtol=0, atol=1e-9 * np.abs(C).max())


def test_rolled():
    model = tree()
    q, v = state(model, 3)
    C = model.coriolis_matrix(q, v)
    np.testing.assert_allclose(model.with_sweeps("rolled").coriolis_matrix(q, v), C, atol=1e-12 * np.abs(C).max())


def test_regressor_of_the_rigid_bodies_among_them():
    """τ changes by Y Δπ when rigid bodies change; a flexible body has columns for what is welded to its root."""
    rng = np.random.default_rng(4)

    def mechanism(masses):
        beam = lw.FlexibleBody.beam(2.0, 2e3, (150.0, 90.0), 60.0, 1.2, elements=4, modes=(1, 1), axial_modes=0)
        b = lw.ModelBuilder("mixed")
        J = np.diag([0.1, 0.2, 0.25])
        place = lw.transform(xyz=(0.2, 0.1, 0), rpy=(0.2, 0.3, 0.4))
        b.add_body("base", joint=lw.Revolute(axis=(1, 0, 0)), mass=masses[0], com=(0.1, 0.2, 0.3), inertia=J)
        b.add_body("boom", parent="base", joint=lw.Revolute(axis=(0, 0, 1)), placement=place, flexible=beam)
        b.add_body("hub", parent="boom", mass=masses[1], com=(0.1, 0, 0.2), inertia=J)
        b.add_body(
            "load", parent="boom", at="tip", joint=lw.Spherical(), placement=place, mass=masses[2], com=(0, 0.1, 0.4)
        )
        return b.build()

    one, two = mechanism((1.0, 2.0, 3.0)), mechanism((1.5, 2.6, 2.0))
    q, v, vdot = one.random_configuration(rng), rng.normal(size=one.nv), rng.normal(size=one.nv)
    Y = one.regressor(q, v, vdot)
    np.testing.assert_allclose(Y, two.regressor(q, v, vdot), atol=1e-12)
    change = two.inverse_dynamics(q, v, vdot) - one.inverse_dynamics(q, v, vdot)
    pi = [np.asarray(m.inertial_parameters).reshape(-1) for m in (one, two)]
    np.testing.assert_allclose(Y @ (pi[1] - pi[0]), change, atol=1e-11 * np.abs(change).max())


def test_joints_that_follow_others_beside_flexible_bodies():
    """A rigid body on a flexible one's tip whose joint follows the first joint of the chain."""
    b = lw.ModelBuilder("followed")
    stone = {"mass": 1.0, "com": (0.3, 0.1, 0.0), "inertia": 0.1 * np.eye(3)}
    follow = lw.Mimic("first", multiplier=-2.0, offset=0.1)
    b.add_body("a", joint=lw.Revolute(axis=(0, 0, 1)), joint_name="first", **stone)
    b.add_body("boom", parent="a", joint=lw.Revolute(axis=(0, 1, 0)), flexible=small_beam())
    b.add_body("c", parent="boom", at="tip", joint=lw.Revolute(axis=(0, 0, 1)), mimic=follow, **stone)
    model = b.build()
    q, v = state(model, 5)
    vdot = np.random.default_rng(6).normal(size=model.nv)
    tau = model.inverse_dynamics(q, v, vdot)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), vdot, atol=1e-11)
    np.testing.assert_allclose(model.mass_matrix(q) @ vdot + model.bias_force(q, v), tau, atol=1e-11)
    h = 1e-4
    M = [model.mass_matrix(q + s * h * v) for s in (-2, -1, 1, 2)]
    C = model.coriolis_matrix(q, v)
    M_rate = (M[0] - 8 * M[1] + 8 * M[2] - M[3]) / (12 * h)
    np.testing.assert_allclose(C + C.T, M_rate, atol=1e-8 * np.abs(C).max())
