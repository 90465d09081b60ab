"""Checks of many bodies at once: the same rules as :mod:`linkwise.mechanism.checks`, the first offender named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.errors import InputError
from linkwise.mechanism.checks import checked_inertia, checked_mass, checked_pose, checked_vector, per_freedom

Array = Any


def for_each(value: Any, n: int, core: tuple[int, ...], what: str) -> Array:
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


def checked_masses(value: Any, names: Sequence[str]) -> list[float]:
    """Finite masses, not negative."""
    masses = for_each(value, len(names), (), "masses")
    _refuse(~(np.isfinite(masses) & (masses >= 0.0)), lambda k: checked_mass(masses[k], names[k]))
    return list(masses.tolist())


def checked_vectors(value: Any, names: Sequence[str], what: str) -> list[tuple[float, float, float]]:
    """Three finite numbers for each body."""
    vectors = for_each(value, len(names), (3,), f"{what}s")
    _refuse(~np.isfinite(vectors).all(axis=1), lambda k: checked_vector(vectors[k].tolist(), f"{what} of {names[k]!r}"))
    return list(map(tuple, vectors.tolist()))


def checked_inertias(value: Any, names: Sequence[str], physical: bool) -> list[tuple[float, ...]]:
    """3×3 inertias about the mass centres as six numbers each; warnings where no rigid body could have them."""
    I = for_each(value, len(names), (3, 3), "inertias")
    scale = np.abs(I).max(axis=(1, 2), initial=0.0)
    transposed = I.transpose(0, 2, 1)
    odd = ~np.isfinite(I).all(axis=(1, 2))
    with np.errstate(invalid="ignore"):
        odd |= np.abs(I - transposed).max(axis=(1, 2), initial=0.0) > 1e-6 * scale
    I = (I + transposed) / 2
    if physical:
        distinct, which = (I[:1], np.zeros(len(I), int)) if _all_alike(I) else (I, np.arange(len(I)))
        moments = np.linalg.eigvalsh(np.where(np.isfinite(distinct), distinct, 0.0))[which]
        odd |= moments[:, 0] < -1e-6 * scale
        odd |= moments[:, 2] > (moments[:, 0] + moments[:, 1]) * (1 + 1e-6) + 1e-14
    rows = for_each(value, len(names), (3, 3), "inertias")
    _refuse(odd, lambda k: checked_inertia(rows[k], names[k], physical))
    return list(map(tuple, I[:, (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)].tolist()))


def checked_poses(value: Any, names: Sequence[str], what: str) -> list[tuple[tuple[float, ...], ...]]:
    """4×4 rigid transforms, their rotations made orthonormal to rounding."""
    X = np.array(for_each(value, len(names), (4, 4), f"{what}s"))
    rotation = np.nan_to_num(X[:, :3, :3])
    error = np.abs(rotation @ rotation.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0)
    sound = np.isfinite(X).all(axis=(1, 2)) & (np.linalg.det(rotation) > 0) & (X[:, 3] == (0, 0, 0, 1)).all(axis=1)
    near = np.flatnonzero(sound & (error > 4e-16) & (error < 1e-9))  # the others, if any, take the way for one pose
    u, _, vt = np.linalg.svd(rotation[near])
    X[near, :3, :3] = u @ vt
    rows = map(tuple, X.reshape(-1, 4).tolist())
    found: list[Any] = list(zip(rows, rows, rows, rows, strict=True))
    for k in np.flatnonzero(~sound | (error >= 1e-9)).tolist():
        found[k] = checked_pose(X[k], f"{what} of body {names[k]!r}")
    return found


def for_each_freedom(value: Any, names: Sequence[str], counts: Sequence[int], what: str) -> list[tuple[float, ...]]:
    """For each joint as many finite numbers, not negative, as it has freedoms."""
    n = len(names)
    if np.shape(value) == ():
        one = {count: per_freedom(value, count, what) for count in set(counts)}
        return [one[count] for count in counts]
    if len(value) != n:
        raise InputError(f"{what} does not fit {n} joints", got=f"{len(value)}", allowed=f"one number, or {n}")
    return [per_freedom(x, k, f"{what} of {name!r}") for x, k, name in zip(value, counts, names, strict=True)]


def _all_alike(rows: Array) -> bool:
    return len(rows) > 0 and bool((rows == rows[0]).all())


def _refuse(wrong: Array, check: Callable[[int], Any]) -> None:
    """Let the check for one body say what is wrong with each of these: an error, or a warning."""
    for k in np.flatnonzero(wrong).tolist():
        check(k)
