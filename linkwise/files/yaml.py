"""YAML, with JSON inside it, to nodes that know their line.

PyYAML reads the text. By hand is what it does not say or does not refuse: what stands on which line; keys that come
twice or are not names; tags, which build objects; references that unfold into more values than a file may have. And
what a word without quotes means: true, false, null and numbers as YAML 1.2 and JSON have them. PyYAML keeps to YAML
1.1, for which ``on`` is true, 1:30 is ninety and 1e5 is a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from linkwise.dataclass import dataclass
from linkwise.errors import ModelFileError
from linkwise.files.native.contents import decoded
from linkwise.files.values import NUMBER

_DEEPEST = 20
_MOST_VALUES = 100_000

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_PLAIN = "plain"
"""The tag of a word without quotes and without a tag of its own."""
_TEXT = "tag:yaml.org,2002:str"
_COLLECTIONS = ("tag:yaml.org,2002:seq", "tag:yaml.org,2002:map")

Scalar = str | float | bool | None


@dataclass(frozen=True, slots=True)
class Node:
    """A value and the line it stands on."""

    value: str | float | bool | list[Node] | dict[str, Node] | None
    line: int


def parse_yaml(content: bytes, file: str, plain: Callable[[str], Scalar] | None = None) -> Node:
    """The one document of a file.

    Args:
        content: the document.
        file: its name in the messages.
        plain: a reader of values without quotes, where other rules hold: gives a value, or the word where it has none.
            A tag stands before the word, with a space: ``!degrees 90``.
    """
    import yaml  # here: most model files have no YAML beside them

    rules = {
        "yaml_implicit_resolvers": {None: [(_PLAIN, re.compile(""))]},
        "NON_PRINTABLE": re.compile("[\0-\x08\x0b\x0c\x0e-\x1f]"),  # JSON may have what YAML asks to be escaped
    }
    text = decoded(content, file)
    try:
        root = type("_Loader", (yaml.SafeLoader,), rules)(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        what = ": ".join(filter(None, (error.context, error.problem)))
        raise ModelFileError(
            f"this is not YAML: {what}", file=file, line=mark.line + 1, got=mark.get_snippet(indent=0, max_length=60)
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ModelFileError(f"this is not YAML: {error.reason}", file=file, line=line) from None
    except ValueError as error:  # an escape or a version beyond all numbers
        raise ModelFileError(f"this is not YAML: {error}", file=file) from None
    except RecursionError:
        raise ModelFileError("the values are nested too deeply", file=file, allowed=_DEEPEST) from None
    if root is None:
        raise ModelFileError("the file is empty", file=file)
    return _Reader(file, plain).node(root, 0)


class _Reader:
    """Values from the nodes of PyYAML, where a reference is one node in several places."""

    def __init__(self, file: str, plain: Callable[[str], Scalar] | None) -> None:
        self.file, self.plain = file, plain
        self.values = 0

    def fail(self, what: str, at: Any, *, got: object = None, allowed: object = None, do: object = None) -> NoReturn:
        raise ModelFileError(what, file=self.file, line=at.start_mark.line + 1, got=got, allowed=allowed, do=do)

    def node(self, found: Any, depth: int) -> Node:
        self.values += 1
        if depth > _DEEPEST:
            self.fail("the values are nested too deeply", found, allowed=_DEEPEST)
        if self.values > _MOST_VALUES:
            self.fail("the file has too many values", found, allowed=_MOST_VALUES, do="use fewer references (*)")
        line = found.start_mark.line + 1
        if found.id == "scalar":
            return Node(self.scalar(found), line)
        if found.tag not in _COLLECTIONS:
            self.fail("a tag is not read", found, got=repr(found.tag[:60]), do="leave it out")
        if found.id == "sequence":
            return Node([self.node(each, depth + 1) for each in found.value], line)
        entries: dict[str, Node] = {}
        for written, value in found.value:
            key = self.scalar(written, key=True) if written.id == "scalar" else None
            if not isinstance(key, str):
                self.fail("a key is not a name", written, got=repr(written.value)[:60], do="put it in quotes")
            if key in entries:
                self.fail("a key comes twice", written, got=repr(key), do="delete one of the two")
            entries[key] = self.node(value, depth + 1)
        return Node(entries, line)

    def scalar(self, found: Any, *, key: bool = False) -> Scalar:
        """A string, number, true, false or null."""
        try:  # JSON writes one character as two halves
            text = found.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.fail("half a character is written", found, got=repr(found.value)[:60])
        if found.tag == _TEXT:
            return str(text)
        bare = found.tag == _PLAIN
        word = text if bare else f"{found.tag} {text}"
        if self.plain is not None and not key and found.style is None and (value := self.plain(word)) != word:
            return value
        if not bare:
            self.fail("a tag is not read", found, got=repr(word[:60]), do="leave it out, or put the value in quotes")
        if text in _WORDS:
            return _WORDS[text]
        return float(text) if len(text) < 400 and NUMBER.fullmatch(text) else str(text)
