"""Changed copies: each is the model that one would have built, and moves as it must."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.flexible import Member, Section
from tests.files.native.test_native import everything
from tests.random_trees import BUILT_IN, random_state, random_tree

RNG = np.random.default_rng


def general(seed: int) -> lw.Model:
    """A chain with a joint of every type of the library's own, in random places."""
    rng = RNG(seed)
    model = lw.ModelBuilder("general", gravity=(0.3, -0.2, -9.81)).build()
    for kind in rng.permutation(BUILT_IN):
        at = model.bodies[-1].name if model.bodies else "world"
        model = model.attach(random_tree(rng, 1, [str(kind)]), at, prefix=f"{kind}_")
    return model


# -- locked


@pytest.mark.parametrize("seed", range(2))
def test_locking_takes_rows_away(seed: int) -> None:
    model = general(seed)
    rng = RNG(seed)
    q, v, vdot = random_state(model, rng)
    names = [joint.name for joint in model.joints if rng.random() < 0.4]
    held = model.locked(names, at=q)
    rows = np.concatenate([np.r_[j.v_slice] for j in model.joints if j.name not in names])
    places = np.concatenate([np.r_[j.q_slice] for j in model.joints if j.name not in names])
    assert (held.nq, held.nv) == (len(places), len(rows))
    full_v, full_a = np.zeros(model.nv), np.zeros(model.nv)
    full_v[rows], full_a[rows] = v[rows], vdot[rows]
    M = model.mass_matrix(q)
    np.testing.assert_allclose(held.mass_matrix(q[places]), M[np.ix_(rows, rows)], atol=1e-10)
    np.testing.assert_allclose(
        held.inverse_dynamics(q[places], v[rows], vdot[rows]),
        model.inverse_dynamics(q, full_v, full_a)[rows],
        atol=1e-9,
    )
    for body in model.bodies:
        np.testing.assert_allclose(held.pose(q[places], body.name), model.pose(q, body.name), atol=1e-12)


def test_locking_is_what_load_does() -> None:
    text = """<robot name="r"><link name="a"/>{}</robot>"""
    link = """<link name="{0}"><inertial><origin xyz="0 .1 .2"/><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j{0}" type="{2}">
      <parent link="{1}"/><child link="{0}"/><origin xyz="0 0 1" rpy="0.3 0 0"/><axis xyz="0 1 0"/>
      <limit lower="-1" upper="1" effort="1" velocity="1"/>{3}</joint>"""
    robot = text.format(
        link.format("b", "a", "revolute", "")
        + link.format("c", "b", "prismatic", '<mimic joint="jb" multiplier="2"/>')
        + link.format("d", "c", "revolute", "")
    )
    ours, theirs = lw.loads(robot).locked({"jb": 0.3}), lw.loads(robot, locked={"jb": 0.3})
    q = [0.4]
    np.testing.assert_allclose(ours.mass_matrix(q), theirs.mass_matrix(q), rtol=1e-13)
    np.testing.assert_allclose(ours.inverse_dynamics(q, [1], [2]), theirs.inverse_dynamics(q, [1], [2]), rtol=1e-13)
    np.testing.assert_allclose(ours.pose(q, "c"), theirs.pose(q, "c"), atol=1e-14)


def test_locked_closures_must_hold() -> None:
    model = samples.four_bar()
    names = [joint.name for joint in model.joints]
    q = model.assemble(model.neutral())
    still = model.locked(names, at=q)
    assert still.nv == 0 and not still.closures
    with pytest.raises(lw.ModelError, match="not closed"):
        model.locked(names, at=np.asarray(q) + 0.1)


