"""Each thing that can be wrong with a file, by the message that it gets."""

from __future__ import annotations

import math
from typing import Any

import pytest

from linkwise.errors import InputError, ModelError, ModelFileError, UnknownNameError
from linkwise.files.bodies import bodies_of
from linkwise.files.build import build
from linkwise.files.topology import arrange
from linkwise.files.urdf import read_urdf
from linkwise.files.xml import parse
from tests.files.recording import Recorder, record
from tests.files.test_urdf_reads import followers, inertial, joint, link, robot, two


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(ModelFileError) as caught:
        record(text, **options)
    assert caught.value.file == "robot.urdf"
    assert caught.value.line is not None
    return str(caught.value)


ab = link("a") + link("b")
MASS = '<mass value="1"/>'
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        # names
        (robot(link("a"), link("a")), 3, "two links are named 'a'"),
        (robot(link("a"), link("a")), 3, "the first is on line 2"),
        (robot(ab, link("c"), joint("j", "a", "b"), joint("j", "a", "c")), 6, "two joints are named 'j'"),
        (robot("<link/>"), 2, "a link: <link> has no attribute 'name'"),
        (robot('<link name=" "/>'), 2, "the attribute 'name' of <link> is empty"),
        (robot(ab, '<joint type="fixed"/>'), 4, "a joint: <joint> has no attribute 'name'"),
        # connections
        (robot(link("hand"), link("arm"), joint("j", "arn", "hand")), 4, "the parent of joint 'j' is a link that"),
        (robot(link("hand"), link("arm"), joint("j", "arn", "hand")), 4, "did you mean 'arm'?"),
        (robot(link("hand"), link("arm"), joint("j", "arm", "Hand")), 4, "the child of joint 'j' is a link that"),
        (robot(link("hand"), link("arm"), joint("j", "arm", "Hand")), 4, "did you mean 'hand'?"),
        (robot(ab, link("c"), joint("j", "a", "c"), joint("k", "b", "c")), 6, "link 'c' has two parents"),
        (robot(ab, link("c"), joint("j", "a", "c"), joint("k", "b", "c")), 6, "'a' by joint 'j' (line 5)"),
        (robot(ab, joint("j", "a", "b"), joint("k", "b", "a")), 4, "the links form a circle"),
        (robot(ab, joint("j", "a", "b"), joint("k", "b", "a")), 4, "'b' -> 'a' -> 'b' (parent -> child)"),
        (robot(ab, joint("j", "a", "a")), 4, "the links form a circle"),
        (robot(ab, link("c"), joint("j", "b", "c"), joint("k", "c", "b")), 5, "the links form a circle"),
        (robot(ab), 3, "2 links have no parent"),
        (robot(ab), 3, "'a' (line 2), 'b' (line 3)"),
        (robot(), 1, "the model has no links"),
        (robot(link("a"), link("world"), joint("j", "a", "world")), 4, "only the root link may be named 'world'"),
        (robot(ab, '<joint name="j" type="fixed"><child link="b"/></joint>'), 4, "joint 'j' has no <parent>"),
        (robot(ab, '<joint name="j" type="fixed"><parent link="b"/></joint>'), 4, "joint 'j' has no <child>"),
        (robot(ab, '<joint name="j" type="fixed"><parent/></joint>'), 4, "<parent> has no attribute 'link'"),
        # joints
        (two(kind="revolut"), 4, "joint 'j' has an unknown type"),
        (two(kind="revolut"), 4, "did you mean 'revolute'?"),
        (two(kind="screw"), 4, "fixed, floating, revolute, continuous, planar, prismatic"),
        (robot(ab, '<joint name="j"/>'), 4, "joint 'j': <joint> has no attribute 'type'"),
        (two('<axis xyz="0 0 0"/>'), 4, "joint 'j' has a zero axis"),
        (two("<axis/>"), 4, "<axis> has no attribute 'xyz'"),
        (two('<axis xyz="1 0"/>'), 4, "the attribute 'xyz' of <axis> must be 3 numbers"),
        (two('<axis xyz="1 0 0 0"/>'), 4, "the attribute 'xyz' of <axis> must be 3 numbers"),
        (two('<origin xyz="1 0 zero"/>'), 4, "the attribute 'xyz' of <origin> is not a finite number"),
        (two('<origin/><origin xyz="0 0 0"/>'), 4, "<joint> has 2 <origin> elements"),
        (two('<limit lower="1" upper="0"/>'), 4, "joint 'j': the lower limit is above the upper limit"),
        (two('<limit lower="nan" upper="0"/>'), 4, "is not a number"),
        (two('<dynamics damping="inf"/>'), 4, "the attribute 'damping' of <dynamics> is not a finite number"),
        # masses
        (robot(link("a", '<inertial><mass value="-1"/></inertial>')), 2, "link 'a' has a negative mass"),
        (robot(link("a", '<inertial><mass value="nan"/></inertial>')), 2, "is not a finite number"),
        (robot(link("a", '<inertial><mass value="1e999"/></inertial>')), 2, "too large for any mechanism"),
        (robot(link("a", "<inertial><mass/></inertial>")), 2, "<mass> has no attribute 'value'"),
        (robot(link("a", f"<inertial>{INERTIA}</inertial>")), 2, "link 'a' has no <mass>"),
        (robot(link("a", f"<inertial>{MASS}</inertial>")), 2, "link 'a' has no <inertia>"),
        (robot(link("a", f'<inertial>{MASS}<inertia ixx="1"/></inertial>')), 2, "no attribute 'iyy'"),
        (robot(link("a", f"<inertial>{MASS}{INERTIA}</inertial>" * 2)), 2, "<link> has 2 <inertial> elements"),
        (robot(ab, link("c", inertial(1, 1, -0.1)), joint("j", "a", "b"), joint("k", "b", "c")), 4, "no body has that"),
        # shapes
        (robot(link("a", "<visual/>")), 2, "<visual> of link 'a' has no <geometry>"),
        (robot(link("a", "<visual><geometry><mesh/></geometry></visual>")), 2, "no attribute 'filename'"),
        (robot(link("a", "<visual><geometry><box/></geometry></visual>")), 2, "no attribute 'size'"),
        # mimics
        (followers("", "j3"), 6, "joint 'j1' mimics a joint that does not exist"),
        (followers("", "J0"), 6, "did you mean 'j0'"),
        (followers("", "j3"), 6, "mimic=False"),
        (followers("j0"), 4, "joint 'j0' mimics itself"),
        (followers("j1", "j2", "j0"), 6, "mimic each other in a circle"),
        (followers("j1", "j2", "j0"), 6, "'j0' -> 'j1' -> 'j2' -> 'j0'"),
        (followers("", "j2", "j1"), 7, "mimic each other in a circle"),
        (followers("", "j0").replace('"j0" type="revolute"', '"j0" type="planar"'), 6, "'planar' cannot"),
        (followers("", "j0").replace('"j0" type="revolute"', '"j0" type="fixed"'), 6, "'fixed' cannot"),
        (followers("", "j0").replace('"j1" type="revolute"', '"j1" type="floating"'), 6, "'free' cannot"),
        # other things
        ("<sdf/>", 1, "its root element is not <robot>"),
        (robot('<xacro:macro name="x"/>'), 2, "this is a xacro file"),
        (robot('<xacro:macro name="x"/>'), 2, "expand it first"),
        (robot(link("${prefix}a")), 2, "this is a xacro file"),
        (robot(link("$(arg prefix)a")), 2, "this is a xacro file"),
    ],
)
def test_messages(text: str, line: int, words: str) -> None:
    message = refusal(text)
    assert words in message
    assert message.startswith(f"robot.urdf:{line}: ")


