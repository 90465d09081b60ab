"""Forces and energy by their causes where bodies touch, and sensors that feel it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.sensors import FootForce, Touch
from tests.contact.scenes import G, ball, block, placed, shape


def test_account_of_a_thrown_block_closes_to_rounding() -> None:
    """It falls, hits, slides and stops: all that it had went into the ground."""
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    run = lw.simulate(model, placed(0.3), [0, 0, 0, 2, 0, 0], duration=1.0, dt=0.004, method="moreau", account=True)
    account = run.energy_account()
    assert np.abs(account.unexplained).max() < 1e-13
    assert np.isclose(account.work["contact"][-1], -(0.5 * 2**2 + G * 0.25), rtol=1e-7)


def arm() -> lw.Model:
    """Two links with dampers, dry friction and rigid ends, the last with a ball that touches the floor."""
    b = lw.ModelBuilder("arm")
    rod = {"mass": 1.0, "com": (0.25, 0, 0), "inertia": np.diag([0.001, 0.02, 0.02])}
    hinge = lw.Revolute(axis=(0, 1, 0))
    b.add_body("upper", joint=hinge, damping=0.2, friction=0.3, limits=lw.JointLimits(-0.5, 0.6), **rod)
    tip = shape("sphere", (0.05,), lw.transform(xyz=(0.5, 0, 0)))
    at = lw.transform(xyz=(0.5, 0, 0))
    b.add_body(
        "lower", parent="upper", placement=at, joint=hinge, joint_name="elbow", damping=0.1, collisions=[tip], **rod
    )
    floor = lw.Ground(lw.transform(xyz=(0, 0, -0.6)))
    return b.build().with_contacts(floor, material=lw.Material(friction=0.4))


@pytest.fixture(scope="module")
def runs() -> list[lw.Trajectory]:
    model = arm()
    control = lw.PD(model, [0.0, 0.4], kp=[0.0, 5.0], kd=[0.0, 0.5])
    return [
        lw.simulate(
            model, [-0.3, 0.2], duration=1.5, dt=dt, method="moreau", limits="rigid", account=True, control=control
        )
        for dt in (0.002, 0.001)
    ]


def test_account_of_an_arm_closes_with_the_step(runs: list[lw.Trajectory]) -> None:
    """Works of all causes explain the gains, to second order; where things hit, to first."""
    off = [np.abs(run.energy_account().unexplained) for run in runs]
    lost = -runs[0].energy_account().potential[-1]
    assert off[0].max() < 5e-4 * lost
    assert off[1].max() < 5e-4 * lost
    flying = [each[run.t < 0.3].max() for each, run in zip(off, runs, strict=True)]
    assert 0.2 < flying[1] / flying[0] < 0.3
    work = runs[0].energy_account().work
    for cause in ("control", "damping", "friction", "contact"):
        assert abs(work[cause][-1]) > 1e-3, cause
    # Both act against the velocity at a step's end; where a blow turns it round, not against the mean.
    turned = (runs[0].v[1:] * runs[0].v[:-1] < -1e-12).any(axis=1)
    assert turned.sum() < 20
    for cause in ("damping", "friction"):
        assert np.diff(work[cause])[~turned].max() < 1e-9, cause
    assert np.abs(runs[0].v[-1]).max() < 1e-3


def test_forces_add_up_to_what_the_motion_needs(runs: list[lw.Trajectory]) -> None:
    run = runs[0]
    model, forces = run._with_model("test"), run.forces()
    np.testing.assert_allclose(forces.total, model.inverse_dynamics(run.q, run.v, run.vdot), atol=1e-9)
    # The accelerations are those of the motion: the mean of the last step, but for where things meet.
    rate = np.diff(run.v, axis=0) / np.diff(run.t)[:, None]
    assert np.median(np.abs(rate - run.vdot[1:])) < 1e-2
    touched = run.contacts
    about = touched.points[-1, 0] - model.pose(run.q[-1], "lower")[:3, 3]
    spin = model.jacobian(run.q[-1], "lower")
    pushed = touched.force[-1, 0] @ (spin[3:] + np.cross(spin[:3].T, about).T)
    np.testing.assert_allclose(forces.contact[-1], pushed, atol=1e-9)


def test_sensors_at_rest() -> None:
    model = ball(mass=2.0).with_contacts(lw.Ground())
    run = lw.simulate(model, [np.cos(0.3), np.sin(0.3), 0, 0, 0, 0, 0.2], duration=1.0, dt=0.002, method="moreau")
    press = Touch(["thing"]).read(run)
    assert press.shape == (len(run.t), 1)
    assert press[1, 0] == 0.0
    assert np.isclose(press[-1, 0], 2.0 * G)
    feel = FootForce("thing").read(run)[-1]
    R = model.pose(run.q[-1], "thing")[:3, :3]
    np.testing.assert_allclose(R @ feel[3:], [0, 0, 2.0 * G], atol=1e-9)
    np.testing.assert_allclose(feel[:3], 0.0, atol=1e-9)
    np.testing.assert_allclose(lw.IMU("thing").read(run)[-1, 3:], R.T @ [0, 0, G], atol=1e-8)
    np.testing.assert_allclose(lw.ForceTorque(model.joints[0].name).read(run)[-1], 0.0, atol=1e-8)  # nothing holds it
    noise = Touch(noise=0.5).read(run, rng=1) - press
    assert 0.4 < noise.std() < 0.6


def test_touch_sensors_where_places_of_points_are_shared() -> None:
    """Of a scene whose nearest points are kept, all bodies that may touch are read, and the one below bears both."""
    b = lw.ModelBuilder("two")
    for name in ("lower", "upper"):
        b.add_body(name, joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), density=1000))
    rules = lw.ContactRules(solver="primal")
    model = b.build().with_contacts(lw.Ground(), rules=rules)
    run = lw.simulate(model, [1, 0, 0, 0, 0, 0, 0.05, 1, 0, 0, 0, 0, 0, 0.15], duration=0.02, dt=0.002)
    np.testing.assert_allclose(Touch().read(run)[-1], [3.0 * G, G], rtol=1e-6)
    np.testing.assert_allclose(run.contacts.force_on("lower", by="ground")[-1], [0, 0, 2.0 * G], atol=1e-6)


def test_touch_sensors_of_mjcf() -> None:
    """Two sites, of which one is where the ball is touched; MuJoCo reads the same."""
    mujoco = pytest.importorskip("mujoco")
    text = """
    <mujoco><option cone="elliptic"/><worldbody><geom type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size=".1" mass="3"/>
    <site name="below" type="box" size=".05 .05 .02" pos="0 0 -0.1"/>
    <site name="above" type="sphere" size=".02" pos="0 0 0.1"/></body>
    </worldbody><sensor><touch name="low" site="below"/><touch name="all" site="wide"/></sensor></mujoco>"""
    text = text.replace('<touch name="all" site="wide"/>', '<touch name="high" site="above"/>')
    m = mujoco.MjModel.from_xml_string(text)
    d = mujoco.MjData(m)
    for _ in range(1500):
        mujoco.mj_step(m, d)
    run = lw.simulate(lw.loads(text), duration=1.0, dt=0.002, method="moreau")
    read = lw.Instruments().read(run)
    assert np.isclose(read["low"][-1, 0], 3 * G)
    assert abs(read["low"][-1, 0] - d.sensordata[0]) < 1e-3 * 3 * G
    assert read["high"][-1, 0] == 0.0 == float(read["high"].max())


@pytest.mark.parametrize(
    ("solver", "material"),
    [
        ("dual", lw.Material(friction=0.3)),
        ("primal", lw.Material(friction=0.3, restitution=0.5)),
        ("dual", lw.Material(friction=(0.2, 0.6), restitution=0.5, impact="poisson")),
        ("dual", lw.Material(friction=0.3, stiffness=1e5, damping=1e-4)),
    ],
)
def test_forces_explain_what_bodies_do_to_each_other(solver: Any, material: lw.Material) -> None:
    """Two turning bodies strike each other: momenta change by the reported forces to rounding, one has the other's."""
    b = lw.ModelBuilder("two")
    for name, kind, size in (("box", "box", (0.2, 0.3, 0.1)), ("ball", "sphere", (0.1,))):
        given = {"mass": 2.0, "inertia": np.diag([0.01] * 3), "collisions": [shape(kind, size)]}
        b.add_body(name, joint=lw.Free(), **given)
    model = b.build().with_gravity((0, 0, 0))
    model = model.with_contacts(between=[("box", "ball")], material=material, rules=lw.ContactRules(solver=solver))
    q0 = [0.9, 0.3, 0.3, 0.1, 0, 0, 0, 1, 0, 0, 0, 0.25, 0.1, 0.05]
    v0, h = [1, 3, 2, 0.3, 0.2, 0, 5, 1, 2, -2, -1, 0], 0.002
    run = lw.simulate(model, q0, v0, duration=0.2, dt=h, method="moreau")
    force, wrench = run.contacts.force_on("box"), run.contacts.wrenches
    R, velocity = model.poses(run.q)[..., :3, :3], run.v.reshape(-1, 2, 6)[..., 3:]
    gained = 2.0 * np.diff(np.einsum("tbij,tbj->tbi", R, velocity), axis=0)
    assert np.abs(gained).max() > 0.1
    assert gained[:, 0] == pytest.approx(force[1:] * h, abs=1e-12)
    assert gained[:, 1] == pytest.approx(-force[1:] * h, abs=1e-12)
    spun = 0.01 * np.diff(np.einsum("tij,tj->ti", R[:, 1], run.v[:, 6:9]), axis=0)
    ball = np.linalg.norm(wrench[1:, 1, :3], axis=-1) * h
    assert np.linalg.norm(spun, axis=-1) == pytest.approx(ball, rel=1e-3, abs=1e-9)
    every = lw.simulate(model, q0, v0, duration=0.2, dt=h, output_times=run.t[::4], method="moreau")
    assert every.contacts.force == pytest.approx(run.contacts.force[::4], rel=0.01, abs=0.1)