def test_locked_couplings_actuators_and_springs() -> None:
    b = lw.ModelBuilder("m")
    for name in "abc":
        b.add_body(name, joint=lw.Revolute(), mass=1.0, com=(0.1, 0, 0))
    b.add_coupling("gear", lw.closures.Coupling({"a_joint": 1.0, "b_joint": 2.0}, 0.5))
    b.add_actuator(
        lw.equipment.Actuator(
            "tendon", lw.equipment.JointTransmission({"a_joint": 2.0, "b_joint": 1.0}), bias=(0, -3, 0)
        )
    )
    b.add_actuator(lw.equipment.Actuator("own", lw.equipment.JointTransmission({"a_joint": 2.0})))
    b.add_spring(
        lw.equipment.Spring(
            "band", lw.equipment.JointTransmission({"a_joint": 2.0, "b_joint": 1.0}), 1.0, rest=(0.0, 1.0)
        )
    )
    b.add_sensor(lw.equipment.Sensor("angle", "joint_position", "a_joint"))
    b.add_configuration("home", [0.1, 0.2, 0.3])
    model = b.build().with_parameters(["a.armature", "b.mass"]).locked({"a_joint": 0.25})
    assert model.closures[0].type == lw.closures.Coupling({"b_joint": 2.0}, 0.25)
    assert [each.name for each in model.actuators] == ["tendon"]
    assert model.actuators[0].bias == (-1.5, -3, 0)
    assert model.springs[0].rest == (-0.5, 0.5)
    assert not model.sensors and model.parameters.names == ("b.mass",)
    assert model.configurations["home"].tolist() == [0.2, 0.3]


def test_a_flexible_body_stays_flexible() -> None:
    model = samples.flexible_arm()
    held = model.locked([model.joints[0].name])
    assert held.nv == model.nv - 1 and held._is_flexible
    q = held.random_configuration(0)
    rows = [k for k in range(model.nv) if k not in range(model.nv)[model.joints[0].v_slice]]
    full = np.zeros(model.nq)
    full[rows] = q
    np.testing.assert_allclose(held.mass_matrix(q), model.mass_matrix(full)[np.ix_(rows, rows)], atol=1e-11)


# -- attach, payloads, frames, without


def test_attaching_is_building_by_hand() -> None:
    place, tool = lw.transform((0.1, 0, 1), (0.2, 0.3, 0)), lw.transform((0, 0.2, 0), (0, 0.5, 1))

    def arm(b: lw.ModelBuilder, parent: str, prefix: str, base: np.ndarray) -> None:
        b.add_body(f"{prefix}plate", parent, lw.Fixed(), base, 0.3, (0, 0, 0.1), np.eye(3) / 50)
        b.add_body(f"{prefix}one", f"{prefix}plate", lw.Revolute((0, 1, 0)), place, 1.0, (0, 0, 0.5), np.eye(3) / 10)
        b.add_body(f"{prefix}two", f"{prefix}one", lw.Spherical(), place, 2.0, (0.1, 0, 0.5), np.eye(3) / 9)
        b.add_frame(f"{prefix}tip", f"{prefix}two", place)
        b.add_closure(f"{prefix}rod", f"{prefix}two", place, f"{prefix}plate", None, joint=lw.closures.Distance(0.5))

    hand = lw.ModelBuilder("hand")
    arm(hand, "world", "", np.eye(4))
    whole = lw.ModelBuilder("arm")
    arm(whole, "world", "", np.eye(4))
    alone = whole.build()
    by_hand = lw.ModelBuilder("arm")
    arm(by_hand, "world", "", np.eye(4))
    arm(by_hand, "two", "h_", place @ tool)
    ours, theirs = alone.attach(hand.build(), "tip", tool, prefix="h_"), by_hand.build()
    assert [j.name for j in ours.joints] == [j.name for j in theirs.joints]
    assert [c.name for c in ours.closures] == [c.name for c in theirs.closures]
    q, v, vdot = random_state(ours, RNG(0))
    np.testing.assert_allclose(ours.inverse_dynamics(q, v, vdot), theirs.inverse_dynamics(q, v, vdot), atol=1e-11)
    np.testing.assert_allclose(ours.closure_error(q), theirs.closure_error(q), atol=1e-12)
    np.testing.assert_allclose(ours.pose(q, "h_tip"), theirs.pose(q, "h_tip"), atol=1e-12)
    np.testing.assert_allclose(ours.mass, theirs.mass)
    assert ours.without("h_one").without("h_plate").nv == alone.nv
    with pytest.raises(lw.ModelError, match="prefix"):
        alone.attach(hand.build(), "tip")


