"""The variational integrator: rotors on every joint, and states that do not feel their neighbours."""

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import double_pendulum, mixed


def rotors(joint, armature, gravity=(0.0, 0.0, -9.81)):
    """A body on a joint with rotors, and a pendulum on it."""
    b = lw.ModelBuilder("rotors", gravity=gravity)
    I = np.diag([0.3, 0.4, 0.5])
    b.add_body("base", joint=joint, mass=1.0, com=(0.1, 0.05, -0.2), inertia=I, armature=armature)
    b.add_body("arm", "base", lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0.3, 0, 0)), mass=0.5, com=(0, 0, -0.3))
    return b.build()


ROTORS = {
    "planar": (lw.Planar(normal=(0, 1, 0)), (0.2, 0.7, 0.3)),
    "free": (lw.Free(), (0.1, 0.4, 0.2, 0.5, 0.9, 0.3)),
    "spherical": (lw.Spherical(), (0.1, 0.5, 0.9)),
}


@pytest.mark.parametrize("kind", ROTORS)
def test_converges_to_the_right_motion_with_second_order(kind):
    model = rotors(*ROTORS[kind])
    rng = np.random.default_rng(3)
    q0, v0 = model.random_configuration(rng), rng.normal(size=model.nv)
    exact = lw.simulate(model, q0, v0, 0.5, rtol=1e-12, output_times=[0.5])
    sizes = np.array([80, 160, 320])
    errors = []
    for n in sizes:
        motion = lw.simulate(model, q0, v0, 0.5, dt=0.5 / n, method="variational", output_times=[0.5])
        errors.append(np.abs(np.concatenate([motion.q - exact.q, motion.v - exact.v], axis=1)).max())
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)
    assert errors[-1] < 1e-4


@pytest.mark.parametrize("kind", ROTORS)
def test_energy_oscillates_and_does_not_grow(kind):
    model = rotors(*ROTORS[kind])
    rng = np.random.default_rng(5)
    q0, v0 = model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv)), 0.3 * rng.normal(size=model.nv)
    hold = lw.JointSprings(model, [20.0] * model.nv)  # so that nothing falls for ever
    worst = []
    for dt in (1e-2, 5e-3):
        motion = lw.simulate(model, q0, v0, 200.0, dt=dt, method="variational", control=hold, save_every=7)
        first, *_, last = np.array_split(np.abs(motion.energy - motion.energy[0]), 5)
        assert last.max() < 1.2 * first.max()
        worst.append(first.max())
    assert worst[0] / worst[1] == pytest.approx(4.0, rel=0.1)
    assert worst[1] < 1e-3


def test_rotors_as_run_time_parameters():
    joint, armature = ROTORS["planar"]
    fixed = rotors(joint, armature)
    free = rotors(joint, 0.0).with_parameters(["base.armature"])
    q0, v0 = fixed.random_configuration(1), np.ones(fixed.nv)
    options = {"dt": 1e-2, "method": "variational"}
    np.testing.assert_allclose(
        lw.simulate(free, q0, v0, 0.3, p=armature, **options).q,
        lw.simulate(fixed, q0, v0, 0.3, **options).q,
        atol=1e-12,
    )


@pytest.mark.parametrize("make", [double_pendulum, mixed])
def test_a_state_does_not_feel_its_neighbours(make):
    """Bit for bit: whatever lies in the other lanes, and wherever in the batch the state is."""
    model = make()
    rng = np.random.default_rng(0)
    q0 = np.stack([model.random_configuration(rng) for _ in range(24)])
    v0 = rng.normal(size=(24, model.nv)) * np.geomspace(1e-3, 5.0, 24)[:, None]  # easy and hard ones
    options = {"dt": 2e-2, "method": "variational"}
    whole = lw.simulate(model, q0, v0, 0.4, **options)
    order = rng.permutation(24)
    shuffled = lw.simulate(model, q0[order], v0[order], 0.4, **options)
    np.testing.assert_array_equal(shuffled.q, whole.q[order])
    np.testing.assert_array_equal(shuffled.v, whole.v[order])
    for k in (0, 7, 23):
        one = lw.simulate(model, q0[k : k + 1].repeat(3, axis=0), v0[k : k + 1].repeat(3, axis=0), 0.4, **options)
        np.testing.assert_array_equal(one.q[1], whole.q[k])


def test_what_flies_fast_turns_as_it_does_at_rest():
    """Where bodies flew along screws, steps stopped converging at 20 m/s, and inertias were larger by m (hv)²/12."""
    b = lw.ModelBuilder("thrown")
    b.add_body("box", joint=lw.Free(), mass=1.0, inertia=np.diag([0.004, 0.005, 0.007]))
    model = b.build()
    q0, spin, v0 = model.neutral(), [1.0, 2.0, 3.0], np.array([3.0, -2.0, 80.0])
    options = {"duration": 15.0, "dt": 0.01, "method": "variational", "save_every": 100}
    at_rest = lw.simulate(model, q0, [*spin, 0, 0, 0], **options)
    thrown = lw.simulate(model, q0, [*spin, *v0], **options)
    np.testing.assert_allclose(thrown.q[:, :4], at_rest.q[:, :4], atol=1e-9)
    np.testing.assert_allclose(thrown.q[:, 4:] - np.outer(thrown.t, v0), at_rest.q[:, 4:], atol=1e-9)
    np.testing.assert_allclose(at_rest.q[:, 6], -0.5 * 9.81 * at_rest.t**2, atol=1e-9)
