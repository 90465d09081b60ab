"""The running simulation: the same numbers as simulate, and a mouse that pulls as a spring does."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import LinkwiseError
from linkwise.viz.live import LiveRun
from linkwise.viz.overlays import on_the_line


def test_pieces_are_the_motion_that_simulate_gives():
    model = samples.planar_arm()
    q0, v0 = np.array([0.3, -0.2, 0.5]), np.array([0.1, 0.2, -0.3])
    run = LiveRun(model, q0, v0, dt=1e-3)
    for _ in range(10):
        run.advance(0.05)
    whole = lw.simulate(model, q0, v0, duration=0.5, dt=1e-3, method="rk4")
    np.testing.assert_allclose(run.q, whole.q[-1], atol=1e-12)
    np.testing.assert_allclose(run.v, whole.v[-1], atol=1e-12)
    assert run.energy == pytest.approx(whole.energy[-1], abs=1e-9)
    assert run.t == pytest.approx(0.5) and len(run.history) == 10 and run.closure_error == 0.0


def test_gravity_can_be_switched_off():
    model = samples.planar_arm()
    run = LiveRun(model, np.zeros(3))
    run.gravity = False
    run.advance(0.2)
    np.testing.assert_allclose(run.q, 0.0, atol=1e-15)
    run.gravity = True
    run.advance(0.2)
    assert np.abs(run.q).max() > 0.01


@pytest.mark.parametrize("body", [0, 2])
def test_the_mouse_is_a_spring_and_a_damper(body):
    """The wrench on the body does what J*f does, with the force of a spring at the point."""
    model = samples.stanford_arm()
    rng = np.random.default_rng(body)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    run = LiveRun(model, q, v)
    point, place = np.array([0.02, -0.03, 0.05]), np.array([0.3, 0.2, 0.1])
    run.take(body, point, place)
    p = run.p
    name = model.bodies[body].name
    wrenches = run.pull.wrench(0.0, q, v, (), p)
    J = model.jacobian(q, name, point)[3:]
    X = model.pose(q, name)
    force = run.hold.stiffness * (place - X[:3, :3] @ point - X[:3, 3]) - run.hold.damping * (J @ v)
    f_ext = np.array([np.asarray(wrenches[b.name], float) for b in model.bodies])
    with_force = model.inverse_dynamics(q, v, np.zeros(model.nv), f_ext)
    without = model.inverse_dynamics(q, v, np.zeros(model.nv))
    np.testing.assert_allclose(without - with_force, J.T @ force, atol=1e-9)
    assert not any(np.any(f_ext[k]) for k in range(len(model.bodies)) if k != body)


def test_what_is_held_comes_to_rest_where_it_is_drawn():
    model = samples.planar_arm()
    run = LiveRun(model, np.array([0.3, 0.4, 0.2]))
    run.gravity = False
    name = model.bodies[2].name
    place = model.pose(np.array([0.1, 0.5, 0.3]), name)[:3, 3]
    run.take(2, np.zeros(3), place)
    for _ in range(60):
        run.advance(0.1)
    np.testing.assert_allclose(model.pose(run.q, name)[:3, 3], place, atol=0.02)
    assert run.f_ext is not None
    run.hold = None
    run.advance(0.01)
    np.testing.assert_allclose(run.f_ext, 0.0, atol=1e-12)


def test_closed_mechanisms_stay_closed():
    model = samples.four_bar()
    q = model.assemble(np.array([0.4, 0.1, 0.2]))
    run = LiveRun(model, q)
    for _ in range(10):
        run.advance(0.05)
    assert run.closure_error < 1e-9 and np.abs(run.v).max() > 0.0


def test_a_run_may_be_inside_a_limits_spring():
    b = lw.ModelBuilder("limited")
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=0.1 * np.eye(3),
               limits=lw.JointLimits(-1.0, 0.1))  # fmt: skip
    run = LiveRun(b.build(), np.array([0.0]))
    for _ in range(60):
        run.advance(0.02)
    assert 0.1 < run.q[0] < 0.2  # it lies on the limit, a little inside its spring


def test_reset_and_bounded_history():
    run = LiveRun(samples.planar_arm(), np.zeros(3), dt=0.005)
    for _ in range(700):
        run.advance(0.005)
    assert len(run.history) == 600
    run.reset()
    assert run.t == 0.0 and not run.history and not run.v.any()


def test_a_run_that_diverges_says_so():
    run = LiveRun(samples.planar_arm(), np.zeros(3), np.array([1e200, 0.0, 0.0]))
    with pytest.raises(LinkwiseError, match="stopped"):
        run.advance(0.1)


def test_a_force_is_drawn_on_its_line_of_action():
    rng = np.random.default_rng(0)
    f, r = rng.normal(size=(2, 5, 3))
    points = on_the_line(np.concatenate([np.cross(r, f), f], axis=1), 100.0)
    np.testing.assert_allclose(np.cross(points, f), np.cross(r, f), atol=1e-12)  # the same moment: the same line
    np.testing.assert_allclose(np.einsum("ki,ki->k", points, f), 0.0, atol=1e-12)  # at its point nearest to the origin
    assert not on_the_line(np.array([[1.0, 0, 0, 0, 0, 0], [0, 0, 9.0, 1e-3, 0, 0]]), 1.0).any()  # couples


def test_another_integrator_goes_on_after_a_failure():
    """Steps that are too long for a stiff spring, which takes hold after a while."""
    model = samples.planar_arm()

    def stiff(t, q, v, p):
        return [lw.math.where(t > 0.09, -3e6 * (q[0] - 0.3) - 1e3 * v[0], 0.0), 0.0, 0.0]

    run = LiveRun(model, np.array([0.3, -0.2, 0.5]), control=stiff, dt=5e-3)
    run.advance(0.05)
    with pytest.raises(LinkwiseError, match="another integrator"):
        for _ in range(100):
            run.advance(0.05)
    t, q = run.t, run.q
    assert t > 0.0 and np.isfinite(q).all()
    run.method = "rodas4"
    run.advance(0.05)
    assert run.t == pytest.approx(t + 0.05) and np.isfinite(run.q).all()


# Levers, signals, recordings.


def driven():
    """A rod with a motor, a servo and one more motor with an activation, each on a hinge of its own."""
    b = lw.ModelBuilder("driven")
    for name in ("one", "two", "three"):
        b.add_body(name, joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), joint_name=f"{name} hinge",
                   inertia=0.1 * np.eye(3))  # fmt: skip
    hinges = {name: lw.equipment.JointTransmission({f"{name} hinge": 1.0}) for name in ("one", "two", "three")}
    Actuator, Activation = lw.equipment.Actuator, lw.equipment.Activation
    b.add_actuator(Actuator("motor", hinges["one"], gain=(3, 0, 0), control_range=(-2.0, 1.0)))
    b.add_actuator(Actuator("servo", hinges["two"], gain=(50, 0, 0), bias=(0, -50, -5)))
    b.add_actuator(Actuator("muscle", hinges["three"], gain=(4, 0, 0), activation=Activation("filter", 0.1)))
    return b.build()


def test_levers_have_the_names_and_ranges_of_actuators():
    run = LiveRun(driven(), np.array([0.0, 0.4, 0.0]))
    motor, servo, muscle = run.levers
    assert (motor.name, motor.low, motor.high, motor.start) == ("motor", -2.0, 1.0, 0.0)
    assert servo.name == "servo" and servo.low <= 0.4 <= servo.high
    assert servo.start == pytest.approx(0.4)  # it holds what it moves where it is
    assert (muscle.name, muscle.start) == ("muscle", 0.0)
    assert LiveRun(driven(), np.zeros(3), control=lw.Drives(driven(), u=0.0)).levers == ()  # someone else drives


def test_levers_act_as_drives_do():
    model = driven()
    run = LiveRun(model, np.array([0.0, 0.4, 0.0]))
    run.u[:] = u = [0.7, 0.2, 0.5]
    for _ in range(4):
        run.advance(0.05)
    whole = lw.simulate(model, [0.0, 0.4, 0.0], duration=0.2, dt=1e-3, method="rk4", control=lw.Drives(model, u=u))
    np.testing.assert_allclose(run.q, whole.q[-1], atol=1e-12)
    np.testing.assert_allclose(run.x, whole.x[-1], atol=1e-12)
    assert whole.columns["x"] == ["muscle"]
    run.u[0] = 5.0  # beyond its range
    run.advance(0.001)
    assert run.tau[0] == pytest.approx(3.0)


def test_a_model_without_actuators_is_driven_at_its_joints():
    b = lw.ModelBuilder("arm")
    for name, limits in (("a", lw.JointLimits(effort=5.0)), ("b", None)):
        b.add_body(name, joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, inertia=0.1 * np.eye(3), limits=limits)
    run = LiveRun(b.build(), np.zeros(2))
    (lever,) = run.levers
    assert (lever.name, lever.low, lever.high) == ("a_joint", -5.0, 5.0)
    run.u[:] = 2.0
    run.advance(0.1)
    np.testing.assert_allclose(run.v, [2.0 / 0.1 * 0.1, 0.0], atol=1e-9)  # v = τ t / I
    assert LiveRun(samples.planar_arm(), np.zeros(3)).levers == ()


def test_signals_have_names_and_are_what_they_say():
    run = LiveRun(driven(), np.array([0.1, 0.4, 0.0]))
    run.u[2] = 0.5
    for _ in range(3):
        run.advance(0.02)
    assert {"energy", "u motor", "q one hinge", "v two hinge", "τ three hinge", "x muscle"} <= set(run.signal_names)
    t, table = run.signals(["q one hinge", "x muscle", "u muscle", "energy"])
    np.testing.assert_allclose(t, [0.02, 0.04, 0.06])
    np.testing.assert_allclose(table[-1], [run.q[0], run.x[0], 0.5, run.energy])


def test_a_recording_is_a_motion():
    model = samples.planar_arm()
    run = LiveRun(model, np.array([0.3, -0.2, 0.5]), dt=1e-3)
    run.advance(0.1)
    assert run.recorded_motion is None
    run.record(True)
    for _ in range(5):
        run.advance(0.02)
    run.record(False)
    run.advance(0.1)
    motion = run.recorded_motion
    np.testing.assert_allclose(motion.t, 0.1 + 0.02 * np.arange(6))
    whole = lw.simulate(model, [0.3, -0.2, 0.5], duration=0.2, dt=1e-3, method="rk4", output_times=motion.t)
    np.testing.assert_allclose(motion.q, whole.q, atol=1e-12)
    np.testing.assert_allclose(motion.energy[1:], whole.energy[1:], atol=1e-9)
    assert len(motion.poses) == 6  # it knows its model


def test_states_of_muscles_have_names():
    b = lw.ModelBuilder("limb")
    b.add_body("limb", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), joint_name="elbow")
    b.add_actuator(
        lw.equipment.Actuator(
            "biceps",
            lw.equipment.JointTransmission({"elbow": 1.0}),
            activation=lw.equipment.Activation("muscle", 0.01),
            muscle=lw.equipment.HillMuscle(100.0, 0.1, 0.1, tendon_stiffness=35.0),
        )
    )
    drives = lw.Drives(b.build(), u=0.0)
    assert drives.state_names == ("biceps", "biceps fibre") and len(drives.state_names) == drives.nx
