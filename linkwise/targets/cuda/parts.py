"""Programs with wide results as several kernels, one after another.

A multiprocessor keeps some thousand instructions at hand; a longer program waits for them more than it computes. So it
is cut where few values are alive. These, and the results, go from kernel to kernel through memory between them, where
every value has a place, and those of 32 states lie side by side. The last kernel spreads the results, each different
number once, to the rows of matrices where they belong (:func:`linkwise.targets.cuda.wide.last_kernel`). Results
that are columns, with neighbouring states side by side, are left where they belong as soon as they are known.

Long blocks of programs that work in device memory are cut as well, into blocks with buffers between them
(:func:`with_shorter_blocks`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from linkwise.dataclass import dataclass, field, replace
from linkwise.targets.cuda.instructions import (
    Instruction,
    Operand,
    instructions,
    operand,
    orders,
    pure_angles,
)
from linkwise.targets.cuda.tile_layout import ArrayOrder
from linkwise.targets.shared_places import shared_places
from linkwise.trace.block import ArraySpec, Block, arguments, is_truth
from linkwise.trace.passes import extract
from linkwise.trace.program import Buffer, Call, Place, Program, Statement

_EVEN = 0.75  # of the longest part, above which it is cut where fewest values are alive
_SHARES = (0.75, 0.87, 1.0)  # of the length that is allowed, all of which are tried
_ZEROS = 16  # among results that are left where they belong: matrices have more


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

    def homes(self, kinds: Sequence[ArrayOrder]) -> Mapping[int, Sequence[tuple[int, int]]] | None:
        """Output and number of all that a result is, by its place, -1 for zeros; None where a last kernel spreads them.

        Args:
            kinds: how each output comes.
        """
        zeros, numbers = sum(table.count(-1) for table in self.tables), sum(map(len, self.tables))
        if set(kinds) != {"columns"} or zeros > _ZEROS or numbers > 2 * self.results + _ZEROS:
            return None
        found: dict[int, list[tuple[int, int]]] = {}
        for array, table in enumerate(self.tables):
            for number, place in enumerate(table):
                found.setdefault(place, []).append((array, number))
        return found


def split(program: Block, longest: int) -> KernelParts:
    """The parts of a program, each with so many instructions at most."""
    made = instructions(program)
    angles, safe = pure_angles(program, made)
    made = [each for each in made if each.op != "copy"]
    kept = _kept(program, made)
    given = {value for value, node in enumerate(program.nodes) if node[0] == "input"}
    results = {value: k for k, value in enumerate(dict.fromkeys(kept.values()))}
    lengths = [max(1, int(share * longest)) for share in _SHARES]
    graph = _Values(made, given, results)
    tried = [graph.at(order) for order in orders(made, given, list(kept.values()))]
    cuts = [(order, order.cuts(length)) for length in lengths for order in tried]
    best, where = min(cuts, key=lambda each: each[0].traffic(each[1]))
    parts, places = best.parts(where)
    tables = tuple(
        tuple(results[kept[each]] if (each := operand(program, number)) in kept else -1 for number in row)
        for row in program.results
    )
    values = len(program.nodes) + len(kept)
    return KernelParts(parts, places, len(results), tables, values, frozenset(angles), frozenset(safe))


def with_shorter_blocks(program: Program, longest: int) -> Program:
    """The program with several calls in place of one, where it calls a block of more nodes one after the other."""
    statements: list[Statement] = []
    buffers = list(program.buffers)
    for k, statement in enumerate(program.statements):
        block = statement.code if isinstance(statement, Call) else None
        if isinstance(statement, Call) and isinstance(block, Block) and len(block.nodes) > longest:
            calls, between = _in_pieces(statement, block, longest, f"cut{k}")
            statements += calls
            buffers += between
        else:
            statements.append(statement)
    if len(statements) == len(program.statements):
        return program
    return replace(program, statements=tuple(statements), buffers=tuple(buffers))


def _in_pieces(call: Call, block: Block, longest: int, name: str) -> tuple[list[Call], list[Buffer]]:
    """Calls of about equally long blocks that do what one does, and the buffers between them."""
    order = [number for number in block.live if block.nodes[number][0] not in ("const", "input")]
    count = -(-len(order) // longest)
    home = {number: k * count // len(order) for k, number in enumerate(order)}
    left: list[dict[int, None]] = [{} for _ in range(count)]  # by each piece, for later ones

    def ask(number: int, piece: int) -> None:
        if home.get(number, piece) < piece:
            if is_truth(block.nodes[number]):  # found again from the numbers it compares: memory holds numbers
                for each in arguments(block.nodes[number]):
                    ask(each, piece)
            else:
                left[home[number]][number] = None

    for number in order:
        for each in arguments(block.nodes[number]):
            ask(each, home[number])
    for row in block.results:
        for number in row:
            ask(number, count - 1)
    specs = [ArraySpec(f"in{k}", spec.shape) for k, spec in enumerate(block.inputs)]
    places: dict[str, Place] = {spec.name: place for spec, place in zip(specs, call.inputs, strict=True)}
    calls: list[Call] = []
    buffers: list[Buffer] = []
    known: dict[int, tuple[str, int]] = {}
    for k, numbers in enumerate(map(list, left)):
        whole = [(f"out{j}", row) for j, row in enumerate(block.results)]
        wanted = whole if k == count - 1 else [(f"{name}:{k}", numbers)]
        sizes = {buffer.name: buffer.size for buffer in buffers}
        made = extract(block.name, block.nodes, specs, wanted, known, None, sizes)
        inputs = tuple(places[spec.name] for spec in made.inputs)
        calls.append(Call(made, inputs, call.outputs if k == count - 1 else (f"{name}:{k}",)))
        if k < count - 1:
            buffers.append(Buffer(f"{name}:{k}", len(numbers)))
            places[f"{name}:{k}"] = f"{name}:{k}"
            known |= {number: (f"{name}:{k}", e) for e, number in enumerate(numbers)}
    return calls, buffers


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
            reads, writes = () if node[0] == "const" else (each.value,), (found[each],)
            made.append(Instruction("keep", (each,), writes, reads, writes))
    return found


class _Values:
    """Values of a program: the instructions that compute and read them."""

    def __init__(self, made: Sequence[Instruction], given: Collection[int], results: Mapping[int, int]) -> None:
        self.made, self.results = made, results
        pairs = [(k, value) for k, each in enumerate(made) for value in each.reads]
        self.reader, self.read = np.array(pairs, np.int64).reshape(-1, 2).T
        pairs = [(k, value) for k, each in enumerate(made) for value in each.writes]
        writer, written = np.array(pairs, np.int64).reshape(-1, 2).T
        self.count = 1 + max(int(numbers.max(initial=-1)) for numbers in (self.read, written))
        self.home = np.full(self.count, -1)
        self.home[written] = writer
        self.given, self.kept, self.is_read = (np.zeros(self.count, bool) for _ in range(3))
        self.given[[value for value in given if value < self.count]] = True
        self.kept[list(results)] = True
        self.is_read[self.read] = True
        self.begun = np.bincount(writer[self.is_read[written]], minlength=len(made))  # lives, by each instruction

    def at(self, order: Sequence[int]) -> _Order:
        """The values in an order of the instructions."""
        return _Order(self, np.array(order, np.int64))


class _Order:
    """An order of the instructions of a program, to be cut."""

    def __init__(self, values: _Values, order: NDArray[np.int64]) -> None:
        self.values, self.order = values, order
        self.place = np.empty_like(order)
        self.place[order] = np.arange(len(order))
        self.reads = self.place[values.reader]  # where each read is
        last = np.zeros(values.count, np.int64)
        np.maximum.at(last, values.read, self.reads)
        ends = self.reads[(last[values.read] == self.reads) & ~values.given[values.read]]
        change = values.begun[order] - np.bincount(ends, minlength=len(order))
        self.alive = np.concatenate([[0], np.cumsum(change)])  # before each instruction

    def cuts(self, longest: int) -> list[int]:
        """Beginnings of the parts: about equally long, and cut where few values are alive."""
        cuts, count = [0], len(self.order)
        while count - cuts[-1] > longest:
            left = count - cuts[-1]
            whole = min(longest, 1.1 * left / -(-left // longest))
            first, last = (cuts[-1] + max(1, int(share * whole)) for share in (_EVEN, 1.0))
            cuts.append(first + int(self.alive[first : last + 1].argmin()))
        return cuts

    def traffic(self, cuts: Sequence[int]) -> int:
        """Numbers that the parts read from the memory between them, and write there."""
        values = self.values
        part = np.searchsorted(cuts, self.place, side="right")  # of each instruction
        reader, home = part[values.reader], values.home[values.read]
        crossing = (home >= 0) & (part[home] < reader)
        read = values.read[crossing]
        written = values.kept.copy()
        written[read] = True
        return len(np.unique(reader[crossing] * values.count + read)) + int(written.sum())

    def parts(self, cuts: Sequence[int]) -> tuple[tuple[KernelPart, ...], int]:
        """The parts, and how many places there are between them."""
        ends = [*cuts[1:], len(self.order)]
        order = [self.values.made[k] for k in self.order.tolist()]
        segments = [order[begin:end] for begin, end in zip(cuts, ends, strict=True)]
        place, places = _places(segments, self.values.results)
        parts = []
        known: set[int] = set()
        for segment in segments:
            reads = {value: place[value] for each in segment for value in each.reads if value in known}
            own = [value for each in segment for value in each.writes]
            parts.append(KernelPart(tuple(segment), reads, {value: place[value] for value in own if value in place}))
            known.update(own)
        return tuple(parts), places


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
