"""Functions of one scalar, whatever the scalar is, and the base of values made of scalars.

A float goes to :mod:`math`; a scalar of a library (SymPy, CasADi, mpmath, JAX, NumPy) goes to that
library's function of the same name; anything else (traced scalars, duals) is asked for a method of that name.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

from linkwise.array_types import HANDLERS, NumPyScalar, handled, is_several

Scalar = Any  # float, traced scalar, dual, casadi.SX, sympy expression, JAX tracer, mpmath.mpf, ...

Flat = Sequence[Scalar]
"""Numbers in a row: coordinates, velocities, joint forces."""

Matrix = list[list[Scalar]]
"""Rows of numbers, to be filled."""

NamedNumbers = Mapping[str, Scalar | Flat]
"""Numbers by name, one or several in a row: results of a text that is traced."""

_ARCS = {"arctan2": "atan2", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}

# Where each library keeps its elementary functions, and the names it spells differently.
_LIBRARIES: dict[str, tuple[str, dict[str, str]]] = {
    "numpy": ("numpy", {}),
    "sympy": ("sympy", _ARCS),
    "casadi": ("casadi", _ARCS),
    "mpmath": ("mpmath", _ARCS),
    "jax": ("jax.numpy", {}),
    "jaxlib": ("jax.numpy", {}),
}


def _library_function(x: Scalar, name: str) -> Callable[..., Scalar] | None:
    library = "numpy" if getattr(x, "ndim", 0) and hasattr(x, "dtype") and _is_numpy(x) else _library(x)
    if library not in _LIBRARIES:
        return None
    module, spelled = _LIBRARIES[library]
    found: Callable[..., Scalar] = getattr(sys.modules[module], spelled.get(name, name))
    return found


def _library(x: Scalar) -> str:
    return type(x).__module__.partition(".")[0]


def _is_numpy(x: Scalar) -> bool:
    """Whether an array is NumPy's, or of a class made from NumPy's."""
    return any(base.__module__.partition(".")[0] == "numpy" for base in type(x).__mro__)


def _apply(name: str, x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return getattr(math, _ARCS.get(name, name))(x)
    function = _library_function(x, name)
    return getattr(x, name)() if function is None else function(x)


def sin(x: Scalar) -> Scalar:
    """Sine."""
    return _apply("sin", x)


def cos(x: Scalar) -> Scalar:
    """Cosine."""
    return _apply("cos", x)


def tan(x: Scalar) -> Scalar:
    """Tangent."""
    return _apply("tan", x)


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return _apply("sqrt", x)


def exp(x: Scalar) -> Scalar:
    """Exponential."""
    return _apply("exp", x)


def log(x: Scalar) -> Scalar:
    """Natural logarithm."""
    return _apply("log", x)


def tanh(x: Scalar) -> Scalar:
    """Hyperbolic tangent."""
    return _apply("tanh", x)


def asin(x: Scalar) -> Scalar:
    """Angle in [-π/2, π/2] whose sine is x."""
    return _apply("arcsin", x)


def acos(x: Scalar) -> Scalar:
    """Angle in [0, π] whose cosine is x."""
    return _apply("arccos", x)


def atan(x: Scalar) -> Scalar:
    """Angle in (-π/2, π/2) whose tangent is x."""
    return _apply("arctan", x)


def sinh(x: Scalar) -> Scalar:
    """Hyperbolic sine."""
    return _apply("sinh", x)


def cosh(x: Scalar) -> Scalar:
    """Hyperbolic cosine."""
    return _apply("cosh", x)


def absolute(x: Scalar) -> Scalar:
    """The size of x, |x|."""
    return abs(x)


def sign(x: Scalar) -> Scalar:
    """1 above zero, -1 below, 0 at zero."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller of two."""
    return where(a < b, a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger of two."""
    return where(a > b, a, b)


def clip(x: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """``x``, but not below ``low`` nor above ``high``."""
    return minimum(maximum(x, low), high)


def within(x: Scalar, low: float, high: float) -> Scalar:
    """The nearest to x within constant bounds; none is looked at that is infinite."""
    if math.isfinite(high):
        x = where(x > high, high, x)
    return where(x < low, low, x) if math.isfinite(low) else x


def beyond(x: Scalar, low: float, high: float) -> Scalar:
    """1.0 where x lies outside constant bounds, else 0.0; a bound that is infinite is not looked at."""
    above = where(x > high, 1.0, 0.0) if math.isfinite(high) else 0.0
    return where(x < low, 1.0, above) if math.isfinite(low) else above


def quotient(a: Scalar, b: Scalar) -> Scalar:
    """The quotient a / b, by IEEE's rules for floats too: NaN or infinite where Python would raise."""
    if b.__class__ is float and b == 0.0 and isinstance(a, (float, int)):
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def power(base: Scalar, exponent: Scalar) -> Scalar:
    """The power base ** exponent, by IEEE's rules for floats too: infinite or NaN where Python raises or leaves ℝ."""
    if isinstance(base, (float, int)) and isinstance(exponent, (float, int)):
        if base == 0 and exponent < 0:
            return math.inf
        if base < 0 and not float(exponent).is_integer():
            return math.nan
    return base**exponent


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y), in (-π, π]."""
    for value in sorted((y, x), key=_level, reverse=True):
        if not isinstance(value, (float, int)):
            function = _library_function(value, "arctan2")
            if function is not None:
                return function(y, x)
            return value.arctan2(x) if value is y else type(value).lift(y, value).arctan2(x)
    return math.atan2(y, x)


def _level(x: Scalar) -> int:
    """Rank of a scalar; of two the higher leads an operation: the dual of the highest level, then any other."""
    level: int = getattr(x, "level", 0)
    return level


def where(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """``a`` where the condition holds, else ``b``; the only branch that traced code can take."""
    if isinstance(condition, bool):
        return a if condition else b
    if isinstance(condition, NumPyScalar) and (is_several(a) or is_several(b)):
        return HANDLERS["each"](where, (condition, a, b))
    leader = max(a, b, key=_level)
    if hasattr(leader, "blend"):  # a dual number: both of its parts branch alike
        return leader.blend(condition, a, b)
    if hasattr(condition, "where"):
        return condition.where(a, b)
    library = _library(condition)
    if library == "numpy" and condition.ndim:
        return sys.modules["numpy"].where(condition, a, b)
    if library == "casadi":
        return sys.modules["casadi"].if_else(condition, a, b)
    if library == "sympy":
        return sys.modules["sympy"].Piecewise((a, condition), (b, True))
    if library in ("jax", "jaxlib"):
        return sys.modules["jax.numpy"].where(condition, a, b)
    return a if condition else b


def by_digits(x: Scalar, double: float, single: float) -> Scalar:
    """One number where a positive x has sixteen digits, the other where it has seven."""
    return where(x + 1e-10 * x > x, double, single)


def hold(x: Scalar) -> Scalar:
    """``x`` itself, whose derivative counts as zero: what depends on it only through here is held fixed.

    With the solution x of an equation f(x, p) = 0, however it was found, ``hold(x) - f(hold(x), p) / slope`` has the
    value x and the derivative of the solution, where ``slope`` is ∂f/∂x. Symbols of other libraries stay as they are.
    """
    if isinstance(x, (float, int)):
        return x
    if is_several(x):
        return HANDLERS["each"](hold, (x,))
    return x.hold() if hasattr(x, "hold") else x


def waypoint(numbers: Sequence[Scalar]) -> list[Scalar]:
    """The same numbers, as a place that derivatives come through: few numbers that much depends on.

    A Jacobian is then a product: how what follows depends on these numbers, times how these depend on what is before.
    """
    kept: list[Scalar] | None = handled("waypoint", numbers)
    return list(numbers) if kept is None else kept


def has_waypoints(x: Scalar) -> bool:
    """Whether a number is one of a trace with waypoints: one that is made for Jacobians."""
    return bool(getattr(x, "has_waypoints", False))


def repeated(count: int, step: Callable[[list[Scalar]], list[Scalar]], state: Sequence[Scalar]) -> list[Scalar]:
    """The numbers after ``count`` passes of ``state = step(state)``; a loop of the program where they are traced."""
    looped: list[Scalar] | None = handled("loop", count, lambda _, now: step(now), list(state))
    if looped is not None:
        return looped
    now = list(state)
    for _ in range(count):
        now = step(now)
    return now


def repeated_while(
    condition: Callable[[list[Scalar]], Scalar], step: Callable[[list[Scalar]], list[Scalar]], state: Sequence[Scalar]
) -> list[Scalar]:
    """The numbers after passes of ``state = step(state)`` as long as a condition holds; where traced, a loop of it.

    The condition must come to an end by itself.
    """
    looped: list[Scalar] | None = handled("while_loop", condition, step, list(state))
    if looped is not None:
        return looped
    now = list(state)
    while condition(now):
        now = step(now)
    return now


class Items(NamedTuple):
    """Stretches of a list of numbers, one for each pass of a loop.

    Args:
        numbers: all of them.
        starts: of each pass, where its stretch begins.
        width: of every stretch.
    """

    numbers: Sequence[Scalar]
    starts: Sequence[int]
    width: int

    @classmethod
    def rows(cls, rows: Sequence[Sequence[Scalar]]) -> Items:
        """A row for each pass, all of the same length."""
        width = len(rows[0])
        return cls([x for row in rows for x in row], [k * width for k in range(len(rows))], width)

    def of(self, k: int) -> list[Scalar]:
        """The stretch of one pass."""
        start = self.starts[k]
        return list(self.numbers[start : start + self.width])


class RowTable:
    """Rows of numbers that are known, to be looked up.

    Args:
        numbers: one after the other.
        count: number of rows.
        stride: from the beginning of a row to that of the next, which may overlap.
        width: numbers of a row.
    """

    def __init__(self, numbers: Sequence[float], count: int, stride: int, width: int) -> None:
        self.numbers, self.count, self.stride, self.width = tuple(numbers), count, stride, width

    def row(self, k: int) -> list[Scalar]:
        """One of them."""
        return list(self.numbers[self.stride * k : self.stride * k + self.width])

    def at(self, place: Scalar) -> tuple[Scalar, list[Scalar]]:
        """The number of the row at a place, which is rounded down and held within the table, and that row.

        Both count as constants in derivatives. Where numbers are traced it is one step of the program, however many
        rows there are; of symbols of other libraries each row is a case.
        """
        place = hold(place)
        if isinstance(place, (float, int)):
            k = int(min(place, self.count - 1.0)) if place > 0.0 else 0
            return float(k), self.row(k)
        traced = handled("row_of_table", self, place)
        if traced is not None:
            return traced[0], traced[1:]
        found: list[Scalar] = [0.0, *self.row(0)]
        for k in range(1, self.count):
            found = either(place >= float(k), [float(k), *self.row(k)], found)
        return found[0], found[1:]


def looped_over(
    columns: Sequence[Items],
    step: Callable[..., tuple[list[Scalar], list[Scalar]]],
    state: Sequence[Scalar],
    asks: Sequence[Callable[..., Scalar]] = (),
    first_ones: bool = False,
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """The numbers after ``state, made = step(state, *items)`` for the items of every pass; and what each pass has made.

    Where numbers are traced it is a loop of the program, whose code does not grow with the number of passes.

    Args:
        columns: of which each pass takes a stretch; the same number of passes each.
        step: of one pass.
        state: numbers to begin with.
        asks: whether a pass is needed, from the same: questions, each put where the one before was answered by yes. One
            that nobody asks for is left out, and makes zeros. The step must leave the state of who does not ask as it
            is: others, beside it in a batch, may.
        first_ones: whether passes that are needed come first. What is made by one that is not needed may then be
            anything, and must not be looked at.
    """
    looped: tuple[list[Scalar], list[list[Scalar]]] | None
    looped = handled("loop_over_items", columns, step, list(state), asks, first_ones)
    return plainly_looped_over(columns, step, list(state), asks) if looped is None else looped


def plainly_looped_over(
    columns: Sequence[Items],
    step: Callable[..., tuple[list[Scalar], list[Scalar]]],
    state: list[Scalar],
    asks: Sequence[Callable[..., Scalar]] = (),
) -> tuple[list[Scalar], list[list[Scalar]]]:
    """The same, one pass after the other, whether or not it is asked for."""
    found = []
    for k in range(len(columns[0].starts)):
        state, made = step(state, *(column.of(k) for column in columns))
        found.append(made)
    return state, found


def is_exact(x: Scalar) -> bool:
    """Whether ``x`` may hold more digits than a float: of SymPy or mpmath."""
    return type(x).__module__.partition(".")[0] in ("sympy", "mpmath")


def is_constant(x: Scalar) -> bool:
    """Whether ``x`` is known while the text runs: a number, not a value to be computed."""
    return isinstance(x, (float, int))


def is_zero(x: Scalar) -> bool:
    """Whether ``x`` is known to be zero while the text runs: a constant, not a value to be computed."""
    return isinstance(x, (float, int)) and x == 0


def is_one(x: Scalar) -> bool:
    """Whether ``x`` is known to be one while the text runs."""
    return isinstance(x, (float, int)) and x == 1


class Value:
    """A value with parts: those its slots name, unless a class says otherwise."""

    __slots__ = ()

    def parts(self) -> Sequence[object]:
        """Scalars, values, or numbers and names that belong to the structure."""
        return [getattr(self, name) for name in _slots(type(self))]

    @classmethod
    def from_parts(cls, parts: Sequence[Scalar]) -> Self:
        """The value with these parts."""
        made = object.__new__(cls)
        for name, part in zip(_slots(cls), parts, strict=True):
            object.__setattr__(made, name, part)
        return made


def _named_slots(kind: type) -> tuple[str, ...]:
    return tuple(name for base in reversed(kind.__mro__) for name in getattr(base, "__slots__", ()))


_slots: Callable[[type], tuple[str, ...]] = cache(_named_slots)


def dot(x: Iterable[Scalar], y: Iterable[Scalar]) -> Scalar:
    """Σ x y in one chain: every sum has a product to be fused with."""
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def less_products(total: Scalar, x: Iterable[Scalar], y: Iterable[Scalar]) -> Scalar:
    """The rest of a total without Σ x y, in one chain."""
    for a, b in zip(x, y, strict=True):
        total = total - a * b
    return total


def cross(a: Flat, b: Flat) -> list[Scalar]:
    """a × b of three numbers each."""
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def plus(x: Iterable[Scalar], y: Iterable[Scalar]) -> list[Scalar]:
    """x + y, number by number."""
    return [a + b for a, b in zip(x, y, strict=True)]


def minus(x: Iterable[Scalar], y: Iterable[Scalar]) -> list[Scalar]:
    """x - y, number by number."""
    return [a - b for a, b in zip(x, y, strict=True)]


def either(condition: Scalar, x: Iterable[Scalar], y: Iterable[Scalar]) -> list[Scalar]:
    """x where a condition holds, else y, number by number."""
    return [where(condition, a, b) for a, b in zip(x, y, strict=True)]
