"""Choice of the values that wait in registers; others wait in memory.

A value that is read again later than all others gives up its register (Belady's rule, which is the best there is for a
given order of operations). Inputs and sines are in memory anyway, so that costs them a load at the next use; what was
computed is stored besides, once. LLVM's allocator makes no such difference, and stores half as much again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Step = tuple[Sequence[int], int | None, int]
"""Values that a step reads, the value that it computes, and the registers that are free for values behind it."""


class Residence(NamedTuple):
    """The values that give up their registers behind each step."""

    leaving: dict[int, list[int]]
    stored: dict[int, int]  # those of them that were computed -> the last step that reads them


def residence(steps: Iterable[Step]) -> Residence:
    """Belady's choice."""
    steps = list(steps)
    last: dict[int, int] = {}
    later: dict[int, list[int]] = {}  # steps that read a value, the next one last
    for place in range(len(steps) - 1, -1, -1):
        for value in steps[place][0]:
            later.setdefault(value, []).append(place)
            last.setdefault(value, place)
    held: dict[int, int] = {}  # value in a register -> step that reads it next
    order: list[tuple[int, int]] = []
    computed: set[int] = set()
    leaving: dict[int, list[int]] = {}
    stored: dict[int, int] = {}
    for place, (reads, made, registers) in enumerate(steps):
        for value in reads:
            places = later[value]
            places.pop()
            if places:
                held[value] = places[-1]
                heapq.heappush(order, (-places[-1], value))
            else:
                held.pop(value, None)
        if made is not None:
            computed.add(made)
            if made in later:
                held[made] = later[made][-1]
                heapq.heappush(order, (-held[made], made))
        while len(held) > registers:
            following, value = heapq.heappop(order)
            if held.get(value) == -following:
                del held[value]
                leaving.setdefault(place, []).append(value)
                if value in computed:
                    stored[value] = last[value]
    return Residence(leaving, stored)
