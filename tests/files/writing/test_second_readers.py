"""What is written is read by programs that we did not write, and is the same mechanism there."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.files.writing.mjcf import mjcf_text
from linkwise.mechanism.placement import rpy_of
from tests.files.writing.second_readers import EXPORTED, mujoco_problem, pinocchio_problem, random_export
from tests.random_trees import random_tree

READERS = {"mujoco": mujoco_problem, "pinocchio": pinocchio_problem}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", EXPORTED[:-1])
def test_each_joint_type_with_turned_frames(reader: str, kind: str) -> None:
    pytest.importorskip(reader)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = random_tree(rng, 4, (kind, "revolute"), joint_frames=1.0, structured=0.2)
        assert not READERS[reader](model, rng)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", range(12))
def test_random_mechanisms(reader: str, seed: int) -> None:
    pytest.importorskip(reader)
    rng = np.random.default_rng(seed)
    assert not READERS[reader](random_export(rng), rng)


def test_a_ball_keeps_its_coordinates(tmp_path: Path) -> None:
    b = lw.ModelBuilder("m")
    frame = lw.transform((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    b.add_body("a", joint=lw.Spherical(), joint_frame=frame, mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    b.add_actuator(lw.equipment.Actuator("torque", lw.equipment.JointTransmission({"a_joint": (1.0, 2.0, 3.0)})))
    model = b.build()
    assert model.save(tmp_path / "m.xml") == []
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    data = mujoco.MjData(m)
    q = np.array([0.5, 0.5, -0.5, 0.5])
    data.qpos[:], data.ctrl[:] = q, 1.0
    mujoco.mj_forward(m, data)
    np.testing.assert_allclose(data.body("a").xpos, model.pose(q, "a")[:3, 3], atol=1e-14)
    np.testing.assert_allclose(data.qfrc_actuator, (1, 2, 3), atol=1e-14)
    again = lw.load(tmp_path / "m.xml")
    np.testing.assert_allclose(again.pose(q, "a"), model.pose(q, "a"), atol=1e-14)


def test_a_slide_without_limits_comes_back_without(tmp_path: Path) -> None:
    b = lw.ModelBuilder("m")
    b.add_body("a", joint=lw.Prismatic(), mass=1.0, inertia=np.eye(3))
    b.add_body("c", joint=lw.Prismatic(), mass=1.0, inertia=np.eye(3), limits=lw.JointLimits(upper=2.0, effort=5.0))
    model = b.build()
    model.save(tmp_path / "m.urdf")
    model.save(tmp_path / "m.xml")
    for name in ("m.urdf", "m.xml"):
        again = lw.load(tmp_path / name)
        assert again.limits.lower.tolist() == [-math.inf] * 2 and again.limits.upper.tolist() == [math.inf, 2.0]
        assert again.limits.effort.tolist() == [math.inf, 5.0] and np.isinf(again.limits.velocity).all()
        assert np.abs(again.random_configuration(0)).max() < 100.0


def test_names_that_are_taken_or_need_care() -> None:
    """Names of ours that look like those that the writers make, and characters that XML escapes."""
    mujoco = pytest.importorskip("mujoco")
    b = lw.ModelBuilder('"m" & <n>')
    rod = {"mass": 1.0, "inertia": np.eye(3)}
    turned = lw.transform(rpy=(0.1, 0.2, 0.3))
    b.add_body("a<&>", joint=lw.Universal((1, 0, 0), (0, 1, 0)), joint_name="u", **rod)
    b.add_body("b\"'", "a<&>", joint=lw.Revolute(), joint_name="u/2", **rod)
    b.add_body("b/ball", "a<&>", joint=lw.Revolute(), joint_name="u_2", **rod)
    b.add_body("b", "a<&>", joint=lw.Spherical(), joint_name="ball", joint_frame=turned, **rod)
    b.add_frame("pin/a", "b", lw.transform((0, 0, 1)))
    b.add_closure("pin", "b", lw.transform((1, 0, 0)), "world", joint=lw.Spherical())
    both = lw.equipment.JointTransmission({"u": (1.0, 2.0), "u/2": 3.0})
    b.add_actuator(lw.equipment.Actuator("x", both))
    b.add_spring(lw.equipment.Spring("x", both, 2.0, rest=(-1.0, -1.0)))
    model = b.build()
    text, _ = mjcf_text(model)
    m = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(m)
    data.ctrl[:] = 1.0
    mujoco.mj_forward(m, data)
    assert [m.body(body.name).id for body in model.bodies]
    driven = [data.qfrc_actuator[m.joint(name).dofadr[0]] for name in ("u", "u/2", "u/2_2")]
    np.testing.assert_allclose(driven, (1.0, 3.0, 2.0))
    np.testing.assert_allclose(m.tendon_lengthspring[m.tendon("x/tendon_2").id], -1.0)
    assert np.allclose(m.site("pin/a").pos, (0, 0, 1)) and np.allclose(m.site("pin/a_2").pos, (1, 0, 0))
    pin = pytest.importorskip("pinocchio")
    from linkwise.files.writing.urdf import urdf_text

    assert pin.buildModelFromXML(urdf_text(model.without("pin"))[0]).nv == model.nv


def test_what_mujoco_cannot_have_is_said() -> None:
    mujoco = pytest.importorskip("mujoco")
    b = lw.ModelBuilder("m")
    b.add_body("light", joint=lw.Revolute())
    b.add_body("wheel", "light", joint=lw.Revolute((0, 1, 0)), inertia=np.eye(3))
    b.add_body("plate", "wheel", joint=lw.Prismatic(), mass=1.0, inertia=np.diag([1.0, 2.0, 3.0]),
               limits=lw.JointLimits(1.0, 1.0))  # fmt: skip
    b.add_body("ball", "plate", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3), damping=(1.0, 2.0, 3.0),
               limits=lw.JointLimits(effort=2.0))  # fmt: skip
    b.add_body("flat", "world", joint=lw.Planar(), mass=1.0, inertia=np.eye(3), damping=(1.0, 2.0, 3.0),
               friction=(0.0, 1.0, 1.0))  # fmt: skip
    b.add_body("late", "light", joint=lw.Revolute(), mass=1.0, inertia=np.eye(3))
    b.add_spring(lw.equipment.Spring("twist", lw.equipment.JointTransmission({"ball_joint": (1.0, 0.0, 0.0)}), 1.0))
    b.add_actuator(lw.equipment.Actuator("push", lw.equipment.JointTransmission({"flat_joint": (0.0, 1.0, 0.0)})))
    text, lost = mjcf_text(b.build())
    m = mujoco.MjModel.from_xml_string(text)
    np.testing.assert_allclose(m.body("plate").inertia[::-1], (1, 2, 3), rtol=1e-11)
    np.testing.assert_allclose(m.body("wheel").inertia, 1.0)
    said = "\n".join(lost)
    for words in (
        "'light' has no mass", "'wheel' has no mass", "'plate_joint', between which",
        "the damping of joint 'ball_joint'",
        "the effort limits of joint 'ball_joint'", "friction, damping of joint 'flat_joint' turn", "spring 'twist'",
        "actuator 'push'", "the order of the joints",
    ):  # fmt: skip
        assert words in said, words


@pytest.mark.parametrize("off", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-5, 0.1])
def test_angles_near_straight_up(off: float) -> None:
    """Roll, pitch and yaw give the rotation back, also where the two turns are almost about one line."""
    rng = np.random.default_rng(0)
    for up in (1, -1):
        for _ in range(20):
            R = lw.transform(rpy=(rng.uniform(-3, 3), up * (math.pi / 2 - off), rng.uniform(-3, 3)))[:3, :3]
            R = R @ lw.transform(rpy=(rng.normal(size=3) * off).tolist())[:3, :3]
            np.testing.assert_allclose(lw.transform(rpy=rpy_of(R))[:3, :3], R, atol=1e-14)
