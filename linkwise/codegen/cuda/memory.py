"""Which values wait in shared memory while registers run out.

A compiler that runs out of registers spills to local memory, which is device memory behind a cache: with some
hundred threads and a kilobyte each, the cache overflows and the kernel waits for memory. The memory on the chip that
holds the rows of the batch is nearer, and much of it is free again once a row has been read. So values are put there by
plan: whenever too many are alive, the one whose next use is furthest away goes (Belady's rule); it is
written once, and read back where it is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from linkwise.codegen.cuda.instructions import Instruction

_NEVER = 1 << 60


@dataclass(frozen=True)
class Load:
    """A value from its slot to a register."""

    value: int
    slot: int


@dataclass(frozen=True)
class Store:
    """A value from its register to a slot."""

    value: int
    slot: int


Step = Instruction | Load | Store


@dataclass(frozen=True)
class Plan:
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
) -> Plan:
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

    def run(self) -> Plan:
        for k, each in enumerate(self.order):
            for value in each.reads:
                if value not in self.registers:
                    self.steps.append(Load(value, self.slot[value]))
                    self.registers.add(value)
            for value in each.reads:
                if self._next_use(value, k + 1) == _NEVER:
                    self._end(value)
            wanted = [value for value in each.writes if self._next_use(value, k + 1) < _NEVER]
            self._make_room(len(each.writes), set(each.reads), k)
            self.steps.append(each)
            self.registers.update(wanted)
        return Plan(tuple(self.steps), self.given, self.slots, self.stores)

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
                self.steps.append(Store(value, self.slot[value]))
                self.stores += 1

    def _is_here(self, value: int) -> bool:
        return self.slot.get(value, -1) >= 0

    def _new_slot(self) -> int:
        if self.free:
            return self.free.pop()
        self.slots += 1
        return self.slots - 1
