"""A program as LLVM functions: the one writer of statements.

``run(kept..., own, frame, table, arrays, state, here)`` of a program does everything to one block of states: pointers
to the buffers that its caller keeps, to its own memory, to the frame in which blocks put values aside, to its table
(:mod:`linkwise.targets.llvm.program_memory`), and to the arrays outside; the number of the first state, and how many
there are. Blocks are functions of pointers, called programs are functions of the same kind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import assert_never

from linkwise.targets.llvm import moves, ops, transcendental
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.block_code import BlockCode
from linkwise.targets.llvm.function_plan import make_plan
from linkwise.targets.llvm.fusing import fused
from linkwise.targets.llvm.interpreted import InterpretedBlock
from linkwise.targets.llvm.ir import FunctionText, LaneShape
from linkwise.targets.llvm.program_memory import Words, written_once
from linkwise.targets.llvm.schedule import REGISTERS
from linkwise.targets.llvm.source import entries_used
from linkwise.targets.llvm.tiers import Word
from linkwise.targets.llvm.transcendental import ENTRY_OF
from linkwise.trace.block import Block, is_truth
from linkwise.trace.passes import needed
from linkwise.trace.program import (
    PARAMETERS,
    Angles,
    Call,
    Copy,
    For,
    Host,
    IfAny,
    Lookup,
    ParameterRow,
    Place,
    Program,
    Read,
    Record,
    Seek,
    Slice,
    Statement,
    Stretch,
    Switch,
    Unit,
    WhileAny,
    buffer_of,
    copied,
)

PLANNED, PLANNED_BESIDE = 1000, 400
"""Nodes of a block from which on its order is ours, and what waits where, as in functions without loops.

Steps with contact then take 15 % less time; sweeps over links in loops, whose blocks are short, would take 40 % more.
Beside a block so long LLVM orders nothing, and shorter ones are planned too: whole robots gain up to another 7 %.
"""

FETCHED = 60_000
"""Nodes of a program's blocks from which on the code of pieces is fetched ahead.

