"""A routine as one compiled kernel: every pass of its loops runs without leaving machine code.

``routine(arrays, first, count, scratch)`` takes blocks of as many states as a vector has lanes, or one state at
a time for the scalar variant. A block's buffers live in the scratch memory (a few kilobytes, so in the first-level
cache) from its first step to its last; only what is recorded goes to the caller's memory on the way. Behind the buffers
lies the memory of programs with loops; their tables come with the arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.codegen import cache
from linkwise.codegen import routine as routines
from linkwise.codegen import threads as split
from linkwise.codegen.llvm import jit, machines, statements, transcendental, transpose
from linkwise.codegen.llvm import kernel as kernels
from linkwise.codegen.llvm.body import Body
from linkwise.codegen.llvm.ir import Function, Shape, module_text
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.plan import make_plan
from linkwise.codegen.llvm.rolled_table import Table
from linkwise.codegen.llvm.source import attributes, entries_used
from linkwise.codegen.llvm.sweeps import Sweeps
from linkwise.tracing.program import Program

# Part of every cache key, with that of the kernels: raise it when the same routine would be compiled to something else.
ROUTINE_VERSION = 4

ENTRY = "linkwise_routine"
SCRATCH_ENTRY = "linkwise_routine_scratch_bytes"

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_NUMBER = ctypes.CFUNCTYPE(ctypes.c_int64)


class RoutineKernel:
    """A routine compiled for one precision, for many states (in lanes) or for few (``scalar``)."""

    def __init__(self, routine: routines.Program, dtype: DTypeLike, library: jit.Library, lanes: int) -> None:
        self.routine = routine
        self.dtype = np.dtype(dtype)
        self.lanes = lanes
        self._library = library  # holds the code
        self._call = _SIGNATURE(library[ENTRY])
        vector = machines.host().lanes(dtype)
        with_loops = [program for program in routine.programs if isinstance(program, Program)]
        self._tables = [Table(program, self.dtype, lanes, vector, arrays=False) for program in with_loops]
        spaces = max((table.frame for table in self._tables), default=0)
        self._scratch_bytes = int(_NUMBER(library[SCRATCH_ENTRY])()) + spaces

    @classmethod
    def build(cls, routine: routines.Program, dtype: DTypeLike = np.float64, *, scalar: bool = False) -> RoutineKernel:
        """From the cache or compiled, for the machine this runs on."""
        machine, bits = machines.host(), np.dtype(dtype).itemsize * 8
        lanes = 1 if scalar else machine.lanes(dtype)

        def make() -> bytes:
            return bytes(jit.compile_text(routine_module(routine, machine, bits, lanes), machine))

        import llvmlite

        make_of = f"routine {ROUTINE_VERSION}, codegen {kernels.CODEGEN_VERSION}, llvmlite {llvmlite.__version__}"
        key = "\n".join((make_of, f"float{bits} x {lanes}", machine.identity, routine.fingerprint))
        names = transcendental.LIBRARY
        imports = dict(zip(names, jit.library_addresses(tuple(names.values())), strict=True))
        return cls(routine, dtype, jit.load(cache.get(key, make), (ENTRY, SCRATCH_ENTRY), imports), lanes)

    def run(
        self,
        rows: Mapping[str, NDArray[Any]],
        tables: Mapping[str, NDArray[Any]],
        records: Mapping[str, NDArray[Any]],
        count: int,
        threads: int = 1,
    ) -> None:
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

    def bound(
        self,
        rows: Mapping[str, NDArray[Any]],
        tables: Mapping[str, NDArray[Any]],
        records: Mapping[str, NDArray[Any]],
        count: int,
        threads: int = 1,
    ) -> Callable[[], None]:
        """:meth:`run` on these very arrays, as often as it is called; the caller keeps them alive."""
        routine = self.routine
        places = [rows[buffer.name].ctypes.data for buffer in routine.loads]
        places += [tables[name].ctypes.data for name in routine.tables]
        places += [records[name].ctypes.data for name, _ in routine.records]
        for name, size in routine.records:
            places += routines.steps_between(name, records[name], count, size)
        for name, width in routine.curves:
            curve = tables[name]
            if curve.shape[0] not in (1, count) or curve.shape[2] != width:
                raise ValueError(f"the curve {name!r} has shape {curve.shape}, not ({count} or 1, …, {width})")
            places += [curve.ctypes.data, curve.shape[1], 0 if curve.shape[0] == 1 else curve.shape[1] * width]
        for name, size in routine.series:
            places += [tables[name].ctypes.data, *routines.steps_between(name, tables[name], count, size, shared=True)]
        places += [table.address for table in self._tables]
        arrays = (ctypes.c_void_p * max(1, len(places)))(*places)

        def work(start: int, stop: int) -> None:
            scratch = kernels._scratch.at_least(self._scratch_bytes)
            self._call(arrays, start, stop - start, scratch)

        if threads == 1:
            return lambda: work(0, count)
        return lambda: split.run(work, count, threads, 2 * self.lanes, self.lanes, keeping=(rows, tables, records))


def routine_module(routine: routines.Program, machine: Machine, bits: int, lanes: int) -> str:
    """The module's text."""
    return _Module(routine, machine, bits, lanes).text()


