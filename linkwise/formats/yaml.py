"""A small and strict part of YAML, with JSON inside it, to nodes that know their line.

Read: mappings and lists, in blocks or between brackets; strings, plain or quoted; numbers, true, false and null;
comments. Refused: anchors, tags, references, texts over several lines, tabs, keys that come twice, and whatever else
makes YAML a language. What is left cannot do anything but be data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from linkwise.errors import ModelFileError
from linkwise.native.text import decoded

__all__ = ["Node", "parse_yaml"]

_DEEPEST = 20
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_QUOTES = "the quotes are not closed, or have something after them"
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None}


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line it stands on."""

    value: str | float | bool | list[Node] | dict[str, Node] | None
    line: int


def parse_yaml(content: bytes, file: str, plain: Callable[[str], str | float | bool | None] | None = None) -> Node:
    """The one document of a file.

    Args:
        content: the document.
        file: its name in the messages.
        plain: a reader of values without quotes, where other rules hold: gives a value, or the word where it has none.
    """
    return _Reader(decoded(content, file), file, plain).document()


@dataclass(slots=True)
class _Line:
    number: int
    indent: int
    text: str


class _Reader:
    """Blocks by the indentation of lines; what is between brackets character by character."""

    def __init__(self, text: str, file: str, plain: Callable[[str], str | float | bool | None] | None) -> None:
        self.file, self.plain = file, plain
        self.lines: list[_Line] = []
        for number, raw in enumerate(text.splitlines(), 1):
            body = raw.lstrip(" ")
            if body.startswith("\t"):
                self.fail("a tab stands where the line begins", number, do="indent with spaces")
            body = self.without_comment(body).rstrip()
            if body and not (body == "---" and not self.lines):
                self.lines.append(_Line(number, len(raw) - len(raw.lstrip(" ")), body))
        self.at = 0

    def fail(self, what: str, line: int | None, *, got: object = None, do: object = None) -> NoReturn:
        raise ModelFileError(what, file=self.file, line=line, got=got, do=do)

    @staticmethod
    def without_comment(text: str) -> str:
        """The text up to a # that begins a word outside quotes."""
        quote = ""
        for i, char in enumerate(text):
            if quote:
                quote = "" if char == quote and text[i - 1] != "\\" else quote
            elif char in "\"'" and (i == 0 or text[i - 1] in " [{,:"):
                quote = char
            elif char == "#" and (i == 0 or text[i - 1] == " "):
                return text[:i]
        return text

    def document(self) -> Node:
        if not self.lines:
            raise ModelFileError("the file is empty", file=self.file)
        node = self.block(self.lines[0].indent, 0)
        if self.at < len(self.lines):
            left = self.lines[self.at]
            self.fail("this line belongs to nothing", left.number, got=repr(left.text[:60]), do="check its indentation")
        return node

    def block(self, indent: int, depth: int) -> Node:
        """The node that begins at the current line."""
        line = self.lines[self.at]
        if depth > _DEEPEST:
            self.fail("the values are nested too deeply", line.number)
        if line.text == "-" or line.text.startswith("- "):
            return self.block_list(indent, depth)
        if self.split(line) is not None:
            return self.block_mapping(indent, depth)
        self.at += 1
        return self.value(line.text, line, depth)

    def block_list(self, indent: int, depth: int) -> Node:
        first = self.lines[self.at].number
        items: list[Node] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.indent != indent or not (line.text == "-" or line.text.startswith("- ")):
                break
            rest = line.text[1:].lstrip(" ")
            if rest:  # as if the item began a block of its own, where it stands
                line.indent += len(line.text) - len(rest)
                line.text = rest
                items.append(self.block(line.indent, depth + 1))
            else:
                self.at += 1
                items.append(self.below(indent, line, depth))
        return Node(items, first)

    def block_mapping(self, indent: int, depth: int) -> Node:
        first = self.lines[self.at].number
        entries: dict[str, Node] = {}
        while self.at < len(self.lines):
            line = self.lines[self.at]
            found = self.split(line) if line.indent == indent else None
            if found is None:
                break
            key = self.scalar(found[0], line.number, key=True)
            if not isinstance(key, str):
                self.fail("a key is not a name", line.number, got=repr(key))
            if key in entries:
                self.fail("a key comes twice", line.number, got=repr(key), do="delete one of the two")
            rest = found[1].strip()
            self.at += 1
            entries[key] = self.value(rest, line, depth + 1) if rest else self.below(indent, line, depth)
        return Node(entries, first)

    @staticmethod
    def split(line: _Line) -> tuple[str, str] | None:
        """The key of a line and what follows its colon; None where it has no key."""
        text, start = line.text, 0
        if text[0] in "[{":
            return None
        if text[0] in "\"'":
            start = 1
            while start < len(text) and text[start] != text[0]:
                start += 2 if text[0] == '"' and text[start] == "\\" else 1
        while (colon := text.find(":", start)) >= 0:
            if colon + 1 == len(text) or text[colon + 1] == " ":
                return text[:colon], text[colon + 1 :]
            start = colon + 1
        return None

    def below(self, indent: int, line: _Line, depth: int) -> Node:
        """What stands on the next lines, further in; nothing: null. A list may stand where its key does."""
        if self.at < len(self.lines):
            following = self.lines[self.at]
            dashed = following.text == "-" or following.text.startswith("- ")
            if following.indent > indent or (following.indent == indent and dashed and not line.text.startswith("-")):
                return self.block(following.indent, depth + 1)
        return Node(None, line.number)

    def value(self, text: str, line: _Line, depth: int) -> Node:
        """A scalar, or what is between brackets, which may go on over the next lines."""
        if text[0] not in "[{":
            return Node(self.scalar(text, line.number), line.number)
        flow = _Flow(self, text, line.number)
        node = flow.node(depth)
        if flow.rest().strip():
            self.fail("something follows the closing bracket", flow.line, got=repr(flow.rest().strip()[:60]))
        return node

    def scalar(self, text: str, line: int, *, key: bool = False) -> str | float | bool | None:
        """A string, number, true, false or null."""
        text = text.strip()
        if not text:
            self.fail("a name is missing", line)
        if text[0] in "\"'":
            return self.quoted(text, line)
        if self.plain is not None and not key and (value := self.plain(text)) != text:
            return value
        if text[0] in "&*!|>%@`":
            self.fail(
                "this part of YAML is not read",
                line,
                got=repr(text[:60]),
                do="write the value out, or put it in quotes",
            )
        if text in _WORDS:
            return _WORDS[text]
        if len(text) < 400 and _NUMBER.fullmatch(text):
            return float(text)
        if ": " in text or " #" in text or text.endswith(":"):
            self.fail("a value has a colon in it", line, got=repr(text[:60]), do="put it in quotes")
        return text

    def quoted(self, text: str, line: int) -> str:
        """The text between quotes."""
        if len(text) >= 2 and text[0] == "'" == text[-1] and "'" not in text[1:-1].replace("''", ""):
            return text[1:-1].replace("''", "'")
        try:
            return str(json.loads(text)) if text[0] == '"' else self.fail(_QUOTES, line, got=repr(text[:60]))
        except ValueError:
            raise ModelFileError(_QUOTES, file=self.file, line=line, got=repr(text[:60])) from None


