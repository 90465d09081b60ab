"""The format's rules of frames, one by one: the pose that each asks for, worked out by hand, and the link that carries.

The rules are those of libsdformat (``FrameSemantics.cc``, ``Model.cc``, ``parser.cc``). A quarter turn about z, ``Q``,
takes x to y and y to -x; poses are in the world with every joint at zero.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

H = math.pi / 2
Q = f"0 0 {H!r}"
INERTIAL = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


def link(name: str, pose: str = "0 0 0 0 0 0", to: str = "") -> str:
    return f'<link name="{name}">{at(pose, to)}{INERTIAL}</link>'


def at(pose: str, to: str = "") -> str:
    return f'<pose relative_to="{to}">{pose}</pose>' if to else f"<pose>{pose}</pose>"


def frame(name: str, attached: str = "", pose: str = "", to: str = "") -> str:
    on = f' attached_to="{attached}"' if attached else ""
    return f'<frame name="{name}"{on}>{at(pose, to) if pose or to else ""}</frame>'


def joint(name: str, parent: str, child: str, pose: str = "", axis: str = "<xyz>0 0 1</xyz>") -> str:
    return (
        f'<joint name="{name}" type="revolute">{pose}<parent>{parent}</parent><child>{child}</child>'
        f"<axis>{axis}</axis></joint>"
    )


def model(inside: str, name: str = "m", attributes: str = "") -> str:
    return f'<model name="{name}" {attributes}>{inside}</model>'


def world(inside: str) -> str:
    return f'<world name="w">{inside}</world>'


def include(inside: str, attributes: str = "") -> str:
    return f"<include {attributes}><uri>part.sdf</uri>{inside}</include>"


@dataclass(frozen=True)
class Rule:
    """A rule: what it says, a file, the poses (x, y, z, turn about z) of names in it, and the links that carry them."""

    says: str
    inside: str
    poses: dict[str, tuple[float, float, float, float]]
    carried: dict[str, str] = field(default_factory=dict)
    part: str = ""
    """The model of the file ``part.sdf``."""


A = link("a", f"1 0 0 {Q}")
"""At (1, 0, 0) after a quarter turn: its x axis is the model's y."""
RULES = [
    Rule("a link's pose is in its model", model(at(f"0 0 9 {Q}") + A), {"a": (0, 1, 9, 2 * H)}),
    Rule("a link may be placed by any name", model(A + link("b", "1 0 0 0 0 0", "a")), {"b": (1, 1, 0, H)}),
    Rule("a link may be placed by a joint", model(A + joint("j", "world", "a", at("0 2 0 0 0 0"))
         + link("b", "0 0 3 0 0 0", "j") + joint("k", "a", "b")), {"b": (-1, 0, 3, H)}),
    Rule("a joint's pose is in its child", model(A + joint("j", "world", "a", at("1 0 0 0 0 0"))
         + frame("f", "j")), {"f": (1, 1, 0, H)}, {"f": "a"}),
    Rule("a joint's pose is in its child, be it a frame", model(A + frame("g", "a", "0 0 4 0 0 0")
         + joint("j", "world", "g", at("1 0 0 0 0 0")) + frame("f", "j")), {"f": (1, 1, 4, H)}, {"f": "a"}),
    Rule("a joint may be placed by any name", model(A + link("b") + joint("i", "world", "b")
         + joint("j", "b", "a", at("1 0 0 0 0 0", "b")) + frame("f", "j")), {"f": (1, 0, 0, 0)}, {"f": "a"}),
    Rule("a frame's pose is in what it is attached to", model(A + frame("f", "a", "1 2 3 0 0 0")),
         {"f": (-1, 1, 3, H)}, {"f": "a"}),
    Rule("a frame without a pose is where it is attached", model(A + frame("f", "a")), {"f": (1, 0, 0, H)}),
    Rule("a frame attached to nothing is in the model", model(at("0 0 9 0 0 0") + A + frame("f", "", "1 2 3 0 0 0")),
         {"f": (1, 2, 12, 0)}, {"f": "a"}),
    Rule("relative_to places a frame, attached_to carries it", model(A + link("b", "0 0 7 0 0 0")
         + frame("f", "b", "1 0 0 0 0 0", "a")), {"f": (1, 1, 0, H)}, {"f": "b"}),
    Rule("relative_to __model__ is the model", model(A + frame("f", "a", "1 0 0 0 0 0", "__model__")),
         {"f": (1, 0, 0, 0)}, {"f": "a"}),
    Rule("attached_to __model__ is the canonical link", model(link("b") + A + frame("f", "__model__", "1 0 0 0 0 0"),
         attributes='canonical_link="a"'), {"f": (1, 0, 0, 0)}, {"f": "a"}),
    Rule("frames on frames", model(A + frame("g", "f", "0 0 1 0 0 0") + frame("f", "a", f"1 0 0 {Q}")),
         {"g": (1, 1, 1, 2 * H)}, {"g": "a"}),
    Rule("the first link is the canonical one", model(frame("f") + link("b") + A), {"f": (0, 0, 0, 0)}, {"f": "b"}),
    Rule("without links it is that of the first model", model(model(A, "n") + model(link("b"), "o") + frame("f")),
         {"f": (0, 0, 0, 0)}, {"f": "n::a"}),
    Rule("a nested link can be canonical", model(link("b") + model(A, "n") + frame("f"),
         attributes='canonical_link="n::a"'), {"f": (0, 0, 0, 0)}, {"f": "n::a"}),
    Rule("a nested model's pose is in the model around", model(at(f"0 0 9 {Q}") + link("b")
         + model(at("1 0 0 0 0 0") + A, "n")), {"n::a": (0, 2, 9, 2 * H)}),
    Rule("a nested model may be placed by any name", model(A + model(at("1 0 0 0 0 0", "a") + link("b"), "n")),
         {"n::b": (1, 1, 0, H)}),
    Rule("names inside a nested model", model(link("b") + model(at("0 0 1 0 0 0") + A, "n")
         + frame("f", "n::a", "1 0 0 0 0 0") + frame("g", "n", "0 0 1 0 0 0") + frame("h", "n::__model__")),
         {"f": (1, 1, 1, H), "g": (0, 0, 2, 0), "h": (0, 0, 1, 0)}, {"f": "n::a", "g": "n::a", "h": "n::a"}),
    Rule("placement_frame: the model's pose is that of a frame in it", model(at(f"10 20 30 {Q}")
         + link("a", "1 0 0 0 0 0") + frame("f", "a", "0 0 2 0 0 0"), attributes='placement_frame="f"'),
         {"f": (10, 20, 30, H), "a": (10, 20, 28, H)}),
    Rule("placement_frame: of a nested model, a link in a frame of the model around", model(A
         + model(at("1 0 0 0 0 0", "a") + link("b", "0 0 5 0 0 0") + link("c", "0 0 6 0 0 0"), "n",
                 'placement_frame="b"')), {"n::b": (1, 1, 0, H), "n::c": (1, 1, 1, H)}),
    Rule("placement_frame: a joint", model(at("0 0 9 0 0 0") + A + joint("j", "world", "a", at("0 0 2 0 0 0")),
         attributes='placement_frame="j"'), {"a": (0, 0, 7, 0)}),
    Rule("a static model's frame is on the world", model("<static>1</static>" + A + frame("f", "", "1 0 0 0 0 0")),
         {"f": (1, 0, 0, 0)}, {"f": "world"}),
    Rule("frames of a world", world(model(at("0 0 1 0 0 0") + A) + model(link("b"), "o") + frame("f", "", "1 2 3 0 0 0")
         + frame("g", "m::a", "1 0 0 0 0 0") + frame("h", "m", "0 0 1 0 0 0") + frame("i", "world", "0 0 5 0 0 0")),
         {"f": (1, 2, 3, 0), "g": (1, 1, 1, H), "h": (0, 0, 2, 0), "i": (0, 0, 5, 0)},
         {"f": "world", "g": "m::a", "h": "m::a", "i": "world"}),
    Rule("models of a world placed by its frames", world(frame("f", "", f"1 2 3 {Q}")
         + model(at("1 0 0 0 0 0", "f") + A) + model(at("0 0 1 0 0 0", "m::a") + link("b"), "o")),
         {"m::a": (1, 4, 3, 2 * H), "o::b": (1, 4, 4, 2 * H)}),
    Rule("joints of a world", world(model(A) + model(link("b", "0 0 2 0 0 0"), "o")
         + joint("j", "m::a", "o::b", at("0 0 3 0 0 0")) + frame("f", "j")), {"f": (0, 0, 5, 0)}, {"f": "o::b"}),
    Rule("an include without a pose has that of its model", model(link("b") + include("")), {"p::a": (1, 0, 5, H)},
         part=model(at("0 0 5 0 0 0") + A, "p")),
    Rule("an include's pose and name count", model(link("b", "0 3 0 0 0 0")
         + include("<name>n</name>" + at("0 0 1 0 0 0", "b"))), {"n::a": (1, 3, 1, H)},
         part=model(at("0 0 5 0 0 0") + A, "p")),
    Rule("an include's placement_frame", model(link("b") + include("<placement_frame>a</placement_frame>"
         + at("0 0 1 0 0 0"))), {"p::a": (0, 0, 1, 0)}, part=model(A, "p")),
    Rule("an included model keeps its placement_frame", model(link("b") + include(at("0 0 1 0 0 0"))),
         {"p::a": (0, 0, 1, 0)}, part=model(at("0 0 5 0 0 0") + A, "p", 'placement_frame="a"')),
    Rule("a merged model's names are those of the model around it; its poses are where it was placed",
         model(include(at(f"0 0 1 {Q}"), 'merge="true"') + link("b") + frame("g", "a") + frame("h")),
         {"a": (0, 1, 1, 2 * H), "f": (0, 2, 1, H), "g": (0, 1, 1, 2 * H), "h": (0, 0, 0, 0)},
         {"f": "c", "h": "a"},
         part=model(A + link("c") + frame("f", "__model__", "2 0 0 0 0 0"), "p", 'canonical_link="c"')),
]  # fmt: skip


