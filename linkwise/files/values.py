"""Attributes and texts to names, numbers and poses; every complaint has the file, the line and the text as written.

Numbers are read by the grammar of the files, not by Python's: ``float`` would accept ``1_000``, digits of other
scripts and ``nan``, and a file with those is a mistake that should be seen. Colours alone say nothing about the
mechanics: what cannot be read as a colour is none, in silence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NoReturn

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass
from linkwise.errors import ModelFileError
from linkwise.files.xml import XmlElement
from linkwise.mechanism.placement import ANGLE_SNAP, pose, rotation_rpy

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
"""A finite number as files write it."""
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.ASCII | re.IGNORECASE)
_LARGEST = 1e30
_UNLIMITED = 1e15  # files say "no limit" by 1e16, by 1e30 and by the largest double
_LONGEST = 400
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def bound(x: float) -> float:
    """A limit that a file has; infinite where it is beyond all mechanisms."""
    return math.copysign(math.inf, x) if abs(x) >= _UNLIMITED else x


def shown(text: str) -> str:
    """The text between quotes, shortened where it would flood the message."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def one_long(xyz: Sequence[float]) -> tuple[float, float, float]:
    """A vector that is not zero, made one long; however small or large it is."""
    largest = max(map(abs, xyz))
    x, y, z = (part / largest for part in xyz)
    length = math.sqrt(x * x + y * y + z * z)
    return (x / length + 0.0, y / length + 0.0, z / length + 0.0)


@dataclass(frozen=True, slots=True)
class Attributes:
    """Reader of the attributes of one file.

    Args:
        file: the file's name in the messages.
        snap: see `linkwise.mechanism.placement.cos_sin`.
    """

    file: str
    snap: float = ANGLE_SNAP

    def fail(
        self, what: str, at: XmlElement | int, *, got: object = None, allowed: object = None, do: object = None
    ) -> NoReturn:
        """Raise a `ModelFileError` at an element or a line."""
        line = at if isinstance(at, int) else at.line
        raise ModelFileError(what, file=self.file, line=line, got=got, allowed=allowed, do=do)

    def sizes(self, at: XmlElement, *numbers: float, of: str) -> tuple[float, ...]:
        """Sizes of a shape, none of which is negative."""
        if min(numbers) < 0.0:
            got = " ".join(f"{x:g}" for x in numbers)
            self.fail(f"the <{at.tag}> of the {of} has a negative size", at, got=got, allowed="0 m or more")
        return numbers

    def child(self, element: XmlElement, tag: str) -> XmlElement | None:
        """The one child of this tag, or None; two are an error, since it is unknown which one is meant."""
        found = element.all(tag)
        if len(found) > 1:
            self.fail(
                f"<{element.tag}> has {len(found)} <{tag}> elements", found[1], allowed="one", do="delete all but one"
            )
        return found[0] if found else None

    def required_child(self, element: XmlElement, tag: str, *, of: str) -> XmlElement:
        """The one child of this tag; `of` names the owner for the message."""
        found = self.child(element, tag)
        if found is None:
            self.fail(f"{of} has no <{tag}>", element, allowed=f"one <{tag}> inside <{element.tag}>")
        return found

    def text(self, element: XmlElement, attribute: str, *, of: str) -> str:
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
        self, element: XmlElement, attribute: str, default: float | None = None, *, of: str, infinite: bool = False
    ) -> float:
        """A number; without a default the attribute must be there."""
        if default is not None and attribute not in element.attributes:
            return default
        what = f"the attribute {attribute!r} of <{element.tag}>"
        return self._number(self.text(element, attribute, of=of).strip(), element, what, of, infinite)

    def vector(
        self, element: XmlElement, attribute: str, default: tuple[float, ...] | None = None, *, of: str
    ) -> tuple[float, ...]:
        """Three numbers with spaces between; without a default the attribute must be there."""
        if default is not None and attribute not in element.attributes:
            return default
        what = f"the attribute {attribute!r} of <{element.tag}>"
        return self._numbers(self.text(element, attribute, of=of), element, what, of, 3)

    def direction(self, xyz: Sequence[float], at: XmlElement, *, of: str, do: str) -> tuple[float, float, float]:
        """A vector made one long; a zero one is an error."""
        if not any(xyz):
            self.fail(f"{of} has a zero axis", at, got="0 0 0", allowed="any other vector", do=do)
        return one_long(xyz)

    def origin(self, element: XmlElement, *, of: str) -> FloatArray:
        """The 4x4 pose in the ``<origin xyz rpy>`` of an element; the identity where there is none."""
        origin = self.child(element, "origin")
        if origin is None:
            return pose()
        zero = (0.0, 0.0, 0.0)
        xyz = self.vector(origin, "xyz", zero, of=of)
        rpy = self.vector(origin, "rpy", zero, of=of)
        return pose(xyz, rotation_rpy(rpy, self.snap))

    def content(self, element: XmlElement, *, of: str) -> str:
        """The text inside an element, which must be there."""
        if not element.text:
            self.fail(f"{of}: <{element.tag}> is empty", element, do=f"write <{element.tag}>...</{element.tag}>")
        return element.text

    def child_number(
        self, parent: XmlElement, tag: str, default: float | None = None, *, of: str, infinite: bool = False
    ) -> float:
        """The number inside the one child of this tag; without a default the child must be there."""
        element = self.child(parent, tag) if default is not None else self.required_child(parent, tag, of=of)
        if element is None:
            assert default is not None  # or the child was required
            return default
        return self._number(self.content(element, of=of), element, f"<{tag}>", of, infinite)

    def content_vector(self, element: XmlElement, *, of: str, length: int = 3) -> tuple[float, ...]:
        """The numbers inside an element, with spaces between."""
        return self._numbers(self.content(element, of=of), element, f"<{element.tag}>", of, length)

    def child_flag(self, parent: XmlElement, tag: str, default: bool, *, of: str) -> bool:
        """The yes or no inside the one child of this tag."""
        element = self.child(parent, tag)
        if element is None:
            return default
        return self.flag(self.content(element, of=of), element, f"<{tag}>", of=of)

    def flag(self, text: str, element: XmlElement, what: str, *, of: str) -> bool:
        """Yes or no; `what` names the text for the message."""
        word = text.strip().lower()
        if word not in _FLAGS:
            self.fail(f"{of}: {what} is neither yes nor no", element, got=shown(text), allowed="true, false, 1 or 0")
        return _FLAGS[word]

    def _numbers(self, text: str, element: XmlElement, what: str, of: str, length: int) -> tuple[float, ...]:
        words = text.split(None, length + 1)
        if len(words) != length:
            self.fail(
                f"{of}: {what} must be {length} numbers",
                element,
                got=shown(text),
                allowed=" ".join(["0.0"] * length),
            )
        return tuple(self._number(word, element, what, of, False) for word in words)

    def _number(self, text: str, element: XmlElement, what: str, of: str, infinite: bool) -> float:
        allowed = "a number such as 0.5, -1 or 2.5e-3"
        if infinite:
            allowed += ", or inf"
            if _INFINITE.fullmatch(text):
                return float(text)
        if len(text) > _LONGEST or not NUMBER.fullmatch(text):
            do = "write a point for the decimals" if "," in text else None
            if "$" in text:
                do = "name the file .xacro and use load(..., arguments={}), or expand the xacro file first"
            self.fail(
                f"{of}: {what} is not a {'' if infinite else 'finite '}number",
                element,
                got=shown(text),
                allowed=allowed,
                do=do,
            )
        value = float(text)
        if not infinite and abs(value) > _LARGEST:
            self.fail(
                f"{of}: {what} is too large for any mechanism",
                element,
                got=shown(text),
                allowed=f"at most {_LARGEST:g}",
            )
        return value


