"""The order of the operations inside a piece.

Two things pull against each other. A processor starts an operation only when its arguments are there, some four cycles
after they were started, and looks ahead over a limited number of operations: neighbours should not depend on each
other. But what is computed long before it is used takes up a register, or a store and a load.

So first every result is computed by demand, deepest argument first, which keeps few values waiting (Sethi and Ullman);
then, within a small window, an operation that would have to wait lets later ones pass. Measured against the traced
order and LLVM's own scheduler this is up to a tenth faster, see ``bench/codegen_micro.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from linkwise.trace.block import Node

_LATENCY = 4  # cycles from the start of an operation to its result
_PER_CYCLE = 2  # vector operations that start in a cycle
_WINDOW = 20


def schedule(nodes: Sequence[Node], chosen: Sequence[int], results: Sequence[int]) -> list[int]:
    """The chosen nodes in an order that suits the machine; all others count as there from the beginning."""
    return _overtaking(nodes, _by_demand(nodes, chosen, results), results)


def _arguments(nodes: Sequence[Node], number: int, among: set[int]) -> list[int]:
    node = nodes[number]
    return [] if node[0] in ("const", "input") else [a for a in node[1:] if a in among]


def _by_demand(nodes: Sequence[Node], chosen: Sequence[int], results: Sequence[int]) -> list[int]:
    among = set(chosen)
    need: dict[int, int] = {}  # registers to compute a node, were nothing shared
    for number in sorted(chosen):
        each = sorted((need[a] for a in _arguments(nodes, number, among)), reverse=True)
        need[number] = max([1, *(held + registers for held, registers in enumerate(each))])
    order: list[int] = []
    begun: set[int] = set()
    ended: set[int] = set()
    for root in (*results, *reversed(chosen)):  # what no result needs comes last; there should be none
        stack = [root] if root in among else []
        while stack:
            number = stack[-1]
            if number in begun:
                stack.pop()
                if number not in ended:
                    ended.add(number)
                    order.append(number)
                continue
            begun.add(number)
            waiting = [a for a in _arguments(nodes, number, among) if a not in begun]
            stack.extend(sorted(waiting, key=need.__getitem__))
    return order


def _overtaking(nodes: Sequence[Node], order: Sequence[int], results: Sequence[int]) -> list[int]:
    absorbed = _absorbed(nodes, order, results)
    among = set(order)
    products = set(absorbed.values())
    reads: dict[int, list[int]] = {}
    for number in order:
        if number not in products:
            direct = _arguments(nodes, number, among)
            product = absorbed.get(number)
            through = _arguments(nodes, product, among) if product is not None else []
            reads[number] = [a for a in (*direct, *through) if a != product]
    coming = deque(number for number in order if number in reads)
    window: list[int] = []
    there: dict[int, float] = {}  # when each value is there
    now = 0.0
    made: list[int] = []
    while coming or window:
        while coming and len(window) < _WINDOW:
            window.append(coming.popleft())
        place, start = _first_ready(window, reads, there, now)
        number = window.pop(place)
        there[number] = max(now, start) + _LATENCY
        now = max(now, start) + 1 / _PER_CYCLE
        if number in absorbed:
            made.append(absorbed[number])
        made.append(number)
    return made


def _first_ready(
    window: Sequence[int], reads: dict[int, list[int]], there: dict[int, float], now: float
) -> tuple[int, float]:
    """The first operation that can start now, or else the one that can start soonest, and when."""
    best = -1, float("inf")
    for place, number in enumerate(window):
        start = 0.0
        for a in reads[number]:
            start = max(start, there.get(a, float("inf")))
        if start <= now:
            return place, start
        if start < best[1]:
            best = place, start
    return best


def _absorbed(nodes: Sequence[Node], order: Sequence[int], results: Sequence[int]) -> dict[int, int]:
    """Product that becomes one fused operation with each sum, if any: one that nothing else reads."""
    uses: dict[int, int] = dict.fromkeys(results, 2)
    for number in order:
        for a in nodes[number][1:]:
            uses[a] = uses.get(a, 0) + 1
    among = set(order)
    found: dict[int, int] = {}
    for number in order:
        if nodes[number][0] in ("add", "sub"):
            for a in nodes[number][1:]:
                if a in among and nodes[a][0] == "mul" and uses[a] == 1:
                    found[number] = a
                    break
    return found
