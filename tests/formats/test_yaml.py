"""The small part of YAML: what it reads, as PyYAML does where that is there, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import ModelFileError
from linkwise.formats.yaml import Node, parse_yaml


def plain(node: Node) -> Any:
    if isinstance(node.value, list):
        return [plain(each) for each in node.value]
    if isinstance(node.value, dict):
        return {key: plain(each) for key, each in node.value.items()}
    return node.value


def read(text: str) -> Any:
    return plain(parse_yaml(text.encode(), "a.yaml"))


GOOD = [
    ("a: 1", {"a": 1.0}),
    ("a: [['x', 'y'], ['z', 'w']]\nb: ['6d', \"3d\"]\n", {"a": [["x", "y"], ["z", "w"]], "b": ["6d", "3d"]}),
    ("a:\n  [\n    ['x', 'y'],  # a comment\n    ['z',\n 'w'],\n  ]\nb: 2\n", {
        "a": [["x", "y"], ["z", "w"]], "b": 2.0}),
    ("a:\n- x\n- y\nb:\n  - c: 1\n    d: {e: 2, f: [3, -4.5e-3]}\n  - c: 3\n", {
        "a": ["x", "y"], "b": [{"c": 1.0, "d": {"e": 2.0, "f": [3.0, -4.5e-3]}}, {"c": 3.0}]}),
    ("---\n# only a comment\na:\nb: true\nc: null\nd: false\n", {"a": None, "b": True, "c": None, "d": False}),
    ("'quoted: key': 'it''s'\nb: \"x # y\"\nurl: a:b\nc: x#y", {
        "quoted: key": "it's", "b": "x # y", "url": "a:b", "c": "x#y"}),
    ("- - 1\n  - 2\n- 3\n", [[1.0, 2.0], 3.0]),
    ("a: []\nb: {}\nc: [1,]", {"a": [], "b": {}, "c": [1.0]}),
    ("-\n  a: 1\n-\n  b: 2", [{"a": 1.0}, {"b": 2.0}]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_it_reads(text: str, expected: Any) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(("text", "expected"), GOOD)
def test_as_others_read_it(text: str, expected: Any) -> None:
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load(text) == expected


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(min_size=1), json_values, min_size=1, max_size=4), st.sampled_from([None, 2]))
def test_json_is_part_of_it(value: dict[str, Any], indent: int | None) -> None:
    assert read(json.dumps(value, indent=indent)) == value


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: &x 1", 1, "not read"),
        ("a: *x", 1, "not read"),
        ("a: !!python/object:os.system x", 1, "not read"),
        ("a: |\n  text", 1, "not read"),
        ("a: 1\na: 2", 2, "comes twice"),
        ("a: {b: 1, b: 2}", 1, "comes twice"),
        ("a: [1, 2", 1, "not closed"),
        ("a: [1 2]\n  b: 3", 2, "belongs to nothing"),
        ("a: 'x", 1, "quotes"),
        ('a: "x" y', 1, "quotes"),
        ("a:\n\t- 1", 2, "tab"),
        ("a: b: c", 1, "colon"),
        ("a: [1] 2", 1, "follows the closing bracket"),
        ("a: [, 1]", 1, "missing"),
        ("a: {b 1}", 1, "no value"),
        ("a: " + "[" * 50, 1, "deeply"),
        ("1: 2", 1, "not a name"),
    ],
)
def test_it_refuses(text: str, line: int, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        read(text)
    assert str(caught.value).startswith(f"a.yaml:{line}: ")


def test_other_encodings_and_nothing() -> None:
    for content in (b"\xff\xfe", b"", b"# nothing"):
        with pytest.raises(ModelFileError):
            parse_yaml(content, "a.yaml")


@given(st.text(alphabet="ab:-[]{},'\"# \n&*0.1", max_size=80))
def test_any_text(text: str) -> None:
    try:
        read(text)
    except ModelFileError:
        return
