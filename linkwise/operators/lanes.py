"""A scalar that holds many numbers: one for each link of a kind and each state of a batch.

The texts of joints and links run over any scalar. On lanes they run once for all links of one kind, at NumPy's speed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from linkwise.array_types import Array
from linkwise.spatial.scalar import Scalar

_NUMBERS = (int, float, np.floating, np.integer)


class Lanes:
    """An array that takes part in arithmetic as one number does: element by element, never as a container."""

    __slots__ = ("x",)
    __array_ufunc__ = None  # NumPy leaves the operators to us

    def __init__(self, x: Array) -> None:
        self.x = x

    @staticmethod
    def lift(x: Scalar, like: Lanes) -> Lanes:
        """A constant as lanes."""
        return x if isinstance(x, Lanes) else Lanes(np.full_like(like.x, x))

    def __pow__(self, exponent: float) -> Lanes:
        return Lanes(self.x**exponent)

    def __neg__(self) -> Lanes:
        return Lanes(-self.x)

    def __abs__(self) -> Lanes:
        return Lanes(abs(self.x))

    def arctan2(self, x: Scalar) -> Lanes:
        """Angle of the point (x, self)."""
        return Lanes(np.arctan2(self.x, _array(x)))

    def where(self, a: Scalar, b: Scalar) -> Lanes:
        """``a`` in the lanes that are true, ``b`` in those that are false."""
        return Lanes(np.asarray(np.where(self.x, _array(a), _array(b))))


def _array(value: Scalar) -> Scalar:
    """The array or number of an operand; None when the operand must lead."""
    if isinstance(value, Lanes):
        return value.x
    return value if isinstance(value, _NUMBERS) else None


def numbers(value: Scalar) -> Scalar:
    """The array behind lanes, or the number itself."""
    return value.x if isinstance(value, Lanes) else value


def _binary(of: Callable[[Scalar, Scalar], Array]) -> Callable[[Lanes, Scalar], Lanes]:
    def method(self: Lanes, other: Scalar) -> Lanes:
        y = _array(other)
        return NotImplemented if y is None else Lanes(of(self.x, y))

    return method


def _reflected(of: Callable[[Scalar, Scalar], Array]) -> Callable[[Lanes, Scalar], Lanes]:
    return _binary(lambda x, y: of(y, x))


def _unary(of: Callable[[Array], Array]) -> Callable[[Lanes], Lanes]:
    return lambda self: Lanes(of(self.x))


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Lanes, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(Lanes, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Lanes, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh"):
    setattr(Lanes, _name, _unary(getattr(np, _name)))
