"""XML to light elements that know their line.

Model files come from anywhere, so this reads a small and harmless part of XML: no document type, hence no entities
of the file's own, hence no entity that grows without end and none that reaches for another file or the network;
and bounded depth and count of elements. It sits on expat directly because ``xml.etree`` keeps neither line numbers
nor these bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.parsers import expat

from linkwise.dataclass import dataclass, field
from linkwise.errors import ModelFileError

DEEPEST = 200
"""Levels of nesting. Robot files use about ten; MJCF nests one level per body of a chain."""
MOST_ELEMENTS = 2_000_000
"""Elements in a file: bounds the memory that a short file of empty elements can ask for."""


@dataclass(slots=True)
class XmlElement:
    """One element: its tag and attributes as written (prefix included), its children in order, its own text."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlElement] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list[XmlElement]:
        """The children of this tag, in the order of the file."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[XmlElement]:
        """This element and all below it, in the order of the file."""
        stack = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))


def parse(content: bytes, file: str, *, mixed: bool = False) -> XmlElement:
    """The root element of an XML document.

    Args:
        content: the document.
        file: its name in the messages.
        mixed: keep the order of texts and elements: each text is a child too, an element without a tag.
    """
    reader = _Reader(file, mixed)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    parser.EntityDeclHandler = reader.refuse_entity
    reader.parser = parser
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise ModelFileError(
            f"this is not well-formed XML: {expat.ErrorString(error.code)}",
            file=file,
            line=error.lineno,
            do="open the file at this line; the mistake is there or just before",
        ) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know, or cannot map byte by byte
        raise ModelFileError(
            f"the encoding of this file cannot be read: {error}", file=file, line=1, do="save the file as UTF-8"
        ) from None
    if reader.root is None:  # expat reports a document without a root itself; this is for the type checker
        raise ModelFileError("the file has no elements", file=file)
    return reader.root


class _Reader:
    """The handlers: a stack of open elements, and the text pieces of each."""

    parser: expat.XMLParserType

    def __init__(self, file: str, mixed: bool) -> None:
        self.file, self.mixed = file, mixed
        self.root: XmlElement | None = None
        self.open: list[tuple[XmlElement, list[str]]] = []
        self.count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        element = XmlElement(tag, attributes, self.parser.CurrentLineNumber)
        self.count += 1
        if self.count > MOST_ELEMENTS:
            raise self.refused("the file has too many elements", allowed=f"at most {MOST_ELEMENTS}")
        if len(self.open) >= DEEPEST:
            raise self.refused("the elements are nested too deeply", allowed=f"at most {DEEPEST} levels")
        if self.open:
            self.open[-1][0].children.append(element)
        else:
            self.root = element
        self.open.append((element, []))

    def end(self, tag: str) -> None:
        element, pieces = self.open.pop()
        element.text = "".join(pieces).strip()

    def characters(self, text: str) -> None:
        if self.open and self.mixed:
            self.open[-1][0].children.append(XmlElement("", {}, self.parser.CurrentLineNumber, [], text))
        elif self.open:
            self.open[-1][1].append(text)

    def refuse_doctype(self, name: str, system_id: str | None, public_id: str | None, has_subset: bool) -> None:
        raise self.refused(
            "document types are refused, since they can hide entities that grow without end or read other files",
            got=f"<!DOCTYPE {name[:40]} ...>",
            do="delete the <!DOCTYPE ...> declaration; model files do not need one",
        )

    def refuse_entity(self, name: str, *rest: object) -> None:
        raise self.refused("entity declarations are refused", got=f"<!ENTITY {name[:40]} ...>", do="write the text out")

    def refused(self, what: str, **parts: object) -> ModelFileError:
        return ModelFileError(
            what,
            file=self.file,
            line=self.parser.CurrentLineNumber,
            got=parts.get("got"),
            allowed=parts.get("allowed"),
            do=parts.get("do"),
        )
