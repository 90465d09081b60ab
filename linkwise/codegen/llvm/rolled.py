"""Programs with loops as LLVM modules, and kernels that run them.

The module knows the structure only: which bodies each loop calls and in which spaces their arrays lie. Sizes, offsets,
link constants and the order of kinds are tables handed over at each call, so one compiled object serves every tree
with the same kinds of links, whatever their number.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linkwise.codegen import cache
from linkwise.codegen import threads as split
from linkwise.codegen.llvm import checked, jit, kernel, machines, transcendental, transpose
from linkwise.codegen.llvm.body import Body
from linkwise.codegen.llvm.ir import Function, Shape, module_text
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.plan import make_plan
from linkwise.codegen.llvm.source import attributes, entries_used
from linkwise.tracing.rolled_program import PARAMETERS, Angles, Loop, LoopBody, Once, RolledProgram, Step, Tasks

ENTRY = "linkwise_rolled"

_KEPT_BYTES = 1 << 26  # a thread keeps its scratch memory up to this size, and gives larger ones back
_kept = threading.local()


@contextmanager
def _lent(size: int) -> Iterator[int]:
    """Address of scratch memory on a cache line, for the time of one call."""
    buffer = getattr(_kept, "buffer", None)
    if buffer is None or buffer.nbytes < size + 64:
        buffer = np.empty(size + 64, np.uint8)
        if size <= _KEPT_BYTES:
            _kept.buffer = buffer
    yield int(buffer.ctypes.data) + -int(buffer.ctypes.data) % 64


# The table that every call brings: nine fixed words, then for each space its place and for each array its size.
_LINKS, _KINDS, _OFFSETS, _PARAMETERS, _CONSTANTS, _CONSTANT_PLACES, _CONSTANT_VALUES, _ANGLES, _FRAME = range(9)
_FIXED = 9


class Sweeps:
    """Writes the functions of one program with loops, the whole of it as ``sweep(bases, table, frame)``.

    ``bases`` is where each space, input and output begins, ``table`` the tables of :class:`Table`, ``frame`` scratch
    memory. ``name`` stands before the names of all functions.
    """

    def __init__(self, program: RolledProgram, machine: Machine, bits: int, lanes: int, name: str = "") -> None:
        self.program, self.machine, self.bits, self.name = program, machine, bits, name
        self.vector = Shape(bits, machine.vector_bytes * 8 // bits)
        self.shape = Shape(bits, lanes)
        self.spaces = list(program.spaces)
        arrays = [f"in:{a.name}" for a in program.inputs] + [f"out:{a.name}" for a in program.outputs]
        self.place = {name: i for i, name in enumerate([*self.spaces, *arrays])}
        self.entries: set[str] = set()
        self.frame_bytes = 64
        self.functions: list[Function] = []
        self.loops: list[Function] = []
        self._emitted: dict[tuple[LoopBody, ...], str] = {}

    def write(self) -> list[Function]:
        """All of them; what they use of ``transcendental`` is in ``entries`` afterwards."""
        sweep = Function(f"define internal void @{self.name}sweep(ptr %bases, ptr %table, ptr %frame) noinline #0")
        self._store_constants(sweep)
        for number, step in enumerate(self.program.steps):
            name = self._step(number, step)
            sweep.do(f"call void @{name}(ptr %bases, ptr %table, ptr %frame)")
        sweep.do("ret void")
        return [*self.functions, *self.loops, sweep]

    # One step of the program: a loop over the links, what happens between two loops, or all sines and cosines.
    def _step(self, number: int, step: Step) -> str:
        if isinstance(step, Angles):
            return self._angles(number, step)
        if isinstance(step, Tasks):
            return self._tasks(number, step)
        return self._once(number, step) if isinstance(step, Once) else self._loop(number, step)

    def _once(self, number: int, step: Once) -> str:
        name = f"{self.name}once{number}"
        f = Function(f"define internal void @{name}(ptr %bases, ptr %table, ptr %frame) noinline #0")
        base = self._bases(f, [step.body])
        position = f.emit(f"add i64 {self._word(f, _LINKS)}, {step.row}")
        place = f.emit(f"mul i64 {position}, {self.program.offsets.shape[1]}")
        row = f.address("i64", self._pointer(f, _OFFSETS), place)
        self._call(f, f"{name}_body", step.body, row, base)
        f.do("ret void")
        self.loops.append(f)
        return name

    def _tasks(self, number: int, step: Tasks) -> str:
        name = f"{self.name}tasks{number}"
        f = Function(f"define internal void @{name}(ptr %bases, ptr %table, ptr %frame) noinline #0")
        f.label("entry")
        base = self._bases(f, step.bodies)
        first = f.emit(f"add i64 {self._word(f, _LINKS)}, {step.first}")
        offsets = self._pointer(f, _OFFSETS)
        with f.counted(step.count, some=True, again="again"):
            place = f.emit(f"mul i64 {f.emit(f'add i64 {first}, %i')}, {self.program.offsets.shape[1]}")
            row = f.address("i64", offsets, place)
            kind = f.load("i64", f.address("i64", row, step.kind), 8)
            cases = " ".join(f"i64 {i}, label %kind{i}" for i in range(len(step.bodies)))
            f.do(f"switch i64 {kind}, label %again [ {cases} ]")
            # Lists of the same tasks, run in other places, share their code.
            known = self._emitted.get(step.bodies)
            shared = known or self._emitted.setdefault(step.bodies, name)
            for index, body in enumerate(step.bodies):
                f.label(f"kind{index}")
                self._call(f, f"{shared}_kind{index}", body, row, base, emit=known is None)
                f.do("br label %again")
        f.do("ret void")
        self.loops.append(f)
        return name

    def _angles(self, number: int, step: Angles) -> str:
        name = f"{self.name}angles{number}"
        self.entries.add("sincos")
        f = Function(f"define internal void @{name}(ptr %bases, ptr %table, ptr %frame) noinline #0")
        places = [self._base(f, space) for space in (step.arguments, step.sines, step.cosines)]
        count = self._word(f, _ANGLES)
        passed = ", ".join(f"ptr {p}" for p in places)
        f.do(f"call void @{transcendental.function_name('sincos')}({passed}, i64 {count})")
        f.do("ret void")
        self.loops.append(f)
        return name

    def _loop(self, number: int, loop: Loop) -> str:
        name = f"{self.name}loop{number}"
        f = Function(f"define internal void @{name}(ptr %bases, ptr %table, ptr %frame) noinline #0")
        bodies = {kind: body for kind, body in enumerate(loop.bodies) if body is not None}
        f.label("entry")
        links = self._word(f, _LINKS)
        kinds, offsets = self._pointer(f, _KINDS), self._pointer(f, _OFFSETS)
        base = self._bases(f, bodies.values())
        with f.counted(links, again="again"):
            if loop.reverse:
                last = f.emit(f"sub i64 {links}, 1")
                k = f.emit(f"sub i64 {last}, %i")
            else:
                k = "%i"
            row = f.address("i64", offsets, f.emit(f"mul i64 {k}, {self.program.offsets.shape[1]}"))
            if len(bodies) == 1 and len(loop.bodies) == 1:
                f.do(f"br label %kind{next(iter(bodies))}")
            else:
                kind = f.load("i64", f.address("i64", kinds, k), 8)
                cases = " ".join(f"i64 {i}, label %kind{i}" for i in bodies)
                f.do(f"switch i64 {kind}, label %again [ {cases} ]")
            for index, body in bodies.items():
                f.label(f"kind{index}")
                self._call(f, f"{name}_kind{index}", body, row, base)
                f.do("br label %again")
        f.do("ret void")
        self.loops.append(f)
        return name

    def _call(
        self, f: Function, name: str, body: LoopBody, row: str, base: dict[str, str], *, emit: bool = True
    ) -> None:
        passed = []
        for stretch in (*body.inputs, *body.outputs):
            start = f.load("i64", f.address("i64", row, stretch.column), 8)
            element = self.shape.element if stretch.space == PARAMETERS else self.shape.real
            passed.append(f.address(element, base[stretch.space], start))
        f.do(f"call void @{name}({', '.join(f'ptr {p}' for p in [*passed, '%frame'])})")
        if emit:
            self._emit_body(name, body)

    def _emit_body(self, name: str, body: LoopBody) -> None:
        plan = make_plan(body.program)
        uniform = frozenset(i for i, s in enumerate(body.inputs) if s.space == PARAMETERS)
        shared = {(s.space, s.column) for s in body.inputs} & {(s.space, s.column) for s in body.outputs}
        made = Body(
            body.program, plan, self.shape, self.vector, name, self.machine.masked, uniform=uniform, apart=not shared
        )
        self.functions.extend(made.functions)
        self.entries.update(entries_used(plan))
        self.frame_bytes = max(self.frame_bytes, made.frame_bytes + 64)

    # Words of the table.
    def _word(self, f: Function, index: int) -> str:
        return f.load("i64", f.address("i64", "%table", index), 8)

    def _pointer(self, f: Function, index: int) -> str:
        return f.load("ptr", f.address("ptr", "%table", index), 8)

    def _bases(self, f: Function, bodies: Iterable[LoopBody]) -> dict[str, str]:
        """Where the spaces begin that bodies use."""
        used = sorted({s.space for body in bodies for s in (*body.inputs, *body.outputs)})
        return {s: self._pointer(f, _PARAMETERS) if s == PARAMETERS else self._base(f, s) for s in used}

    def _base(self, f: Function, space: str) -> str:
        return f.load("ptr", f.address("ptr", "%bases", self.place[space]), 8)

    def _store_constants(self, f: Function) -> None:
        """Constants lie in working spaces, at places counted from the first space on."""
        f.label("entry")
        count, places = self._word(f, _CONSTANTS), self._pointer(f, _CONSTANT_PLACES)
        values, start = self._pointer(f, _CONSTANT_VALUES), self._base(f, self.spaces[0]) if self.spaces else "null"
        with f.counted(count):
            place = f.load("i64", f.address("i64", places, "%i"), 8)
            one = f.load(self.shape.element, f.address(self.shape.element, values, "%i"), self.bits // 8)
            if self.shape.lanes > 1:
                first = f.emit(f"insertelement {self.shape.real} poison, {self.shape.element} {one}, i64 0")
                zeros = f"<{self.shape.lanes} x i32> zeroinitializer"
                one = f.emit(f"shufflevector {self.shape.real} {first}, {self.shape.real} poison, {zeros}")
            f.store(self.shape.real, one, f.address(self.shape.real, start, place), self.shape.size)

    def call(self) -> Function:
        """The whole as a function of pointers to inputs and outputs, scratch memory, spaces and table."""
        arrays = [f"in:{a.name}" for a in self.program.inputs] + [f"out:{a.name}" for a in self.program.outputs]
        head = ", ".join([*(f"ptr %a{k}" for k in range(len(arrays))), "ptr %frame", "ptr %spaces", "ptr %table"])
        f = Function(f"define internal void @{self.name}call({head}) noinline #0")
        f.label("entry")
        bases = f.emit(f"alloca ptr, i64 {len(self.place)}")
        for space in self.spaces:
            self.space_base(f, bases, space, "%spaces")
        for k, name in enumerate(arrays):
            self.base_at(f, bases, name, f"%a{k}")
        f.do(f"call void @{self.name}sweep(ptr {bases}, ptr %table, ptr %frame)")
        f.do("ret void")
        return f

    def space_base(self, f: Function, bases: str, space: str, scratch: str) -> None:
        """Note in ``bases`` where a space begins in the scratch memory."""
        start = self._word(f, _FIXED + self.place[space])
        self.base_at(f, bases, space, f.address(self.shape.real, scratch, start))

    def base_at(self, f: Function, bases: str, name: str, place: str) -> None:
        """Note in ``bases`` where a space, an input or an output begins."""
        f.do(f"store ptr {place}, ptr {f.address('ptr', bases, self.place[name])}")


class _Module(Sweeps):
    """Writes a module of its own, with a way in."""

    def text(self) -> str:
        made = self.write()
        entry = self._batch_entry() if self.shape.lanes > 1 else self._single_entry()
        grouped = [f for e in sorted(self.entries) for f in transcendental.functions(e, self.machine, self.bits)]
        rows = transpose.functions(self.machine, self.shape) if self.shape.lanes > 1 else []
        size = Function("define i64 @linkwise_frame_bytes()")
        size.do(f"ret i64 {self.frame_bytes}")
        return module_text([*rows, *grouped, *made, entry, size], [attributes(self.machine)])

    # The ways in.
    def _single_entry(self) -> Function:
        """One state at a time, its arrays used where they lie."""
        f = Function(f"define void @{ENTRY}(ptr %in, ptr %out, i64 %count, ptr %scratch, ptr %table) #0")
        f.label("entry")
        bases = f.emit(f"alloca ptr, i64 {len(self.place)}")
        self._space_bases(f, bases)
        with f.counted("%count"):
            for side, index, name in self._arrays():
                rows = f.load("ptr", f.address("ptr", f"%{side}", index), 8)
                start = f.emit(f"mul i64 %i, {self._word(f, self._size_word(name))}")
                self.base_at(f, bases, name, f.address(self.shape.element, rows, start))
            frame = f.emit(f"getelementptr i8, ptr %scratch, i64 {self._word(f, _FRAME)}")
            f.do(f"call void @sweep(ptr {bases}, ptr %table, ptr {frame})")
        f.do("ret void")
        return f

    def _batch_entry(self) -> Function:
        """Blocks of as many states as a vector has lanes, transposed on the way in and out."""
        f = Function(f"define void @{ENTRY}(ptr %in, ptr %out, i64 %count, ptr %scratch, ptr %table) #0")
        f.label("entry")
        bases = f.emit(f"alloca ptr, i64 {len(self.place)}")
        self._space_bases(f, bases)
        for _, _, name in self._arrays():
            self.space_base(f, bases, name, "%scratch")
        frame = f.emit(f"getelementptr i8, ptr %scratch, i64 {self._word(f, _FRAME)}")
        with f.counted("%count", step=self.shape.lanes, again="finish"):
            left = f.emit("sub i64 %count, %i")
            f.do(f"%whole = icmp sge i64 {left}, {self.shape.lanes}")
            f.do("br i1 %whole, label %all, label %few")
            for label, extra, suffix in (("all", "", ""), ("few", f", i64 0, i64 {left}", "_some")):
                f.label(label)
                self._move(f, bases, "in", "rows_to_lanes" + suffix, extra)
                f.do(f"call void @sweep(ptr {bases}, ptr %table, ptr {frame})")
                self._move(f, bases, "out", "lanes_to_rows" + suffix, extra)
                f.do("br label %finish")
        f.do("ret void")
        return f

    def _move(self, f: Function, bases: str, side: str, function: str, extra: str) -> None:
        for array_side, index, name in self._arrays():
            if array_side != side:
                continue
            size = self._word(f, self._size_word(name))
            rows = f.load("ptr", f.address("ptr", f"%{side}", index), 8)
            start = f.emit(f"mul i64 %i, {size}")
            place = f.address(self.shape.element, rows, start)
            if name.removeprefix("in:") in self.program.in_lanes and side == "in":
                self.base_at(f, bases, name, place)
                continue
            lanes = f.load("ptr", f.address("ptr", bases, self.place[name]), 8)
            f.do(f"call void @{function}(ptr {place}, ptr {lanes}, i64 {size}{extra})")

    def _arrays(self) -> list[tuple[str, int, str]]:
        inputs = [("in", i, f"in:{a.name}") for i, a in enumerate(self.program.inputs)]
        return inputs + [("out", i, f"out:{a.name}") for i, a in enumerate(self.program.outputs)]

    def _size_word(self, name: str) -> int:
        return _FIXED + len(self.place) + self.place[name] - len(self.spaces)

    def _space_bases(self, f: Function, bases: str) -> None:
        for space in self.spaces:
            self.space_base(f, bases, space, "%scratch")


def rolled_module(program: RolledProgram, machine: Machine, bits: int, *, single: bool) -> str:
    """The module's text, for one state at a time or for as many as a vector holds."""
    return _Module(program, machine, bits, 1 if single else machine.vector_bytes * 8 // bits).text()


class Table:
    """What a program with loops is steered by: its tables in one precision, and where its memory lies.

    Everything is counted in values from the beginning of the scratch memory; whole vectors, so that none share a line.

    Args:
        program: the program.
        dtype: of its numbers.
        lanes: states side by side.
        vector: lanes of a vector.
        arrays: whether the scratch memory also holds inputs and outputs in lanes.
    """

    def __init__(self, program: RolledProgram, dtype: np.dtype[Any], lanes: int, vector: int, arrays: bool) -> None:
        pad = vector if lanes == 1 else 1
        starts, position = [], 0
        for size in program.spaces.values():
            starts.append(position)
            position += -(-size // pad) * pad
        sizes = [array.size for array in (*program.inputs, *program.outputs)]
        for size in sizes:
            starts.append(position)
            if arrays:
                position += -(-size // lanes) * lanes
        self.frame = position * lanes * dtype.itemsize
        self.frame += -self.frame % 64
        first = dict(zip(program.spaces, starts, strict=False))
        self._parameters = np.ascontiguousarray(program.parameters, dtype)
        self._kinds = np.ascontiguousarray(program.kinds, np.int64)
        self._offsets = np.ascontiguousarray(program.offsets, np.int64)
        places = [first[c.space] + c.offset for c in program.constants]
        values = [c.value for c in program.constants]
        angles = program.spaces.get("angles", 0)
        for spare in range(-angles % pad):  # lanes beyond the last angle take part in the call: let them be ordinary
            places.append(first["angles"] + angles + spare)
            values.append(0.5)
        self._places, self._values = np.array(places, np.int64), np.array(values, dtype)
        fixed = [
            len(self._kinds),
            self._kinds.ctypes.data,
            self._offsets.ctypes.data,
            self._parameters.ctypes.data,
            len(self._places),
            self._places.ctypes.data,
            self._values.ctypes.data,
            -(-angles // pad),
            self.frame,
        ]
        self._words = np.array([*fixed, *starts, *sizes], np.int64)
        self.address: int = self._words.ctypes.data

    @property
    def words(self) -> NDArray[Any]:
        """The table itself."""
        return self._words

    @property
    def parts(self) -> list[NDArray[Any]]:
        """All memory that compiled code reads."""
        return [self._parameters, self._kinds, self._offsets, self._places, self._values, self._words]


class RolledKernel:
    """A program with loops, compiled; runs batches, or states one at a time."""

    def __init__(self, program: RolledProgram, dtype: DTypeLike, library: jit.Library, lanes: int, vector: int) -> None:
        self.program, self.dtype, self.lanes = program, np.dtype(dtype), lanes
        self._library = library
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)(
            library[ENTRY]
        )
        frame_bytes = int(ctypes.CFUNCTYPE(ctypes.c_int64)(library["linkwise_frame_bytes"])())
        self._table = Table(program, self.dtype, lanes, vector, arrays=lanes > 1)
        self.scratch_bytes = self._table.frame + frame_bytes
        item = self.dtype.itemsize
        self._in_strides = [array.size * item for array in program.inputs]
        self._out_strides = [array.size * item for array in program.outputs]

    @classmethod
    def build(cls, program: RolledProgram, dtype: DTypeLike = np.float64, *, single: bool = False) -> RolledKernel:
        """From the cache or compiled; in debug runs one that checks every access."""
        if checked.wanted():
            from linkwise.codegen.llvm import bounds

            return bounds.checked_rolled(program, dtype, single=single)
        machine, bits = machines.host(), np.dtype(dtype).itemsize * 8

        def make() -> bytes:
            return bytes(jit.compile_text(rolled_module(program, machine, bits, single=single), machine))

        how = "rolled single" if single else "rolled"
        obj = cache.get(kernel.cache_key(program, how, f"float{bits}", machine), make)
        library = jit.load(obj, (ENTRY, "linkwise_frame_bytes"), kernel.imports())
        vector = machine.lanes(dtype)
        return cls(program, dtype, library, 1 if single else vector, vector)

    def run(
        self, inputs: Sequence[NDArray[Any]], outputs: Sequence[NDArray[Any]], count: int, threads: int = 1
    ) -> None:
        """Fill ``outputs`` from ``inputs``: C-contiguous ``(count, size)`` arrays of the kernel's dtype."""
        ins = [array.ctypes.data for array in inputs]
        outs = [array.ctypes.data for array in outputs]
        if threads == 1:
            self._range(ins, outs, 0, count)
        else:
            work = partial(self._range, ins, outs)
            split.run(work, count, threads, self.lanes, self.lanes, keeping=(inputs, outputs))

    def _range(self, ins: Sequence[int], outs: Sequence[int], start: int, stop: int) -> None:
        here = [place + start * stride for place, stride in zip(ins, self._in_strides, strict=True)]
        there = [place + start * stride for place, stride in zip(outs, self._out_strides, strict=True)]
        pointers = ctypes.c_void_p
        with _lent(self.scratch_bytes) as scratch:
            ins_at, outs_at = (pointers * len(here))(*here), (pointers * len(there))(*there)
            self._call(ins_at, outs_at, stop - start, scratch, self._table.address)

    def run_units(self, out: NDArray[Any], parameters: NDArray[Any], stops: NDArray[Any], threads: int = 1) -> None:
        """One row of ``out`` for each unit vector of the only input, which is in lanes.

        Args:
            out: (count, size), C-contiguous, of the kernel's dtype.
            parameters: link constants to use in place of the program's.
            stops: (count) for each unit vector how many links its loops pass; they do not fall.
            threads: how many share the work.
        """
        size, lanes = self.program.inputs[0].size, self.lanes
        window = np.zeros((2 * size + lanes + 8) * lanes, self.dtype)
        first = -(window.ctypes.data // self.dtype.itemsize) % lanes + size * lanes
        window[first : first + lanes * lanes].reshape(lanes, lanes)[...] = np.eye(lanes)
        numbers = np.ascontiguousarray(parameters, self.dtype)
        item = self.dtype.itemsize

        def work(start: int, stop: int) -> None:
            words = self._table.words.copy()
            words[_PARAMETERS] = numbers.ctypes.data
            table, ones, rows = words.ctypes.data, window.ctypes.data + first * item, out.ctypes.data
            ins, outs = (ctypes.c_void_p * 1)(), (ctypes.c_void_p * 1)()
            passed = stops.tolist()
            with _lent(self.scratch_bytes) as scratch:
                for row in range(start, stop, lanes):
                    count = min(lanes, stop - row)
                    words[_LINKS] = passed[row + count - 1]
                    ins[0] = ones - row * lanes * item  # the ones of the window slide to the places of these rows
                    outs[0] = rows + row * self._out_strides[0]
                    self._call(ins, outs, count, scratch, table)

        split.run(work, len(out), threads, lanes, lanes, keeping=(out, numbers, window))
