"""The files of example-robot-data: all are read, or refused for a reason that is in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkwise.errors import ModelFileError
from linkwise.files.bodies import bodies_of
from linkwise.files.topology import arrange
from linkwise.files.urdf import read_urdf
from linkwise.files.xml import parse
from tests.files.recording import Recorded, record, robot_file, robot_files

REFUSED = {
    "alex_psyonic_hands.urdf": "mimics a joint that does not exist",
    "falcon.urdf": "the child of joint 'top_propeller_joint' is a link that does not exist",
    "romeo_laas_small.urdf": "is negative about some axis",
    "ur3.urdf": "the model has no links",
}


def read(file: Path, **options: object) -> Recorded:
    return record(file.read_bytes(), file=file.name, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("file", robot_files(), ids=lambda file: file.name)
@pytest.mark.parametrize("floating", [False, True])
def test_every_file_is_read_or_refused_for_its_reason(file: Path, floating: bool) -> None:
    if file.name in REFUSED:
        with pytest.raises(ModelFileError, match=REFUSED[file.name]):
            read(file, floating=floating)
        return
    bodies = read(file, floating=floating).bodies
    assert bodies
    assert sum(body["joint"][0] == "free" for body in bodies.values()) == floating


@pytest.mark.parametrize("file", robot_files(), ids=lambda file: file.name)
def test_masses_agree_with_pinocchio(file: Path) -> None:
    pin = pytest.importorskip("pinocchio")
    if file.name in ("falcon.urdf", "ur3.urdf"):
        with pytest.raises(ValueError):
            pin.buildModelFromUrdf(str(file))
        return
    expected = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    description, _ = read_urdf(parse(file.read_bytes(), file.name), file.name, "robot")
    bodies = bodies_of(arrange(description), mimic=False)
    mass = sum(body.link.mass for body in bodies)
    assert mass == pytest.approx(pin.computeTotalMass(expected), rel=1e-12, abs=1e-15)
    moving = {body.joint.name for body in bodies if body.joint.type != "fixed"}
    assert moving == set(expected.names) - {"universe", "root_joint"}


def test_the_refused_ones_can_be_had() -> None:
    assert read(robot_file("alex_psyonic_hands.urdf"), mimic=False).bodies
    grippers = ["l_gripper_joint", "r_gripper_joint"]
    assert read(robot_file("romeo_laas_small.urdf"), allow_unphysical=True, locked=grippers).bodies
    fingers = ["bravo_finger1_joint", "bravo_finger2_joint"]
    for name in ("bluevolta_bravo7_gripper.urdf", "bravo7_gripper.urdf", "falcon_bravo7_gripper.urdf"):
        assert read(robot_file(name), locked=fingers).bodies
    assert read(robot_file("romeo.urdf"), locked=["LHand", "RHand"]).bodies


def test_panda() -> None:
    bodies = read(robot_file("panda.urdf"), locked=["panda_finger_joint1"]).bodies
    moving = [body["joint_name"] for body in bodies.values() if body["joint"][0] != "fixed"]
    assert moving == [f"panda_joint{k}" for k in range(1, 8)]  # the second finger is held with the first
