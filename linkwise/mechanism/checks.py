"""Checks of what users and files hand in, with messages that name the body."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.errors import InputError, ModelError, ModelWarning

# How far a rotation matrix may be from orthonormal: room for a file's decimals, not for a mistake.
_ROTATION_TOLERANCE = 1e-6


def checked_vector(value: Any, what: str) -> tuple[float, float, float]:
    """Three finite numbers."""
    try:
        x, y, z = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not three numbers", got=repr(value), allowed="e.g. (0, 0, 0.5)") from None
    if not all(map(math.isfinite, (x, y, z))):
        raise ModelError(f"{what} is not finite", got=repr(value), allowed="three finite numbers")
    return x, y, z


def checked_pose(value: Any, what: str) -> tuple[tuple[float, ...], ...]:
    """A 4×4 rigid transform, its rotation made orthonormal to rounding."""
    try:
        pose = np.array(value, dtype=float)
    except (TypeError, ValueError):
        pose = np.empty(0)
    if pose.shape != (4, 4) or not np.isfinite(pose).all():
        raise InputError(
            f"{what} is not a 4x4 transform",
            got=repr(value),
            allowed="4x4 finite numbers",
            do="use lw.transform(xyz=…, rpy=…)",
        )
    error = np.abs(pose[:3, :3] @ pose[:3, :3].T - np.eye(3)).max()
    if error > _ROTATION_TOLERANCE or np.linalg.det(pose[:3, :3]) < 0 or np.abs(pose[3] - (0, 0, 0, 1)).max() > 1e-12:
        raise ModelError(
            f"{what} is not a rotation and a shift",
            got=f"|R Rᵀ - 1| = {error:.1e}, det R = {np.linalg.det(pose[:3, :3]):.3g}, last row {pose[3].tolist()}",
            allowed="an orthonormal right-handed R, last row (0, 0, 0, 1)",
            do="use lw.transform(xyz=…, rpy=…)",
        )
    if error > 4e-16:
        u, _, vt = np.linalg.svd(pose[:3, :3])
        pose[:3, :3] = u @ vt
    return tuple(tuple(float(x) for x in row) for row in pose)


def checked_mass(value: Any, name: str) -> float:
    """A finite mass, not negative."""
    try:
        mass = float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"the mass of body {name!r} is not a number", got=repr(value), allowed="kilograms, >= 0"
        ) from None
    if not math.isfinite(mass) or mass < 0.0:
        raise ModelError(f"the mass of body {name!r} is not possible", got=repr(value), allowed="finite, >= 0 kg")
    return mass


def checked_inertia(value: Any, name: str, physical: bool = True) -> tuple[float, float, float, float, float, float]:
    """A 3×3 inertia about the mass centre as six numbers; a warning where no rigid body could have it."""
    try:
        I = np.array(value, dtype=float)
    except (TypeError, ValueError):
        I = np.empty(0)
    if I.shape != (3, 3):
        raise InputError(
            f"the inertia of body {name!r} is not 3x3", got=repr(value), allowed="3x3, about the mass centre, kg m²"
        )
    if not np.isfinite(I).all():
        raise ModelError(
            f"the inertia of body {name!r} is not finite", got=str(I.tolist()), allowed="3x3 finite numbers"
        )
    scale = np.abs(I).max()
    if np.abs(I - I.T).max() > 1e-6 * scale:
        raise ModelError(
            f"the inertia of body {name!r} is not symmetric", got=str(I.tolist()), allowed="a symmetric 3x3"
        )
    I = (I + I.T) / 2
    if not physical:
        return _six(I)
    moments = np.linalg.eigvalsh(I)
    if moments[0] < -1e-6 * scale:
        raise ModelError(
            f"the inertia of body {name!r} has a negative principal moment",
            got=f"principal moments {moments.tolist()}",
            allowed="three moments >= 0",
            do="check signs and axes; the inertia is about the mass centre",
        )
    if moments[2] > (moments[0] + moments[1]) * (1 + 1e-6) + 1e-14:
        warnings.warn(
            ModelWarning(
                f"the inertia of body {name!r} breaks the triangle inequality: no rigid body has it",
                got=f"principal moments {moments.tolist()}",
                allowed="each at most the sum of the other two",
                do="check the file; the numbers are used as they are",
            ),
            stacklevel=3,
        )
    return _six(I)


def _six(I: Any) -> tuple[float, float, float, float, float, float]:
    return (float(I[0, 0]), float(I[1, 1]), float(I[2, 2]), float(I[0, 1]), float(I[0, 2]), float(I[1, 2]))


def per_freedom(value: Any, n: int, what: str) -> tuple[float, ...]:
    """One number for each freedom of a joint, from one number or n."""
    try:
        values: Sequence[float] = np.broadcast_to(np.asarray(value, float), (n,)).tolist()
    except (TypeError, ValueError):
        raise InputError(f"{what} has the wrong length", got=repr(value), allowed=f"one number or {n}") from None
    if not all(math.isfinite(x) and x >= 0.0 for x in values):
        raise ModelError(f"{what} must be finite and not negative", got=repr(value), allowed="numbers >= 0")
    return tuple(values)
