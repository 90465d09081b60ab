"""Programs with wide results as several kernels, one after another.

A multiprocessor keeps some thousand instructions at hand; a longer program waits for them more than it computes. So it
is cut where few values are alive. These, and the results, go from kernel to kernel through memory between them, where
every value has a place, and those of 32 states lie side by side. The last kernel spreads the results, each different
number once, to the rows of matrices where they belong (:func:`linkwise.targets.cuda.wide.last_kernel`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from linkwise.dataclass import dataclass, field
from linkwise.targets.c.block_writer import shared_places
from linkwise.targets.cuda.instructions import Instruction, Operand, instructions, is_truth, operand, pure_angles
from linkwise.targets.cuda.order import orders
from linkwise.trace.block import Block

_EVEN = 0.75  # of the longest part, above which it is cut where fewest values are alive
_SHARES = (0.75, 0.87, 1.0)  # of the length that is allowed, all of which are tried


@dataclass(frozen=True, eq=False)
class KernelPart:
    """One kernel of several.

    Args:
        order: its instructions.
        reads: values that earlier parts have computed, and their places between the kernels.
        writes: values that it leaves, and their places.
    """

    order: tuple[Instruction, ...] = field(repr=False)
    reads: Mapping[int, int]
    writes: Mapping[int, int]

    def inputs(self, program: Block) -> list[int]:
        """The program's inputs that it reads."""
        nodes = program.nodes
        read = {value for each in self.order for value in each.reads if value < len(nodes)}
        return sorted({nodes[value][1] for value in read if nodes[value][0] == "input"})


@dataclass(frozen=True)
class KernelParts:
    """All kernels of a program but the last.

    Args:
        parts: in the order in which they run.
        places: between them, for each state.
        results: of these, the first ones, which the results take.
        tables: for each output and each of its numbers the place; -1 for zeros.
        values: how many values there are, with those that only results are.
        angles: inputs that are nothing but angles.
        safe: all values whose sin and cos are safe when these are within a turn.
    """

    parts: tuple[KernelPart, ...]
    places: int
    results: int
    tables: tuple[tuple[int, ...], ...]
    values: int
    angles: frozenset[int]
    safe: frozenset[int]


def split(program: Block, longest: int) -> KernelParts:
    """The parts of a program, each with so many instructions at most."""
    made = instructions(program)
    angles, safe = pure_angles(program, made)
    made = [each for each in made if each.op != "copy"]
    kept = _kept(program, made)
    given = {value for value, node in enumerate(program.nodes) if node[0] == "input"}
    results = {value: k for k, value in enumerate(dict.fromkeys(kept.values()))}
    lengths = [max(1, int(share * longest)) for share in _SHARES]
    found = orders(made, given, list(kept.values()))
    divisions = [_Division(order, given, results, length) for length in lengths for order in found]
    best = min(divisions, key=lambda division: division.traffic)
    tables = tuple(
        tuple(results[kept[each]] if (each := operand(program, number)) in kept else -1 for number in row)
        for row in program.results
    )
    values = len(program.nodes) + len(kept)
    return KernelParts(best.parts, best.places, len(results), tables, values, frozenset(angles), frozenset(safe))


def _kept(program: Block, made: list[Instruction]) -> dict[Operand, int]:
    """The value of each different number of the results but zero.

    What no instruction computes becomes one: inputs, constants, numbers with their sign changed, truths.
    """
    computed = {value for each in made for value in each.writes}
    numbers = dict.fromkeys(operand(program, number) for row in program.results for number in row)
    found: dict[Operand, int] = {}
    for each in numbers:
        node = program.nodes[each.value]
        if node == ("const", 0.0) and math.copysign(1.0, node[1]) > 0 and not each.negative:
            continue
        found[each] = each.value
        if each.negative or each.value not in computed or is_truth(node):
            found[each] = len(program.nodes) + len(found) - 1
            reads = () if node[0] == "const" else (each.value,)
            made.append(Instruction("keep", (each,), (found[each],), reads))
    return found


class _Division:
    """One way to divide a program: an order of its instructions, cut."""

    def __init__(self, order: Sequence[Instruction], given: set[int], results: Mapping[int, int], longest: int) -> None:
        segments = [order[begin:end] for begin, end in _cuts(order, given, longest)]
        place, self.places = _places(segments, results)
        parts = []
        known: set[int] = set()
        for segment in segments:
            reads = {value: place[value] for each in segment for value in each.reads if value in known}
            own = [value for each in segment for value in each.writes]
            parts.append(KernelPart(tuple(segment), reads, {value: place[value] for value in own if value in place}))
            known.update(own)
        self.parts = tuple(parts)
        self.traffic = sum(len(part.reads) + len(part.writes) for part in parts)


def _cuts(order: Sequence[Instruction], given: set[int], longest: int) -> list[tuple[int, int]]:
    """Ranges of the parts: about equally long, and cut where few values are alive."""
    if not order:
        return [(0, 0)]
    last = {value: k for k, each in enumerate(order) for value in each.reads}
    alive, now = [0], 0
    for k, each in enumerate(order):
        now += sum(1 for value in each.writes if value in last)
        now -= sum(1 for value in each.reads if last[value] == k and value not in given)
        alive.append(now)
    cuts = [0]
    while len(order) - cuts[-1] > longest:
        left = len(order) - cuts[-1]
        whole = min(longest, 1.1 * left / -(-left // longest))
        window = range(cuts[-1] + max(1, int(_EVEN * whole)), cuts[-1] + max(1, int(whole)) + 1)
        cuts.append(min(window, key=alive.__getitem__))
    return list(zip(cuts, [*cuts[1:], len(order)], strict=True))


def _places(segments: Sequence[Sequence[Instruction]], results: Mapping[int, int]) -> tuple[dict[int, int], int]:
    """A place for each value that a later part or a result needs, and how many there are.

    Results have the first ones, for good; others share theirs with what comes when they are no longer needed.
    """
    home = {value: k for k, segment in enumerate(segments) for each in segment for value in each.writes}
    until = {
        value: k for k, segment in enumerate(segments) for each in segment for value in each.reads if value in home
    }
    crossing = [value for value, k in until.items() if k > home[value] and value not in results]
    lives = ((value, home[value], until[value]) for value in sorted(crossing, key=home.__getitem__))
    places, count = shared_places(lives, len(results))
    return {**results, **places}, len(results) + count
