"""Programs as compiled kernels: every pass of their loops runs without leaving machine code.

``program(arrays, first, count, scratch, table)`` takes blocks of as many states as a vector has lanes, or one state at
a time. A block's buffers live in the scratch memory from its first statement to its last; rows of the caller are
brought there before and taken back after, or used where they lie where that is possible.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.targets import recycled
from linkwise.targets import threads as split
from linkwise.targets.llvm import binding, fastcall, kernel, moves, pool, streaming, tiers, transcendental, transpose
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.foreign_calls import ForeignEntry
from linkwise.targets.llvm.function_plan import WHOLE
from linkwise.targets.llvm.ir import FunctionText, LaneShape, module_text
from linkwise.targets.llvm.program_memory import ProgramMemory, Words, used_in_place, wide_buffers, written_once
from linkwise.targets.llvm.source import attributes, quick_module
from linkwise.targets.llvm.statements import StatementWriter, planned_from
from linkwise.trace.in_place import in_place
from linkwise.trace.program import (
    Copy,
    Lookup,
    ParameterRow,
    Program,
    Read,
    Record,
    Seek,
    Unit,
    WhileAny,
)
from linkwise.trace.waiting import WaitingLoop, with_loops_inlined

ENTRY = "linkwise_program"
FRAME_ENTRY = "linkwise_frame_bytes"
ENTRIES = tiers.EntryPoints({ENTRY: 5}, (FRAME_ENTRY,))

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
_NUMBER = ctypes.CFUNCTYPE(ctypes.c_int64)

_KEPT_BYTES = 1 << 26  # threads, and builtin functions, keep scratch memory up to this size, and give larger ones back
_kept = threading.local()

Rows = Mapping[str, NDArray[Any]]


def program_module(program: Program, machine: Machine, bits: int, lanes: int) -> str:
    """The module's text, for one state at a time or for as many as a vector holds."""
    shape = LaneShape(bits, lanes)
    return _text(program, StatementWriter(program, machine, shape), shape)


def quick_program_module(program: Program, machine: Machine, bits: int, lanes: int) -> tiers.QuickModule:
    """The module for the first calls of a long program."""
    shape = LaneShape(bits, lanes)
    writer = StatementWriter(program, machine, shape, interpreted=True)
    text = _text(program, writer, shape)
    return quick_module(text, machine, shape, writer.imports, tuple(writer.held), writer.replaceable)


def _text(program: Program, writer: StatementWriter, shape: LaneShape) -> str:
    machine, bits, lanes = writer.machine, shape.bits, shape.lanes
    loop, listed = WaitingLoop.of(program) if lanes > 1 else None, False
    if loop is None:
        made, entry = writer.write(), [_entry(program, shape)]
    else:
        parts = {pool.BEFORE: loop.before, pool.PASS: loop.body, pool.AFTER: loop.after}
        made = writer.write_parts(parts, frozenset(buffer.name for buffer in program.buffers) - loop.waits)
        around = pool.PoolWriter(program, loop, shape, ENTRY)
        entry, listed = around.functions(), around.puts_in_order
    size = FunctionText(f"define i64 @{FRAME_ENTRY}()")
    wide = {} if listed else wide_buffers(program, shape)
    past = [transpose.part(machine, shape), streaming.past(shape), streaming.stored(shape)] if wide else []
    size.do(f"ret i64 {max(writer.frame_bytes, streaming.past_bytes(shape) if wide else 0)}")
    grouped = [f for entry in sorted(writer.entries) for f in transcendental.functions(entry, machine, bits)]
    transposes = [] if lanes == 1 else transpose.functions(machine, shape, listed=listed)
    functions = [*transposes, *grouped, *_moves(program, shape, listed), *past, *made, *entry, size]
    attached = [attributes(machine), *(["!0 = !{i32 1}"] if wide else []), *writer.tables]
    return f"; {program.name}, {lanes} states at a time\n" + module_text(functions, attached)