class _Module:
    """Emits one routine for one shape of value."""

    def __init__(self, routine: routines.Program, machine: Machine, bits: int, lanes: int) -> None:
        if not routine.is_compilable:
            raise ValueError(f"{routine.name} calls Python functions and cannot be compiled")
        self.routine, self.machine = routine, machine
        self.shape = Shape(bits, lanes)
        self.vector = Shape(bits, machine.vector_bytes * 8 // bits)
        self.bodies: dict[int, Body] = {}
        self.sweeps: dict[int, Sweeps] = {}
        entries: set[str] = set()
        made: list[Function] = []
        for number, program in enumerate(routine.programs):
            if isinstance(program, Program):
                sweeps = self.sweeps[id(program)] = Sweeps(program, machine, bits, lanes, name=f"rolled{number}_")
                made += [*sweeps.write(), sweeps.call()]
                entries.update(sweeps.entries)
                continue
            plan = make_plan(program)
            entries.update(entries_used(plan))
            self.bodies[id(program)] = Body(
                program, plan, self.shape, self.vector, name=f"body{number}", masked=machine.masked and lanes == 1
            )
        self.with_loops = made
        self.entries = sorted(entries)
        # Whole groups of a vector for the transposes, and aligned for vector moves.
        self.places: dict[str, int] = {}
        position = 0
        for buffer in routine.buffers:
            self.places[buffer.name] = position
            position += -(-buffer.size // self.vector.lanes) * self.vector.lanes
        self.frame = position
        frames = [body.frame_bytes for body in self.bodies.values()]
        frames += [sweeps.frame_bytes for sweeps in self.sweeps.values()]
        self.scratch_bytes = self.frame * self.shape.size + max(frames, default=0) + self.vector.size
        self.scratch_bytes += -self.scratch_bytes % 64

    def text(self) -> str:
        """All functions."""
        shape = self.shape
        scratch = Function(f"define i64 @{SCRATCH_ENTRY}()")
        scratch.do(f"ret i64 {self.scratch_bytes}")
        made = [] if shape.lanes == 1 else transpose.functions(self.machine, shape)
        made += [f for entry in self.entries for f in transcendental.functions(entry, self.machine, shape.bits)]
        made += [f for body in self.bodies.values() for f in body.functions] + self.with_loops
        made += [statements.rows(shape, inward=True), statements.rows(shape, inward=False)]
        made += [statements.lookup(shape), statements.record(shape)]
        made += [statements.seek(shape)] if self.routine.curves else []
        made += [statements.read(shape)] if self.routine.series else []
        made += [statements.unit(shape)] if any(isinstance(s, routines.Columns) for s in self.routine.walk()) else []
        made += [statements.copy(shape), self._block(), self._entry(), scratch]
        return f"; {self.routine.name}, {shape.lanes} states at a time\n" + module_text(
            made, [attributes(self.machine)]
        )

    def _entry(self) -> Function:
        lanes = self.shape.lanes
        f = Function(f"define void @{ENTRY}(ptr %arrays, i64 %first, i64 %count, ptr noalias %scratch) #0")
        f.label("entry")
        with f.counted("%count", step=lanes):
            f.do("%left = sub i64 %count, %i")
            f.do(f"%full = icmp sge i64 %left, {lanes}")
            f.do(f"%here = select i1 %full, i64 {lanes}, i64 %left")
            f.do("%state = add i64 %first, %i")
            f.do("call void @block(ptr %arrays, i64 %state, i64 %here, ptr %scratch)")
        f.do("ret void")
        return f

    def _block(self) -> Function:
        routine, shape = self.routine, self.shape
        f = Function(
            "define internal void @block(ptr %arrays, i64 %state, i64 %here, ptr noalias %scratch) noinline #0"
        )
        f.label("entry")
        self.pointers = {name: f.address(shape.real, "%scratch", place) for name, place in self.places.items()}
        self.frame_pointer = f.address(shape.real, "%scratch", self.frame)
        names = [buffer.name for buffer in routine.loads] + list(routine.tables) + [name for name, _ in routine.records]
        self.outside = {name: f.load("ptr", f.address("ptr", "%arrays", k), 8) for k, name in enumerate(names)}
        words = len(names)
        self.described: dict[str, list[str]] = {}  # by name: a pointer where there is none yet, and two numbers
        described: list[tuple[str, tuple[str, ...]]] = [(name, ("i64", "i64")) for name, _ in routine.records]
        described += [(name, ("ptr", "i64", "i64")) for name, _ in (*routine.curves, *routine.series)]
        for name, kinds in described:
            self.described[name] = [
                f.load(kind, f.address("i64", "%arrays", words + k), 8) for k, kind in enumerate(kinds)
            ]
            words += len(kinds)
        self.tables = {
            program: f.load("ptr", f.address("ptr", "%arrays", words + k), 8) for k, program in enumerate(self.sweeps)
        }
        self.spaces = f.emit(f"getelementptr i8, ptr %scratch, i64 {self.scratch_bytes}") if self.sweeps else ""
        self._rows_of(f, "load", [buffer for buffer in routine.loads if buffer.load])
        self._statements(f, routine.statements)
        self._rows_of(f, "store", [buffer for buffer in routine.loads if buffer.store])
        f.do("ret void")
        return f

    def _rows_of(self, f: Function, way: str, buffers: list[Any]) -> None:
        for buffer in buffers:
            if buffer.size:
                rows = f.address(
                    self.shape.element, self.outside[buffer.name], f.emit(f"mul i64 %state, {buffer.size}")
                )
                f.do(
                    f"call void @{way}_rows(ptr {rows}, ptr {self.pointers[buffer.name]}, i64 {buffer.size}, i64 %here)"
                )

    def _statements(self, f: Function, statements: tuple[routines.Statement, ...]) -> None:
        at = self.pointers
        sizes, shape = self.routine.sizes, self.shape
        for statement in statements:
            match statement:
                case routines.Call(program, inputs, outputs):
                    places = [*(at[n] for n in (*inputs, *outputs)), self.frame_pointer]
                    if isinstance(program, Program):
                        name, more = f"{self.sweeps[id(program)].name}call", [self.spaces, self.tables[id(program)]]
                    else:
                        name, more = self.bodies[id(program)].name, []
                    f.do(f"call void @{name}({', '.join(f'ptr {p}' for p in [*places, *more])})")
                case routines.Copy(source, target):
                    if sizes[source]:
                        f.do(f"call void @copy(ptr {at[source]}, ptr {at[target]}, i64 {sizes[source]})")
                case routines.Lookup(table, index, target):
                    f.do(f"call void @lookup(ptr {self.outside[table]}, ptr {at[index]}, ptr {at[target]})")
                case routines.Seek(curve, moment, target, offset):
                    base, rows, stride = self.described[curve]
                    f.do(
                        f"call void @seek(ptr {base}, i64 %state, i64 %here, i64 {rows}, i64 {stride}, "
                        f"i64 {dict(self.routine.curves)[curve]}, ptr {at[moment]}, "
                        f"ptr {f.address(shape.real, at[target], offset)})"
                    )
                case routines.Read(series, index, target):
                    base, apart, stride = self.described[series]
                    if sizes[target]:
                        f.do(
                            f"call void @read(ptr {base}, i64 %state, i64 %here, i64 {apart}, i64 {stride}, "
                            f"i64 {sizes[target]}, ptr {at[index]}, ptr {at[target]})"
                        )
                case routines.Record(record, value, index, mask):
                    apart, stride = self.described[record]
                    if sizes[value]:
                        f.do(
                            f"call void @record(ptr {self.outside[record]}, i64 %state, i64 %here, i64 {apart}, "
                            f"i64 {stride}, i64 {sizes[value]}, ptr {at[value]}, ptr {at[index]}, ptr {at[mask]})"
                        )
                case routines.WhileAny(flag, body):
                    test, inside, after = (f.name()[1:] for _ in range(3))
                    f.do(f"br label %{test}")
                    f.label(test)
                    f.do(f"br i1 {self._any(f, flag)}, label %{inside}, label %{after}")
                    f.label(inside)
                    self._statements(f, body)
                    f.do(f"br label %{test}")
                    f.label(after)
                case routines.IfAny(flag, body):
                    inside, after = (f.name()[1:] for _ in range(2))
                    f.do(f"br i1 {self._any(f, flag)}, label %{inside}, label %{after}")
                    f.label(inside)
                    self._statements(f, body)
                    f.do(f"br label %{after}")
                    f.label(after)
                case routines.Columns(unit, column, matrix, body):
                    counter, again, after = f.name(), f.name()[1:], f.name()[1:]
                    f.lines.insert(1, f"  {counter} = alloca i64")  # once, not for each pass of a loop around
                    f.store("i64", "0", counter, 8)
                    f.do(f"br label %{again}")
                    f.label(again)
                    j = f.load("i64", counter, 8)
                    f.do(f"call void @unit(ptr {at[unit]}, i64 {sizes[unit]}, i64 {j})")
                    self._statements(f, body)
                    j = f.load("i64", counter, 8)
                    there = f.address(shape.real, at[matrix], f.emit(f"mul i64 {j}, {sizes[column]}"))
                    f.do(f"call void @copy(ptr {at[column]}, ptr {there}, i64 {sizes[column]})")
                    next_j = f.emit(f"add i64 {j}, 1")
                    f.store("i64", next_j, counter, 8)
                    more_left = f.emit(f"icmp slt i64 {next_j}, {sizes[unit]}")
                    f.do(f"br i1 {more_left}, label %{again}, label %{after}")
                    f.label(after)
                case routines.Host():
                    raise ValueError("a Python function cannot be compiled")
                case _:
                    assert_never(statement)

    def _any(self, f: Function, flag: str) -> str:
        shape = self.shape
        value = f.load(shape.real, self.pointers[flag], shape.size)
        raised = f.emit(f"fcmp une {shape.real} {value}, {shape.constant(0.0)}")
        if shape.lanes == 1:
            return raised
        return f.call("i1", f"llvm.vector.reduce.or.v{shape.lanes}i1", [(shape.truth, raised)])
