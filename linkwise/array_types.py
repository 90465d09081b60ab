"""Types of NumPy arrays in annotations, one definition for the package, and scalars that NumPy's functions take.

What a call of NumPy on scalars does is decided in one place, :mod:`linkwise.functions.scalar_arrays`, which knows all
kinds of scalars; the scalars themselves live in layers that do not know each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Array", "FloatArray", "MaybeArray", "Precision"]


Array = NDArray[Any]
"""An array of any shape and type: float64 or float32 as the caller gave it, or objects that stand for numbers."""

FloatArray = NDArray[np.float64]
"""An array of numbers that is float64 whatever the caller gave."""

MaybeArray = ArrayLike | None
"""An argument that may be left out: an array of whatever library, or what NumPy makes one of."""

Precision = np.dtype[Any]
"""float64 or float32, as NumPy describes it."""


HANDLERS: dict[str, Callable[..., Any]] = {}


def handled(name: str, *given: Any) -> Any:
    """The result of a handler; None where there is none of this name, or where it leaves these arguments alone."""
    return HANDLERS[name](*given) if name in HANDLERS else None


def is_several(value: Any) -> bool:
    """Whether an operand is several numbers, as NumPy's scalars see it: an array, a list or a tuple."""
    return isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) > 0


def of_each(operation: Callable[[Any], Any], values: Any) -> Any:
    """An operation on each of several numbers; NotImplemented for anything else, whose own operators then lead."""
    return HANDLERS["each"](operation, (values,)) if is_several(values) else NotImplemented


class NumPyScalar:
    """The base of scalars that stand for numbers without being floats."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return HANDLERS["ufunc"](ufunc, method, inputs, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return HANDLERS["function"](function, args, kwargs)
