"""Dual numbers over any scalar: forward-mode differentiation while the text runs.

User-defined joints give only their transform; S and its rate come from here. Levels keep nested
derivatives apart: a number of a lower level is a constant to a higher one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import count

from linkwise.array_types import NumPyScalar, is_several, of_each
from linkwise.spatial import scalar
from linkwise.spatial.scalar import Scalar, Value

_levels = count(1)


class Dual(NumPyScalar):
    """value + ε · tangent, with ε² = 0, of one level of differentiation."""

    __slots__ = ("level", "tangent", "value")

    def __init__(self, value: Scalar, tangent: Scalar, level: int) -> None:
        self.value = value
        self.tangent = tangent
        self.level = level

    @staticmethod
    def lift(x: Scalar, like: Dual) -> Dual:
        """``x`` as a constant of the same level."""
        return Dual(x, 0.0, like.level)

    def _pair(self, other: Scalar) -> tuple[Scalar, Scalar] | None:
        """Value and tangent of the other operand at this level; None when it must lead (see :meth:`_led`)."""
        if isinstance(other, Dual):
            if other.level == self.level:
                return other.value, other.tangent
            if other.level > self.level:
                return None
        elif other.__class__ is not float and (is_several(other) or isinstance(other, Value)):
            return None
        return other, 0.0

    def _led(self, other: Scalar, reflected: str, operation: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
        """An operation with a dual of a higher level, or with each of several numbers.

        Of a dual the reflected method is asked for by name: Python itself does not, where both are of one type.
        """
        if isinstance(other, Dual):
            return getattr(other, reflected)(self)
        return of_each(lambda x: operation(self, x), other)

    def _chain(self, value: Scalar, slope: Scalar) -> Dual:
        return Dual(value, slope * self.tangent, self.level)

    def __add__(self, other: Scalar) -> Scalar:
        pair = self._pair(other)
        if pair is None:
            return self._led(other, "__radd__", operator.add)
        return Dual(self.value + pair[0], self.tangent + pair[1], self.level)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Scalar:
        pair = self._pair(other)
        if pair is None:
            return self._led(other, "__rsub__", operator.sub)
        return Dual(self.value - pair[0], self.tangent - pair[1], self.level)

    def __rsub__(self, other: Scalar) -> Scalar:
        return -self + other

    def __mul__(self, other: Scalar) -> Scalar:
        pair = self._pair(other)
        if pair is None:
            return self._led(other, "__rmul__", operator.mul)
        return Dual(self.value * pair[0], _summed(self.tangent, pair[0], pair[1], self.value), self.level)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Scalar:
        pair = self._pair(other)
        if pair is None:
            return self._led(other, "__rtruediv__", operator.truediv)
        quotient = self.value / pair[0]
        return Dual(quotient, (self.tangent - quotient * pair[1]) / pair[0], self.level)

    def __rtruediv__(self, other: Scalar) -> Scalar:
        if self._pair(other) is None:
            return of_each(lambda x: x / self, other)
        return Dual.lift(other, self) / self

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent, self.level)

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Scalar:
        return scalar.where(self.value < 0.0, -self, self)

    def __pow__(self, exponent: Scalar) -> Scalar:
        if is_several(exponent):
            return of_each(lambda x: self**x, exponent)
        if isinstance(exponent, (float, int)) and exponent == 0:
            return 1.0
        pair = self._pair(exponent)
        if pair is None:
            return self._led(exponent, "__rpow__", operator.pow)
        value = scalar.power(self.value, pair[0])
        slope = 0.0 if scalar.is_zero(self.tangent) else pair[0] * scalar.power(self.value, pair[0] - 1)
        # The logarithm is that of 1 where the base is 0: the power is 0 there for all exponents above 0.
        by_exponent = 0.0
        if not scalar.is_zero(pair[1]):
            by_exponent = value * scalar.log(scalar.where(self.value > 0.0, self.value, 1.0))
        return Dual(value, _summed(self.tangent, slope, pair[1], by_exponent), self.level)

    def __rpow__(self, base: Scalar) -> Scalar:
        if is_several(base):
            return of_each(lambda x: x**self, base)
        return Dual.lift(base, self) ** self

    def sin(self) -> Dual:
        return self._chain(scalar.sin(self.value), scalar.cos(self.value))

    def cos(self) -> Dual:
        return self._chain(scalar.cos(self.value), -scalar.sin(self.value))

    def tan(self) -> Scalar:
        return self.sin() / self.cos()

    def sqrt(self) -> Dual:
        root = scalar.sqrt(self.value)
        return self._chain(root, scalar.quotient(0.5, root))

    def exp(self) -> Dual:
        value = scalar.exp(self.value)
        return self._chain(value, value)

    def log(self) -> Dual:
        return self._chain(scalar.log(self.value), 1.0 / self.value)

    def tanh(self) -> Dual:
        value = scalar.tanh(self.value)
        return self._chain(value, 1.0 - value * value)

    def sinh(self) -> Dual:
        return self._chain(scalar.sinh(self.value), scalar.cosh(self.value))

    def cosh(self) -> Dual:
        return self._chain(scalar.cosh(self.value), scalar.sinh(self.value))

    def arcsin(self) -> Dual:
        return self._chain(scalar.asin(self.value), 1.0 / scalar.sqrt((1.0 - self.value) * (1.0 + self.value)))

    def arccos(self) -> Dual:
        return self._chain(scalar.acos(self.value), -1.0 / scalar.sqrt((1.0 - self.value) * (1.0 + self.value)))

    def arctan(self) -> Dual:
        return self._chain(scalar.atan(self.value), 1.0 / (1.0 + self.value * self.value))

    def arctan2(self, x: Scalar) -> Scalar:
        pair = self._pair(x)
        if pair is None:
            return Dual.lift(self, x).arctan2(x)
        square = self.value * self.value + pair[0] * pair[0]
        slope = (self.tangent * pair[0] - self.value * pair[1]) / square
        return Dual(scalar.atan2(self.value, pair[0]), slope, self.level)

    def hold(self) -> Scalar:
        """The value alone."""
        return scalar.hold(self.value)

    def blend(self, condition: Scalar, a: Scalar, b: Scalar) -> Dual:
        """``where`` on values and tangents alike."""
        (av, at), (bv, bt) = (
            (x.value, x.tangent) if isinstance(x, Dual) and x.level == self.level else (x, 0.0) for x in (a, b)
        )
        return Dual(scalar.where(condition, av, bv), scalar.where(condition, at, bt), self.level)

    def _compared(self, other: Scalar, compare: Callable[[Scalar, Scalar], Scalar]) -> Scalar:
        """The answer of the values' own library; of each of several numbers."""
        if is_several(other):
            return of_each(lambda x: compare(self, x), other)
        return compare(self.value, other.value if isinstance(other, Dual) else other)

    def __lt__(self, other: Scalar) -> Scalar:
        return self._compared(other, operator.lt)

    def __le__(self, other: Scalar) -> Scalar:
        return self._compared(other, operator.le)

    def __gt__(self, other: Scalar) -> Scalar:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Scalar) -> Scalar:
        return self._compared(other, operator.ge)

    def __eq__(self, other: object) -> Scalar:
        return self._compared(other, operator.eq)

    def __ne__(self, other: object) -> Scalar:
        return self._compared(other, operator.ne)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Dual({self.value!r}, {self.tangent!r})"


