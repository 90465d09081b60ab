"""Wide results on their way to memory: matrices of derivatives, whose rows are longer than a page of a cache.

Lanes are transposed into a block of rows in scratch memory, and that block, which is one stretch of the caller's array,
is then copied out line by line. Three things are gained:

* A store to a line that no cache holds first brings the line in, only to overwrite it. Where a call's results are
  larger than the caches, the copy is made by stores that go past them.
* The lines of a row seldom begin where the vectors do; the copy can be aligned, the transposes could not.
* Columns that are zero for every state (branches of a tree that do not feel each other) are zero in the scratch rows
  once and for all, and need neither stores nor transposes.

Programs with loops have other uses for a cache than such a block of rows. There a few columns at a time are put
together in memory for some lines, and go from there.
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


_LINES = 8
"""Lines of each row that are put together at a time where a program has loops."""


def past_bytes(shape: LaneShape) -> int:
    """Memory in which ``lanes_to_rows_past`` puts lines together."""
    return (_LINES + 1) * shape.lanes * shape.size


def stored(shape: LaneShape) -> FunctionText:
    """``store_wide_rows``: as ``store_rows``, past the caches where ``far`` says so and the block is full.

    Numbers that straddle the lines do not.
    """
    given = "ptr noalias %rows, ptr noalias %lanes, i64 %n, i64 %here"
    f = FunctionText(f"define internal void @store_wide_rows({given}, ptr noalias %memory, i1 %far) #0")
    f.label("entry")
    f.do(f"%full = icmp eq i64 %here, {shape.lanes}")
    below = f.emit(f"and i64 {f.emit('ptrtoint ptr %rows to i64')}, {shape.bits // 8 - 1}")
    fits = f.emit(f"and i1 {f.emit(f'icmp eq i64 {below}, 0')}, %full")
    f.do(f"br i1 {f.emit(f'and i1 {fits}, %far')}, label %past, label %near")
    f.label("past")
    f.do("call void @lanes_to_rows_past(ptr %rows, ptr %lanes, i64 %n, ptr %memory)")
    f.do("ret void")
    f.label("near")
    f.do("call void @store_rows(ptr %rows, ptr %lanes, i64 %n, i64 %here)")
    f.do("ret void")
    return f


def is_far(f: FunctionText, wide: dict[str, int]) -> str:
    """Whether wide outputs of ``%count`` states are larger than the caches."""
    return f.emit(f"icmp sgt i64 %count, {FAR_BYTES // sum(wide.values())}")


def past(shape: LaneShape) -> FunctionText:
    """``lanes_to_rows_past(rows, lanes, n, memory)``: rows of a full block, which go past the caches line by line.

    A row begins anywhere in a line. So of the columns that are put together each time, the last few wait for the next
    time, in front of those that come then.
    """
    lanes, size, element, real = shape.lanes, shape.bits // 8, shape.element, shape.real
    columns, width = _LINES * lanes, (_LINES + 1) * lanes
    f = FunctionText(
        "define internal void @lanes_to_rows_past(ptr noalias %rows, ptr noalias %lanes, i64 %n, ptr noalias %memory)"
        " noinline #0"
    )
    f.label("entry")
    f.do(f"%new = getelementptr {element}, ptr %memory, i64 {lanes}")
    f.do(f"%end = and i64 %n, {-columns}")

    def row(number: str) -> tuple[str, str, str]:
        """A row, how many numbers of it come before its first whole line, and where its columns are put together."""
        here = f.address(element, "%rows", f.emit(f"mul i64 {number}, %n"))
        minus = f.emit(f"sub i64 0, {f.emit(f'ptrtoint ptr {here} to i64')}")
        before = f.emit(f"and i64 {f.emit(f'udiv i64 {minus}, {size}')}, {lanes - 1}")
        return here, before, f.address(element, "%memory", f.emit(f"mul i64 {number}, {width}"))

    with f.counted("%end", "%c", columns, again="following", after="rest"):
        there, last = f.address(element, "%new", f.emit("sub i64 0, %c")), f.emit(f"add i64 %c, {columns}")
        f.do(f"call void @lanes_to_rows_part(ptr {there}, ptr %lanes, i64 {width}, i64 %c, i64 {last})")
        f.do("%begins = icmp eq i64 %c, 0")
        with f.counted(lanes, "%r", some=True, block="row", again="row_done", after="following"):
            here, before, source = row("%r")
            lines = f.address(element, source, before)
            target = f.address(element, here, f.emit(f"add i64 %c, {f.emit(f'sub i64 {before}, {lanes}')}"))
            f.do("br i1 %begins, label %first, label %carried")
            f.label("carried")
            _past(f, shape, lines, target)
            f.do("br label %lines")
            f.label("first")
            with f.counted(before, "%k", block="number", after="lines"):
                value = f.load(element, f.address(element, source, f.emit(f"add i64 %k, {lanes}")), size)
                f.store(element, value, f.address(element, here, "%k"), size)
            for k in range(1, _LINES):
                _past(f, shape, f.address(real, lines, k), f.address(real, target, k))
            f.store(real, f.load(real, f.address(element, source, columns), shape.size), source, shape.size)
            f.do("br label %row_done")
    with f.counted(lanes, "%s", some=True, block="last_row", again="last_done", after="tail"):
        here, before, source = row("%s")
        with f.counted(f.emit(f"sub i64 {lanes}, {before}"), "%m", block="last_number", after="last_done"):
            number = f.emit(f"add i64 %m, {before}")
            place = f.address(element, here, f.emit(f"add i64 %end, {f.emit(f'sub i64 {number}, {lanes}')}"))
            f.store(element, f.load(element, f.address(element, source, number), size), place, size)
    f.do("call void @lanes_to_rows_part(ptr %rows, ptr %lanes, i64 %n, i64 %end, i64 %n)")
    f.do("ret void")
    return f


def _past(f: FunctionText, shape: LaneShape, source: str, target: str) -> None:
    value = f.load(shape.real, source, shape.bits // 8)
    f.do(f"store {shape.real} {value}, ptr {target}, align {shape.size}, !nontemporal !0")


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