def test_attaching_with_a_joint() -> None:
    arm = samples.planar_arm(2)
    both = samples.planar_arm(1).attach(arm, "link1", joint=lw.Spherical(), prefix="wrist_")
    assert both.nv == 1 + 3 + 2 and "wrist_joint" in [j.name for j in both.joints]
    free = lw.ModelBuilder("space").build().attach(arm, joint=lw.Free())
    assert free.nv == 8


def test_a_payload_is_a_welded_body() -> None:
    model = samples.stanford_arm()
    last = model.bodies[-1].name
    loaded = model.with_frame("grip", last, lw.transform((0, 0, 0.1))).with_payload(
        "grip", 2.0, (0, 0, 0.05), np.eye(3) / 99
    )
    q = model.random_configuration(0)
    assert loaded.mass == pytest.approx(model.mass + 2.0)
    J = model.jacobian(q, last, point=(0, 0, 0.15))
    X = model.pose(q, last)[:3, :3]
    I = np.zeros((6, 6))
    I[:3, :3], I[3:, 3:] = X @ (np.eye(3) / 99) @ X.T, 2.0 * np.eye(3)
    np.testing.assert_allclose(loaded.mass_matrix(q), model.mass_matrix(q) + J.T @ I @ J, atol=1e-11)
    assert loaded.without("payload").mass == pytest.approx(model.mass)
    assert loaded.with_parameters(["payload.mass"]).parameters[0].nominal == (2.0,)


def test_without_takes_what_hangs_on_it() -> None:
    model = samples.planar_arm(4)
    less = model.without("link3")
    q = [0.1, 0.2]
    np.testing.assert_allclose(less.mass_matrix(q), samples.planar_arm(2).mass_matrix(q), rtol=1e-13)
    assert all("link3" not in frame.name for frame in less.frames)
    with pytest.raises(lw.errors.UnknownNameError):
        model.without("link9")
    every = everything()
    with pytest.raises(lw.ModelError, match="follows"):
        b = lw.ModelBuilder("m")
        b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0))
        b.add_body("b", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0), mimic=lw.Mimic("a_joint"))
        b.build().without("a")
    assert every.without("load").closures[0].name == "tip"
    assert [each.name for each in every.without("load").actuators] == ["motor"]


# -- mirrored


@pytest.mark.parametrize("plane", ["xz", "yz", "xy"])
def test_the_mirror_image_moves_as_the_image_of_the_motion(plane: str) -> None:
    model, seed = general(0), 0
    image = model.mirrored(plane)
    q, v, vdot = random_state(model, RNG(seed))
    q_i, v_i = model.mirrored_state(plane, q, v)
    _, a_i = model.mirrored_state(plane, q, vdot)
    _, expected = model.mirrored_state(plane, q, model.inverse_dynamics(q, v, vdot))
    np.testing.assert_allclose(image.inverse_dynamics(q_i, v_i, a_i), expected, atol=1e-9)
    S = np.diag([*np.where(np.array(list("xyz")) == ({"xz": "y", "yz": "x", "xy": "z"}[plane]), -1.0, 1.0), 1.0])
    for body in model.bodies:
        np.testing.assert_allclose(image.pose(q_i, body.name), S @ model.pose(q, body.name) @ S, atol=1e-12)
    assert image.potential_energy(q_i) == pytest.approx(model.potential_energy(q))
    again = image.mirrored(plane)
    np.testing.assert_allclose(again.mass_matrix(q), model.mass_matrix(q), atol=1e-11)


