"""A program as the instructions that a GPU has.

Three things differ from the program's nodes. A product that is only read by sums becomes part of them, as fused
multiply-adds; sin and cos of one angle are one instruction; a change of sign costs nothing and belongs to the operand.
Fusing here, and not in the compiler, makes results the same whatever the compiler, and lets the scheduler see
which values really take up a register.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from linkwise.trace.block import Block, Node, arguments
from linkwise.trace.ops import OPS


class Operand(NamedTuple):
    """A value of the program, perhaps with its sign changed."""

    value: int
    negative: bool = False


class Instruction(NamedTuple):
    """An operation of :data:`~linkwise.trace.ops.OPS`, or one of three more.

    ``fma`` is a b + c; ``sincos`` has two results; ``copy`` has none, it only brings an input to the outputs.
    ``results`` are the nodes computed; None where one of two is not wanted.
    """

    op: str
    operands: tuple[Operand, ...]
    results: tuple[int | None, ...]
    reads: tuple[int, ...]  # values that must be in registers: operands without constants, each once
    writes: tuple[int, ...]  # the results that are wanted


def is_truth(node: Node) -> bool:
    """Whether a node is a truth value."""
    return node[0] in OPS and OPS[node[0]].result == "B"


def operand(program: Block, number: int) -> Operand:
    """A value as an operand: changes of sign are taken off it."""
    nodes, negative = program.nodes, False
    while nodes[number][0] == "neg":
        number, negative = nodes[number][1], not negative
    return Operand(number, negative)


def instructions(program: Block) -> list[Instruction]:
    """Instructions that the results need, in the order of the program."""
    nodes = program.nodes
    live = program.live
    product_of = _fused(program, live)
    fused = set(product_of.values())
    made: list[Instruction] = []
    pair_of = _pairs(program, live)
    for number in live:
        op = nodes[number][0]
        if op in ("const", "input", "neg") or number in fused:
            continue
        if op in ("sin", "cos"):
            pair = pair_of[number]
            if number == min(pair.values()):
                angle = operand(program, nodes[number][1])
                made.append(_instruction(program, "sincos", (angle,), (pair.get("sin"), pair.get("cos"))))
        elif number in product_of:
            made.append(_multiply_add(program, number, product_of[number]))
        else:
            operands = tuple(operand(program, a) for a in nodes[number][1:])
            made.append(_instruction(program, op, operands, (number,)))
    return made + _copies(program)


def _pairs(program: Block, live: list[int]) -> dict[int, dict[str, int]]:
    """Nodes, one or two, that one instruction computes for each sin and cos."""
    open_pairs: dict[Operand, dict[str, int]] = {}
    found: dict[int, dict[str, int]] = {}
    for number in live:
        op = program.nodes[number][0]
        if op in ("sin", "cos"):
            angle = operand(program, program.nodes[number][1])
            if op in open_pairs.get(angle, {}):  # the same once more: a pair of its own
                del open_pairs[angle]
            found[number] = open_pairs.setdefault(angle, {})
            found[number][op] = number
    return found


def _copies(program: Block) -> list[Instruction]:
    """Results that are inputs: read like any other operand, since their slots may be used again."""
    wanted = dict.fromkeys(operand(program, value).value for row in program.results for value in row)
    inputs = [value for value in wanted if program.nodes[value][0] == "input"]
    return [_instruction(program, "copy", (Operand(value),), ()) for value in inputs]


def _instruction(
    program: Block, op: str, operands: tuple[Operand, ...], results: tuple[int | None, ...]
) -> Instruction:
    nodes = program.nodes
    reads = dict.fromkeys([value for value, _ in operands if nodes[value][0] != "const"])
    writes = results if None not in results else tuple(result for result in results if result is not None)
    return Instruction(op, operands, results, tuple(reads), cast(tuple[int, ...], writes))


def _fused(program: Block, live: list[int]) -> dict[int, int]:
    """Product that each sum takes in.

    A sum has room for one product, and a product vanishes only if every reader takes it in. Those with
    one reader choose first: they gain the most room for the least.
    """
    nodes = program.nodes
    readers: dict[int, list[int]] = {}
    for number in live:
        for a in arguments(nodes[number]):
            readers.setdefault(a, []).append(number)
    results = {value for row in program.results for value in row}
    products = [n for n in live if nodes[n][0] == "mul" and n not in results]
    taken: dict[int, int] = {}
    done: set[int] = set()
    for most in (1, 2, len(live)):
        for product in products:
            by = readers[product]
            if product in done or len(by) > most or len(set(by)) < len(by):
                continue
            if all(nodes[n][0] in ("add", "sub") and n not in taken for n in by):
                taken.update((n, product) for n in by)
                done.add(product)
    return taken


def _multiply_add(program: Block, number: int, product: int) -> Instruction:
    """``a b + c``, with signs such that it equals the sum or difference."""
    op, left, right = program.nodes[number]
    a, b = (operand(program, n) for n in program.nodes[product][1:])
    c = operand(program, right if left == product else left)
    if op == "sub" and left == product:
        c = Operand(c.value, not c.negative)
    elif op == "sub":
        a = Operand(a.value, not a.negative)
    return _instruction(program, "fma", (a, b, c), (number,))


def pure_angles(program: Block, instructions: Sequence[Instruction]) -> tuple[set[int], set[int]]:
    """Input values that are nothing but angles, and all values whose sin and cos are safe when these are tamed.

    sin and cos are computed without a branch, for angles up to a limit. An input that is nothing but an angle (only sin
    and cos read it, perhaps with a constant added) is looked at once, while it is staged; the rare huge one is replaced
    by the same angle within a turn. So the long straight piece of code stays in one piece.
    """
    readers: dict[int, list[Instruction]] = {}
    for each in instructions:
        for value in each.reads:
            readers.setdefault(value, []).append(each)
    results = {operand(program, value).value for row in program.results for value in row}
    inputs: set[int] = set()
    safe: set[int] = set()
    for value, node in enumerate(program.nodes):
        if node[0] != "input" or value not in readers or value in results:
            continue
        reached = {value}
        for each in readers[value]:
            if each.op == "sincos":
                continue
            shifted = each.op in ("add", "sub") and len(each.reads) == 1 and len(each.operands) == 2
            shifted = shifted and any(program.nodes[o.value][0] == "const" for o in each.operands)
            only = shifted and all(
                n not in results and all(r.op == "sincos" for r in readers.get(n, ())) for n in each.writes
            )
            if not only:
                break
            reached.update(each.writes)
        else:
            inputs.add(value)
            safe |= reached
    return inputs, safe
