from __future__ import annotations

import time

import pytest

from linkwise.errors import ModelFileError
from linkwise.files import xml
from linkwise.files.xml import parse


def refusal(content: bytes) -> str:
    with pytest.raises(ModelFileError) as caught:
        parse(content, "f.urdf")
    return str(caught.value)


def test_elements_know_their_line_their_children_and_their_text() -> None:
    root = parse(
        b'<?xml version="1.0"?>\n<a x="1">\n  <b/>\n  hello <!-- not this -->\n  <b\n y="2"/> world\n</a>', "f"
    )
    assert (root.tag, root.line, root.attributes) == ("a", 2, {"x": "1"})
    assert [(child.tag, child.line) for child in root.children] == [("b", 3), ("b", 5)]
    assert root.text.split() == ["hello", "world"]
    assert [element.line for element in root.walk()] == [2, 3, 5]


def test_prefixes_are_kept_as_written() -> None:
    assert parse(b"<a><xacro:macro/></a>", "f").children[0].tag == "xacro:macro"


def test_the_five_predefined_entities_and_character_references_work() -> None:
    assert parse(b'<a x="&lt;&amp;&gt;&quot;&apos;&#65;"/>', "f").attributes["x"] == "<&>\"'A"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1252"])
def test_encodings(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><a x="é"/>'
    assert parse(text.encode(encoding), "f").attributes["x"] == "é"


@pytest.mark.parametrize("encoding", ["klingon", "hex", "utf-7", "shift_jis", "idna"])
def test_encodings_that_cannot_be_read_are_refused(encoding: str) -> None:
    assert refusal(f'<?xml version="1.0" encoding="{encoding}"?><a/>'.encode()).startswith("f.urdf:1: ")


def test_malformed_xml_is_reported_with_file_and_line() -> None:
    assert refusal(b"<a>\n<b>\n</a>").startswith("f.urdf:3: this is not well-formed XML: mismatched tag")
    assert "no element found" in refusal(b"   ")
    assert "not well-formed" in refusal(b"\x00\x01\x02")
    assert "duplicate attribute" in refusal(b'<a x="1" x="2"/>')
    assert "junk after document element" in refusal(b"<a/><b/>")


BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE lolz [
 <!ENTITY lol "lol">
 <!ENTITY lol1 "&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;">
 <!ENTITY lol2 "&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;&lol1;">
]>
<robot name="&lol2;"/>"""


def test_a_billion_laughs_are_refused_before_the_first() -> None:
    message = refusal(BILLION_LAUGHS)
    assert message.startswith("f.urdf:2: document types are refused")
    assert "delete the <!DOCTYPE" in message


@pytest.mark.parametrize(
    "declaration",
    [
        b'<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        b'<!DOCTYPE robot SYSTEM "http://example.com/robot.dtd">',
        b'<!DOCTYPE robot PUBLIC "-//x//y" "http://example.com/robot.dtd">',
        b'<!DOCTYPE robot [<!ENTITY % p SYSTEM "http://example.com/x"> %p;]>',
        b"<!DOCTYPE robot>",
    ],
)
def test_document_types_and_external_entities_are_refused(declaration: bytes) -> None:
    assert "document types are refused" in refusal(declaration + b'<robot name="&x;"/>')


def test_undeclared_entities_are_refused() -> None:
    assert "undefined entity" in refusal(b'<robot name="&x;"/>')


def test_deep_nesting_is_refused() -> None:
    assert "nested too deeply" in refusal(b"<a>" * 100_000)
    deepest = xml.DEEPEST
    assert parse(b"<a>" * deepest + b"</a>" * deepest, "f").tag == "a"
    assert "nested too deeply" in refusal(b"<a>" * (deepest + 1) + b"</a>" * (deepest + 1))


def test_too_many_elements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "MOST_ELEMENTS", 1000)
    assert parse(b"<a>" + b"<b/>" * 999 + b"</a>", "f").tag == "a"
    assert "too many elements" in refusal(b"<a>" + b"<b/>" * 1000 + b"</a>")


def test_long_tokens_take_linear_time() -> None:
    start = time.perf_counter()
    parse(b'<a x="' + b"y" * 10_000_000 + b'"/>', "f")
    parse(b"<!--" + b"-y" * 5_000_000 + b"--><a/>", "f")
    assert time.perf_counter() - start < 5.0
