"""Memory of a program's numbers, and the table of words that describes it to the compiled code.

Sizes of open buffers, rows and constants are data, so one compiled object serves every tree with the same kinds of
links. Each call brings a table of whole numbers: where buffers begin, how large they are, where the ranges of rows
begin and end, and where the tables of called programs are.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.targets.llvm.ir import LaneShape
from linkwise.targets.llvm.streaming import WIDE_BYTES
from linkwise.targets.shared_places import lifetimes, places_of_buffers
from linkwise.trace.block import Block
from linkwise.trace.program import Angles, Buffer, Call, Program, buffer_of, places_of
from linkwise.trace.waiting import WaitingLoop


class Words:
    """The places of the words of one program's table."""

    ROWS, PARAMETERS, INITIAL, INITIAL_PLACES, INITIAL_VALUES, FRAME, INNER = range(7)

    def __init__(self, program: Program) -> None:
        position = 7
        self._starts, self._sizes, self._ranges, self._tables = {}, {}, {}, {}
        for buffer in program.buffers:
            self._starts[buffer.name], self._sizes[buffer.name] = position, position + 1
            position += 2
        for name, _, _ in program.ranges:
            self._ranges[name] = position
            position += 2
        for code in program.codes:
            if isinstance(code, Program):
                self._tables[id(code)] = position
                position += 1
        self.own_bytes, self.slots, self.common_bytes = range(position, position + 3)
        """Bytes of a block's own memory, number of blocks that wait together, and bytes before them for all blocks."""
        self.once, self.once_places, self.once_values = range(position + 3, position + 6)
        """Numbers that are written once for all blocks: how many, where, and which."""
        self.count = position + 6

    def start(self, buffer: str) -> int:
        """Beginning of the buffer, in values."""
        return self._starts[buffer]

    def size(self, buffer: str) -> int:
        """Number of values of the buffer."""
        return self._sizes[buffer]

    def first_row(self, name: str) -> int:
        """The first row of a range."""
        return self._ranges[name]

    def rows(self, name: str) -> int:
        """The number of its rows."""
        return self._ranges[name] + 1

    def table(self, program: Program) -> int:
        """The table of a program that is called."""
        return self._tables[id(program)]


def used_in_place(program: Program, buffer: Buffer, lanes: int) -> bool:
    """Whether a buffer is the caller's array itself: one state at a time, or states that come in lanes already."""
    if buffer.in_lanes:
        return True
    return lanes == 1 and buffer.load != buffer.store and not (buffer.load and buffer.name in program.written)


