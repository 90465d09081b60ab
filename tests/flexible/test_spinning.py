"""Beams that spin: geometric stiffening through the recursion."""

import numpy as np
import pytest

import linkwise as lw
from tests.flexible.test_beam import CANTILEVER, EA, EI, GJ, MU, L, hertz, reference_spun

RATE = np.sqrt(EI / (MU * L**4))


def turntable(beam, **joint):
    """A beam along x on a hinge about z through its root, without gravity."""
    b = lw.ModelBuilder("turntable", gravity=(0, 0, 0))
    b.add_body("beam", joint=lw.Revolute(axis=(0, 0, 1)), flexible=beam, **joint)
    return b.build()


def frequencies(model, spin):
    """(ω√(μL⁴/EI))² with the hinge held at a steady rate: from the model's linearised inverse dynamics."""
    modal, hinge = model.bodies["beam"].v_slice, model.joints[0].v_slice
    q, v = np.zeros(model.nv), np.zeros(model.nv)
    v[hinge] = spin
    for _ in range(4):  # the steady deformation
        lin = model.linearize_inverse(q, v, np.zeros(model.nv))
        q[modal] -= np.linalg.solve(lin.dq[modal, modal], lin.tau[modal])
    lin = model.linearize_inverse(q, v, np.zeros(model.nv))
    assert np.abs(lin.tau[modal]).max() < 1e-6
    K, C, M = (matrix[modal, modal] for matrix in (lin.dq, lin.dv, lin.dvdot))
    n = len(K)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    squared = -(np.linalg.eigvals(A) ** 2) / RATE**2
    return np.sort(squared.real)[::2]


def test_cantilever_frequencies_by_linearisation():
    """The beam welded to the world, state space of the whole model."""
    b = lw.ModelBuilder("cantilever", gravity=(0, 0, 0))
    b.add_body("beam", flexible=lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(5, 0), axial_modes=0))
    model = b.build()
    assert model.nv == 5
    lin = model.linearize_forward(model.neutral(), np.zeros(5), np.zeros(5))
    found = np.sqrt(np.sort(np.linalg.eigvals(-lin.dq).real)) / (2 * np.pi)
    np.testing.assert_allclose(found[:3], hertz(CANTILEVER[:3]), rtol=1e-4)


@pytest.mark.parametrize("in_plane", [False, True])
def test_rotating_cantilever(in_plane):
    """Flapping and in-plane frequencies for γ = 0…12 to 0.1 % with five modes."""
    rich = lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(12, 0) if in_plane else (0, 12), axial_modes=0)
    model = turntable(rich.in_spinning_modes((0, 0, 8.0 * RATE), 5))
    for gamma in (0.0, 1.0, 3.0, 6.0, 9.0, 12.0):
        exact = np.sqrt(reference_spun(gamma)[:3] ** 2 - in_plane * gamma**2)
        np.testing.assert_allclose(np.sqrt(frequencies(model, gamma * RATE)[:3]), exact, rtol=1e-3)


def test_without_stiffening_the_in_plane_frequency_falls_to_zero():
    critical = CANTILEVER[0] ** 2
    soft = turntable(lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(5, 0), axial_modes=0, stiffening=False))
    assert critical == pytest.approx(3.516, abs=1e-3)
    assert abs(frequencies(soft, critical * RATE)[0]) < 1e-3
    assert frequencies(soft, 1.01 * critical * RATE)[0] < -0.1
    stiff = turntable(lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(5, 0), axial_modes=0))
    assert frequencies(stiff, critical * RATE)[0] > 1.0


# ------------------------------------------------------------------------------------------------------------ spin-up


def angle(t, cos=np.cos):
    """Of the base: references.md."""
    early = 0.4 * (t * t / 2 + (15 / (2 * np.pi)) ** 2 * (cos(2 * np.pi * t / 15) - 1))
    return lw.math.where(t < 15.0, early, 6.0 * t - 45.0)


def acceleration(t):
    return lw.math.where(t < 15.0, 0.4 * (1.0 - lw.math.cos(t * (2 * np.pi / 15))), 0.0 * t)


def spin_up(beam, duration, **options):
    """With a rotor so heavy that the beam cannot hold it back: driven by its torque, the base moves as given."""
    rotor = 1e12
    model = turntable(beam, armature=rotor)
    hinge = model.joints[0].v_slice.start

    def drive(t, q, v, p):
        return [rotor * acceleration(t) if i == hinge else 0.0 for i in range(model.nv)]

    return model, lw.simulate(model, model.neutral(), duration=duration, control=drive, **options)


def tip(model, q):
    """Of the beam in the turning frame, less where it is at rest."""
    X = np.linalg.inv(model.pose(q, "beam")) @ model.pose(q, "beam", node="tip")
    return X[..., :3, 3] - (L, 0, 0)


def test_spin_up():
    beam = lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(5, 0), axial_modes=2, rotary_inertia=6e-4)
    times = np.linspace(0.0, 20.0, 2001)
    model, traj = spin_up(beam, 20.0, output_times=times, rtol=1e-8)
    np.testing.assert_allclose(traj.q[:, model.joints[0].q_slice.start], [angle(t) for t in times], atol=1e-6)
    deflection = tip(model, traj.q)
    lowest = deflection[:, 1].argmin()
    assert deflection[lowest, 1] == pytest.approx(-0.574, rel=0.01)
    assert times[lowest] == pytest.approx(6.76, abs=0.1)
    late = times > 15.0
    assert deflection[late, 0].mean() == pytest.approx(5.14e-4, rel=0.02)


def test_spin_up_diverges_without_stiffening():
    beam = lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(5, 0), axial_modes=1, stiffening=False)
    model, traj = spin_up(beam, 12.0, output_times=np.linspace(0, 12.0, 101), rtol=1e-8)
    assert np.abs(tip(model, traj.q)[:, 1]).max() > 10.0


def test_a_prescribed_hinge_is_the_same_motion():
    """The hinge of a flexible body under a closure: modal accelerations with the base moving as given."""
    beam = lw.FlexibleBody.beam(L, EA, (EI, EI), GJ, MU, modes=(3, 0), axial_modes=0)
    open_model = turntable(beam)
    model = open_model.with_coupling("drive", lw.closures.Prescribed("beam_joint", lambda t: angle(t, lw.math.cos)))
    modal, hinge = model.bodies["beam"].v_slice, model.joints[0].v_slice
    rng = np.random.default_rng(0)
    for t in (2.0, 7.0):
        q, v = np.zeros(model.nv), np.zeros(model.nv)
        q[modal], v[modal] = 0.1 * rng.normal(size=(2, beam.modes))
        q[hinge], v[hinge] = angle(t), 0.4 * (t - 15 / (2 * np.pi) * np.sin(2 * np.pi * t / 15))
        vdot = model.forward_dynamics(q, v, np.zeros(model.nv), t=t)
        assert vdot[hinge][0] == pytest.approx(0.4 * (1 - np.cos(2 * np.pi * t / 15)), rel=1e-9)
        M, c = open_model.mass_matrix(q), open_model.bias_force(q, v)
        expected = -np.linalg.solve(M[modal, modal], c[modal] + M[modal, hinge] @ vdot[hinge])
        np.testing.assert_allclose(vdot[modal], expected, rtol=1e-8, atol=1e-8)