So much, half a megabyte, does not stay in the second level of a cache beside the data, and is used once for each block
of states. Jacobians of steps with contact take 9 to 14 % less time; steps, of half as many, would take up to 5 % more.
"""


def planned_from(program: Program, machine: Machine, shape: LaneShape) -> float:
    """Nodes of a block from which on LLVM is to keep the order of its instructions; no number where it never is."""
    if not machine.masked or shape.lanes == 1 or all(len(block.nodes) <= PLANNED for block in program.blocks):
        return math.inf
    return PLANNED_BESIDE


AT_ONCE = 32
"""Nodes of a block, and numbers of a copy, up to which it is written where it is called: a call takes as long."""


class StatementWriter:
    """Writes the functions of one program for one shape of value.

    Args:
        program: the program.
        machine: the machine.
        shape: of values: one state, or as many as a vector has lanes.
        interpreted: whether long blocks are to be interpreted.
        within: the writer of the program that calls this one.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        shape: LaneShape,
        interpreted: bool = False,
        within: StatementWriter | None = None,
    ) -> None:
        if not program.is_compilable:
            raise ValueError(f"{program.name} calls Python functions and cannot be compiled")
        self.program, self.machine, self.shape = program, machine, shape
        self.name: str = "" if within is None else f"{within.name}program{len(within._called)}_"
        """Stands before the names of all functions."""
        self.planned_from: float = planned_from(program, machine, shape) if within is None else within.planned_from
        self.vector = LaneShape(shape.bits, machine.vector_bytes * 8 // shape.bits)
        self.words = Words(program)
        self.once = written_once(program, shape.lanes) if within is None else {}
        self.entries: set[str] = set()
        """The grouped functions that are called."""
        self.interpreted = interpreted
        self.held: list[object] = []
        self.imports: dict[str, int] = {}
        """Tables of the interpreted blocks."""
        self.replaceable: dict[str, Word] = {}
        """Functions of interpreted blocks, and the word of each that compiled code may put its address in."""
        self.fetched = shape.lanes > 1 and program.operations > FETCHED
        self.frame_bytes = 64
        self.tables: list[str] = []
        """Constants of blocks, as definitions."""
        self.functions: list[FunctionText] = []
        self._names: dict[tuple[object, ...], str] = {}
        self._called: dict[int, StatementWriter] = {}
        for code in program.codes:
            if isinstance(code, Program):
                self._called[id(code)] = self._write_called(code)

    def write(self) -> list[FunctionText]:
        """All functions; the last one is the program."""
        return self.write_parts({"run": self.program.statements})

    def write_parts(
        self, parts: Mapping[str, Sequence[Statement]], shared: frozenset[str] = frozenset()
    ) -> list[FunctionText]:
        """All functions; the last ones are parts of the program, by name, of which the first fills its buffers.

        Buffers that all blocks share are counted from the frame.
        """
        made = [_RunWriter(self, name, own, shared, begins=k == 0).f for k, (name, own) in enumerate(parts.items())]
        self.functions += made
        return self.functions

    def _write_called(self, program: Program) -> StatementWriter:
        inner = StatementWriter(program, self.machine, self.shape, self.interpreted, self)
        self.functions += inner.write()
        self.held += inner.held
        self.tables += inner.tables
        self.imports |= inner.imports
        self.replaceable |= inner.replaceable
        self.entries |= inner.entries
        self.frame_bytes = max(self.frame_bytes, inner.frame_bytes)
        return inner

    def called(self, program: Program) -> StatementWriter:
        """The writer of a program that this one calls."""
        return self._called[id(program)]

    def function_of(self, block: Block, call: Call) -> str:
        """The name of a block's function, written when first asked for.

        Blocks of several calls share one, if they share what is the same for all states, whether an output may lie
        where an input does, and what is there already.
        """
        uniform = frozenset(k for k, place in enumerate(call.inputs) if buffer_of(place) == PARAMETERS)
        apart = not set(call.inputs) & set(call.outputs)
        skipped = self._there_before(call) if apart else _there_already(block, call)
        key = (id(block), uniform, apart, skipped)
        if key not in self._names:
            name = self._names[key] = f"{self.name}block{len(self._names)}"
            if self.interpreted:  # also the short ones: most tables are shorter than their code
                table = InterpretedBlock(block, self.machine, self.shape, name, uniform, replaceable=True)
                self.held += table.held
                self.imports |= table.imports
                self.replaceable[name] = table.word
                functions, frame_bytes = table.functions, table.frame_bytes
            else:
                # An input that a result has overwritten could not be read again.
                planned = apart and len(block.nodes) > self.planned_from
                block = fused(block, self.machine)
                plan = make_plan(block, final=planned)
                masked = self.machine.masked and self.shape.lanes == 1
                registers = REGISTERS if planned else 0
                body = BlockCode(
                    block,
                    plan,
                    self.shape,
                    self.vector,
                    name,
                    masked,
                    uniform,
                    apart,
                    skipped=skipped,
                    registers=registers,
                    called=True,
                    fetched=self.fetched,
                )
                self.entries.update(entries_used(plan))
                self.tables += body.tables
                functions, frame_bytes = body.functions, body.frame_bytes
            self.functions += functions
            self.frame_bytes = max(self.frame_bytes, frame_bytes + 64)
        return self._names[key]

    def _there_before(self, call: Call) -> frozenset[tuple[int, int]]:
        """Array and element of results that are written once for all blocks of states."""
        named = (
            (array, self.once.get(place, {})) for array, place in enumerate(call.outputs) if isinstance(place, str)
        )
        return frozenset((array, element) for array, own in named for element in own)


def _there_already(block: Block, call: Call) -> frozenset[tuple[int, int]]:
    """Array and element of results that are numbers of an input which lies in the same place."""
    return frozenset(
        (array, element)
        for array, (place, values) in enumerate(zip(call.outputs, block.results, strict=True))
        for element, value in enumerate(values)
        if block.nodes[value][0] == "input"
        and (call.inputs[block.nodes[value][1]], block.nodes[value][2]) == (place, element)
    )


class _RunWriter:
    """Writes a function of some statements."""

    def __init__(
        self,
        writer: StatementWriter,
        name: str,
        statements: Sequence[Statement],
        shared: frozenset[str],
        *,
        begins: bool = True,
    ) -> None:
        self.writer, self.program, self.shape, self.words = writer, writer.program, writer.shape, writer.words
        program = self.program
        kept = [buffer.name for buffer in program.kept]
        pointers = ", ".join([*(f"ptr %kept{k}" for k in range(len(kept))), "ptr %own, ptr %frame, ptr %table"])
        self.f = f = FunctionText(
            f"define internal void @{writer.name}{name}({pointers}, ptr %arrays, i64 %state, i64 %here) noinline #0"
        )
        f.label("entry")
        self.base = {name: f"%kept{k}" for k, name in enumerate(kept)}
        for buffer in program.buffers:
            if buffer.name not in self.base:
                start = self._word(self.words.start(buffer.name))
                home = "%frame" if buffer.name in shared else "%own"
                self.base[buffer.name] = f.address(self.shape.real, home, start)
        self.rows = self._pointer(Words.ROWS) if program.ranges else ""
        if program.reads_parameters:
            self.base[PARAMETERS] = self._pointer(Words.PARAMETERS)
        self.row, self.pass_number = "", ""
        self._outside()
        if begins:
            self._initial()
        self._all(statements)
        f.do("ret void")

    # Words of the table.
    def _word(self, index: int) -> str:
        return self.f.load("i64", self.f.address("i64", "%table", index), 8)

    def _pointer(self, index: int) -> str:
        return self.f.load("ptr", self.f.address("ptr", "%table", index), 8)

    def _size(self, buffer: str) -> str:
        """Number of values of a buffer: data, where it is open."""
        known = next(b for b in self.program.buffers if b.name == buffer)
        return self._word(self.words.size(buffer)) if known.open else str(known.size)

    def _outside(self) -> None:
        """Arrays of the caller, behind the rows of the buffers: pointers, and how far their rows are apart."""
        f, position = self.f, len(self.program.kept)
        self.outside: dict[str, list[str]] = {}
        kinds: list[tuple[str, tuple[str, ...]]] = [(name, ("ptr",)) for name in self.program.tables]
        for name, _ in (*self.program.records, *self.program.curves, *self.program.series):
            kinds.append((name, ("ptr", "i64", "i64")))
        for name, words in kinds:
            self.outside[name] = [
                f.load(kind, f.address("i64", "%arrays", position + k), 8) for k, kind in enumerate(words)
            ]
            position += len(words)

    def _initial(self) -> None:
        """Fill buffers with what they hold before the first statement, at places counted from the own memory."""
        count, places = self._word(Words.INITIAL), self._pointer(Words.INITIAL_PLACES)
        values = self._pointer(Words.INITIAL_VALUES)
        moves.fill(self.f, self.shape, (count, places, values), "%own", "initial", "statements")

    def _place(self, place: Place) -> str:
        """Address of a place."""
        f = self.f
        match place:
            case Stretch(buffer, column):
                start = f.load("i64", f.address("i64", self.row, column), 8)
                kind = self.shape.element if buffer == PARAMETERS else self.shape.real
                return f.address(kind, self.base[buffer], start)
            case Slice(buffer, stride):
                return f.address(self.shape.real, self.base[buffer], f.emit(f"mul i64 {self.pass_number}, {stride}"))
            case _:
                return self.base[place]

    # Statements.
    def _all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._one(statement)

    def _one(self, statement: Statement) -> None:
        f, sizes = self.f, self.program.sizes
        match statement:
            case Call():
                self._call(statement)
            case Copy(source, target):
                number = copied(self.program, statement)
                count = self._size(buffer_of(source if isinstance(source, str) else target))
                if number > AT_ONCE or not count.isdecimal():
                    f.do(f"call void @copy(ptr {self._place(source)}, ptr {self._place(target)}, i64 {count})")
                elif number:
                    real, size, there = self.shape.real, self.shape.size, self._place(source)
                    values = [f.load(real, f.address(real, there, k), size) for k in range(number)]
                    there = self._place(target)
                    for k, value in enumerate(values):
                        f.store(real, value, f.address(real, there, k), size)
            case Unit(target):
                f.do(f"call void @unit(ptr {self.base[target]}, i64 {self._size(target)}, i64 {self.pass_number})")
            case Angles():
                self._angles(statement)
            case Lookup(table, index, target):
                f.do(
                    f"call void @lookup(ptr {self.outside[table][0]}, ptr {self.base[index]}, ptr {self.base[target]})"
                )
            case ParameterRow(index, target, count, step):
                numbers = f"ptr {self.base[PARAMETERS]}, i64 {count - 1}, i64 {step}, i64 {sizes[target] - 1}"
                f.do(f"call void @parameter_row({numbers}, ptr {self.base[index]}, ptr {self.base[target]})")
            case Seek(curve, at, target, offset):
                base, rows, stride = self.outside[curve]
                part = f.address(self.shape.real, self.base[target], offset)
                f.do(
                    f"call void @seek(ptr {base}, i64 %state, i64 %here, i64 {rows}, i64 {stride}, "
                    f"i64 {dict(self.program.curves)[curve]}, ptr {self.base[at]}, ptr {part})"
                )
            case Read(series, index, target):
                base, apart, stride = self.outside[series]
                if sizes[target]:
                    f.do(
                        f"call void @read(ptr {base}, i64 %state, i64 %here, i64 {apart}, i64 {stride}, "
                        f"i64 {sizes[target]}, ptr {self.base[index]}, ptr {self.base[target]})"
                    )
            case Record(record, value, index, mask):
                base, apart, stride = self.outside[record]
                if sizes[value]:
                    f.do(
                        f"call void @record(ptr {base}, i64 %state, i64 %here, i64 {apart}, i64 {stride}, "
                        f"i64 {sizes[value]}, ptr {self.base[value]}, ptr {self.base[index]}, ptr {self.base[mask]})"
                    )
            case For():
                self._for(statement)
            case Switch():
                self._switch(statement)
            case WhileAny(flag, body):
                test, inside, after = (f.name()[1:] for _ in range(3))
                f.do(f"br label %{test}")
                f.label(test)
                f.do(f"br i1 {self._any(flag)}, label %{inside}, label %{after}")
                f.label(inside)
                self._all(body)
                f.do(f"br label %{test}")
                f.label(after)
            case IfAny(flag, body):
                inside, after = (f.name()[1:] for _ in range(2))
                f.do(f"br i1 {self._any(flag)}, label %{inside}, label %{after}")
                f.label(inside)
                self._all(body)
                f.do(f"br label %{after}")
                f.label(after)
            case Host():
                raise ValueError("a Python function cannot be compiled")
            case _:
                assert_never(statement)

    def _call(self, call: Call) -> None:
        if isinstance(call.code, Block):
            if len(call.code.nodes) <= AT_ONCE and all(node[0] not in ENTRY_OF for node in call.code.nodes):
                self._written(call.code, call.inputs, call.outputs)
                return
            name, read = self.writer.function_of(call.code, call), call.code.arrays_read
            given = [self._place(place) if k in read else "undef" for k, place in enumerate(call.inputs)]
            places = [*given, *map(self._place, call.outputs), "%frame"]
            self.f.do(f"call void @{name}({', '.join(f'ptr {p}' for p in places)})")
            return
        places = [self._place(place) for place in (*call.inputs, *call.outputs)]
        inner = self.writer.called(call.code)
        order = [b.name for b in call.code.buffers if b.load] + [b.name for b in call.code.buffers if b.store]
        by_name = dict(zip(order, places, strict=True))
        own = self.f.emit(f"getelementptr i8, ptr %own, i64 {self._word(Words.INNER)}")
        table = self._pointer(self.words.table(call.code))
        passed = [*(by_name[b.name] for b in call.code.kept), own, "%frame", table, "%arrays"]
        self.f.do(f"call void @{inner.name}run({', '.join(f'ptr {p}' for p in passed)}, i64 %state, i64 %here)")

    def _written(self, block: Block, inputs: Sequence[Place], outputs: Sequence[Place]) -> None:
        """A short block where it is called: all that it reads is there before it writes."""
        f, shape, block = self.f, self.shape, fused(block, self.writer.machine)
        given = {k: self._place(inputs[k]) for k in sorted(block.arrays_read)}
        values: dict[int, str] = {}
        for number, (node, is_needed) in enumerate(zip(block.nodes, needed(block), strict=True)):
            if not is_needed:
                continue
            match node:
                case ("const", x):
                    values[number] = f.constant(shape, x)
                case ("input", array, element) if buffer_of(inputs[array]) == PARAMETERS:
                    values[number] = f.spread(shape, given[array], element)
                case ("input", array, element):
                    values[number] = f.load(shape.real, f.address(shape.real, given[array], element), shape.size)
                case (op, *of):
                    values[number] = ops.TABLE[op](f, shape, *(values[k] for k in of))
        one, zero = shape.constant(1.0), shape.constant(0.0)
        for place, numbers in zip(outputs, block.results, strict=True):
            there = self._place(place)
            for element, number in enumerate(numbers):
                value = values[number]
                if is_truth(block.nodes[number]):
                    value = f.emit(f"select {shape.truth} {value}, {shape.real} {one}, {shape.real} {zero}")
                f.store(shape.real, value, f.address(shape.real, there, element), shape.size)

    def _angles(self, statement: Angles) -> None:
        self.writer.entries.add("sincos")
        places = [self.base[name] for name in (statement.arguments, statement.sines, statement.cosines)]
        count = self._size(statement.arguments)
        if self.shape.lanes == 1:  # by whole vectors, the last one filled up
            lanes = self.writer.vector.lanes
            count = self.f.emit(f"udiv i64 {self.f.emit(f'add i64 {count}, {lanes - 1}')}, {lanes}")
        passed = ", ".join(f"ptr {place}" for place in places)
        self.f.do(f"call void @{transcendental.function_name('sincos')}({passed}, i64 {count})")

    def _for(self, loop: For) -> None:
        f, around = self.f, (self.row, self.pass_number)
        index, inside, again, after = f.name(), *(f.name()[1:] for _ in range(3))
        over_rows = isinstance(loop.over, str)
        if isinstance(loop.over, str):
            first, count = self._word(self.words.first_row(loop.over)), self._word(self.words.rows(loop.over))
        else:
            first, count = "0", str(loop.over)
        last = f.emit(f"sub i64 {count}, 1") if loop.reverse else ""
        with f.counted(count, index, block=inside, again=again, after=after):
            number = f.emit(f"sub i64 {last}, {index}") if loop.reverse else index
            if over_rows:
                k = f.emit(f"add i64 {first}, {number}")
                self.row = f.address("i64", self.rows, f.emit(f"mul i64 {k}, {self.program.rows.shape[1]}"))
            else:
                self.pass_number = number
            self._all(loop.body)
            f.do(f"br label %{again}")
        self.row, self.pass_number = around

    def _switch(self, switch: Switch) -> None:
        f = self.f
        kind = f.load("i64", f.address("i64", self.row, switch.column), 8)
        after = f.name()[1:]
        labels = {number: f.name()[1:] for number, case in enumerate(switch.cases) if case}
        cases = " ".join(f"i64 {number}, label %{label}" for number, label in labels.items())
        f.do(f"switch i64 {kind}, label %{after} [ {cases} ]")
        for number, label in labels.items():
            f.label(label)
            self._all(switch.cases[number])
            f.do(f"br label %{after}")
        f.label(after)

    def _any(self, flag: str) -> str:
        f, shape = self.f, self.shape
        value = f.load(shape.real, self.base[flag], shape.size)
        raised = f.emit(f"fcmp une {shape.real} {value}, {shape.constant(0.0)}")
        if shape.lanes == 1:
            return raised
        return f.call("i1", f"llvm.vector.reduce.or.v{shape.lanes}i1", [(shape.truth, raised)])
