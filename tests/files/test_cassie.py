"""The Cassie files of example-robot-data: their trees against MuJoCo, their loops against the files."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.instances import ClosureInstance, RelationInstance
from tests.files.mujoco_of_sdf import agree
from tests.files.recording import robot_files


def cassies() -> list[Path]:
    return robot_files(".sdf")


pytestmark = pytest.mark.skipif(not cassies(), reason="needs example-robot-data")
each_file = pytest.mark.parametrize("file", cassies(), ids=lambda file: file.stem)


def loaded(file: Path, **options: object) -> lw.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.errors.ModelWarning)
        return lw.load(file, **options)  # type: ignore[arg-type]


def test_there_are_five() -> None:
    assert len(cassies()) == 5


@each_file
def test_the_tree_is_what_mujoco_makes_of_it(file: Path) -> None:
    agree(file, loaded(file))


@each_file
def test_loops_are_counted_and_closed(file: Path) -> None:
    model = loaded(file, floating=False)
    root = ET.parse(file).getroot()
    joints = [joint for joint in root.iter("joint") if joint.get("type") != "gearbox"]
    gearboxes = [joint for joint in root.iter("joint") if joint.get("type") == "gearbox"]
    ends = {joint.findtext(end) for joint in joints for end in ("parent", "child")}
    connected = len({*ends, *(link.get("name") for link in root.iter("link"))} - {"world"})
    # A graph with so many links more than a tree has edges: the cycles of Euler's formula, one component.
    loops = len(joints) - (connected - ("world" not in ends))
    found = [closure for closure in model.closures if isinstance(closure, ClosureInstance)]
    couplings = [closure for closure in model.closures if isinstance(closure, RelationInstance)]
    assert len(found) == loops
    assert len(couplings) == len(gearboxes)
    poses = model.poses(model.neutral())
    for closure in found:
        a, b = (
            RelativePose.from_matrix((np.eye(4) if k < 0 else poses[k]) @ np.array(placement))
            for k, placement in ((closure.body_a, closure.placement_a), (closure.body_b, closure.placement_b))
        )
        X = b.seen_from(a)
        assert np.abs(closure.type.residual(X, 0.0)).max() < 1e-13


@pytest.mark.slow
@each_file
def test_every_file_assembles(file: Path) -> None:
    """From a guess beside its own pose, which closes already."""
    model = loaded(file, floating=False)
    guess = model.integrate(model.neutral(), 0.05 * np.random.default_rng(0).normal(size=model.nv))
    assert np.abs(model.closure_error(guess)).max() > 1e-3
    assert np.abs(model.closure_error(model.assemble(guess))).max() < 1e-10


@each_file
def test_links_stand_where_the_file_has_them(file: Path) -> None:
    root = ET.parse(file).getroot()
    for floating in (False, True) if file.stem == "cassie" else (False,):
        model = loaded(file, floating=floating)
        poses = model.poses(model.neutral())
        for link in root.iter("link"):
            expected = [float(word) for word in (link.findtext("pose") or "0 0 0").split()[:3]]
            frame = model.frame(str(link.get("name")))
            X = np.array(frame.placement) if frame.body < 0 else poses[frame.body] @ frame.placement
            np.testing.assert_allclose(X[:3, 3], expected, atol=1e-13)


def test_gearboxes_turn_against_their_motors() -> None:
    file = next(file for file in cassies() if file.stem == "cassie")
    model = loaded(file, floating=True)
    gear = model.closures["left-knee-joint"]
    q = model.neutral()
    q[model.joints["left-knee-ip"].q_slice] = 16.0
    q[model.joints["left-knee-op"].q_slice] = -1.0
    assert isinstance(gear, RelationInstance)
    assert gear.type.residual([q[model.joints[name].q_slice][0] for name in gear.type.joints or ()], 0.0) == [0.0]


def test_springs() -> None:
    file = next(file for file in cassies() if file.stem == "cassie")
    model = loaded(file)
    assert model.joints["left-knee-shin-joint"].stiffness == (1500.0,)
    assert model.joints["right-tarsus-spring-joint"].stiffness == (1250.0,)
    assert model.joints["left-pitch-rod-joint"].damping == (0.01,) * 3


def test_a_closing_joint_keeps_its_damping() -> None:
    """The rod's ball is in the tree of the one file and closes a loop of the other."""
    file = next(file for file in cassies() if file.stem == "cassie_v2")
    model = loaded(file)
    assert model.closures["left-pitch-rod-joint"].damping == (0.01,) * 3
    rng = np.random.default_rng(0)
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    own = {each.name: each for each in model.constraints.freedoms}
    u = model.constraints.velocities(q, v)
    loss = sum(np.dot(each.closure.damping or 0.0, u[each.v_slice] ** 2) for each in own.values())
    loss += model.joint_constants.damping @ v**2
    rules = lw.JointRules(springs=False, friction=False)
    np.testing.assert_allclose(model.passive_force(q, v, rules=rules) @ v, -loss, rtol=1e-12)


def test_a_locked_leg_needs_no_closures() -> None:
    """Closures between links that have become one body hold by themselves."""
    file = next(file for file in cassies() if file.stem == "cassie")
    left = [joint.name for joint in loaded(file).joints if joint.name.startswith("left")]
    model = loaded(file, locked=left)
    assert {closure.name.split("-")[0] for closure in model.closures} == {"right"}
