"""xacro files: run where one asks for it, with their arguments, and held to the folders they may use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main as run
from linkwise.files.resources import SearchPath
from linkwise.files.xacro import expand
from tests.files.recording import robot_files

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
    with pytest.raises(lw.errors.ModelFileError, match="is a program"):
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
    with pytest.raises(lw.errors.ModelFileError, match="not found"):
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
    with pytest.raises(lw.errors.ModelFileError, match="could not be expanded") as caught:
        lw.load(written(tmp_path / "in", body.format(tmp_path)), arguments={})
    assert "r.urdf.xacro" in str(caught.value) or "secret.xacro" in str(caught.value)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ('<link name="${[0] * 10 ** 10}"/>', "too large"),
        ('<xacro:macro name="m"><xacro:m/></xacro:macro><xacro:m/>', "too deeply"),
        ('<xacro:macro name="m"><xacro:if value="1"><xacro:m/></xacro:if></xacro:macro><xacro:m/>', "too deeply"),
        ('<xacro:include filename="r.urdf.xacro"/>', "too deeply"),
        ('<link name="${1/0}"/>', "zero"),
        ("<link", "not well-formed|no element"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><link name="&b;"/>', "not well-formed"),
        ('<xacro:m params="x"/>', "no macro of this name"),
        ('<xacro:macro name="m" params="a b"/><xacro:m a="1"/>', "have no value"),
        ('<xacro:macro name="m" params="a"/><xacro:m b="1"/>', "no parameter of this name"),
        ('<xacro:macro name="m" params="*a"/><xacro:m/>', "not given enough blocks"),
        ('<xacro:macro name="m"/><xacro:m><link/></xacro:m>', "does not use"),
        ('<xacro:insert_block name="a"/>', "no block of this name"),
        ('<xacro:if value="maybe"/>', "neither true nor false"),
        (
            '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><link name="${a}"/>',
            "each other",
        ),
        ('<xacro:property name="__a" value="1"/>', "no name for a property"),
        ('<xacro:property name="a" value="1" scope="parent"/>', "no parent scope"),
        ('<link name="$(cwd)"/>', "substitution is refused"),
        ('<link name="$(arg nothing)"/>', "no argument of this name"),
        ('<link name="${xacro.fatal(1, 2)}"/>', "is an error"),
        ('<xacro:element xacro:name="a&gt;&lt;b"/>', "no name"),
        ("<link name=\"${'\\ud800'}\"/>", "no file can have"),
        ('<xacro:include filename="**/*.xacro"/>', "pattern is refused"),
        ('<xacro:include filename="/*/*.xacro"/>', "leads out"),
        ('<xacro:include filename="../none.xacro" optional="true"/>', "leads out"),
    ],
)
def test_what_fails_is_said(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=says) as caught:
        lw.load(written(tmp_path, body), arguments={})
    assert caught.value.line == 1
    assert caught.value.file == str(tmp_path / "r.urdf.xacro")


def test_macros_cannot_multiply_without_end(tmp_path: Path) -> None:
    laughs = '<xacro:macro name="m0"><link name="a"/></xacro:macro>'
    for k in range(1, 30):
        laughs += f'<xacro:macro name="m{k}"><xacro:m{k - 1}/><xacro:m{k - 1}/></xacro:macro>'
    with pytest.raises(lw.errors.ModelFileError, match="too many steps"):
        lw.load(written(tmp_path, laughs + "<xacro:m29/>"), arguments={})


def test_the_environment_is_read_where_the_caller_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKWISE_SECRET", "xyzzy")
    monkeypatch.delenv("LINKWISE_UNSET", raising=False)
    for spec in ("$(env LINKWISE_SECRET)", "$(optenv LINKWISE_SECRET no)", "$(eval env('LINKWISE_SECRET'))"):
        path = written(tmp_path, ROBOT.replace('name="r"', f'name="{spec}"'))
        with pytest.raises(lw.errors.ModelFileError, match="may not read") as caught:
            lw.load(path, arguments={}, environment=["HOME"])
        assert "xyzzy" not in str(caught.value) and "LINKWISE_SECRET" in str(caught.value.do)
        assert lw.load(path, arguments={}, environment=("LINKWISE_SECRET",)).name == "xyzzy"
        assert lw.load(path, arguments={}, environment={"LINKWISE_SECRET": "abc"}).name == "abc"
    path = written(tmp_path, ROBOT.replace('name="r"', 'name="$(optenv LINKWISE_UNSET a b)"'))
    assert lw.load(path, arguments={}, environment=["LINKWISE_UNSET"]).name == "a b"
    with pytest.raises(lw.errors.ModelFileError, match="is not set"):
        path = written(tmp_path, ROBOT.replace('name="r"', 'name="$(env LINKWISE_UNSET)"'))
        lw.load(path, arguments={}, environment=["LINKWISE_UNSET"])
    with pytest.raises(lw.InputError, match="must be names"):
        lw.load(path, arguments={}, environment="HOME")
    assert run(["info", str(path), "--arg", "", "--env", "LINKWISE_SECRET"]) == 2


CONFIG = """# a robot
base: {mass: 1, active: yes, tilt: !degrees 90}
links:
  - {name: upper, length: 0.3}
  - name: lower
    length: 0.25