def loaded(text: str, part: str, folder: Path) -> lw.Model:
    (folder / "part.sdf").write_text(f'<sdf version="1.9">{part}</sdf>')
    (folder / "whole.sdf").write_text(f'<sdf version="1.9">{text}</sdf>')
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.errors.ModelWarning)
        held = "<parent>world" in text or "<static>" in text
        return lw.load(folder / "whole.sdf", floating=not held)


@pytest.mark.parametrize("rule", RULES, ids=[rule.says.replace(" ", "-") for rule in RULES])
def test_a_rule(rule: Rule, tmp_path: Path) -> None:
    found = loaded(rule.inside, rule.part, tmp_path)
    rng = np.random.default_rng(0)
    for name, (x, y, z, turn) in rule.poses.items():
        expected = lw.transform((x, y, z), (0, 0, turn))
        np.testing.assert_allclose(found.pose(found.neutral(), name), expected, atol=1e-14, err_msg=name)
    q = found.random_configuration(rng)
    for name, carrier in rule.carried.items():
        still = np.linalg.inv(found.pose(found.neutral(), carrier)) @ found.pose(found.neutral(), name)
        moved = np.linalg.inv(found.pose(q, carrier)) @ found.pose(q, name)
        np.testing.assert_allclose(moved, still, atol=1e-13, err_msg=f"{name} on {carrier}")
        if carrier != "world":
            assert not np.allclose(found.pose(q, name), found.pose(found.neutral(), name)), name


