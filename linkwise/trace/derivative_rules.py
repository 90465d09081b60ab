"""The derivative of every operation: one table, which forward and reverse mode both read.

An operation on real numbers has its partial derivatives (a :class:`Smooth`), or it hands on one of two arguments
(a :class:`ChoiceRule`): then the derivative is handed on the same way, and the argument that is not taken has none,
whatever its value. Comparisons are piecewise constant and are not in the table. At the kinks themselves (``abs`` at 0,
``min`` and ``max`` of equal numbers) the derivative is that of one side, the one the operation's definition takes.

A power is written ``exp(log(a) * p)``. Its derivative by the rules of the three would be 0 · ∞ at a = 0, so it has a
rule of its own (:func:`slopes`): p · a ** (p - 1), in which the next derivative finds a power again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.trace.block import Node
from linkwise.trace.replay import Table
from linkwise.trace.tracer import Number, Traced


@dataclass(frozen=True)
class Smooth:
    """``partials(table, arguments, result)``: the derivative with respect to each argument."""

    partials: Callable[[Table, tuple[Number, ...], Number], tuple[Number, ...]]


@dataclass(frozen=True)
class ChoiceRule:
    """``condition(table, arguments)``: true where the first of ``choices`` (places of arguments) is the result."""

    condition: Callable[[Table, tuple[Any, ...]], Any]
    choices: tuple[int, int]


Rule = Smooth | ChoiceRule


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
    "min": ChoiceRule(lambda t, a: t["lt"](a[0], a[1]), (0, 1)),
    "max": ChoiceRule(lambda t, a: t["lt"](a[1], a[0]), (0, 1)),
    "select": ChoiceRule(lambda t, a: a[0], (1, 2)),
}


def slopes(nodes: Sequence[Node], number: int, found: Sequence[Any], table: Table) -> list[tuple[int, Number]]:
    """The nodes that a node with a :class:`Smooth` rule depends on, each with the partial derivative.

    Args:
        nodes: those of the program.
        number: the node.
        found: the values of all nodes.
        table: how operations run on these.
    """
    op, *places = nodes[number]
    factors = _power_of(nodes, number)
    if factors is not None:
        logarithm, exponent, sign = factors
        base = nodes[logarithm][1]
        a, p, y = found[base], sign * found[exponent], found[number]
        by_base = p * _raised(table, a, p - 1.0)
        if nodes[exponent][0] == "const":
            return [(base, by_base)]
        by_exponent = table["select"](table["eq"](y, 0.0), 0.0, y * found[logarithm])
        return [(base, by_base), (exponent, sign * by_exponent)]
    rule = RULES[op]
    assert isinstance(rule, Smooth)
    arguments = tuple(found[place] for place in places)
    return list(zip(places, rule.partials(table, arguments, found[number]), strict=True))


def _power_of(nodes: Sequence[Node], number: int) -> tuple[int, int, float] | None:
    """Nodes log(a) and p of ``exp(± log(a) * p)``, and the sign; None for any other node."""
    op, *places = nodes[number]
    if op != "exp":
        return None
    sign, product = 1.0, nodes[places[0]]
    if product[0] == "neg":
        sign, product = -1.0, nodes[product[1]]
    if product[0] != "mul":
        return None
    for one, other in ((1, 2), (2, 1)):
        if nodes[product[one]][0] == "log":
            return product[one], product[other], sign
    return None


def _raised(table: Table, base: Any, exponent: Any) -> Any:
    if isinstance(base, (float, int)) and isinstance(exponent, (float, int)):
        return 1.0 if exponent == 0.0 else table["exp"](table["log"](base) * exponent)
    if isinstance(exponent, Traced) and not isinstance(base, Traced):
        return Traced.lift(base, exponent) ** exponent
    return base**exponent