def _moves(program: Program, shape: LaneShape, listed: bool) -> Iterator[FunctionText]:
    """The functions that move numbers, as far as they are called."""
    used = _kinds(program)
    moved = [b for b in program.kept if not used_in_place(program, b, shape.lanes)]
    if Copy in used or WhileAny in used or (moved and shape.lanes == 1):
        yield moves.copy(shape)
    if any(buffer.load for buffer in moved):
        yield moves.rows(shape, True, listed)
    if any(buffer.store for buffer in moved):
        yield moves.rows(shape, False, listed)
    written = {Lookup: moves.lookup, Record: moves.record, Seek: moves.seek, Read: moves.read, Unit: moves.unit}
    written |= {ParameterRow: moves.parameter_row}
    yield from (write(shape) for kind, write in written.items() if kind in used)
    if written_once(program, shape.lanes):
        yield moves.fill_once(shape, Words(program))


def _kinds(program: Program) -> set[type]:
    """The kinds of statements of a program and of those it calls."""
    found = {type(statement) for statement in program.walk()}
    for code in program.codes:
        found |= _kinds(code) if isinstance(code, Program) else set()
    return found


def _entry(program: Program, shape: LaneShape) -> FunctionText:
    """The way in: block after block of states."""
    words, lanes = Words(program), shape.lanes
    f = FunctionText(
        f"define void @{ENTRY}(ptr %arrays, i64 %first, i64 %count, ptr noalias %scratch, ptr noalias %table) #0"
    )
    f.label("entry")
    frame_at = f.load("i64", f.address("i64", "%table", Words.FRAME), 8)
    frame = f.emit(f"getelementptr i8, ptr %scratch, i64 {frame_at}")
    wide = wide_buffers(program, shape)
    far = streaming.is_far(f, wide) if wide else ""
    rows, sizes, lanes_at = [], [], []
    for k, buffer in enumerate(program.kept):
        rows.append(f.load("ptr", f.address("ptr", "%arrays", k), 8))
        size, start = (
            f.load("i64", f.address("i64", "%table", word), 8)
            for word in (words.size(buffer.name), words.start(buffer.name))
        )
        sizes.append(size if buffer.open else str(buffer.size))
        lanes_at.append(f.address(shape.real, "%scratch", start))
    if written_once(program, lanes):
        f.do("call void @fill_once(ptr %scratch, ptr %table)")
    with f.counted("%count", step=lanes):
        f.do("%left = sub i64 %count, %i")
        f.do(f"%full = icmp sge i64 %left, {lanes}")
        f.do(f"%here = select i1 %full, i64 {lanes}, i64 %left")
        f.do("%state = add i64 %first, %i")
        starts = [f.emit(f"mul i64 %state, {size}") for size in sizes]
        own = [f.address(shape.element, base, start) for base, start in zip(rows, starts, strict=True)]
        passed, moved = [], []
        for buffer, here, there, size in zip(program.kept, own, lanes_at, sizes, strict=True):
            in_place = used_in_place(program, buffer, lanes)
            passed.append(here if in_place else there)
            if not in_place and (buffer.open or buffer.size):
                moved.append((buffer, f"ptr {here}, ptr {there}, i64 {size}, i64 %here"))
        for buffer, arguments in moved:
            if buffer.load:
                f.do(f"call void @load_rows({arguments})")
        pointers = ", ".join(f"ptr {p}" for p in [*passed, "%scratch", frame, "%table", "%arrays"])
        f.do(f"call void @run({pointers}, i64 %state, i64 %here)")
        for buffer, arguments in moved:
            if buffer.name in wide:
                f.do(f"call void @store_wide_rows({arguments}, ptr {frame}, i1 {far})")
            elif buffer.store:
                f.do(f"call void @store_rows({arguments})")
    f.do("ret void")
    return f


