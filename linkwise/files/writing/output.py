"""Numbers, poses and elements as text; numbers are written so that they are read again to the last bit."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.mechanism.editing.locking import locked
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.placement import quaternions_of


class Losses(list[str]):
    """Losses: things that a format could not say, each once."""

    def add(self, what: str) -> None:
        """Note a loss."""
        if what not in self:
            self.append(what)


def sayable(mechanism: Mechanism, form: str, lost: Losses) -> Mechanism:
    """The mechanism with those joints locked at zero for which a format has no words; each is noted as a loss."""
    unsaid = [joint for joint in mechanism.joints if joint.type.series() is None]
    for joint in unsaid:
        lost.add(
            f"the motion of joint {joint.name!r}: {form} cannot say how a {type(joint.type).__name__} moves, "
            "it is fixed at its zero position"
        )
    return locked(mechanism, [joint.name for joint in unsaid]) if unsaid else mechanism


def vector(numbers: Iterable[float]) -> str:
    """Numbers with spaces between."""
    return " ".join(_number(x) for x in numbers)


def _number(x: float) -> str:
    x = float(x) + 0.0
    return str(int(x)) if abs(x) < 1e15 and x == int(x) else repr(x)


def quaternion(R: ArrayLike) -> list[float]:
    """w, x, y, z of a rotation."""
    found: list[float] = quaternions_of(np.asarray(R, float)).tolist()
    return found


def depth_first(mechanism: Mechanism) -> list[int]:
    """The numbers of the bodies, one branch after the other: the order in which other programs count."""
    children: dict[int, list[int]] = {}
    for body in mechanism.bodies:
        children.setdefault(body.parent, []).append(body.index)
    order: list[int] = []
    waiting = children.get(-1, [])[::-1]
    while waiting:
        order.append(waiting.pop())
        waiting += children.get(order[-1], [])[::-1]
    return order


def element(parent: ET.Element, tag: str, **attributes: str | None) -> ET.Element:
    """A child with attributes; those that are None are left out, and ``class_`` is ``class``."""
    return ET.SubElement(parent, tag, {k.rstrip("_"): v for k, v in attributes.items() if v is not None})


def text_of(root: ET.Element) -> str:
    """The whole as text, indented."""
    ET.indent(root)
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def write_whole(path: Path, content: bytes) -> None:
    """Write a whole file or none."""
    rough = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        rough.write_bytes(content)
        rough.replace(path)
    except OSError as error:
        rough.unlink(missing_ok=True)
        raise InputError(f"the file cannot be written: {error.strerror or error}", got=str(path)) from None
