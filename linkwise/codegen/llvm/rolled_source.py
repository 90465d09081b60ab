"""A program with loops as an LLVM module of its own: its sweeps, and a way in for one state or for blocks of them."""

from __future__ import annotations

from linkwise.codegen.llvm import transcendental, transpose
from linkwise.codegen.llvm.ir import Function, module_text
from linkwise.codegen.llvm.machines import Machine
from linkwise.codegen.llvm.rolled_table import Word
from linkwise.codegen.llvm.source import attributes
from linkwise.codegen.llvm.sweeps import Sweeps
from linkwise.tracing.program import Program

ENTRY = "linkwise_rolled"
FRAME_ENTRY = "linkwise_frame_bytes"


class _Module(Sweeps):
    """Writes a module of its own, with a way in."""

    def text(self) -> str:
        made = self.write()
        entry = self._batch_entry() if self.shape.lanes > 1 else self._single_entry()
        grouped = [f for e in sorted(self.entries) for f in transcendental.functions(e, self.machine, self.bits)]
        rows = transpose.functions(self.machine, self.shape) if self.shape.lanes > 1 else []
        size = Function(f"define i64 @{FRAME_ENTRY}()")
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
            frame = f.emit(f"getelementptr i8, ptr %scratch, i64 {self._word(f, Word.FRAME)}")
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
        frame = f.emit(f"getelementptr i8, ptr %scratch, i64 {self._word(f, Word.FRAME)}")
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
        return Word.FIXED + len(self.place) + self.place[name] - len(self.spaces)

    def _space_bases(self, f: Function, bases: str) -> None:
        for space in self.spaces:
            self.space_base(f, bases, space, "%scratch")


def rolled_module(program: Program, machine: Machine, bits: int, *, single: bool) -> str:
    """The module's text, for one state at a time or for as many as a vector holds."""
    return _Module(program, machine, bits, 1 if single else machine.vector_bytes * 8 // bits).text()
