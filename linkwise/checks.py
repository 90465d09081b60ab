"""Checks of arguments: their names, numbers, arrays, words, paths; every message says what, got, allowed."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.errors import SOUGHT_ARGUMENTS, InputError, message


def finite_numbers(
    value: object,
    what: str,
    count: int | None = None,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    allowed: str = "",
    do: str | None = None,
) -> tuple[float, ...]:
    """Finite numbers in a row, so many of them, one or several if ``count`` is None; a single one may stand alone.

    Each is at least ``least`` and greater than ``above``. The message says so, unless ``allowed`` says more.
    """
    flat: tuple[float, ...] = (math.nan,)
    if isinstance(value, (float, int)):  # in a fifth of the time
        flat = (float(value),)
    else:
        with suppress(TypeError, ValueError):
            numbers = np.asarray(value, float)
            flat = tuple(numbers.reshape(-1).tolist()) if numbers.ndim < 2 else flat
    if count not in (None, len(flat)) or not all(math.isfinite(x) and x >= least and x > above for x in flat):
        how_many = "a finite number" if count == 1 else f"{'' if count is None else count} finite numbers".strip()
        bound = f" > {above:g}" if above > -math.inf else f" >= {least:g}" if least > -math.inf else ""
        raise InputError(f"{what} is not possible", got=repr(value)[:80], allowed=allowed or how_many + bound, do=do)
    return flat


def finite_number(
    value: object, what: str, *, above: float = -math.inf, allowed: str = "", do: str | None = None
) -> float:
    """One finite number, see :func:`finite_numbers`."""
    return finite_numbers(value, what, 1, above=above, allowed=allowed, do=do)[0]


def set_finite(
    element: object, names: str, of: str, count: int = 1, *, least: float = -math.inf, above: float = -math.inf
) -> None:
    """Put fields of a frozen element, their names with blanks between, in place as floats; one that is None stays.

    Raises InputError, which says whose they are (``of``), where :func:`finite_numbers` does.
    """
    for name in names.split():
        given = getattr(element, name)
        if given is not None:
            what = f"the {name.replace('_', ' ')} of {of}"
            numbers = finite_numbers(given, what, count, least=least, above=above)
            object.__setattr__(element, name, numbers if count > 1 else numbers[0])


def checked_array(what: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """A copy of finite numbers in an array of this shape."""
    allowed = f"finite numbers, {shape}"
    try:
        array = np.array(values, float)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not made of numbers", got=repr(values)[:80], allowed=allowed) from None
    if array.shape != shape:
        raise InputError(f"{what} has the wrong shape", got=str(array.shape), allowed=allowed)
    if not np.isfinite(array).all():
        raise InputError(f"{what} is not finite", got=repr(values)[:80], allowed=allowed)
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


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """One of some words."""
    if value not in allowed:
        raise InputError(f"no such {name}", got=repr(value), allowed=", ".join(map(repr, allowed)))


def check_positive(**given: object) -> None:
    """Finite numbers above zero, by their names."""
    for name, value in given.items():
        if not is_real(value) or not 0.0 < float(value) < math.inf:
            raise InputError(f"{name} is not a positive number", got=repr(value), allowed="a finite number above 0")


def check_not_negative(*, or_infinite: bool = False, **given: object) -> None:
    """Numbers of at least zero, by their names."""
    for name, value in given.items():
        if not is_real(value) or not float(value) >= 0.0 or (math.isinf(value) and not or_infinite):
            allowed = "a number >= 0, or inf" if or_infinite else "a finite number >= 0"
            raise InputError(f"{name} is not zero or a positive number", got=repr(value), allowed=allowed)


def check_count(**given: object) -> None:
    """Whole numbers of at least one, by their names."""
    for name, value in given.items():
        if not is_real(value) or not 1 <= value < math.inf or int(value) != value:
            raise InputError(f"{name} is not a positive whole number", got=repr(value), allowed="1, 2, 3, …")


def check_finite(**given: object) -> None:
    """Finite numbers, by their names."""
    for name, value in given.items():
        if not is_real(value) or not math.isfinite(value):
            raise InputError(f"{name} is not a finite number", got=repr(value), allowed="a number")


def output_path(path: str | PathLike[str]) -> Path:
    """Path of a file to be written, in a folder that is there: said before what goes into it is computed."""
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError("there is no such folder", got=repr(str(target.parent)), do="make it, or check the path")
    return target


def is_real(value: object) -> TypeGuard[float]:
    """Whether a value is a number, and no truth value."""
    return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
