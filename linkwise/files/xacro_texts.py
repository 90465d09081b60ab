"""Texts of a xacro file with their ``${…}`` and ``$(…)`` replaced: expressions, arguments, packages, YAML files.

Expressions are evaluated by :mod:`linkwise.files.xacro_expressions`. Files are read inside the search path
(:mod:`linkwise.files.resources`) only, and variables of the environment only where the caller has named them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn

from linkwise.errors import ModelFileError, ModelWarning, UnknownNameError
from linkwise.files.resources import SearchPath, exists, read_bytes
from linkwise.files.xacro_expressions import Allowance, evaluate, shown_value
from linkwise.files.xacro_functions import FileCall, Names, Namespace, Value, builtin_names
from linkwise.files.yaml import Node, parse_yaml

_LARGEST_YAML = 1024 * 1024
_LONGEST_PATH = 4000
_MOST_NOTES = 20
_NO_TEXT = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that no XML file can have; an expression can write them."""
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)", re.ASCII)
_WORDS: dict[str, bool | None] = {
    **{each: True for word in ("yes", "true", "on") for each in (word, word.capitalize(), word.upper())},
    **{each: False for word in ("no", "false", "off") for each in (word, word.capitalize(), word.upper())},
    **dict.fromkeys(("Null", "NULL")),
}
"""Words of YAML 1.1, which xacro's reader knows."""
_INFINITE = {sign + ".inf": float(sign + "inf") for sign in ("", "+", "-")}
_UNITS = {
    "!radians": 1.0,
    "!degrees": math.pi / 180.0,
    "!meters": 1.0,
    "!millimeters": 0.001,
    "!foot": 0.3048,
    "!inches": 0.0254,
}


class PropertyScope(Names):
    """Properties of a file, macro or namespace, before those of the scope around it.

    Texts of properties are replaced when they are asked for first, in the scope in which they were written.
    """

    def __init__(self, texts: Texts, parent: Names, *, namespace: bool = False) -> None:
        self.texts, self.parent, self.namespace = texts, parent, namespace
        self.values: dict[str, object] = {}
        self.lazy: set[str] = set()
        self.resolving: list[str] = []

    def find(self, name: str) -> object:
        """The value of a property, or what has this name further out."""
        for scope in self.outwards():
            if name in scope.values:
                return scope.resolved(name) if name in scope.lazy else scope.values[name]
        return scope.parent.find(name)

    def __contains__(self, name: str) -> bool:
        return any(name in scope.values for scope in self.outwards()) or name in self.texts.names.members

    def outwards(self) -> Iterator[PropertyScope]:
        """This scope and those around it."""
        table: Names = self
        while isinstance(table, PropertyScope):
            yield table
            table = table.parent

    def put(self, name: str, value: object, *, lazy: bool = False) -> None:
        """Give a property a value, or a text to be replaced later."""
        self.values[name] = value = _literal(value)
        (self.lazy.add if lazy and isinstance(value, str) else self.lazy.discard)(name)

    def remove(self, name: str) -> None:
        """Forget a property, here and in all scopes around."""
        for scope in self.outwards():
            scope.values.pop(name, None)

    @property
    def outermost(self) -> PropertyScope:
        """The scope of the whole file."""
        return self.parent.outermost if isinstance(self.parent, PropertyScope) else self

    def resolved(self, name: str) -> object:
        """The value of a property that is a text so far."""
        if name in self.resolving:
            raise ModelFileError(
                "properties are defined by each other",
                got=" -> ".join((*self.resolving, name)),
                do='lazy_eval="false" on one of them takes the value that the others have at that place',
            )
        self.resolving.append(name)
        try:
            self.values[name] = value = _literal(self.texts.value(str(self.values[name]), self))
        finally:
            self.resolving.pop()
        self.lazy.discard(name)
        return value