def wide_buffers(program: Program, shape: LaneShape) -> dict[str, int]:
    """Bytes of a state's row in each output of a program with loops that goes past the caches in large calls."""
    sizes = {b.name: b.size * shape.bits // 8 for b in program.kept if b.store and not (b.load or b.open or b.in_lanes)}
    return {name: size for name, size in sizes.items() if size >= WIDE_BYTES and shape.lanes > 1}


_MANY = 256
"""Constants among the results of a block from which on they are written once: calls for few states write them too."""


def written_once(program: Program, lanes: int) -> dict[str, dict[int, float]]:
    """Of buffers that one block makes, and that no block waits with, the numbers that are the same for all states."""
    found: dict[str, dict[int, float]] = {}
    if lanes == 1 or program.initial:
        return found
    loop = WaitingLoop.of(program)
    statements = list(program.walk())
    writers = Counter(buffer_of(place) for statement in statements for place in places_of(statement)[1])
    apart = {b.name for b in program.buffers if b.load or b.store} | (loop.waits if loop else frozenset())
    for statement in statements:
        if not isinstance(statement, Call) or not isinstance(statement.code, Block):
            continue
        nodes = statement.code.nodes
        for place, values in zip(statement.outputs, statement.code.results, strict=True):
            if isinstance(place, str) and writers[place] == 1 and place not in apart:
                own = {k: nodes[value][1] for k, value in enumerate(values) if nodes[value][0] == "const"}
                if len(own) >= _MANY:
                    found[place] = own
    return found


SLOTS = 16
"""The most blocks of states that wait together."""

WINDOW, ALIKE = 512, 256
"""States that are put in order together, and how many kinds of them are told apart."""

CONTROL = 8 * (1024 + ALIKE + 2 * WINDOW)
"""Bytes that say who waits where."""

_WAITING = 1 << 23  # bytes of all blocks that wait, at most; those that are in use should stay in the nearer caches


_LARGE = 1 << 18
"""Bytes of buffers from which on those share places that are never needed together: so they stay in a cache."""


class ProgramMemory:
    """The table of one program in one precision, and the memory that it works in.

    Everything is counted in values from the beginning of the program's own memory. Where states wait in a loop for
    each other, there is such memory for several blocks of them, and for those that go through it together.

    Args:
        program: the program.
        dtype: of its numbers.
        lanes: states side by side.
        vector: lanes of a vector.
        called: whether another program calls it, whose memory then holds its inputs and outputs.
    """

    def __init__(self, program: Program, dtype: np.dtype[Any], lanes: int, vector: int, called: bool = False) -> None:
        self.program = program
        self.words = words = Words(program)
        self.inner = [
            ProgramMemory(c, dtype, lanes, vector, called=True) for c in program.codes if isinstance(c, Program)
        ]
        angles = {statement.arguments for statement in program.walk() if isinstance(statement, Angles)}
        loop = None if called or lanes == 1 else WaitingLoop.of(program)
        constants = {} if called else written_once(program, lanes)
        starts: dict[str, int] = {}
        ends: dict[str, int] = {}
        spare: list[int] = []  # lanes beyond the last angle take part in the call: let them be ordinary
        position = common = 0
        for buffer in program.buffers:
            kept = buffer.load or buffer.store
            if kept and (called or used_in_place(program, buffer, lanes)):
                starts[buffer.name] = 0
                continue
            starts[buffer.name] = position
            # Whole vectors where vectors are moved: transposes of rows, and scalars in a row.
            group = vector if lanes == 1 else lanes if kept else 1
            if loop is not None and buffer.name not in loop.waits:
                starts[buffer.name] = common
                common += -(-buffer.size // group) * group
                continue
            end = position + -(-buffer.size // group) * group
            spare += range(position + buffer.size, end) if buffer.name in angles else ()
            position = ends[buffer.name] = end
        apart = position  # as it is without sharing: how many blocks wait together does not hang on that
        if position * lanes * dtype.itemsize > _LARGE and not spare:
            sizes = {name: end - starts[name] for name, end in ends.items()}
            lives = lifetimes(program, as_a_whole=True)
            lives |= dict.fromkeys(constants, (0, len(program.statements)))
            starts |= places_of_buffers(sizes, lives)
            position = max(starts[name] + size for name, size in sizes.items())
        self.own_bytes = -(-position * lanes * dtype.itemsize // 64) * 64
        self._rows = np.ascontiguousarray(program.rows, np.int64)
        self._parameters = np.ascontiguousarray(program.parameters, dtype)
        places = [starts[number.buffer] + number.offset for number in program.initial]
        values = [number.value for number in program.initial]
        self._places = np.array([*places, *spare], np.int64)
        self._values = np.array([*values, *(0.5 for _ in spare)], dtype)
        once = [(starts[name] + k, value) for name, own in constants.items() for k, value in own.items()]
        self._once_places = np.array([place for place, _ in once], np.int64)
        self._once_values = np.array([value for _, value in once], dtype)
        table = np.zeros(words.count, np.int64)
        table[words.once] = len(once)
        table[words.once_places] = self._once_places.ctypes.data
        table[words.once_values] = self._once_values.ctypes.data
        table[Words.ROWS] = self._rows.ctypes.data
        table[Words.PARAMETERS] = self._parameters.ctypes.data
        table[Words.INITIAL] = len(self._places)
        table[Words.INITIAL_PLACES] = self._places.ctypes.data
        table[Words.INITIAL_VALUES] = self._values.ctypes.data
        self.slots = 1
        if loop is not None:
            self.slots = max(1, min(SLOTS, _WAITING // max(64, apart * lanes * dtype.itemsize)))
            table[words.common_bytes] = -(-common * lanes * dtype.itemsize // 64) * 64
            table[Words.FRAME] = table[words.common_bytes] + (self.slots + 1) * self.own_bytes + CONTROL
            frame = int(table[Words.FRAME]) // (lanes * dtype.itemsize)
            for buffer in program.buffers:  # the caller's are counted from the scratch memory's beginning
                if buffer.name not in loop.waits and not (buffer.load or buffer.store):
                    starts[buffer.name] -= frame
        else:
            table[Words.FRAME] = self.own_bytes
        table[Words.INNER] = table[Words.FRAME]
        table[words.own_bytes], table[words.slots] = self.own_bytes, self.slots
        for buffer in program.buffers:
            table[words.start(buffer.name)], table[words.size(buffer.name)] = starts[buffer.name], buffer.size
        for name, first, count in program.ranges:
            table[words.first_row(name)], table[words.rows(name)] = first, count
        for memory in self.inner:
            table[words.table(memory.program)] = memory.address
        self.table: NDArray[np.int64] = table

    def reserve_frame(self, frame_bytes: int) -> None:
        """Room for the values that the blocks of all programs put aside, behind the buffers."""
        self.table[Words.INNER] = self.table[Words.FRAME] + -(-frame_bytes // 64) * 64

    @property
    def bytes(self) -> int:
        """Scratch memory of a call."""
        inner = max((memory.bytes for memory in self.inner), default=0)
        before = self.table[self.words.common_bytes] + self.slots * self.own_bytes  # the block farthest from the start
        return int(self.table[Words.INNER] + inner + (before if inner else 0))

    @property
    def address(self) -> int:
        """Address of the table."""
        return int(self.table.ctypes.data)

    @property
    def parts(self) -> list[NDArray[Any]]:
        """All memory that compiled code reads, but for the caller's."""
        own: list[NDArray[Any]] = [self._rows, self._parameters, self._places, self._values, self.table]
        own += [self._once_places, self._once_values]
        return own + [part for memory in self.inner for part in memory.parts]
