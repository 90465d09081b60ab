"""Checks of what users and files hand in, with messages that name the body; of one, and of many at once from arrays.

The rules for poses and inertias are written for arrays, and one is an array of one. Numbers and vectors of one body are
looked at singly, in less than 1 µs where an array of one takes 30; of many, an array finds those that are wrong.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError, InputWarning, ModelError, ModelWarning, message
from linkwise.mechanism.bodies_and_joints import IDENTITY, Pose

# How far a rotation matrix may be from orthonormal: room for a file's decimals, not for a mistake.
_ROTATION_TOLERANCE = 1e-6

_UNIT = np.eye(4)
_SIX = np.array((0, 4, 8, 1, 2, 5))  # xx, yy, zz, xy, xz, yz among the nine

Three = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]


LEAST_DEGREES = 15.0
"""The smallest angle that is taken for one in degrees."""


def warn_of_degrees(what: str, angles: Iterable[float], callers: int) -> bool:
    """Warn the caller, so many functions up, of angles that were certainly not meant in rad: 45, 90, -120.

    Not of 7.5, 10 or 100, which joints that turn and turn may have. Returns whether there was something to warn of.
    """
    odd = [x for x in angles if LEAST_DEGREES <= abs(x) <= 720.0 and x % 5.0 == 0.0 and abs(x) != 100.0]
    if odd:
        told = message(
            f"{what} looks like degrees",
            got=", ".join(f"{x:g}" for x in odd[:6]),
            allowed="angles in rad",
            do="np.radians(...)",
        )
        warnings.warn(told, InputWarning, stacklevel=callers + 1)
    return bool(odd)


def checked_vector(value: Iterable[SupportsFloat], what: str) -> Three:
    """Three finite numbers."""
    try:
        x, y, z = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not three numbers", got=repr(value), allowed="e.g. (0, 0, 0.5)") from None
    if not all(map(math.isfinite, (x, y, z))):
        raise ModelError(f"{what} is not finite", got=repr(value), allowed="three finite numbers")
    return x, y, z


def checked_vectors(value: ArrayLike, names: Sequence[str], what: str) -> list[Three]:
    """Three finite numbers for each body."""
    vectors = for_each(value, len(names), (3,), f"{what}s")
    for k in _places(~np.isfinite(vectors)):
        checked_vector(vectors[k].tolist(), f"{what} of {names[k]!r}")
    return list(zip(*vectors.T.tolist(), strict=True))


def checked_mass(value: SupportsFloat, name: str) -> float:
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


def checked_masses(value: ArrayLike, names: Sequence[str]) -> list[float]:
    """Finite masses, not negative, one for each body."""
    masses = for_each(value, len(names), (), "masses")
    for k in _places(~(np.isfinite(masses) & (masses >= 0.0))):
        checked_mass(masses[k], names[k])
    return list(masses.tolist())


def checked_pose(value: ArrayLike, what: str) -> Pose:
    """A 4×4 rigid transform, its rotation made orthonormal to rounding."""
    pose = _numbers(value, (4, 4))
    if pose is None:
        raise _no_transform(what, value)
    return _orthonormal(pose[None], lambda k: what)[0]


def checked_poses(value: ArrayLike, names: Sequence[str], what: str) -> list[Pose]:
    """4×4 rigid transforms, one for each body, their rotations made orthonormal to rounding."""
    poses = for_each(value, len(names), (4, 4), f"{what}s")
    return _orthonormal(np.array(poses), lambda k: f"{what} of body {names[k]!r}")


def _orthonormal(X: Array, what: Callable[[int], str]) -> list[Pose]:
    """Poses (n, 4, 4) as rows, changed in place where rounding has left a rotation not quite one."""
    for k in _places(~np.isfinite(X)):
        raise _no_transform(what(k), X[k].tolist())
    R = X[:, :3, :3]
    error = np.abs(R @ R.transpose(0, 2, 1) - _UNIT[:3, :3]).max(axis=(1, 2), initial=0.0)
    odd = (error > _ROTATION_TOLERANCE) | (np.linalg.det(R) < 0)
    last = X[:, 3] - _UNIT[3]
    if last.any():
        odd |= np.abs(last).max(axis=1) > 1e-12
    for k in _places(odd):
        raise ModelError(
            f"{what(k)} is not a rotation and a shift",
            got=f"|R Rᵀ - 1| = {error[k]:.1e}, det R = {np.linalg.det(R[k]):.3g}, last row {X[k, 3].tolist()}",
            allowed="an orthonormal right-handed R, last row (0, 0, 0, 1)",
            do="use lw.transform(xyz=…, rpy=…)",
        )
    near = _places(error > 4e-16)
    if near:
        u, _, vt = np.linalg.svd(R[near])
        X[near, :3, :3] = u @ vt
    rows = (zip(*row, strict=True) for row in X[:, :3].transpose(1, 2, 0).tolist())
    return list(zip(*rows, repeat(IDENTITY[3], len(X)), strict=True))


def _no_transform(what: str, value: object) -> InputError:
    allowed, do = "4x4 finite numbers", "use lw.transform(xyz=…, rpy=…)"
    return InputError(f"{what} is not a 4x4 transform", got=repr(value), allowed=allowed, do=do)


def checked_inertia(value: ArrayLike, name: str, physical: bool = True) -> Six:
    """A 3×3 inertia about the mass centre as six numbers; a warning where no rigid body could have it."""
    inertia = _numbers(value, (3, 3))
    if inertia is None:
        raise InputError(
            f"the inertia of body {name!r} is not 3x3", got=repr(value), allowed="3x3, about the mass centre, kg m²"
        )
    return _symmetric(inertia[None], (name,), physical, 5)[0]


def checked_inertias(value: ArrayLike, names: Sequence[str], physical: bool) -> list[Six]:
    """3×3 inertias about the mass centres as six numbers each; warnings where no rigid body could have them."""
    given = for_each(value, len(names), (3, 3), "inertias")
    alike = np.ndim(value) == 2  # one for all, which all share
    return _symmetric(given[:1] if alike else given, names, physical, 6) * (len(names) if alike else 1)


def _symmetric(I: Array, names: Sequence[str], physical: bool, callers: int) -> list[Six]:
    """Inertias (n, 3, 3) as six numbers each; a warning points at the code so many calls above its own."""
    transposed = I.transpose(0, 2, 1)
    with np.errstate(invalid="ignore"):
        skew = I - transposed
    if skew.any():  # or not finite
        for k in _places(~np.isfinite(I)):
            raise ModelError(
                f"the inertia of body {names[k]!r} is not finite", got=str(I[k].tolist()), allowed="3x3 finite numbers"
            )
        for k in _places(np.abs(skew) > 1e-6 * _largest(I)):
            raise ModelError(
                f"the inertia of body {names[k]!r} is not symmetric", got=str(I[k].tolist()), allowed="a symmetric 3x3"
            )
        I = (I + transposed) / 2
    if physical:
        _check_moments(I, names, callers)
    return list(zip(*I.reshape(-1, 9).T[_SIX].tolist(), strict=True))


def _check_moments(I: Array, names: Sequence[str], callers: int) -> None:
    """Refuse a negative principal moment, warn of moments that no body has."""
    alike = len(I) > 1 and bool((I[0] == I).all())
    moments = np.linalg.eigvalsh(I[:1] if alike else I)
    moments = np.broadcast_to(moments, (len(I), 3)) if alike else moments
    least, middle, most = moments[:, 0], moments[:, 1], moments[:, 2]
    for k in _places(least < -1e-6 * _largest(I)[:, 0, 0]) if (least < 0.0).any() else ():
        raise ModelError(
            f"the inertia of body {names[k]!r} has a negative principal moment",
            got=f"principal moments {moments[k].tolist()}",
            allowed="three moments >= 0",
            do="check signs and axes; the inertia is about the mass centre",
        )
    for k in _places(most > (least + middle) * (1 + 1e-6) + 1e-14):
        warnings.warn(
            ModelWarning(
                f"the inertia of body {names[k]!r} breaks the triangle inequality: no rigid body has it",
                got=f"principal moments {moments[k].tolist()}",
                allowed="each at most the sum of the other two",
                do="check the file; the numbers are used as they are",
            ),
            stacklevel=callers,
        )


def per_freedom(value: ArrayLike, n: int, what: str) -> tuple[float, ...]:
    """One number for each freedom of a joint, from one number or n."""
    try:
        values: Sequence[float] = np.broadcast_to(np.asarray(value, float), (n,)).tolist()
    except (TypeError, ValueError):
        raise InputError(f"{what} has the wrong length", got=repr(value), allowed=f"one number or {n}") from None
    if not all(math.isfinite(x) and x >= 0.0 for x in values):
        raise ModelError(f"{what} must be finite and not negative", got=repr(value), allowed="numbers >= 0")
    return tuple(values)


def for_each_freedom(value: Any, names: Sequence[str], counts: Sequence[int], what: str) -> list[tuple[float, ...]]:
    """For each joint as many finite numbers, not negative, as it has freedoms."""
    n = len(names)
    if np.shape(value) == ():
        one = {count: per_freedom(value, count, what) for count in set(counts)}
        return [one[count] for count in counts]
    if len(value) != n:
        raise InputError(f"{what} does not fit {n} joints", got=f"{len(value)}", allowed=f"one number, or {n}")
    return [per_freedom(x, k, f"{what} of {name!r}") for x, k, name in zip(value, counts, names, strict=True)]


def for_each(value: ArrayLike, n: int, core: tuple[int, ...], what: str) -> Array:
    """(n, *core) from one for all or one for each."""
    try:
        array = np.asarray(value, float)
        if array.shape not in (core, (n, *core)):
            raise ValueError
    except (TypeError, ValueError):
        got = str(np.shape(value)) if isinstance(value, np.ndarray) else repr(value)[:80]
        shape = "x".join(map(str, core)) or "one number"
        raise InputError(
            f"{what} do not fit {n} bodies", got=got, allowed=f"{shape} for all, or an array of {n} of them"
        ) from None
    return np.broadcast_to(array, (n, *core))


def _numbers(value: ArrayLike, shape: tuple[int, ...]) -> Array | None:
    """A new array of this shape; None if the value is none."""
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    return array if array.shape == shape else None


def _largest(X: Array) -> Array:
    """The largest size of an entry of each matrix, (n, 1, 1)."""
    largest: Array = np.abs(X).max(axis=(1, 2), initial=0.0, keepdims=True)
    return largest


def _places(odd: Array) -> list[int]:
    """The bodies of whose numbers some are odd; of most checks, none."""
    if not odd.any():
        return []
    found: list[int] = np.unique(np.nonzero(odd)[0]).tolist()
    return found
