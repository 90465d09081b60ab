"""Checks of what ``simulate`` was given: every message says what, got, allowed."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linkwise.array_types import Array
from linkwise.errors import SOUGHT_ARGUMENTS, InputError, InputWarning, message
from linkwise.mechanism.checks import LEAST_DEGREES, warn_of_degrees

if TYPE_CHECKING:
    from linkwise.model.model import Model
    from linkwise.sim.motion import Motion
    from linkwise.sim.setup import Options


_LONG = 1e-6
"""Difference of a quaternion's length from one that is no rounding."""
_LOOKED_AT = 100
"""States of a batch in which degrees are looked for."""
_LEAST_RTOL = 1e-14
_SINGLE = 2.0**29  # of float64's spacing is that of float32
_INSTANTS = 1000  # different times that an adaptive run must be able to tell


def checked_vector(name: str, value: ArrayLike, size: int, or_more: bool = False) -> Array:
    """An array (..., size) of float64; with ``or_more`` the last axis may be longer."""
    try:
        if np.iscomplexobj(value) or np.ma.isMaskedArray(value):
            raise TypeError
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} is not made of real numbers", got=repr(value)[:80], allowed=f"(..., {size})"
        ) from None
    if array.ndim == 0 or (array.shape[-1] < size if or_more else array.shape[-1] != size):
        raise InputError(
            f"{name} has the wrong shape",
            got=str(array.shape),
            allowed=f"(..., n) with n at least {size}, the model's" if or_more else f"(..., {size})",
        )
    return array


def check_arguments(function: Callable[..., object], given: Iterable[str], options: Iterable[str]) -> None:
    """Refuse arguments that are none of a function's options, with what is meant instead, or the nearest that it has.

    Raises:
        TypeError: there is one, as Python itself would say.
    """
    for name in set(given).difference(options):
        own = [each.name for each in inspect.signature(function).parameters.values() if each.kind != each.VAR_KEYWORD]
        known = [*own, *options]
        near = get_close_matches(name, known, n=3)
        raise TypeError(
            message(
                f"{function.__name__} has no argument {name!r}",
                allowed=", ".join(known),
                do=SOUGHT_ARGUMENTS.get(name) or (f"did you mean {' or '.join(near)}?" if near else None),
            )
        )


def warn_of_start(model: Model, q: Array) -> None:
    """Warn whoever simulates of angles that look like degrees, and of quaternions that are made shorter or longer."""
    warn_of_angles("q0", model, q, callers=3)
    for joint in model._independent if model.nq > model.nv else ():
        own = q[..., joint.q_slice]
        if joint.nq == joint.nv + 1:  # a ball, alone or in a free joint: the quaternion comes first
            off = np.abs(np.linalg.norm(own[..., :4], axis=-1) - 1.0)
            if off.max(initial=0.0) > _LONG:
                told = message(
                    f"q0 of joint {joint.name!r} has a quaternion that is not of length one; its direction counts",
                    allowed=f"w² + x² + y² + z² = 1 to within {_LONG:g}",
                    do="q / np.linalg.norm(q); is the order w, x, y, z?",
                )
                warnings.warn(told, InputWarning, stacklevel=3)


def warn_of_angles(what: str, model: Model, q: Array, callers: int) -> None:
    """One warning where coordinates (..., nq) of hinges look like degrees, with the first of them."""
    if not (np.abs(q) >= LEAST_DEGREES).any():
        return
    for joint in model._independent:
        angles = q[..., joint.q_slice].reshape(-1)[:_LOOKED_AT].tolist()
        if joint.type.turns and warn_of_degrees(f"{what} of joint {joint.name!r}", angles, callers=callers + 1):
            return


def checked_times(times: ArrayLike | None, t0: float, duration: float) -> Array | None:
    """Output times (T), increasing and inside the simulation, or None."""
    if times is None:
        return None
    try:
        array = np.array(times, float)
    except (TypeError, ValueError):
        array = np.empty(0)
    slack = 1e-9 * max(1.0, duration)
    inside = array.size and array.ndim == 1 and np.isfinite(array).all()
    if not inside or (np.diff(array) <= 0).any() or array[0] < t0 - slack or array[-1] > t0 + duration + slack:
        raise InputError(
            "output_times do not fit the simulation",
            got=repr(times)[:80],
            allowed=f"(T,), increasing, from {t0:g} to {t0 + duration:g} s",
            do="np.linspace(t0, t0 + duration, n), or np.unique of the times you have",
        )
    return np.asarray(np.clip(array, t0, t0 + duration))