class _Flow:
    """What is between brackets."""

    def __init__(self, reader: _Reader, text: str, line: int) -> None:
        self.reader, self.text, self.line, self.i = reader, text, line, 0

    def rest(self) -> str:
        return self.text[self.i :]

    def skip(self) -> str:
        """The next character that is no space, from the next line where this one is at its end."""
        while True:
            while self.i < len(self.text) and self.text[self.i] in " \t":
                self.i += 1
            if self.i < len(self.text):
                return self.text[self.i]
            if self.reader.at >= len(self.reader.lines):
                self.reader.fail("a bracket is not closed", self.line)
            line = self.reader.lines[self.reader.at]
            self.reader.at += 1
            self.text, self.line, self.i = line.text, line.number, 0

    def node(self, depth: int) -> Node:
        if depth > _DEEPEST:
            self.reader.fail("the values are nested too deeply", self.line)
        opening = self.skip()
        line = self.line
        if opening == "[":
            return Node(self.items(depth), line)
        if opening == "{":
            return Node(self.entries(depth), line)
        return Node(self.reader.scalar(self.word(), line), line)

    def items(self, depth: int) -> list[Node]:
        self.i += 1
        found: list[Node] = []
        while self.skip() != "]":
            found.append(self.node(depth + 1))
            self.separator("]")
        self.i += 1
        return found

    def entries(self, depth: int) -> dict[str, Node]:
        self.i += 1
        found: dict[str, Node] = {}
        while self.skip() != "}":
            line = self.line
            key = self.reader.scalar(self.word(key=True), line, key=True)
            if not isinstance(key, str) or key in found:
                self.reader.fail("a key comes twice, or is not a name", line, got=repr(key))
            if self.skip() != ":":
                self.reader.fail("a key has no value", line, got=repr(key))
            self.i += 1
            found[key] = self.node(depth + 1)
            self.separator("}")
        self.i += 1
        return found

    def separator(self, closing: str) -> None:
        char = self.skip()
        if char == ",":
            self.i += 1
        elif char != closing:
            self.reader.fail("a comma is missing between two values", self.line, got=repr(self.rest()[:60]))

    def word(self, *, key: bool = False) -> str:
        """Up to the next comma or bracket (or colon, of a key), quotes whole."""
        start = self.i
        quote = self.text[start]
        if quote in "\"'":
            end = start + 1
            while end < len(self.text) and self.text[end] != quote:
                end += 2 if quote == '"' and self.text[end] == "\\" else 1
            self.i = min(end + 1, len(self.text))
        else:
            while (
                self.i < len(self.text) and self.text[self.i] not in ",[]{}" and not (key and self.text[self.i] == ":")
            ):
                self.i += 1
        word = self.text[start : self.i].strip()
        if not word:
            self.reader.fail("a value is missing", self.line, got=repr(self.rest()[:60]))
        return word
