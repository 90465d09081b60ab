"""Entry of programs in which states wait for each other: lanes that are done make room for others.

States side by side in lanes go through a loop together, until the last of them is done; half of the lanes then compute
nothing for most of the time. Here a block of states goes through the loop by itself only while most of its lanes have
work. Those that are left join a *pool*, a block of lanes from several blocks; whenever a lane of it is done, its
numbers go back where they came from, and another state takes the lane. Blocks wait in *slots* until all of their states
are back, and go on to the next loop; the first slot that is free takes the next block, so that few are in use and stay
in near memory. Every loop has a pool. Every state is computed as it would be by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.targets.llvm.ir import FunctionText, LaneShape
from linkwise.targets.llvm.program_memory import SLOTS, Words
from linkwise.trace.program import Program, Statement
from linkwise.trace.waiting import WaitingLoops

STAY = 1 / 2
"""Part of a block's lanes that must have work for it to stay out of the pool."""

_TOGETHER = 8  # numbers of a lane that are moved in a row
_AROUND = "ptr %pools, ptr %control, ptr %scratch, ptr %frame, ptr %table, ptr %arrays"
_BLOCKS = "i64 %first, i64 %count"


def parts_of(loops: WaitingLoops) -> dict[str, Sequence[Statement]]:
    """Statements of the program's functions: parts around loops, and passes of these."""
    found: dict[str, Sequence[Statement]] = {f"part{k}": part for k, part in enumerate(loops.parts)}
    return found | {f"pass{k}": loop.body for k, loop in enumerate(loops.loops)}