def check_start(motion: Motion, y: Array) -> None:
    """Nothing starts beyond a joint limit: its spring would fire the joint off."""
    beyond = {limit.joint.name: limit.bound for limit in motion.all_limits.exceeded(y)}
    if beyond:
        raise InputError(
            "q0 is beyond joint limits",
            got=", ".join(f"{name} (limit {bound:g})" for name, bound in beyond.items()),
            allowed="model.limits.lower <= q0 <= model.limits.upper",
            do='start inside, or pass limits="ignore" (--limits ignore)',
        )


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """One of some words."""
    if value not in allowed:
        raise InputError(f"no such {name}", got=repr(value), allowed=", ".join(map(repr, allowed)))


def check_positive(**given: object) -> None:
    """Finite numbers above zero, by their names."""
    for name, value in given.items():
        if not _is_real(value) or not 0.0 < float(value) < math.inf:
            raise InputError(f"{name} is not a positive number", got=repr(value), allowed="a finite number above 0")


def check_not_negative(*, or_infinite: bool = False, **given: object) -> None:
    """Numbers of at least zero, by their names."""
    for name, value in given.items():
        if not _is_real(value) or not float(value) >= 0.0 or (math.isinf(value) and not or_infinite):
            allowed = "a number >= 0, or inf" if or_infinite else "a finite number >= 0"
            raise InputError(f"{name} is not zero or a positive number", got=repr(value), allowed=allowed)


def check_count(**given: object) -> None:
    """Whole numbers of at least one, by their names."""
    for name, value in given.items():
        if not _is_real(value) or not 1 <= value < math.inf or int(value) != value:
            raise InputError(f"{name} is not a positive whole number", got=repr(value), allowed="1, 2, 3, …")


def check_finite(**given: object) -> None:
    """Finite numbers, by their names."""
    for name, value in given.items():
        if not _is_real(value) or not math.isfinite(value):
            raise InputError(f"{name} is not a finite number", got=repr(value), allowed="a number")


def checked_target(path: str | PathLike[str]) -> Path:
    """Path of a file to be written, in a folder that is there: said before what goes into it is computed."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError("there is no such folder", got=repr(str(target.parent)), do="make it, or check the path")
    return target


def spacing(t: float, dtype: DTypeLike) -> float:
    """How far apart numbers are near a time."""
    return math.ulp(t) if dtype == np.float64 else _SINGLE * math.ulp(t)


def check_clock(t0: float, duration: float, dt: float | None, dtype: DTypeLike, adaptive: bool) -> None:
    """Time passes with every step: steps are not lost in the rounding of t."""
    end = float(t0) + float(duration)
    if not math.isfinite(end):
        raise InputError("t0 + duration is too large", got=f"{t0:g} + {duration:g} s", allowed="a finite number")
    apart = spacing(max(abs(float(t0)), abs(end)), dtype)

    def where() -> str:
        return f"near t = {end:g} s, {np.dtype(dtype)} numbers are {apart:.2g} s apart"

    if dt is not None and dt < apart:
        raise InputError(
            "time would stand still: a step is lost in the rounding of t",
            got=f"dt = {dt:g} s; {where()}",
            allowed=f"dt >= {apart:.2g} s",
            do="a t0 near zero, or a larger dt",
        )
    if adaptive and duration < _INSTANTS * apart:
        raise InputError(
            "time would stand still: too few numbers lie between t0 and t0 + duration",
            got=f"duration = {duration:g} s; {where()}",
            allowed=f"at least {_INSTANTS} of them",
            do="a t0 near zero",
        )


def checked_tolerances(options: Options) -> tuple[float, float, float, float, int]:
    """Relative and absolute tolerance, longest and shortest step, and most steps of an adaptive method."""
    rtol, atol = options.get("rtol", 1e-9), options.get("atol")
    max_step, min_step = options.get("max_step", math.inf), options.get("min_step", 0.0)
    max_steps = options.get("max_steps", 1_000_000)
    check_count(max_steps=max_steps)
    if not _is_real(rtol) or not _LEAST_RTOL <= rtol < 1.0:
        raise InputError(
            "rtol is not a tolerance that can be kept",
            got=repr(rtol),
            allowed=f"{_LEAST_RTOL:g} <= rtol < 1: float64 has 16 digits",
        )
    atol = rtol / 100.0 if atol is None else atol
    if not _is_real(atol) or not 0.0 <= atol < math.inf:
        raise InputError("atol is not a tolerance", got=repr(atol), allowed="numbers >= 0")
    if not _is_real(max_step) or not max_step > 0.0:
        raise InputError("max_step is not positive", got=repr(max_step), allowed="seconds, or inf")
    if not _is_real(min_step) or not 0.0 <= min_step < max_step:
        raise InputError("min_step is out of range", got=repr(min_step), allowed="0 <= min_step < max_step, s")
    return rtol, float(atol), max_step, min_step, int(max_steps)


def _is_real(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
