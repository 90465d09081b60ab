"""NumPy on scalars of any kind: arrays of them, and what NumPy's functions do with them.

An array of traced scalars is a NumPy array of objects that knows how to take the sine of each of them, to compare and
to choose. What NumPy does with objects anyway (sums, products, shapes) is left to NumPy.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from linkwise.array_types import HANDLERS, Array, NumPyScalar
from linkwise.errors import message
from linkwise.spatial import scalar
from linkwise.spatial.scalar import Flat, Scalar

Function = Callable[..., object]
"""One of NumPy's."""
Binary = Callable[[Scalar, Scalar], Scalar]
Order = float | Literal["fro"] | None
"""Order of a norm."""


class ScalarArray(np.ndarray):
    """Scalars of any kind in the shape of an array."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **keywords: object) -> Scalar:
        return call_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Function, types: Iterable[type], args: Iterable[object], kwargs: Mapping[str, object]
    ) -> Scalar:
        return call_function(function, args, kwargs)

    def where(self, a: Scalar, b: Scalar) -> Scalar:
        """Element by element, of truth values: ``a`` where true, ``b`` where false."""
        return _elementwise(scalar.where, (self, a, b))


def scalar_array(values: Flat | Array, shape: tuple[int, ...] | None = None) -> Scalar:
    """Scalars as such an array; a scalar of its own where the shape is ()."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        array = values
    else:
        array = np.empty(len(values), object)
        array[:] = list(values)
    array = array if shape is None else array.reshape(shape)
    return array.view(ScalarArray) if array.ndim else array[()]


def _logical(choose: Binary) -> Binary:
    def combined(a: Scalar, b: Scalar) -> Scalar:
        return choose(a if _is_truth(a) else a != 0.0, b if _is_truth(b) else b != 0.0)

    return combined


def _is_truth(value: object) -> bool:
    return isinstance(value, (bool, np.bool_)) or hasattr(value, "__invert__")


def _not(a: Scalar) -> Scalar:
    return (not a) if isinstance(a, (bool, np.bool_)) else ~a if _is_truth(a) else a == 0.0


def _expm1(x: Scalar) -> Scalar:
    half = 0.5 * x
    return 2.0 * scalar.sinh(half) * scalar.exp(half)


def _log1p(x: Scalar) -> Scalar:
    s = x / (2.0 + x)
    t = s * s
    series = 2.0 * s * (1.0 + t * (1 / 3 + t * (1 / 5 + t * (1 / 7 + t * (1 / 9 + t * (1 / 11 + t / 13))))))
    return scalar.where(abs(x) < 0.1, series, scalar.log(1.0 + x))


def _heaviside(x: Scalar, middle: Scalar) -> Scalar:
    return scalar.where(x > 0.0, 1.0, scalar.where(x < 0.0, 0.0, middle))


def _hypot(x: Scalar, y: Scalar) -> Scalar:
    return scalar.sqrt(x * x + y * y)


_UFUNCS: dict[str, Callable[..., Scalar]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "true_divide": operator.truediv, "power": operator.pow, "float_power": operator.pow, "negative": operator.neg,
    "positive": operator.pos, "absolute": scalar.absolute, "fabs": scalar.absolute, "sign": scalar.sign,
    "square": lambda x: x * x, "reciprocal": lambda x: 1.0 / x, "sqrt": scalar.sqrt, "exp": scalar.exp,
    "exp2": lambda x: scalar.exp(x * math.log(2.0)), "expm1": _expm1, "log": scalar.log, "log1p": _log1p,
    "log2": lambda x: scalar.log(x) * (1.0 / math.log(2.0)), "log10": lambda x: scalar.log(x) * (1.0 / math.log(10.0)),
    "sin": scalar.sin, "cos": scalar.cos, "tan": scalar.tan, "arcsin": scalar.asin, "arccos": scalar.acos,
    "arctan": scalar.atan, "arctan2": scalar.atan2, "sinh": scalar.sinh, "cosh": scalar.cosh, "tanh": scalar.tanh,
    "hypot": _hypot, "minimum": scalar.minimum, "maximum": scalar.maximum, "fmin": scalar.minimum,
    "fmax": scalar.maximum, "clip": scalar.clip, "heaviside": _heaviside,
    "deg2rad": lambda x: x * (math.pi / 180.0), "radians": lambda x: x * (math.pi / 180.0),
    "rad2deg": lambda x: x * (180.0 / math.pi), "degrees": lambda x: x * (180.0 / math.pi),
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
    "equal": operator.eq, "not_equal": operator.ne, "logical_and": _logical(operator.and_),
    "logical_or": _logical(operator.or_), "logical_not": _not, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "invert": _not, "conjugate": lambda x: x,
}  # fmt: skip

