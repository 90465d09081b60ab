"""Whatever the bytes, the reader returns or raises one of our errors."""

from __future__ import annotations

import contextlib
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaign.trials.files import check, mutated, seeds
from linkwise.errors import LinkwiseError, ModelWarning
from linkwise.files import loads
from linkwise.files.file_description import Description, JointWritten, LinkWritten
from linkwise.files.loops import with_loops
from tests.files.recording import robot_files
from tests.seeds import seeds as few_seeds

_SMALL = [path.read_bytes() for path in robot_files() if path.stat().st_size < 30_000]
_NASTY = [
    b"", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-320", b"0", b"-1", b"0 0 0", b"1e30 1e30 1e30", b"&x;",
    b"\xff", b"<", b">", b'"', b"/>", b"<link/>", b"<joint/>", b"${x}", b"world", b"\x00", b"<!DOCTYPE a>", b"fixed",
    b"floating", b"planar", b"continuous", "é".encode(), b"]]>", b"<![CDATA[", b"<!--", b"root_joint", b"1e29",
]  # fmt: skip
_TAGS = ["link", "joint", "inertial", "mass", "inertia", "origin", "axis", "parent", "child", "mimic", "limit"]
_TAGS += ["visual", "collision", "geometry", "box", "mesh", "sphere"]
_TOKEN = re.compile(rb'"[^"]*"')


def survives(content: bytes, **options: object) -> None:
    with contextlib.suppress(LinkwiseError), warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        loads(content, **options)  # type: ignore[arg-type]


@given(st.binary(max_size=400))
def test_random_bytes(content: bytes) -> None:
    survives(content)
    survives(b"<robot>" + content + b"</robot>")


@st.composite
def trees(draw: st.DrawFn, depth: int = 4) -> bytes:
    """Elements with the names of the format, nested and filled at random."""
    tag = draw(st.sampled_from(_TAGS))
    keys = st.sampled_from(
        ["name", "type", "link", "joint", "value", "xyz", "rpy", "ixx", "lower", "upper", "size", "filename"]
    )
    words = st.sampled_from(["a", "b", "world", "revolute", "fixed", "0", "1 0 0", "-1", "nan", "1e30", "x", ""])
    attributes = "".join(f' {key}="{word}"' for key, word in draw(st.dictionaries(keys, words, max_size=4)).items())
    inside = b"".join(draw(st.lists(trees(depth=depth - 1), max_size=4))) if depth else b""
    return f"<{tag}{attributes}>".encode() + inside + f"</{tag}>".encode()


@given(st.lists(trees(depth=2), max_size=6))
def test_random_elements(parts: list[bytes]) -> None:
    survives(b'<robot name="r">' + b"".join(parts) + b"</robot>")


@pytest.mark.skipif(not _SMALL, reason="needs example-robot-data")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_mutated_robots(data: st.DataObject) -> None:
    content = data.draw(st.sampled_from(_SMALL), label="file")
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["value", "cut", "insert", "duplicate", "swap"]))
        tokens = list(_TOKEN.finditer(content))
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        nasty = data.draw(st.sampled_from(_NASTY))
        if kind == "value" and tokens:
            token = data.draw(st.sampled_from(tokens))
            content = content[: token.start()] + b'"' + nasty + b'"' + content[token.end() :]
        elif kind == "swap" and tokens:
            one, other = data.draw(st.sampled_from(tokens)), data.draw(st.sampled_from(tokens))
            content = content[: one.start()] + other.group() + content[one.end() :]
        elif kind == "cut":
            content = content[:at] + content[at + data.draw(st.integers(1, 200)) :]
        elif kind == "duplicate":
            content = content[:at] + content[max(0, at - 300) :]
        else:
            content = content[:at] + nasty + content[at:]
    survives(content, floating=data.draw(st.booleans()), mimic=data.draw(st.booleans()))


@pytest.mark.parametrize("seed", few_seeds(1, of=4))
def test_mutated_sdf(seed: int) -> None:
    """A sound model, or a refusal that names the line."""
    for number in range(200):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        content = seeds("sdf")[rng.integers(2)]
        for _ in range(1 + rng.integers(2)):
            content = mutated(content, rng)
        try:
            check(content)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                loads(content)
        except LinkwiseError as refusal:
            assert re.match(r"<string>:[0-9]+: |<string>: the text is empty", str(refusal)), refusal


def test_mutated_side_files() -> None:
    good = b"""closed_loop: [['a', 'b'], ["b", "a"]]
type: ['6d', '3D']
name_mot: ['j']
joint_name: ['j']
joint_type: ['SPHERICAL']
closures:
  - {name: x, a: a, b: world, type: revolute, axis: [0, 1, 0], placement_a: {xyz: [0, 0, 1]}}
couplings:
- name: g
  terms: {k: 1, l: -2.5}
"""
    links = tuple(LinkWritten(name, 1) for name in ("world", "a", "b", "c"))
    joints = tuple(
        JointWritten(name, 1, "revolute", parent, child)
        for name, parent, child in (("j", "world", "a"), ("k", "a", "b"), ("l", "b", "c"))
    )
    description = Description("m", "m.urdf", 1, links, joints)
    assert len(with_loops(description, good, "a.yaml").closures) == 3
    rng = np.random.default_rng(0)
    nasty = (*_NASTY, b"- ", b": ", b"[", b"{", b"\n", b"  ", b"&a", b"*a", b"'", b"#", b"\t")
    read = 0
    for _ in range(800):
        content = good
        for _ in range(1 + rng.integers(3)):
            at, end = sorted(rng.integers(0, len(content) + 1, 2))
            end = min(end, at + 8)
            content = content[:at] + nasty[rng.integers(len(nasty))] + content[end if rng.random() < 0.5 else at :]
        try:
            with_loops(description, content, "a.yaml")
            read += 1
        except LinkwiseError as refusal:
            assert str(refusal).startswith("a.yaml:")
    assert read > 8
