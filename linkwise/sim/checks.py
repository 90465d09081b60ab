"""What ``simulate`` was given, checked: every message says what, got, allowed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import InputError
from linkwise.sim.motion import Motion

Array = NDArray[Any]


def checked_vector(name: str, value: Any, size: int) -> Array:
    """An array (..., size) of float64."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not made of numbers", got=repr(value)[:80], allowed=f"(..., {size})") from None
    if array.ndim == 0 or array.shape[-1] != size:
        raise InputError(f"{name} has the wrong shape", got=str(array.shape), allowed=f"(..., {size})")
    return array


def checked_times(times: Any, t0: float, duration: float) -> Array | None:
    """Output times (T), increasing and inside the simulation, or None."""
    if times is None:
        return None
    array = np.array(times, float)
    slack = 1e-9 * max(1.0, duration)
    inside = array.size and array.ndim == 1 and np.isfinite(array).all()
    if not inside or (np.diff(array) <= 0).any() or array[0] < t0 - slack or array[-1] > t0 + duration + slack:
        raise InputError(
            "output_times do not fit the simulation",
            got=repr(times)[:80],
            allowed=f"increasing times from {t0:g} to {t0 + duration:g} s",
        )
    return np.asarray(np.clip(array, t0, t0 + duration))


def check_start(motion: Motion, y: Array) -> None:
    """Nothing starts beyond a joint limit: its spring would fire the joint off."""
    beyond = {
        limit.joint: limit.bound
        for limit in motion.limits
        if ((y[:, limit.q] - limit.bound) * limit.side > 1e-9 * max(1.0, abs(limit.bound))).any()
    }
    if beyond:
        raise InputError(
            "q0 is beyond joint limits",
            got=", ".join(f"{name} (limit {bound:g})" for name, bound in beyond.items()),
            allowed="model.lower <= q0 <= model.upper",
            do='start inside, or pass limits="ignore"',
        )


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """One of some words."""
    if value not in allowed:
        raise InputError(f"no such {name}", got=repr(value), allowed=", ".join(map(repr, allowed)))


def check_positive(name: str, value: Any) -> None:
    """A finite number above zero."""
    if not isinstance(value, (int, float, np.floating, np.integer)) or not 0.0 < float(value) < math.inf:
        raise InputError(f"{name} is not a positive number", got=repr(value), allowed="a finite number above 0")


def checked_threads(threads: Any) -> int:
    """A number of threads."""
    if not isinstance(threads, (int, np.integer)) or threads < 1:
        raise InputError("threads is not a positive whole number", got=repr(threads), allowed="1, 2, 3, …")
    return int(threads)
