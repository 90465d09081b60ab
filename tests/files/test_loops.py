"""Side files: the loops of a URDF file, in both forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.closures.instances import ClosureInstance
from tests.files.test_sdf_loops import residuals

INERTIAL = (
    '<inertial><origin xyz="0.5 0 0"/><mass value="1"/>'
    '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>'
)


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, xyz: str, kind: str = "continuous", more: str = "") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{more}</joint>'
    )


LIMIT = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
FIVE_BAR = "".join(
    (
        '<robot name="five">',
        *map(link, ("base", "a", "b", "c", "d")),
        link("end_b", ""),
        link("end_d", ""),
        joint("ja", "base", "a", "0 0 0"),
        joint("jb", "a", "b", "1 0 0"),
        joint("tip_b", "b", "end_b", "1 0 0", "fixed"),
        joint("jc", "base", "c", "0 1 0"),
        joint("jd", "c", "d", "1 0 0", "revolute", LIMIT),
        joint("tip_d", "d", "end_d", "1 -1 0", "fixed"),
        "</robot>",
    )
)


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(FIVE_BAR)
    return path


def side(urdf: Path, text: str, name: str = "robot.yaml") -> Path:
    path = urdf.with_name(name)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("kind", "closure", "equations"),
    [("'3d'", "Spherical", 3), ("'6D'", "Fixed", 6), (None, "Fixed", 6), ("revolute", "Revolute", 5)],
)
def test_the_form_of_example_parallel_robots(urdf: Path, kind: str | None, closure: str, equations: int) -> None:
    if kind == "revolute":
        text = "closures:\n  - {a: end_b, b: end_d, type: revolute, axis: [0, 0, 1]}\n"
    else:
        text = "closed_loop: [['end_b', 'end_d']]\n" + (f"type: [{kind}]\n" if kind else "")
    model = lw.load(urdf, loops=side(urdf, text + "name_mot: ['ja', 'jc']\n"))
    (found,) = model.closures
    assert isinstance(found, ClosureInstance)
    assert (found.name, found.type.kind, len(found.equations)) == (
        "end_b-end_d",
        closure,
        equations,
    )
    assert [model.bodies[k].name for k in (found.body_a, found.body_b)] == ["b", "d"]
    assert abs(residuals(model, model.neutral())["end_b-end_d"]).max() < 1e-15
    assert abs(residuals(model, np.array([0.1, 0, 0, 0]))["end_b-end_d"]).max() > 1e-3


def test_it_is_read_only_where_it_is_named(urdf: Path) -> None:
    side(urdf, "closed_loop: [['end_b', 'end_d']]\n")
    assert not lw.load(urdf).closures


def test_joints_for_their_frames_and_the_world(urdf: Path) -> None:
    """Pinocchio calls the frames of fixed joints by the joints' names."""
    text = "closed_loop:\n  - [tip_b, tip_d]\n  - [jd, world]\ntype: ['3d', '3d']\n"
    model = lw.load(urdf, loops=side(urdf, text))
    assert [closure.name for closure in model.closures] == ["tip_b-tip_d", "jd-world"]
    assert model.closures[1].body_b == -1
    assert np.allclose(residuals(model, model.neutral())["jd-world"], (-1, -1, 0))


def test_other_joint_types(urdf: Path) -> None:
    text = "joint_name: ['ja', 'jb', 'jc', 'jd']\njoint_type: ['SPHERICAL', 'UJOINT_XY', 'FIXED', 'UJOINT_ZY']\n"
    model = lw.load(urdf, loops=side(urdf, text))
    assert [type(joint.type).__name__ for joint in model.joints] == ["Spherical", "Universal", "Universal"]
    assert model.joints["jb"].type == lw.Universal((1, 0, 0), (0, 1, 0))
    assert model.joints["jd"].type == lw.Universal((0, 0, 1), (0, 1, 0))


