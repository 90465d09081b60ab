"""Transposes woven into the arithmetic.

Arithmetic keeps the multipliers busy, transposing the shuffles, the loads and the stores; one after the other, each
waits for the other's turn, since a processor looks only some hundred instructions ahead. So while a block is computed,
the rows of the *next* block are brought into lanes and the results of the *previous* one out to rows, a few
instructions at a time between those of the program. It also gives slow memory the whole time of a block to answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.ir import FunctionText, LaneShape, masked_load, masked_store
from linkwise.targets.llvm.transpose import exchanged, joined
from linkwise.trace.block import Block

# Fewer operations than this for each fragment, and the weave would be more transpose than program.
_SPACING = 10


@dataclass(frozen=True)
class Overlap:
    """Fragments to weave in: first those that empty the outputs' lanes, then those that fill the next inputs'."""

    parameters: tuple[str, ...]  # rows of the next inputs, lanes for them, rows of the previous outputs
    outward: tuple[Callable[[FunctionText], None], ...]  # to be done before anything is stored to an output
    inward: tuple[Callable[[FunctionText], None], ...]


def overlap(program: Block, machine: Machine, shape: LaneShape) -> Overlap | None:
    """The fragments for a program, or None where weaving does not pay."""
    if not machine.masked or shape.lanes < 4:
        return None
    half = shape.lanes // 2
    outward = [
        partial(_outward, shape=shape, array=array, size=spec.size, column=column, first=first)
        for array, spec in enumerate(program.outputs)
        for column in range(0, spec.size, shape.lanes)
        for first in (0, half)
    ]
    inward = [
        partial(_inward, shape=shape, array=array, size=spec.size, column=column)
        for array, spec in enumerate(program.inputs)
        for column in range(0, spec.size, half)
    ]
    if _SPACING * (len(outward) + len(inward)) > len(program.nodes):
        return None
    inputs, outputs = range(len(program.inputs)), range(len(program.outputs))
    names = [*(f"%next{k}" for k in inputs), *(f"%fill{k}" for k in inputs), *(f"%prev{k}" for k in outputs)]
    return Overlap(tuple(names), tuple(outward), tuple(inward))


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

    vectors = [joined(f, half, read(k), read(k + half.lanes)) for k in range(half.lanes)]
    for k, value in enumerate(exchanged(f, shape, vectors)):
        place = f.address(shape.element, f"%prev{array}", (first + k) * size + column)
        if count < shape.lanes:
            masked_store(f, shape, value, place, _mask(shape.lanes, count))
        else:
            f.store(shape.real, value, place, shape.bits // 8)
