"""The order in which a program is emitted, and how it is cut.

Operations are ordered by :func:`schedule`; those of long programs stay in the order of the text,
as in :func:`linkwise.trace.passes.remove_dead` (derivatives of a chain of ten: 316 ns a state, by demand 423). Two
things are arranged above that:

* **Groups.** sin, cos, exp, log and atan2 are computed for many values by one call. All those whose
  arguments can be known at the same time form a group; what the arguments need comes before it.
* **Pieces.** LLVM's work grows faster than the length of a basic block, so a long program becomes
  several functions. Values that cross from one to another travel through memory.

Inside a piece, two things pull against each other. A processor starts an operation only when its arguments are there,
some four cycles after they were started, and looks ahead over a limited number of operations: neighbours should not
depend on each other. But what is computed long before it is used takes up a register, or a store and a load.

So first every result is computed by demand, deepest argument first, which keeps few values waiting (Sethi and Ullman);
then, within a small window, an operation that would have to wait lets later ones pass. Measured against the traced
order and LLVM's own scheduler this is up to a tenth faster, see ``bench/codegen_micro.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from linkwise.targets.llvm.transcendental import ENTRY_OF
from linkwise.trace.block import Block, Node
from linkwise.trace.passes import LONG

# LLVM's time per node doubles at some ten thousand nodes in one function: up to here a program stays whole, above it
# is cut into pieces small enough to be cheap. 120 000 nodes then take five seconds, uncut they take fourteen.
WHOLE = 12000
PIECE = 4000


@dataclass(frozen=True)
class GroupedCall:
    """One call: ``members[k]`` are the argument values of the k-th item, results are found by entry and item."""

    entry: str
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class FunctionPiece:
    """Content of one function, in order: node numbers and groups."""

    steps: tuple[int | GroupedCall, ...]


@dataclass(frozen=True)
class FunctionPlan:
    """Pieces in order, and the values that must be kept in memory between them."""

    pieces: tuple[FunctionPiece, ...]
    item_of: dict[int, tuple[GroupedCall, int, int]] = field(repr=False)  # node -> its group, item and result number
    crossing: frozenset[int] = field(repr=False)


def arguments(node: Node) -> tuple[int, ...]:
    """Numbers of the values a node reads."""
    return () if node[0] in ("const", "input") else node[1:]


def _depths(nodes: Sequence[Node]) -> list[int]:
    """Number of grouped operations, one behind the other, in and before each node."""
    depths: list[int] = []
    for node in nodes:
        depth = max((depths[a] for a in arguments(node)), default=0)
        depths.append(depth + (node[0] in ENTRY_OF))
    return depths


def _position(nodes: Sequence[Node], number: int) -> tuple[int, ...]:
    node = nodes[number]
    return (0, node[1], node[2]) if node[0] == "input" else (1, number)


def _live(program: Block) -> list[bool]:
    """Nodes that a result depends on; a program may still carry others."""
    live = [False] * len(program.nodes)
    for row in program.results:
        for value in row:
            live[value] = True
    for number in range(len(program.nodes) - 1, -1, -1):
        if live[number]:
            for a in arguments(program.nodes[number]):
                live[a] = True
    return live


def _sequence(program: Block) -> tuple[list[int | GroupedCall], dict[int, tuple[GroupedCall, int, int]]]:
    nodes = program.nodes
    live, depths = _live(program), _depths(nodes)
    waiting: dict[int, list[int]] = {}
    for number, node in enumerate(nodes):
        if live[number] and node[0] in ENTRY_OF:
            waiting.setdefault(depths[number], []).append(number)
    placed = [False] * len(nodes)
    steps: list[int | GroupedCall] = []
    item_of: dict[int, tuple[GroupedCall, int, int]] = {}

    def place_before(numbers: Sequence[int]) -> None:
        """Place all that the given nodes need and that is not placed yet, in traced order."""
        needed: list[int] = []
        todo = [a for number in numbers for a in arguments(nodes[number])]
        while todo:
            a = todo.pop()
            if not placed[a]:
                placed[a] = True
                needed.append(a)
                todo.extend(arguments(nodes[a]))
        steps.extend(sorted(number for number in needed if nodes[number][0] not in ("const", "input")))

    for depth in sorted(waiting):
        place_before(waiting[depth])
        entries: dict[str, dict[tuple[int, ...], list[int]]] = {}
        for number in waiting[depth]:
            entries.setdefault(ENTRY_OF[nodes[number][0]][0], {}).setdefault(arguments(nodes[number]), []).append(
                number
            )
        for entry, items in entries.items():
            # Elements of an input in their order: where they are neighbours they can be used where they lie.
            group = GroupedCall(entry, tuple(sorted(items, key=lambda members: [_position(nodes, a) for a in members])))
            steps.append(group)
            for item, members in enumerate(group.members):
                for number in items[members]:
                    placed[number] = True
                    item_of[number] = (group, item, ENTRY_OF[nodes[number][0]][1])
    rest = [number for number in range(len(nodes)) if live[number] and not placed[number]]
    rest = [number for number in rest if nodes[number][0] not in ("const", "input")]
    if len(rest) <= LONG:
        rest = schedule(nodes, rest, [value for row in program.results for value in row])
    steps.extend(rest)
    return steps, item_of


def make_plan(program: Block, piece: int | None = None) -> FunctionPlan:
    """Groups and pieces (of at most ``piece`` nodes, if given) for one program."""
    nodes = program.nodes
    steps, item_of = _sequence(program)
    if piece is None:
        piece = WHOLE if len(steps) <= WHOLE else PIECE
    count = max(1, -(-len(steps) // piece))
    size = max(1, -(-len(steps) // count))
    pieces = tuple(FunctionPiece(tuple(steps[k * size : (k + 1) * size])) for k in range(count))
    home: dict[int, int] = {}
    crossing: set[int] = set()

    def read(values: Sequence[int], where: int) -> None:
        crossing.update(a for a in values if home.get(a, where) != where)

    for where, part in enumerate(pieces):
        for step in part.steps:
            if isinstance(step, GroupedCall):
                for members in step.members:
                    read(members, where)
            elif nodes[step][0] not in ("const", "input"):
                read(arguments(nodes[step]), where)
                home[step] = where
    return FunctionPlan(pieces, item_of, frozenset(crossing))


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
