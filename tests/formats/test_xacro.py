"""xacro files: run where one asks for it, with their arguments, and held to the folders they may use."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.run import run
from linkwise.formats.xacro_process import _check_names

pytest.importorskip("xacro")

INERTIAL = """<inertial><origin xyz="0 0 .1"/><mass value="{}"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>"""
JOINT = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
HEAD = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">'
ROBOT = (
    HEAD
    + """
  <xacro:arg name="links" default="2"/>
  <xacro:arg name="mass" default="1.5"/>
  <xacro:property name="n" value="$(arg links)"/>
  <xacro:macro name="link" params="k parent">
    <link name="l${k}">"""
    + INERTIAL.format("${2 * $(arg mass)}")
    + """</link>
    <joint name="j${k}" type="continuous"><parent link="${parent}"/><child link="l${k}"/><axis xyz="0 1 0"/></joint>
    <xacro:if value="${k &lt; n}"><xacro:link k="${k + 1}" parent="l${k}"/></xacro:if>
  </xacro:macro>
  <link name="base"/>
  <xacro:link k="1" parent="base"/>
</robot>"""
)


def written(folder: Path, body: str, name: str = "r.urdf.xacro") -> Path:
    path = folder / name
    path.write_text(body if body.startswith("<robot") else f'{HEAD}<link name="a"/>{body}</robot>')
    return path


def test_a_program_is_not_run_unasked(tmp_path: Path) -> None:
    with pytest.raises(lw.ModelFileError, match="is a program"):
        lw.load(written(tmp_path, ROBOT))
    with pytest.raises(lw.InputError, match="for xacro files"):
        (tmp_path / "a.urdf").write_text("<robot name='a'><link name='b'/></robot>")
        lw.load(tmp_path / "a.urdf", arguments={})


def test_arguments_and_macros(tmp_path: Path) -> None:
    path = written(tmp_path, ROBOT)
    model = lw.load(path, arguments={})
    assert model.nv == 2 and model.bodies[0].mass == 3.0
    model = lw.load(path, arguments={"links": 4, "mass": 0.25})
    assert model.nv == 4 and model.bodies[0].mass == 0.5
    same = lw.loads(
        '<robot name="r"><link name="base"/>'
        + "".join(
            f'<link name="l{k}">{INERTIAL.format(0.5)}</link><joint name="j{k}" type="continuous"><parent link="{p}"/>'
            f'<child link="l{k}"/><axis xyz="0 1 0"/></joint>'
            for k, p in ((1, "base"), (2, "l1"), (3, "l2"), (4, "l3"))
        )
        + "</robot>"
    )
    assert model == same
    assert np.array_equal(model.mass_matrix(np.ones(4)), same.mass_matrix(np.ones(4)))


def test_includes_and_packages_from_the_search_path(tmp_path: Path) -> None:
    (tmp_path / "pkg" / "urdf").mkdir(parents=True)
    (tmp_path / "pkg" / "package.xml").write_text("<package><name>pkg</name></package>")
    written(
        tmp_path / "pkg" / "urdf",
        '<link name="b"/><joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint>',
        "part.xacro",
    )
    (tmp_path / "pkg" / "urdf" / "part.xacro").write_text(f'{HEAD}<xacro:property name="m" value="7"/></robot>')
    (tmp_path / "pkg" / "v.yaml").write_text("m: 5\n")
    use = f'<link name="b">{INERTIAL.format("${m}")}</link>{JOINT}'
    for spec in ("part.xacro", "$(find pkg)/urdf/*art.xacro"):
        path = written(tmp_path / "pkg" / "urdf", f'<xacro:include filename="{spec}"/>{use}')
        assert lw.load(path, arguments={}).bodies[0].mass == 7.0
    read = """<xacro:property name="d" value="${xacro.load_yaml('$(find pkg)/v.yaml')}"/>
      <xacro:property name="m" value="${d['m']}"/>"""
    assert lw.load(written(tmp_path / "pkg" / "urdf", read + use), arguments={}).bodies[0].mass == 5.0
    elsewhere = tmp_path / "home"
    elsewhere.mkdir()
    path = written(elsewhere, f'<xacro:include filename="$(find pkg)/urdf/part.xacro"/>{use}')
    with pytest.raises(lw.ModelFileError, match="not found"):
        lw.load(path, arguments={})
    assert lw.load(path, arguments={}, search=[tmp_path]).bodies[0].mass == 7.0


@pytest.mark.parametrize(
    "body",
    [
        '<xacro:include filename="../secret.xacro"/>',
        '<xacro:include filename="{}/secret.xacro"/>',
        '<xacro:property name="x" value="${{xacro.load_yaml(\'../secret.xacro\')}}"/><link name="${{x}}"/>',
        "<link name=\"$(eval open('{}/secret.xacro').read())\"/>",
        '<link name="${{[c.__class__ for c in [1]]}}"/>',
    ],
)
def test_nothing_outside_is_reached(tmp_path: Path, body: str) -> None:
    (tmp_path / "secret.xacro").write_text(f'{HEAD}<link name="secret"/></robot>')
    (tmp_path / "in").mkdir()
    with pytest.raises(lw.ModelFileError, match="could not be expanded") as caught:
        lw.load(written(tmp_path / "in", body.format(tmp_path)), arguments={})
    assert "r.urdf.xacro" in str(caught.value) or "secret.xacro" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('<link name="${[0] * 10 ** 10}"/>', "memory"),
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "recursion|expanded"),
        ('<link name="${1/0}"/>', "zero"),
        ("<link", "not well-formed|no element"),
    ],
)
def test_what_fails_is_said(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(lw.ModelFileError, match=says):
        lw.load(written(tmp_path, body), arguments={})


@pytest.mark.parametrize(
    "expression",
    [
        "().__class__",
        "[c.__class__ for c in [1]]",
        "(lambda: 1).__globals__",
        "[g.gi_frame for g in [(x for x in [1])]]",
    ],
)
def test_names_that_lead_out(expression: str) -> None:
    with pytest.raises(RuntimeError, match="may not use"):
        _check_names(compile(expression, "", "eval"), RuntimeError)
    _check_names(compile("sum([x.real for x in map(abs, [1, 2])])", "", "eval"), RuntimeError)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, ROBOT))
    assert run(["info", path]) == 2
    assert "is a program" in capsys.readouterr().err
    assert run(["info", path, "--arg", "links:=3", "--json"]) == 0
    assert '"nv": 3' in capsys.readouterr().out
    assert run(["info", path, "--arg", "links=3"]) == 2


@pytest.mark.slow
def test_what_never_ends_is_ended(tmp_path: Path) -> None:
    start = time.monotonic()
    with pytest.raises(lw.ModelFileError, match="too long"):
        lw.load(
            written(
                tmp_path, '<link name="${python.sum(1 for a in python.range(10**9) for b in python.range(10**9))}"/>'
            ),
            arguments={},
        )
    assert time.monotonic() - start < 60
