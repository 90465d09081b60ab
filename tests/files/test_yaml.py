"""YAML: the values and lines that are read, and what is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import ModelFileError
from linkwise.files.yaml import Node, parse_yaml


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
    assert yaml.safe_load(text) == expected


names = st.text(min_size=1, max_size=80)  # keys of more than 1024 characters, written out, are not YAML
json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(names, json_values, min_size=1, max_size=4), st.sampled_from([None, 2]))
def test_json_is_part_of_it(value: dict[str, Any], indent: int | None) -> None:
    assert read(json.dumps(value, indent=indent)) == value


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: *x", 1, "undefined alias"),
        ("a: !!python/object:os.system x", 1, "tag is not read"),
        ("a:\n  !!python/object/apply:os.system [x]", 2, "tag is not read"),
        ("a: !!binary aGVsbG8=", 1, "tag is not read"),
        ("b: 1\na: !degrees 90", 2, "tag is not read"),
        ("a: 1\na: 2", 2, "comes twice"),
        ("a: {b: 1, b: 2}", 1, "comes twice"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n", 4, "comes twice"),
        ("a: [1, 2", 1, "expected ',' or ']'"),
        ("a: [1 2]\n  b: 3", 2, "not YAML"),
        ("a: 'x", 1, "unexpected end of stream"),
        ('a: "x" y', 1, "not YAML"),
        ("a:\n\t- 1", 2, r"'\\t' that cannot start"),
        ("a: b: c", 1, "mapping values are not allowed here"),
        ("a: [1] 2", 1, "not YAML"),
        ("a: [, 1]", 1, "not YAML"),
        ("a: " + "[" * 50 + "]" * 50, 1, "deeply"),
        ("a:\n  &x [*x]", 2, "deeply"),
        ("1: 2", 1, "not a name"),
        ("a: 1\n[b]: 2", 2, "not a name"),
        ("a: 1\n? {d: 1}\n: 2", 2, "not a name"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("a: 1\nb: '\x07'", 2, "special characters"),
        ('a: "\\ud800"', 1, "half a character"),
    ],
)
def test_it_refuses(text: str, line: int, words: str) -> None:
    with pytest.raises(ModelFileError, match=words) as caught:
        read(text)
    assert str(caught.value).startswith(f"a.yaml:{line}: ")


def test_other_encodings_and_nothing() -> None:
    nested = b"[" * 10_000
    for content in (b"\xff\xfe", b"", b"# nothing", nested, b'"\\U00110000"', b"%YAML 1." + b"9" * 5000 + b"\n--- a"):
        with pytest.raises(ModelFileError, match=r"^a\.yaml: |^a\.yaml:1: "):
            parse_yaml(content, "a.yaml")


def test_references_are_read() -> None:
    assert read("a: &x [1, 2]\nb: *x\nc: {d: *x}") == {"a": [1.0, 2.0], "b": [1.0, 2.0], "c": {"d": [1.0, 2.0]}}
    assert read("a: |\n  two\n  lines\nb: >-\n  one\n  line") == {"a": "two\nlines\n", "b": "one line"}


def test_references_do_not_multiply() -> None:
    """Ten lines that would be a billion values, were they written out."""
    laughs = "".join(f"x{k + 1}: &x{k + 1} [{', '.join([f'*x{k}'] * 10)}]\n" for k in range(9))
    with pytest.raises(ModelFileError, match="too many values"):
        read("x0: &x0 [ha]\n" + laughs)


def test_words_are_those_of_yaml_1_2() -> None:
    """Where YAML 1.1 reads more into a name than its author meant."""
    words = "[on, off, yes, no, y, 1:30, 012, 0x1F, 2001-01-01, 1_000, .inf, =, 6d, 1e5, 1.e-3, True]"
    assert read(words) == [
        *("on", "off", "yes", "no", "y", "1:30", 12.0, "0x1F", "2001-01-01", "1_000", ".inf", "=", "6d"),
        *(1e5, 1e-3, True),
    ]
    assert read("[!!str 5, '5', \"5\", 5]") == ["5", "5", "5", 5.0]


def test_lines() -> None:
    node = parse_yaml(b"# first\na:\n  - 1\n  -\n    b: 2\nc:\nd: [\n  3]\n", "a.yaml").value
    assert isinstance(node, dict)
    assert {name: each.line for name, each in node.items()} == {"a": 3, "c": 6, "d": 7}
    assert [each.line for each in node["a"].value] == [3, 5]
    assert [each.line for each in node["d"].value] == [8]


def test_other_rules_for_words() -> None:
    def units(word: str) -> str | float:
        return math.radians(float(word.removeprefix("!degrees "))) if word.startswith("!degrees ") else word

    found = plain(parse_yaml(b"a: !degrees 180\nb: 7\nc: '!degrees 180'", "a.yaml", units))
    assert found == {"a": math.pi, "b": 7.0, "c": "!degrees 180"}
    with pytest.raises(ModelFileError, match="tag is not read"):
        parse_yaml(b"a: !metres 180", "a.yaml", units)


@given(st.text(alphabet="ab:-[]{},'\"# \n\t&*!|>%?\\u0.1", max_size=80))
def test_any_text(text: str) -> None:
    try:
        read(text)
    except ModelFileError:
        return
