"""The one program language: named buffers, and statements around straight-line blocks.

Every state of a batch has the same **buffers**, each a few real numbers. A **statement** runs a block or another
program from places in buffers to places in buffers, repeats, branches, looks something up or notes it down. All
arithmetic is in the blocks; a program only says what runs after what, and where its numbers lie:

* a compiled function of a small mechanism is a block by itself;
* a sweep over many links is a :class:`For` over the rows of a table, a :class:`Switch` on the kind of link, and for
  each kind a :class:`Call` whose places are columns of the row. So one piece of code serves any tree, and only tables
  grow with the number of links;
* a simulation is a :class:`WhileAny` around calls. States side by side in lanes go through it together: a loop goes on
  while *any* of them has its flag up, and blocks use ``where`` to leave the others as they are.

:mod:`linkwise.trace.interpreter` says what every statement does; each target writes them in its own language.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.dataclass import dataclass, field, replace
from linkwise.memoized import cached_property
from linkwise.trace.block import ArraySpec, Block

PARAMETERS = "parameters"
"""The buffer of numbers that all states share: constants of the links."""


@dataclass(frozen=True)
class Buffer:
    """``size`` numbers for each state.

    Args:
        name: in the statements; the caller's array of a buffer that is loaded or stored has its :attr:`label`.
        size: how many numbers.
        load: whether they are read from the caller's rows ``(count, size)`` at the start.
        store: whether they are written to the caller's rows at the end.
        open: whether the size is data: one compiled object then serves every size.
        in_lanes: whether the caller's rows come with the states of a block side by side, ``(blocks, size, lanes)``.
        shape: of the caller's array, batch axes left out; ``(size,)`` if not given.
    """

    name: str
    size: int
    load: bool = False
    store: bool = False
    open: bool = False
    in_lanes: bool = False
    shape: tuple[int, ...] | None = None

    @property
    def label(self) -> str:
        """The name of the caller's array: an input and an output may share theirs."""
        return self.name.removeprefix("in:").removeprefix("out:")

    @property
    def spec(self) -> ArraySpec:
        """The caller's array."""
        return ArraySpec(self.label, (self.size,) if self.shape is None else self.shape)


def input_buffer(spec: ArraySpec) -> Buffer:
    """An input whose size is data."""
    return Buffer(f"in:{spec.name}", spec.size, load=True, open=True, shape=spec.shape)


def output_buffer(spec: ArraySpec) -> Buffer:
    """An output whose size is data."""
    return Buffer(f"out:{spec.name}", spec.size, store=True, open=True, shape=spec.shape)


# Places: a whole buffer by its name, or a stretch of it that depends on the pass of the loop around.
@dataclass(frozen=True)
class Stretch:
    """The numbers of a buffer from ``rows[k, column]`` on, in the pass for row ``k`` of the nearest loop over rows."""

    buffer: str
    column: int


@dataclass(frozen=True)
class Slice:
    """The numbers of a buffer from ``stride`` times the number of the pass on, of the nearest counted loop."""

    buffer: str
    stride: int


Place = str | Stretch | Slice


def buffer_of(place: Place) -> str:
    """The name of the buffer that a place is in."""
    return place if isinstance(place, str) else place.buffer


# Statements.
@dataclass(frozen=True, eq=False)
class Call:
    """Run a block, or another program, from places to places.

    No output may be one of the inputs, unless both are the same stretch: then a block reads it all before it writes.
    """

    code: Block | Program
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class Host:
    """Run a Python function of ``(count, size)`` arrays; a program with one of these cannot be compiled."""

    function: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Copy:
    """Copy from one place to another, of as many numbers as the smaller of the two has."""

    source: Place
    target: Place


@dataclass(frozen=True)
class Unit:
    """A unit vector, its one at the number of the pass of the nearest counted loop."""

    target: str


@dataclass(frozen=True)
class Angles:
    """sin and cos of a whole buffer at once."""

    arguments: str
    sines: str
    cosines: str


