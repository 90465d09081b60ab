"""An order of the instructions that keeps few values alive at a time.

What is alive must be in a register or in memory, and a thread has at most 255 registers. No single rule is best for
all programs: several are tried, and the order with the fewest values alive at its worst place is taken.
The compiler reorders again, for speed, but from a better beginning; and what goes to memory is decided in this order.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

from linkwise.targets.cuda.instructions import Instruction

_LONG = 10_000  # instructions above which fewer orders are tried


def ordered(
    instructions: Sequence[Instruction], in_memory: Collection[int], wanted: Sequence[int]
) -> list[Instruction]:
    """Instructions, reordered.

    Args:
        instructions: in any valid order.
        in_memory: values that are read from memory when needed and so take no register meanwhile.
        wanted: the values of the results.
    """
    found = [[instructions[k] for k in order] for order in orders(instructions, in_memory, wanted)]
    return min(found, key=lambda order: most_alive(order, in_memory))


def orders(instructions: Sequence[Instruction], in_memory: Collection[int], wanted: Sequence[int]) -> list[list[int]]:
    """Orders that are tried, of the instructions' numbers."""
    graph = _Graph(instructions)
    roots = [graph.home[value] for value in wanted if value in graph.home]
    beginnings = [graph.by_demand(roots, "last first"), graph.by_demand(roots, "hungriest first")]
    if len(instructions) <= _LONG:
        beginnings += [list(range(len(instructions))), graph.by_demand(roots, "first first")]
    return [order for begin in beginnings for order in (begin, graph.ending_lives(begin, in_memory))]


def most_alive(order: Sequence[Instruction], in_memory: Collection[int]) -> int:
    """Largest number of values that are alive at once, those in memory not counted."""
    last = {value: k for k, each in enumerate(order) for value in each.reads}
    alive, most = 0, 0
    for k, each in enumerate(order):
        alive -= sum(1 for value in each.reads if last[value] == k and value not in in_memory)
        alive += sum(1 for value in each.writes if value in last)
        most = max(most, alive)
    return most


class _Graph:
    """Dependencies: the instruction that computes what each of the others reads."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.home = {value: k for k, each in enumerate(instructions) for value in each.writes}
        self.needs = [
            list(dict.fromkeys(self.home[value] for value in each.reads if value in self.home)) for each in instructions
        ]
        self.readers: dict[int, set[int]] = {}
        for k, each in enumerate(instructions):
            for value in each.reads:
                self.readers.setdefault(value, set()).add(k)

    def by_demand(self, roots: Sequence[int], rule: str) -> list[int]:
        """Depth first from the instructions that make results: each just before its first reader."""
        hunger = self._hunger() if rule == "hungriest first" else []
        order: list[int] = []
        placed = [False] * len(self.instructions)
        for root in (*roots, *range(len(self.instructions))):
            stack = [root]
            while stack:
                k = stack[-1]
                waiting = [n for n in self.needs[k] if not placed[n]]
                if placed[k] or not waiting:
                    stack.pop()
                    if not placed[k]:
                        placed[k] = True
                        order.append(k)
                    continue
                if hunger:
                    waiting.sort(key=hunger.__getitem__)
                elif rule == "first first":
                    waiting.reverse()
                stack.extend(waiting)
        return order

    def _hunger(self) -> list[int]:
        """Registers to compute each instruction, were nothing shared (Sethi and Ullman)."""
        hunger: list[int] = []
        for needs in self.needs:
            each = sorted((hunger[n] for n in needs), reverse=True)
            hunger.append(max([1, *(held + registers for held, registers in enumerate(each))]))
        return hunger

    def ending_lives(self, begin: Sequence[int], in_memory: Collection[int]) -> list[int]:
        """Order that always takes what ends the most lives and begins the fewest; else the order ``begin``."""
        rank = {k: place for place, k in enumerate(begin)}
        waiting = [len(needs) for needs in self.needs]
        left = {value: set(by) for value, by in self.readers.items()}

        def growth(k: int) -> int:
            each = self.instructions[k]
            begun = sum(1 for value in each.writes if value in self.readers)
            return begun - sum(1 for value in each.reads if len(left[value]) == 1 and value not in in_memory)

        ready: list[tuple[int, int, int]] = []

        def offer(k: int) -> None:
            heapq.heappush(ready, (growth(k), rank[k], k))

        for k, count in enumerate(waiting):
            if count == 0:
                offer(k)
        done = [False] * len(self.instructions)
        order: list[int] = []
        while ready:
            claimed, _, k = heapq.heappop(ready)
            if done[k]:
                continue
            if growth(k) != claimed:  # it has changed since it was put there
                offer(k)
                continue
            done[k] = True
            order.append(k)
            for value in self.instructions[k].reads:
                left[value].discard(k)
                if len(left[value]) == 1:
                    last = next(iter(left[value]))
                    if waiting[last] == 0:
                        offer(last)
            for reader in {reader for value in self.instructions[k].writes for reader in self.readers.get(value, ())}:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    offer(reader)
        return order