class PoolWriter:
    """Writes the functions around the parts of a program.

    Args:
        program: the program.
        loops: those in which its states wait.
        shape: of values, in several lanes.
        entry: the name of the way in.
    """

    def __init__(self, program: Program, loops: WaitingLoops, shape: LaneShape, entry: str) -> None:
        self.program, self.loops, self.shape, self.entry = program, loops, shape, entry
        self.words = Words(program)
        self.open = {buffer.name: buffer.open for buffer in program.buffers}
        # Words of the control. Of each pool: how many lanes are taken, whether it is filled, whose lanes they are, and
        # in which slot. Then of each slot: how many states it waits for, the number of its block, its next part.
        self.count, self._each = len(loops.loops), 2 + 2 * shape.lanes
        self._waiting = self.count * self._each
        self._blocks, self._stages = self._waiting + SLOTS, self._waiting + 2 * SLOTS
        self._stay = self._waiting + 3 * SLOTS

    def functions(self) -> list[FunctionText]:
        """All functions; the last one is the way in."""
        found = [self._moved()]
        for k in range(self.count):
            found += [self._round(k), self._leave(k)]
        found += [self._stage(k) for k in reversed(range(self.count + 1))]
        return [*found, self._resumed(), self._any_round(), self._entry()]

    # Places.
    def _word(self, f: FunctionText, index: int) -> str:
        return f.load("i64", f.address("i64", "%table", index), 8)

    def _buffer(self, f: FunctionText, name: str, own: str) -> str:
        """Rows that no block waits with are the same for all: at the beginning of the scratch memory."""
        home = own if name in self.loops.waits else "%scratch"
        return f.address(self.shape.real, home, self._word(f, self.words.start(name)))

    def _size(self, f: FunctionText, name: str) -> str:
        return self._word(f, self.words.size(name)) if self.open[name] else str(self.program.sizes[name])

    def _part(self, f: FunctionText, name: str, own: str, state: str = "0", here: str = "") -> None:
        """Run a part of the program on one block."""
        kept = [self._buffer(f, buffer.name, own) for buffer in self.program.kept]
        pointers = ", ".join(f"ptr {p}" for p in [*kept, own, "%frame", "%table", "%arrays"])
        f.do(f"call void @{name}({pointers}, i64 {state}, i64 {here or self.shape.lanes})")

    def _pool(self, f: FunctionText, k: int) -> str:
        """The memory of a pool."""
        start = f.emit(f"mul i64 {self._word(f, self.words.own_bytes)}, {k}")
        return f.emit(f"getelementptr i8, ptr %pools, i64 {start}")

    def _flag(self, f: FunctionText, k: int, own: str) -> str:
        """The place of a loop's flag."""
        return self._buffer(f, self.loops.loops[k].flag, own)

    def _raised(self, f: FunctionText, k: int, own: str, lane: str) -> str:
        """Whether the flag of one lane is up."""
        element = self.shape.element
        flag = f.load(element, f.address(element, self._flag(f, k, own), lane), self.shape.bits // 8)
        return f.emit(f"fcmp une {element} {flag}, {LaneShape(self.shape.bits, 1).constant(0.0)}")

    def _changed(self, f: FunctionText, index: str | int, by: int) -> None:
        """Count a word of the control up or down."""
        place = f.address("i64", "%control", index)
        f.store("i64", f.emit(f"add i64 {f.load('i64', place, 8)}, {by}"), place, 8)

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

    def _round(self, k: int) -> FunctionText:
        """One pass for a pool; lanes that are done give their numbers back."""
        f = FunctionText(f"define internal void @pool_round{k}({_AROUND}) noinline #0")
        f.label("entry")
        pool, busy = self._pool(f, k), k * self._each
        self._part(f, f"pass{k}", pool)
        with f.counted(self.shape.lanes, "%l", some=True, block="lane", again="next", after="done"):
            place = f.address("ptr", "%control", f.emit(f"add i64 %l, {busy + 2}"))
            owner = f.load("ptr", place, 8)
            f.do(f"br i1 {f.emit(f'icmp eq ptr {owner}, null')}, label %next, label %taken")
            f.label("taken")
            f.do(f"br i1 {self._raised(f, k, pool, '%l')}, label %next, label %finished")
            f.label("finished")
            self._move(f, self.loops.loops[k].brought, f.address(self.shape.element, pool, "%l"), owner)
            own_slot = f.emit(f"add i64 %l, {busy + 2 + self.shape.lanes}")
            slot = f.load("i64", f.address("i64", "%control", own_slot), 8)
            f.store("ptr", "null", place, 8)
            self._changed(f, busy, -1)
            self._changed(f, f.emit(f"add i64 {slot}, {self._waiting}"), -1)
            f.do("br label %next")
        f.do("ret void")
        return f

    def _move(self, f: FunctionText, names: tuple[str, ...], source: str, target: str) -> None:
        """Numbers of some buffers from one lane to another; both are known by where they are in the first value."""
        for name in names:
            places = f"ptr {self._buffer(f, name, source)}, ptr {self._buffer(f, name, target)}"
            f.do(f"call void @move_lane({places}, i64 {self._size(f, name)})")

    def _leave(self, k: int) -> FunctionText:
        """States of a block that are not done join a pool."""
        f = FunctionText(f"define internal void @join_pool{k}(ptr %own, i64 %slot, i64 %here, {_AROUND}) noinline #0")
        f.label("entry")
        pool, busy_at = self._pool(f, k), k * self._each
        with f.counted("%here", "%l", block="lane", again="next", after="done"):
            f.do(f"br i1 {self._raised(f, k, '%own', '%l')}, label %wait, label %next")
            f.label("wait")
            busy = f.load("i64", f.address("i64", "%control", busy_at), 8)
            f.do(f"br i1 {f.emit(f'icmp eq i64 {busy}, {self.shape.lanes}')}, label %full, label %search")
            f.label("full")
            f.do(f"call void @pool_round{k}({_AROUND})")
            f.do("br label %wait")
            f.label("search")
            f.do("br label %look")
            f.label("look")
            f.do("%k = phi i64 [ 0, %search ], [ %k.next, %look ]")
            f.do("%k.next = add i64 %k, 1")
            place = f.address("ptr", "%control", f.emit(f"add i64 %k, {busy_at + 2}"))
            free = f.emit(f"icmp eq ptr {f.load('ptr', place, 8)}, null")
            f.do(f"br i1 {free}, label %take, label %look")
            f.label("take")
            owner = f.address(self.shape.element, "%own", "%l")
            self._move(f, self.loops.loops[k].taken, owner, f.address(self.shape.element, pool, "%k"))
            f.store("ptr", owner, place, 8)
            own_slot = f.emit(f"add i64 %k, {busy_at + 2 + self.shape.lanes}")
            f.store("i64", "%slot", f.address("i64", "%control", own_slot), 8)
            self._changed(f, busy_at, 1)
            self._changed(f, f.emit(f"add i64 %slot, {self._waiting}"), 1)
            f.do("br label %next")
        f.do("ret void")
        return f

    def _of_slot(self, f: FunctionText, slot: str, first: int) -> str:
        """The place of a word of a slot."""
        return f.address("i64", "%control", f.emit(f"add i64 {slot}, {first}"))

    def _stage(self, k: int) -> FunctionText:
        """A part of the program for the block of a slot, the loop after it, and the rest if no state waits."""
        shape, lanes = self.shape, self.shape.lanes
        f = FunctionText(f"define internal void @stage{k}(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS}) noinline #0")
        f.label("entry")
        number = f.load("i64", self._of_slot(f, "%slot", self._blocks), 8)
        state, here = self._states(f, f.emit(f"sub i64 {number}, 1"))
        if k == 0:
            self._rows(f, "load", state, here)
        self._part(f, f"part{k}", "%own", state, here)
        if k == self.count:
            self._rows(f, "store", state, here)
            f.store("i64", "0", self._of_slot(f, "%slot", self._blocks), 8)
            f.do("ret void")
            return f
        filled = f.address("i64", "%control", k * self._each + 1)
        empty = f.emit(f"icmp eq i64 {f.load('i64', filled, 8)}, 0")
        f.do(f"br i1 {empty}, label %fill, label %together")
        f.label("fill")  # lanes of the pool that nobody has taken compute something ordinary
        f.store("i64", "1", filled, 8)
        pool = self._pool(f, k)
        for name in self.loops.loops[k].taken:
            places = f"ptr {self._buffer(f, name, '%own')}, ptr {self._buffer(f, name, pool)}"
            f.do(f"call void @copy({places}, i64 {self._size(f, name)})")
        f.do("br label %together")
        f.label("together")
        flags = f.load(shape.real, self._flag(f, k, "%own"), shape.size)
        raised = f.emit(f"fcmp une {shape.real} {flags}, {shape.constant(0.0)}")
        mask = f.emit(f"zext i{lanes} {f.emit(f'bitcast {shape.truth} {raised} to i{lanes}')} to i32")
        working = f.emit(f"zext i32 {f.call('i32', 'llvm.ctpop.i32', [('i32', mask)])} to i64")
        stay = f.load("i64", f.address("i64", "%control", self._stay), 8)
        f.do(f"br i1 {f.emit(f'icmp sgt i64 {working}, {stay}')}, label %one_pass, label %leave")
        f.label("one_pass")
        self._part(f, f"pass{k}", "%own", state, here)
        f.do("br label %together")
        f.label("leave")
        f.do(f"br i1 {f.emit(f'icmp eq i64 {working}, 0')}, label %goes_on, label %waits")
        f.label("waits")
        f.store("i64", str(k + 1), self._of_slot(f, "%slot", self._stages), 8)
        f.do(f"call void @join_pool{k}(ptr %own, i64 %slot, i64 {here}, {_AROUND})")
        f.do("ret void")
        f.label("goes_on")
        f.do(f"call void @stage{k + 1}(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS})")
        f.do("ret void")
        return f

    def _resumed(self) -> FunctionText:
        """The next part for the block of a slot, if there is one, all of whose states are back."""
        f = FunctionText(f"define internal void @resume(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS}) noinline #0")
        f.label("entry")
        number = f.load("i64", self._of_slot(f, "%slot", self._blocks), 8)
        f.do(f"br i1 {f.emit(f'icmp eq i64 {number}, 0')}, label %done, label %goes_on")
        f.label("goes_on")
        stage = f.load("i64", self._of_slot(f, "%slot", self._stages), 8)
        cases = " ".join(f"i64 {k}, label %next{k}" for k in range(1, self.count + 1))
        f.do(f"switch i64 {stage}, label %done [ {cases} ]")
        for k in range(1, self.count + 1):
            f.label(f"next{k}")
            f.do(f"call void @stage{k}(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS})")
            f.do("br label %done")
        f.label("done")
        f.do("ret void")
        return f

    def _any_round(self) -> FunctionText:
        """One pass for the pool with the most states, of several the last."""
        f = FunctionText(f"define internal void @any_round({_AROUND}) noinline #0")
        f.label("entry")
        busy = [f.load("i64", f.address("i64", "%control", k * self._each), 8) for k in range(self.count)]
        best, most = "0", busy[0]
        for k in range(1, self.count):
            more = f.emit(f"icmp sge i64 {busy[k]}, {most}")
            best = f.emit(f"select i1 {more}, i64 {k}, i64 {best}")
            most = f.emit(f"select i1 {more}, i64 {busy[k]}, i64 {most}")
        cases = " ".join(f"i64 {k}, label %pool{k}" for k in range(1, self.count))
        f.do(f"switch i64 {best}, label %pool0 [ {cases} ]")
        for k in range(self.count):
            f.label(f"pool{k}")
            f.do(f"call void @pool_round{k}({_AROUND})")
            f.do("ret void")
        return f

    def _entry(self) -> FunctionText:
        """The way in: block after block of states."""
        lanes = self.shape.lanes
        f = FunctionText(
            f"define void @{self.entry}(ptr %arrays, i64 %first, i64 %count, ptr noalias %scratch, ptr noalias %table)"
            " #0"
        )
        f.label("entry")
        own_bytes, slots = self._word(f, self.words.own_bytes), self._word(f, self.words.slots)
        f.do(f"%frame = getelementptr i8, ptr %scratch, i64 {self._word(f, Words.FRAME)}")
        f.do(f"%first_slot = getelementptr i8, ptr %scratch, i64 {self._word(f, self.words.common_bytes)}")
        f.do(f"%pools = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 {own_bytes}, {slots}')}")
        f.do(f"%control = getelementptr i8, ptr %pools, i64 {f.emit(f'mul i64 {own_bytes}, {self.count}')}")
        with f.counted(self._stay, "%w", some=True, block="clear", after="cleared"):
            f.store("i64", "0", f.address("i64", "%control", "%w"), 8)
        rounded = f.emit(f"add i64 %count, {lanes - 1}")
        f.do(f"%blocks = sdiv i64 {rounded}, {lanes}")
        several = f.emit(f"and i1 {f.emit('icmp sgt i64 %blocks, 1')}, {f.emit(f'icmp sgt i64 {slots}, 1')}")
        stay = f.emit(f"select i1 {several}, i64 {int(STAY * lanes)}, i64 0")
        f.store("i64", stay, f.address("i64", "%control", self._stay), 8)
        with f.counted("%blocks", "%b", block="turn", again="turned", after="all_begun"):
            f.do("br label %search")
            f.label("search")
            f.do("br label %look")
            f.label("look")
            f.do("%slot = phi i64 [ 0, %search ], [ %slot.next, %not_free ]")
            waiting = f.load("i64", self._of_slot(f, "%slot", self._waiting), 8)
            f.do(f"br i1 {f.emit(f'icmp eq i64 {waiting}, 0')}, label %back, label %not_free")
            f.label("not_free")
            f.do("%slot.next = add i64 %slot, 1")
            f.do(f"br i1 {f.emit(f'icmp slt i64 %slot.next, {slots}')}, label %look, label %none_free")
            f.label("none_free")
            f.do(f"call void @any_round({_AROUND})")
            f.do("br label %search")
            f.label("back")
            f.do(f"%own = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 %slot, {own_bytes}')}")
            f.do(f"call void @resume(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS})")
            number = self._of_slot(f, "%slot", self._blocks)
            ended = f.emit(f"icmp eq i64 {f.load('i64', number, 8)}, 0")
            f.do(f"br i1 {ended}, label %free, label %not_free")
            f.label("free")
            f.store("i64", f.emit("add i64 %b, 1"), number, 8)
            f.do(f"call void @stage0(i64 %slot, ptr %own, {_AROUND}, {_BLOCKS})")
            f.do("br label %turned")
        for k in range(self.count):  # all blocks go through one loop after the other
            index = f"%s{k}"
            with f.counted(slots, index, some=True, block=f"last{k}", again=f"ended{k}", after=f"done{k}"):
                f.do(f"%last_own{k} = getelementptr i8, ptr %first_slot, i64 {f.emit(f'mul i64 {index}, {own_bytes}')}")
                f.do(f"br label %until{k}")
                f.label(f"until{k}")
                waits = f.emit(f"icmp sgt i64 {f.load('i64', self._of_slot(f, index, self._waiting), 8)}, 0")
                f.do(f"br i1 {waits}, label %waits{k}, label %over{k}")
                f.label(f"waits{k}")
                here = f.emit(f"icmp eq i64 {f.load('i64', self._of_slot(f, index, self._stages), 8)}, {k + 1}")
                f.do(f"br i1 {here}, label %goes_on{k}, label %ended{k}")
                f.label(f"goes_on{k}")
                f.do(f"call void @pool_round{k}({_AROUND})")
                f.do(f"br label %until{k}")
                f.label(f"over{k}")
                f.do(f"call void @resume(i64 {index}, ptr %last_own{k}, {_AROUND}, {_BLOCKS})")
                f.do(f"br label %ended{k}")
        f.do("ret void")
        return f

    def _states(self, f: FunctionText, block: str) -> tuple[str, str]:
        """Number of the first state of a block, and how many there are."""
        lanes = self.shape.lanes
        passed = f.emit(f"mul i64 {block}, {lanes}")
        left = f.emit(f"sub i64 %count, {passed}")
        full = f.emit(f"icmp sge i64 {left}, {lanes}")
        return f.emit(f"add i64 %first, {passed}"), f.emit(f"select i1 {full}, i64 {lanes}, i64 {left}")

    def _rows(self, f: FunctionText, way: str, state: str, here: str) -> None:
        """Bring rows of the caller to the own memory, or take them back."""
        for k, buffer in enumerate(self.program.kept):
            if not getattr(buffer, way) or not (buffer.open or buffer.size):
                continue
            size = self._size(f, buffer.name)
            rows = f.load("ptr", f.address("ptr", "%arrays", k), 8)
            there = f.address(self.shape.element, rows, f.emit(f"mul i64 {state}, {size}"))
            own = self._buffer(f, buffer.name, "%own")
            f.do(f"call void @{way}_rows(ptr {there}, ptr {own}, i64 {size}, i64 {here})")
