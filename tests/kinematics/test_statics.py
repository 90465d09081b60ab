"""Models at rest, and the small names by which people look for things."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import linkwise as lw
from bench.robots import ROBOTS
from linkwise.errors import InputError, UnknownNameError
from linkwise.samples import four_bar, planar_arm
from tests.random_trees import random_tree

HAND = "panda_hand"


@pytest.fixture(scope="module")
def panda() -> lw.Model:
    return lw.load(ROBOTS["panda"].path, locked=list(ROBOTS["panda"].locked))


def test_random_configurations(panda: lw.Model) -> None:
    many = panda.random_configuration(3, size=(4, 5))
    assert many.shape == (4, 5, 7)
    assert ((many >= panda.limits.lower) & (many <= panda.limits.upper)).all()
    assert panda.random_configuration(3, size=6).shape == (6, 7)
    assert panda.random_configuration(3, size=0).shape == (0, 7)
    one_by_one = np.random.default_rng(3)
    assert np.array_equal(many.reshape(-1, 7)[:2], [panda.random_configuration(one_by_one) for _ in range(2)])


def test_names(panda: lw.Model) -> None:
    assert panda.joints.names == tuple(f"panda_joint{k}" for k in range(1, 8))
    assert panda.bodies.names[0] == "panda_link1"
    assert panda.freedom_names == panda.joints.names
    floating = lw.load(ROBOTS["panda"].path, floating=True)
    assert len(floating.freedom_names) == floating.nv
    assert floating.freedom_names[1].endswith("[1]")


def test_mass_centre_and_inertia_of_bodies_by_pinocchio(panda: lw.Model) -> None:
    model = pin.buildModelFromUrdf(str(ROBOTS["panda"].path))
    model = pin.buildReducedModel(model, [model.getJointId(n) for n in ROBOTS["panda"].locked], pin.neutral(model))
    for body, joint in zip(panda.bodies, panda.joints, strict=True):
        theirs = model.inertias[model.getJointId(joint.name)]  # in the joint's frame, which is the body's
        assert np.isclose(body.mass, theirs.mass)
        assert np.allclose(body.com, theirs.lever, atol=1e-12)
        assert np.allclose(body.inertia, theirs.inertia, atol=1e-12)


def test_mass_centre_of_a_body_without_mass_and_of_one_that_bends() -> None:
    builder = lw.ModelBuilder("two")
    builder.add_body("frame", joint=lw.Revolute((0, 0, 1)))
    builder.add_body("rod", parent="frame", joint=lw.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, 1), inertia=np.eye(3))
    beam = lw.FlexibleBody.beam(
        length=2.0, EA=1e6, EI=(1e3, 1e3), GJ=1e3, mass_per_length=0.5, elements=4, modes=2, damping=0.0
    )
    builder.add_body("panel", parent="rod", joint=lw.Revolute((0, 0, 1)), flexible=beam)
    model = builder.build()
    assert np.isnan(model.bodies["frame"].com).all()
    assert (model.bodies["frame"].inertia == 0).all()
    assert np.allclose(model.bodies["panel"].com, [1.0, 0.0, 0.0])
    assert np.isclose(model.bodies["panel"].inertia[2, 2], 1.0 * 2.0**2 / 12)


def test_static_force_holds_still(panda: lw.Model) -> None:
    """Under these forces the loaded model does not accelerate."""
    q = panda.random_configuration(1, size=3)
    load = np.array([0.3, -0.2, 0.1, 5.0, -10.0, -20.0])
    tau = panda.statics.force(q, {HAND: load})
    body = panda.bodies[-1].name
    f_ext = np.zeros((3, len(panda.bodies), 6))
    for k in range(3):  # the same load in the frame of the body that carries the hand
        hand, carrier = panda.pose(q[k], HAND), panda.pose(q[k], body)
        arm = hand[:3, 3] - carrier[:3, 3]
        R = carrier[:3, :3]
        f_ext[k, -1] = np.concatenate([R.T @ (load[:3] + np.cross(arm, load[3:])), R.T @ load[3:]])
    assert np.abs(panda.forward_dynamics(q, np.zeros((3, 7)), tau, f_ext)).max() < 1e-9
    force = panda.statics.force(q, {HAND: load[3:]})
    assert np.allclose(force, panda.statics.force(q, {HAND: [0, 0, 0, *load[3:]]}))
    assert np.array_equal(panda.statics.force(q), panda.gravity_force(q))
    with pytest.raises(InputError, match="load"):
        panda.statics.force(q, {HAND: [1.0]})
    with pytest.raises(UnknownNameError):
        panda.statics.force(q, {"hand": load})


@pytest.mark.parametrize(
    ("com", "margin"), [((0.5, 0.5), 0.5), ((0.25, 0.5), 0.25), ((1.5, 0.5), -0.5), ((2, 2), -(2**0.5))]
)
def test_support_margin(com: tuple[float, float], margin: float) -> None:
    builder = lw.ModelBuilder("mass", gravity=(0, 0, -9.81))
    builder.add_body("mass", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
    model = builder.build()
    square = np.array([[0, 0, 0.1], [1, 0, 0.2], [1, 1, 0.3], [0, 1, 0.4], [0.5, 0.5, 0.0]])
    q = [1, 0, 0, 0, *com, 0.7]
    assert np.isclose(model.statics.support_margin(q, square), margin)
    both = model.statics.support_margin([q, q], square[::-1])
    assert both.shape == (2,)
    assert np.allclose(both, margin)
    assert model.statics.support_margin(q, square[[0, 1, 1]]) < 0.0  # nothing stands on a line
    assert np.isnan(model.statics.support_margin(np.multiply(q, np.nan), square))
    with pytest.raises(InputError, match="points"):
        model.statics.support_margin(q, square[:2])
    with pytest.raises(InputError, match="gravity"):
        model.with_gravity((0, 0, 0)).statics.support_margin(q, square)


def test_manipulability(panda: lw.Model) -> None:
    q = panda.random_configuration(0, size=4)
    J = panda.jacobian(q, HAND)
    expected = np.sqrt(np.linalg.det(J @ np.swapaxes(J, -1, -2)))
    assert np.allclose(panda.statics.manipulability(q, HAND), expected, rtol=1e-9)
    arm = planar_arm(2, length=1.0)  # of two links l: |sin| of the elbow for its tip, seen in the plane
    builder_free = arm.statics.manipulability([0.3, 0.0], "link2", "position")
    assert builder_free == 0.0
    assert panda.statics.manipulability(q, HAND, "rotation").shape == (4,)
    with pytest.raises(InputError, match="rows"):
        panda.statics.manipulability(q, HAND, "linear")  # type: ignore[arg-type]


def test_workspace(panda: lw.Model) -> None:
    found = panda.statics.workspace(HAND, 50, rng=1)
    assert np.allclose(panda.pose(found.q, HAND), found.poses)
    reached = panda.inverse_kinematics(HAND, found.poses)
    assert reached.converged.all()
    closed = four_bar()
    assert np.abs(closed.closure_error(closed.statics.workspace("coupler1", 5, rng=0).q)).max() < 1e-9


def test_actuation() -> None:
    model = lw.load(ROBOTS["panda"].path, floating=True)
    B = model.statics.actuation_matrix()
    assert B.shape == (model.nv, model.nv - 6)
    assert (B[:6] == 0).all()
    B = model.statics.actuation_matrix(["panda_joint2", "panda_joint5"])
    assert B.sum() == 2.0
    assert [model.freedom_names[k] for k in B.argmax(axis=0)] == ["panda_joint2", "panda_joint5"]
    tree = random_tree(2, 3, ("revolute",))
    q, v, tau = tree.random_configuration(0), np.zeros(tree.nv), np.zeros(tree.nv)
    name = tree.joints.names[-1]
    for dt in (None, 0.01):
        whole = tree.state_space(q, v, tau, dt=dt)
        part = tree.state_space(q, v, tau, dt=dt, actuated=[name])
        assert np.array_equal(part.A, whole.A)
        assert np.array_equal(part.B, whole.B[:, tree.joints[name].v_slice])
    with pytest.raises(UnknownNameError):
        tree.statics.actuation_matrix(["no joint"])


def test_actuation_by_the_models_own_motors() -> None:
    builder = lw.ModelBuilder("legs")
    solid = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.eye(3)}
    builder.add_body("thigh", joint=lw.Revolute((0, 1, 0)), joint_name="hip", **solid)
    builder.add_body("shank", parent="thigh", joint=lw.Revolute((0, 1, 0)), joint_name="knee", **solid)
    builder.add_body(
        "foot",
        parent="shank",
        joint=lw.Revolute((0, 1, 0)),
        joint_name="ankle",
        mimic=lw.Mimic("knee", -0.5, 0.0),
        **solid,
    )
    builder.add_actuator(lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"knee": 50.0})))
    builder.add_actuator(lw.equipment.Actuator("tendon", lw.equipment.JointTransmission({"hip": 2.0, "ankle": 4.0})))
    model = builder.build()
    assert model.statics.actuation_matrix().tolist() == [[0.0, 2.0], [50.0, -2.0]]
    assert model.statics.actuation_matrix(["knee"]).tolist() == [[0.0], [1.0]]
    thruster = lw.equipment.Actuator("jet", lw.equipment.FrameTransmission("foot", (0, 0, 0, 0, 0, 1)))
    with pytest.raises(InputError, match="jet"):
        model.with_equipment(actuators=[thruster]).statics.actuation_matrix()


def test_pandas_and_xarray() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    arm = planar_arm(2)
    traj = lw.simulate(arm, [0.1, 0.2], duration=0.1, dt=0.05, method="rk4")
    frame = traj.to_pandas()
    assert list(frame.columns[:4]) == ["q:joint1", "q:joint2", "v:joint1", "v:joint2"]
    assert frame.index.name == "time"
    assert np.array_equal(frame.index, traj.t)
    assert np.array_equal(frame[["q:joint1", "q:joint2"]], traj.q)
    batch = lw.simulate(arm, np.full((2, 3, 2), 0.1), duration=0.1, dt=0.05, method="rk4")
    frame = batch.to_pandas()
    assert frame.index.names == ["batch0", "batch1", "time"]
    assert np.array_equal(frame.loc[(1, 2)]["v:joint2"], batch.v[1, 2, :, 1])
    assert isinstance(frame, pandas.DataFrame)
    data = traj.to_xarray()
    assert np.array_equal(data["q"].sel(coordinate="joint2"), traj.q[:, 1])
