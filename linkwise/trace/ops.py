"""The closed set of operations a program is made of.

Each operation is one row: its name, how many arguments it takes, what kind of value each
argument and the result is (``R`` a real number, ``B`` a truth value), and the Python function
that *defines* it. Every target (LLVM, CUDA, C) is a table over these same names, and agrees
with the definition here to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from linkwise.dataclass import dataclass


def _divide(a: float, b: float) -> float:
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """IEEE behaviour instead of Python's exceptions: out of domain is NaN, overflow is infinity."""

    def quiet(a: float) -> float:
        try:
            return function(a)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return quiet


def _log(a: float) -> float:
    return -math.inf if a == 0.0 else math.log(a)


def _minimum(a: float, b: float) -> float:
    return a if a < b else b


def _maximum(a: float, b: float) -> float:
    return a if a > b else b


@dataclass(frozen=True)
class Op:
    """One operation: its signature and its definition."""

    name: str
    arguments: str  # one letter for each argument: R real, B truth value
    result: str
    define: Callable[..., Any]
    commutes: bool = False

    @property
    def arity(self) -> int:
        return len(self.arguments)


OPS: dict[str, Op] = {
    op.name: op
    for op in (
        Op("add", "RR", "R", lambda a, b: a + b, commutes=True),
        Op("sub", "RR", "R", lambda a, b: a - b),
        Op("mul", "RR", "R", lambda a, b: a * b, commutes=True),
        Op("div", "RR", "R", _divide),
        Op("neg", "R", "R", lambda a: -a),
        Op("abs", "R", "R", abs),
        Op("sqrt", "R", "R", _quiet(math.sqrt)),
        Op("sin", "R", "R", _quiet(math.sin)),
        Op("cos", "R", "R", _quiet(math.cos)),
        Op("atan2", "RR", "R", math.atan2),
        Op("exp", "R", "R", _quiet(math.exp)),
        Op("log", "R", "R", _quiet(_log)),
        # min and max take the second argument when the comparison is false, so min(NaN, b) is b:
        # the semantics of the vector instructions, and of C's ``a < b ? a : b``.
        Op("min", "RR", "R", _minimum),
        Op("max", "RR", "R", _maximum),
        Op("lt", "RR", "B", lambda a, b: a < b),
        Op("le", "RR", "B", lambda a, b: a <= b),
        Op("eq", "RR", "B", lambda a, b: a == b, commutes=True),
        Op("and", "BB", "B", lambda a, b: a and b, commutes=True),
        Op("or", "BB", "B", lambda a, b: a or b, commutes=True),
        Op("not", "B", "B", lambda a: not a),
        Op("hold", "R", "R", lambda a: a),  # the number itself; its derivative is zero
        Op("select", "BRR", "R", lambda c, a, b: a if c else b),
    )
}


def is_truth(node: tuple[object, ...]) -> bool:
    """Whether a node of a program is a truth value."""
    return node[0] in OPS and OPS[node[0]].result == "B"
