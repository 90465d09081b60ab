"""SciPy's rotations and quaternions with w first; SciPy takes that order itself from 1.14 on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation


def from_wxyz(quaternion: ArrayLike) -> Rotation:
    """Of quaternions (..., 4)."""
    return Rotation.from_quat(np.roll(np.asarray(quaternion, float), -1, axis=-1))


def as_wxyz(rotation: Rotation) -> NDArray[Any]:
    """Quaternions (..., 4)."""
    return np.roll(np.asarray(rotation.as_quat()), 1, axis=-1)
