"""A program as one LLVM module for batches.

``batch(in, out, count, scratch)`` takes blocks of as many states as a vector has lanes: transposes their
rows into the scratch memory, runs the body on it, transposes the results back. All of a block's inputs are
read before any of its outputs is written, so an output may be the same array as an input.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.codegen import transcendental, transpose
from linkwise.codegen.body import Body
from linkwise.codegen.ir import Function, Shape, module_text
from linkwise.codegen.plan import Group, Plan, make_plan
from linkwise.codegen.target import Machine
from linkwise.tracing.program import Program

BATCH_ENTRY = "linkwise_batch"
SCRATCH_ENTRY = "linkwise_scratch_bytes"


@dataclass(frozen=True)
class Layout:
    """Where each array's lanes lie in the scratch memory, in vectors; whole groups of W for the transposes."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    frame: int

    @classmethod
    def of(cls, program: Program, lanes: int) -> Layout:
        """All arrays one behind the other."""
        places, position = [], 0
        for array in (*program.inputs, *program.outputs):
            places.append(position)
            position += -(-array.size // lanes) * lanes
        cut = len(program.inputs)
        return cls(tuple(places[:cut]), tuple(places[cut:]), position)


def attributes(machine: Machine) -> str:
    """What functions carry; the width keeps LLVM from preferring narrower vectors.

    Those of the body (#1) align their stack to whole vectors: LLVM spills to wherever the stack happens to be, and a
    spilled vector that straddles two cache lines costs twice (a third of the whole time, in two runs out of three).
    """
    width = machine.vector_bytes * 8
    common = f'nounwind "prefer-vector-width"="{width}" "min-legal-vector-width"="{width}" "no-builtins"'
    aligned = f'alignstack={machine.vector_bytes} "stackrealign"'
    return f"attributes #0 = {{ {common} }}\nattributes #1 = {{ {common} {aligned} }}"


def entries_used(plan: Plan) -> list[str]:
    """The grouped functions a plan calls."""
    return sorted({step.entry for piece in plan.pieces for step in piece.steps if isinstance(step, Group)})


def batch_module(program: Program, machine: Machine, bits: int) -> str:
    """The module's text."""
    shape = Shape(bits, machine.vector_bytes * 8 // bits)
    plan = make_plan(program)
    layout = Layout.of(program, shape.lanes)
    body = Body(program, plan, shape, shape)
    grouped = [f for entry in entries_used(plan) for f in transcendental.functions(entry, machine, bits)]
    scratch = Function(f"define i64 @{SCRATCH_ENTRY}()")
    scratch.do(f"ret i64 {layout.frame * shape.size + body.frame_bytes}")
    entry = _entry(program, shape, layout)
    made = [*transpose.functions(machine, shape), *grouped, *body.functions, entry, scratch]
    return f"; {program.name}, {shape.lanes} states at a time, float{bits}\n" + module_text(made, [attributes(machine)])


def _entry(program: Program, shape: Shape, layout: Layout) -> Function:
    f = Function(f"define void @{BATCH_ENTRY}(ptr %in, ptr %out, i64 %count, ptr noalias %scratch) #0")
    f.label("entry")
    lanes = [f.address(shape.real, "%scratch", place) for place in (*layout.inputs, *layout.outputs)]
    frame = f.address(shape.real, "%scratch", layout.frame)
    sizes = [array.size for array in (*program.inputs, *program.outputs)]
    cut = len(program.inputs)
    bases = []
    for k in range(len(sizes)):
        side, index = ("%in", k) if k < cut else ("%out", k - cut)
        bases.append(f.load("ptr", f.address("ptr", side, index), 8))
    body = f"call void @body({', '.join(f'ptr {place}' for place in [*lanes, frame])})"

    def arrays(first: str, function: str, extra: str, chosen: range) -> None:
        for k in chosen:
            if sizes[k]:
                start = f.emit(f"mul i64 {first}, {sizes[k]}")
                rows = f.address(shape.element, bases[k], start)
                f.do(f"call void @{function}(ptr {rows}, ptr {lanes[k]}, i64 {sizes[k]}{extra})")

    inward, outward = range(cut), range(cut, len(sizes))
    f.do(f"%left = and i64 %count, {shape.lanes - 1}")
    f.do("%whole = sub i64 %count, %left")
    f.do("%some = icmp sgt i64 %whole, 0")
    f.do("br i1 %some, label %loop, label %tail")
    f.label("loop")
    f.do("%i = phi i64 [ 0, %entry ], [ %next, %loop ]")
    arrays("%i", "rows_to_lanes", "", inward)
    f.do(body)
    arrays("%i", "lanes_to_rows", "", outward)
    f.do(f"%next = add i64 %i, {shape.lanes}")
    f.do("%more = icmp slt i64 %next, %whole")
    f.do("br i1 %more, label %loop, label %tail")
    f.label("tail")
    f.do("%any = icmp sgt i64 %left, 0")
    f.do("br i1 %any, label %rest, label %done")
    f.label("rest")
    arrays("%whole", "rows_to_lanes_some", ", i64 0, i64 %left", inward)
    f.do(body)
    arrays("%whole", "lanes_to_rows_some", ", i64 0, i64 %left", outward)
    f.do("br label %done")
    f.label("done")
    f.do("ret void")
    return f
