"""What is wrong with an SDF file, and on which line."""

from __future__ import annotations

import re

import pytest

import linkwise as lw
from tests.files.test_sdf_reads import INERTIAL, joint, link, sdf


def lined(text: str) -> str:
    """One element a line, so that lines mean something; an empty link is one line."""
    return re.sub(r'(<link name="[^"]*">)\n</link>', r"\1</link>", text.replace("\n", "").replace("><", ">\n<"))


HINGE = joint("j", "revolute", "a", "b")
TWO = (link("a", inside=""), link("b", inside=""), HINGE)
BAD = [
    ('<sdf version="1.9"/>', 1, "one model or one world"),
    ("<sdf/>", 1, "no attribute 'version'"),
    ('<sdf version="1.3"><model name="m"/></sdf>', 1, "version of SDF"),
    ('<sdf version="2.0"><model name="m"/></sdf>', 1, "version of SDF"),
    ('<sdf version="one"><model name="m"/></sdf>', 1, "version of SDF"),
    ('<sdf version="1.9"><model name="m"/></sdf>', 1, "has no links"),
    ('<sdf version="1.9"><model/></sdf>', 2, "no attribute 'name'"),
    ('<sdf version="1.9"><model name="m"/><model name="n"/></sdf>', 3, "one model or one world"),
    (sdf(link("a", inside=""), link("a", inside="")), 4, "named like another link"),
    (sdf(*TWO, HINGE), 12, "named like another joint"),
    (sdf(link("a", inside=""), '<frame name="a"/>'), 4, "named like a link"),
    (sdf(link("world", inside="")), 3, "cannot be named 'world'"),
    (sdf(*TWO).replace("<child>b", "<child>c"), 7, "the child of joint 'j' is a name that does not exist here"),
    (sdf(*TWO).replace("<parent>a", "<parent>c"), 6, "the parent of joint 'j' is a name that does not exist here"),
    (sdf(*TWO).replace("<child>b", "<child>a"), 5, "connects a link with itself"),
    (sdf(*TWO).replace("<child>b", "<child>world"), 7, "is the world, which does not move"),
    (sdf(*TWO).replace("<child>b</child>", ""), 5, "has no <child>"),
    (sdf(*TWO).replace("<parent>a</parent>", ""), 5, "has no <parent>"),
    (sdf(*TWO).replace("revolute", "revolution"), 5, "unknown type"),
    (sdf(*TWO).replace("<axis><xyz>0 0 1</xyz></axis>", ""), 5, "has no <axis>"),
    (sdf(*TWO).replace("0 0 1", "0 0 0"), 8, "zero axis"),
    (sdf(*TWO).replace("0 0 1", "0 0"), 9, "must be 3 numbers"),
    (sdf(*TWO).replace("0 0 1", "0 0 x"), 9, "not a finite number"),
    (sdf(*TWO).replace("0 0 1", "0 0 nan"), 9, "not a finite number"),
    (sdf(*TWO).replace("<xyz>", '<xyz expressed_in="nowhere">'), 8, "the frame of <axis> of joint 'j' is a name"),
    (sdf(*TWO).replace('"revolute"', '"universal"'), 5, "has no <axis2>"),
    (sdf(*TWO).replace('"revolute"', '"screw"'), 5, "no pitch"),
    (sdf(*TWO).replace('"revolute">', '"screw"><thread_pitch>0</thread_pitch>'), 6, "thread_pitch of zero"),
    (sdf(*TWO).replace("</axis>", "<limit><lower>2</lower><upper>1</upper></limit></axis>"), 10, "lower limit is"),
    (sdf(*TWO).replace("</axis>", '<mimic joint="x"/></axis>'), 10, "the joint that joint 'j' follows"),
    (sdf(*TWO).replace("</axis>", '<mimic joint="j"/></axis>'), 5, "mimics itself"),
    (sdf(*TWO).replace("</axis>", "<dynamics><damping>-1</damping></dynamics></axis>"), 5, "damping of joint 'j'"),
    (sdf(*TWO, version="1.6").replace("</axis>", "<use_parent_model_frame>2</use_parent_model_frame></axis>"), 10,
     "neither yes nor no"),
    (sdf(link("a", "1 2 3", inside="")), 4, "must be 6 numbers"),
    (sdf('<link name="a"><collision name="c"><geometry><sphere><radius>1</radius></sphere></geometry><surface>'
         '<friction><ode><mu>-1</mu></ode></friction></surface></collision></link>'), 4, "the friction of a material"),
    (sdf(link("a", "1 2 3 0 0 1e31", inside="")), 4, "too large"),
    (sdf('<link name="a"><pose relative_to="b"/></link>'), 3, "the pose of link 'a' is relative to is a name"),
    (sdf('<link name="a"><pose relative_to="world"/></link>'), 3, "does not exist here"),
    (sdf('<link name="a"><pose relative_to="a">0 0 0 0 0 0</pose></link>'), 3, "in a circle"),
    (sdf('<link name="a"><pose relative_to="b"/></link>', '<link name="b"><pose relative_to="a"/></link>'), None,
     "in a circle"),
    (sdf(link("a", inside=""), '<frame name="f" attached_to="g"/>', '<frame name="g" attached_to="f"/>'), None,
     "attached to each other in a circle"),
    (sdf('<link name="a"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></link>'), 4, "zero quaternion"),
    (sdf('<link name="a"><pose rotation_format="quat_wxyz">0 0 0 0 0 0 0</pose></link>'), 4, "rotation_format"),
    (sdf('<link name="a"><pose rotation_format="quat_xyzw" degrees="1">0 0 0 0 0 0 1</pose></link>'), 4, "in degrees"),
    (sdf(link("a", inside=""), attributes=' placement_frame="x"'), 2, "placement_frame of model 'm'"),
    (sdf(link("a", inside="<inertial><mass>-1</mass></inertial>")), 4, "negative mass"),
    (sdf(link("a", inside='<inertial auto="true"/>')), 4, "not supported"),
    (sdf(link("a", inside='<inertial><pose relative_to="m">0 0 0 0 0 0</pose></inertial>')), 4, "in the link's frame"),
    (sdf(link("a", inside="<inertial><mass>1</mass><mass>2</mass></inertial>")), 6, "2 <mass> elements"),
    (sdf(link("a", inside="<inertial><mass/></inertial>")), 5, "<mass> is empty"),
    (sdf(link("a", inside="<visual name='v'><geometry><box/></geometry></visual>")), 6, "no <size>"),
    (sdf('<model name="n"/>', '<frame name="f" attached_to="n"/>', link("a", inside="")), None, "has no links"),
    (sdf("<include/>", link("a", inside="")), 3, "no <uri>"),
    (sdf("<include><uri>model://x</uri></include>", link("a", inside="")), 3, "was not found"),
    ('<sdf version="1.9">' + '<model name="n">' * 60 + link("a", inside="") + "</model>" * 60 + "</sdf>", None,
     "nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), BAD, ids=[words.replace(" ", "_") for _, _, words in BAD])
@pytest.mark.filterwarnings("ignore::linkwise.errors.ModelWarning")
def test_it_says_what_and_where(text: str, line: int | None, words: str) -> None:
    with pytest.raises(lw.errors.ModelFileError) as caught:
        lw.loads(lined(text))
    message = str(caught.value)
    assert words in message
    assert message.startswith("<string>:" if line is None else f"<string>:{line}: "), message


def test_long_chains_of_frames_are_no_trouble() -> None:
    """Each link relative to the next: deeper than Python recurses, and no slower than it is long."""
    n = 3000
    frames = "".join(
        f'<frame name="f{k}" attached_to="f{k + 1}"><pose relative_to="f{k + 1}">0.5 0 0 0 0 0</pose></frame>'
        for k in range(n)
    )
    text = sdf(
        frames,
        link("a", inside=INERTIAL),
        f'<frame name="f{n}" attached_to="a"/>',
        joint("j", "revolute", "world", "a"),
    )
    model = lw.loads(text)
    assert model.frame("f0").placement[0][3] == n / 2


def test_a_chain_of_a_thousand_links() -> None:
    links = [f'<link name="l{k}"><pose>{k} 0 0 0 0 0</pose>{INERTIAL}</link>' for k in range(1000)]
    joints = [joint(f"j{k}", "revolute", f"l{k - 1}" if k else "world", f"l{k}") for k in range(1000)]
    assert lw.loads(sdf(*links, *joints[::-1])).nv == 1000


def test_a_spring_on_a_closing_joint_is_kept_and_following_is_not_lost_in_silence() -> None:
    spring = "<axis><xyz>0 0 1</xyz><dynamics><spring_stiffness>5</spring_stiffness></dynamics></axis>"
    text = sdf(link("a"), link("b"), joint("i", "revolute", "a", "b"), joint("j", "revolute", "b", "a", spring))
    assert lw.loads(text).closures["j"].stiffness == (5.0,)
    follows = '<axis><xyz>0 0 1</xyz><mimic joint="i"><multiplier>2</multiplier></mimic></axis>'
    text = sdf(link("a"), link("b"), joint("i", "revolute", "a", "b"), joint("j", "revolute", "b", "a", follows))
    with pytest.warns(lw.errors.ModelWarning, match=r"joint 'j' closes a loop.*\n.*mimic"):
        lw.loads(text)


def test_axes_that_are_one() -> None:
    text = sdf(
        link("a"), joint("j", "revolute2", "world", "a", "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>")
    )
    with pytest.raises(lw.errors.ModelFileError, match=r"<string>:2: the two axes of Universal are parallel"):
        lw.loads(text)
