"""Models that come with the library: all of them start, move and say what they are."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples

NAMES = [name for name in samples.__all__ if name != "squeezer_forces"]


@pytest.mark.parametrize("name", NAMES)
def test_it_starts_within_limits_and_moves(name):
    model = getattr(samples, name)()
    assert model.name == name
    assert (getattr(samples, name).__doc__ or "").splitlines()[0].rstrip().endswith((".", ":"))
    q = model.start
    assert (model.limits.lower <= q).all() and (q <= model.limits.upper).all()
    motion = lw.simulate(model, duration=0.02, method="rk4")
    assert motion.status == "done" and np.isfinite(motion.q).all()
    model.constraints.check(motion.q[-1])


def test_seven_joint_arm():
    model = samples.seven_joint_arm()
    assert model.nv == 7 and model.mass == pytest.approx(18.4)
    tool = model.pose(model.start, "tool")
    assert np.allclose(tool[:3, 2], [0, 0, -1], atol=1e-12) and tool[0, 3] > 0.4
    # the wrist reaches as far as said, and a joint more than six leaves a motion of the elbow
    stretched = np.array([0.0, np.pi / 2, 0, 0, 0, 0, 0])
    assert np.linalg.norm(model.pose(stretched, "tool")[:3, 3] - [0, 0, 0.35]) == pytest.approx(0.93)
    assert np.linalg.matrix_rank(model.jacobian(model.start, "tool"), tol=1e-6) == 6
    # it holds itself everywhere, with strength to spare
    weight = np.abs(model.gravity_force(model.random_configuration(0, size=500))).max(axis=0)
    assert (weight < 0.5 * model.limits.effort).all()


def test_wrist_and_shoulder_are_points():
    """Joints 1 to 3 move no point of the shoulder, 5 to 7 none of the wrist: what makes inverse kinematics simple."""
    model = samples.seven_joint_arm()
    q = model.random_configuration(1)
    turned = q.copy()
    turned[[4, 5, 6]] += [0.3, -0.2, 0.5]
    assert np.allclose(model.pose(q, "link6")[:3, 3], model.pose(turned, "link6")[:3, 3])
    turned = q.copy()
    turned[[0, 1, 2]] += [0.3, -0.2, 0.5]
    assert np.allclose(model.pose(q, "link3")[:3, 3], model.pose(turned, "link3")[:3, 3])


def test_flexible_satellite():
    model = samples.flexible_satellite()
    assert model.mass == pytest.approx(20.0 + 2 * 4.5)
    # A clamped beam's first mode (β₁L = 1.8751): Euler and Bernoulli
    for EI, found in zip((40.0, 90.0), model.bodies["left"].flexible.held_frequencies[:2], strict=True):
        assert found == pytest.approx(1.8751040687**2 / (2 * np.pi) * np.sqrt(EI / (1.5 * 3.0**4)), rel=1e-5)
    v = np.zeros(model.nv)
    v[:3], v[-1] = (0.3, 0.1, -0.2), 0.4
    motion = lw.simulate(model, v0=v, duration=3.0, rtol=1e-10)
    momentum = model.momentum(motion.q, motion.v)
    assert np.abs(momentum - momentum[0]).max() < 1e-8
    assert np.ptp(motion.energy) < 1e-7 * motion.energy[0]
