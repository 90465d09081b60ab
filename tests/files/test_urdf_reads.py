"""What good files become."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linkwise.mechanism.description import Geometry, JointLimits, Mimic
from linkwise.mechanism.placement import pose, rotation_rpy
from tests.files.recording import record

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>\n'


def joint(name: str, parent: str, child: str, inside: str = "", kind: str = "revolute") -> str:
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>\n'


def robot(*parts: str) -> str:
    return '<robot name="r">\n' + "".join(parts) + "</robot>"


def two(inside: str = "", kind: str = "revolute") -> str:
    return robot(link("a"), link("b"), joint("j", "a", "b", inside, kind))


@pytest.mark.parametrize(
    ("written", "made"),
    [
        ("revolute", "revolute"),
        ("continuous", "revolute"),
        ("prismatic", "prismatic"),
        ("planar", "planar"),
        ("floating", "free"),
        ("fixed", "fixed"),
    ],
)
def test_joint_types(written: str, made: str) -> None:
    got = record(two('<axis xyz="0 0 1"/>', written))
    assert got.bodies["b"]["joint"][0] == made
    assert got.bodies["b"]["joint_name"] == "j"
    assert got.bodies["a"]["joint"][0] == "fixed"
    assert got.name == "r"


def test_axes_are_normalised_and_default_to_x() -> None:
    assert record(two()).bodies["b"]["joint"][1] == (1, 0, 0)
    assert record(two('<axis xyz="0 0 -3"/>')).bodies["b"]["joint"][1] == (0, 0, -1)
    assert record(two('<axis xyz="1e-300 0 0"/>')).bodies["b"]["joint"][1] == (1, 0, 0)
    np.testing.assert_allclose(record(two('<axis xyz="1 2 2"/>')).bodies["b"]["joint"][1], [1 / 3, 2 / 3, 2 / 3])
    assert record(two('<axis xyz="0 0 0"/>', "fixed")).bodies["b"]["joint"] == ("fixed", (1, 0, 0))


def test_the_placement_is_the_joint_frame_in_the_parent() -> None:
    X = record(two('<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>')).bodies["b"]["placement"]
    np.testing.assert_array_equal(X, pose((1, 2, 3), rotation_rpy((0.1, 0.2, 0.3))))
    X = record(two('<origin rpy="1.5707963267948966 0 0"/>')).bodies["b"]["placement"]
    np.testing.assert_array_equal(X, [[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    assert record(two('<origin rpy="1.5708 0 0"/>'), snap=1e-5).bodies["b"]["placement"][1, 1] == 0.0


def test_inertia_is_turned_into_the_axes_of_the_link() -> None:
    inertial = """<inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="2.5"/>
        <inertia ixx="3" ixy="0.1" ixz="0.2" iyy="4" iyz="-0.3" izz="5"/></inertial>"""
    body = record(robot(link("a", inertial))).bodies["a"]
    R = rotation_rpy((0.4, -0.5, 0.6))
    written = np.array([[3, 0.1, 0.2], [0.1, 4, -0.3], [0.2, -0.3, 5]])
    assert body["mass"] == 2.5
    assert body["com"] == (0.1, 0.2, 0.3)
    np.testing.assert_allclose(body["inertia"], R @ written @ R.T, atol=1e-15)
    np.testing.assert_array_equal(body["inertia"], body["inertia"].T)


def test_a_link_without_inertial_is_massless() -> None:
    body = record(robot(link("a", ""))).bodies["a"]
    assert body["mass"] == 0.0
    assert not body["inertia"].any()


def test_limits_damping_and_friction() -> None:
    body = record(
        two('<limit lower="-1" upper="2" velocity="3" effort="4"/><dynamics damping="0.5" friction="0.25"/>')
    ).bodies["b"]
    assert body["limits"] == JointLimits(-1, 2, 3, 4)
    assert (body["damping"], body["friction"]) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("kind", "limit", "expected"),
    [
        ("revolute", "", None),
        ("revolute", '<limit effort="1" velocity="2"/>', JointLimits(velocity=2, effort=1)),
        ("revolute", '<limit upper="1"/>', JointLimits(0, 1)),
        ("prismatic", '<limit lower="-inf" upper="inf"/>', JointLimits()),
        ("continuous", '<limit lower="-1" upper="1" effort="5"/>', JointLimits(effort=5)),
        ("revolute", '<limit lower="-1e308" upper="1e999"/>', JointLimits()),
        ("prismatic", '<limit lower="-1e30" upper="1" effort="1e30" velocity="1e16"/>', JointLimits(upper=1)),
    ],
)
def test_what_limits_leave_out(kind: str, limit: str, expected: JointLimits | None) -> None:
    assert record(two(limit, kind)).bodies["b"]["limits"] == expected


def test_shapes_are_kept_as_data_and_meshes_are_not_opened() -> None:
    shapes = """
      <visual name="v"><origin xyz="1 0 0"/><geometry><mesh filename="package://x/../y.stl" scale="1 2 3"/></geometry>
        <material name="m"/></visual>
      <visual><geometry><box size="1 2 3"/></geometry></visual>
      <collision><geometry><sphere radius="0.5"/></geometry></collision>
      <collision><geometry><cylinder radius="0.5" length="2"/></geometry></collision>
      <collision><geometry><capsule radius="0.25" length="1"/></geometry></collision>"""
    body = record(robot(link("a", shapes))).bodies["a"]
    here = tuple(map(tuple, np.eye(4).tolist()))
    there = tuple(map(tuple, pose((1, 0, 0)).tolist()))
    one = (1.0, 1.0, 1.0)
    assert body["visuals"] == (
        Geometry("mesh", (), "package://x/../y.stl", (1, 2, 3), there, "a"),
        Geometry("box", (1, 2, 3), None, one, here, "a"),
    )
    assert body["collisions"] == (
        Geometry("sphere", (0.5,), None, one, here, "a"),
        Geometry("cylinder", (0.5, 2), None, one, here, "a"),
        Geometry("capsule", (0.25, 1), None, one, here, "a"),
    )


def test_a_shape_of_unknown_kind_is_left_out_with_a_warning() -> None:
    got = record(robot(link("a", "<visual><geometry><teapot/></geometry></visual>")))
    assert got.bodies["a"]["visuals"] == ()
    assert "robot.urdf:2: the <visual> of link 'a' has a shape that is not known" in str(got.warnings[0])
    assert "<teapot>" in str(got.warnings[0])


def test_other_elements_are_passed_over_in_silence() -> None:
    got = record(
        robot(link("a", "<self_collide/><origin/>"), "<gazebo/><transmission/><sensor/><material/><ros2_control/>")
    )
    assert list(got.bodies) == ["a"]
    assert got.warnings == []


def test_parents_come_first_and_siblings_keep_the_order_of_the_file() -> None:
    text = robot(
        joint("j4", "c", "d"), joint("j3", "a", "z"), joint("j2", "a", "c"), joint("j1", "z", "b"),
        *(link(name) for name in "abcdz"),
    )  # fmt: skip
    assert list(record(text).bodies) == ["a", "z", "b", "c", "d"]


def test_a_chain_of_thousands_is_read() -> None:
    n = 5000
    parts = [link(f"l{k}") + (joint(f"j{k}", f"l{k - 1}", f"l{k}") if k else "") for k in range(n)]
    assert len(record(robot(*parts)).bodies) == n


def test_a_robot_without_a_name_is_named_after_its_file() -> None:
    assert record("<robot><link name='a'/></robot>", file="some/arm.urdf").name == "arm"


def test_a_link_and_a_joint_may_share_a_name() -> None:
    assert record(robot(link("a"), link("j"), joint("j", "a", "j"))).bodies["j"]["joint_name"] == "j"


# -- the root


def test_a_floating_root_hangs_from_the_world_by_a_free_joint() -> None:
    body = record(two(), floating=True).bodies["a"]
    assert (body["parent"], body["joint"][0], body["joint_name"]) == ("world", "free", "root_joint")


def test_the_root_joint_avoids_the_names_of_the_file() -> None:
    text = robot(link("a"), link("b"), joint("root_joint", "a", "b"))
    assert record(text, floating=True).bodies["a"]["joint_name"] == "root_joint_2"


def test_a_root_link_named_world_is_the_world() -> None:
    text = robot(link("world", ""), link("b"), joint("j", "world", "b", '<origin xyz="0 0 1"/>', "fixed"))
    body = record(text).bodies["b"]
    assert list(record(text).bodies) == ["b"]
    assert (body["parent"], body["joint"][0], body["joint_name"]) == ("world", "fixed", "j")
    free = record(text, floating=True).bodies["b"]
    assert (free["parent"], free["joint"][0], free["joint_name"]) == ("world", "free", "root_joint")
    np.testing.assert_array_equal(free["placement"], pose((0, 0, 1)))


# -- mimics and locks


def followers(*mimics: str) -> str:
    """A chain a-b-c-... whose joints j0, j1, ... have these mimics ("" for none)."""
    names = "abcdefgh"
    joints = [
        joint(f"j{k}", names[k], names[k + 1], f'<mimic joint="{m}"/>' if m else "") for k, m in enumerate(mimics)
    ]
    return robot(*(link(name) for name in names[: len(mimics) + 1]), *joints)


def test_mimic() -> None:
    text = robot(
        link("a"), link("b"), link("c"), joint("j", "a", "b", '<mimic joint="k" multiplier="-2" offset="0.5"/>'),
        joint("k", "b", "c"),
    )  # fmt: skip
    assert record(text).bodies["b"]["mimic"] == Mimic("k", -2.0, 0.5)
    assert record(text).bodies["c"]["mimic"] is None
    assert record(text, mimic=False).bodies["b"]["mimic"] is None


def test_chains_of_mimics_are_multiplied_out() -> None:
    text = robot(
        *(link(name) for name in "abcd"),
        joint("j0", "a", "b", '<mimic joint="j1" multiplier="2" offset="1"/>'),
        joint("j1", "b", "c", '<mimic joint="j2" multiplier="3" offset="-5"/>'),
        joint("j2", "c", "d"),
    )
    got = record(text).bodies
    assert got["b"]["mimic"] == Mimic("j2", 6.0, -9.0)
    assert got["c"]["mimic"] == Mimic("j2", 3.0, -5.0)
    held = record(text, locked={"j1": 0.5}).bodies
    assert held["b"]["joint"][0] == held["c"]["joint"][0] == "fixed"
    assert held["d"]["joint"][0] == "revolute"
    assert held["b"]["mimic"] is held["c"]["mimic"] is None
    np.testing.assert_allclose(held["b"]["placement"][1:3, 1], [math.cos(2.0), math.sin(2.0)])
    np.testing.assert_allclose(held["c"]["placement"][1:3, 1], [math.cos(0.5), math.sin(0.5)])


def test_a_follower_with_multiplier_zero_stands_still() -> None:
    text = robot(
        *(link(name) for name in "abc"), joint("j", "a", "b"),
        joint("k", "b", "c", '<mimic joint="j" multiplier="0" offset="1"/>', "prismatic"),
    )  # fmt: skip
    body = record(text).bodies["c"]
    assert body["joint"][0] == "fixed"
    np.testing.assert_array_equal(body["placement"], pose((1, 0, 0)))


def test_the_mimic_of_a_fixed_joint_is_ignored() -> None:
    assert record(two('<mimic joint="nobody"/>', "fixed")).bodies["b"]["mimic"] is None


@pytest.mark.parametrize("locked", [["j"], ("j",), {"j"}, {"j": 0.0}, {"j": None}, iter(["j"])])
def test_locked_joints_become_fixed(locked: object) -> None:
    body = record(two('<origin xyz="1 0 0"/><limit lower="1" upper="2"/>'), locked=locked).bodies["b"]
    assert body["joint"][0] == "fixed"
    assert body["limits"] is None
    np.testing.assert_array_equal(body["placement"], pose((1, 0, 0)))


def test_joints_are_locked_at_a_value() -> None:
    turned = record(two('<origin xyz="1 0 0"/><axis xyz="0 0 1"/>'), locked={"j": math.pi / 2}).bodies["b"]
    np.testing.assert_array_equal(turned["placement"], pose((1, 0, 0), rotation_rpy((0, 0, math.pi / 2))))
    moved = record(two('<origin rpy="0 0 1.5707963267948966"/>', "prismatic"), locked={"j": 2}).bodies["b"]
    np.testing.assert_array_equal(moved["placement"][:3, 3], [0, 2, 0])
    assert record(two(kind="floating"), locked=["j"]).bodies["b"]["joint"][0] == "fixed"
    assert record(two(kind="fixed"), locked=["j"]).bodies["b"]["joint"][0] == "fixed"


# -- inertias that bodies cannot have


def inertial(ixx: float, iyy: float, izz: float, mass: float = 1.0) -> str:
    moments = f'ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"'
    return f'<inertial><mass value="{mass}"/><inertia {moments}/></inertial>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (inertial(1, 1, 3), "one moment exceeds the others' sum"),
        (inertial(1, 1, -1e-4), "a negative principal moment"),
        (inertial(1, 1, 1, mass=0), "an inertia but no mass"),
    ],
)
def test_odd_inertias_are_warned_about(text: str, words: str) -> None:
    warnings = record(robot(link("a"), link("b", text), joint("j", "a", "b"))).warnings
    assert len(warnings) == 1
    assert words in str(warnings[0])
    assert "'b' (line 3)" in str(warnings[0])


@pytest.mark.parametrize("moments", [(1, 1, 2), (0, 0, 0), (1, 1, 2 + 1e-7), (0, 1, 1), (1e-20, 0, -1e-19)])
def test_possible_inertias_and_roundings_are_not(moments: tuple[float, float, float]) -> None:
    assert record(robot(link("a"), link("b", inertial(*moments)), joint("j", "a", "b"))).warnings == []


def test_what_counts_is_the_inertia_of_all_that_moves_together() -> None:
    sensor = link("s", inertial(1e-3, 1e-3, -1e-3, mass=0.01))
    text = robot(link("a"), link("b"), sensor, joint("j", "a", "b"), joint("f", "b", "s", kind="fixed"))
    assert len(record(text).warnings) == 1
