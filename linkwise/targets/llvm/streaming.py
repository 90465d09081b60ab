"""Wide results on their way to memory: matrices of derivatives, whose rows are longer than a page of a cache.

Lanes are transposed into a block of rows in scratch memory, and that block, which is one stretch of the caller's array,
is then copied out line by line. Three things are gained:

* A store to a line that no cache holds first brings the line in, only to overwrite it. Where a call's results are
  larger than the caches, the copy is made by stores that go past them.
* The lines of a row seldom begin where the vectors do; the copy can be aligned, the transposes could not.
* Columns that are zero for every state (branches of a tree that do not feel each other) are zero in the scratch rows
  once and for all, and need neither stores nor transposes.
"""

from __future__ import annotations

from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.ir import FunctionText, LaneShape
from linkwise.targets.llvm.transpose import part
from linkwise.trace.block import Block

FAR_BYTES = 4 * 1024 * 1024
"""Results of one call, in bytes, beyond which they go past the caches."""

WIDE_BYTES = 2048
"""Bytes of a row from which on it is put together in scratch memory."""

Runs = tuple[tuple[int, int], ...]
"""Columns that are computed: from, to; in whole groups of as many columns as a vector has lanes."""


def wide_outputs(program: Block, shape: LaneShape) -> dict[int, Runs]:
    """The outputs with wide rows, and which of their columns are not always zero."""
    found: dict[int, Runs] = {}
    for array, spec in enumerate(program.outputs):
        if spec.size * shape.bits // 8 < WIDE_BYTES:
            continue
        zero = [program.nodes[number] == ("const", 0.0) for number in program.results[array]]
        runs: list[tuple[int, int]] = []
        for first in range(0, spec.size, shape.lanes):
            last = min(first + shape.lanes, spec.size)
            if all(zero[first:last]):
                continue
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], last)
            else:
                runs.append((first, last))
        found[array] = tuple(runs)
    return found


def skipped(program: Block, wide: dict[int, Runs]) -> frozenset[tuple[int, int]]:
    """Array and element of the results that nobody stores, since they are zero in scratch memory already."""
    computed = {array: {e for first, last in runs for e in range(first, last)} for array, runs in wide.items()}
    return frozenset(
        (array, e) for array in wide for e in range(program.outputs[array].size) if e not in computed[array]
    )


def functions(machine: Machine, shape: LaneShape) -> list[FunctionText]:
    """``clear(to, vectors)``, ``lanes_to_rows_part`` and ``copy_out(to, from, bytes, far)``."""
    return [_clear(shape), part(machine, shape), _copy_out(shape)]


def _clear(shape: LaneShape) -> FunctionText:
    f = FunctionText("define internal void @clear(ptr noalias %to, i64 %count) #0")
    f.label("entry")
    with f.counted("%count"):
        f.store(shape.real, shape.constant(0.0), f.address(shape.real, "%to", "%i"), shape.size)
    f.do("ret void")
    return f


def _copy_out(shape: LaneShape) -> FunctionText:
    """Number by number up to the first whole line and after the last one, and lines in between.

    Where numbers straddle the lines, those at either end are copied together with a part of the line beside them.
    """
    size, number = shape.size, shape.bits // 8
    f = FunctionText("define internal void @copy_out(ptr noalias %to, ptr noalias %from, i64 %bytes, i1 %far) #0")
    f.label("entry")
    f.do("%address = ptrtoint ptr %to to i64")
    f.do("%minus = sub i64 0, %address")
    f.do(f"%head = and i64 %minus, {size - 1}")
    f.do("%rest = sub i64 %bytes, %head")
    f.do(f"%lines = and i64 %rest, {-size}")
    f.do("%middle = add i64 %head, %lines")
    f.do(f"%tail = and i64 %middle, {-number}")
    f.do("br label %first")
    _copy_loop(f, "first", "0", "%head", "choose", shape.element, number, 1, "")
    f.label("choose")
    f.do("br i1 %far, label %past, label %into")
    _copy_loop(f, "past", "%head", "%middle", "last", shape.real, size, size, ", !nontemporal !0")
    _copy_loop(f, "into", "%head", "%middle", "last", shape.real, size, size, "")
    _copy_loop(f, "last", "%tail", "%bytes", "done", shape.element, number, 1, "")
    f.label("done")
    f.do("ret void")
    return f


def _copy_loop(
    f: FunctionText, name: str, first: str, last: str, after: str, kind: str, step: int, align: int, hint: str
) -> None:
    f.label(name)
    f.do(f"%{name}.any = icmp slt i64 {first}, {last}")
    f.do(f"br i1 %{name}.any, label %{name}.loop, label %{after}")
    f.label(f"{name}.loop")
    f.do(f"%{name}.i = phi i64 [ {first}, %{name} ], [ %{name}.next, %{name}.loop ]")
    value = f.load(kind, f.address("i8", "%from", f"%{name}.i"), align)
    f.do(f"store {kind} {value}, ptr {f.address('i8', '%to', f'%{name}.i')}, align {align}{hint}")
    f.do(f"%{name}.next = add i64 %{name}.i, {step}")
    f.do(f"%{name}.more = icmp slt i64 %{name}.next, {last}")
    f.do(f"br i1 %{name}.more, label %{name}.loop, label %{after}")
