"""A program cut into functions of moderate length.

Compilers' work grows faster than the length of a function, so a long program becomes several. What one computes
and a later one reads travels in an array ``w`` that the first function has on its stack; a place in it is given
to another value as soon as nothing reads the old one any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.trace.block import Block, Node

PIECE = 3000  # statements in one function


@dataclass(frozen=True)
class Cut:
    """Node numbers of each piece in order, and the places of the values that cross from one to another."""

    pieces: tuple[tuple[int, ...], ...]
    places: dict[int, int]
    size: int


def arguments(node: Node) -> tuple[int, ...]:
    """Numbers of the values a node reads."""
    return () if node[0] in ("const", "input") else node[1:]


def live_nodes(program: Block) -> list[int]:
    """The operations that some result needs, in order."""
    wanted = {value for row in program.results for value in row}
    for number in range(len(program.nodes) - 1, -1, -1):
        if number in wanted:
            wanted.update(arguments(program.nodes[number]))
    return [n for n in sorted(wanted) if program.nodes[n][0] not in ("const", "input")]


def cut(program: Block) -> Cut:
    """Pieces of equal length. Results count as read by the last piece, which stores all of them."""
    order = live_nodes(program)
    count = max(1, -(-len(order) // PIECE))
    length = max(1, -(-len(order) // count))
    pieces = tuple(tuple(order[k * length : (k + 1) * length]) for k in range(count))
    home = {number: k for k, part in enumerate(pieces) for number in part}
    last_read: dict[int, int] = {}
    for k, part in enumerate(pieces):
        for number in part:
            last_read.update((a, k) for a in arguments(program.nodes[number]) if a in home)
    last_read.update((value, count - 1) for row in program.results for value in row if value in home)
    return Cut(pieces, *_placed(pieces, home, last_read))


def _placed(
    pieces: Sequence[Sequence[int]], home: dict[int, int], last_read: dict[int, int]
) -> tuple[dict[int, int], int]:
    places: dict[int, int] = {}
    free: list[int] = []
    size = 0
    ends: dict[int, list[int]] = {}
    for k, part in enumerate(pieces):
        for number in part:
            if last_read.get(number, k) > home[number]:
                if free:
                    places[number] = free.pop()
                else:
                    places[number], size = size, size + 1
                ends.setdefault(last_read[number], []).append(places[number])
        # Only after the piece: within it, places are still read.
        free.extend(ends.get(k, ()))
    return places, size