offset: !millimeters 2 * 50
text: "5"
"""
PART = """<xacro:property name="size" value="3"/>
  <xacro:property name="derived" value="${size * 2}"/>
  <xacro:macro name="thing" params="n"><thing name="${n}_${size}" d="${derived}"/></xacro:macro>"""
EVERYTHING = """
  <xacro:arg name="prefix" default="left"/><xacro:arg name="n" default="${1 + 2}"/>
  <xacro:property name="c" value="${xacro.load_yaml('config.yaml')}"/>
  <xacro:property name="pi2" value="${pi / 2}"/>
  <xacro:property name="late" value="${early + 1}"/><xacro:property name="early" value="41"/>
  <xacro:property name="quoted" value="'q'"/><xacro:property name="under" value="1_0"/>
  <xacro:property name="given" default="7"/><xacro:property name="given" default="8"/>
  <xacro:property name="gone" value="1"/><xacro:property name="gone" remove="true"/>
  <xacro:property name="gone" default="back"/>
  <xacro:property name="now" value="${early}" lazy_eval="false"/><xacro:property name="early" value="1"/>
  <xacro:property name="block"><a x="${1 + 1}"/><b>text ${early} and $${kept}</b></xacro:property>
  <v a="${c['base']['mass'] + 1}" b="${c.base.tilt}" c="${c.links[1].name}" d="${c.offset}" e="${c.text * 2}"/>
  <v a="${late}" b="${now}" c="${quoted + 'x'}" d="${under}" e="${given}" f="${gone}" g="$(arg prefix)_${pi2}"/>
  <v a="${[1, 2.5, 'a']}" b="${dict(a=1)['a']}" c="${radians(180)}" d="${'a' if early else 'b'}" e="${not early}"/>
  <v a="${2 * $(arg n)}" b="$(eval n + 1)" c="${-2 ** 2}" d="${7 // 2} ${7 % 4} ${1e-7} ${10 ** 20}" f="$5 $"/>
  <v a="${len(c.links)}" b="${round(2.567, 2)}" d="${' '.join(map(str, [1, 2]))}" e="${c.base.active}"/>
  <v a="${xacro.tokenize('a, b;c')}" b="${math.floor(2.5)}" c="${python.abs(-1)}" d="${'a b'.split()[1]}" e=""/>
  <xacro:insert_block name="block"/>
  <xacro:if value="${early == 1}"><yes/><xacro:unless value="$(arg n)"><no/></xacro:unless></xacro:if>
  <xacro:if value="false"><no>${undefined}</no></xacro:if>
  <xacro:macro name="m" params="a b:=2 c:='x y' d:=${early*3} *one **many f:=^ g:=^|9 late:=^">
    <out a="${a}" b="${b}" c="${c}" d="${d}" f="${f}" g="${g}" late="${late}"><xacro:insert_block name="one"/></out>
    <xacro:insert_block name="many"/>
    <xacro:property name="told" value="${a + b}" scope="parent"/>
    <xacro:property name="known" value="${a * b}" scope="global"/>
    <xacro:property name="early" value="${a}"/>
    <in early="${early}"/>
  </xacro:macro>
  <xacro:property name="f" value="forwarded"/>
  <xacro:m a="${early + 4}"><origin xyz="0 0 ${pi2}"/><many><x>${f} text</x>tail<y/></many></xacro:m>
  <told v="${told}" w="${known}" early="${early}"/>
  <xacro:call macro="${'m'}" a="1" b="3" g="4"><one/><many/></xacro:call>
  <xacro:macro name="count" params="k"><xacro:if value="${k > 0}"><n k="${k}"/><xacro:count k="${k - 1}"/></xacro:if>
  </xacro:macro><xacro:count k="4"/>
  <xacro:include filename="part.xacro" ns="p"/><xacro:include filename="none.xacro" optional="1"/>
  <xacro:p.thing n="q"/><w v="${p.derived}"/>
  <xacro:include filename="p*rt.xacro"/><xacro:thing n="r"/>
  <xacro:element xacro:name="${'na' + 'med'}" a="${1}"><xacro:attribute name="b" value="${'c'}"/></xacro:element>
  <xacro:property name="pi" value="3"/><u v="${pi}"/>
