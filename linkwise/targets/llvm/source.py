"""A program as one LLVM module for batches.

``batch(in, out, count, scratch)`` takes blocks of as many states as a vector has lanes: transposes their
rows into the scratch memory, runs the body on it, transposes the results back. All of a block's inputs are
read before any of its outputs is written, so an output may be the same array as an input. Where the machine has
masks, the transposes of neighbouring blocks are woven into the body, and so are the sines that the next
block needs: see :mod:`linkwise.targets.llvm.weaving`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from linkwise.dataclass import dataclass
from linkwise.targets.llvm import streaming, transcendental, transpose
from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.block_code import REACH, BlockCode
from linkwise.targets.llvm.function_plan import FunctionPlan, GroupedCall, make_plan
from linkwise.targets.llvm.fusing import fused
from linkwise.targets.llvm.interpreted import InterpretedBlock, interpreter
from linkwise.targets.llvm.ir import FunctionText, LaneShape, module_text
from linkwise.targets.llvm.schedule import REGISTERS
from linkwise.targets.llvm.tiers import EntryPoints, Module, QuickModule, Word
from linkwise.targets.llvm.weaving import AHEAD, overlap, split
from linkwise.trace.block import ArraySpec, Block

BATCH_ENTRY = "linkwise_batch"
SCRATCH_ENTRY = "linkwise_scratch_bytes"
_NONE: Mapping[str, Word] = MappingProxyType({})
ENTRIES = EntryPoints({BATCH_ENTRY: 4}, (SCRATCH_ENTRY,))


@dataclass(frozen=True)
class ScratchLayout:
    """Layout of the scratch memory, in vectors; lanes come in whole groups of W for the transposes."""

    inputs: tuple[int, ...]
    second: tuple[int, ...]  # a second place for each input's lanes, if there is one
    outputs: tuple[int, ...]
    nowhere: int  # room for a block of rows that nobody needs
    stages: dict[int, int]  # room for a block of rows of each wide output
    frame: int
    before_frame: int  # vectors of the frame in front of its pointer

    @classmethod
    def of(
        cls, program: Block, lanes: int, double: bool = False, wide: Iterable[int] = (), before: int = 0
    ) -> ScratchLayout:
        """All arrays one behind the other, and ``before`` vectors of the frame in front of its pointer."""
        position = 0

        def place(arrays: Sequence[ArraySpec]) -> tuple[int, ...]:
            nonlocal position
            places = []
            for array in arrays:
                places.append(position)
                position += -(-array.size // lanes) * lanes
            return tuple(places)

        inputs, outputs = place(program.inputs), place(program.outputs)
        second = place(program.inputs) if double else ()
        sizes = [array.size for array in (*program.inputs, *program.outputs)]
        nowhere, room = position, max(sizes, default=0) if double else 0
        stages, position = {}, nowhere + room
        for array in wide:
            stages[array] = position
            position += program.outputs[array].size + 1  # and up to a vector before, to lie as the caller's rows do
        return cls(inputs, second, outputs, nowhere, stages, position + before, before)


def attributes(machine: Machine) -> str:
    """Attributes of functions; the width keeps LLVM from preferring narrower vectors.

    Those of the body (#1) align their stack to whole vectors: LLVM spills to wherever the stack happens to be, and a
    spilled vector that straddles two cache lines costs twice (a third of the whole time, in two runs out of three).
    """
    width = machine.vector_bytes * 8
    common = f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" "no-builtins"'
    aligned = f'alignstack={machine.vector_bytes} "stackrealign"'
    return f"attributes #0 = {{ {common} }}\nattributes #1 = {{ {common} {aligned} }}"


def entries_used(plan: FunctionPlan) -> list[str]:
    """The grouped functions a plan calls."""
    return sorted({step.entry for piece in plan.pieces for step in piece.steps if isinstance(step, GroupedCall)})


def batch_module(program: Block, machine: Machine, bits: int) -> Module:
    """The module for a program in one precision."""
    program = fused(program, machine)
    shape = LaneShape(bits, machine.vector_bytes * 8 // bits)
    woven = overlap(program, machine, shape)
    main, ahead = (woven.program, woven.ahead) if woven else (program, None)
    plan = make_plan(main, final=woven is not None)
    # LLVM's scheduler would sort the woven work back into heaps; without that work it does a little better than we do,
    # but for programs of several pieces, whose values it moves away from where they are used.
    in_order = woven is not None or len(plan.pieces) > 1
    wide = {} if woven else streaming.wide_outputs(program, shape)
    # Where LLVM keeps our order we say what waits where too. Of a long program that leaves LLVM a third to three fifths
    # of its work, for code a fifth shorter that takes the same time.
    planned = in_order and machine.masked
    before_frame = REACH if planned else 0
    layout = ScratchLayout.of(main, shape.lanes, woven is not None, wide, before_frame)
    skipped = streaming.skipped(program, wide)
    registers = REGISTERS if planned else 0
    body = BlockCode(main, plan, shape, shape, woven=woven, skipped=skipped, registers=registers)
    before = BlockCode(ahead, make_plan(ahead), shape, shape, AHEAD) if ahead else None
    codes = [body, before] if before else [body]
    entries = sorted({entry for code in codes for entry in entries_used(code.plan)})
    grouped = [f for entry in entries for f in transcendental.functions(entry, machine, bits)]
    scratch = FunctionText(f"define i64 @{SCRATCH_ENTRY}()")
    scratch.do(f"ret i64 {layout.frame * shape.size + max(code.frame_bytes for code in codes)}")
    constants = body.constants_pointer if planned else None
    entry = _BatchLoop(program, shape, layout, wide, constants).write(woven=woven is not None)
    moves = [*transpose.functions(machine, shape), *(streaming.functions(machine, shape) if wide else ())]
    made = [*moves, *grouped, *(f for code in codes for f in code.functions), entry, scratch]
    title = f"; {program.name}, {shape.lanes} states at a time, float{bits}\n"
    text = module_text(made, [attributes(machine), "!0 = !{i32 1}", *body.tables])
    return Module(title + text, in_order=in_order)


def quick_batch_module(program: Block, machine: Machine, bits: int) -> QuickModule:
    """The module for the first calls of a long program."""
    shape = LaneShape(bits, machine.vector_bytes * 8 // bits)
    wide = streaming.wide_outputs(program, shape)
    layout = ScratchLayout.of(program, shape.lanes, wide=wide)
    largest = ScratchLayout.of(split(program)[1], shape.lanes, True, wide, REACH)
    body = InterpretedBlock(program, machine, shape, skipped=streaming.skipped(program, wide))
    scratch = FunctionText(f"define i64 @{SCRATCH_ENTRY}()")
    scratch.do(f"ret i64 {largest.frame * shape.size + body.frame_bytes}")
    entry = _BatchLoop(program, shape, layout, wide).write(woven=False)
    moves = [*transpose.functions(machine, shape), *(streaming.functions(machine, shape) if wide else ())]
    text = module_text([*moves, *body.functions, entry, scratch], [attributes(machine), "!0 = !{i32 1}"])
    return quick_module(text, machine, shape, body.imports, body.held)


def quick_module(
    text: str,
    machine: Machine,
    shape: LaneShape,
    imports: Mapping[str, int],
    held: tuple[object, ...],
    words: Mapping[str, Word] = _NONE,
) -> QuickModule:
    """A module that interprets blocks, with their interpreter."""
    found, code = interpreter(machine, shape)
    return QuickModule(text, {**found, **imports}, (*held, code), words)


class _BatchLoop:
    """Writes the loop over blocks."""

    def __init__(
        self,
        program: Block,
        shape: LaneShape,
        layout: ScratchLayout,
        wide: Mapping[int, streaming.Runs] = MappingProxyType({}),
        constants: str | None = None,
    ) -> None:
        self.shape, self.layout, self.wide = shape, layout, wide
        self.f = f = FunctionText(f"define void @{BATCH_ENTRY}(ptr %in, ptr %out, i64 %count, ptr noalias %scratch) #0")
        f.label("entry")
        self.in_sizes = [array.size for array in program.inputs]
        self.out_sizes = [array.size for array in program.outputs]
        self.in_rows = [f.load("ptr", f.address("ptr", "%in", k), 8) for k in range(len(self.in_sizes))]
        self.out_rows = [f.load("ptr", f.address("ptr", "%out", k), 8) for k in range(len(self.out_sizes))]
        self.in_lanes = self._in_scratch(layout.inputs)
        self.out_lanes = self._in_scratch(layout.outputs)
        self.frame = f.address(shape.real, "%scratch", layout.frame - layout.before_frame)
        if layout.before_frame:
            self.frame = f.address(shape.real, self.frame, layout.before_frame)
        self.constants = f.emit(constants) if constants else None  # the last argument of a planned body
        self.stages: dict[int, str] = {}

    def _in_scratch(self, places: Sequence[int]) -> list[str]:
        return [self.f.address(self.shape.real, "%scratch", place) for place in places]

    def _rows(self, bases: list[str], sizes: list[int], state: str) -> list[str]:
        """Beginning of each array's row of a state."""
        starts = [self.f.emit(f"mul i64 {state}, {size}") for size in sizes]
        return [self.f.address(self.shape.element, base, s) for base, s in zip(bases, starts, strict=True)]

    def _transpose(
        self, function: str, bases: list[str], lanes: list[str], sizes: list[int], state: str, extra: str
    ) -> None:
        for rows, place, size in zip(self._rows(bases, sizes, state), lanes, sizes, strict=True):
            if size:
                self.f.do(f"call void @{function}(ptr {rows}, ptr {place}, i64 {size}{extra})")

    def _take(self, state: str, function: str = "rows_to_lanes", extra: str = "") -> None:
        lanes = self.in_lanes[: len(self.in_sizes)]
        self._transpose(function, self.in_rows, lanes, self.in_sizes, state, extra)
        if len(lanes) < len(self.in_lanes):
            places = ", ".join(f"ptr {place}" for place in (*self.in_lanes, self.frame))
            self.f.do(f"call void @{AHEAD}({places})")

    def _give(self, state: str, function: str = "lanes_to_rows", extra: str = "") -> None:
        self._transpose(function, self.out_rows, self.out_lanes, self.out_sizes, state, extra)

    def _body(self, lanes: list[str], woven: Sequence[str]) -> None:
        places = [*lanes, *self.out_lanes, self.frame, *woven, *([self.constants] if self.constants else ())]
        self.f.do(f"call void @body({', '.join(f'ptr {place}' for place in places)})")

    def write(self, woven: bool) -> FunctionText:
        """Whole blocks, then what is left over."""
        f, lanes = self.f, self.shape.lanes
        f.do(f"%left = and i64 %count, {lanes - 1}")
        f.do("%whole = sub i64 %count, %left")
        f.do("%some = icmp sgt i64 %whole, 0")
        f.do("br i1 %some, label %blocks, label %tail")
        f.label("blocks")
        if woven:
            self._woven_blocks()
        else:
            self._blocks()
        f.label("tail")
        f.do("%any = icmp sgt i64 %left, 0")
        f.do("br i1 %any, label %rest, label %done")
        f.label("rest")
        some = ", i64 0, i64 %left"
        for array in self.wide:  # columns that nobody computes
            f.do(f"call void @clear(ptr {self.out_lanes[array]}, i64 {self.out_sizes[array]})")
        self._take("%whole", "rows_to_lanes_some", some)
        nowhere = self._in_scratch([self.layout.nowhere])[0]
        idle = [nowhere] * len(self.in_sizes) + self._in_scratch(self.layout.second) + [nowhere] * len(self.out_sizes)
        self._body(self.in_lanes, idle if woven else ())
        self._give("%whole", "lanes_to_rows_some", some)
        f.do("br label %done")
        f.label("done")
        f.do("ret void")
        return f

    def _blocks(self) -> None:
        f = self.f
        if self.wide:
            state_bytes = sum(self.out_sizes) * self.shape.bits // 8
            f.do(f"%far = icmp sgt i64 %count, {streaming.FAR_BYTES // state_bytes}")
            for array in self.wide:
                self._place_stage(array)
        with f.counted("%whole", step=self.shape.lanes, some=True, after="tail"):
            self._take("%i")
            self._body(self.in_lanes, ())
            if self.wide:
                self._give_wide("%i")
            else:
                self._give("%i")

    def _place_stage(self, array: int) -> None:
        """Zeros, and a beginning that lies in a line where the caller's array does: then lines are copied to lines."""
        f = self.f
        room = self._in_scratch([self.layout.stages[array]])[0]
        f.do(f"call void @clear(ptr {room}, i64 {self.out_sizes[array] + 1})")
        address = f.emit(f"ptrtoint ptr {self.out_rows[array]} to i64")
        self.stages[array] = f.address("i8", room, f.emit(f"and i64 {address}, {self.shape.size - 1}"))

    def _give_wide(self, state: str) -> None:
        """Wide outputs by way of their stages, the others directly."""
        f = self.f
        for array, rows in enumerate(self._rows(self.out_rows, self.out_sizes, state)):
            lanes, size = self.out_lanes[array], self.out_sizes[array]
            if array in self.wide:
                stage = self.stages[array]
                for first, last in self.wide[array]:
                    where = f"ptr {stage}, ptr {lanes}, i64 {size}, i64 {first}, i64 {last}"
                    f.do(f"call void @lanes_to_rows_part({where})")
                f.do(f"call void @copy_out(ptr {rows}, ptr {stage}, i64 {size * self.shape.size}, i1 %far)")
            elif size:
                f.do(f"call void @lanes_to_rows(ptr {rows}, ptr {lanes}, i64 {size})")

    def _woven_blocks(self) -> None:
        """Inputs have two places, used by turns. The first block empties lanes to nowhere, the last refills its own."""
        f = self.f
        self._take("0")
        second = self._in_scratch(self.layout.second)
        nowhere = self._in_scratch([self.layout.nowhere])[0]
        f.do(f"%last = sub i64 %whole, {self.shape.lanes}")
        f.do("br label %loop")
        f.label("loop")
        f.do("%i = phi i64 [ 0, %blocks ], [ %next, %loop ]")
        here = [f"%here{k}" for k in range(len(self.in_lanes))]
        there = [f"%there{k}" for k in range(len(self.in_lanes))]
        for k, (one, two) in enumerate(zip(self.in_lanes, second, strict=True)):
            f.do(f"{here[k]} = phi ptr [ {one}, %blocks ], [ {there[k]}, %loop ]")
            f.do(f"{there[k]} = phi ptr [ {two}, %blocks ], [ {here[k]}, %loop ]")
        f.do(f"%next = add i64 %i, {self.shape.lanes}")
        f.do("%more = icmp slt i64 %next, %whole")
        following = f.emit("select i1 %more, i64 %next, i64 %last")
        coming = self._rows(self.in_rows, self.in_sizes, following)
        first = f.emit("icmp eq i64 %i, 0")
        before = f.emit(f"sub i64 %i, {self.shape.lanes}")
        gone = [
            f.emit(f"select i1 {first}, ptr {nowhere}, ptr {rows}")
            for rows in self._rows(self.out_rows, self.out_sizes, before)
        ]
        self._body(here, [*coming, *there, *gone])
        f.do("br i1 %more, label %loop, label %drain")
        f.label("drain")
        self._give("%last")
        f.do("br label %tail")
