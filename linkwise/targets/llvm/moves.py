"""Numbers moved for one block of states, each kind of move as a function in machine code."""

from __future__ import annotations

from linkwise.targets.llvm.ir import FunctionText, LaneShape
from linkwise.targets.llvm.program_memory import Words
from linkwise.targets.llvm.transpose import LIST


def _whole(f: FunctionText, shape: LaneShape, lane: str) -> str:
    """The index of a lane, a whole number."""
    element = shape.element
    return f.emit(f"fptosi {element} {f.load(element, f.address(element, '%index', lane), shape.bits // 8)} to i64")


def _into_lane(
    f: FunctionText, shape: LaneShape, row: str, first: str, block: str = "inner", some: bool = True
) -> None:
    """Numbers of a row, one behind the other, to those of a lane from its first on, which other lanes lie between."""
    element, align = shape.element, shape.bits // 8
    with f.counted("%n", some=some, block=block, after="after"):
        value = f.load(element, f.address(element, row, "%i"), align)
        f.store(element, value, f.address(element, first, f.emit(f"mul i64 %i, {shape.lanes}")), align)


def fill(f: FunctionText, shape: LaneShape, numbers: tuple[str, str, str], home: str, block: str, after: str) -> None:
    """Write numbers (how many, their places, their values), each for all lanes, from an address on."""
    count, places, values = numbers
    with f.counted(count, "%n", block=block, after=after):
        place = f.load("i64", f.address("i64", places, "%n"), 8)
        one = f.load(shape.element, f.address(shape.element, values, "%n"), shape.bits // 8)
        if shape.lanes > 1:
            first = f.emit(f"insertelement {shape.real} poison, {shape.element} {one}, i64 0")
            zeros = f"<{shape.lanes} x i32> zeroinitializer"
            one = f.emit(f"shufflevector {shape.real} {first}, {shape.real} poison, {zeros}")
        f.store(shape.real, one, f.address(shape.real, home, place), shape.size)


def fill_once(shape: LaneShape, words: Words) -> FunctionText:
    """``fill_once(scratch, table)``: numbers that are the same for all blocks of states."""
    f = FunctionText("define internal void @fill_once(ptr noalias %scratch, ptr noalias %table) noinline #0")
    f.label("entry")
    kinds = zip(("i64", "ptr", "ptr"), (words.once, words.once_places, words.once_values), strict=True)
    count, places, values = (f.load(kind, f.address(kind, "%table", word), 8) for kind, word in kinds)
    fill(f, shape, (count, places, values), "%scratch", "fill", "done")
    f.do("ret void")
    return f


def rows(shape: LaneShape, inward: bool, listed: bool = False) -> FunctionText:
    """Rows of the caller to lanes of the scratch memory, or back; for one lane a plain copy.

    ``listed``: a list has the numbers of the rows.
    """
    name, way = ("load_rows", "rows_to_lanes") if inward else ("store_rows", "lanes_to_rows")
    last = LIST if listed else ""
    given = f"ptr noalias %rows, ptr noalias %lanes, i64 %n, i64 %here{last}"
    f = FunctionText(f"define internal void @{name}({given}) noinline #0")
    f.label("entry")
    if shape.lanes == 1:
        source, goal = ("%rows", "%lanes") if inward else ("%lanes", "%rows")
        f.do(f"call void @copy(ptr {source}, ptr {goal}, i64 %n)")
    else:
        f.do(f"%full = icmp eq i64 %here, {shape.lanes}")
        f.do("br i1 %full, label %whole, label %part")
        f.label("whole")
        f.do(f"call void @{way}(ptr %rows, ptr %lanes, i64 %n{last})")
        f.do("ret void")
        f.label("part")
        f.do(f"call void @{way}_some(ptr %rows, ptr %lanes, i64 %n, i64 0, i64 %here{last})")
    f.do("ret void")
    return f


def copy(shape: LaneShape) -> FunctionText:
    """One buffer to another, unless both are the same."""
    f = FunctionText("define internal void @copy(ptr noalias %source, ptr noalias %target, i64 %n) noinline #0")
    f.label("entry")
    f.do(f"br i1 {f.emit('icmp eq ptr %source, %target')}, label %same, label %apart")
    f.label("same")
    f.do("ret void")
    f.label("apart")
    with f.counted("%n", some=True):
        value = f.load(shape.real, f.address(shape.real, "%source", "%i"), shape.bits // 8)
        f.store(shape.real, value, f.address(shape.real, "%target", "%i"), shape.bits // 8)
    f.do("ret void")
    return f


def unit(shape: LaneShape) -> FunctionText:
    """A unit vector of n numbers in every lane."""
    f = FunctionText("define internal void @unit(ptr %target, i64 %n, i64 %one) noinline #0")
    f.label("entry")
    with f.counted("%n", some=True):
        here = f.emit("icmp eq i64 %i, %one")
        value = f.emit(f"select i1 {here}, {shape.real} {shape.constant(1.0)}, {shape.real} {shape.constant(0.0)}")
        f.store(shape.real, value, f.address(shape.real, "%target", "%i"), shape.bits // 8)
    f.do("ret void")
    return f


def lookup(shape: LaneShape) -> FunctionText:
    """Function that gives each lane its number of a table."""
    element, align = shape.element, shape.bits // 8
    f = FunctionText("define internal void @lookup(ptr %table, ptr %index, ptr %target) noinline #0")
    f.label("entry")
    with f.counted(shape.lanes, "%l", some=True):
        index = _whole(f, shape, "%l")
        value = f.load(element, f.address(element, "%table", index), align)
        f.store(element, value, f.address(element, "%target", "%l"), align)
    f.do("ret void")
    return f


def parameter_row(shape: LaneShape) -> FunctionText:
    """Function that gives each lane the number of its row and the row, of parameters that all share."""
    element, align, lanes = shape.element, shape.bits // 8, shape.lanes
    f = FunctionText(
        "define internal void @parameter_row(ptr %parameters, i64 %last, i64 %stride, i64 %n, ptr %index, "
        "ptr noalias %target) noinline #0"
    )
    f.label("entry")
    end = f.emit(f"sitofp i64 %last to {element}")
    with f.counted(lanes, "%l", some=True, again="after"):
        wanted = f.load(element, f.address(element, "%index", "%l"), align)
        inside = f.emit(f"fcmp ogt {element} {wanted}, 0.0")  # not NaN, which no whole number stands for
        wanted = f.emit(f"select i1 {inside}, {element} {wanted}, {element} 0.0")
        inside = f.emit(f"fcmp olt {element} {wanted}, {end}")
        wanted = f.emit(f"select i1 {inside}, {element} {wanted}, {element} {end}")
        index = f.emit(f"fptosi {element} {wanted} to i64")
        target = f.address(element, "%target", "%l")
        f.store(element, f.emit(f"sitofp i64 {index} to {element}"), target, align)
        row = f.address(element, "%parameters", f.emit(f"mul i64 {index}, %stride"))
        first = f.address(element, target, lanes)
        _into_lane(f, shape, row, first, some=False)
    f.do("ret void")
    return f


def seek(shape: LaneShape) -> FunctionText:
    """Function that gives each lane its row of a curve, by bisection where the time has left the row that is there."""
    element, align, lanes = shape.element, shape.bits // 8, shape.lanes
    f = FunctionText(
        "define internal void @seek(ptr noalias %curve, i64 %state, i64 %here, i64 %rows, i64 %stride, i64 %n, "
        "ptr %at, ptr %target) noinline #0"
    )
    f.label("entry")
    f.do("%last = sub i64 %here, 1")
    with f.counted(lanes, "%l", some=True, again="after"):
        now = f.load(element, f.address(element, "%at", "%l"), align)
        mine = f.address(element, "%target", "%l")
        begun = f.emit(f"fcmp ole {element} {f.load(element, mine, align)}, {now}")
        ending = f.load(element, f.address(element, mine, lanes), align)
        inside = f.emit(f"and i1 {begun}, {f.emit(f'fcmp olt {element} {now}, {ending}')}")
        f.do(f"br i1 {inside}, label %after, label %search")
        f.label("search")
        over = f.emit("icmp sgt i64 %l, %last")  # lanes without a state repeat the last one
        member = f.emit(f"add i64 %state, {f.emit(f'select i1 {over}, i64 %last, i64 %l')}")
        rows = f.address(element, "%curve", f.emit(f"mul i64 {member}, %stride"))
        f.do("br label %halve")
        f.label("halve")
        f.do("%a = phi i64 [ 0, %search ], [ %a.next, %halve ]")
        f.do("%b = phi i64 [ %rows, %search ], [ %b.next, %halve ]")
        middle = f.emit(f"lshr i64 {f.emit('add i64 %a, %b')}, 1")
        begins = f.load(element, f.address(element, rows, f.emit(f"mul i64 {middle}, %n")), align)
        passed = f.emit(f"fcmp ole {element} {begins}, {now}")
        f.do(f"%a.next = select i1 {passed}, i64 {middle}, i64 %a")
        f.do(f"%b.next = select i1 {passed}, i64 %b, i64 {middle}")
        left = f.emit("sub i64 %b.next, %a.next")
        f.do(f"br i1 {f.emit(f'icmp sgt i64 {left}, 1')}, label %halve, label %found")
        f.label("found")
        row = f.address(element, rows, f.emit("mul i64 %a.next, %n"))
        _into_lane(f, shape, row, mine, block="copy.number")
    f.do("ret void")
    return f


def record(shape: LaneShape) -> FunctionText:
    """Function that puts each lane's row to its own place."""
    element, align, lanes = shape.element, shape.bits // 8, shape.lanes
    f = FunctionText(
        "define internal void @record(ptr noalias %record, i64 %state, i64 %here, i64 %apart, i64 %stride, i64 %n, "
        "ptr noalias %value, ptr %index, ptr %mask) noinline #0"
    )
    f.label("entry")
    with f.counted("%here", "%l", some=True, again="after"):
        mask = f.load(element, f.address(element, "%mask", "%l"), align)
        f.do(f"br i1 {f.emit(f'fcmp une {element} {mask}, 0.0')}, label %lane, label %after")
        f.label("lane")
        index = _whole(f, shape, "%l")
        state = f.emit(f"mul i64 {f.emit('add i64 %state, %l')}, %apart")
        row = f.emit(f"add i64 {state}, {f.emit(f'mul i64 {index}, %stride')}")
        target = f.address(element, "%record", row)
        source = f.address(element, "%value", "%l")
        with f.counted("%n", some=True, block="inner", after="after"):
            value = f.load(element, f.address(element, source, f.emit(f"mul i64 %i, {lanes}")), align)
            f.store(element, value, f.address(element, target, "%i"), align)
    f.do("ret void")
    return f


def read(shape: LaneShape) -> FunctionText:
    """Function that gives each lane its row of a series."""
    element, lanes = shape.element, shape.lanes
    f = FunctionText(
        "define internal void @read(ptr noalias %series, i64 %state, i64 %here, i64 %apart, i64 %stride, i64 %n, "
        "ptr %index, ptr noalias %target) noinline #0"
    )
    f.label("entry")
    f.do("%last = sub i64 %here, 1")
    with f.counted(lanes, "%l", some=True, again="after"):
        over = f.emit("icmp sgt i64 %l, %last")  # lanes without a state repeat the last one
        at = f.emit(f"select i1 {over}, i64 %last, i64 %l")
        member = f.emit(f"add i64 %state, {at}")
        index = _whole(f, shape, at)
        row = f.emit(f"add i64 {f.emit(f'mul i64 {member}, %apart')}, {f.emit(f'mul i64 {index}, %stride')}")
        source = f.address(element, "%series", row)
        _into_lane(f, shape, source, f.address(element, "%target", "%l"))
    f.do("ret void")
    return f
