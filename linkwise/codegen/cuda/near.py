"""Which values wait near, in shared memory, and which far away, in local memory.

There is room for so many near ones. When it is full, of the values that wait the one that waits longest goes away
(linear scan); inputs stay.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from linkwise.codegen.cuda.memory import Load, Plan, Step, Store


@dataclass(frozen=True)
class Near:
    """A plan whose slots below ``slots`` are near; the ``far`` ones behind them are not."""

    plan: Plan
    slots: int
    far: int


@dataclass(frozen=True)
class _Life:
    """A value in memory, from step to step; inputs from before the first."""

    value: int
    begin: int
    end: int


def near(plan: Plan, room: int) -> Near:
    """The same steps with slots numbered anew; there are ``room`` near ones, or more if inputs take more.

    Inputs keep their slots. What finds no near one and came from elsewhere is read there again.
    """
    inputs, lives = _lives(plan)
    elsewhere = {step.value: step.slot for step in plan.steps if isinstance(step, Load) and step.slot < 0}
    slots = {life.value: slot for life, slot in inputs}
    far = _scan(inputs, lives, slots, max(room, plan.given), elsewhere)
    count = max(plan.given, 1 + max((slot for value, slot in slots.items() if value not in far), default=-1))
    again = far & elsewhere.keys()
    behind = _behind([life for life in lives if life.value in far - again], slots, count)
    slots.update((value, elsewhere[value]) for value in again)
    steps: list[Step] = []
    for step in plan.steps:
        if isinstance(step, Load) and step.slot >= 0:
            steps.append(replace(step, slot=slots[step.value]))
        elif not isinstance(step, Store):
            steps.append(step)
        elif step.value not in again:
            steps.append(replace(step, slot=slots[step.value]))
    stores = plan.stores - sum(isinstance(step, Store) and step.value in again for step in plan.steps)
    return Near(replace(plan, steps=tuple(steps), slots=count + behind, stores=stores), count, behind)


def _lives(plan: Plan) -> tuple[list[tuple[_Life, int]], list[_Life]]:
    """Those of inputs, with their slots, and all others in the order in which they begin."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    given: dict[int, int] = {}
    for k, step in enumerate(plan.steps):
        if isinstance(step, Store):
            begin[step.value] = k
        elif isinstance(step, Load) and step.slot >= 0:
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
    """Near slots into ``slots``, the first ones first; the values that find none, those from elsewhere before all."""
    free = sorted(set(range(room)) - {slot for _, slot in inputs})
    ending = [(life.end, life.value) for life, _ in inputs]
    heapq.heapify(ending)
    waiting: dict[int, _Life] = {}
    far: set[int] = set()
    for life in lives:
        while ending and ending[0][0] < life.begin:
            value = heapq.heappop(ending)[1]
            if value not in far:
                heapq.heappush(free, slots[value])
                waiting.pop(value, None)
        if not free:
            longest = max((*waiting.values(), life), key=lambda each: (each.value in elsewhere, each.end))
            far.add(longest.value)
            if longest is life:
                continue
            heapq.heappush(free, slots[longest.value])
            del waiting[longest.value]
        slots[life.value] = heapq.heappop(free)
        heapq.heappush(ending, (life.end, life.value))
        waiting[life.value] = life
    return far


def _behind(lives: Sequence[_Life], slots: dict[int, int], first: int) -> int:
    """Slots from ``first`` on; how many."""
    free: list[int] = []
    ending: list[tuple[int, int]] = []
    count = 0
    for life in lives:
        while ending and ending[0][0] < life.begin:
            free.append(heapq.heappop(ending)[1])
        if not free:
            free.append(first + count)
            count += 1
        slots[life.value] = free.pop()
        heapq.heappush(ending, (life.end, slots[life.value]))
    return count
