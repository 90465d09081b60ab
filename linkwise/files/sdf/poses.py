"""The text of a pose to a matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.files.values import Values, shown
from linkwise.files.xml import Element
from linkwise.mechanism.placement import pose, rotation_rpy

__all__ = ["PoseWritten", "read_pose", "tidied"]

_ROUNDING = 1e-15  # what products of poses leave of an exact zero or one


@dataclass(frozen=True, slots=True, eq=False)
class PoseWritten:
    """A pose, and the name of the frame it is relative to; empty where the file does not say."""

    X: FloatArray
    relative_to: str = ""


def read_pose(element: Element, values: Values, *, of: str) -> PoseWritten:
    """The ``<pose>`` of an element; the identity where there is none, or nothing in it."""
    at = values.child(element, "pose")
    if at is None:
        return PoseWritten(pose())
    of = f"the pose of {of}"
    # Versions 1.5 and 1.6 wrote "frame" and left its meaning open; 1.7 gave it one, and another name.
    relative_to = at.attributes.get("relative_to", at.attributes.get("frame", "")).strip()
    if not at.text:
        return PoseWritten(pose(), relative_to)
    form = at.attributes.get("rotation_format", "euler_rpy").strip()
    if form not in ("euler_rpy", "quat_xyzw"):
        values.fail(f"{of}: the rotation_format is unknown", at, got=shown(form), allowed="euler_rpy, quat_xyzw")
    degrees = values.flag(at.attributes.get("degrees", "false"), at, "the attribute 'degrees'", of=of)
    if form == "quat_xyzw":
        if degrees:
            values.fail(f"{of} is a quaternion in degrees", at, do="delete one of the two attributes")
        numbers = values.content_vector(at, of=of, length=7)
        return PoseWritten(pose(numbers[:3], _from_quaternion(numbers[3:], at, values, of)), relative_to)
    numbers = values.content_vector(at, of=of, length=6)
    angles = [math.radians(angle) for angle in numbers[3:]] if degrees else numbers[3:]
    return PoseWritten(pose(numbers[:3], rotation_rpy(angles, values.snap)), relative_to)


def tidied(X: FloatArray, size: float) -> FloatArray:
    """The same without the rounding of products: exact zeros and ones cost nothing later. `size`: of what was added."""
    R, p = X[:3, :3], X[:3, 3]
    R = np.where(abs(R) < _ROUNDING, 0.0, R)
    R = np.where(abs(abs(R) - 1.0) < _ROUNDING, np.sign(R), R)
    return pose(np.where(abs(p) < _ROUNDING * (1.0 + size), 0.0, p).tolist(), R)


def _from_quaternion(numbers: tuple[float, ...], at: Element, values: Values, of: str) -> FloatArray:
    largest = max(map(abs, numbers))
    if largest == 0.0:
        values.fail(f"{of} has a zero quaternion", at, got="0 0 0 0", allowed="x y z w, not all zero")
    x, y, z, w = (number / largest for number in numbers)
    n = math.sqrt(x * x + y * y + z * z + w * w)
    x, y, z, w = x / n, y / n, z / n, w / n
    R = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(R)