@pytest.mark.parametrize("number", ["1_0", "١", "0x10", "1,5", "one", "--1", "1e", ".", "1.2.3", "9" * 500, "1f"])
def test_what_is_not_a_number(number: str) -> None:
    message = refusal(two(f'<dynamics damping="{number}"/>'))
    assert "is not a finite number" in message
    assert len(message) < 500


@pytest.mark.parametrize("number", ["1", "+1", "-1.", ".5", "1e3", "1.5E-3", " 2 ", "007"])
def test_what_is_a_number(number: str) -> None:
    assert record(two(f'<dynamics damping="{number}"/>')).bodies["b"]["damping"] == float(number)


def test_a_comma_for_the_decimals_gets_a_hint() -> None:
    assert "write a point" in refusal(two('<dynamics damping="0,5"/>'))


def test_unphysical_inertias_can_be_kept() -> None:
    text = robot(link("a"), link("b", inertial(1, 1, -0.5)), joint("j", "a", "b"))
    assert "allow_unphysical=True" in refusal(text)
    assert len(record(text, allow_unphysical=True).warnings) == 1
    assert len(record(text, locked=["j"]).warnings) == 1  # it does not move then


def test_a_chain_of_mimics_that_overflows() -> None:
    text = followers("", *(f"j{k}" for k in range(6))).replace('<mimic joint="j', '<mimic multiplier="1e60" joint="j')
    assert "too large for any mechanism" in refusal(text)
    text = text.replace("1e60", "1e30")
    assert len(record(text).bodies) == 8
    assert "are too large" in refusal(text, locked={"j0": 1e200})


