"""Entry of programs in which states wait for each other: lanes that are done make room for others.

States side by side in lanes go through a loop together, until the last of them is done; half of the lanes then compute
nothing for most of the time. Here a block of states goes through the loop by itself only while most of its lanes have
work. Those that are left join a *pool*, a block of lanes from several blocks; whenever a lane of it is done, its
numbers go back where they came from, and another state takes the lane. Blocks wait in *slots* until all of their states
are back; the first slot that is free takes the next block, so that few are in use and stay in near memory. Where a
block goes through parts that some of its states alone need, states that are alike go side by side: those with as many
numbers that are not zero in the longest input, as impulses of contacts that are open are. Every state is computed as it
would be by itself.
"""

from __future__ import annotations

from linkwise.targets.llvm import streaming
from linkwise.targets.llvm.ir import FunctionText, LaneShape
from linkwise.targets.llvm.program_memory import ALIKE, SLOTS, WINDOW, Words, wide_buffers, written_once
from linkwise.trace.program import Program
from linkwise.trace.waiting import WaitingLoop

STAY = 1 / 2
"""Part of a block's lanes that must have work for it to stay out of the pool."""

BEFORE, PASS, AFTER = "before", "pass", "after"
"""The functions of the program's parts."""

_TOGETHER = 8  # numbers of a lane that are moved in a row
_NEAR = 64  # numbers of all states that leave a block, one state after the other: what is read for one is near then
_AROUND = "ptr %pool, ptr %control, ptr %scratch, ptr %frame, ptr %table, ptr %arrays"
_BUSY, _OWNERS = 0, 1  # words of the control: how many lanes are taken; whose they are, and in which slot