@pytest.mark.parametrize(
    ("expressed_in", "axis"),
    [("", (1, 0, 0)), ("j", (1, 0, 0)), ("a", (0, 1, 0)), ("__model__", (0, -1, 0)), ("f", (0, 0, 1))],
)
def test_an_axis_is_in_the_joints_frame_or_in_the_named_one(expressed_in: str, axis: tuple[float, ...]) -> None:
    """The joint is turned by -90° about z from its child, that by +180° from the model; f by -90° about y from j."""
    xyz = f'<xyz expressed_in="{expressed_in}">1 0 0</xyz>'
    text = model(
        link("a", f"1 0 0 0 0 {2 * H}") + joint("j", "world", "a", at(f"0 0 0 0 0 {-H}"), xyz)
        + frame("f", "j", f"0 0 0 0 {-H} 0")
    )  # fmt: skip
    found = lw.loads(f'<sdf version="1.9">{text}</sdf>').joints["j"].type.axis
    np.testing.assert_allclose(found, axis, atol=1e-15)


@pytest.mark.parametrize(
    ("inside", "part", "words"),
    [
        (model(A + frame("f", "__root__")), "", "does not exist here"),
        (model(A + frame("f", "world")), "", "does not exist here"),
        (world(model(A) + frame("f", "__model__")), "", "does not exist here"),
        (model(A + frame("__mine__")), "", "cannot be named"),
        (model(A + frame("f", "f")), "", "circle"),
        (model(A + frame("f", "g") + frame("g", "f")), "", "circle"),
        (model(at("0 0 0 0 0 0", "a") + A), "", "does not exist here"),
        (model(link("b") + include("<placement_frame>a</placement_frame>")), model(A, "p"), "pose"),
        (model(A + joint("j", "a", "world")), "", "world"),
        (model(A + frame("f", "a") + joint("j", "a", "f")), "", "with itself"),
        (model(frame("f")), "", "no links"),
    ],
)
def test_what_the_rules_forbid(inside: str, part: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(lw.errors.ModelFileError, match=words):
        loaded(inside, part, tmp_path)