# What NumPy's own way over objects cannot do, since it asks for the truth of comparisons.
_BY_CHOICE = ("minimum", "maximum", "fmin", "fmax", "logical_and", "logical_or")

_INSTEAD = {
    "interp": "lw.Table(times, values), as a target or in lw.Torque",
    "floor": "lw.math.where, or what changes at samples: lw.Sampled",
    "ceil": "lw.math.where, or what changes at samples: lw.Sampled",
    "round": "lw.math.where, or what changes at samples: lw.Sampled",
    "any": "`|` between conditions, and lw.math.where",
    "all": "`&` between conditions, and lw.math.where",
    "isfinite": "nothing: a traced value is a number",
    "isnan": "nothing: a traced value is a number",
    "argmax": "lw.math.where and comparisons",
    "argmin": "lw.math.where and comparisons",
    "sort": "lw.math.minimum and lw.math.maximum",
    "eigh": "a symmetric form that needs no eigenvalues, or the value outside the compiled function",
}


def _refused(name: str, reason: object) -> TypeError:
    return TypeError(
        message(
            f"np.{name} cannot be used on values that are not known while a function is traced",
            got=str(reason).splitlines()[0][:200],
            do=f"use {_INSTEAD[name]}"
            if name in _INSTEAD
            else "use lw.math.where, lw.math.sin, lw.linalg.solve and NumPy arithmetic",
        )
    )


def _elementwise(function: Callable[..., Scalar], inputs: Sequence[object]) -> Scalar:
    """Values of each element, broadcast like NumPy's; constants are plain floats on the way."""
    arrays = [_base(each) for each in inputs]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    columns = [np.broadcast_to(array, shape).reshape(-1).tolist() for array in arrays]
    return scalar_array([function(*values) for values in zip(*columns, strict=True)], shape)


def _base(value: object) -> Array:
    """A plain array; scalars of ours as such an array too, so that NumPy does not ask them again."""
    if isinstance(value, NumPyScalar):
        array = np.empty((), object)
        array[()] = value
        return array
    return np.asarray(value)


def _bases(value: Any) -> Any:
    """Plain arrays in place of ours, inside lists, tuples and dicts too."""
    if isinstance(value, (NumPyScalar, ScalarArray)):
        return _base(value)
    if type(value) in (list, tuple):
        return type(value)(map(_bases, value))
    return {key: _bases(each) for key, each in value.items()} if type(value) is dict else value


def _back(value: object) -> Scalar:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return scalar_array(value)
    return tuple(map(_back, value)) if type(value) is tuple else value


def call_ufunc(ufunc: np.ufunc, method: str, inputs: Sequence[object], keywords: Mapping[str, Any]) -> Scalar:
    """Result of one of NumPy's elementwise functions or operators."""
    name = ufunc.__name__
    out = keywords.get("out")
    if method == "__call__" and name in _UFUNCS and not {key for key in keywords if key != "out"}:
        result = _elementwise(_UFUNCS[name], inputs)
        return result if out is None else _into(out[0], result, name)
    if method == "reduce" and name in _BY_CHOICE:
        return _reduced(_UFUNCS[name], _base(inputs[0]), keywords.get("axis", 0))
    if out is not None:
        raise _refused(name, "out=")
    try:
        return _back(getattr(ufunc, method)(*(_base(each) for each in inputs), **keywords))
    except (TypeError, AttributeError) as error:
        raise _refused(name, error) from None


