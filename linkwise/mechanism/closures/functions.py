"""Functions that users hand in: called with care, and tried once before they are part of a mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TypeVar

from linkwise.errors import InputError
from linkwise.spatial.scalar import Flat, Scalar

FunctionT = TypeVar("FunctionT")


def checked_function(function: FunctionT, what: str, allowed: str) -> FunctionT:
    """The function, if it can be called."""
    if not callable(function):
        raise InputError(f"{what} is not a function", got=repr(function), allowed=allowed)
    return function


def arguments_of(function: Callable[..., object], what: str, allowed: Sequence[int], do: str) -> int:
    """How many positional arguments without defaults a function takes."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
        found = sum(p.kind in positional and p.default is inspect.Parameter.empty for p in parameters)
        got = f"{found} arguments"
    except (TypeError, ValueError):
        found, got = -1, "a function whose arguments are not known"
    if found not in allowed:
        raise InputError(f"{what} takes the wrong number of arguments", got=got, allowed=do)
    return found


def equation_names(equations: int | Sequence[str], what: str) -> tuple[str, ...]:
    """Names for the equations: those given, or numbers from 1."""
    if isinstance(equations, str):
        return (equations,)
    try:
        names = tuple(str(name) for name in (range(1, equations + 1) if isinstance(equations, int) else equations))
    except TypeError:
        names = ()
    if not names:
        raise InputError(
            f"{what} has no equations", got=repr(equations), allowed="their number (1, 2, …) or a name for each"
        )
    if len(set(names)) < len(names):
        raise InputError(f"two equations of {what} have one name", got=repr(names), allowed="each name once")
    return names


def values_of(
    function: Callable[..., Scalar | Flat], arguments: Sequence[Scalar | Flat], n: int, what: str
) -> list[Scalar]:
    """The n numbers a function returns; a single one need not be in a list."""
    try:
        result = function(*arguments)
        values = list(result) if hasattr(result, "__len__") else [result]
    except (TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{what} failed",
            got=f"{type(error).__name__}: {error}",
            allowed="arithmetic and lw.math.sin, lw.math.cos, lw.math.sqrt, …, no branches on values (lw.math.where)",
            do="use lw.math.sin, lw.math.cos, … instead of math functions",
        ) from error
    if len(values) != n:
        raise InputError(f"{what} returned the wrong number of values", got=str(len(values)), allowed=str(n))
    return values
