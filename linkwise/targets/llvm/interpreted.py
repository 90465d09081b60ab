"""Blocks that run without being compiled: a table of their operations, and one small function that passes through it.

Compiling a long block takes LLVM longer than a first answer may take. Its table is there at once: operations that do
not wait for each other stand in one segment (what they do, how many there are, where their results go, where their
arguments are), so that the function chooses what to do once a segment and then runs a loop.

The table has the fused operations of compiled code (:mod:`linkwise.targets.llvm.fusing`), so results are the same to
the last bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.targets.llvm import jit, ops, transcendental
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.fusing import FUSED, fused
from linkwise.targets.llvm.ir import FunctionText, LaneShape, module_text
from linkwise.targets.llvm.transcendental import ENTRY_OF
from linkwise.trace.block import OPS, Block
from linkwise.trace.passes import needed

Numbers = NDArray[np.int64]

_ENTRY = "lw_interpret"
_SEGMENTS = ("end", *ops.TABLE, "load", "spread", "const", "store", *transcendental.TABLE)
_CODE = {name: k for k, name in enumerate(_SEGMENTS)}
_LEAVES = ("const", "input")
_OF_NODE = {name: k for k, name in enumerate((*_LEAVES, *OPS, *FUSED))}

# Operations that are sorted into segments together, where a value fills a vector: what they compute stays in the cache.
_STRETCH = 4000


class InterpretedBlock:
    """A function of pointers like that of :class:`~linkwise.targets.llvm.block_code.BlockCode`, which reads a table.

    Args:
        program: the block.
        machine: what its code would be compiled for.
        shape: of values.
        name: of the function.
        uniform: inputs that hold one number for all lanes.
        skipped: places of outputs that are not written.
        replaceable: whether compiled code may take over at any call, by its address in ``word``.
    """

    def __init__(
        self,
        program: Block,
        machine: Machine,
        shape: LaneShape,
        name: str = "body",
        uniform: frozenset[int] = frozenset(),
        skipped: frozenset[tuple[int, int]] = frozenset(),
        replaceable: bool = False,
    ) -> None:
        table = _SegmentTable(fused(program, machine), machine, shape, uniform, skipped)
        self.word = (ctypes.c_int64 * 1)()
        self.frame_bytes = max(table.slots, _most_slots(program, machine, shape)) * shape.size
        self.held = (table.words, table.constants)
        self.imports = {
            f"{name}.table": table.words.ctypes.data,
            f"{name}.constants": table.constants.ctypes.data,
            f"{name}.word": ctypes.addressof(self.word),
        }
        pointers = [f"%in{i}" for i in range(len(program.inputs))], [f"%out{i}" for i in range(len(program.outputs))]
        parameters = ", ".join(f"ptr {pointer}" for pointer in [*pointers[0], *pointers[1], "%frame"])
        f = FunctionText(f"define internal void @{name}({parameters}) noinline #0")
        f.label("entry")
        if replaceable:
            compiled = f.emit(f"load atomic ptr, ptr @{name}.word monotonic, align 8")
            f.do(f"br i1 {f.emit(f'icmp eq ptr {compiled}, null')}, label %interpret, label %run")
            f.label("run")
            f.do(f"call void {compiled}({parameters})")
            f.do("ret void")
            f.label("interpret")
        for own in self.imports:
            f.declare(f"@{own} = external global i8")
        passed = [f"ptr @{name}.table", f"ptr @{name}.constants"]
        for side in pointers:
            row = f.emit(f"alloca [{max(1, len(side))} x ptr], align 8")
            for k, pointer in enumerate(side):
                f.store("ptr", pointer, f.address("ptr", row, k), 8)
            passed.append(f"ptr {row}")
        f.declare(f"declare void @{_ENTRY}(ptr, ptr, ptr, ptr, ptr)")
        f.do(f"call void @{_ENTRY}({', '.join(passed)}, ptr %frame)")
        f.do("ret void")
        self.functions = [f]


def _most_slots(program: Block, machine: Machine, shape: LaneShape) -> int:
    """Values that compiled code may put aside, at most."""
    per_vector = machine.vector_bytes * 8 // shape.bits // shape.lanes
    grouped = sum(node[0] in ENTRY_OF for node in program.nodes)
    return len(program.nodes) + 4 * per_vector * grouped + 64


class _SegmentTable:
    """The segments of a block, and its constants."""

    def __init__(
        self,
        program: Block,
        machine: Machine,
        shape: LaneShape,
        uniform: frozenset[int],
        skipped: frozenset[tuple[int, int]],
    ) -> None:
        self.program, self.uniform = program, uniform
        self.per_vector = machine.vector_bytes * 8 // shape.bits // shape.lanes
        self.real = np.dtype(f"f{shape.bits // 8}")
        self.slots = 0
        self.parts: list[Any] = []
        nodes = program.nodes
        self.op = np.array([_OF_NODE[node[0]] for node in nodes], np.int64)
        self.live = np.frombuffer(needed(program), np.uint8).astype(bool)
        self.place = np.zeros(len(nodes), np.int64)
        self.arguments = _arguments(program)
        self._leaves()
        self._operations(_STRETCH if shape.lanes > 1 else len(nodes) + 1)
        self._results(skipped)
        self.parts.append([_CODE["end"], 0, 0])
        self.words = np.concatenate([np.asarray(part, np.int32) for part in self.parts])

    def _reserve(self, count: int) -> int:
        """Slots for whole vectors; the first one."""
        start = -(-self.slots // self.per_vector) * self.per_vector
        self.slots = start + -(-count // self.per_vector) * self.per_vector
        return start

    def _leaves(self) -> None:
        """Constants, one of which fills up what vectors have too many, and what is read of the inputs."""
        nodes = self.program.nodes
        constants = np.flatnonzero(self.live & (self.op == _OF_NODE["const"]))
        with np.errstate(over="ignore"):
            self.constants = np.array([0.5, *(nodes[k][1] for k in constants)]).astype(self.real)
        self.half = self._reserve(len(self.constants))
        self.place[constants] = self.half + 1 + np.arange(len(constants))
        self.parts.append([_CODE["const"], len(self.constants), self.half])
        inputs = np.flatnonzero(self.live & (self.op == _OF_NODE["input"]))
        array, element = (np.array([nodes[k][i] for k in inputs], np.int64) for i in (1, 2))
        for own in np.unique(array).tolist():
            chosen = array == own
            kind, first = "spread" if own in self.uniform else "load", self.slots
            count = int(np.count_nonzero(chosen))
            self.slots += count
            self.place[inputs[chosen]] = first + np.arange(count)
            self.parts += [[_CODE[kind], count, first, own], element[chosen]]

    def _operations(self, stretch: int) -> None:
        op, (a, b, c) = self.op, self.arguments
        code = np.zeros(len(_OF_NODE), np.int64)
        for name in ops.TABLE:
            code[_OF_NODE[name]] = _CODE[name]
        for name, (entry, _) in ENTRY_OF.items():
            code[_OF_NODE[name]] = _CODE[entry]
        done = code[op]
        chosen = np.flatnonzero(self.live & (op >= len(_LEAVES)))
        time = _times(len(op), chosen, (a[chosen], b[chosen], c[chosen]), stretch)
        order = np.lexsort((done[chosen], time))
        chosen, time = chosen[order], time[order]
        kind = done[chosen]
        edges = np.flatnonzero((np.diff(time) != 0) | (np.diff(kind) != 0)) + 1
        bounds = [0, *edges.tolist(), len(chosen)] if len(chosen) else []
        grouped = _CODE[next(iter(transcendental.TABLE))]
        for first, last, what in zip(bounds[:-1], bounds[1:], kind[bounds[:-1]].tolist(), strict=True):
            own = chosen[first:last]
            if what >= grouped:
                self._grouped(_SEGMENTS[what], own.tolist())
                continue
            start, count = self.slots, last - first
            self.slots += count
            self.place[own] = np.arange(start, self.slots)
            self.parts.append((what, count, start))
            self.parts += [self.place[x[own]] for x in (a, b, c)[: _ARITY[what]]]

    def _grouped(self, entry: str, numbers: Sequence[int]) -> None:
        """A call for many values: arguments in a row, filled up with ordinary numbers, and results in rows."""
        taken = transcendental.TABLE[entry].arguments
        items: dict[tuple[int, ...], int] = {}
        nodes = self.program.nodes
        of_item = [items.setdefault(nodes[number][1:], len(items)) for number in numbers]
        count = -(-len(items) // self.per_vector) * self.per_vector
        rows = []
        for k in range(taken):
            rows.append(self._reserve(count))
            places = [int(self.place[members[k]]) for members in items]
            self.parts.append([_CODE["hold"], count, rows[-1], *places, *[self.half] * (count - len(items))])
        results = [self._reserve(count) for _ in range(transcendental.TABLE[entry].results)]
        for number, item in zip(numbers, of_item, strict=True):
            self.place[number] = results[ENTRY_OF[nodes[number][0]][1]] + item
        self.parts.append([_CODE[entry], count // self.per_vector, 0, *rows, *results])

    def _results(self, skipped: frozenset[tuple[int, int]]) -> None:
        for array, row in enumerate(self.program.results):
            elements = [k for k in range(len(row)) if (array, k) not in skipped]
            if elements:
                places = self.place[np.asarray(row, np.int64)[elements]]
                self.parts += [(_CODE["store"], len(elements), array), places, elements]


_ARITY = [3 if name in FUSED else OPS[name].arity if name in ops.TABLE else 0 for name in _SEGMENTS]


def _arguments(program: Block) -> tuple[Numbers, Numbers, Numbers]:
    """Arguments of every node; zeros where there are none, the first where there are fewer than three."""
    one, two, three = [], [], []
    for node in program.nodes:
        if node[0] == "const" or node[0] == "input":
            one.append(0)
            two.append(0)
            three.append(0)
            continue
        one.append(node[1])
        two.append(node[2] if len(node) > 2 else node[1])
        three.append(node[3] if len(node) > 3 else node[1])
    return np.array(one, np.int64), np.array(two, np.int64), np.array(three, np.int64)


def _times(size: int, chosen: Numbers, arguments: Sequence[Numbers], stretch: int) -> Numbers:
    """For each operation when it runs: after its arguments, and after those of the stretches before its own."""
    when = [0] * size
    span = stretch + 1
    begin = ends = 0
    for number, a, b, c in zip(chosen.tolist(), *(x.tolist() for x in arguments), strict=True):
        if number >= ends:
            ends = number // stretch * stretch + stretch
            begin = ends // stretch * span
        latest = begin
        if when[a] > latest:
            latest = when[a]
        if when[b] > latest:
            latest = when[b]
        if when[c] > latest:
            latest = when[c]
        when[number] = latest + 1
    return np.array(when, np.int64)[chosen]


@cache
def interpreter(machine: Machine, shape: LaneShape) -> tuple[dict[str, int], jit.LoadedObject]:
    """The function that passes through tables, by name, and who holds its code."""
    from linkwise.targets import cache as disk
    from linkwise.targets.llvm import kernel
    from linkwise.targets.llvm.source import attributes

    kind = f"interpreter x {shape.lanes}"
    key = kernel.cache_key("", kind, f"float{shape.bits}", machine)

    def made() -> bytes:
        grouped = [f for entry in transcendental.TABLE for f in transcendental.functions(entry, machine, shape.bits)]
        text = module_text([*grouped, _written(shape)], [attributes(machine)])
        return jit.compile_quickly(text, machine, level=2)

    code = jit.load(disk.get(key, made), (_ENTRY,), kernel.imports())
    return {_ENTRY: code[_ENTRY]}, code


def _written(shape: LaneShape) -> FunctionText:
    """The interpreter: segment after segment."""
    f = FunctionText(f"define void @{_ENTRY}(ptr %code, ptr %constants, ptr %ins, ptr %outs, ptr noalias %frame) #0")
    f.label("entry")
    f.do("%at = alloca ptr, align 8")
    f.store("ptr", "%code", "%at", 8)
    f.do("br label %next")
    f.label("next")
    here = f.load("ptr", "%at", 8)
    op = f.load("i32", here, 4)
    count, start = (f.emit(f"sext i32 {f.load('i32', f.address('i32', here, k), 4)} to i64") for k in (1, 2))
    words, target = f.address("i32", here, 3), f.address(shape.real, "%frame", start)
    cases = " ".join(f"i32 {k}, label %case{k}" for k in range(1, len(_SEGMENTS)))
    f.do(f"switch i32 {op}, label %end [ {cases} ]")
    for k, name in enumerate(_SEGMENTS[1:], 1):
        f.label(f"case{k}")
        _SegmentWriter(f, shape, words, count, start, target).write(k, name)
        f.do("br label %next")
    f.label("end")
    f.do("ret void")
    return f


class _SegmentWriter:
    """Writes one case of the interpreter."""

    def __init__(self, f: FunctionText, shape: LaneShape, words: str, count: str, start: str, target: str) -> None:
        self.f, self.shape, self.words, self.count, self.start, self.target = f, shape, words, count, start, target

    def write(self, k: int, name: str) -> None:
        """All passes of a segment, and where the next one begins."""
        f, shape, i = self.f, self.shape, f"%i{k}"
        if name in transcendental.TABLE:
            row = transcendental.TABLE[name]
            taken = row.arguments + row.results
            places = [f.address(shape.real, "%frame", self._word(n)) for n in range(taken)]
            passed = ", ".join(f"ptr {place}" for place in places)
            f.do(f"call void @{transcendental.function_name(name)}({passed}, i64 {self.count})")
            self._go_on(str(taken))
            return
        outside, first = self._outside(name)
        with f.counted(self.count, i, some=True, block=f"loop{k}", after=f"done{k}"):
            if name == "store":
                element = self._indexed(self._row(1), i)
                self._move(self._read(0, i), f.address(shape.real, outside, element))
            else:
                self._move(self._result(name, i, outside, first), f.address(shape.real, self.target, i))
        if name in ("load", "spread"):
            self._go_on(f.emit(f"add i64 {self.count}, 1"))
        elif name == "const":
            self._go_on("0")
        else:
            arity = 2 if name == "store" else _ARITY[k]
            self._go_on(f.emit(f"mul i64 {self.count}, {arity}"))

    def _outside(self, name: str) -> tuple[str, str]:
        """The array of a segment that reads or writes one, and the words that say which elements."""
        f = self.f
        if name == "store":
            return f.load("ptr", f.address("ptr", "%outs", self.start), 8), ""
        if name in ("load", "spread"):
            return f.load("ptr", f.address("ptr", "%ins", self._word(0)), 8), f.address("i32", self.words, 1)
        return "", ""

    def _result(self, name: str, i: str, outside: str, elements: str) -> str:
        f, shape = self.f, self.shape
        if name == "const":
            return f.spread(shape, "%constants", i)
        if name == "load":
            place = f.address(shape.real, outside, self._indexed(elements, i))
            return f.load(shape.real, place, shape.size)
        if name == "spread":
            return f.spread(shape, outside, self._indexed(elements, i))
        if name in FUSED:
            return ops.TABLE[name](f, shape, *(self._read(n, i) for n in range(3)))
        op = OPS[name]
        values = [self._read(n, i, truth=letter == "B") for n, letter in enumerate(op.arguments)]
        result = ops.TABLE[name](f, shape, *values)
        if op.result == "B":
            one, zero = (f"{shape.real} {shape.constant(x)}" for x in (1.0, 0.0))
            result = f.emit(f"select {shape.truth} {result}, {one}, {zero}")
        return result

    def _word(self, k: int) -> str:
        return self.f.emit(f"sext i32 {self.f.load('i32', self.f.address('i32', self.words, k), 4)} to i64")

    def _row(self, k: int) -> str:
        """Beginning of the words for the k-th argument of each pass."""
        if k == 0:
            return self.words
        return self.f.address("i32", self.words, self.f.emit(f"mul i64 {self.count}, {k}"))

    def _indexed(self, row: str, i: str) -> str:
        return self.f.emit(f"sext i32 {self.f.load('i32', self.f.address('i32', row, i), 4)} to i64")

    def _read(self, k: int, i: str, truth: bool = False) -> str:
        f, shape = self.f, self.shape
        value = f.load(shape.real, f.address(shape.real, "%frame", self._indexed(self._row(k), i)), shape.size)
        return f.emit(f"fcmp une {shape.real} {value}, {shape.constant(0.0)}") if truth else value

    def _move(self, value: str, place: str) -> None:
        self.f.store(self.shape.real, value, place, self.shape.size)

    def _go_on(self, words: str) -> None:
        """Go on to the next segment, so many words behind the head of this one."""
        self.f.store("ptr", self.f.address("i32", self.words, words), "%at", 8)
