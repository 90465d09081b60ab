"""Whatever the bytes, the reader returns or raises one of our errors."""

from __future__ import annotations

import contextlib
import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkwise.errors import LinkwiseError, ModelWarning
from linkwise.formats import loads
from tests.formats.recording import robot_files

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