def _into(target: Array, result: Scalar, name: str) -> Array:
    if target.dtype != np.dtype(object):
        raise TypeError(
            message(
                "an array of floats cannot hold values that are not known yet",
                got=f"np.{name} into {target.dtype}",
                do="make it with np.zeros(n, object), or build a list",
            )
        )
    target[...] = _base(result)
    return target


def _reduced(function: Binary, array: Array, axis: int | None) -> Scalar:
    if axis is None or array.ndim == 0:
        return functools.reduce(function, array.reshape(-1).tolist())
    parts = np.moveaxis(array, axis, 0)
    return functools.reduce(lambda a, b: _elementwise(function, (a, b)), parts)


def _where(condition: object, *choices: object) -> Scalar:
    if len(choices) != 2:
        raise TypeError("places are not known before values are: give both choices, np.where(condition, a, b)")
    return _elementwise(scalar.where, (condition, *choices))


def _clip(a: Scalar, a_min: Scalar = None, a_max: Scalar = None, **keywords: Scalar) -> Scalar:
    low, high = keywords.get("min", a_min), keywords.get("max", a_max)
    a = a if low is None else _elementwise(scalar.maximum, (a, low))
    return a if high is None else _elementwise(scalar.minimum, (a, high))


def _extreme(function: Binary) -> Callable[..., Scalar]:
    return lambda a, axis=None: _reduced(function, _base(a), axis)


def cross(a: Flat | Array, b: Flat | Array, *axes: int, **named_axes: int) -> Scalar:
    """``np.cross`` of scalars, of three components each; anything else is left to NumPy.

    NumPy's own, before 2.3, takes the product of two constants for an array of floats, and fails to put others into it.
    """
    a, b = _base(a), _base(b)
    if axes or named_axes or a.shape[-1:] != (3,) or b.shape[-1:] != (3,):
        return _back(np.cross(a, b, *axes, **named_axes))
    i, j = [1, 2, 0], [2, 0, 1]
    return scalar_array(a[..., i] * b[..., j] - a[..., j] * b[..., i])


def _norm(x: Array, ord: Order = None, axis: int | None = None) -> Scalar:
    from linkwise.functions.small_matrices import norm

    if axis is None:
        return norm(x, ord)
    rows = np.moveaxis(_base(x), axis, -1)
    values = [norm(rows[index], ord) for index in itertools.product(*map(range, rows.shape[:-1]))]
    return scalar_array(values, rows.shape[:-1])


def _matrices(name: str) -> Callable[..., Scalar]:
    def call(*arguments: object) -> Scalar:
        from linkwise.functions import small_matrices

        return getattr(small_matrices, name)(*(_base(each) for each in arguments))

    return call


_FUNCTIONS: dict[Function, Callable[..., Scalar]] = {
    np.where: _where,
    np.clip: _clip,
    np.max: _extreme(scalar.maximum),
    np.min: _extreme(scalar.minimum),
    np.cross: cross,
    np.linalg.norm: _norm,
    np.linalg.solve: _matrices("solve"),
    np.linalg.inv: _matrices("inverse"),
    np.linalg.det: _matrices("determinant"),
    np.linalg.cholesky: _matrices("cholesky"),
}


def call_function(function: Function, args: Iterable[object], kwargs: Mapping[str, object]) -> Scalar:
    """Result of any other function of NumPy."""
    name = getattr(function, "__name__", str(function))
    try:
        if function in _FUNCTIONS:
            return _FUNCTIONS[function](*args, **kwargs)
        return _back(function(*_bases(tuple(args)), **_bases(kwargs)))
    except (TypeError, AttributeError) as error:
        if isinstance(error, TypeError) and str(error).startswith("np."):
            raise
        raise _refused(name, error) from None


HANDLERS.update(ufunc=call_ufunc, function=call_function, each=_elementwise)