@dataclass(frozen=True)
class Lookup:
    """``target = table[index]``, each state with its own index (a whole number)."""

    table: str
    index: str
    target: str


@dataclass(frozen=True)
class ParameterRow:
    """``target = [k, parameters[stride · k:]]``, each state with its own k: its index rounded down, of 0 … count - 1.

    As many parameters as the target has room for. An index beyond either end takes the row there, NaN the first.
    """

    index: str
    target: str
    count: int
    stride: int


@dataclass(frozen=True)
class Seek:
    """The row of a curve that is in force at a time, into a part of a buffer.

    A curve is ``(members, rows, width)`` numbers, a member for each state or one for all. The first two numbers of a
    row are where it begins and where the next one does; the first row of each member begins at -inf. Nothing is done
    for the states whose part already holds the right row.
    """

    curve: str
    at: str
    target: str
    offset: int


@dataclass(frozen=True)
class Read:
    """``target = series[state, index]``: what each state is given from one pass to the next."""

    series: str
    index: str
    target: str


@dataclass(frozen=True)
class Record:
    """``record[state, index] = value`` for the states whose mask is not zero."""

    record: str
    value: str
    index: str
    mask: str


@dataclass(frozen=True, eq=False)
class For:
    """Repeat: for the rows of a range of the program's table, in order or in reverse, or so many times.

    A range is known by its name, since where it begins and ends is data; a number of passes is part of the code.
    """

    over: str | int
    body: tuple[Statement, ...]
    reverse: bool = False


@dataclass(frozen=True, eq=False)
class Switch:
    """Run the case whose number is in a column of the row of the nearest loop over rows."""

    column: int
    cases: tuple[tuple[Statement, ...], ...]


@dataclass(frozen=True, eq=False)
class WhileAny:
    """Repeat while the flag of any state is not zero; tested before each pass."""

    flag: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, eq=False)
class IfAny:
    """Run if the flag of any state is not zero."""

    flag: str
    body: tuple[Statement, ...]


Statement = (
    Call | Host | Copy | Unit | Angles | Lookup | ParameterRow | Seek | Read | Record | For | Switch | WhileAny | IfAny
)


def columns(unit: str, count: int, column: str, height: int, matrix: str, body: Sequence[Statement]) -> For:
    """A matrix by its columns: for each unit vector in turn the body, which makes ``column`` of ``unit``.

    ``matrix`` is the columns one behind the other.
    """
    return For(count, (Unit(unit), *body, Copy(column, Slice(matrix, height))))


def choice(bodies: Sequence[Call | None], column: int) -> tuple[Statement, ...]:
    """One of the bodies for each row, by the number in a column; None: nothing. A single one needs no number."""
    if len(bodies) == 1 and bodies[0] is not None:
        return (bodies[0],)
    return (Switch(column, tuple(() if body is None else (body,) for body in bodies)),)


def inside(statement: Statement) -> tuple[Statement, ...]:
    """The statements that another one is put around."""
    if isinstance(statement, (For, WhileAny, IfAny)):
        return statement.body
    if isinstance(statement, Switch):
        return tuple(one for case in statement.cases for one in case)
    return ()


def walked(*statements: Statement) -> Iterator[Statement]:
    """Statements and all inside them, outer ones first."""
    todo = list(reversed(statements))
    while todo:
        statement = todo.pop()
        yield statement
        todo.extend(reversed(inside(statement)))


def places_of(statement: Statement) -> tuple[Sequence[Place], Sequence[Place]]:
    """The places that a statement reads and those that it writes, without those of the statements inside it."""
    match statement:
        case Call(_, inputs, outputs) | Host(_, inputs, outputs):
            return inputs, outputs
        case Copy(source, target):
            return (source,), (target,)
        case Unit(target):
            return (), (target,)
        case Angles(arguments, sines, cosines):
            return (arguments,), (sines, cosines)
        case Lookup(_, index, target) | Seek(_, index, target, _) | Read(_, index, target):
            return (index,), (target,)
        case ParameterRow(index, target, _, _):
            return (index, PARAMETERS), (target,)
        case Record(_, value, index, mask):
            return (value, index, mask), ()
        case WhileAny(flag, _) | IfAny(flag, _):
            return (flag,), ()
        case For() | Switch():
            return (), ()