def test_flexible_bodies_and_closures_in_the_mirror() -> None:
    for model in (samples.flexible_arm(), _bent()):
        for plane in ("xz", "yz", "xy"):
            image = model.mirrored(plane)
            q, v, vdot = random_state(model, RNG(1))
            q_i, v_i = model.mirrored_state(plane, q, v)
            _, a_i = model.mirrored_state(plane, q, vdot)
            _, expected = model.mirrored_state(plane, q, model.inverse_dynamics(q, v, vdot))
            np.testing.assert_allclose(image.inverse_dynamics(q_i, v_i, a_i), expected, rtol=1e-9, atol=1e-9)
    model = everything()
    image = model.mirrored("xz")
    assert [closure.name for closure in image.closures] == [closure.name for closure in model.closures]
    for kind in (
        lw.Revolute((1, 2, 3)),
        lw.Helical(0.1, (1, 2, 3)),
        lw.Universal(),
        lw.Planar((1, 2, 3)),
        lw.closures.Rolling(0.2, (1, 0, 0)),
    ):
        b = lw.ModelBuilder("free")
        b.add_body("a", joint=lw.Free(), mass=1.0, inertia=np.eye(3))
        b.add_closure(
            "c",
            "world",
            lw.transform((0.1, 0.2, 0.3), (1, 2, 3)),
            "a",
            lw.transform((0.3, 0, 0), (0, 1, 0)),
            joint=kind,
        )
        model = b.build()
        q = model.random_configuration(3)
        q = model.assemble(q)
        image = model.mirrored("yz")
        assert np.abs(image.closure_error(model.mirrored_state("yz", q)[0])).max() < 1e-9


def _bent() -> lw.Model:
    """A flexible frame that lies in no plane, and a load on it."""
    b = lw.ModelBuilder("bent", gravity=(1, 2, 3))
    section = Section(EA=1e6, EI=(1e3, 2e3), GJ=1e3, mass_per_length=1.0)
    nodes = {"root": (0, 0, 0), "a": (1, 0.2, 0), "b": (1, 1, 0.4)}
    members = [Member("root", "a", section), Member("a", "b", section)]
    frame = lw.FlexibleBody.frame(nodes, members, root="root", modes=4)
    b.add_body("beam", joint=lw.Revolute((1, 2, 3)), placement=lw.transform((0, 0, 1), (1, 2, 0)), flexible=frame)
    b.add_body("load", "beam", lw.Revolute((0, 1, 1)), mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3) / 9, at="b")
    return b.build()


def test_limits_and_rests_follow_their_signs() -> None:
    b = lw.ModelBuilder("m")
    limits = [lw.JointLimits(-1, 2), lw.JointLimits(-3, 4)]
    b.add_body("a", joint=lw.Cylindrical(), mass=1.0, inertia=np.eye(3), limits=limits, stiffness=1.0, rest=(0.1, 0.2))
    joint = b.build().mirrored().joints[0]
    assert joint.limits == (lw.JointLimits(-1, 2), lw.JointLimits(-4, 3)) and joint.rest == (0.1, -0.2)


# -- renamed


def test_renaming_changes_names_alone() -> None:
    model = everything()
    other = model.renamed(lambda name: f"r_{name}")
    assert {b.name for b in other.bodies} == {f"r_{b.name}" for b in model.bodies}
    assert other.parameters.names == ("r_b0.mass", "r_beam.stiffness", "gravity")
    assert other.actuators[0].transmission.joints == ("r_b0_joint", "r_b1_joint")
    assert (
        other.renamed(lambda name: name.removeprefix("r_")) == model
        or other.renamed(lambda name: name.removeprefix("r_")).joints == model.joints
    )
    one = model.renamed({"b0": "shoulder", "gear": "belt"})
    assert one.bodies["shoulder"].index == 0 and one.closures["belt"].equations
    with pytest.raises(lw.errors.UnknownNameError):
        model.renamed({"nobody": "x"})
    with pytest.raises(lw.ModelError, match="one name"):
        model.renamed({"b0": "b1"})