def _scratch(size: int) -> tuple[int, NDArray[Any]]:
    """Address of memory on a cache line, and who holds it."""
    buffer: NDArray[Any] | None = getattr(_kept, "buffer", None)
    if buffer is None or buffer.nbytes < size + 64:
        buffer = np.empty(size + 64, np.uint8)
        if size <= _KEPT_BYTES:
            _kept.buffer = buffer
    address = int(buffer.ctypes.data)
    return address + -address % 64, buffer


class ProgramKernel:
    """A program compiled for one precision, for many states (in lanes) or for few (one after the other)."""

    def __init__(self, program: Program, dtype: DTypeLike, library: tiers.Library, lanes: int, vector: int) -> None:
        self.program, self.dtype, self.lanes = program, np.dtype(dtype), lanes
        self._library = library  # holds the code
        self._call: Callable[..., None] = _SIGNATURE(library[ENTRY])
        self.memory = ProgramMemory(program, self.dtype, lanes, vector)
        self.memory.reserve_frame(int(_NUMBER(library[FRAME_ENTRY])()))
        self._scratch_bytes, self._table = self.memory.bytes, self.memory.address

    @classmethod
    def build(cls, program: Program, dtype: DTypeLike = np.float64, *, single: bool = False) -> ProgramKernel:
        """Kernel for the machine this runs on, cached or compiled; in debug runs one that checks every access.

        ``single``: one state at a time.
        """
        if binding.checked_builds() and not (program.records or program.tables or program.curves or program.series):
            from linkwise.targets.llvm import bounds

            return bounds.checked_program(program, dtype, single=single)
        machine, bits = binding.host(), np.dtype(dtype).itemsize * 8
        lanes = 1 if single else machine.lanes(dtype)
        program = in_place(program)
        program = program if single else with_loops_inlined(program)

        def write() -> tiers.Module:
            # As with functions of several pieces, LLVM's scheduler moves values away from where they are used.
            planned = planned_from(program, machine, LaneShape(bits, lanes)) < math.inf
            in_order = planned or (lanes > 1 and any(len(block.nodes) > WHOLE for block in program.blocks))
            return tiers.Module(program_module(program, machine, bits, lanes), in_order)

        key = kernel.cache_key(program, f"program x {lanes}", f"float{bits}", machine)
        quickly = partial(quick_program_module, program, machine, bits, lanes)
        library = tiers.library(
            key,
            write,
            machine,
            ENTRIES,
            kernel.imports(),
            quickly if kernel.worth_interpreting(program) else None,
        )
        return cls(program, dtype, library, lanes, machine.lanes(dtype))

    def run(self, rows: Rows, tables: Rows, records: Rows, count: int, threads: int = 1) -> None:
        """Run to the end; arrays are of the kernel's dtype, and C-contiguous but for records and series.

        Args:
            rows: for each kept buffer ``(count, size)``; those that are stored are overwritten.
            tables: for each table its numbers; for each curve ``(count or 1, rows, width)`` of them; for each series
                ``(count or 1, capacity, size)``.
            records: for each record ``(count, capacity, size)``; only what is recorded is overwritten.
            count: states.
            threads: threads to split them over.
        """
        self.bound(rows, tables, records, count, threads)()

    def offer(self, slot: fastcall.BatchSlot) -> None:
        """Let a builtin function call this kernel by itself."""
        if self._scratch_bytes > _KEPT_BYTES or not self.program.is_function:
            return
        fresh = (recycled.SMALLEST - 1) // max(1, self.dtype.itemsize * sum(spec.size for spec in self.program.outputs))
        endless = WhileAny in _kinds(self.program)  # it may take long: others get the interpreter's lock
        slot.fill(
            self,
            self.dtype.itemsize,
            kernel=self._library[ENTRY],
            scratch_bytes=self._scratch_bytes,
            few=self.lanes == 1,
            fresh=fresh,
            brief=0 if endless else kernel.BRIEF_NODES // (self.program.length + 1),
            beside=self._table,
        )

    def foreign_entry(self) -> ForeignEntry | None:
        """Entry for calls that do not come from Python; None for what needs more than inputs and outputs."""
        program = self.program
        if not program.is_function:
            return None
        return ForeignEntry(
            "program",
            self._library[ENTRY],
            len(program.inputs),
            len(program.outputs),
            rank=len(program.outputs[0].shape),
            scratch_bytes=self._scratch_bytes,
            table=self._table,
            order=program.order,
            held=self,
        )

    def evaluate(
        self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]], count: int, threads: int = 1
    ) -> None:
        """Fill ``outputs`` from ``inputs``, in the program's order: C-contiguous ``(count, size)`` arrays."""
        given, filled = iter(inputs), iter(outputs)
        rows = {}
        for buffer in self.program.kept:
            if buffer.load:
                rows[buffer.name] = next(given)
            if buffer.store:
                rows[buffer.name] = next(filled)
        self.run(rows, {}, {}, count, threads)

    def bound(self, rows: Rows, tables: Rows, records: Rows, count: int, threads: int = 1) -> Callable[[], None]:
        """:meth:`run` on these very arrays, as often as it is called; the caller keeps them alive."""
        program = self.program
        places = [rows[buffer.name].ctypes.data for buffer in program.kept]
        places += [tables[name].ctypes.data for name in program.tables]
        for name, size in program.records:
            places += [records[name].ctypes.data, *recycled.steps_between(name, records[name], count, size)]
        for name, width in program.curves:
            curve = tables[name]
            if curve.shape[0] not in (1, count) or curve.shape[2] != width:
                raise ValueError(f"the curve {name!r} has shape {curve.shape}, not ({count} or 1, …, {width})")
            places += [curve.ctypes.data, curve.shape[1], 0 if curve.shape[0] == 1 else curve.shape[1] * width]
        for name, size in program.series:
            places += [tables[name].ctypes.data, *recycled.steps_between(name, tables[name], count, size, shared=True)]
        arrays = (ctypes.c_void_p * max(1, len(places)))(*places)
        table = self._table

        def work(start: int, stop: int) -> None:
            scratch, _holder = _scratch(self._scratch_bytes)
            self._call(arrays, start, stop - start, scratch, table)

        if threads == 1:
            return lambda: work(0, count)
        return lambda: split.run(work, count, threads, self.lanes, self.lanes, keeping=(rows, tables, records))

    def run_units(self, out: NDArray[Any], parameters: NDArray[Any], stops: NDArray[Any], threads: int = 1) -> None:
        """One row of ``out`` for each unit vector of the only input, which is in lanes.

        Args:
            out: (count, size), C-contiguous, of the kernel's dtype.
            parameters: link constants to use in place of the program's.
            stops: (count) for each unit vector how many links its only loop passes; they do not fall.
            threads: how many share the work.
        """
        program, lanes, item = self.program, self.lanes, self.dtype.itemsize
        size, height = program.inputs[0].size, program.outputs[0].size
        window = np.zeros((2 * size + lanes + 8) * lanes, self.dtype)
        first = -(window.ctypes.data // item) % lanes + size * lanes
        window[first : first + lanes * lanes].reshape(lanes, lanes)[...] = np.eye(lanes)
        numbers = np.ascontiguousarray(parameters, self.dtype)
        ((links, _, _),) = program.ranges

        def work(start: int, stop: int) -> None:
            table = self.memory.table.copy()
            table[Words.PARAMETERS] = numbers.ctypes.data
            ones, rows, passed = window.ctypes.data + first * item, out.ctypes.data, stops.tolist()
            arrays = (ctypes.c_void_p * 2)()
            scratch, _holder = _scratch(self._scratch_bytes)
            for row in range(start, stop, lanes):
                count = min(lanes, stop - row)
                table[self.memory.words.rows(links)] = passed[row + count - 1]
                arrays[0] = ones - row * lanes * item  # the ones of the window slide to the places of these rows
                arrays[1] = rows + row * height * item
                self._call(arrays, 0, count, scratch, table.ctypes.data)

        split.run(work, len(out), threads, lanes, lanes, keeping=(out, numbers, window))