"""


def told(element: Any) -> Any:
    """Tag, attributes, texts and children, of xacro's document or of ours."""
    if hasattr(element, "tagName"):
        attributes = {name: value for name, value in element.attributes.items() if not name.startswith("xmlns")}
        text = "".join(child.data for child in element.childNodes if child.nodeType == child.TEXT_NODE).strip()
        children = [child for child in element.childNodes if child.nodeType == child.ELEMENT_NODE]
        return element.tagName, attributes, text.split(), [told(child) for child in children]
    return element.tag, dict(element.attributes), element.text.split(), [told(child) for child in element.children]


@pytest.mark.parametrize("arguments", [{}, {"prefix": "right", "n": "2"}])
def test_as_the_program_xacro_expands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, str]
) -> None:
    """Everything in one file, against the package xacro, which evaluates with Python's eval."""
    xacro = pytest.importorskip("xacro")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "part.xacro").write_text(f"{HEAD}{PART}</robot>")
    path = tmp_path / "all.xacro"
    path.write_text(f"{HEAD}{EVERYTHING}</robot>")
    theirs = told(xacro.process_file(str(path), mappings=dict(arguments), verbosity=0).documentElement)
    ours, _ = expand(path.read_bytes(), str(path), arguments, SearchPath.of(path))
    assert told(ours) == theirs


def test_robots_that_come_with_packages(tmp_path: Path) -> None:
    """Real files, and each as the package xacro expands it."""
    xacro = pytest.importorskip("xacro")
    files = robot_files(".xacro")
    read = 0
    for file in files:
        text = file.read_bytes()
        if b"xacro:include" in text:  # of a file that the package does not have
            continue
        ours, _ = expand(text, str(file), {}, SearchPath.of(file))
        assert told(ours) == told(xacro.process_file(str(file), verbosity=0).documentElement)
        read += 1
    assert read


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    """Also of what a macro or another file brought in, and of an expression that is refused there."""
    macro = (
        '<xacro:macro name="m" params="x"><link name="a"><inertial><mass value="${x}"/></inertial></link></xacro:macro>'
    )
    (tmp_path / "part.xacro").write_text(f"{HEAD}\n{macro}</robot>")
    path = tmp_path / "r.xacro"
    path.write_text(f'{HEAD}\n<xacro:include filename="part.xacro"/>\n\n<xacro:m x="many"/></robot>')
    with pytest.raises(lw.errors.ModelFileError, match="not a finite number") as caught:
        lw.load(path, arguments={})
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    path.write_text(f'{HEAD}\n<xacro:include filename="part.xacro"/>\n\n<xacro:m x="${{x.y}}"/></robot>')
    with pytest.raises(lw.errors.ModelFileError, match="expanded") as caught:
        lw.load(path, arguments={})
    assert caught.value.line == 4
    (tmp_path / "part.xacro").write_text(f"{HEAD}\n\n<link name='${{lambda: 1}}'/></robot>")
    with pytest.raises(lw.errors.ModelFileError, match="lambda") as caught:
        lw.load(path, arguments={})
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "part.xacro"), 3)


def test_the_author_may_warn(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD}<link name=\"a${{xacro.warning('old', 1)}}\"/></robot>")
    with pytest.warns(lw.errors.ModelWarning, match="old 1"):
        lw.load(path, arguments={})


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(written(tmp_path, ROBOT))
    assert run(["info", path]) == 2
    assert "is a program" in capsys.readouterr().err
    assert run(["info", path, "--arg", "links:=3", "--json"]) == 0
    assert '"nv": 3' in capsys.readouterr().out
    assert run(["info", path, "--arg", "links=3"]) == 2
