"""Joints that follow others, and limits of joints with q̇ ≠ v: what acts, and that power balances."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.limits import AllLimits, limits_of_joints

MULTIPLIER, OFFSET = -2.5, 0.3


def gripper(**follower):
    """Two masses on rails, the second bound to the first: q₂ = -2.5 q₁ + 0.3. Inertia at the leader: 2 + 2.5² · 0.4."""
    b = lw.ModelBuilder("gripper", gravity=(0, 0, 0))
    b.add_body("left", joint=lw.Prismatic(axis=(1, 0, 0)), mass=2.0, inertia=np.eye(3), joint_name="leader")
    b.add_body(
        "right",
        joint=lw.Prismatic(axis=(0, 1, 0)),
        mass=0.4,
        inertia=np.eye(3),
        joint_name="follower",
        mimic=lw.Mimic("leader", MULTIPLIER, OFFSET),
        **follower,
    )
    return b.build()


INERTIA = 2.0 + MULTIPLIER**2 * 0.4


def test_encoders_read_the_followers_own_coordinate():
    motion = lw.simulate(gripper(), [0.1], [0.2], 1.0, output_times=[0.0, 0.5, 1.0])
    read = lw.Encoder(["leader", "follower"]).read(motion)
    np.testing.assert_allclose(read[:, 0], motion.q[:, 0])
    np.testing.assert_allclose(read[:, 1], motion.pose("right")[:, 1, 3], atol=1e-14)
    np.testing.assert_array_equal(lw.Encoder().read(motion), motion.q)


def test_encoders_read_one_coordinate():
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    model = b.build()
    with pytest.raises(lw.InputError, match="one coordinate"):
        lw.Encoder(["ball_joint"]).read(lw.simulate(model, model.neutral(), None, 0.1))


def test_a_followers_damping_acts_on_its_leader():
    motion = lw.simulate(gripper(damping=0.8), [0.0], [1.0], 1.0)
    assert motion.v[-1, 0] == pytest.approx(np.exp(-0.8 * MULTIPLIER**2 / INERTIA), rel=1e-8)
    free = lw.simulate(gripper(damping=0.8), [0.0], [1.0], 1.0, rules=lw.JointRules(damping=False))
    assert free.v[-1, 0] == pytest.approx(1.0)


def test_a_followers_friction_takes_the_work_of_its_own_way():
    rules = lw.JointRules(friction_speed=1e-3)
    motion = lw.simulate(gripper(friction=0.5), [0.0], [1.0], 0.5, method="rodas4", rtol=1e-9, rules=rules)
    way = abs(MULTIPLIER) * motion.q[-1, 0]
    assert motion.energy[0] - motion.energy[-1] == pytest.approx(0.5 * way, rel=1e-4)


def test_a_followers_limits_hold_stop_or_are_ignored():
    model = gripper(limits=lw.JointLimits(lower=-0.2, upper=0.8))  # the leader's [-0.2, 0.2]
    for speed, bound in ((1.0, 0.2), (-1.0, -0.2)):
        stopped = lw.simulate(model, [0.0], [speed], 5.0, limits="stop")
        assert stopped.status == "event"
        assert stopped.q[-1, 0] == pytest.approx(bound, abs=1e-12)
        assert stopped.events[0].name == f"follower: {'lower' if speed > 0 else 'upper'} limit"
    held = lw.simulate(model, [0.0], [1.0], 5.0)
    assert np.abs(held.q).max() < 0.22
    assert (np.diff(held.energy) < 1e-9).all()
    ideal = lw.simulate(model, [0.0], [1.0], 5.0, rules=lw.JointRules(limit_loss=0.0), rtol=1e-13)
    assert np.ptp(ideal.energy) < 1e-8
    assert lw.simulate(model, [0.0], [1.0], 5.0, limits="ignore").q[-1, 0] == pytest.approx(5.0)
    with pytest.raises(lw.InputError, match="follower"):
        lw.simulate(model, [0.5], [1.0], 1.0)


@pytest.mark.parametrize("method", ["dop853", "rodas4"])
def test_followers_with_everything_in_any_method(method):
    model = gripper(damping=0.3, friction=0.1, limits=lw.JointLimits(lower=-0.2, upper=0.8))
    one = lw.simulate(model, [0.0], [1.0], 1.0, method=method, rtol=1e-8, output_times=[0.5, 1.0])
    other = lw.simulate(model, [0.0], [1.0], 1.0, method="rk4", dt=1e-5, output_times=[0.5, 1.0])
    np.testing.assert_allclose(one.q, other.q, atol=1e-6)


def puck(**limits):
    b = lw.ModelBuilder("puck", gravity=(0, 0, 0))
    walls = [lw.JointLimits(), lw.JointLimits(-1.0, 0.5), lw.JointLimits(-0.4, 0.6)]
    if "angle" in limits:
        walls[0] = lw.JointLimits(*limits["angle"])
    b.add_body("puck", joint=lw.Planar(), mass=2.0, com=(0.1, 0.05, 0), inertia=np.diag([1.0, 1.0, 0.3]), limits=walls)
    return b.build()


def test_limits_of_a_planar_joint_hold_and_keep_the_energy():
    """The puck spins, so that walls along the coordinates push along ever other axes of the body."""
    model = puck()
    rules = lw.JointRules(limit_loss=0.0)
    motion = lw.simulate(model, [0.3, 0.0, 0.0], [2.0, 1.0, 0.7], 10.0, rules=rules, rtol=1e-10)
    assert motion.q[:, 1].max() > 0.5
    assert motion.q[:, 2].max() > 0.6
    assert (motion.q[:, 1:].max(axis=0) < [0.56, 0.66]).all()
    assert (motion.q[:, 1:].min(axis=0) > [-1.06, -0.46]).all()
    assert np.ptp(motion.energy) < 1e-6 * motion.energy[0]
    lossy = lw.simulate(model, [0.3, 0.0, 0.0], [2.0, 1.0, 0.7], 10.0)
    assert (np.diff(lossy.energy) < 1e-8).all()
    assert lossy.energy[-1] < 0.9 * lossy.energy[0]


def test_limits_of_a_planar_joint_stop_or_are_checked():
    model = puck(angle=(-0.5, 0.5))
    stopped = lw.simulate(model, [0.0, 0.0, 0.0], [0.1, 1.0, 0.0], 10.0, limits="stop")
    assert stopped.events[0].name == "puck_joint: upper limit"
    assert stopped.q[-1, 1] == pytest.approx(0.5, abs=1e-9)
    turned = lw.simulate(model, [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], 10.0, limits="stop")
    assert turned.q[-1, 0] == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(lw.InputError, match="puck_joint"):
        lw.simulate(model, [0.0, 0.7, 0.0], None, 1.0)


def test_limits_seen_at_once_are_those_seen_one_by_one():
    rng = np.random.default_rng(0)
    for model in (gripper(limits=lw.JointLimits(lower=-0.2, upper=0.8)), puck(angle=(-0.5, 0.5))):
        limits = limits_of_joints(model, 0.02)
        together = AllLimits(limits, model.nq)
        for q in rng.uniform(-1.2, 1.2, size=(50, model.nq)):
            beyond = [limit for limit in limits if limit.depth(q.tolist()) > 1e-9]
            assert together.exceeded(q[None]) == beyond
        assert together.exceeded(rng.uniform(-9.0, 9.0, size=(200, model.nq))) == limits
        assert together.exceeded(np.full((1, model.nq), np.nan)) == []
