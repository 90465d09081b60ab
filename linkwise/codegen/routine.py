"""Loops around programs: a small structured language whose leaves are programs, straight-line or with loops over links.

A :class:`Routine` works on named buffers, each a few real numbers for every state of a batch. Its statements call
programs on them, loop and branch on flags, look up shared tables and record rows. All that is arithmetic is in the
programs; a routine only says what runs after what. States in different lanes run side by side: a loop goes on while
*any* of them has its flag up, and programs use ``where`` to leave the others as they are.

:mod:`linkwise.codegen.llvm.routine` compiles a routine for the processor, :mod:`linkwise.codegen.cuda.routine` for a
GPU; :mod:`linkwise.codegen.hosted` runs it with NumPy, which is also its definition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from linkwise.once import cached_property
from linkwise.tracing.program import Program
from linkwise.tracing.rolled_program import RolledProgram


@dataclass(frozen=True)
class Buffer:
    """``size`` numbers for each state. What is kept is read from the caller's ``(count, size)`` rows at the start."""

    name: str
    size: int
    load: bool = False
    store: bool = False


@dataclass(frozen=True, eq=False)
class Call:
    """Run a program from buffers to buffers; no output may be one of the inputs."""

    program: Program | RolledProgram
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Host:
    """Run a Python function of ``(count, size)`` arrays; a routine with one of these cannot be compiled."""

    function: Callable[..., Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Copy:
    """One buffer to another of the same size."""

    source: str
    target: str


@dataclass(frozen=True)
class Lookup:
    """``target = table[index]``, each state with its own index (a whole number)."""

    table: str
    index: str
    target: str


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


@dataclass(frozen=True)
class WhileAny:
    """Repeat while the flag of any state is not zero; tested before each pass."""

    flag: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class IfAny:
    """Run if the flag of any state is not zero."""

    flag: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Columns:
    """A matrix by its columns: for each unit vector in turn run the body, which makes ``column`` of ``unit``.

    ``matrix`` is the columns one behind the other.
    """

    unit: str
    column: str
    matrix: str
    body: tuple[Statement, ...]


Statement = Call | Host | Copy | Lookup | Seek | Read | Record | WhileAny | IfAny | Columns


@dataclass(frozen=True, eq=False)
class Routine:
    """Buffers, shared tables, records ``(count, capacity, size)``, curves by their width, and the statements.

    Series are ``(count or 1, capacity, size)``. Theirs and the records' first two axes may lie in memory in any order.
    """

    name: str
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...] = field(repr=False)
    tables: tuple[str, ...] = ()
    records: tuple[tuple[str, int], ...] = ()
    curves: tuple[tuple[str, int], ...] = ()
    series: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        sizes = self.sizes
        for statement in self.walk():
            for name, size in _uses(statement):
                if name not in sizes:
                    raise ValueError(f"{statement} of {self.name} uses the buffer {name!r}; there are {sorted(sizes)}")
                if size is not None and sizes[name] != size:
                    raise ValueError(
                        f"buffer {name!r} of {self.name} has {sizes[name]} numbers where {size} are passed"
                    )
            if isinstance(statement, Call) and set(statement.inputs) & set(statement.outputs):
                raise ValueError(f"the call of {statement.program.name} in {self.name} writes what it reads")
            if (
                isinstance(statement, Seek)
                and statement.offset + dict(self.curves)[statement.curve] > sizes[statement.target]
            ):
                raise ValueError(f"a row of {statement.curve!r} does not fit into {statement.target!r} of {self.name}")
            if isinstance(statement, Read) and dict(self.series)[statement.series] != sizes[statement.target]:
                raise ValueError(f"a row of {statement.series!r} is not what {statement.target!r} of {self.name} takes")
            if isinstance(statement, Columns):
                wide, high, whole = (sizes[name] for name in (statement.unit, statement.column, statement.matrix))
                if wide * high != whole:
                    raise ValueError(f"{wide} columns of {high} numbers are not the {whole} of {statement.matrix!r}")

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Numbers in each buffer."""
        return {buffer.name: buffer.size for buffer in self.buffers}

    @cached_property
    def loads(self) -> tuple[Buffer, ...]:
        """The buffers that have rows in the caller's memory."""
        return tuple(buffer for buffer in self.buffers if buffer.load or buffer.store)

    def walk(self) -> Iterator[Statement]:
        """All statements, outer ones first."""
        todo = list(reversed(self.statements))
        while todo:
            statement = todo.pop()
            yield statement
            if isinstance(statement, (WhileAny, IfAny, Columns)):
                todo.extend(reversed(statement.body))

    @cached_property
    def programs(self) -> tuple[Program | RolledProgram, ...]:
        """Each program once, in the order of first use."""
        found: dict[int, Program | RolledProgram] = {}
        for statement in self.walk():
            if isinstance(statement, Call):
                found.setdefault(id(statement.program), statement.program)
        return tuple(found.values())

    @cached_property
    def operations(self) -> int:
        """About how many there are in one pass, each program counted once."""
        columns = max((self.sizes[s.unit] for s in self.walk() if isinstance(s, Columns)), default=1)
        return columns * sum(program.length for program in self.programs)

    @cached_property
    def is_compilable(self) -> bool:
        """Whether no Python function is called."""
        return not any(isinstance(statement, Host) for statement in self.walk())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides what the routine does."""
        digest = hashlib.sha256()
        numbers = {id(program): k for k, program in enumerate(self.programs)}
        for program in self.programs:
            digest.update(program.fingerprint.encode())
        digest.update(repr((self.name, self.buffers, self.tables, self.records, self.curves, self.series)).encode())
        for text in _lines(self.statements, numbers):
            digest.update(text.encode() + b"\n")
        return digest.hexdigest()


def _uses(statement: Statement) -> Iterator[tuple[str, int | None]]:
    """Buffers of one statement, with the size they must have where that is known."""
    match statement:
        case Call(program, inputs, outputs):
            specs = (*program.inputs, *program.outputs)
            for name, spec in zip((*inputs, *outputs), specs, strict=True):
                yield name, spec.size
        case Host(_, inputs, outputs):
            yield from ((name, None) for name in (*inputs, *outputs))
        case Copy(source, target):
            yield from ((source, None), (target, None))
        case Lookup(_, index, target):
            yield from ((index, 1), (target, 1))
        case Seek(_, at, target, _):
            yield from ((at, 1), (target, None))
        case Read(_, index, target):
            yield from ((index, 1), (target, None))
        case Record(_, value, index, mask):
            yield from ((value, None), (index, 1), (mask, 1))
        case WhileAny(flag, _) | IfAny(flag, _):
            yield flag, 1
        case Columns(unit, column, matrix, _):
            yield from ((unit, None), (column, None), (matrix, None))


def _lines(statements: tuple[Statement, ...], numbers: dict[int, int]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case Call(program, inputs, outputs):
                yield f"call {numbers[id(program)]} {inputs} {outputs}"
            case WhileAny(flag, body) | IfAny(flag, body):
                yield f"{type(statement).__name__} {flag} ("
                yield from _lines(body, numbers)
                yield ")"
            case Columns(unit, column, matrix, body):
                yield f"columns {unit} {column} {matrix} ("
                yield from _lines(body, numbers)
                yield ")"
            case _:
                yield repr(statement)


def steps_between(name: str, array: Any, count: int, size: int, *, shared: bool = False) -> tuple[int, int]:
    """How far a record's or a series' states and rows are apart in memory, in numbers; 0 where one state serves all.

    Raises where an array is not (count, capacity, size), or (1, capacity, size) if ``shared``, with whole rows.
    """
    states = (1, count) if shared else (count,)
    itemsize = array.dtype.itemsize
    whole = array.ndim == 3 and array.shape[0] in states and array.shape[2] == size
    if not whole or (size > 1 and array.size and array.strides[2] != itemsize):
        raise ValueError(f"{name!r} is an array {array.shape}, not ({count}, …, {size}) with whole rows")
    apart = 0 if shared and array.shape[0] == 1 else array.strides[0] // itemsize
    return apart, array.strides[1] // itemsize
