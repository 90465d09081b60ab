"""Reverse mode: what each value means to the outputs, carried back from them; any number of rows at once.

One row costs some three or four times the program, whatever the number of inputs.

A value that only a branch uses means something only where the branch is taken. Elsewhere its derivative is zero, and
zero times the slope of a root at -1 or of a quotient at 0 is not a number: so a value's meaning comes with a *guard*,
the condition under which it counts, and what stands behind a guard is looked at only where meanings are summed or
handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.trace.block import Block, Node
from linkwise.trace.derivative_rules import RULES, ChoiceRule, slopes
from linkwise.trace.forward import is_one, is_zero
from linkwise.trace.replay import NUMBERS, Table, values
from linkwise.trace.tracer import Number, TracedBool

Cotangent = dict[int, Number]
"""Row -> derivative of that row's sum with respect to a value; a row that is left out does not depend on it."""


class Meaning:
    """The cotangent of one value, to be taken as zero where its guard (a condition, or True) does not hold."""

    __slots__ = ("guard", "rows")

    def __init__(self) -> None:
        self.rows: Cotangent = {}
        self.guard: Any = True

    def add(self, rows: Cotangent, guard: Any, table: Table) -> None:
        """Add a contribution with a guard of its own."""
        rows = {k: x for k, x in rows.items() if not is_zero(x)}
        if not rows or guard is False:
            return
        if not self.rows:
            self.rows, self.guard = rows, guard
            return
        if not _same(self.guard, guard):
            self.rows, rows = behind(self.rows, self.guard, table), behind(rows, guard, table)
            self.guard = True if self.guard is True or guard is True else table["or"](self.guard, guard)
        for k, x in rows.items():
            self.rows[k] = self.rows[k] + x if k in self.rows else x

    def where(self, condition: Any, table: Table) -> Any:
        """The guard narrowed by a further condition."""
        if condition is True or self.guard is True:
            return condition
        return False if condition is False else table["and"](self.guard, condition)


def cotangents(
    program: Block,
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
    meaning = [Meaning() for _ in program.nodes]
    for result, row in zip(program.results, weights, strict=True):
        for number, weight in zip(result, row, strict=True):
            meaning[number].add(weight, True, table)
    back = [[dict[int, Number]() for _ in range(array.size)] for array in program.inputs]
    for number in reversed(range(len(program.nodes))):
        op, *arguments = program.nodes[number]
        if op == "input":
            for k, x in behind(meaning[number].rows, meaning[number].guard, table).items():
                there = back[arguments[0]][arguments[1]]
                there[k] = there[k] + x if k in there else x
        elif op in RULES and meaning[number].rows:
            one_cotangent(program.nodes, number, found, meaning, table)
        meaning[number].rows = {}
    return back


def one_cotangent(
    nodes: Sequence[Node], number: int, found: Sequence[Number], meaning: list[Meaning], table: Table
) -> None:
    """Hand the cotangent of one node on to its arguments."""
    op, *places = nodes[number]
    rule, own = RULES[op], meaning[number]
    if isinstance(rule, ChoiceRule):
        condition = rule.condition(table, tuple(found[a] for a in places))
        one, other = (places[c] for c in rule.choices)
        meaning[one].add(own.rows, own.where(condition, table), table)
        meaning[other].add(own.rows, own.where(table["not"](condition), table), table)
        return
    for place, partial in slopes(nodes, number, found, table):
        rows = own.rows if is_one(partial) else {k: x * partial for k, x in own.rows.items()}
        meaning[place].add(rows, own.guard, table)


def behind(rows: Cotangent, guard: Any, table: Table) -> Cotangent:
    """A cotangent where its guard holds, else zero."""
    return rows if guard is True else {k: table["select"](guard, x, 0.0) for k, x in rows.items()}


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, TracedBool) and isinstance(b, TracedBool) and a.number == b.number)
