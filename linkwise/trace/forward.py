"""Forward mode: directional derivatives carried along with the values, any number of directions at once.

Tangents are sparse: a value that a direction does not move has no tangent in it, so that the zeros of a Jacobian cost
nothing, here or in the program.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.trace.block import Block, Node
from linkwise.trace.derivative_rules import RULES, ChoiceRule, slopes
from linkwise.trace.replay import NUMBERS, Table, values
from linkwise.trace.tracer import Number

Tangent = dict[int, Number]
"""Direction -> derivative along it; a direction that is left out has derivative zero."""


def tangents(
    program: Block,
    inputs: Sequence[Sequence[Number]],
    directions: Sequence[Sequence[Tangent]],
    table: Table = NUMBERS,
) -> list[list[Tangent]]:
    """The tangents of all outputs.

    Args:
        program: what is differentiated.
        inputs: its flat input arrays, of any scalars.
        directions: for each element of each input array, its tangent.
        table: how operations run on these scalars.
    """
    found = values(program, inputs, table)
    moved: list[Tangent] = []
    for number, node in enumerate(program.nodes):
        op = node[0]
        if op == "const":
            moved.append({})
        elif op == "input":
            moved.append({k: x for k, x in directions[node[1]][node[2]].items() if not is_zero(x)})
        elif op not in RULES or not any(moved[a] for a in node[1:]):
            moved.append({})
        else:
            moved.append(one_tangent(program.nodes, number, found, moved, table))
    return [[moved[n] for n in result] for result in program.results]


def one_tangent(
    nodes: Sequence[Node], number: int, found: Sequence[Number], moved: Sequence[Tangent], table: Table
) -> Tangent:
    """The tangent of one node, from those of its arguments."""
    op, *places = nodes[number]
    rule = RULES[op]
    total: Tangent = {}
    if op == "mul":  # the commonest, in short
        for place, partial in ((places[0], found[places[1]]), (places[1], found[places[0]])):
            for k, x in moved[place].items():
                term = x * partial
                total[k] = total[k] + term if k in total else term
        return {k: x for k, x in total.items() if not is_zero(x)}
    if isinstance(rule, ChoiceRule):
        condition = rule.condition(table, tuple(found[a] for a in places))
        one, other = (moved[places[c]] for c in rule.choices)
        for k in dict.fromkeys((*one, *other)):
            total[k] = table["select"](condition, one.get(k, 0.0), other.get(k, 0.0))
        return total
    for place, partial in slopes(nodes, number, found, table):
        for k, x in moved[place].items():
            term = x if is_one(partial) else x * partial
            total[k] = total[k] + term if k in total else term
    return {k: x for k, x in total.items() if not is_zero(x)}


def is_zero(x: Number) -> bool:
    """Whether a derivative is known to be zero."""
    return isinstance(x, (float, int)) and x == 0.0


def is_one(x: Number) -> bool:
    """Whether a partial derivative is known to be one."""
    return isinstance(x, (float, int)) and x == 1.0
