"""Plan of the values that wait in memory while registers run out, and of those among them in shared memory.

A compiler that runs out of registers spills to local memory, which is device memory behind a cache: with some
hundred threads and a kilobyte each, the cache overflows and the kernel waits for memory. The memory on the chip that
holds the rows of the batch is nearer, and much of it is free again once a row has been read. So values are put there by
plan: whenever too many are alive, the one whose next use is furthest away goes (Belady's rule); it is
written once, and read back where it is needed.

Where there is room for so many shared ones only and it is full, of the values that wait the one that waits longest goes
away, to local memory (linear scan); inputs stay.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence

from linkwise.dataclass import dataclass, replace
from linkwise.targets.cuda.instructions import Instruction
from linkwise.targets.shared_places import shared_places

_NEVER = 1 << 60


@dataclass(frozen=True)
class Reload:
    """A value from its slot to a register."""

    value: int
    slot: int


@dataclass(frozen=True)
class Spill:
    """A value from its register to a slot."""

    value: int
    slot: int


Step = Instruction | Reload | Spill


@dataclass(frozen=True)
class SpillPlan:
    """Instructions with loads and stores between them.

    Slots below ``given`` are those the inputs lie in; the others are extra.
    """

    steps: tuple[Step, ...]
    given: int
    slots: int
    stores: int


def plan(
    order: Sequence[Instruction],
    inputs: Mapping[int, int],
    limit: int,
    *,
    reusable: Collection[int],
    registers_only: Collection[int] = (),
) -> SpillPlan:
    """Loads and stores such that at most ``limit`` values are in registers at once.

    Args:
        order: the instructions.
        inputs: for each input value the slot it lies in; a negative one is a place further away, from which it is read
            when it is first needed.
        limit: values in registers.
        reusable: input slots that may be overwritten once nothing reads them any more.
        registers_only: values that cannot be stored (truth values).
    """
    return _Planner(order, inputs, limit, reusable, registers_only).run()


class _Planner:
    def __init__(
        self,
        order: Sequence[Instruction],
        inputs: Mapping[int, int],
        limit: int,
        reusable: Collection[int],
        registers_only: Collection[int],
    ) -> None:
        self.order, self.limit, self.reusable = order, limit, reusable
        self.kept = set(registers_only)
        self.uses: dict[int, list[int]] = {}
        for k, each in enumerate(order):
            for value in each.reads:
                self.uses.setdefault(value, []).append(k)
        self.next = dict.fromkeys(self.uses, 0)  # place in `uses` of the next one
        self.slot = dict(inputs)
        self.given = self.slots = 1 + max(inputs.values(), default=-1)
        self.free: list[int] = []
        self.registers: set[int] = set()
        self.steps: list[Step] = []
        self.stores = 0

    def run(self) -> SpillPlan:
        for k, each in enumerate(self.order):
            for value in each.reads:
                if value not in self.registers:
                    self.steps.append(Reload(value, self.slot[value]))
                    self.registers.add(value)
            for value in each.reads:
                if self._next_use(value, k + 1) == _NEVER:
                    self._end(value)
            wanted = [value for value in each.writes if self._next_use(value, k + 1) < _NEVER]
            self._make_room(len(each.writes), set(each.reads), k)
            self.steps.append(each)
            self.registers.update(wanted)
        return SpillPlan(tuple(self.steps), self.given, self.slots, self.stores)

    def _next_use(self, value: int, after: int) -> int:
        uses = self.uses.get(value, ())
        place = self.next.get(value, 0)
        while place < len(uses) and uses[place] < after:
            place += 1
        if uses:
            self.next[value] = place
        return uses[place] if place < len(uses) else _NEVER

    def _end(self, value: int) -> None:
        self.registers.discard(value)
        slot = self.slot.pop(value, None)
        if slot is not None and (slot >= self.given or slot in self.reusable):
            self.free.append(slot)

    def _make_room(self, count: int, needed: set[int], k: int) -> None:
        while len(self.registers) + count > self.limit:
            away = [value for value in self.registers if value not in needed and value not in self.kept]
            if not away:
                return
            # At equal distance, one that is in memory already: it need not be stored.
            value = max(away, key=lambda v: (self._next_use(v, k + 1), self._is_here(v), v))
            self.registers.discard(value)
            if not self._is_here(value):
                self.slot[value] = self._new_slot()
                self.steps.append(Spill(value, self.slot[value]))
                self.stores += 1

    def _is_here(self, value: int) -> bool:
        return self.slot.get(value, -1) >= 0

    def _new_slot(self) -> int:
        if self.free:
            return self.free.pop()
        self.slots += 1
        return self.slots - 1


@dataclass(frozen=True)
class SharedPlan:
    """A plan whose slots below ``slots`` are shared; the ``local`` ones behind them are not."""

    plan: SpillPlan
    slots: int
    local: int


@dataclass(frozen=True)
class _Life:
    """A value in memory, from step to step; inputs from before the first."""

    value: int
    begin: int
    end: int


def with_some_local(plan: SpillPlan, room: int) -> SharedPlan:
    """Plan of whose extra slots ``room`` are shared: the values that wait longest are in local memory."""
    own = {step.value for step in plan.steps if isinstance(step, Spill) and step.slot >= plan.given}
    lives = [life for life in _lives(plan)[1] if life.value in own]
    places: dict[int, int] = {}
    local = _scan((), lives, places, room, ())
    shared = 1 + max((place for value, place in places.items() if value not in local), default=-1)
    far, behind = shared_places(((life.value, life.begin, life.end) for life in lives if life.value in local), shared)
    places |= far
    steps = tuple(
        replace(step, slot=plan.given + places[step.value])
        if not isinstance(step, Instruction) and step.value in own
        else step
        for step in plan.steps
    )
    slots = plan.given + shared
    return SharedPlan(replace(plan, steps=steps, slots=slots + behind), slots, behind)


def with_shared_slots(plan: SpillPlan, room: int) -> SharedPlan:
    """Plan with slots numbered anew; there are ``room`` shared ones, or more if inputs take more.

    Inputs keep their slots. What finds no shared one and came from elsewhere is read there again.
    """
    inputs, lives = _lives(plan)
    elsewhere = {step.value: step.slot for step in plan.steps if isinstance(step, Reload) and step.slot < 0}
    slots = {life.value: slot for life, slot in inputs}
    local = _scan(inputs, lives, slots, max(room, plan.given), elsewhere)
    count = max(plan.given, 1 + max((slot for value, slot in slots.items() if value not in local), default=-1))
    again = local & elsewhere.keys()
    waiting = ((life.value, life.begin, life.end) for life in lives if life.value in local - again)
    far, behind = shared_places(waiting, count)
    slots |= far | {value: elsewhere[value] for value in again}
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, Reload) and step.slot >= 0:
            steps.append(replace(step, slot=slots[step.value]))
        elif not isinstance(step, Spill):
            steps.append(step)
        elif step.value not in again:
            steps.append(replace(step, slot=slots[step.value]))
    stores = plan.stores - sum(isinstance(step, Spill) and step.value in again for step in plan.steps)
    return SharedPlan(replace(plan, steps=tuple(steps), slots=count + behind, stores=stores), count, behind)


def _lives(plan: SpillPlan) -> tuple[list[tuple[_Life, int]], list[_Life]]:
    """Lives of inputs, with their slots, and all others in the order in which they begin."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    given: dict[int, int] = {}
    for k, step in enumerate(plan.steps):
        if isinstance(step, Spill):
            begin[step.value] = k
        elif isinstance(step, Reload) and step.slot >= 0:
            end[step.value] = k
            if step.value not in begin:
                given[step.value] = step.slot
    inputs = [(_Life(value, -1, end[value]), slot) for value, slot in given.items()]
    return inputs, [_Life(value, k, end.get(value, k)) for value, k in begin.items()]


def _scan(
    inputs: Sequence[tuple[_Life, int]],
    lives: Sequence[_Life],
    slots: dict[int, int],
    room: int,
    elsewhere: Collection[int],
) -> set[int]:
    """Shared slots into ``slots``, the first ones first; the values that find none, those from elsewhere before all."""
    free = sorted(set(range(room)) - {slot for _, slot in inputs})
    ending = [(life.end, life.value) for life, _ in inputs]
    heapq.heapify(ending)
    waiting: dict[int, _Life] = {}
    local: set[int] = set()
    for life in lives:
        while ending and ending[0][0] < life.begin:
            value = heapq.heappop(ending)[1]
            if value not in local:
                heapq.heappush(free, slots[value])
                waiting.pop(value, None)
        if not free:
            longest = max((*waiting.values(), life), key=lambda each: (each.value in elsewhere, each.end))
            local.add(longest.value)
            if longest is life:
                continue
            heapq.heappush(free, slots[longest.value])
            del waiting[longest.value]
        slots[life.value] = heapq.heappop(free)
        heapq.heappush(ending, (life.end, life.value))
        waiting[life.value] = life
    return local
