"""The order of the operations inside a piece.

Two things pull against each other. A processor starts an operation only when its arguments are there, some four cycles
after they were started, and looks ahead over a limited number of operations: neighbours should not depend on each
other. But what is computed long before it is used takes up a register, or a store and a load.

So there are first some plain orders, in which few values wait: that of the text, and every result by demand, deepest
argument first (Sethi and Ullman), beginning with the first result or with the last. From each a list is made: of the
operations that could start now, within a window, the one with the most work behind it is next; where many values wait
already, one that ends as many as it makes. That list is taken which needs the fewest cycles and moves. Where that
moves values, and an order by demand none and no chain is long (many short branches), the latter is: what is woven in
fills its waits.

Of a long piece the list is made from the order by demand alone: a third of the work, for code that takes the same time.

Where in the order of the text nothing waits, as in products of tiles, it stays.

Where LLVM's scheduler comes after this one, the order is by demand, and an operation that would have to wait lets some
later ones pass: more than that it takes apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from linkwise.targets.llvm.residence import residence
from linkwise.trace.block import Node
from linkwise.trace.passes import LONG

_LATENCY = {"div": 13, "sqrt": 13}  # cycles from the start of an operation to its result, where it is not four
_SUM = 0.5  # cycles until another operation can start; for all others one
_MOVE = 0.5  # cycles of a store or a load
_WINDOW = 250
_NEAR = 20  # the window where LLVM makes an order of its own
_WAITING = 24  # values that may wait before it is time to end some

REGISTERS = 28
"""Values that wait in registers, of a machine with 32: the others are for what is between a load and its use."""


def schedule(nodes: Sequence[Node], chosen: Sequence[int], results: Sequence[int], final: bool) -> list[int]:
    """The chosen nodes in an order that suits the machine; all others count as there from the beginning.

    Args:
        nodes: of the program.
        chosen: those to put in order.
        results: nodes whose values are results.
        final: whether instructions stay in this order; otherwise LLVM makes its own from it.
    """
    if not chosen:
        return []
    found = _Operations(nodes, chosen, results)
    if found.flows:
        return list(chosen)
    long = len(chosen) > LONG
    order = _List(found, found.by_demand(found.results), final=final and long).order
    if final and not long:
        listed = min(map(found.listed, found.plain_orders()), key=lambda each: each[1])[0]
        stays = found.is_broad and not found.moves(order) and found.moves(listed)
        order = order if stays else listed
    return [chosen[number] for number in order]


class _Operations:
    """Operations, numbered in the order of the text."""

    def __init__(self, nodes: Sequence[Node], chosen: Sequence[int], results: Sequence[int]) -> None:
        number_of = {node: number for number, node in enumerate(chosen)}
        self.results = [number_of[node] for node in dict.fromkeys(results) if node in number_of]
        self.reads: list[list[int]] = []  # operations whose results it reads
        self.loads: list[list[int]] = []  # values that are in memory, as negative numbers
        self.latency: list[int] = []
        self.cost: list[float] = []
        for node in chosen:
            op = nodes[node][0]
            values = dict.fromkeys(nodes[node][1:])
            self.reads.append([number_of[a] for a in values if a in number_of])
            self.loads.append([-a - 1 for a in values if a not in number_of and nodes[a][0] != "const"])
            self.latency.append(_LATENCY.get(op, 4))
            self.cost.append(_SUM if op in ("add", "sub") else 1.0)
        self.users: list[list[int]] = [[] for _ in chosen]
        for number, read in enumerate(self.reads):
            for a in read:
                self.users[a].append(number)
        self.heights = self._heights()

    def plain_orders(self) -> list[list[int]]:
        """Orders to begin with."""
        text = list(range(len(self.reads)))
        last = self.by_demand(self.results[::-1])
        return [self.by_demand(self.results), last, text] if len(self.results) > 1 else [last, text]

    def by_demand(self, results: Sequence[int]) -> list[int]:
        """Each result behind all that it needs, deepest argument first."""
        need: list[int] = []  # registers to compute an operation, were nothing shared
        for read in self.reads:
            each = sorted((need[a] for a in read), reverse=True)
            need.append(max([1, *(held + registers for held, registers in enumerate(each))]))
        order: list[int] = []
        begun, ended = bytearray(len(need)), bytearray(len(need))
        for root in (*results, *range(len(need) - 1, -1, -1)):  # what no result needs comes last; there should be none
            stack = [root]
            while stack:
                number = stack[-1]
                if begun[number]:
                    stack.pop()
                    if not ended[number]:
                        ended[number] = 1
                        order.append(number)
                    continue
                begun[number] = 1
                stack.extend(sorted((a for a in self.reads[number] if not begun[a]), key=need.__getitem__))
        return order

    def _heights(self) -> list[int]:
        """Cycles from the start of each operation to the end of the last one that waits for it."""
        heights = [0] * len(self.reads)
        for number in range(len(heights) - 1, -1, -1):
            heights[number] += self.latency[number]
            for a in self.reads[number]:
                heights[a] = max(heights[a], heights[number])
        return heights

    def listed(self, order: Sequence[int]) -> tuple[list[int], float]:
        """A list made from an order, and the cycles that it takes with its stores and loads."""
        made = _List(self, order, final=True)
        return made.order, made.now + _MOVE * self.moves(made.order)

    @property
    def flows(self) -> bool:
        """Whether in the order of the text no operation waits for another, and nothing that is computed in memory."""
        now, ends = 0.0, list[float]()
        for read, latency, cost in zip(self.reads, self.latency, self.cost, strict=True):
            if any(ends[a] > now for a in read):
                return False
            ends.append(now + latency)
            now += cost
        found = residence((read, number, REGISTERS) for number, read in enumerate(self.reads))
        return not found.stored

    @property
    def is_broad(self) -> bool:
        """Whether there is more to do than to wait for in the longest chain of operations."""
        return max(self.heights) <= sum(self.cost)

    def moves(self, order: Sequence[int]) -> int:
        """Stores and loads of values that have to wait in memory."""
        found = residence((self.reads[number] + self.loads[number], number, REGISTERS) for number in order)
        return len(found.stored) + sum(map(len, found.leaving.values()))


class _List:
    """List scheduling: operations enter a window in their order and leave it when they are chosen."""

    def __init__(self, operations: _Operations, order: Sequence[int], final: bool) -> None:
        self.reads, self.users = operations.reads, operations.users
        self.place = [0] * len(order)
        for place, number in enumerate(order):
            self.place[number] = place
        self.heights = operations.heights
        self.most = _WAITING if final else 0
        window = _WINDOW if final else _NEAR
        self.left = [len(users) for users in self.users]  # operations that still have to read a value
        self.missing = [len(read) for read in self.reads]
        self.start = [0.0] * len(order)
        self.ends = [0] * len(order)  # values that an operation is the last to read
        for users in self.users:
            if len(users) == 1:
                self.ends[users[0]] += 1
        self.waiting = 0
        self.now = 0.0
        self.order: list[int] = []
        self.done, self.ready = bytearray(len(order)), bytearray(len(order))
        self.coming: list[tuple[float, int, int]] = []  # in the window, with all arguments chosen: start, place, number
        self.tall: list[tuple[int, ...]] = []  # could start now: by height,
        self.ending: list[tuple[int, ...]] = []  # by place, if it ends as many values as it makes,
        self.early: list[tuple[int, ...]] = []  # by place
        entered = 0
        while len(self.order) < len(order):
            while entered < len(order) and entered - len(self.order) < window:
                self._enter(order[entered])
                entered += 1
            number = self._next()
            end = self.now + operations.latency[number]
            self.now += operations.cost[number] if final else _SUM
            self._choose(number, end, entered)

    def _enter(self, number: int) -> None:
        if not self.missing[number]:
            heappush(self.coming, (self.start[number], self.place[number], number))

    def _next(self) -> int:
        while True:
            while self.coming and self.coming[0][0] <= self.now:
                _, place, number = heappop(self.coming)
                self.ready[number] = 1
                heappush(self.tall, (-self.heights[number], place, number))
                heappush(self.early, (place, number))
                self._note_ending(number)
            for heap in (self.tall,) if self.waiting < self.most else (self.ending, self.early):
                while heap:
                    number = heappop(heap)[-1]
                    if not self.done[number]:
                        return number
            self.now = self.coming[0][0]

    def _note_ending(self, number: int) -> None:
        if self.most and self.ends[number] >= (self.left[number] > 0):
            heappush(self.ending, (self.place[number], number))

    def _choose(self, number: int, end: float, entered: int) -> None:
        self.order.append(number)
        self.done[number] = 1
        self.waiting += self.left[number] > 0
        for a in self.reads[number]:
            self.left[a] -= 1
            if self.left[a] == 0:
                self.waiting -= 1
            elif self.left[a] == 1:
                last = next(user for user in self.users[a] if not self.done[user])
                self.ends[last] += 1
                if self.ready[last]:
                    self._note_ending(last)
        for user in self.users[number]:
            self.missing[user] -= 1
            self.start[user] = max(self.start[user], end)
            if self.place[user] < entered:
                self._enter(user)
