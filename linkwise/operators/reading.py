"""The papers' notation, read: ``[I - HψK] Hφ = Hψ`` as two operators of a state."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from linkwise.operators.atoms import Diagonal
from linkwise.operators.base import Operator
from linkwise.operators.expressions import Identity, Inverse, Zero, product, total
from linkwise.operators.notation import LETTERS

if TYPE_CHECKING:
    from linkwise.operators.state import Operators

_WORDS = {letter: word for word, letter in LETTERS.items()}
_OPENING, _CLOSING, _ROTORS = "([", ")]", "(+ J_r)"
_NUMBERS = {"2": 2.0, "½": 0.5}
_SIGNS = {"+": 1.0, "-": -1.0}
_TOKENS = re.compile(
    "|".join(map(re.escape, [_ROTORS, *sorted(_WORDS, key=len, reverse=True), "⁻¹", *"*+-()[]", *_NUMBERS]))
)


def sides(statement: str, ops: Operators) -> tuple[Operator, Operator]:
    """The operators on the two sides of an equation; a right side I or 0 is of the left side's size."""
    left_text, right_text = (side.strip() for side in statement.split("="))
    left = _sum(_TOKENS.findall(left_text)[::-1], ops)
    if right_text == "0":
        return left, Zero(left.engine, left.rows, left.cols)
    if right_text == "I":
        return left, Identity(left.engine, left.rows)
    return left, _sum(_TOKENS.findall(right_text)[::-1], ops)


def _sum(tokens: list[str], ops: Operators) -> Operator:
    """Terms up to a closing parenthesis or the end; ``tokens`` are taken from their end."""
    terms = []
    while tokens and tokens[-1] not in _CLOSING:
        if tokens[-1] != _ROTORS:
            sign = _SIGNS[tokens.pop()] if tokens[-1] in _SIGNS else 1.0
            number = _NUMBERS[tokens.pop()] if tokens[-1] in _NUMBERS else 1.0
            terms.append((sign * number, _product(tokens, ops)))
        elif tokens.pop() and ops.has_armature:
            terms.append((1.0, ops.armature))
    return total(*terms)


def _product(tokens: list[str], ops: Operators) -> Operator:
    factors = []
    while tokens and (tokens[-1] in _WORDS or tokens[-1] in _OPENING):
        factor = _single(tokens, ops)
        while tokens and tokens[-1] in ("*", "⁻¹"):
            factor = factor.T if tokens.pop() == "*" else _inverse(factor)
        factors.append(factor)
    return product(*factors)


def _single(tokens: list[str], ops: Operators) -> Operator:
    token = tokens.pop()
    if token in _WORDS:
        letter = getattr(ops, _WORDS[token])
        named: Operator = letter if isinstance(letter, Operator) else letter()  # B, at the points of closure
        return named
    inside = _sum(tokens, ops)
    tokens.pop()
    return inside


def _inverse(operator: Operator) -> Operator:
    """Of a block-diagonal operator the one with the inverse blocks; else what rules may turn into something better."""
    return operator.inv() if isinstance(operator, Diagonal) else Inverse(operator)
