"""A program as the instructions that a GPU has, in an order that keeps few values alive at a time.

Three things differ from the program's nodes. A product that is only read by sums becomes part of them, as fused
multiply-adds; sin and cos of one angle are one instruction; a change of sign costs nothing and belongs to the operand.
Fusing here, and not in the compiler, makes results the same whatever the compiler, and lets the scheduler see
which values really take up a register.

What is alive must be in a register or in memory, and a thread has at most 255 registers. No single rule is best for
all programs: several are tried, and the order with the fewest values alive at its worst place is taken.
The compiler reorders again, for speed, but from a better beginning; and what goes to memory is decided in this order.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

from linkwise.trace.block import Block, arguments


class Operand(NamedTuple):
    """A value of the program, perhaps with its sign changed."""

    value: int
    negative: bool = False


class Instruction(NamedTuple):
    """An operation of :data:`~linkwise.trace.block.OPS`, or one of three more.

    ``fma`` is a b + c; ``sincos`` has two results; ``copy`` has none, it only brings an input to the outputs.
    ``results`` are the nodes computed; None where one of two is not wanted.
    """

    op: str
    operands: tuple[Operand, ...]
    results: tuple[int | None, ...]
    reads: tuple[int, ...]  # values that must be in registers: operands without constants, each once
    writes: tuple[int, ...]  # the results that are wanted


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


_LONG = 10_000  # instructions above which fewer orders are tried


def ordered(
    instructions: Sequence[Instruction], in_memory: Collection[int], wanted: Sequence[int]
) -> list[Instruction]:
    """Instructions, reordered.

    Args:
        instructions: in any valid order.
        in_memory: values that are read from memory when needed and so take no register meanwhile.
        wanted: the values of the results.
    """
    found = [[instructions[k] for k in order] for order in orders(instructions, in_memory, wanted)]
    return min(found, key=lambda order: most_alive(order, in_memory))


def orders(instructions: Sequence[Instruction], in_memory: Collection[int], wanted: Sequence[int]) -> list[list[int]]:
    """Orders that are tried, of the instructions' numbers."""
    graph = _Graph(instructions)
    roots = [graph.home[value] for value in wanted if value in graph.home]
    beginnings = [graph.by_demand(roots, "last first"), graph.by_demand(roots, "hungriest first")]
    if len(instructions) <= _LONG:
        beginnings += [list(range(len(instructions))), graph.by_demand(roots, "first first")]
    return [order for begin in beginnings for order in (begin, graph.ending_lives(begin, in_memory))]


def most_alive(order: Sequence[Instruction], in_memory: Collection[int]) -> int:
    """Largest number of values that are alive at once, those in memory not counted."""
    last = {value: k for k, each in enumerate(order) for value in each.reads}
    alive, most = 0, 0
    for k, each in enumerate(order):
        alive -= sum(1 for value in each.reads if last[value] == k and value not in in_memory)
        alive += sum(1 for value in each.writes if value in last)
        most = max(most, alive)
    return most


class _Graph:
    """Dependencies: the instruction that computes what each of the others reads."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.home = {value: k for k, each in enumerate(instructions) for value in each.writes}
        self.needs = [
            list(dict.fromkeys(self.home[value] for value in each.reads if value in self.home)) for each in instructions
        ]
        self.readers: dict[int, set[int]] = {}
        for k, each in enumerate(instructions):
            for value in each.reads:
                self.readers.setdefault(value, set()).add(k)

    def by_demand(self, roots: Sequence[int], rule: str) -> list[int]:
        """Depth first from the instructions that make results: each just before its first reader."""
        hunger = self._hunger() if rule == "hungriest first" else []
        order: list[int] = []
        placed = [False] * len(self.instructions)
        for root in (*roots, *range(len(self.instructions))):
            stack = [root]
            while stack:
                k = stack[-1]
                waiting = [n for n in self.needs[k] if not placed[n]]
                if placed[k] or not waiting:
                    stack.pop()
                    if not placed[k]:
                        placed[k] = True
                        order.append(k)
                    continue
                if hunger:
                    waiting.sort(key=hunger.__getitem__)
                elif rule == "first first":
                    waiting.reverse()
                stack.extend(waiting)
        return order

    def _hunger(self) -> list[int]:
        """Registers to compute each instruction, were nothing shared (Sethi and Ullman)."""
        hunger: list[int] = []
        for needs in self.needs:
            each = sorted((hunger[n] for n in needs), reverse=True)
            hunger.append(max([1, *(held + registers for held, registers in enumerate(each))]))
        return hunger

    def ending_lives(self, begin: Sequence[int], in_memory: Collection[int]) -> list[int]:
        """Order that always takes what ends the most lives and begins the fewest; else the order ``begin``."""
        rank = {k: place for place, k in enumerate(begin)}
        waiting = [len(needs) for needs in self.needs]
        left = {value: set(by) for value, by in self.readers.items()}

        def growth(k: int) -> int:
            each = self.instructions[k]
            begun = sum(1 for value in each.writes if value in self.readers)
            return begun - sum(1 for value in each.reads if len(left[value]) == 1 and value not in in_memory)

        ready: list[tuple[int, int, int]] = []

        def offer(k: int) -> None:
            heapq.heappush(ready, (growth(k), rank[k], k))

        for k, count in enumerate(waiting):
            if count == 0:
                offer(k)
        done = [False] * len(self.instructions)
        order: list[int] = []
        while ready:
            claimed, _, k = heapq.heappop(ready)
            if done[k]:
                continue
            if growth(k) != claimed:  # it has changed since it was put there
                offer(k)
                continue
            done[k] = True
            order.append(k)
            for value in self.instructions[k].reads:
                left[value].discard(k)
                if len(left[value]) == 1:
                    last = next(iter(left[value]))
                    if waiting[last] == 0:
                        offer(last)
            for reader in {reader for value in self.instructions[k].writes for reader in self.readers.get(value, ())}:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    offer(reader)
        return order
