"""Scalars that NumPy's functions can be called on.

What such a call does is decided in one place, :mod:`linkwise.compiled.scalar_arrays`, which knows all kinds of scalars;
the scalars themselves live in layers that do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HANDLERS: dict[str, Callable[..., Any]] = {}


class NumPyScalar:
    """The base of scalars that stand for numbers without being floats."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return HANDLERS["ufunc"](ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return HANDLERS["function"](function, args, kwargs)
