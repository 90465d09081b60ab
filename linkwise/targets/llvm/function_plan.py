"""The order in which a program is emitted, and how it is cut.

Operations are ordered by :mod:`linkwise.targets.llvm.schedule`; those of long programs stay in the order of the text,
as in :func:`linkwise.trace.passes.remove_dead` (derivatives of a chain of ten: 316 ns a state, by demand 423). Two
things are arranged above that:

* **Groups.** sin, cos, exp, log and atan2 are computed for many values by one call. All those whose
  arguments can be known at the same time form a group; what the arguments need comes before it.
* **Pieces.** LLVM's work grows faster than the length of a basic block, so a long program becomes
  several functions. Values that cross from one to another travel through memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, compress

from linkwise.dataclass import dataclass, field
from linkwise.targets.llvm import schedule
from linkwise.targets.llvm.transcendental import ENTRY_OF
from linkwise.trace.block import Block, Node, arguments
from linkwise.trace.passes import LONG, needed

# LLVM's time per operation doubles at some ten thousand in one function: up to so many nodes a program stays whole,
# above it is cut into pieces of so many operations. 120 000 nodes then take five seconds, uncut they take fourteen.
WHOLE = 12000
PIECE = 3000


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
    crossing: tuple[tuple[int, int, int], ...] = field(repr=False)  # node, piece that computes it, last that reads it


def grouped_depths(nodes: Sequence[Node]) -> dict[int, int]:
    """For each grouped operation, how many of them come one behind the other, up to it; in order."""
    if not any(node[0] in ENTRY_OF for node in nodes):
        return {}
    depths: list[int] = []
    grouped: dict[int, int] = {}
    for number, node in enumerate(nodes):
        op = node[0]
        if op == "const" or op == "input":
            depths.append(0)
            continue
        depth = depths[node[1]]
        for a in node[2:]:
            if depths[a] > depth:
                depth = depths[a]
        if op in ENTRY_OF:
            depth += 1
            grouped[number] = depth
        depths.append(depth)
    return grouped


def _position(nodes: Sequence[Node], number: int) -> tuple[int, ...]:
    node = nodes[number]
    return (0, node[1], node[2]) if node[0] == "input" else (1, number)


def _sequence(program: Block, final: bool) -> tuple[list[int | GroupedCall], dict[int, tuple[GroupedCall, int, int]]]:
    nodes = program.nodes
    live = needed(program)  # a program may still carry what no result depends on
    waiting: dict[int, list[int]] = {}
    for number, depth in grouped_depths(nodes).items():
        if live[number]:
            waiting.setdefault(depth, []).append(number)
    placed = [node[0] in ("const", "input") for node in nodes]
    steps: list[int | GroupedCall] = []
    item_of: dict[int, tuple[GroupedCall, int, int]] = {}

    def place_before(numbers: Sequence[int]) -> None:
        """Place all that the given nodes need and that is not placed yet, in traced order."""
        found: list[int] = []
        todo = [a for number in numbers for a in arguments(nodes[number])]
        while todo:
            a = todo.pop()
            if not placed[a]:
                placed[a] = True
                found.append(a)
                todo.extend(arguments(nodes[a]))
        steps.extend(sorted(found))

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
    rest = [number for number in compress(range(len(nodes)), live) if not placed[number]]
    if final or len(nodes) <= LONG:
        rest = schedule.schedule(nodes, rest, [value for row in program.results for value in row], final)
    steps.extend(rest)
    return steps, item_of


def make_plan(program: Block, piece: int | None = None, final: bool = False) -> FunctionPlan:
    """Groups and pieces (of at most ``piece`` operations, if given) for one program; final if LLVM keeps the order."""
    nodes = program.nodes
    steps, item_of = _sequence(program, final)
    if piece is None:
        piece = WHOLE if len(nodes) <= WHOLE else PIECE
    count = max(1, -(-len(steps) // piece))
    size = max(1, -(-len(steps) // count))
    pieces = tuple(FunctionPiece(tuple(steps[k * size : (k + 1) * size])) for k in range(count))
    return FunctionPlan(pieces, item_of, _crossing(nodes, pieces) if count > 1 else ())


def _crossing(nodes: Sequence[Node], pieces: Sequence[FunctionPiece]) -> tuple[tuple[int, int, int], ...]:
    """Values that are made in one piece and read in another, those of the first piece first."""
    home = [-1] * len(nodes)  # -1: in no piece, but in memory
    last: dict[int, int] = {}
    for where, part in enumerate(pieces):
        for step in part.steps:
            if isinstance(step, GroupedCall):
                read: Iterable[int] = chain.from_iterable(step.members)
            else:
                read = nodes[step][1:]
                home[step] = where
            for a in read:
                if home[a] != where and home[a] >= 0:
                    last[a] = where
    return tuple(sorted(((value, home[value], end) for value, end in last.items()), key=lambda life: life[1]))
