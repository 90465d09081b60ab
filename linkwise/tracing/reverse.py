"""Reverse mode: what each value means to the outputs, carried back from them; any number of rows at once.

One row costs some three or four times the program, whatever the number of inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.tracing.forward import is_one, is_zero
from linkwise.tracing.program import Program
from linkwise.tracing.replay import NUMBERS, Table, values
from linkwise.tracing.rules import RULES, Choice
from linkwise.tracing.tracer import Number

Cotangent = dict[int, Number]
"""Row -> derivative of that row's sum with respect to a value; a row that is left out does not depend on it."""


def cotangents(
    program: Program,
    inputs: Sequence[Sequence[Number]],
    weights: Sequence[Sequence[Cotangent]],
    table: Table = NUMBERS,
) -> list[list[Cotangent]]:
    """The cotangents of all elements of all input arrays.

    Args:
        program: what is differentiated.
        inputs: its flat input arrays, of any scalars.
        weights: for each element of each output array, its weight in each row.
        table: how operations run on these scalars.
    """
    found = values(program, inputs, table)
    meaning: list[Cotangent] = [{} for _ in program.nodes]
    for result, row in zip(program.results, weights, strict=True):
        for number, weight in zip(result, row, strict=True):
            for k, x in weight.items():
                _add(meaning[number], k, x)
    back = [[dict[int, Number]() for _ in range(array.size)] for array in program.inputs]
    for number in reversed(range(len(program.nodes))):
        op, *arguments = program.nodes[number]
        if op == "input":
            for k, x in meaning[number].items():
                _add(back[arguments[0]][arguments[1]], k, x)
        elif op in RULES and meaning[number]:
            _one(op, number, arguments, found, meaning, table)
        meaning[number] = {}
    return back


def _one(
    op: str, number: int, places: Sequence[int], found: Sequence[Number], meaning: list[Cotangent], table: Table
) -> None:
    rule = RULES[op]
    arguments = tuple(found[a] for a in places)
    if isinstance(rule, Choice):
        condition = rule.condition(table, arguments)
        one, other = (places[c] for c in rule.choices)
        for k, x in meaning[number].items():
            _add(meaning[one], k, table["select"](condition, x, 0.0))
            _add(meaning[other], k, table["select"](condition, 0.0, x))
        return
    for place, partial in zip(places, rule.partials(table, arguments, found[number]), strict=True):
        for k, x in meaning[number].items():
            _add(meaning[place], k, x if is_one(partial) else x * partial)


def _add(total: Cotangent, k: int, x: Number) -> None:
    if not is_zero(x):
        total[k] = total[k] + x if k in total else x
