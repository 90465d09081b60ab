"""A scalar that holds many numbers: one for each link of a kind and each state of a batch.

The texts of joints and links run over any scalar. On lanes they run once for all links of one kind, at NumPy's speed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
_NUMBERS = (int, float, np.floating, np.integer)


class Lanes:
    """An array that takes part in arithmetic as one number does: element by element, never as a container."""

    __slots__ = ("x",)
    __array_ufunc__ = None  # NumPy leaves the operators to us

    def __init__(self, x: Array) -> None:
        self.x = x

    @staticmethod
    def lift(x: Any, like: Lanes) -> Lanes:
        """A constant as lanes."""
        return x if isinstance(x, Lanes) else Lanes(np.full_like(like.x, x))

    def __add__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(self.x + y)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(self.x - y)

    def __rsub__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(y - self.x)

    def __mul__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(self.x * y)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(self.x / y)

    def __rtruediv__(self, other: Any) -> Any:
        y = _array(other)
        return NotImplemented if y is None else Lanes(y / self.x)

    def __pow__(self, exponent: float) -> Lanes:
        return Lanes(self.x**exponent)

    def __neg__(self) -> Lanes:
        return Lanes(-self.x)

    def __abs__(self) -> Lanes:
        return Lanes(abs(self.x))

    def sin(self) -> Lanes:
        """Sine."""
        return Lanes(np.sin(self.x))

    def cos(self) -> Lanes:
        """Cosine."""
        return Lanes(np.cos(self.x))

    def tan(self) -> Lanes:
        """Tangent."""
        return Lanes(np.tan(self.x))

    def sqrt(self) -> Lanes:
        """Square root."""
        return Lanes(np.sqrt(self.x))

    def exp(self) -> Lanes:
        """Exponential."""
        return Lanes(np.exp(self.x))

    def log(self) -> Lanes:
        """Natural logarithm."""
        return Lanes(np.log(self.x))

    def tanh(self) -> Lanes:
        """Hyperbolic tangent."""
        return Lanes(np.tanh(self.x))

    def arctan2(self, x: Any) -> Lanes:
        """Angle of the point (x, self)."""
        return Lanes(np.arctan2(self.x, _array(x)))

    def __lt__(self, other: Any) -> LanesBool:
        return LanesBool(self.x < _array(other))

    def __le__(self, other: Any) -> LanesBool:
        return LanesBool(self.x <= _array(other))

    def __gt__(self, other: Any) -> LanesBool:
        return LanesBool(self.x > _array(other))

    def __ge__(self, other: Any) -> LanesBool:
        return LanesBool(self.x >= _array(other))


class LanesBool:
    """A truth value for each lane; for ``where``."""

    __slots__ = ("x",)

    def __init__(self, x: Array) -> None:
        self.x = x

    def where(self, a: Any, b: Any) -> Lanes:
        """``a`` where true, ``b`` where false."""
        return Lanes(np.where(self.x, _array(a), _array(b)))


def _array(value: Any) -> Any:
    """The array or number of an operand; None when the operand must lead."""
    if isinstance(value, Lanes):
        return value.x
    return value if isinstance(value, _NUMBERS) else None


def numbers(value: Any) -> Any:
    """The array behind lanes, or the number itself."""
    return value.x if isinstance(value, Lanes) else value
