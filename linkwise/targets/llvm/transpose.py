"""Row-major states to lanes and back.

A caller's array holds one state per row; a vector register holds one number of many states. A block of
``W`` rows is a matrix to transpose: rows are read as vectors and exchanged in registers, since gathering
single numbers costs several times as much. Rows that do not fill a block go number by number. The rows of a block lie
one behind the other, or where a list of their numbers says.
"""

from __future__ import annotations

from linkwise.targets.llvm.binding import Machine
from linkwise.targets.llvm.ir import FunctionText, LaneShape, masked_load, masked_store


def joined(f: FunctionText, half: LaneShape, low: str, high: str) -> str:
    """Two halves as one vector."""
    if half.lanes == 1:
        first = f.emit(f"insertelement <2 x {half.element}> poison, {half.element} {low}, i64 0")
        return f.emit(f"insertelement <2 x {half.element}> {first}, {half.element} {high}, i64 1")
    everything = ", ".join(f"i32 {i}" for i in range(2 * half.lanes))
    return f.emit(f"shufflevector {half.real} {low}, {half.real} {high}, <{2 * half.lanes} x i32> <{everything}>")


def exchanged(f: FunctionText, shape: LaneShape, rows: list[str]) -> list[str]:
    """Transpose the two square halves of W/2 vectors: exchange blocks of 1, 2, 4 ... between vectors as far apart."""
    lanes = shape.lanes
    distance = 1
    while distance < lanes // 2:
        low = [j if not j & distance else lanes + j - distance for j in range(lanes)]
        high = [j + distance if not j & distance else lanes + j for j in range(lanes)]
        exchanged = list(rows)
        for i in range(lanes // 2):
            if not i & distance:
                for target, picks in ((i, low), (i + distance, high)):
                    chosen = ", ".join(f"i32 {pick}" for pick in picks)
                    exchanged[target] = f.emit(
                        f"shufflevector {shape.real} {rows[i]}, {shape.real} {rows[i + distance]}, "
                        f"<{lanes} x i32> <{chosen}>"
                    )
        rows = exchanged
        distance *= 2
    return rows


def _below(f: FunctionText, shape: LaneShape, first: int, limit: str) -> str:
    """A mask of the lanes whose column, counted from ``first``, is below the limit."""
    lanes = shape.lanes
    spread = f.emit(f"insertelement <{lanes} x i64> poison, i64 {limit}, i64 0")
    spread = f.emit(f"shufflevector <{lanes} x i64> {spread}, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer")
    numbers = ", ".join(f"i64 {first + i}" for i in range(lanes))
    return f.emit(f"icmp slt <{lanes} x i64> <{numbers}>, {spread}")


LIST = ", ptr %list"
"""The last parameter of functions for rows that are listed."""


def _row_places(f: FunctionText, shape: LaneShape, column: str, listed: bool) -> list[str]:
    first = f.address(shape.element, "%rows", column)
    if listed:
        return [f.address(shape.element, first, _row_start(f, lane)) for lane in range(shape.lanes)]
    places = [first]
    for _ in range(shape.lanes - 1):
        places.append(f.address(shape.element, places[-1], "%n"))
    return places


def _row_start(f: FunctionText, lane: str | int) -> str:
    """Distance of a listed row from the first one of all, in numbers."""
    return f.emit(f"mul i64 {f.load('i64', f.address('i64', '%list', lane), 8)}, %n")


def _announce(f: FunctionText, rows: list[str], shape: LaneShape, write: bool) -> None:
    """Ask for the same columns of the next block: rows are far apart, and memory is slow to see the pattern."""
    f.declare("declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)")
    ahead = f.emit(f"mul i64 %n, {shape.lanes * shape.bits // 8}")
    for row in rows:
        place = f.address("i8", row, ahead)
        f.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {int(write)}, i32 3, i32 1)")