def test_the_form_that_says_more(urdf: Path) -> None:
    parts = {
        "closures": [
            {"name": "pin", "a": "b", "b": "d", "type": "universal", "axis": [0, 0, 2], "axis2": [1, 0, 0],
             "placement_a": {"xyz": [1, 0, 0]}, "placement_b": {"xyz": [1, -1, 0], "rpy": [0, 0, 0]}},
            {"a": "b", "b": "d", "type": "helical", "axis": [0, 0, 1], "pitch": 0.1, "placement_a": {"xyz": [0, 1, 0]}},
        ],
        "couplings": [{"name": "gear", "terms": {"ja": 1, "jc": -5}, "offset": 0.5}],
    }  # fmt: skip
    model = lw.load(urdf, loops=side(urdf, json.dumps(parts, indent=1), "robot.json"))
    assert [closure.name for closure in model.closures] == ["pin", "b-d", "gear"]
    assert abs(residuals(model, model.neutral())["pin"]).max() < 1e-15
    assert model.closures["gear"].type == lw.closures.Coupling({"ja": 1.0, "jc": -5.0}, 0.5)
    text = """
# the same, for people
closures:
  - name: pin
    a: b
    b: d
    type: universal
    axis: [0, 0, 2]
    axis2: [1, 0, 0]
    placement_a: {xyz: [1, 0, 0]}
    placement_b: {xyz: [1, -1, 0], rpy: [0, 0, 0]}
  - a: b
    b: d
    type: helical
    axis: [0, 0, 1]
    pitch: 0.1
    placement_a:
      xyz: [0, 1, 0]
couplings:
- name: gear
  terms: {ja: 1, jc: -5}
  offset: 0.5
"""
    assert lw.load(urdf, loops=side(urdf, text)).closures == model.closures


def test_loops_and_floating_and_text(urdf: Path) -> None:
    path = side(urdf, "closed_loop: [['end_b', 'end_d']]")
    assert lw.loads(FIVE_BAR, loops=path, floating=True).nv == 10


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("closed_loop: [['end_b', 'end_e']]", 1, "no link, frame or joint of this name"),
        ("closed_loop: [['end_b']]", 1, "between two frames"),
        ("a: 1\nclosed_loop: []", 1, "unknown key"),
        ("closed_loop: [['end_b', 'end_d']]\ntype: ['3d', '3d']", 2, "one type for each loop"),
        ("closed_loop: [['end_b', 'end_d']]\ntype: ['4d']", 2, "type of a loop is not known"),
        ("closed_loop: [['end_b', 'tip_b']]", 1, "between two places of one rigid body"),
        ("name_mot: [jx]", 1, "no joint of this name"),
        ("joint_name: [ja]\njoint_type: []", 2, "not of one length"),
        ("joint_name: [ja]\njoint_type: [BALL]", 2, "joint type is not known"),
        ("joint_name: [ja]\njoint_type: [UJOINT_XX]", 2, "joint type is not known"),
        ("closures:\n  - {a: b, b: d}", 2, "has no 'type'"),
        ("closures:\n  - {a: b, b: d, type: revolute}", 2, "needs an axis"),
        ("closures:\n  - {a: b, b: d, type: revolute, axis: [0, 0, 0]}", 2, "axis is zero"),
        ("closures:\n  - {a: b, b: d, type: revolute, axis: [0, 0]}", 2, "three numbers"),
        ("closures:\n  - {a: b, b: d, type: universal, axis: [0, 0, 1]}", 2, "axis2"),
        ("closures:\n  - {a: b, b: d, type: floating}", 2, "type of a loop is not known"),
        ("couplings:\n  - {name: g, terms: {jx: 1}}", 2, "no joint of this name"),
        ("couplings:\n  - {name: g, terms: {ja: 0}}", 2, "coefficients of a coupling"),
        ("couplings:\n  - {name: g, terms: {ja: one}}", 2, "must be a number"),
        ("couplings:\n  - {name: g, terms: {ja: 1}}\n  - {name: g, terms: {jb: 1}}", None, "'g' is taken"),
        ("- 1", 1, "must be names with values"),
    ],
)  # fmt: skip
def test_mistakes(urdf: Path, text: str, line: int | None, words: str) -> None:
    path = side(urdf, text)
    with pytest.raises(lw.errors.ModelFileError, match=words) as caught:
        lw.load(urdf, loops=path)
    assert str(caught.value).startswith(f"{path}:" + ("" if line is None else f"{line}: "))


def test_a_side_file_that_is_not_there(urdf: Path) -> None:
    side(urdf, "closed_loop: []")
    with pytest.raises(lw.errors.ModelFileError, match=r"no such file[\s\S]*robot.yaml"):
        lw.load(urdf, loops=urdf.with_name("robots.yaml"))
