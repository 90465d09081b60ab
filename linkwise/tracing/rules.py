"""The derivative of every operation: one table, which forward and reverse mode both read.

An operation on real numbers has its partial derivatives (a :class:`Smooth`), or it hands on one of two arguments
(a :class:`Choice`): then the derivative is handed on the same way, and the argument that is not taken has none,
whatever its value. Comparisons are piecewise constant and are not in the table. At the kinks themselves (``abs`` at 0,
``min`` and ``max`` of equal numbers) the derivative is that of one side, the one the operation's definition takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from linkwise.tracing.replay import Table
from linkwise.tracing.tracer import Number


@dataclass(frozen=True)
class Smooth:
    """``partials(table, arguments, result)``: the derivative with respect to each argument."""

    partials: Callable[[Table, tuple[Number, ...], Number], tuple[Number, ...]]


@dataclass(frozen=True)
class Choice:
    """``condition(table, arguments)``: true where the first of ``choices`` (places of arguments) is the result."""

    condition: Callable[[Table, tuple[Any, ...]], Any]
    choices: tuple[int, int]


Rule = Smooth | Choice


def _quotient(t: Table, a: tuple[Number, ...], y: Number) -> tuple[Number, ...]:
    inverse = t["div"](1.0, a[1])  # one division, however many directions
    return inverse, -(y * inverse)


def _angle(t: Table, a: tuple[Number, ...], y: Number) -> tuple[Number, ...]:
    inverse = t["div"](1.0, a[0] * a[0] + a[1] * a[1])
    return a[1] * inverse, -(a[0] * inverse)


RULES: dict[str, Rule] = {
    "add": Smooth(lambda t, a, y: (1.0, 1.0)),
    "sub": Smooth(lambda t, a, y: (1.0, -1.0)),
    "mul": Smooth(lambda t, a, y: (a[1], a[0])),
    "div": Smooth(_quotient),
    "neg": Smooth(lambda t, a, y: (-1.0,)),
    "abs": Smooth(lambda t, a, y: (t["select"](t["lt"](a[0], 0.0), -1.0, 1.0),)),
    "sqrt": Smooth(lambda t, a, y: (t["div"](0.5, y),)),
    "sin": Smooth(lambda t, a, y: (t["cos"](a[0]),)),
    "cos": Smooth(lambda t, a, y: (-t["sin"](a[0]),)),
    "atan2": Smooth(_angle),
    "exp": Smooth(lambda t, a, y: (y,)),
    "log": Smooth(lambda t, a, y: (t["div"](1.0, a[0]),)),
    "min": Choice(lambda t, a: t["lt"](a[0], a[1]), (0, 1)),
    "max": Choice(lambda t, a: t["lt"](a[1], a[0]), (0, 1)),
    "select": Choice(lambda t, a: a[0], (1, 2)),
}
