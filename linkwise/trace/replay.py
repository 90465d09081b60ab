"""Running a program again on other scalars: each operation as a function of numbers that may be traced or not.

The interpreter defines what a program computes for floats; here the same nodes run on traced scalars (to build one
program out of another) or, with another table, on the scalars of any library.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from linkwise.trace.block import OPS, Block
from linkwise.trace.tracer import Number, Traced, TracedBool, Truth, maximum, minimum

Table = Mapping[str, Callable[..., Any]]


def _of_one(name: str) -> Callable[[Number], Number]:
    """An elementary function: the scalar's own method, or the definition for a constant."""

    def function(a: Number) -> Number:
        return getattr(a, name)() if isinstance(a, Traced) else OPS[name].define(a)

    return function


def _atan2(y: Number, x: Number) -> Number:
    if isinstance(y, Traced):
        return y.arctan2(x)
    if isinstance(x, Traced):
        return Traced(x.tracer, x.tracer.number(y)).arctan2(x)
    return OPS["atan2"].define(y, x)


def select(condition: Truth, a: Number, b: Number) -> Number:
    """``a`` where the condition holds, else ``b``."""
    if isinstance(condition, TracedBool):
        return condition.where(a, b)
    return a if condition else b


def _divide(a: Number, b: Number) -> Number:
    return a / b if isinstance(a, Traced) or isinstance(b, Traced) else OPS["div"].define(a, b)


NUMBERS: Table = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": _of_one("sqrt"),
    "sin": _of_one("sin"),
    "cos": _of_one("cos"),
    "atan2": _atan2,
    "exp": _of_one("exp"),
    "log": _of_one("log"),
    "min": minimum,
    "max": maximum,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "not": lambda a: (not a) if isinstance(a, bool) else ~a,
    "hold": lambda a: a.hold() if isinstance(a, Traced) else a,
    "select": select,
}


def values(program: Block, inputs: Sequence[Sequence[Number]], table: Table = NUMBERS) -> list[Number]:
    """The value of every node, for flat input arrays of any scalars."""
    found: list[Number] = []
    for node in program.nodes:
        op = node[0]
        if op == "const":
            found.append(node[1])
        elif op == "input":
            found.append(inputs[node[1]][node[2]])
        elif len(node) == 3:
            found.append(table[op](found[node[1]], found[node[2]]))
        else:
            found.append(table[op](*(found[a] for a in node[1:])))
    return found