def rewritten(
    statement: Statement,
    names: Mapping[str, str] | None = None,
    codes: Mapping[int, Block | Program] | None = None,
    inner: Callable[[Sequence[Statement]], tuple[Statement, ...]] | None = None,
) -> Statement:
    """A statement with other names of buffers, other codes, or other statements inside it.

    Args:
        statement: any.
        names: of buffers, for those that get another.
        codes: of calls, by the ids of the old ones.
        inner: what becomes of statements inside; if not given, the same as of this one.
    """
    names = names or {}

    def name(place: Any) -> Any:
        if isinstance(place, str):
            return names.get(place, place)
        return replace(place, buffer=names.get(place.buffer, place.buffer))

    def body(statements: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(rewritten(one, names, codes) for one in statements) if inner is None else inner(statements)

    match statement:
        case Call(code, inputs, outputs):
            code = code if codes is None else codes.get(id(code), code)
            return Call(code, tuple(map(name, inputs)), tuple(map(name, outputs)))
        case Host(_, inputs, outputs):
            return replace(statement, inputs=tuple(map(name, inputs)), outputs=tuple(map(name, outputs)))
        case For():
            return replace(statement, body=body(statement.body))
        case WhileAny() | IfAny():
            return replace(statement, flag=name(statement.flag), body=body(statement.body))
        case Switch():
            return replace(statement, cases=tuple(map(body, statement.cases)))
    places = ("source", "target", "arguments", "sines", "cosines", "index", "at", "value", "mask")
    return replace(statement, **{key: name(getattr(statement, key)) for key in places if hasattr(statement, key)})


@dataclass(frozen=True)
class Initial:
    """A number that a state's buffer has before the first statement. It is data."""

    buffer: str
    offset: int
    value: float


@dataclass(frozen=True, eq=False)
class Program:
    """Buffers, statements, and the data that steers them.

    Args:
        name: shown in messages and emitted code.
        buffers: those of the statements, but PARAMETERS.
        statements: in their order.
        tables: names of arrays of numbers that the caller brings, for :class:`Lookup`.
        records: names and row sizes of arrays ``(count, capacity, size)`` that the caller brings, for :class:`Record`.
        curves: names and row sizes of those for :class:`Seek`.
        series: names and row sizes of arrays ``(count or 1, capacity, size)`` for :class:`Read`. Theirs and the
            records' first two axes may lie in memory in any order.
        rows: int64 (n, columns), the table that loops run over. It is data: code depends on the columns only.
        ranges: for each range of rows its name, first row and number of rows; numbers are data.
        parameters: float64, the buffer PARAMETERS; data.
        initial: what buffers hold before the first statement; data.
    """

    name: str
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...] = field(repr=False)
    tables: tuple[str, ...] = ()
    records: tuple[tuple[str, int], ...] = ()
    curves: tuple[tuple[str, int], ...] = ()
    series: tuple[tuple[str, int], ...] = ()
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64), repr=False)
    ranges: tuple[tuple[str, int, int], ...] = ()
    parameters: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    initial: tuple[Initial, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        from linkwise.trace.verifier import check_places

        check_places(self)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Numbers in each buffer."""
        return {buffer.name: buffer.size for buffer in self.buffers} | {PARAMETERS: len(self.parameters)}

    @cached_property
    def reads_parameters(self) -> bool:
        """Whether a statement of its own reads the buffer PARAMETERS."""
        return any(PARAMETERS in map(buffer_of, places_of(statement)[0]) for statement in self.walk())

    @cached_property
    def kept(self) -> tuple[Buffer, ...]:
        """The buffers that have rows in the caller's memory."""
        return tuple(buffer for buffer in self.buffers if buffer.load or buffer.store)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """For each kept buffer, which of the inputs and outputs, in this order, is its array; none may be both."""
        given, filled = itertools.count(), itertools.count(len(self.inputs))
        return tuple(next(given if buffer.load else filled) for buffer in self.kept)

    @property
    def is_function(self) -> bool:
        """Whether it needs nothing but inputs, and makes nothing but outputs."""
        more = self.tables or self.records or self.curves or self.series
        return not more and not any(buffer.load and buffer.store for buffer in self.kept)

    @cached_property
    def inputs(self) -> tuple[ArraySpec, ...]:
        """The caller's arrays that are read."""
        return tuple(buffer.spec for buffer in self.buffers if buffer.load)

    @cached_property
    def outputs(self) -> tuple[ArraySpec, ...]:
        """The caller's arrays that are written to."""
        return tuple(buffer.spec for buffer in self.buffers if buffer.store)

    def with_lanes(self, label: str) -> Program:
        """Program one of whose inputs comes with the states of a block side by side."""
        buffers = (replace(b, in_lanes=b.in_lanes or (b.load and b.label == label)) for b in self.buffers)
        return replace(self, buffers=tuple(buffers))

    @cached_property
    def range_of(self) -> Mapping[str, tuple[int, int]]:
        """First row and number of rows of each range."""
        return {name: (first, count) for name, first, count in self.ranges}

    def walk(self) -> Iterator[Statement]:
        """All statements, outer ones first."""
        return walked(*self.statements)

    @cached_property
    def codes(self) -> tuple[Block | Program, ...]:
        """Blocks and other programs that are called, each once, in the order of first use."""
        found: dict[int, Block | Program] = {}
        for statement in self.walk():
            if isinstance(statement, Call):
                found.setdefault(id(statement.code), statement.code)
        return tuple(found.values())

    @cached_property
    def written(self) -> frozenset[str]:
        """The buffers that statements write to."""
        return frozenset(buffer_of(place) for statement in self.walk() for place in places_of(statement)[1])

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks to compile, those of called programs too."""
        return tuple(b for code in self.codes for b in ((code,) if isinstance(code, Block) else code.blocks))

    @cached_property
    def operations(self) -> int:
        """Nodes of all blocks: what there is to compile, however often it runs."""
        return sum(len(block.nodes) for block in self.blocks)

    @cached_property
    def times(self) -> list[tuple[Block, int]]:
        """Number of times that one evaluation runs each block; of loops that ask a flag, one pass."""
        found: Counter[int] = Counter()
        _count_passes(self, self.statements, np.zeros(0, np.int64), 1, found)
        return [(block, found[key]) for key, block in {id(block): block for block in self.blocks}.items()]

    @property
    def length(self) -> int:
        """Nodes that one evaluation passes through; of loops that ask a flag, one pass."""
        return sum(len(block.nodes) * times for block, times in self.times)

    @cached_property
    def is_compilable(self) -> bool:
        """Whether no Python function is called."""
        return not any(isinstance(statement, Host) for statement in self.walk())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the code; tables, and the sizes of open buffers, are data and do not count."""
        import hashlib  # see Block.fingerprint

        digest = hashlib.sha256()
        numbers = {id(code): k for k, code in enumerate(self.codes)}
        for code in self.codes:
            digest.update(code.fingerprint.encode())
        buffers = [(b.name, None if b.open else b.size, b.load, b.store, b.in_lanes) for b in self.buffers]
        given = (self.tables, self.records, self.curves, self.series)
        digest.update(repr((self.name, buffers, given, self.rows.shape[1:], [r[0] for r in self.ranges])).encode())
        for text in lines_of(self.statements, lambda code: str(numbers[id(code)])):
            digest.update(text.encode() + b"\n")
        return digest.hexdigest()


def with_statements(program: Program, statements: Sequence[Statement], buffers: Sequence[Buffer]) -> Program:
    """A program with the same data, other statements and other buffers."""
    return replace(program, buffers=tuple(buffers), statements=tuple(statements))


def _count_passes(
    program: Program, statements: Sequence[Statement], rows: NDArray[np.int64], times: int, found: Counter[int]
) -> None:
    """Add how often blocks run in so many passes of some statements, or one pass for each row of the loop around."""
    passes = times * max(1, len(rows))
    for statement in statements:
        match statement:
            case Call(code):
                for block, n in [(code, 1)] if isinstance(code, Block) else code.times:
                    found[id(block)] += n * passes
            case For(int(over), body):
                _count_passes(program, body, rows[:0], passes * over, found)
            case For(str(over), body):
                first, count = program.range_of[over]
                if count:
                    _count_passes(program, body, np.arange(first, first + count), passes, found)
            case Switch(column, cases):
                kinds = program.rows[rows, column]
                for number, case in enumerate(cases):
                    if len(chosen := rows[kinds == number]):
                        _count_passes(program, case, chosen, times, found)
            case WhileAny(_, body) | IfAny(_, body):
                _count_passes(program, body, rows, times, found)
            case _:
                pass


def lines_of(
    statements: Sequence[Statement], name_of: Callable[[Block | Program], str], depth: int = 0
) -> Iterator[str]:
    """The statements as text, a line each."""
    indent = "  " * depth

    def shown(places: Sequence[Place]) -> str:
        return ", ".join(_shown(place) for place in places)

    for statement in statements:
        match statement:
            case Call(code, inputs, outputs):
                yield f"{indent}{shown(outputs)} = {name_of(code)}({shown(inputs)})"
            case Host(function, inputs, outputs):
                yield f"{indent}{shown(outputs)} = python {getattr(function, '__name__', function)}({shown(inputs)})"
            case Copy(source, target):
                yield f"{indent}{_shown(target)} = {_shown(source)}"
            case Unit(target):
                yield f"{indent}{target} = unit vector"
            case Angles(arguments, sines, cosines):
                yield f"{indent}{sines}, {cosines} = sin, cos {arguments}"
            case Lookup(table, index, target):
                yield f"{indent}{target} = {table}[{index}]"
            case ParameterRow(index, target, count, stride):
                yield f"{indent}{target} = k, {PARAMETERS}[{stride} * k:] at k = {index} of {count}"
            case Seek(curve, at, target, offset):
                yield f"{indent}{target}[{offset}:] = row of {curve} at {at}"
            case Read(series, index, target):
                yield f"{indent}{target} = {series}[state, {index}]"
            case Record(record, value, index, mask):
                yield f"{indent}{record}[state, {index}] = {value} if {mask}"
            case For(over, body, reverse):
                yield f"{indent}for {'reversed ' if reverse else ''}{over}:"
                yield from lines_of(body, name_of, depth + 1)
            case Switch(column, cases):
                for number, case in enumerate(cases):
                    if case:
                        yield f"{indent}case row[{column}] == {number}:"
                        yield from lines_of(case, name_of, depth + 1)
            case WhileAny(flag, body):
                yield f"{indent}while any {flag}:"
                yield from lines_of(body, name_of, depth + 1)
            case IfAny(flag, body):
                yield f"{indent}if any {flag}:"
                yield from lines_of(body, name_of, depth + 1)


def _shown(place: Place) -> str:
    match place:
        case Stretch(buffer, column):
            return f"{buffer}[row[{column}]:]"
        case Slice(buffer, stride):
            return f"{buffer}[{stride} * pass:]"
        case _:
            return place


def copied(program: Program, copy: Copy) -> int:
    """Number of values that a copy takes: as many as the whole buffer of its two places has."""
    whole = [place for place in (copy.source, copy.target) if isinstance(place, str)]
    return min(program.sizes[place] for place in whole)
