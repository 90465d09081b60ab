"""Forces, thrusters and sensors at nodes of flexible bodies, by name."""

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.errors import InputError, UnknownNameError
from tests.flexible.mechanisms import arm, state


def jet_on(model, *what, **more):
    """A thruster that always burns."""
    return lw.space.Propulsion(model, lw.space.Thruster(*what, **more))


def test_force_at_a_node_is_the_jacobians():
    model = arm()
    q, _ = state(model)
    f = np.random.default_rng(1).normal(size=6)
    for body, node in (("one", "tip"), ("one", 3), ("two", "tip"), ("load", None)):
        R = model.pose(q, body, node=node)[:3, :3]
        in_world = np.concatenate([R @ f[:3], R @ f[3:]])
        got = model.force_at(q, f, body, node=node)
        np.testing.assert_allclose(got, model.jacobian(q, body, node=node).T @ in_world, atol=1e-12)
    np.testing.assert_allclose(
        model.force_at(np.stack([q, q]), f, "two", node="tip")[1], model.force_at(q, f, "two", node="tip")
    )


def test_work_of_a_force_at_a_node():
    """Power f·V of the node is τ·v."""
    model = arm()
    q, v = state(model)
    f = np.arange(1.0, 7.0)
    V = model.velocity(q, v, "one", node=3)
    R = model.pose(q, "one", node=3)[:3, :3]
    power = f[:3] @ R.T @ V[:3] + f[3:] @ R.T @ V[3:]
    assert model.force_at(q, f, "one", node=3) @ v == pytest.approx(power, rel=1e-12)


@pytest.mark.parametrize("sweeps", ["unrolled", "rolled"])
def test_thruster_on_a_node(sweeps):
    """Pushed by a thruster, the arm moves as by the joint forces that its push amounts to."""
    model = samples.flexible_arm(modes=1, damping=0.05).with_sweeps(sweeps)
    jet = jet_on(model, "lower", (0.0, 0.6, 0.8), 1.5, place=(0.0, 0.1, 0.0), node="tip")

    def push(t, q, v, p):
        return model.force_at(
            q, np.array([1.5 * x for x in (0.08, 0.0, 0.0, 0.0, 0.6, 0.8)], object), "lower", node="tip"
        )

    q0 = model.neutral()
    options = {"duration": 0.2, "method": "rk4", "dt": 1e-3}
    jetted = lw.simulate(model, q0, control=jet, **options)
    pushed = lw.simulate(model, q0, control=push, **options)
    np.testing.assert_allclose(jetted.q, pushed.q, atol=1e-12)
    assert np.abs(jetted.q[-1]).max() > 1e-3


def test_thruster_on_a_frame_and_on_the_node_below_it():
    b = lw.ModelBuilder("jet", gravity=(0, 0, 0))
    beam = lw.FlexibleBody.beam(2.0, 2e3, (150.0, 90.0), 60.0, 1.2, elements=4, modes=(1, 1), axial_modes=0)
    b.add_body("boom", joint=lw.Free(), flexible=beam)
    b.add_body("hub", parent="boom", mass=1.0, inertia=np.eye(3))
    b.add_frame("nozzle", "boom", lw.transform(xyz=(0.1, 0, 0), rpy=(0, 0, np.pi / 2)), node="tip")
    model = b.build()
    options = {"duration": 0.1, "method": "rk4", "dt": 1e-3}
    on_frame = lw.simulate(model, model.neutral(), control=jet_on(model, "nozzle", (1, 0, 0), 2.0), **options)
    same = jet_on(model, "boom", (0, 1, 0), 2.0, place=(0.1, 0, 0), node="tip")
    on_node = lw.simulate(model, model.neutral(), control=same, **options)
    np.testing.assert_allclose(on_frame.q, on_node.q, atol=1e-13)
    # Its momentum is what the push gave: the force along world y at first.
    assert model.momentum(on_node.q[-1], on_node.v[-1])[4] == pytest.approx(0.2, rel=1e-3)


def test_force_through_the_joint_of_a_pushed_beam():
    """What a beam's joint feels of a thruster at its tip, when all has come to rest: the push and its moment."""
    b = lw.ModelBuilder("held", gravity=(0, 0, 0))
    beam = lw.FlexibleBody.beam(
        2.0, 2e3, (150.0, 90.0), 60.0, 1.2, elements=4, modes=(2, 2), axial_modes=0, damping=0.4
    )
    b.add_body("boom", joint=lw.Revolute(axis=(1, 0, 0)), joint_name="clamp", flexible=beam, armature=1.0)
    model = b.build()
    jet = jet_on(model, "boom", (0, 0, 1), 0.5, node="tip")
    run = lw.simulate(model, model.neutral(), duration=8.0, control=jet)
    felt = lw.ForceTorque("clamp").read(run)[-1]
    tip = model.pose(run.q[-1], "boom", node="tip")
    force = tip[:3, 2] * 0.5
    expected = -np.concatenate([np.cross(tip[:3, 3], force), force])
    np.testing.assert_allclose(felt, expected, atol=2e-4)


def test_imu_on_a_node_is_that_on_a_massless_frame():
    b = lw.ModelBuilder("imu")
    beam = lw.FlexibleBody.beam(2.0, 2e3, (150.0, 90.0), 60.0, 1.2, elements=4, modes=(1, 1), axial_modes=0)
    b.add_body("boom", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_frame("box", "boom", node="tip")
    model = b.build()
    run = lw.simulate(model, model.random_configuration(3), duration=0.3, output_times=np.linspace(0.0, 0.3, 601))
    at_node, at_frame = lw.IMU("boom", node="tip").read(run), lw.IMU("box").read(run)
    np.testing.assert_array_equal(at_node, at_frame)
    # The accelerometer against differences of the tip's place.
    tip = model.pose(run.q, "boom", node="tip")
    a = (tip[2:, :3, 3] - 2 * tip[1:-1, :3, 3] + tip[:-2, :3, 3]) / (run.t[1] - run.t[0]) ** 2
    felt = np.einsum("tji,tj->ti", tip[1:-1, :3, :3], a - model.gravity)
    np.testing.assert_allclose(at_node[1:-1, 3:], felt, atol=2e-3 * np.abs(felt).max())


def test_what_is_refused():
    model = samples.flexible_arm(modes=1)
    with pytest.raises(UnknownNameError, match="tip"):
        jet_on(model, "lower", (1, 0, 0), 1.0, node="tp")
    with pytest.raises(InputError, match="no nodes"):
        jet_on(model, "payload", (1, 0, 0), 1.0, node="tip")
    with pytest.raises(InputError, match="cannot move"):
        lw.simulate(model, model.neutral(), duration=0.01, control=jet_on(model, "world", (1, 0, 0), 1.0))
    with pytest.raises(UnknownNameError, match="no_node"):
        model.force_at(model.neutral(), np.zeros(6), "lower", node="no_node")
