"""4×4 poses from the numbers people write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.model.checks import checked_vector


def transform(xyz: Sequence[float] = (0.0, 0.0, 0.0), rpy: Sequence[float] = (0.0, 0.0, 0.0)) -> NDArray[Any]:
    """The 4×4 pose at ``xyz`` (m) with R = Rz(yaw) Ry(pitch) Rx(roll), ``rpy`` = (roll, pitch, yaw) in rad."""
    roll, pitch, yaw = checked_vector(rpy, "rpy")
    (cr, sr), (cp, sp), (cy, sy) = (_cos_sin(angle) for angle in (roll, pitch, yaw))
    T = np.eye(4)
    T[:3, :3] = (
        (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
        (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
        (-sp, cp * sr, cp * cr),
    )
    T[:3, 3] = checked_vector(xyz, "xyz")
    return T


def _cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine, exact at the multiples of π/2 that a float can name (within an ulp or two)."""
    quarters = round(angle / (math.pi / 2))
    if abs(angle - quarters * (math.pi / 2)) <= 4e-16 * max(1.0, abs(angle)):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]
    return math.cos(angle), math.sin(angle)
