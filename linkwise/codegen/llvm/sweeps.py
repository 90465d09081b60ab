"""Programs with loops as LLVM functions: sweeps over the links of a tree.

The functions know the structure only: which bodies each loop calls and in which spaces their arrays lie. All numbers
are in the table of :mod:`linkwise.codegen.llvm.rolled_table`.
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwise.codegen.llvm import transcendental
from linkwise.codegen.llvm.body import Body
from linkwise.codegen.llvm.ir import Function, Shape
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.plan import make_plan
from linkwise.codegen.llvm.rolled_table import Word
from linkwise.codegen.llvm.source import entries_used
from linkwise.tracing.program import PARAMETERS, Angles, Loop, LoopBody, Once, Program, Step, Tasks


class Sweeps:
    """Writes the functions of one program with loops, the whole of it as ``sweep(bases, table, frame)``.

    ``bases`` is where each space, input and output begins, ``table`` what steers it, ``frame`` scratch memory. ``name``
    stands before the names of all functions.
    """

    def __init__(self, program: Program, machine: Machine, bits: int, lanes: int, name: str = "") -> None:
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
        position = f.emit(f"add i64 {self._word(f, Word.LINKS)}, {step.row}")
        place = f.emit(f"mul i64 {position}, {self.program.offsets.shape[1]}")
        row = f.address("i64", self._pointer(f, Word.OFFSETS), place)
        self._call(f, f"{name}_body", step.body, row, base)
        f.do("ret void")
        self.loops.append(f)
        return name

    def _tasks(self, number: int, step: Tasks) -> str:
        name = f"{self.name}tasks{number}"
        f = Function(f"define internal void @{name}(ptr %bases, ptr %table, ptr %frame) noinline #0")
        f.label("entry")
        base = self._bases(f, step.bodies)
        first = f.emit(f"add i64 {self._word(f, Word.LINKS)}, {step.first}")
        offsets = self._pointer(f, Word.OFFSETS)
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
        count = self._word(f, Word.ANGLES)
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
        links = self._word(f, Word.LINKS)
        kinds, offsets = self._pointer(f, Word.KINDS), self._pointer(f, Word.OFFSETS)
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
        return {s: self._pointer(f, Word.PARAMETERS) if s == PARAMETERS else self._base(f, s) for s in used}

    def _base(self, f: Function, space: str) -> str:
        return f.load("ptr", f.address("ptr", "%bases", self.place[space]), 8)

    def _store_constants(self, f: Function) -> None:
        """Constants lie in working spaces, at places counted from the first space on."""
        f.label("entry")
        count, places = self._word(f, Word.CONSTANTS), self._pointer(f, Word.CONSTANT_PLACES)
        values, start = self._pointer(f, Word.CONSTANT_VALUES), self._base(f, self.spaces[0]) if self.spaces else "null"
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
        start = self._word(f, Word.FIXED + self.place[space])
        self.base_at(f, bases, space, f.address(self.shape.real, scratch, start))

    def base_at(self, f: Function, bases: str, name: str, place: str) -> None:
        """Note in ``bases`` where a space, an input or an output begins."""
        f.do(f"store ptr {place}, ptr {f.address('ptr', bases, self.place[name])}")