class PoolWriter:
    """Writes the functions around the parts of a program.

    Args:
        program: the program.
        loop: its loop.
        shape: of values, in several lanes.
        entry: the name of the way in.
    """

    def __init__(self, program: Program, loop: WaitingLoop, shape: LaneShape, entry: str) -> None:
        self.program, self.loop, self.shape, self.entry = program, loop, shape, entry
        self.words = Words(program)
        self.open = {buffer.name: buffer.open for buffer in program.buffers}
        self._slots, self._waiting = _OWNERS + shape.lanes, _OWNERS + 2 * shape.lanes
        self._blocks = self._waiting + SLOTS  # of each slot how many states it waits for, and the number of its block
        self._leaving = self._blocks + SLOTS  # how many states go to the pool together, and from where to where
        self._lists = self._leaving + 1 + 2 * shape.lanes  # of each slot the numbers of its states
        self._order = self._lists + SLOTS * shape.lanes  # numbers of the next states, in the order in which they go
        self._counts = self._order + WINDOW  # how many states have so many numbers that are not zero; those of each
        self._inputs = [(b.size, k) for k, b in enumerate(program.kept) if b.load and not b.open]
        self.puts_in_order = bool(self._inputs) and program.is_function and loop.follows_choices
        """Whether states do not go as they come; where each has a number of its own for what it records, they do."""

    def functions(self) -> list[FunctionText]:
        """All functions; the last one is the way in."""
        own = [self._moved(), self._together(), self._round(), self._leave(), self._end(), self._entry()]
        return [self._ordered(), *own] if self.puts_in_order else own

    # Places.
    def _word(self, f: FunctionText, index: int) -> str:
        return f.load("i64", f.address("i64", "%table", index), 8)

    def _buffer(self, f: FunctionText, name: str, own: str) -> str:
        """Rows that no block waits with are the same for all: at the beginning of the scratch memory."""
        home = own if name in self.loop.waits else "%scratch"
        return f.address(self.shape.real, home, self._word(f, self.words.start(name)))

    def _size(self, f: FunctionText, name: str) -> str:
        return self._word(f, self.words.size(name)) if self.open[name] else str(self.program.sizes[name])

    def _part(self, f: FunctionText, name: str, own: str, state: str = "0", here: str = "") -> None:
        """Run a part of the program on one block."""
        kept = [self._buffer(f, buffer.name, own) for buffer in self.program.kept]
        pointers = ", ".join(f"ptr {p}" for p in [*kept, own, "%frame", "%table", "%arrays"])
        f.do(f"call void @{name}({pointers}, i64 {state}, i64 {here or self.shape.lanes})")

    def _raised(self, f: FunctionText, own: str, lane: str) -> str:
        """Whether the flag of one lane is up."""
        element = self.shape.element
        flag = f.load(element, f.address(element, self._buffer(f, self.loop.flag, own), lane), self.shape.bits // 8)
        return f.emit(f"fcmp une {element} {flag}, {LaneShape(self.shape.bits, 1).constant(0.0)}")

    def _changed(self, f: FunctionText, index: str | int, by: int) -> None:
        """Count a word of the control up or down."""
        _counted_up(f, f.address("i64", "%control", index), str(by))

    # Functions.
    def _moved(self) -> FunctionText:
        """One lane of a buffer to a lane of another."""
        f = FunctionText("define internal void @move_lane(ptr noalias %source, ptr noalias %target, i64 %n) #0")
        element, align, lanes = self.shape.element, self.shape.bits // 8, self.shape.lanes
        f.label("entry")
        f.do(f"%eights = and i64 %n, -{_TOGETHER}")
        f.do(f"%rest = and i64 %n, {_TOGETHER - 1}")

        def one(index: str) -> None:
            at = f.emit(f"mul i64 {index}, {lanes}")
            value = f.load(element, f.address(element, "%source", at), align)
            f.store(element, value, f.address(element, "%target", at), align)

        with f.counted("%eights", "%i", step=_TOGETHER, block="together", after="few"):
            for k in range(_TOGETHER):
                one(f.emit(f"add i64 %i, {k}"))
        with f.counted("%rest", "%j", block="last", after="done"):
            one(f.emit("add i64 %eights, %j"))
        f.do("ret void")
        return f

    def _together(self) -> FunctionText:
        """A buffer of all states that leave a block for the pool."""
        f = FunctionText("define internal void @move_lanes(ptr %control, i64 %start, i64 %n) #0")
        f.label("entry")
        count = f.load("i64", f.address("i64", "%control", self._leaving), 8)
        with f.counted("%n", "%c", step=_NEAR, block="part", again="parted", after="done"):
            left = f.emit("sub i64 %n, %c")
            here = f.call("i64", "llvm.smin.i64", [("i64", left), ("i64", str(_NEAR))])
            first = f.emit("add i64 %start, %c")
            with f.counted(count, "%k", some=True, block="state", after="parted"):
                pair = f.emit("shl i64 %k, 1")
                places = []
                for side in (1, 2):
                    word = f.address("i64", "%control", f.emit(f"add i64 {pair}, {self._leaving + side}"))
                    places.append(f"ptr {f.address(self.shape.real, f.load('ptr', word, 8), first)}")
                f.do(f"call void @move_lane({', '.join(places)}, i64 {here})")
        f.do("ret void")
        return f

    def _round(self) -> FunctionText:
        """One pass for the pool; lanes that are done give their numbers back."""
        f = FunctionText(f"define internal void @pool_round({_AROUND}) noinline #0")
        f.label("entry")
        self._part(f, PASS, "%pool")
        with f.counted(self.shape.lanes, "%l", some=True, block="lane", again="next", after="done"):
            place = f.address("ptr", "%control", f.emit(f"add i64 %l, {_OWNERS}"))
            owner = f.load("ptr", place, 8)
            f.do(f"br i1 {f.emit(f'icmp eq ptr {owner}, null')}, label %next, label %taken")
            f.label("taken")
            f.do(f"br i1 {self._raised(f, '%pool', '%l')}, label %next, label %finished")
            f.label("finished")
            self._move(f, self.loop.brought, f.address(self.shape.element, "%pool", "%l"), owner)
            slot = f.load("i64", f.address("i64", "%control", f.emit(f"add i64 %l, {self._slots}")), 8)
            f.store("ptr", "null", place, 8)
            self._changed(f, _BUSY, -1)
            self._changed(f, f.emit(f"add i64 {slot}, {self._waiting}"), -1)
            f.do("br label %next")
        f.do("ret void")
        return f

    def _move(self, f: FunctionText, names: tuple[str, ...], source: str, target: str) -> None:
        """Numbers of some buffers from one lane to another; both are known by where they are in the first value."""
        for name in names:
            places = f"ptr {self._buffer(f, name, source)}, ptr {self._buffer(f, name, target)}"
            f.do(f"call void @move_lane({places}, i64 {self._size(f, name)})")

    def _leave(self) -> FunctionText:
        """States of a block that are not done join the pool."""
        f = FunctionText(f"define internal void @join_pool(ptr %own, i64 %slot, i64 %here, {_AROUND}) noinline #0")
        f.label("entry")
        leaving = f.address("i64", "%control", self._leaving)
        with f.counted("%here", "%l", block="lane", again="next", after="all"):
            f.do(f"br i1 {self._raised(f, '%own', '%l')}, label %wait, label %next")
            f.label("wait")
            busy = f.load("i64", f.address("i64", "%control", _BUSY), 8)
            f.do(f"br i1 {f.emit(f'icmp eq i64 {busy}, {self.shape.lanes}')}, label %full, label %search")
            f.label("full")
            self._go(f, leaving)
            f.do(f"call void @pool_round({_AROUND})")
            f.do("br label %wait")
            f.label("search")
            f.do("br label %look")
            f.label("look")
            f.do("%k = phi i64 [ 0, %search ], [ %k.next, %look ]")
            f.do("%k.next = add i64 %k, 1")
            place = f.address("ptr", "%control", f.emit(f"add i64 %k, {_OWNERS}"))
            free = f.emit(f"icmp eq ptr {f.load('ptr', place, 8)}, null")
            f.do(f"br i1 {free}, label %take, label %look")
            f.label("take")
            owner = f.address(self.shape.element, "%own", "%l")
            number = f.load("i64", leaving, 8)
            pair = f.address("ptr", leaving, f.emit(f"shl i64 {number}, 1"))
            f.store("ptr", owner, f.address("ptr", pair, 1), 8)
            f.store("ptr", f.address(self.shape.element, "%pool", "%k"), f.address("ptr", pair, 2), 8)
            self._changed(f, self._leaving, 1)
            f.store("ptr", owner, place, 8)
            f.store("i64", "%slot", f.address("i64", "%control", f.emit(f"add i64 %k, {self._slots}")), 8)
            self._changed(f, _BUSY, 1)
            self._changed(f, f.emit(f"add i64 %slot, {self._waiting}"), 1)
            f.do("br label %next")
        self._go(f, leaving)
        f.do("ret void")
        return f

    def _go(self, f: FunctionText, leaving: str) -> None:
        """Bring what states take along to the pool, of all those that have a lane there by now."""
        moved, gone = f.name()[1:], f.name()[1:]
        number = f.load("i64", leaving, 8)
        f.do(f"br i1 {f.emit(f'icmp eq i64 {number}, 0')}, label %{gone}, label %{moved}")
        f.label(moved)
        for name in self.loop.taken:
            numbers = f"i64 {self._word(f, self.words.start(name))}, i64 {self._size(f, name)}"
            f.do(f"call void @move_lanes(ptr %control, {numbers})")
        f.store("i64", "0", leaving, 8)
        f.do(f"br label %{gone}")
        f.label(gone)

    def _ordered(self) -> FunctionText:
        """Numbers of the next states: those that are alike one after the other."""
        f = FunctionText(
            "define internal void @order_states(ptr %control, ptr %arrays, i64 %first, i64 %n) noinline #0"
        )
        f.label("entry")
        order, counts, keys = (
            f.address("i64", "%control", place) for place in (self._order, self._counts, self._counts + ALIKE + 1)
        )
        size, position = max(self._inputs)
        rows = f.load("ptr", f.address("ptr", "%arrays", position), 8)
        with f.counted(ALIKE + 1, "%c", some=True, block="clear", after="states"):
            f.store("i64", "0", f.address("i64", counts, "%c"), 8)
        with f.counted("%n", "%s", some=True, block="state", after="sums"):
            state = f.emit("add i64 %first, %s")
            count = self._not_zero(f, f.address(self.shape.element, rows, f.emit(f"mul i64 {state}, {size}")), size)
            key = f.emit(f"and i64 {count}, {ALIKE - 1}")
            f.store("i64", key, f.address("i64", keys, "%s"), 8)
            _counted_up(f, f.address("i64", counts, f.emit(f"add i64 {key}, 1")), "1")
        with f.counted(ALIKE, "%k", some=True, block="sum", after="places"):
            before = f.load("i64", f.address("i64", counts, "%k"), 8)
            _counted_up(f, f.address("i64", counts, f.emit("add i64 %k, 1")), before)
        with f.counted("%n", "%i", some=True, block="place"):
            key = f.load("i64", f.address("i64", keys, "%i"), 8)
            there = _counted_up(f, f.address("i64", counts, key), "1")
            f.store("i64", f.emit("add i64 %first, %i"), f.address("i64", order, there), 8)
        f.do("ret void")
        return f

    def _not_zero(self, f: FunctionText, row: str, size: int) -> str:
        """Count of the numbers of a row that are not zero."""
        found, lanes, zero = "0", self.shape.lanes, self.shape.constant(0.0)
        for start in range(0, size - lanes + 1, lanes):
            numbers = f.load(self.shape.real, f.address(self.shape.element, row, start), self.shape.bits // 8)
            truths = f.emit(f"fcmp une {self.shape.real} {numbers}, {zero}")
            mask = f.emit(f"zext i{lanes} {f.emit(f'bitcast {self.shape.truth} {truths} to i{lanes}')} to i64")
            part = f.call("i64", "llvm.ctpop.i64", [("i64", mask)])
            found = f.emit(f"add i64 {found}, {part}")
        return found

    def _end(self) -> FunctionText:
        """Finish the block of a slot, if there is one, all of whose states are back."""
        f = FunctionText(
            f"define internal void @end_block(i64 %slot, ptr %own, {_AROUND}, i64 %first, i64 %count) noinline #0"
        )
        f.label("entry")
        place = f.address("i64", "%control", f.emit(f"add i64 %slot, {self._blocks}"))
        f.do(f"%number = load i64, ptr {place}, align 8")
        f.do(f"br i1 {f.emit('icmp eq i64 %number, 0')}, label %done, label %ends")
        f.label("ends")
        f.store("i64", "0", place, 8)
        block = f.emit("sub i64 %number, 1")
        here, state = self._here(f, block), self._first_of(f, block, "%slot")
        self._part(f, AFTER, "%own", state, here)
        self._rows(f, "store", state, here, "%slot")
        f.do("br label %done")
        f.label("done")
        f.do("ret void")
        return f

    def _entry(self) -> FunctionText:
        """The way in: block after block of states."""
        shape, lanes = self.shape, self.shape.lanes
        f = FunctionText(
            f"define void @{self.entry}(ptr %arrays, i64 %first, i64 %count, ptr noalias %scratch, ptr noalias %table)"
            " #0"
        )
        f.label("entry")
        own_bytes, slots = self._word(f, self.words.own_bytes), self._word(f, self.words.slots)
        f.do(f"%frame = getelementptr i8, ptr %scratch, i64 {self._word(f, Words.FRAME)}")
        f.do(f"%first_slot = getelementptr i8, ptr %scratch, i64 {self._word(f, self.words.common_bytes)}")
        f.do(f"%pool = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 {own_bytes}, {slots}')}")
        f.do(f"%control = getelementptr i8, ptr %pool, i64 {own_bytes}")
        with f.counted(self._leaving + 1, "%w", some=True, block="clear", after="cleared"):
            f.store("i64", "0", f.address("i64", "%control", "%w"), 8)
        rounded = f.emit(f"add i64 %count, {lanes - 1}")
        f.do(f"%blocks = sdiv i64 {rounded}, {lanes}")
        several = f.emit(f"and i1 {f.emit('icmp sgt i64 %blocks, 1')}, {f.emit(f'icmp sgt i64 {slots}, 1')}")
        stay = f.emit(f"select i1 {several}, i32 {int(STAY * lanes)}, i32 0")
        end = f"{_AROUND}, i64 %first, i64 %count)"
        if written_once(self.program, lanes):
            f.do("call void @fill_once(ptr %scratch, ptr %table)")
        with f.counted("%blocks", "%b", block="turn", again="turned", after="all_begun"):
            if self.puts_in_order:
                self._order_window(f)
            f.do("br label %search")
            f.label("search")
            f.do("br label %look")
            f.label("look")
            f.do("%slot = phi i64 [ 0, %search ], [ %slot.next, %not_free ]")
            waiting = f.load("i64", f.address("i64", "%control", f.emit(f"add i64 %slot, {self._waiting}")), 8)
            f.do(f"br i1 {f.emit(f'icmp eq i64 {waiting}, 0')}, label %free, label %not_free")
            f.label("not_free")
            f.do("%slot.next = add i64 %slot, 1")
            f.do(f"br i1 {f.emit(f'icmp slt i64 %slot.next, {slots}')}, label %look, label %none_free")
            f.label("none_free")
            f.do(f"call void @pool_round({_AROUND})")
            f.do("br label %search")
            f.label("free")
            f.do(f"%own = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 %slot, {own_bytes}')}")
            f.do(f"call void @end_block(i64 %slot, ptr %own, {end}")
            number = f.address("i64", "%control", f.emit(f"add i64 %slot, {self._blocks}"))
            f.store("i64", f.emit("add i64 %b, 1"), number, 8)
            if self.puts_in_order:
                self._take_numbers(f)
            here, state = self._here(f, "%b"), self._first_of(f, "%b", "%slot")
            self._rows(f, "load", state, here, "%slot")
            self._part(f, BEFORE, "%own", state, here)
            f.do(f"br i1 {f.emit('icmp eq i64 %b, 0')}, label %fill, label %together")
            f.label("fill")  # lanes of the pool that nobody has taken compute something ordinary
            for name in self.loop.taken:
                places = f"ptr {self._buffer(f, name, '%own')}, ptr {self._buffer(f, name, '%pool')}"
                f.do(f"call void @copy({places}, i64 {self._size(f, name)})")
            f.do("br label %together")
            f.label("together")
            flags = f.load(shape.real, self._buffer(f, self.loop.flag, "%own"), shape.size)
            raised = f.emit(f"fcmp une {shape.real} {flags}, {shape.constant(0.0)}")
            mask = f.emit(f"zext i{lanes} {f.emit(f'bitcast {shape.truth} {raised} to i{lanes}')} to i32")
            working = f.call("i32", "llvm.ctpop.i32", [("i32", mask)])
            f.do(f"br i1 {f.emit(f'icmp sgt i32 {working}, {stay}')}, label %one_pass, label %leave")
            f.label("one_pass")
            self._part(f, PASS, "%own", state, here)
            f.do("br label %together")
            f.label("leave")
            f.do(f"br i1 {f.emit(f'icmp eq i32 {working}, 0')}, label %ends, label %waits")
            f.label("waits")
            f.do(f"call void @join_pool(ptr %own, i64 %slot, i64 {here}, {_AROUND})")
            f.do("br label %turned")
            f.label("ends")
            f.do(f"call void @end_block(i64 %slot, ptr %own, {end}")
            f.do("br label %turned")
        with f.counted(slots, "%s", some=True, block="last", again="ended", after="done"):
            f.do(f"%last_own = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 %s, {own_bytes}')}")
            f.do("br label %until")
            f.label("until")
            waiting = f.load("i64", f.address("i64", "%control", f.emit(f"add i64 %s, {self._waiting}")), 8)
            f.do(f"br i1 {f.emit(f'icmp sgt i64 {waiting}, 0')}, label %goes_on, label %over")
            f.label("goes_on")
            f.do(f"call void @pool_round({_AROUND})")
            f.do("br label %until")
            f.label("over")
            f.do(f"call void @end_block(i64 %s, ptr %last_own, {end}")
            f.do("br label %ended")
        f.do("ret void")
        return f

    def _here(self, f: FunctionText, block: str) -> str:
        """Number of states of a block."""
        lanes = self.shape.lanes
        left = f.emit(f"sub i64 %count, {f.emit(f'mul i64 {block}, {lanes}')}")
        return f.call("i64", "llvm.smin.i64", [("i64", left), ("i64", str(lanes))])

    def _order_window(self, f: FunctionText) -> None:
        """Put states in order before the first block of each window."""
        f.do(f"%place = and i64 %b, {WINDOW // self.shape.lanes - 1}")
        f.do(f"br i1 {f.emit('icmp eq i64 %place, 0')}, label %order, label %ordered")
        f.label("order")
        passed = f.emit(f"mul i64 %b, {self.shape.lanes}")
        left = f.emit(f"sub i64 %count, {passed}")
        left = f.call("i64", "llvm.smin.i64", [("i64", left), ("i64", str(WINDOW))])
        state = f.emit(f"add i64 %first, {passed}")
        f.do(f"call void @order_states(ptr %control, ptr %arrays, i64 {state}, i64 {left})")
        f.do("br label %ordered")
        f.label("ordered")

    def _take_numbers(self, f: FunctionText) -> None:
        """Give a slot the numbers of the states that go next."""
        lanes, kind = self.shape.lanes, f"<{self.shape.lanes} x i64>"
        listed = f.emit(f"add i64 {f.emit(f'mul i64 %place, {lanes}')}, {self._order}")
        f.store(kind, f.load(kind, f.address("i64", "%control", listed), 8), self._list(f, "%slot"), 8)

    def _list(self, f: FunctionText, slot: str) -> str:
        """Address of the numbers of the states of a slot."""
        start = f.emit(f"mul i64 {slot}, {self.shape.lanes}")
        return f.address("i64", "%control", f.emit(f"add i64 {start}, {self._lists}"))

    def _first_of(self, f: FunctionText, block: str, slot: str) -> str:
        """The number of the first state of a block, which is in a slot."""
        if self.puts_in_order:
            return f.load("i64", self._list(f, slot), 8)
        return f.emit(f"add i64 %first, {f.emit(f'mul i64 {block}, {self.shape.lanes}')}")

    def _rows(self, f: FunctionText, way: str, state: str, here: str, slot: str) -> None:
        """Bring rows of the caller to the own memory, or take them back."""
        listed = f", ptr {self._list(f, slot)}" if self.puts_in_order else ""
        wide = {} if listed else wide_buffers(self.program, self.shape)
        for k, buffer in enumerate(self.program.kept):
            if not getattr(buffer, way) or not (buffer.open or buffer.size):
                continue
            rows, own = f.load("ptr", f.address("ptr", "%arrays", k), 8), self._buffer(f, buffer.name, "%own")
            size = self._size(f, buffer.name)
            if not listed:
                rows = f.address(self.shape.element, rows, f.emit(f"mul i64 {state}, {size}"))
            moved = f"ptr {rows}, ptr {own}, i64 {size}, i64 {here}{listed}"
            if way == "store" and buffer.name in wide:
                f.do(f"call void @store_wide_rows({moved}, ptr %frame, i1 {streaming.is_far(f, wide)})")
            else:
                f.do(f"call void @{way}_rows({moved})")


def _counted_up(f: FunctionText, place: str, more: str) -> str:
    """The value of a word before it is counted up."""
    before = f.load("i64", place, 8)
    f.store("i64", f.emit(f"add i64 {before}, {more}"), place, 8)
    return before
