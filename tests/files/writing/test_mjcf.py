"""What is written as MJCF moves in MuJoCo as the model does here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.files.writing.mjcf import mjcf_text
from tests.files.recording import robot_files
from tests.oracles.eager import Eager
from tests.random_trees import random_state, random_tree

mujoco = pytest.importorskip("mujoco")


def compiled(model: lw.Model) -> tuple[Any, Any]:
    text, _ = mjcf_text(model)
    theirs = mujoco.MjModel.from_xml_string(text)
    return theirs, mujoco.MjData(theirs)


def compare(model: lw.Model, seed: int, rtol: float = 1e-9) -> None:
    """Mass matrix and bias force of models whose coordinates are the same there."""
    theirs, data = compiled(model)
    assert theirs.nv == model.nv
    q, v, _ = random_state(model, np.random.default_rng(seed))
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(theirs, data)
    M = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M)
    eager = Eager(model)
    scale = np.abs(M).max()
    np.testing.assert_allclose(M, eager.mass_matrix(q), rtol=rtol, atol=1e-9 * scale)
    bias = eager.inverse_dynamics(q, v, np.zeros(model.nv))
    np.testing.assert_allclose(data.qfrc_bias, bias, rtol=rtol, atol=1e-9 * np.abs(bias).max())


@pytest.mark.parametrize("seed", range(5))
def test_random_trees(seed: int) -> None:
    compare(random_tree(seed, 6, ("revolute", "prismatic", "cylindrical", "universal", "fixed")), seed)


@pytest.mark.parametrize("seed", range(3))
def test_balls(seed: int) -> None:
    compare(random_tree(seed, 4, ("revolute", "spherical"), armature=0.0), seed)


@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
@pytest.mark.parametrize("name", ["panda.urdf", "go1.urdf", "g1_29dof_rev_1_0.urdf"])
def test_robots(name: str) -> None:
    files = [file for file in robot_files() if file.name == name]
    if not files:
        pytest.skip("needs example-robot-data")
    model = lw.load(files[0], mimic=False)
    compare(model, 0)


def test_equipment_and_losses(tmp_path: Path) -> None:
    b = lw.ModelBuilder("m")
    b.add_body(
        "a", joint=lw.Revolute((0, 1, 0)), mass=1.0, com=(1, 0, 0), inertia=np.eye(3), armature=0.1, damping=0.2,
        friction=0.3, stiffness=4.0, rest=0.5, limits=lw.JointLimits(-1, 2, 3, 4),
    )  # fmt: skip
    b.add_body("c", "a", joint=lw.Prismatic((1, 0, 0)), mass=1.0, inertia=np.eye(3))
    b.add_body("d", "a", joint=lw.Helical(0.1), mass=1.0, inertia=np.eye(3))
    b.add_frame("tool", "c", lw.transform((0, 0, 1)))
    b.add_actuator(
        lw.equipment.Actuator(
            "servo", lw.equipment.JointTransmission({"a_joint": 50.0}), bias=(0, -3, -1), force_range=(-1, 1)
        )
    )
    b.add_actuator(lw.equipment.Actuator("both", lw.equipment.JointTransmission({"a_joint": 1.0, "c_joint": -2.0})))
    b.add_actuator(lw.equipment.Actuator("jet", lw.equipment.FrameTransmission("tool", (0, 0, 0, 1, 0, 0))))
    b.add_spring(
        lw.equipment.Spring("band", lw.equipment.JointTransmission({"a_joint": 1.0, "c_joint": 1.0}), 5.0, 0.1)
    )
    b.add_sensor(lw.equipment.Sensor("gyro", "gyroscope", "tool"))
    b.add_sensor(lw.equipment.Sensor("where", "frame_position", "tool", "a"))
    b.add_closure("ball", "c", None, "world", lw.transform((0, 0, 1)), joint=lw.Spherical())
    b.add_closure("hinge", "c", None, "world", joint=lw.Revolute())
    b.add_coupling("gear", lw.closures.Coupling.gear("a_joint", "c_joint", 2.0))
    model = b.build()
    lost = model.save(tmp_path / "m.xml")
    assert any("screw" in each for each in lost) and any("softly" in each for each in lost)
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "m.xml"))
    assert (theirs.nu, theirs.nsensor, theirs.neq, theirs.ntendon) == (3, 2, 5, 2)
    joint = theirs.joint("a_joint")
    assert joint.damping[0] == 0.2 and joint.frictionloss[0] == 0.3 and joint.armature[0] == 0.1
    assert joint.stiffness[0] == 4.0 and joint.range.tolist() == [-1, 2]
    assert theirs.actuator("servo").biasprm[:3].tolist() == [0, -3, -1]
    with pytest.raises(lw.ModelError, match="flexible"):
        samples.flexible_arm().save(tmp_path / "m.xml")


def test_free_bodies_and_planes_are_written() -> None:
    model = random_tree(0, 5, ("free", "planar", "revolute"), floating=True)
    theirs, _ = compiled(model)
    assert theirs.nv == model.nv
