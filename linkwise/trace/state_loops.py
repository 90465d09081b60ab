"""Loops over a state of a few numbers, as programs: so many times, or while a condition holds; and rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from linkwise.dataclass import dataclass, field
from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import (
    PARAMETERS,
    Buffer,
    Call,
    Copy,
    For,
    IfAny,
    ParameterRow,
    Program,
    Statement,
    Stretch,
    WhileAny,
)

STATE, CAPTURED, RESULT, MADE = "in:state", "in:captured", "out:state", "out:made"


@dataclass(frozen=True, eq=False)
class CountedLoop(Program):
    """``state = code(state, captured)``, so many times; what is captured stays as it is."""

    code: Block | Program = field(kw_only=True)
    passes: int = field(kw_only=True)


def counted_loop(name: str, code: Block | Program, passes: int) -> Program:
    """The program of a body that takes ``state`` and ``captured`` and makes the next state."""
    state = code.inputs[0]
    buffers, given = _arrays(code)
    body = (Call(code, given, ("next",)), Copy("next", RESULT))
    whole = (*buffers, Buffer("next", state.size)), (Copy(STATE, RESULT), For(passes, body))
    if len(code.inputs) > 2:
        return Program(name, *whole)
    return CountedLoop(name, *whole, code=code, passes=passes)


def while_loop(name: str, begin: Block | Program, code: Block | Program) -> Program:
    """The program of a body that makes the next state and a flag, with what raises the first flag.

    States whose flag is down must be left as they are by the body: those beside them may go on.
    """
    buffers, given = _arrays(code)
    statements: tuple[Statement, ...] = (
        Copy(STATE, RESULT),
        Call(begin, given, ("flag",)),
        WhileAny("flag", (Call(code, given, ("next", "flag_next")), Copy("next", RESULT), Copy("flag_next", "flag"))),
    )
    own = (Buffer("next", code.inputs[0].size), Buffer("flag", 1), Buffer("flag_next", 1))
    return Program(name, (*buffers, *own), statements)


@dataclass(frozen=True, eq=False)
class ItemColumn:
    """Stretches of some numbers, one for each pass of a loop: where each begins, and how long it is.

    Args:
        starts: of each pass, where its stretch begins.
        width: of every stretch.
        size: how many numbers there are.
        constants: the numbers, where they are known and the same for every state.
    """

    starts: tuple[int, ...]
    width: int
    size: int
    constants: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class ItemLoop(Program):
    """``state, made = code(state, captured, …, *items)``, pass after pass; see :func:`loop_over_items`."""

    code: Block | Program = field(kw_only=True)
    columns: tuple[ItemColumn, ...] = field(kw_only=True)
    asks: tuple[Block | Program, ...] = field(kw_only=True)

    @property
    def made(self) -> int:
        """Numbers that a pass makes."""
        return self.code.outputs[1].size if len(self.code.outputs) > 1 else 0


CHUNK = 8
"""Passes of which the first tells whether any is asked for; the next are twice as many, and so on."""


def loop_over_items(
    name: str,
    code: Block | Program,
    columns: Sequence[ItemColumn],
    asks: Sequence[Block | Program] = (),
    first_ones: bool = False,
) -> Program:
    """Program of a body that takes ``state``, ``captured`` and an item of each column, pass after pass.

    It makes the next state, and ``made``, numbers of the pass, if it has a second output. With ``asks``, each of
    which raises a flag from the same inputs if the one before did, passes that no state asks for are left out, and make
    zeros. With ``first_ones`` a state asks for the first passes, as many as it likes: a loop that is longer than some
    passes ends soon after the last that is asked for, and what the rest would make is anything.
    """
    state = code.inputs[0]
    own, around = _arrays(code, len(columns))
    made = code.outputs[1].size if len(code.outputs) > 1 else 0
    items, places, rows, parameters = laid_out(columns, (made, 0))
    passes = len(rows)
    buffers: list[Buffer] = [Buffer("next", state.size), *items]
    spread = Spread(around, places, columns, buffers)
    results: tuple[Stretch, ...] = ()
    if made:
        buffers.append(Buffer(MADE, made * passes, store=True))
        results = (Stretch(MADE, len(columns)),)
    body: tuple[Statement, ...] = (*spread.call(code, ("next", *results)), Copy("next", RESULT))
    if isinstance(code, Block):  # which may write a stretch that it reads: here the state, from its beginning on
        now = Stretch(RESULT, len(columns) + 1)
        body = (Call(code, (now, *around[1:], *places), (now, *results)),)
        buffers.pop(0)
    if asks:
        buffers.append(Buffer("flag", 1))
        for ask in reversed(asks):
            body = (*spread.call(ask, ("flag",)), IfAny("flag", body))
        body = (*((Call(zeros(made), (), results),) if made else ()), *body)
    ranges = [("items", 0, passes)]
    loops: tuple[Statement, ...] = (For("items", body),)
    if first_ones and asks and passes > CHUNK:
        buffers.append(Buffer("more", 1))
        ends = [CHUNK]
        while ends[-1] < passes:
            ends.append(min(2 * ends[-1], passes))
        ranges = [("items0", 0, CHUNK)]
        loops = ()
        for k, (begin, end) in reversed(list(enumerate(pairwise(ends), 1))):
            ranges += [(f"first{k}", begin, 1), (f"items{k}", begin, end - begin)]
            look = For(f"first{k}", spread.call(asks[0], ("more",)))
            loops = (look, IfAny("more", (For(f"items{k}", body), *loops)))
        loops = (For("items0", body), *loops)
    return ItemLoop(
        name,
        (*own, *buffers),
        (Copy(STATE, RESULT), *loops),
        rows=rows,
        ranges=tuple(ranges),
        parameters=parameters,
        code=code,
        columns=tuple(columns),
        asks=tuple(asks),
    )


@dataclass(frozen=True, eq=False)
class TableRow(Program):
    """``[k, table[stride · k:]]`` for the whole number k below a place; see :class:`ParameterRow`."""


def table_row(numbers: NDArray[np.float64], count: int, stride: int, width: int) -> TableRow:
    """The program that finds the row of a table at a place, of so many rows."""
    buffers = Buffer("in:place", 1, load=True), Buffer("out:row", 1 + width, store=True)
    found = ParameterRow("in:place", "out:row", count, stride)
    return TableRow("table_row", buffers, (found,), parameters=numbers)


def laid_out(
    columns: Sequence[ItemColumn], strides: Sequence[int]
) -> tuple[list[Buffer], list[Stretch], NDArray[np.int64], NDArray[np.float64]]:
    """Input buffers of columns, where the items of a pass are, the table of passes, and the constants.

    After the columns the table has multiples of some strides.
    """
    buffers: list[Buffer] = []
    places: list[Stretch] = []
    parameters: list[NDArray[np.float64]] = []
    passes = len(columns[0].starts)
    rows = np.zeros((passes, len(columns) + len(strides)), np.int64)
    for k, column in enumerate(columns):
        rows[:, k] = column.starts
        if column.constants is None:
            buffers.append(Buffer(f"in:items{k}", column.size, load=True))
            places.append(Stretch(f"in:items{k}", k))
        else:
            rows[:, k] += sum(map(len, parameters))
            parameters.append(column.constants)
            places.append(Stretch(PARAMETERS, k))
    rows[:, len(columns) :] = np.arange(passes)[:, None] * np.array(strides)
    return buffers, places, rows, np.concatenate(parameters) if parameters else np.zeros(0)


class Spread:
    """Calls on items: a program, unlike a block, finds constants of all states in a buffer of each state's own."""

    def __init__(
        self, around: tuple[str, ...], places: Sequence[Stretch], columns: Sequence[ItemColumn], buffers: list[Buffer]
    ) -> None:
        self.around, self.places, self.columns, self.buffers = around, places, columns, buffers
        self.homes: dict[int, str] = {}

    def call(
        self, code: Block | Program, outputs: tuple[str | Stretch, ...], *more: str | Stretch
    ) -> tuple[Statement, ...]:
        """The call of some code, with what must come before it; on some places more, after the items."""
        if isinstance(code, Block):
            return (Call(code, (*self.around, *self.places, *more), outputs),)
        copies: list[Statement] = []
        given: list[str | Stretch] = []
        for k, (place, column) in enumerate(zip(self.places, self.columns, strict=True)):
            if column.constants is None:
                given.append(place)
                continue
            if k not in self.homes:
                self.homes[k] = f"item{k}"
                self.buffers.append(Buffer(self.homes[k], column.width))
            given.append(self.homes[k])
            copies.append(Call(as_it_is(column.width), (place,), (self.homes[k],)))
        return (*copies, Call(code, (*self.around, *given, *more), outputs))


def as_it_is(width: int) -> Block:
    """A block that copies so many numbers."""
    nodes = tuple(("input", 0, i) for i in range(width))
    spec = ArraySpec("item", (width,))
    return Block("item", nodes, (spec,), (spec,), (tuple(range(width)),))


@cache
def zeros(width: int) -> Block:
    """A block that makes so many zeros."""
    return Block("zeros", (("const", 0.0),), (), (ArraySpec("zeros", (width,)),), ((0,) * width,))


def _arrays(code: Block | Program, items: int = 0) -> tuple[tuple[Buffer, ...], tuple[str, ...]]:
    """The buffers of a state, of what is captured and of large arrays; and what each pass is given of them."""
    state, captured, *rest = code.inputs
    large = rest[: len(rest) - items]
    names = [f"in:array{k}" for k in range(len(large))]
    inputs = [Buffer(STATE, state.size, load=True), Buffer(CAPTURED, captured.size, load=True)]
    inputs += [Buffer(name, spec.size, load=True) for name, spec in zip(names, large, strict=True)]
    return (*inputs, Buffer(RESULT, state.size, store=True)), (RESULT, CAPTURED, *names)
