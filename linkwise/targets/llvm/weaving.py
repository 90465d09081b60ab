"""Work for the blocks of states before and behind, woven into the arithmetic of a block.

Arithmetic keeps the multipliers busy, transposing the shuffles, the loads and the stores; sweeps over the links wait
for one another, sines for nothing. One after the other, each leaves most of the processor idle, since it looks only
some hundred instructions ahead. So while a block is computed, the rows of the *next* block are brought into lanes, its
sines are computed, and the results of the *previous* one go out to rows, a few instructions at a time between those of
the program. Memory is asked for the rows of the block behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from linkwise.dataclass import dataclass
from linkwise.targets.llvm import ops, transcendental
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.function_plan import WHOLE, grouped_depths
from linkwise.targets.llvm.ir import FunctionText, LaneShape, LaneValue, masked_load, masked_store
from linkwise.targets.llvm.transpose import exchanged, joined
from linkwise.trace.block import ArraySpec, Block, Node, arguments
from linkwise.trace.passes import needed

# Fewer operations than this for each fragment, and the weave would be more transpose than program.
_SPACING = 10

# Nodes of a program, and those that a vector of sines counts for, up to which sines are computed ahead. Their code is
# then in the body as often as there are joints: a body that does not fit into the cache of instructions loses by it.
_SHORT, _SINES = 4000, 50

AHEAD = "ahead"
"""Name of the function that computes the values ahead of a block, and of the array that holds them."""


class Fragment(NamedTuple):
    """Some instructions for another block."""

    weight: int  # about how many they are
    write: Callable[[FunctionText], None]


@dataclass(frozen=True)
class Overlap:
    """Fragments to weave in: first those that empty the outputs' lanes, then those that fill the next inputs'."""

    program: Block  # what they are woven into: it may have an input more than the caller's arrays
    ahead: Block | None  # what fills that input
    parameters: tuple[str, ...]  # rows of the next inputs, lanes for them, rows of the previous outputs
    outward: tuple[Fragment, ...]  # to be done before anything is stored to an output
    inward: tuple[Fragment, ...]
    end: Callable[[FunctionText], None]  # writes what is left to do behind the last of them


def overlap(program: Block, machine: Machine, shape: LaneShape) -> Overlap | None:
    """The fragments for a program, or None where weaving does not pay."""
    if not machine.masked or shape.lanes < 4 or len(program.nodes) > WHOLE:
        return None
    lanes, half, size = shape.lanes, shape.lanes // 2, 2 * shape.lanes
    outward = [
        Fragment(size, partial(_outward, shape=shape, array=array, size=spec.size, column=column, first=first))
        for array, spec in enumerate(program.outputs)
        for column in range(0, spec.size, lanes)
        for first in (0, half)
    ]
    inward = [
        [
            Fragment(size, partial(_inward, shape=shape, array=array, size=spec.size, column=column))
            for column in range(0, spec.size, half)
        ]
        for array, spec in enumerate(program.inputs)
    ]
    if _SPACING * (len(outward) + sum(map(len, inward))) > len(program.nodes):
        return None
    ahead, rest = split(program)
    rows = [f"%next{k}" for k in range(len(program.inputs))]
    fill = [f"%fill{k}" for k in range(len(rest.inputs))]
    names = (*rows, *fill, *(f"%prev{k}" for k in range(len(program.outputs))))
    if ahead is None:
        return Overlap(rest, None, names, tuple(outward), tuple(chain.from_iterable(inward)), _return)
    early = _Early(ahead, machine, shape)
    inward.insert(early.last_input + 1, early.fragments)
    return Overlap(rest, ahead, names, tuple(outward), tuple(chain.from_iterable(inward)), early.end)


def _return(f: FunctionText) -> None:
    f.do("ret void")


def split(program: Block) -> tuple[Block | None, Block]:
    """Sines and the like of inputs alone, as a block with one output; and the program with that as its last input."""
    nodes, live = program.nodes, needed(program)
    first = [number for number, depth in grouped_depths(nodes).items() if depth == 1 and live[number]]
    found = [number for number in first if all(_simple(nodes, a) for a in arguments(nodes[number]))]
    if not found or len(nodes) + _SINES * len({nodes[number][1:] for number in found}) > _SHORT:
        return None, program
    spec = ArraySpec(AHEAD, (len(found),))
    rest = list(nodes)
    for element, number in enumerate(found):
        rest[number] = ("input", len(program.inputs), element)
    ahead = Block(AHEAD, nodes, program.inputs, (spec,), (tuple(found),))
    return ahead, Block(program.name, tuple(rest), (*program.inputs, spec), program.outputs, program.results)


def _simple(nodes: Sequence[Node], number: int) -> bool:
    """Whether a value is an input, or a sum of an input and another leaf: products might be fused with others."""
    op, *read = nodes[number]
    return op == "input" or (op in ("add", "sub", "neg") and all(nodes[a][0] in ("const", "input") for a in read))


class _Early:
    """Writes what is computed ahead, each vector of sines as one fragment."""

    def __init__(self, program: Block, machine: Machine, shape: LaneShape) -> None:
        self.program, self.machine, self.shape = program, machine, shape
        self.goal = f"%fill{len(program.inputs)}"
        self.doubtful: list[LaneValue] = []  # lanes that any of it cannot be trusted in: one value, or none
        items: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
        for element, number in enumerate(program.results[0]):
            entry, result = transcendental.ENTRY_OF[program.nodes[number][0]]
            items.setdefault((entry, arguments(program.nodes[number])), []).append((result, element))
        read = {a for _, members in items for number in members for a in (number, *arguments(program.nodes[number]))}
        inputs = [node[1] for node in map(program.nodes.__getitem__, read) if node[0] == "input"]
        self.last_input = max(inputs, default=0)  # when that is filled, the fragments can follow
        self.fragments = [
            Fragment(_SINES, partial(self._item, entry=entry, members=members, places=places))
            for (entry, members), places in items.items()
        ]

    def _item(self, f: FunctionText, entry: str, members: Sequence[int], places: Sequence[tuple[int, int]]) -> None:
        inside = [LaneValue(f, self.shape, self._value(f, number)) for number in members]
        computed, doubtful = transcendental.computed(entry, inside, self.machine)
        for result, element in places:
            place = f.address(self.shape.real, self.goal, element)
            f.store(self.shape.real, computed[result].name, place, self.shape.size)
        if doubtful is not None:
            self.doubtful = [doubtful | one for one in self.doubtful] or [doubtful]

    def _value(self, f: FunctionText, number: int) -> str:
        node = self.program.nodes[number]
        if node[0] == "const":
            return f.constant(self.shape, node[1])
        if node[0] == "input":
            place = f.address(self.shape.real, f"%fill{node[1]}", node[2])
            return f.load(self.shape.real, place, self.shape.size)
        return ops.TABLE[node[0]](f, self.shape, *(self._value(f, a) for a in arguments(node)))

    def end(self, f: FunctionText) -> None:
        """All again and slowly, should any of it have been doubtful."""
        if self.doubtful:
            f.do(f"br i1 {self.doubtful[0].any()}, label %again, label %done")
            f.label("again")
            fill = ", ".join(f"ptr %fill{k}" for k in range(len(self.program.inputs) + 1))
            f.do(f"call void @{AHEAD}({fill}, ptr %frame)")
            f.do("br label %done")
            f.label("done")
        _return(f)


def _announce(f: FunctionText, shape: LaneShape, rows: str, size: int, lines: range, write: bool) -> None:
    """Ask memory for lines of the block behind one; a block of rows has as many of them as a row has numbers.

    A processor that waits for one line goes on for some hundred instructions only, and sees no pattern in what it needs
    next, a few numbers from each of eight rows. To ask for what lies behind the last block is harmless.
    """
    f.declare("declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)")
    for line in lines:
        place = f.address(shape.real, rows, size + line)
        f.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(write)}, i32 3, i32 1)")


def _mask(lanes: int, count: int) -> str:
    return f"<{', '.join(f'i1 {int(k < count)}' for k in range(lanes))}>"


def _inward(f: FunctionText, shape: LaneShape, array: int, size: int, column: int) -> None:
    """Half a vector's worth of columns of the next block, from rows to lanes."""
    half = LaneShape(shape.bits, shape.lanes // 2)
    count = min(half.lanes, size - column)

    def read(row: int) -> str:
        place = f.address(shape.element, f"%next{array}", row * size + column)
        if count < half.lanes:
            return masked_load(f, half, place, _mask(half.lanes, count))
        return f.load(half.real, place, shape.bits // 8)

    _announce(f, shape, f"%next{array}", size, range(column, column + count), write=False)
    vectors = [joined(f, half, read(k), read(k + half.lanes)) for k in range(half.lanes)]
    for k, value in enumerate(exchanged(f, shape, vectors)[:count]):
        f.store(shape.real, value, f.address(shape.real, f"%fill{array}", column + k), shape.size)


def _outward(f: FunctionText, shape: LaneShape, array: int, size: int, column: int, first: int) -> None:
    """A vector's worth of columns of half the rows of the previous block, from lanes to rows."""
    half = LaneShape(shape.bits, shape.lanes // 2)
    count = min(shape.lanes, size - column)

    def read(k: int) -> str:
        if k >= count:
            return "poison"
        place = f.address(shape.element, f"%out{array}", (column + k) * shape.lanes + first)
        return f.load(half.real, place, half.size)

    lines = range(column + first, min(column + first + half.lanes, size))
    _announce(f, shape, f"%prev{array}", size, lines, write=True)
    vectors = [joined(f, half, read(k), read(k + half.lanes)) for k in range(half.lanes)]
    for k, value in enumerate(exchanged(f, shape, vectors)):
        place = f.address(shape.element, f"%prev{array}", (first + k) * size + column)
        if count < shape.lanes:
            masked_store(f, shape, value, place, _mask(shape.lanes, count))
        else:
            f.store(shape.real, value, place, shape.bits // 8)