def new_level() -> int:
    """A level above all that were there before."""
    return next(_levels)


def parts_of_level(numbers: Sequence[Scalar], level: int) -> tuple[list[Scalar], list[Scalar]]:
    """Values and tangents of numbers, some of which may be duals of this level."""
    values: list[Scalar] = []
    tangents: list[Scalar] = []
    for x in numbers:
        own = isinstance(x, Dual) and x.level == level
        values.append(x.value if own else x)
        tangents.append(x.tangent if own else 0.0)
    return values, tangents


def derivative(
    function: Callable[[Sequence[Scalar]], Sequence[Scalar]], at: Sequence[Scalar], direction: Sequence[Scalar]
) -> tuple[list[Scalar], list[Scalar]]:
    """Value and directional derivative of a function of several scalars."""
    level = new_level()
    return parts_of_level(function([Dual(x, d, level) for x, d in zip(at, direction, strict=True)]), level)


def _summed(one: Scalar, by: Scalar, other: Scalar, other_by: Scalar) -> Scalar:
    """The sum one · by + other · other_by of a product rule; a tangent that is known to be zero leaves out its term.

    So an infinite slope makes no NaN of a constant.
    """
    if scalar.is_zero(other):
        return one * by
    return other * other_by if scalar.is_zero(one) else one * by + other * other_by
