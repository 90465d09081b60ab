"""Derivatives of blocks: the rule of every operation, and both modes that read them.

Forward mode carries directional derivatives along with the values, any number of directions at once. Tangents are
sparse: a value that a direction does not move has no tangent in it, so that the zeros of a Jacobian cost nothing, here
or in the program.

Reverse mode carries back what each value means to the outputs, any number of rows at once; one row costs some three or
four times the program, whatever the number of inputs. A value that only a branch uses means something only where the
branch is taken. Elsewhere its derivative is zero, and zero times the slope of a root at -1 or of a quotient at 0 is not
a number: so a value's meaning comes with a *guard*, the condition under which it counts, and what stands behind a guard
is looked at only where meanings are summed or returned.

An operation on real numbers has its partial derivatives (a :class:`Smooth`), or it passes on one of two arguments
(a :class:`ChoiceRule`): then the derivative is passed on the same way, and the argument that is not taken has none,
whatever its value. Comparisons are piecewise constant and are not in the table. At the kinks themselves (``abs`` at 0,
``min`` and ``max`` of equal numbers) the derivative is that of one side, the one the operation's definition takes.

A power is written ``exp(log(a) * p)``. Its derivative by the rules of the three would be 0 · ∞ at a = 0, so it has a
rule of its own (:func:`slopes`): p · a ** (p - 1), in which the next derivative finds a power again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.dataclass import dataclass
from linkwise.trace.block import Block, Node
from linkwise.trace.replay import NUMBERS, Table, values
from linkwise.trace.tracer import Number, Traced, TracedBool, Truth


@dataclass(frozen=True)
class Smooth:
    """``partials(table, arguments, result)``: the derivative with respect to each argument."""

    partials: Callable[[Table, tuple[Number, ...], Number], tuple[Number, ...]]


@dataclass(frozen=True)
class ChoiceRule:
    """``condition(table, arguments)``: true where the first of ``choices`` (places of arguments) is the result."""

    condition: Callable[[Table, tuple[Number, ...]], Truth]
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


def slopes(nodes: Sequence[Node], number: int, found: Sequence[Number], table: Table) -> list[tuple[int, Number]]:
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


def _raised(table: Table, base: Number, exponent: Number) -> Number:
    if isinstance(base, (float, int)) and isinstance(exponent, (float, int)):
        return 1.0 if exponent == 0.0 else table["exp"](table["log"](base) * exponent)
    if isinstance(exponent, Traced) and not isinstance(base, Traced):
        return Traced.lift(base, exponent) ** exponent
    return base**exponent


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


Cotangent = dict[int, Number]
"""Row -> derivative of that row's sum with respect to a value; a row that is left out does not depend on it."""


class Meaning:
    """The cotangent of one value, to be taken as zero where its guard (a condition, or True) does not hold."""

    __slots__ = ("guard", "rows")

    def __init__(self) -> None:
        self.rows: Cotangent = {}
        self.guard: Truth = True

    def add(self, rows: Cotangent, guard: Truth, table: Table) -> None:
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

    def where(self, condition: Truth, table: Table) -> Truth:
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


def behind(rows: Cotangent, guard: Truth, table: Table) -> Cotangent:
    """A cotangent where its guard holds, else zero."""
    return rows if guard is True else {k: table["select"](guard, x, 0.0) for k, x in rows.items()}


def _same(a: Number, b: Number) -> bool:
    return a is b or (isinstance(a, TracedBool) and isinstance(b, TracedBool) and a.number == b.number)