class Texts:
    """The texts of one run over a xacro file.

    Args:
        file: the file.
        arguments: values for its ``<xacro:arg>``, which adds those that it has by default.
        places: the folders in which files may be read.
        environment: variables that may be read, with their values; None where one is not set.
    """

    def __init__(
        self,
        file: Path,
        arguments: dict[str, str],
        places: SearchPath,
        environment: Mapping[str, str | None],
    ) -> None:
        self.arguments, self.places, self.environment = arguments, places, environment
        self.files = [file]
        """The file, and those included from it that are being read, the innermost last."""
        self.allowance = Allowance()
        self.notes: list[ModelWarning] = []
        """Warnings of the file's author."""
        self._packages: list[Path] = []
        known = builtin_names()
        readers: dict[str, object] = {
            "load_yaml": FileCall(self._yaml),
            "abs_filename": FileCall(self._absolute),
        }
        own = {
            "dotify": FileCall(dict),
            "arg": FileCall(self._argument),
            "tokenize": FileCall(self._tokens),
        }
        told = {name: FileCall(lambda *words: "") for name in ("message", "print_location")}
        told |= {
            "warning": FileCall(self._warned),
            "error": FileCall(self._warned),
            "fatal": FileCall(_fatal),
        }
        # xacro's own files of old use these without their namespace.
        self.names = Namespace({**known, **readers, "xacro": Namespace({**readers, **own, **told})})
        calls: dict[str, Callable[..., Value]] = {
            "arg": self._typed_argument,
            "env": self._variable,
            "optenv": self._variable,
        }
        calls |= {"find": self._find, "dirname": lambda: str(self.files[-1].parent)}
        self._old_names = {**known, **{name: FileCall(call) for name, call in calls.items()}}

    def value(self, text: str, scope: Names) -> Value:
        """The value of a text: of its expression where it is one whole, else the text with all of them replaced."""
        if "$" not in text:
            self.allowance.spend(len(text) // 16)
            return text
        found = [self._piece(kind, inner, scope) for kind, inner in self._pieces(text)]
        if len(found) == 1:
            return found[0]
        return shown_value("".join(shown_value(each, self.allowance) for each in found), self.allowance)

    def text(self, text: str, scope: Names) -> str:
        """The same, as it stands in the expanded file."""
        if "$" not in text:
            return str(self.value(text, scope))
        found = shown_value(self.value(text, scope), self.allowance)
        if _NO_TEXT.search(found):
            raise ModelFileError("a text has characters that no file can have", got=ascii(found[:80]))
        return found

    def path(self, name: str) -> Path:
        """The path that a file name stands for, where it is relative to the file that is being read."""
        if _NO_TEXT.search(name) or len(name) > _LONGEST_PATH:
            raise ModelFileError("this is no name of a file", got=ascii(name)[:80])
        return self.places.find(name) if "://" in name else (self.files[-1].parent / name).resolve()

    def allowed(self, path: Path) -> Path:
        """The path of a file that is there and inside the search path."""
        if any(path.is_relative_to(package) for package in self._packages) and exists(path):
            return path
        return self.places.find(str(path))

    def is_inside(self, path: Path) -> bool:
        """Whether a path, of a file or of none, is inside the search path."""
        return any(path.is_relative_to(folder) for folder in (*self._packages, *self.places.folders))

    def _pieces(self, text: str) -> list[tuple[str, str]]:
        """Texts ("") and what is inside ``${…}`` ("{") and ``$(…)`` ("(")."""
        pieces: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            start = text.find("$", at)
            if start < 0:
                pieces.append(("", text[at:]))
                break
            end = start + 1
            while end < len(text) and text[end] == "$":
                end += 1
            opening = text[end : end + 1]
            if opening not in ("{", "(") or end > start + 1:  # a $ of the text, or $${ for one that is to stay
                last = end + 1 if opening in ("{", "(") else end
                keep = start + 1 if opening in ("{", "(") else start
                pieces.append(("", text[at:start] + text[keep:last]))
                at = last
                continue
            closing = self._closing(text, end + 1, opening)
            if start > at:
                pieces.append(("", text[at:start]))
            pieces.append((opening, text[end + 1 : closing]))
            at = closing + 1
        return pieces

    def _closing(self, text: str, start: int, opening: str) -> int:
        """The place where the bracket that was opened before `start` is closed, outside quotes and brackets within."""
        closing = "}" if opening == "{" else ")"
        depth, quote = 1, ""
        for at in range(start, len(text)):
            char = text[at]
            if quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if not depth:
                    self.allowance.spend(1 + (at - start) // 4)
                    return at
        self.allowance.spend(1 + (len(text) - start) // 4)
        at = text.find(closing, start)  # an apostrophe that is no quote
        if at < 0:
            raise ModelFileError("a bracket is not closed", got=repr(text[start - 2 :][:80]), do=f"write {closing}")
        return at

    def _piece(self, kind: str, text: str, scope: Names) -> Value:
        if not kind:
            return text
        inner = self.text(text, scope)
        if kind == "{":
            return evaluate(inner, scope, self.allowance)
        command, _, rest = inner.strip().partition(" ")
        words = rest.split()
        if command == "eval":
            given = {name: _converted(value) for name, value in self.arguments.items()}
            names = Namespace({**given, **self._old_names})
            return shown_value(evaluate(rest, names, self.allowance), self.allowance)
        if command == "arg" and len(words) == 1:
            return self._argument(words[0])
        if command == "find" and len(words) == 1:
            return self._find(words[0])
        if command == "env" and len(words) == 1:
            return self._variable(words[0])
        if command == "optenv" and words:
            return self._variable(words[0], " ".join(words[1:]))
        if command == "dirname" and not words:
            return str(self.files[-1].parent)
        raise ModelFileError(
            "this substitution is refused",
            got=f"$({inner[:80]})",
            allowed="$(arg name), $(find package), $(dirname), $(eval expression), $(env NAME), $(optenv NAME default)",
        )

    def _argument(self, name: str) -> str:
        if name not in self.arguments:
            error = UnknownNameError("argument", name, self.arguments)
            do = f'load(..., arguments={{"{name}": value}}), or <xacro:arg name="{name}" default="..."/> before it'
            raise ModelFileError(error.what, got=error.got, allowed=error.allowed, do=do)
        return self.arguments[name]

    def _typed_argument(self, name: str) -> Value:
        return _converted(self._argument(name))

    def _variable(self, name: str, default: str | None = None) -> str:
        if name not in self.environment:
            raise ModelFileError(
                "the file asks for a variable of the environment that it may not read",
                got=repr(name),
                allowed=", ".join(self.environment) or "none",
                do=f"load(..., environment=[{name!r}]) or --env {name} lets it, if you trust the file with the value",
            )
        value = self.environment[name]
        if value is None and default is None:
            raise ModelFileError("this variable of the environment is not set", got=repr(name), do=f"export {name}=...")
        return str(default if value is None else value)

    def _find(self, package: str) -> str:
        folder = self.places.find(f"package://{package}")
        self._packages.append(folder)
        return str(folder)

    def _absolute(self, name: str) -> str:
        return str(self.files[-1].parent / name)

    def _tokens(self, text: str, separators: str = ",; ", skip_empty: bool = True) -> list[Value]:
        pattern = f"[{re.escape(separators)}]"
        return [part for part in (re.split(pattern, text) if separators else [text]) if part or not skip_empty]

    def _yaml(self, name: Value) -> Value:
        if not isinstance(name, str):
            raise TypeError("the name of a file is a text")
        path = self.allowed(self.path(name))
        content = read_bytes(path, suffixes=(".yaml",), largest=_LARGEST_YAML)
        self.allowance.spend(len(content) // 4)
        return _data(parse_yaml(content, str(path), self._word))

    def _warned(self, *words: Value) -> str:
        if len(self.notes) < _MOST_NOTES:
            said = " ".join(map(str, words))[:1000]
            self.notes.append(ModelWarning("the author of the xacro file warns", got=said))
        return ""

    def _word(self, text: str) -> str | float | bool | None:
        """A word of YAML by the rules of xacro's reader: whole numbers, more words, units."""
        if text in _WORDS:
            return _WORDS[text]
        if len(text) < 400 and _WHOLE.fullmatch(text):
            return int(text)
        unit, _, rest = text.partition(" ")
        if unit in _UNITS:
            number = evaluate(rest, self.names, self.allowance)
            if not isinstance(number, (int, float)):
                raise ModelFileError("a unit has no number", got=repr(text[:80]))
            return float(number) * _UNITS[unit]
        return _INFINITE.get(text, text)


def boolean(value: object, text: str) -> bool:
    """Whether a condition is met; its text is for the message."""
    if not isinstance(value, str):
        return bool(value)
    if value in ("true", "True", "false", "False"):
        return value.lower() == "true"
    try:
        return bool(int(value))
    except ValueError:
        raise ModelFileError(
            "this is neither true nor false", got=f"{value[:80]!r}, of {text[:80]!r}", allowed="true, false, 1 or 0"
        ) from None


def _literal(value: object) -> object:
    """A text in quotes without them; one that is a number or a truth as that; all else as it is."""
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == "'" == value[-1]:
        return value[1:-1]
    if "_" in value or len(value) > 400:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


def _converted(text: str) -> Value:
    """An argument as ``$(eval …)`` takes it."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.lower(), text)


def _data(node: Node) -> Value:
    value = node.value
    if isinstance(value, list):
        return [_data(each) for each in value]
    return {name: _data(each) for name, each in value.items()} if isinstance(value, dict) else value


def _fatal(*words: Value) -> NoReturn:
    raise ModelFileError("the xacro file says that this is an error", got=" ".join(map(str, words))[:1000])