RGBA = tuple[float, float, float, float]


def rgba(text: str) -> RGBA | None:
    """Three or four numbers from 0 to 1."""
    try:
        numbers = [float(each) for each in text.split()]
    except ValueError:
        return None
    if len(numbers) not in (3, 4) or not all(map(math.isfinite, numbers)):
        return None
    r, g, b, a = (min(max(x, 0.0), 1.0) for x in (*numbers, 1.0)[:4])
    return r, g, b, a


def named_colours(root: XmlElement) -> dict[str, RGBA]:
    """The colours of the materials in a URDF file, wherever they are defined."""
    found: dict[str, RGBA] = {}
    for material in (element for element in root.walk() if element.tag == "material"):
        for colour in material.all("color"):
            value = rgba(colour.attributes.get("rgba", ""))
            if value is not None:
                found.setdefault(material.attributes.get("name", ""), value)
    return found


def urdf_colour(visual: XmlElement, named: dict[str, RGBA]) -> RGBA | None:
    """That of the material of a ``<visual>``: its own, or the one that its name stands for."""
    for material in visual.all("material"):
        own = [rgba(colour.attributes.get("rgba", "")) for colour in material.all("color")]
        return own[0] if own else named.get(material.attributes.get("name", ""))
    return None


def sdf_colour(visual: XmlElement) -> RGBA | None:
    """The diffuse colour of the material of a ``<visual>``."""
    return next((rgba(each.text) for material in visual.all("material") for each in material.all("diffuse")), None)
