"""Motions with known answers."""

import numpy as np
import pytest
from scipy.special import ellipj

import linkwise as lw
from linkwise import samples
from tests.sim.mechanisms import double_pendulum, pendulum, satellite, top


@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk56", "cash_karp"])
def test_simple_pendulum_at_ten_seconds(method):
    end = lw.simulate(pendulum(), [np.pi], [0.0], 10.0, rtol=1e-13, atol=1e-13, method=method).q[-1, 0]
    assert np.cos(end) == pytest.approx(-0.275087462576, abs=1e-9)
    assert np.sin(end) == pytest.approx(-0.961419205099, abs=1e-9)


@pytest.mark.parametrize("joint", [lw.Free(), lw.Spherical()])
def test_torque_free_top_follows_the_elliptic_functions(joint):
    I1, I2, I3 = 1.0, 2.0, 3.0
    w1, w3 = 0.4, 1.5
    E2, M2 = I1 * w1**2 + I3 * w3**2, (I1 * w1) ** 2 + (I3 * w3) ** 2  # twice the energy; the momentum squared
    assert M2 > E2 * I2
    model = top(joint)
    t = np.linspace(0.0, 20.0, 201)
    v0 = np.zeros(model.nv)
    v0[[0, 2]] = w1, w3
    motion = lw.simulate(model, model.neutral(), v0, 20.0, rtol=1e-12, output_times=t)
    rate = np.sqrt((I3 - I2) * (M2 - E2 * I1) / (I1 * I2 * I3))
    k2 = (I2 - I1) * (E2 * I3 - M2) / ((I3 - I2) * (M2 - E2 * I1))
    sn, cn, dn, _ = ellipj(rate * t, k2)
    expected = np.stack([w1 * cn, np.sqrt((E2 * I3 - M2) / (I2 * (I3 - I2))) * sn, w3 * dn], axis=1)
    np.testing.assert_allclose(motion.v[:, :3], expected, atol=1e-9)
    # The momentum stands still in space, so the attitude is right as well.
    momentum = model.momentum(motion.q, motion.v)[:, :3]
    np.testing.assert_allclose(momentum, np.broadcast_to([I1 * w1, 0.0, I3 * w3], momentum.shape), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(motion.q[:, :4], axis=1), 1.0, atol=4e-16)


def satellite_motion(damping, seconds):
    model = satellite()
    stiffness = [0.0] * 6 + [5000.0] * 2
    springs = lw.JointSprings(model, stiffness, [0.0] * 6 + [damping] * 2)
    q0 = model.neutral()
    q0[7:] = 0.2, -0.1
    v0 = np.array([0.1, -0.2, 0.15, 0.05, 0.02, -0.03, 0.0, 0.0])
    times = np.linspace(0.0, seconds, 201)
    return model, lw.simulate(model, q0, v0, seconds, control=springs, rtol=1e-13, atol=1e-14, output_times=times)


@pytest.mark.parametrize("damping", [0.0, 75.0])
def test_satellite_keeps_its_momenta_and_without_damping_its_energy(damping):
    model, motion = satellite_motion(damping, 100.0)
    momentum = model.momentum(motion.q, motion.v)
    for part in (slice(0, 3), slice(3, 6)):
        size = np.linalg.norm(momentum[0, part])
        assert np.abs(momentum[:, part] - momentum[0, part]).max() < 1e-10 * size
    if damping == 0.0:
        assert np.abs(motion.energy / motion.energy[0] - 1.0).max() < 1e-10
    else:
        assert (np.diff(motion.energy) < 1e-9).all()
        assert motion.energy[-1] < 0.9 * motion.energy[0]


def test_free_fall_of_the_stanford_arm_conserves_energy():
    model = samples.stanford_arm()
    q0 = np.zeros(6)
    q0[1] = np.pi / 2
    motion = lw.simulate(model, q0, None, 3.5, rtol=1e-11, limits="ignore")
    scale = max(np.abs(motion.energy).max(), float(model.kinetic_energy(motion.q, motion.v).max()))
    assert np.ptp(motion.energy) < 1e-9 * scale


def test_the_energy_error_of_the_variational_method_does_not_grow():
    """A million steps, in turns of a thousand."""
    motion = lw.simulate(double_pendulum(), [-1.0, 0.1], None, 1e4, dt=1e-2, method="variational", save_every=50)
    error = np.abs(motion.energy - motion.energy[0])
    early, late = error[: len(error) // 10].max(), error[-len(error) // 10 :].max()
    assert motion.steps == 1_000_000
    assert late < 1.5 * early
    assert error.max() < 1e-4 * abs(motion.energy[0])


def test_a_tumbling_top_keeps_momentum_and_nearly_energy_for_long():
    """The variational method with quaternions: forty thousand steps through the unstable axis's neighbourhood."""
    model = top(lw.Spherical())
    motion = lw.simulate(
        model, model.neutral(), [0.02, 1.0, 0.01], 2000.0, dt=0.05, method="variational", save_every=10
    )
    momentum = model.momentum(motion.q, motion.v)[:, :3]
    assert np.abs(momentum - momentum[0]).max() < 1e-9
    error = np.abs(motion.energy - motion.energy[0])
    assert error[-len(error) // 5 :].max() < 1.5 * error[: len(error) // 5].max()
    assert error.max() < 2e-3 * motion.energy[0]


def test_momentum_of_a_symmetry_is_kept_by_the_variational_method():
    """Without gravity the double pendulum keeps its angular momentum to rounding."""
    model = double_pendulum().with_gravity((0, 0, 0))
    motion = lw.simulate(model, [0.3, 1.0], [1.0, -2.0], 100.0, dt=1e-2, method="variational", save_every=100)
    momentum = model.momentum(motion.q, motion.v)[:, 2]
    np.testing.assert_allclose(momentum, momentum[0], rtol=1e-11)


@pytest.mark.parametrize(
    ("method", "step", "allowed"),
    [
        ("rk4", {"dt": 0.5}, 1e-7),
        ("dopri5", {"rtol": 1e-10}, 1e-8),
        ("dop853", {"rtol": 1e-12}, 1e-8),
        ("rodas4", {"rtol": 1e-8}, 1e-7),
        ("euler", {"dt": 0.5}, 0.05),
        ("generalized_alpha", {"dt": 0.5}, 0.05),
    ],
)
def test_what_tumbles_at_orbital_speed_flies_straight(method, step, allowed):
    """Ten minutes at 7.5 km/s, turning at 0.03 rad/s about a mass centre that is not its origin."""
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("craft", joint=lw.Free(), mass=50.0, com=(0.3, -0.2, 0.1), inertia=np.diag([12.0, 14.0, 4.0]))
    craft = b.build()
    q, v = np.array([1.0, 0, 0, 0, 0, 0, 0]), np.array([0.02, 0.01, 0.02, 0, 7500.0, 0])
    motion = lw.simulate(craft, q, v, duration=600.0, method=method, output_times=[0.0, 600.0], **step)
    straight = craft.center_of_mass(q) + 600.0 * craft.momentum(q, v)[3:] / 50.0
    assert np.abs(craft.center_of_mass(motion.q[-1]) - straight).max() < allowed
    turned = craft.centroidal.momentum(motion.q[-1], motion.v[-1]) - craft.centroidal.momentum(q, v)
    assert np.abs(turned[:3]).max() < (1e-8 if allowed < 1e-3 else 0.01)
