"""What the SDF reader makes of joints, frames and models: against MuJoCo, or by poses worked out by hand."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
import pytest

import linkwise as lw
from tests.files.mujoco_of_sdf import agree

T = lw.transform

INERTIAL = """<inertial><pose>0.1 -0.2 0.3 0.4 0.5 0.6</pose><mass>2</mass><inertia><ixx>0.3</ixx><iyy>0.4</iyy>
<izz>0.5</izz><ixy>0.01</ixy><ixz>0.02</ixz><iyz>0.03</iyz></inertia></inertial>"""


def link(name: str, pose: str = "", inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{pose and f"<pose>{pose}</pose>"}{inside}</link>'


def joint(name: str, kind: str, parent: str, child: str, inside: str = "<axis><xyz>0 0 1</xyz></axis>") -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def sdf(*parts: str, version: str = "1.9", pose: str = "", attributes: str = "") -> str:
    placed = pose and f"<pose>{pose}</pose>"
    return f'<sdf version="{version}"><model name="m"{attributes}>{placed}{"".join(parts)}</model></sdf>'


def loads(text: str, **options: object) -> lw.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.errors.ModelWarning)
        return lw.loads(text, **options)  # type: ignore[arg-type]


def placed(model: lw.Model, name: str, q: Sequence[float] | None = None) -> np.ndarray:
    return np.asarray(model.pose(model.neutral() if q is None else q, name))


# -- joint types
AXES = "<axis><xyz>0.2 -1 0.5</xyz></axis><axis2><xyz>1 0.3 0.1</xyz></axis2>"
POSE = "<pose>0.1 0.2 -0.3 0.5 -0.6 0.7</pose>"


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "ball", "universal", "revolute2", "piston"])
@pytest.mark.parametrize("version", ["1.4", "1.6", "1.9"])
def test_each_joint_type_moves_as_in_mujoco(kind: str, version: str) -> None:
    parts = (
        link("a", "1 2 3 0.1 0.2 0.3"),
        link("b", "-1 0.5 2 0.7 -0.4 0.9"),
        link("c", "0.3 0.1 -1 1.5 0.2 0.1"),
        joint("first", "revolute", "world", "a", POSE + "<axis><xyz>1 1 0</xyz></axis>"),
        joint("j", kind, "a", "b", POSE + AXES),
        joint("last", "prismatic", "b", "c", "<axis><xyz>1 0 0</xyz></axis>"),
    )
    text = sdf(*parts, version=version, pose="0.5 0.6 0.7 0.3 0.2 0.1")
    model = loads(text)
    agree(text, model, count=3)


def test_use_parent_model_frame() -> None:
    for version, flag, axis in [
        ("1.6", "0", (1, 0, 0)),
        ("1.6", "1", (0, -1, 0)),
        ("1.5", "true", (0, -1, 0)),
        ("1.4", "", (0, -1, 0)),
    ]:
        inside = "<axis><xyz>1 0 0</xyz>" + (flag and f"<use_parent_model_frame>{flag}</use_parent_model_frame>")
        text = sdf(
            link("a", "0 0 0 0 0 1.5707963267948966"),
            joint("j", "revolute", "world", "a", inside + "</axis>"),
            version=version,
        )
        assert np.allclose(loads(text).joints["j"].type.axis, axis), (version, flag)


def test_an_axis_expressed_in_another_frame() -> None:
    inside = '<axis><xyz expressed_in="{}">1 0 0</xyz></axis>'
    parts = (
        link("a", "0 0 0 0 0 1.5707963267948966"),
        link("b", "5 0 0 0 1.5707963267948966 0"),
        '<frame name="f"><pose relative_to="b">0 0 0 1 0 0</pose></frame>',
        joint("k", "fixed", "world", "b", ""),
    )
    for frame, expected in [
        ("__model__", (0, -1, 0)),
        ("a", (1, 0, 0)),
        ("b", (0, 0, -1)),
        ("f", (0, 0, -1)),
        ("k", (0, 0, -1)),
    ]:
        text = sdf(*parts, joint("j", "revolute", "world", "a", inside.format(frame)))
        assert np.allclose(loads(text).joints["j"].type.axis, expected, atol=1e-15), frame


@pytest.mark.parametrize(
    ("pitch", "per_turn"),
    [
        ("<screw_thread_pitch>0.5</screw_thread_pitch>", 0.5),
        ("<thread_pitch>4</thread_pitch>", -2 * math.pi / 4),
        ("<thread_pitch>4</thread_pitch><screw_thread_pitch>0.5</screw_thread_pitch>", 0.5),
    ],
)
def test_a_screw(pitch: str, per_turn: float) -> None:
    """One turn takes it so far along its axis: right-handed m per turn, or as it was, left-handed rad per m."""
    text = sdf(
        link("a", "1 0 0 0 0 0"),
        joint("j", "screw", "world", "a", pitch + "<pose>0 1 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>"),
    )
    model = loads(text)
    assert np.allclose(placed(model, "a", [2 * math.pi])[:3, 3], (1, 0, per_turn), atol=1e-14)
    quarter = placed(model, "a", [math.pi / 2])
    assert np.allclose(quarter, T((2, 1, per_turn / 4), (0, 0, math.pi / 2)), atol=1e-14)


def test_limits_damping_friction_and_springs() -> None:
    inside = """<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper><effort>{effort}</effort>
    <velocity>3</velocity></limit><dynamics><damping>0.1</damping><friction>0.2</friction>
    <spring_stiffness>30</spring_stiffness><spring_reference>0.4</spring_reference></dynamics></axis>"""
    found = loads(sdf(link("a"), joint("j", "revolute", "world", "a", inside.format(effort=7)))).joints["j"]
    assert found.limits == (lw.JointLimits(-1, 2, 3, 7),)
    assert (found.damping, found.friction, found.stiffness, found.rest) == ((0.1,), (0.2,), (30.0,), (0.4,))
    for none in ("-1", "inf", "1e16", "1.7976931348623157e308"):
        text = sdf(link("a"), joint("j", "continuous", "world", "a", inside.format(effort=none)))
        assert loads(text).joints["j"].limits == (lw.JointLimits(velocity=3),)
    two = inside.format(effort=7) + inside.format(effort=8).replace("axis>", "axis2>").replace(
        "0 0 1", "0 1 0"
    ).replace("-1<", "-2<")
    found = loads(sdf(link("a"), joint("j", "universal", "world", "a", two))).joints["j"]
    assert found.limits == (lw.JointLimits(-1, 2, 3, 7), lw.JointLimits(-2, 2, 3, 8))
    found = loads(sdf(link("a"), joint("j", "piston", "world", "a", inside.format(effort=7)))).joints["j"]
    assert found.limits == (lw.JointLimits(), lw.JointLimits(-1, 2, 3, 7))
    assert found.damping == (0.0, 0.1)


def test_a_joint_that_follows() -> None:
    follows = """<axis><xyz>0 0 1</xyz><mimic joint="j"><multiplier>-2</multiplier><offset>0.5</offset>
    <reference>0.1</reference></mimic></axis>"""
    text = sdf(
        link("a"), link("b"), joint("j", "revolute", "world", "a"), joint("k", "revolute", "world", "b", follows)
    )
    model = loads(text)
    assert model.nv == 1
    assert np.allclose(placed(model, "b", [0.3]), T(rpy=(0, 0, -2 * (0.3 - 0.1) + 0.5)))
    assert loads(text, mimic=False).nv == 2


# -- poses and frames
def test_poses_are_relative_to_what_they_say() -> None:
    parts = (
        link("a", "1 0 0 0 0 1.5707963267948966"),
        f'<link name="b"><pose relative_to="a">1 0 0 0 0 0</pose>{INERTIAL}</link>',
        f'<link name="c"><pose relative_to="j">0 0 1 0 0 0</pose>{INERTIAL}</link>',
        '<frame name="f" attached_to="b"><pose>0 0 5 0 0 0</pose></frame>',
        '<frame name="g" attached_to="f"><pose relative_to="f">1 0 0 0 0 0</pose></frame>',
        '<frame name="h" attached_to="j"/>',
        '<joint name="j" type="revolute"><pose relative_to="a">0 2 0 0 0 0</pose><parent>a</parent><child>c</child>'
        "<axis><xyz>0 0 1</xyz></axis></joint>",
        joint("i", "revolute", "world", "b", '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis>'),
        joint("k", "prismatic", "a", "b"),
    )
    model = loads(sdf(*parts, pose="0 0 10 0 0 0"))
    for name, xyz in [
        ("a", (1, 0, 10)),
        ("b", (1, 1, 10)),
        ("c", (-1, 0, 11)),
        ("f", (1, 1, 15)),
        ("g", (1, 2, 15)),
        ("h", (-1, 0, 10)),
    ]:
        assert np.allclose(placed(model, name)[:3, 3], xyz, atol=1e-14), name
    q = model.neutral()
    q[model.joints["i"].q_slice] = math.pi / 2  # b, and f on it, turn about x through b's origin
    assert np.allclose(placed(model, "f", q)[:3, 3], (1, 1 - 5, 10), atol=1e-14)


def test_frames_as_ends_of_joints() -> None:
    parts = (
        link("a"),
        link("b", "2 0 0 0 0 0"),
        '<frame name="on_b" attached_to="b"><pose relative_to="b">0 1 0 0 0 0</pose></frame>',
        joint("i", "fixed", "world", "a", ""),
        joint("j", "revolute", "a", "on_b"),
    )
    model = loads(sdf(*parts))
    assert np.allclose(placed(model, "b", [math.pi])[:3, 3], (2, 2, 0), atol=1e-15)  # about (2, 1)
    assert np.allclose(placed(model, "on_b", [math.pi])[:3, 3], (2, 1, 0), atol=1e-15)


def test_other_ways_to_write_a_rotation() -> None:
    for pose in (
        '<pose degrees="true">1 2 3 0 0 90</pose>',
        '<pose rotation_format="quat_xyzw">1 2 3 0 0 1 1</pose>',
        '<pose rotation_format="euler_rpy">1 2 3 0 0 1.5707963267948966</pose>',
    ):
        model = loads(sdf(f'<link name="a">{pose}{INERTIAL}</link>', joint("j", "revolute", "world", "a")))
        assert np.allclose(placed(model, "a"), T((1, 2, 3), (0, 0, math.pi / 2)), atol=1e-15)


def test_an_old_pose_with_a_frame() -> None:
    text = sdf(
        link("a", "1 0 0 0 0 0"), f'<link name="b"><pose frame="a">0 1 0 0 0 0</pose>{INERTIAL}</link>', version="1.6"
    )
    assert np.allclose(placed(loads(text), "b")[:3, 3], (1, 1, 0))


def test_nested_models() -> None:
    links = link("l", "1 0 0 0 0 0") + link("tip", "2 0 0 0 0 0")
    pose = "<pose>0 0 1 0 0 1.5707963267948966</pose>"
    inner = f'<model name="arm">{pose}{links}{joint("j", "revolute", "l", "tip")}</model>'
    parts = (
        link("base"),
        inner,
        joint("hold", "fixed", "base", "arm::l", ""),
        '<frame name="at_tip" attached_to="arm::tip"><pose relative_to="arm::tip">1 0 0 0 0 0</pose></frame>',
        '<frame name="at_arm" attached_to="arm"><pose relative_to="arm"/></frame>',
        joint("root", "prismatic", "world", "base"),
    )
    model = loads(sdf(*parts))
    assert [joint.name for joint in model.joints] == ["root", "arm::j"]
    assert np.allclose(placed(model, "arm::tip")[:3, 3], (0, 2, 1), atol=1e-15)
    assert np.allclose(placed(model, "at_tip")[:3, 3], (0, 3, 1), atol=1e-15)
    assert np.allclose(placed(model, "at_arm")[:3, 3], (0, 0, 1), atol=1e-15)
    assert model.frame("at_arm").body == model.frame("arm::l").body  # the model's frame is on its first link


def test_a_placement_frame() -> None:
    parts = (link("a", "1 0 0 0 0 0"), '<frame name="f"><pose relative_to="a">0 0 2 0 0 0</pose></frame>')
    model = loads(sdf(*parts, pose="10 20 30 0 0 1.5707963267948966", attributes=' placement_frame="f"'))
    assert np.allclose(placed(model, "f"), T((10, 20, 30), (0, 0, math.pi / 2)), atol=1e-14)
    assert np.allclose(placed(model, "a")[:3, 3], (10, 20, 28), atol=1e-14)


def test_a_world() -> None:
    model_a = f'<model name="a"><pose>0 0 1 0 0 0</pose>{link("l")}{joint("j", "revolute", "world", "l")}</model>'
    world = (
        '<sdf version="1.9"><world name="w"><gravity>0 0 -3.7</gravity><light name="sun" type="point"/>{}</world></sdf>'
    )
    alone = loads(world.format(model_a))
    assert (alone.name, alone.gravity, alone.joints[0].name) == ("a", (0.0, 0.0, -3.7), "j")
    assert loads(world.format(model_a), gravity=(0, 0, -1)).gravity == (0, 0, -1)
    floor = link("floor", "0 0 5 0 0 0") + joint("k", "revolute", "world", "floor")
    ground = f'<model name="ground"><static>true</static>{floor}</model>'
    tied = joint("tie", "prismatic", "a::l", "b::l")
    both = loads(
        world.format(
            model_a + model_a.replace('"a"', '"b"').replace(joint("j", "revolute", "world", "l"), "") + ground + tied
        )
    )
    assert both.name == "w"
    assert {joint.name for joint in both.joints} == {"a::j", "tie"}
    assert np.allclose(placed(both, "ground::floor")[:3, 3], (0, 0, 5))


def test_static_models_do_not_move() -> None:
    model = lw.loads(sdf("<static>1</static>", link("a", "1 0 0 0 0 0"), link("b"), joint("j", "revolute", "a", "b")))
    assert model.nv == 0
    assert np.allclose(model.pose([], "a")[:3, 3], (1, 0, 0))
    assert lw.loads(sdf("<static>1</static>", link("a")), floating=False).nv == 0


def test_roots_are_held_or_freed() -> None:
    text = sdf(link("a", "1 0 0 0 0 0"), link("b"), joint("j", "revolute", "a", "b"), link("lone", "0 0 7 0 0 0"))
    held = loads(text)
    assert [joint.name for joint in held.joints] == ["j"]
    free = loads(text, floating=True)
    assert [joint.name for joint in free.joints] == ["root_joint", "j", "root_joint_2"]
    for model in (held, free):
        assert np.allclose(placed(model, "lone")[:3, 3], (0, 0, 7))
        assert np.allclose(placed(model, "a")[:3, 3], (1, 0, 0))


# -- masses and shapes
def test_the_inertia_a_link_has_without_one() -> None:
    text = sdf(
        link("a", inside=""),
        link("b", inside="<inertial><mass>3</mass></inertial>"),
        joint("j", "revolute", "a", "b"),
        joint("i", "revolute", "world", "a"),
    )
    with pytest.warns(lw.errors.ModelWarning, match="links without <inertial>.*\n.*'a'"):
        model = lw.loads(text)
    a, b = model.bodies
    assert (a.mass, a.parts[0].inertia[:3]) == (1.0, (1.0, 1.0, 1.0))
    assert (b.mass, b.parts[0].inertia[:3]) == (3.0, (1.0, 1.0, 1.0))


def test_shapes() -> None:
    shapes = """<visual name="v"><pose>0 0 1 0 0 0</pose><geometry><mesh><uri>model://x/a.stl</uri><scale>2 2 2</scale>
    </mesh></geometry></visual><collision name="c"><geometry><box><size>1 2 3</size></box></geometry></collision>
    <collision name="d"><geometry><cylinder><radius>1</radius><length>2</length></cylinder></geometry></collision>
    <visual name="p"><geometry><plane><normal>0 0 1</normal></plane></geometry></visual>"""
    body = loads(sdf(link("a", inside=INERTIAL + shapes), joint("j", "revolute", "world", "a"))).bodies[0]
    assert [(g.kind, g.size, g.mesh) for g in body.visuals] == [("mesh", (), "model://x/a.stl")]
    assert body.visuals[0].placement[2][3] == 1.0
    assert [(g.kind, g.size) for g in body.collisions] == [("box", (1.0, 2.0, 3.0)), ("cylinder", (1.0, 2.0))]


def test_a_link_that_gravity_should_not_pull() -> None:
    with pytest.warns(lw.errors.ModelWarning, match="gravity"):
        lw.loads(sdf(link("a", inside=INERTIAL + "<gravity>0</gravity>"), joint("j", "revolute", "world", "a")))
