"""Numbers, poses and elements as text; numbers are written so that they are read again to the last bit."""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.errors import InputError

__all__ = ["Losses", "element", "quaternion", "rpy", "text_of", "vector", "write_text"]

Array = np.ndarray[Any, np.dtype[np.float64]]


class Losses(list[str]):
    """What a format could not say, each once."""

    def add(self, what: str) -> None:
        """Note a loss."""
        if what not in self:
            self.append(what)


def vector(numbers: Iterable[float]) -> str:
    """Numbers with spaces between."""
    return " ".join(_number(x) for x in numbers)


def _number(x: float) -> str:
    x = float(x) + 0.0
    return str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x) if math.isfinite(x) else str(x)


def rpy(R: Any) -> tuple[float, float, float]:
    """Roll, pitch and yaw of a rotation: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = np.asarray(R)
    level = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], level)
    if level > 1e-9:
        return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])
    # Looking straight up or down, roll and yaw turn about one line: all of it is given to the roll.
    return math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0


def quaternion(R: Any) -> tuple[float, float, float, float]:
    """w, x, y, z of a rotation, by the largest of the four."""
    R = np.asarray(R)
    four = [
        1 + R[0, 0] + R[1, 1] + R[2, 2],
        1 + R[0, 0] - R[1, 1] - R[2, 2],
        1 - R[0, 0] + R[1, 1] - R[2, 2],
        1 - R[0, 0] - R[1, 1] + R[2, 2],
    ]
    k = int(np.argmax(four))
    rows = [
        (four[0], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]),
        (R[2, 1] - R[1, 2], four[1], R[1, 0] + R[0, 1], R[0, 2] + R[2, 0]),
        (R[0, 2] - R[2, 0], R[1, 0] + R[0, 1], four[2], R[2, 1] + R[1, 2]),
        (R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[2, 1] + R[1, 2], four[3]),
    ]
    w, x, y, z = np.array(rows[k]) / np.linalg.norm(rows[k])
    return float(w), float(x), float(y), float(z)


def element(parent: ET.Element, tag: str, **attributes: str | None) -> ET.Element:
    """A child with attributes; those that are None are left out, and ``class_`` is ``class``."""
    return ET.SubElement(parent, tag, {k.rstrip("_"): v for k, v in attributes.items() if v is not None})


def text_of(root: ET.Element) -> str:
    """The whole as text, indented."""
    ET.indent(root)
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"the file cannot be written: {error.strerror or error}", got=str(path)) from None
