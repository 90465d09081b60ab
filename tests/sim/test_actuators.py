"""Actuators and controllers, each against what it promises."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.sim.mechanisms import double_pendulum, pendulum, satellite, slider, top


def test_torque_over_time():
    motion = lw.simulate(slider(), [0.0], None, 2.0, control=lw.Torque(slider(), lambda t, p: [4.0 * t]))
    assert motion.q[-1, 0] == pytest.approx(8.0 / 3.0, rel=1e-9)  # x = t³/3
    np.testing.assert_allclose(motion.tau[:, 0], 4.0 * motion.t)


def test_pd_obeys_its_equation():
    model = slider()  # 2 kg
    kp, kd, goal = 50.0, 4.0, 0.7
    motion = lw.simulate(model, [0.0], None, 1.0, control=lw.PD(model, [goal], kp=kp, kd=kd), rtol=1e-11)
    d, w = kd / 4.0, np.sqrt(kp / 2.0 - (kd / 4.0) ** 2)
    t = motion.t
    expected = goal * (1.0 - np.exp(-d * t) * (np.cos(w * t) + d / w * np.sin(w * t)))
    np.testing.assert_allclose(motion.q[:, 0], expected, atol=1e-9)


def test_pd_with_gravity_holds_still_and_turns_a_ball_joint():
    model = double_pendulum()
    q0 = np.array([0.3, -1.0])
    held = lw.simulate(model, q0, None, 2.0, control=lw.PD(model, q0, kp=50.0, kd=5.0, gravity=True))
    np.testing.assert_allclose(held.q, np.broadcast_to(q0, held.q.shape), atol=1e-9)
    ball = top(lw.Spherical())
    goal = np.array([np.cos(0.6), 0.0, np.sin(0.6), 0.0])
    turned = lw.simulate(ball, ball.neutral(), None, 20.0, control=lw.PD(ball, goal, kp=20.0, kd=8.0))
    np.testing.assert_allclose(turned.q[-1], goal, atol=1e-6)


def test_targets_from_parameters():
    model = double_pendulum()
    control = lw.PD(model, lambda t, p: p[:2], kp=400.0, kd=60.0, gravity=True)
    goals = np.array([[0.1, 0.2], [0.5, -0.5], [-1.0, 1.0]])
    motion = lw.simulate(model, [0.0, 0.0], None, 10.0, control=control, p=goals, rtol=1e-7)
    np.testing.assert_allclose(motion.q[:, -1], goals, atol=1e-4)


@pytest.mark.parametrize("kind", [lw.PD, lw.ComputedTorque])
def test_gains_from_parameters_and_from_tables(kind):
    model, stiff, firm = double_pendulum(), [30.0, 20.0], [4.0, 3.0]
    start = {"q0": [0.4, -0.3], "duration": 0.5, "method": "rk4", "dt": 1e-3}
    expected = lw.simulate(model, control=kind(model, [0.1, 0.2], kp=stiff, kd=firm), **start)
    read = kind(model, [0.1, 0.2], kp=lambda t, p: p[:2], kd=lambda t, p: p[2:])
    batch = np.array([[*stiff, *firm], [60.0, 40.0, 8.0, 6.0]])
    found = lw.simulate(model, control=read, p=batch, **start)
    np.testing.assert_allclose(found.q[0], expected.q, rtol=0, atol=1e-12)
    assert abs(found.q[1] - expected.q).max() > 1e-3
    held = kind(model, [0.1, 0.2], kp=lw.Table([0.0], [stiff], "held"), kd=firm)
    np.testing.assert_allclose(lw.simulate(model, control=held, **start).q, expected.q, rtol=0, atol=1e-12)


def test_computed_torque_follows_exactly():
    model = double_pendulum()
    control = lw.ComputedTorque(
        model,
        lambda t, p: [lw.math.sin(t), lw.math.cos(2.0 * t)],
        lambda t, p: [lw.math.cos(t), -2.0 * lw.math.sin(2.0 * t)],
        lambda t, p: [-lw.math.sin(t), -4.0 * lw.math.cos(2.0 * t)],
    )
    motion = lw.simulate(model, [0.0, 1.0], [1.0, 0.0], 3.0, control=control, rtol=1e-11)
    np.testing.assert_allclose(motion.q, np.stack([np.sin(motion.t), np.cos(2.0 * motion.t)], axis=1), atol=1e-8)
    late = lw.simulate(model, [0.5, 0.0], [0.0, 0.0], 3.0, control=control)
    assert np.abs(late.q[-1] - [np.sin(3.0), np.cos(6.0)]).max() < 1e-6


def test_springs_store_energy():
    model = slider()
    springs = lw.JointSprings(model, 32.0, rest=[0.5])
    motion = lw.simulate(model, [0.0], None, 5.0, control=springs, rtol=1e-11)
    np.testing.assert_allclose(motion.q[:, 0], 0.5 - 0.5 * np.cos(4.0 * motion.t), atol=1e-9)
    np.testing.assert_allclose(motion.energy, 4.0, rtol=1e-10)
    np.testing.assert_array_equal(motion.tau, 0.0)  # passive: not an actuator's


@pytest.mark.parametrize("joint", [lw.Spherical(), lw.Planar(), lw.Free()], ids=lambda j: type(j).__name__)
def test_springs_of_any_stiffness_keep_the_energy_on_any_joint(joint):
    model = top(joint)
    rng = np.random.default_rng(1)
    springs = lw.JointSprings(model, rng.uniform(1.0, 5.0, model.nv))
    q0 = model.integrate(model.neutral(), rng.uniform(-0.5, 0.5, model.nv))
    motion = lw.simulate(model, q0, rng.uniform(-0.3, 0.3, model.nv), 20.0, control=springs, rtol=1e-11)
    assert np.ptp(motion.energy) < 1e-8 * motion.energy[0]
    assert np.ptp(model.kinetic_energy(motion.q, motion.v)) > 0.1 * motion.energy[0]


def test_series_elastic_actuator_keeps_momentum_and_reaches_its_command():
    """Two masses on a spring, the motor free: the mass centre does not accelerate, the energy stays."""
    model = slider()
    free = lw.SeriesElastic(model, ["block_joint"], [0.0], stiffness=40.0, inertia=0.5, kp=0.0, kd=0.0)
    motion = lw.simulate(model, [0.2], [0.0], 3.0, control=free, rtol=1e-11)
    momentum = 2.0 * motion.v[:, 0] + 0.5 * motion.x[:, 1]
    np.testing.assert_allclose(momentum, 0.0, atol=1e-9)
    np.testing.assert_allclose(motion.energy, motion.energy[0], rtol=1e-9)
    frequency = np.sqrt(40.0 * (1 / 2.0 + 1 / 0.5))
    np.testing.assert_allclose(motion.q[:, 0] - motion.x[:, 0], 0.2 * np.cos(frequency * motion.t), atol=1e-8)
    driven = lw.SeriesElastic(
        model, ["block_joint"], [0.4], stiffness=100.0, inertia=0.5, kp=200.0, kd=40.0, friction=1.0
    )
    reached = lw.simulate(model, [0.0], None, 60.0, control=driven)
    assert reached.q[-1, 0] == pytest.approx(0.4, abs=1e-4)
    with pytest.raises(lw.InputError, match="one freedom"):
        lw.SeriesElastic(top(), ["body_joint"], [0.0])


def test_reaction_wheel_keeps_the_total_momentum():
    model = top(lw.Spherical())
    wheel = lw.space.BalancedWheel(model, "body", (1, 1, 0), lambda t, q, v, p: 0.3 * lw.math.sin(2.0 * t), start=0.2)
    motion = lw.simulate(model, model.neutral(), [0.3, -0.2, 0.5], 10.0, control=wheel, rtol=1e-11)
    R = motion.pose("body")[:, :3, :3]
    spin = np.einsum("tij,j,t->ti", R, np.array([1, 1, 0]) / np.sqrt(2), motion.x[:, 0])
    total = model.momentum(motion.q, motion.v)[:, :3] + spin
    np.testing.assert_allclose(total, np.broadcast_to(total[0], total.shape), atol=1e-9)
    assert np.ptp(motion.x) > 0.1


def test_reaction_wheel_is_a_body_on_a_hinge():
    """The element against the mechanism it stands for: a wheel with its own joint, driven by the same torque."""
    hub, across, J, n = np.diag([1.0, 2.0, 3.0]), 0.1, 0.2, np.array([0.0, 0.0, 1.0])
    b = lw.ModelBuilder("hub with a wheel", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Spherical(), mass=2.0, inertia=hub)
    b.add_body("wheel", "hub", lw.Revolute(axis=n), lw.transform(), mass=1.0, inertia=np.diag([across, across, J]))
    real = b.build()
    b = lw.ModelBuilder("hub", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Spherical(), mass=3.0, inertia=hub + np.diag([across, across, 0.0]))
    model = b.build()
    omega, speed = np.array([0.3, -0.4, 0.5]), 6.0
    times = np.linspace(0.0, 5.0, 21)
    options = {"rtol": 1e-11, "output_times": times}
    driven = lw.simulate(
        real,
        real.neutral(),
        [*omega, speed],
        5.0,
        control=lambda t, q, v, p: [0.0, 0.0, 0.0, 0.3 * lw.math.sin(2.0 * t)],
        **options,
    )
    start = J * (speed + omega @ n)
    torque = lambda t, q, v, p: 0.3 * lw.math.sin(2.0 * t)  # noqa: E731
    wheel = lw.space.BalancedWheel(model, "hub", n, torque, start=start, inertia=J)
    motion = lw.simulate(model, model.neutral(), omega, 5.0, control=wheel, **options)
    np.testing.assert_allclose(motion.v, driven.v[:, :3], atol=1e-9)
    np.testing.assert_allclose(motion.x[:, 0], J * (driven.v[:, 3] + driven.v[:, :3] @ n), atol=1e-9)
    np.testing.assert_allclose(motion.energy, driven.energy, rtol=1e-9)
    with pytest.raises(lw.InputError, match="inertia"):
        lw.space.BalancedWheel(model, "hub", n, 0.0, inertia=-1.0)


def test_thruster_pushes_where_the_body_points():
    model = top()  # 2 kg, free
    nozzle = lw.space.Thruster("body", (0, 0, 1), 4.0, lambda t, q, v, p: lw.math.where(t < 1.0, 1.0, -0.25))
    burn = lw.space.Propulsion(model, nozzle)
    motion = lw.simulate(model, model.neutral(), None, 2.0, control=burn, max_step=0.01, output_times=[0.0, 1.0, 2.0])
    np.testing.assert_allclose(motion.q[:, 6], [0.0, 1.0, 3.0], rtol=1e-4)  # nozzles do not pull
    off_centre = lw.space.Propulsion(model, lw.space.Thruster("body", (0, 1, 0), 1.0, place=(0.5, 0, 0)))
    spun = lw.simulate(model, model.neutral(), None, 1.0, control=off_centre)
    assert spun.v[-1, 2] == pytest.approx(0.5 / 3.0, rel=1e-9)


def test_elements_add_up_and_sit_beside_functions():
    model = satellite()
    both = [
        lw.JointSprings(model, [0.0] * 6 + [5000.0] * 2),
        lw.space.Propulsion(model, lw.space.Thruster("hub", (1, 0, 0), 10.0)),
        lambda t, q, v, p: [0.0] * 6 + [-75.0 * v[6], -75.0 * v[7]],
    ]
    motion = lw.simulate(model, model.neutral(), None, 1.0, control=both)
    momentum = model.momentum(motion.q, motion.v)
    np.testing.assert_allclose(np.linalg.norm(momentum[-1, 3:]), 10.0, rtol=1e-3)


def test_implicit_steps_take_controllers_with_states():
    """The exact Jacobian reaches through elements: stiff motors, few steps, the same motion."""
    model = pendulum()
    motor = lw.SeriesElastic(model, ["mass_joint"], [0.5], stiffness=1e5, inertia=0.1, kp=1e4, kd=2e3)
    options = {"control": motor, "output_times": np.linspace(0.0, 1.0, 5), "rtol": 1e-7}
    explicit = lw.simulate(model, [0.0], None, 1.0, method="dop853", **options)
    implicit = lw.simulate(model, [0.0], None, 1.0, method="rodas4", **options)
    np.testing.assert_allclose(implicit.q, explicit.q, atol=1e-5)
    wheel = lw.space.BalancedWheel(top(), "body", (0, 0, 1), 0.1, start=0.5)
    body = top()
    runs = [
        lw.simulate(body, body.neutral(), [0.1, 0.2, 0.3, 0, 0, 0], 1.0, control=wheel, method=method, rtol=1e-8)
        for method in ("dop853", "rodas4")
    ]
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-6)


class Coupled(lw.Element):
    """A spring and a damper along one direction in the space of two joints, written as numbers times vectors."""

    def __init__(self, k, along):
        self.k, self.along = k, along

    def force(self, t, q, v, x, p):
        stretch, rate = q @ np.array([1.0, 2.0]), v @ np.array([1.0, 2.0])
        return -self.k * stretch * self.along - rate * (0.1, 0.2) - [0.05, 0.1] * rate

    def energy(self, q, x, p):
        return 0.5 * self.k * (q @ np.array([1.0, 2.0])) ** 2


@pytest.mark.parametrize("method", ["rk4", "dopri5", "dop853", "rodas4", "generalized_alpha", "variational"])
def test_numbers_times_vectors_with_every_method(method):
    model = double_pendulum()
    steps = {"dt": 1e-3} if method in ("rk4", "generalized_alpha", "variational") else {"rtol": 1e-9}
    control = Coupled(3.0, np.array([1.0, 2.0]))

    def by_hand(t, q, v, p):
        stretch, rate = q[0] + 2.0 * q[1], v[0] + 2.0 * v[1]
        return [-3.0 * stretch - 0.15 * rate, -6.0 * stretch - 0.3 * rate]

    found, due = (
        lw.simulate(model, [0.3, 0.2], [0.1, -0.2], 0.3, method=method, control=c, **steps) for c in (control, by_hand)
    )
    np.testing.assert_allclose(found.q[-1], due.q[-1], rtol=1e-9)


def test_one_gain_for_all_joints_holds_no_base_that_moves_freely() -> None:
    """A robot in flight with a stiff PD falls as it would without, and compensated gravity does not carry it."""
    model = samples.quadruped()
    q0 = model.start
    gains = {"kp": 50.0, "kd": 1.0}
    fed = {"kp": lambda t, p: 50.0, "kd": lambda t, p: 1.0}
    laws = [lw.PD(model, q0, gravity=True, **gains), lw.PD(model, q0, gravity=True, **fed)]
    laws += [lw.PID(model, q0, gravity=True, **gains), lw.JointSprings(model, stiffness=50.0, damping=1.0)]
    for law in laws:
        run = lw.simulate(model, q0, duration=0.2, control=law)
        centre = model.center_of_mass(run.q[-1]) - model.center_of_mass(q0)
        assert np.allclose(centre, [0.0, 0.0, -0.5 * 9.81 * 0.2**2], atol=1e-7)
        assert not run.tau[:, :6].any()
    held = lw.PD(model, q0, kp=np.full(model.nv, 50.0), kd=1.0, gravity=True)  # as told
    assert np.allclose(lw.simulate(model, q0, duration=0.2, control=held).q[-1], q0, atol=1e-6)
    alone = lw.ModelBuilder("drone")
    alone.add_body("drone", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    drone = alone.build()  # all that there is: it is driven
    flown = lw.simulate(drone, drone.neutral(), duration=0.2, control=lw.PD(drone, drone.neutral(), gravity=True))
    assert np.allclose(flown.q[-1], drone.neutral(), atol=1e-9)
    with pytest.raises(lw.InputError, match="configuration of the whole model"):
        lw.PD(model, q0[7:])


def test_computed_torque_drives_joints_of_what_flies_and_not_its_base() -> None:
    model = samples.quadruped()
    target, base = np.array(model.start), slice(0, 6)
    target[7:] += 0.2
    v0 = np.r_[0.3, 0.2, -0.4, 1.0, 0.0, 2.0, np.zeros(model.nv - 6)]
    options = {"duration": 0.5, "method": "rk4", "dt": 2e-3}
    motion = lw.simulate(model, None, v0, control=lw.ComputedTorque(model, target), **options)
    np.testing.assert_array_equal(motion.tau[:, base], 0.0)
    left = 0.2 * (1.0 + 10.0 * motion.t) * np.exp(-10.0 * motion.t)  # ë + kd ė + kp e = 0
    np.testing.assert_allclose(target[7:] - motion.q[:, 7:], left[:, None] * np.ones(model.nv - 6), atol=1e-8)
    held = lw.ComputedTorque(model, target, kp=[100.0] * model.nv, kd=[20.0] * model.nv)
    assert abs(lw.simulate(model, None, v0, control=held, **options).tau[0, base]).max() > 1.0