# -- the arguments


def test_locked_names_must_exist() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'j'"):
        record(two(), locked=["J"])


@pytest.mark.parametrize("value", [math.nan, math.inf, "one", [1, 2]])
def test_locked_values_must_be_finite_numbers(value: object) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        record(two(), locked={"j": value})


def test_locked_is_not_a_single_name() -> None:
    with pytest.raises(InputError, match=r"do: +locked=\['j'\]"):
        record(two(), locked="j")


@pytest.mark.parametrize("kind", ["planar", "floating", "fixed"])
def test_only_single_joints_are_locked_at_a_value(kind: str) -> None:
    with pytest.raises(InputError, match="cannot be locked at a value"):
        record(two(kind=kind), locked={"j": 1.0})


@pytest.mark.parametrize("parts", [(), (joint("j", "world", "b", kind="revolute") + link("b"),)])
def test_floating_needs_a_link_to_free(parts: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="needs one link to free"):
        record(robot(link("world", ""), *parts), floating=True)


# -- what the builder refuses


def built(text: str, refuse: ModelError) -> str:
    description, _ = read_urdf(parse(text.encode(), "robot.urdf"), "robot.urdf", "robot")
    with pytest.raises(ModelFileError) as caught:
        build(Recorder(refuse=refuse), bodies_of(arrange(description)), description)
    assert caught.value.__cause__ is refuse
    return str(caught.value)


def test_the_builders_refusal_gets_file_and_line() -> None:
    message = built(two(), ModelError("something about joint 'j'", got="this", do="give it up"))
    assert message.startswith("robot.urdf:4: something about joint 'j'")
    assert "got:     this" in message
    assert "give it up" in message


# -- joints that move nothing


def massless(text: str, **options: Any) -> str:
    """The one warning about joints that move nothing."""
    (note,) = [str(each) for each in record(text, **options).warnings if "can move" in str(each)]
    return note


def test_joints_that_move_nothing_are_named_all_at_once() -> None:
    text = robot(
        link("a"), *(link(name, "") for name in "bcd"), joint("j", "a", "b"), joint("k", "b", "c", kind="fixed"),
        joint("m", "a", "d"),
    )  # fmt: skip
    message = massless(text)
    assert message.startswith("robot.urdf:6: joint 'j' can move, but nothing that it moves has mass")
    assert "locked=['j', 'm']" in message
    assert record(text, locked=["j", "m"]).bodies
    assert "'root_joint'" in massless(robot(link("a", "")), floating=True)


def test_a_joint_moves_what_its_followers_move() -> None:
    text = robot(link("a"), link("b", ""), link("c"), joint("j", "a", "b"), joint("k", "a", "c", '<mimic joint="j"/>'))
    assert record(text).bodies
    assert "locked=['j']" in massless(text, mimic=False)
    nothing = text.replace(link("c"), link("c", ""))
    assert "locked=['j']" in massless(nothing)
