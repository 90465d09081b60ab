"""What the files become in the builder, body by body, against Pinocchio's reading of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelFileError, ModelWarning
from linkwise.files.bodies import bodies_of
from linkwise.files.build import build
from linkwise.files.topology import arrange
from linkwise.files.urdf import read_urdf
from linkwise.files.xml import parse
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.mechanism import Mechanism
from tests.files.recording import robot_file, robot_files

pin = pytest.importorskip("pinocchio")

UNREADABLE = {"falcon.urdf", "ur3.urdf"}
REFUSED = ("has a negative principal moment",)


def built(file: Path, **options: Any) -> Any:
    description, _ = read_urdf(parse(file.read_bytes(), file.name), file.name, "robot")
    bodies = bodies_of(arrange(description), **options)
    return Mechanism(**build(Builder(description.name), bodies, description))


def together(parts: Any) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Mass, first moments and inertia about the body's origin."""
    m, h, I_O = 0.0, np.zeros(3), np.zeros((3, 3))
    for part in parts:
        X = np.array(part.placement)
        xx, yy, zz, xy, xz, yz = part.inertia
        c = X[:3, :3] @ part.com + X[:3, 3]
        I_C = X[:3, :3] @ [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]] @ X[:3, :3].T
        m, h, I_O = m + part.mass, h + part.mass * c, I_O + I_C + part.mass * (c @ c * np.eye(3) - np.outer(c, c))
    return m, h, I_O


@pytest.mark.parametrize("file", [f for f in robot_files() if f.name not in UNREADABLE], ids=lambda file: file.name)
@pytest.mark.parametrize("floating", [False, True])
def test_bodies_agree(file: Path, floating: bool) -> None:
    try:
        ours = built(file, mimic=False, floating=floating)
    except ModelFileError as error:
        assert any(reason in str(error) for reason in REFUSED), error
        pytest.skip("refused by the builder")
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    theirs = pin.buildModelFromUrdf(str(file), *root)
    names = list(theirs.names)
    assert {joint.name for joint in ours.joints} == set(names) - {"universe"}
    for body, joint in zip(ours.bodies, ours.joints, strict=True):
        k = names.index(joint.name)
        parent = ours.joints[body.parent].name if body.parent >= 0 else "universe"
        freed_below_world = floating and joint.name == "root_joint" and body.name != theirs.frames[2].name
        if freed_below_world:
            continue  # Pinocchio frees the link "world", linkwise the link fixed to it
        assert names[theirs.parents[k]] == parent
        if not (floating and file_has_world(file) and theirs.parents[k] == 1):
            np.testing.assert_allclose(body.placement, theirs.jointPlacements[k].homogeneous, atol=1e-11)
        m, h, I_O = together(body.parts)
        expected = theirs.inertias[k].matrix()
        np.testing.assert_allclose(m, theirs.inertias[k].mass, rtol=1e-12)
        np.testing.assert_allclose(h, theirs.inertias[k].mass * theirs.inertias[k].lever, atol=1e-10)
        np.testing.assert_allclose(I_O, expected[3:, 3:], atol=1e-10, rtol=1e-9)
        if joint.limits:
            at = theirs.joints[k].idx_v
            assert joint.limits[0].effort == theirs.upperEffortLimit[at]
            assert joint.limits[0].velocity == theirs.upperVelocityLimit[at]


def file_has_world(file: Path) -> bool:
    return b'<link name="world"' in file.read_bytes()


def test_massless_fingers_are_warned_of_with_the_joints_to_lock() -> None:
    file = robot_file("bravo7_gripper.urdf")
    with pytest.warns(ModelWarning, match=r"bravo7_gripper\.urdf:264:") as caught:
        lw.load(file)
    assert "locked=['bravo_finger1_joint', 'bravo_finger2_joint']" in str(caught[0].message)
    assert len(built(file, locked=["bravo_finger1_joint", "bravo_finger2_joint"]).bodies) == 6
