"""Attributes to names, numbers and poses; every complaint has the file, the line and the text as written.

Numbers are read by the grammar of the files, not by Python's: ``float`` would accept ``1_000``, digits of other
scripts and ``nan``, and a file with those is a mistake that should be seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from linkwise.errors import ModelFileError
from linkwise.formats.xml import Element
from linkwise.model.placement import ANGLE_SNAP, Array, pose, rotation_rpy

__all__ = ["Values", "shown"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_LARGEST = 1e30
_LONGEST = 400


def shown(text: str) -> str:
    """The text between quotes, shortened where it would flood the message."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


@dataclass(frozen=True, slots=True)
class Values:
    """How the attributes of one file are read.

    Args:
        file: the file's name in the messages.
        snap: see `linkwise.model.placement.cos_sin`.
    """

    file: str
    snap: float = ANGLE_SNAP

    def fail(
        self, what: str, at: Element | int, *, got: object = None, allowed: object = None, do: object = None
    ) -> NoReturn:
        """Raise a `ModelFileError` at an element or a line."""
        line = at if isinstance(at, int) else at.line
        raise ModelFileError(what, file=self.file, line=line, got=got, allowed=allowed, do=do)

    def child(self, element: Element, tag: str) -> Element | None:
        """The one child of this tag, or None; two are an error, since it is unknown which one is meant."""
        found = element.all(tag)
        if len(found) > 1:
            self.fail(
                f"<{element.tag}> has {len(found)} <{tag}> elements", found[1], allowed="one", do="delete all but one"
            )
        return found[0] if found else None

    def required_child(self, element: Element, tag: str, *, of: str) -> Element:
        """The one child of this tag; `of` names the owner for the message."""
        found = self.child(element, tag)
        if found is None:
            self.fail(f"{of} has no <{tag}>", element, allowed=f"one <{tag}> inside <{element.tag}>")
        return found

    def text(self, element: Element, attribute: str, *, of: str) -> str:
        """An attribute that must be there and not be empty."""
        value = element.attributes.get(attribute)
        if value is None:
            self.fail(
                f"{of}: <{element.tag}> has no attribute {attribute!r}",
                element,
                got=", ".join(element.attributes)[:80] or "no attributes",
                do=f'write <{element.tag} {attribute}="..."/>',
            )
        if not value.strip():
            self.fail(f"{of}: the attribute {attribute!r} of <{element.tag}> is empty", element)
        return value

    def number(
        self, element: Element, attribute: str, default: float | None = None, *, of: str, infinite: bool = False
    ) -> float:
        """A number; without a default the attribute must be there."""
        if default is not None and attribute not in element.attributes:
            return default
        return self._number(self.text(element, attribute, of=of).strip(), element, attribute, of, infinite)

    def vector(
        self, element: Element, attribute: str, default: tuple[float, ...] | None = None, *, of: str, length: int = 3
    ) -> tuple[float, ...]:
        """Numbers with spaces between; without a default the attribute must be there."""
        if default is not None and attribute not in element.attributes:
            return default
        text = self.text(element, attribute, of=of)
        words = text.split(None, length + 1)
        if len(words) != length:
            self.fail(
                f"{of}: the attribute {attribute!r} of <{element.tag}> must be {length} numbers",
                element,
                got=shown(text),
                allowed=" ".join(["0.0"] * length),
            )
        return tuple(self._number(word, element, attribute, of, False) for word in words)

    def origin(self, element: Element, *, of: str) -> Array:
        """The 4x4 pose in the ``<origin xyz rpy>`` of an element; the identity where there is none."""
        origin = self.child(element, "origin")
        if origin is None:
            return pose()
        zero = (0.0, 0.0, 0.0)
        xyz = self.vector(origin, "xyz", zero, of=of)
        rpy = self.vector(origin, "rpy", zero, of=of)
        return pose(xyz, rotation_rpy(rpy, self.snap))

    def _number(self, text: str, element: Element, attribute: str, of: str, infinite: bool) -> float:
        allowed = "a number such as 0.5, -1 or 2.5e-3"
        if infinite:
            allowed += ", or inf"
            if _INFINITE.fullmatch(text):
                return float(text)
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            do = "write a point for the decimals" if "," in text else None
            if "$" in text:
                do = "expand the xacro file first: xacro model.urdf.xacro > model.urdf"
            self.fail(
                f"{of}: the attribute {attribute!r} of <{element.tag}> is not a {'' if infinite else 'finite '}number",
                element,
                got=shown(text),
                allowed=allowed,
                do=do,
            )
        value = float(text)
        if not infinite and abs(value) > _LARGEST:
            self.fail(
                f"{of}: the attribute {attribute!r} of <{element.tag}> is too large for any mechanism",
                element,
                got=shown(text),
                allowed=f"at most {_LARGEST:g}",
            )
        return value
