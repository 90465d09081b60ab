"""All that is wrong with a file at once; and whether two models are the same mechanism."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.cli import main as run
from linkwise.files.check import check_file
from linkwise.files.compare import compare

MESH = '<visual><geometry><mesh filename="m.stl"/></geometry></visual>'
GOOD = """<robot name="r">
<link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="i" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint>
<joint name="k" type="continuous"><parent link="b"/><child link="c"/><origin xyz="0 0 1"/><axis xyz="0 1 0"/></joint>
</robot>"""


def found(folder: Path, *changes: tuple[str, str], text: str = GOOD) -> list[tuple[int | None, str]]:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "r.urdf").write_text(text)
    return [(each.line, each.what) for each in check_file(folder / "r.urdf")]


def test_a_good_file_has_nothing(tmp_path: Path) -> None:
    assert found(tmp_path) == []


def test_everything_at_once(tmp_path: Path) -> None:
    problems = found(
        tmp_path,
        ('<mass value="1"/>', '<mass value="-1"/>'),
        ('lower="-1" upper="1"', 'lower="1" upper="-1"'),
        ('name="j" type="continuous"', 'name="j" type="hinge"'),
        ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 2"/>'),
    )
    assert [line for line, _ in problems] == [3, 6, 7, 8]
    for word, (_, what) in zip(("negative mass", "unit length", "lower limit", "unknown type"), problems, strict=True):
        assert word in what


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (('izz="1"', 'izz="5"'), 3, "no body has the inertia"),
        (('ixx="1"', 'ixx="-1"'), 3, "negative about some axis"),
        (('<mass value="1"/>', '<mass value="5000"/>'), 3, "far above all others"),
        (('ixx="1" iyy="1" izz="1"', 'ixx="1e6" iyy="1e6" izz="1e6"'), 3, "too large for its mass"),
        (('ixx="1" iyy="1" izz="1"', 'ixx="1e-9" iyy="1e-9" izz="1e-9"'), 3, "too small for its mass"),
        (('lower="-1" upper="1"', 'lower="0" upper="0"'), 6, "leave no room"),
        (('lower="-1"', 'lower="0.5"'), 6, "outside its limits"),
        (('effort="1"', 'effort="0"'), 6, "neither push nor move"),
        (("</inertial></link>", f"</inertial>{MESH}</link>"), 3, "missing"),
    ],
)  # fmt: skip
def test_what_looks_wrong(tmp_path: Path, change: tuple[str, str], line: int, says: str) -> None:
    problems = found(tmp_path, change)
    assert any(at == line and says in what for at, what in problems), problems


def test_the_command_says_it_by_its_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good.urdf").write_text(GOOD)
    (tmp_path / "bad.urdf").write_text(GOOD.replace("hinge", "x").replace('value="1"', 'value="-1"', 1))
    assert run(["check", str(tmp_path / "good.urdf")]) == 0
    assert run(["check", str(tmp_path / "bad.urdf")]) == 1
    assert "bad.urdf:3: error: link 'a' has a negative mass" in capsys.readouterr().out


# -- compare


def test_the_same_in_other_frames_and_names(tmp_path: Path) -> None:
    model = samples.stanford_arm()
    model.save(tmp_path / "a.urdf")
    other = (
        lw.load(tmp_path / "a.urdf")
        .with_joint_constants(armature=model.joint_constants.armature)
        .renamed(lambda name: f"other_{name}")
    )
    result = compare(model, other)
    assert result.same and result.largest is not None and result.largest < 1e-9
    assert result.renamed[model.joints[0].name] == f"other_{model.joints[0].name}"


def test_what_differs_is_said() -> None:
    model = samples.planar_arm(3)
    for other, says in (
        (model.with_body("link2", mass=9.0), "mass of 'link2'"),
        (model.with_body("link2", com=(0.1, 0, 0)), "mass centre of 'link2'"),
        (model.with_body("link2", inertia=np.eye(3)), "inertia of 'link2'"),
        (model.with_gravity((0, 0, 1)), "gravity"),
        (model.with_joint_constants(armature=0.5), "armature"),
        (model.with_joint_constants(damping=0.5), "damping"),
        (model.without("link3"), "trees are different"),
        (model.mirrored("yz"), "mass centre|points along|place"),
    ):
        assert any(re.search(says, each) for each in compare(model, other).differences), says


def test_convert_and_diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.urdf", tmp_path / "b.lw.json"
    a.write_text(GOOD)
    assert run(["convert", str(a), str(b)]) == 0
    assert run(["convert", str(b), str(tmp_path / "c.urdf")]) == 0
    assert run(["diff", str(b), str(tmp_path / "c.urdf")]) == 0
    assert "the same mechanism" in capsys.readouterr().out
    a.write_text(GOOD.replace('value="1"', 'value="2"', 1))
    assert run(["diff", str(a), str(b)]) == 1
    assert "the mass of 'a' is 2 kg and 1 kg" in capsys.readouterr().out
    assert run(["convert", str(a), str(tmp_path / "c.txt")]) == 2


def test_shapes_that_overlap_at_the_start(tmp_path: Path) -> None:
    scene = '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><body name="b" pos="0 0 {}"><freejoint/>'
    for height, expected in ((0.1, []), (0.02, ["'b on floor': surfaces overlap at the start by 0.08 m"])):
        path = tmp_path / "scene.xml"
        path.write_text(scene.format(height) + '<geom size="0.1"/></body></worldbody></mujoco>')
        assert [each.what for each in check_file(path)] == expected