def _columns(
    f: FunctionText,
    shape: LaneShape,
    inward: bool,
    left: str | None,
    column: str,
    *,
    announced: bool = True,
    listed: bool = False,
) -> None:
    """Transpose W columns of W rows; if ``left`` is given, only so many columns exist.

    The first step of the exchange, between halves of vectors, is free: each vector is put together from two
    halves read from memory. One half of the result at a time keeps few registers busy.
    """
    half = LaneShape(shape.bits, shape.lanes // 2)
    align = shape.bits // 8
    rows = _row_places(f, shape, column, listed)
    start = f.emit(f"mul i64 {column}, {shape.lanes}")
    lane = f.address(shape.element, "%lanes", start)
    columns = [f.address(shape.real, lane, i) for i in range(shape.lanes)]
    sources, targets = (rows, columns) if inward else (columns, rows)
    whole = None if left is None or inward else _below(f, shape, 0, left)
    if announced and not listed:
        _announce(f, rows, shape, write=not inward)
    for first in (0, half.lanes):
        mask = None if left is None or not inward else _below(f, half, first, left)

        def read(k: int, first: int = first, mask: str | None = mask) -> str:
            place = f.address(shape.element, sources[k], first)
            if mask is not None:
                return masked_load(f, half, place, mask)
            return f.load(half.real, place, align if inward else half.size)

        halves = [joined(f, half, read(k), read(k + half.lanes)) for k in range(half.lanes)]
        for k, value in enumerate(exchanged(f, shape, halves)):
            if whole is not None:
                masked_store(f, shape, value, targets[first + k], whole)
            else:
                f.store(shape.real, value, targets[first + k], shape.size if inward else align)


def _block(name: str, machine: Machine, shape: LaneShape, inward: bool, listed: bool) -> FunctionText:
    """A full block: whole groups of W columns in a loop, then the columns left over."""
    given = f"ptr noalias %rows, ptr noalias %lanes, i64 %n{LIST if listed else ''}"
    f = FunctionText(f"define internal void @{name}({given}) #0")
    if machine.masked:
        _block_masked(f, shape, inward, listed)
    else:
        _block_overlapping(f, name, shape, inward, listed)
    f.do("br label %done")
    f.label("done")
    f.do("ret void")
    return f


def _block_masked(f: FunctionText, shape: LaneShape, inward: bool, listed: bool) -> None:
    lanes = shape.lanes
    f.label("entry")
    f.do(f"%whole = and i64 %n, {-lanes}")
    with f.counted("%whole", "%c", lanes, after="tail"):
        _columns(f, shape, inward, None, "%c", listed=listed)
    f.do("%left = sub i64 %n, %whole")
    f.do("%any = icmp sgt i64 %left, 0")
    f.do("br i1 %any, label %rest, label %done")
    f.label("rest")
    _columns(f, shape, inward, "%left", "%whole", listed=listed)


def _block_overlapping(f: FunctionText, name: str, shape: LaneShape, inward: bool, listed: bool) -> None:
    """The last group ends with the last column, and moves some columns a second time.

    That costs less than moving the rest number by number, and a vector that was stored in parts is slow to load.
    """
    lanes = shape.lanes
    f.label("entry")
    f.do(f"%final = sub i64 %n, {lanes}")
    f.do("%some = icmp sge i64 %final, 0")
    f.do("br i1 %some, label %loop, label %few")
    f.label("loop")
    f.do("%c = phi i64 [ 0, %entry ], [ %next, %loop ]")
    f.do("%over = icmp sgt i64 %c, %final")
    _columns(f, shape, inward, None, f.emit("select i1 %over, i64 %final, i64 %c"), listed=listed)
    f.do(f"%next = add i64 %c, {lanes}")
    f.do("%more = icmp slt i64 %next, %n")
    f.do("br i1 %more, label %loop, label %done")
    f.label("few")
    f.do(f"call void @{name}_some(ptr %rows, ptr %lanes, i64 %n, i64 0, i64 {lanes}{LIST if listed else ''})")


def part(machine: Machine, shape: LaneShape) -> FunctionText:
    """``lanes_to_rows_part``: columns of a full block from ``first``, a multiple of W, up to ``last``."""
    f = FunctionText(
        "define internal void @lanes_to_rows_part"
        "(ptr noalias %rows, ptr noalias %lanes, i64 %n, i64 %first, i64 %last) #0"
    )
    f.label("entry")
    f.do("%span = sub i64 %last, %first")
    f.do(f"%groups = and i64 %span, {-shape.lanes}")
    f.do("%whole = add i64 %first, %groups")
    f.do("%some = icmp sgt i64 %groups, 0")
    f.do("br i1 %some, label %loop, label %tail")
    f.label("loop")
    f.do("%c = phi i64 [ %first, %entry ], [ %next, %loop ]")
    _columns(f, shape, False, None, "%c", announced=False)
    f.do(f"%next = add i64 %c, {shape.lanes}")
    f.do("%more = icmp slt i64 %next, %whole")
    f.do("br i1 %more, label %loop, label %tail")
    f.label("tail")
    f.do("%left = sub i64 %last, %whole")
    f.do("%any = icmp sgt i64 %left, 0")
    f.do("br i1 %any, label %rest, label %done")
    f.label("rest")
    if machine.masked:
        _columns(f, shape, False, "%left", "%whole", announced=False)
    else:  # less than a group is left only at the end of the rows
        f.do(f"call void @lanes_to_rows_some(ptr %rows, ptr %lanes, i64 %n, i64 %whole, i64 {shape.lanes})")
    f.do("br label %done")
    f.label("done")
    f.do("ret void")
    return f


def _some(name: str, shape: LaneShape, inward: bool, listed: bool) -> FunctionText:
    """Columns from ``first`` on, of ``count`` rows, number by number.

    On the way in the lanes without a state repeat the last one: they compute something ordinary
    (no infinities, no denormals, no rare branches) that nobody reads.
    """
    given = f"ptr noalias %rows, ptr noalias %lanes, i64 %n, i64 %first, i64 %count{LIST if listed else ''}"
    f = FunctionText(f"define internal void @{name}_some({given}) #0")
    element, align = shape.element, shape.bits // 8
    f.label("entry")
    f.do("%last = sub i64 %count, 1")
    f.do("br label %outer")
    f.label("outer")
    f.do("%c = phi i64 [ %first, %entry ], [ %c.next, %column ]")
    f.do("br label %inner")
    f.label("inner")
    f.do("%r = phi i64 [ 0, %outer ], [ %r.next, %inner ]")
    f.do("%r.over = icmp sgt i64 %r, %last")
    row = f.emit("select i1 %r.over, i64 %last, i64 %r")
    start = _row_start(f, row) if listed else f.emit(f"mul i64 {row}, %n")
    place = f.address(element, "%rows", f.emit(f"add i64 {start}, %c"))
    lane = f.address(element, "%lanes", f.emit(f"add i64 {f.emit(f'mul i64 %c, {shape.lanes}')}, %r"))
    source, target = (place, lane) if inward else (lane, place)
    f.store(element, f.load(element, source, align), target, align)
    f.do("%r.next = add i64 %r, 1")
    f.do(f"%r.more = icmp slt i64 %r.next, {shape.lanes if inward else '%count'}")
    f.do("%c.next = add i64 %c, 1")
    f.do("br i1 %r.more, label %inner, label %column")
    f.label("column")
    f.do("%c.more = icmp slt i64 %c.next, %n")
    f.do("br i1 %c.more, label %outer, label %done")
    f.label("done")
    f.do("ret void")
    return f


def functions(machine: Machine, shape: LaneShape, listed: bool = False) -> list[FunctionText]:
    """``rows_to_lanes`` and ``lanes_to_rows`` for a full block, and ``..._some`` for the rest."""
    return [
        *(_block(name, machine, shape, name == "rows_to_lanes", listed) for name in ("rows_to_lanes", "lanes_to_rows")),
        *(_some(name, shape, name == "rows_to_lanes", listed) for name in ("rows_to_lanes", "lanes_to_rows")),
    ]
