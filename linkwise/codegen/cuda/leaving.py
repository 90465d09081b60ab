"""Which pieces of wide results leave together.

A piece is a row of a matrix, say, of a hundred bytes that begin anywhere; memory takes such pieces at a third of its
rate. Pieces that lie one behind the other and are complete soon after each other wait in shared memory, and leave as
one stretch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from linkwise.codegen.cuda.instructions import Piece

Sizes = Sequence[tuple[Piece, int]]
"""Pieces in the order in which they are complete, with the number of their numbers."""


@dataclass(eq=False)
class Stretch:
    """Pieces of an array, one behind the other."""

    array: int
    first: int
    size: int
    opened: int  # when its first piece is complete: a place in the order
    closed: int  # when its last one is
    place: int = 0  # where its numbers wait


@dataclass(frozen=True)
class Leaving:
    """How all pieces of a kernel leave."""

    stretches: Mapping[Piece, Stretch]
    last: frozenset[Piece] = field(repr=False)
    """The pieces with which a stretch is complete."""
    size: int
    """Numbers that wait at once, at most."""

    def place(self, piece: Piece) -> int:
        """Where the numbers of a piece wait."""
        stretch = self.stretches[piece]
        return stretch.place + piece.first - stretch.first


def gathered(sizes: Sizes, room: int) -> Leaving:
    """Stretches as long as possible while about ``room`` numbers wait at once; a single piece always may."""
    whole = _stretches(sizes, [sum(size for _, size in sizes)] * len(sizes))
    beside = [sum(s.opened <= k <= s.closed for s in set(whole)) for k in range(len(sizes))]
    stretches = _stretches(sizes, [room // max(beside[s.opened : s.closed + 1]) for s in whole])
    size = _placed(list(dict.fromkeys(stretches)))
    last = frozenset(sizes[stretch.closed][0] for stretch in stretches)
    return Leaving({piece: s for (piece, _), s in zip(sizes, stretches, strict=True)}, last, size)


def _stretches(sizes: Sizes, longest: Sequence[int]) -> list[Stretch]:
    """The stretch of each piece: that of the piece before it in its array, if it continues it soon, at either end."""
    found: list[Stretch] = []
    current: dict[int, Stretch] = {}
    soon = len({piece.array for piece, _ in sizes})  # arrays may take turns
    for k, (piece, size) in enumerate(sizes):
        stretch = current.get(piece.array)
        fits = stretch is not None and stretch.size + size <= longest[k] and k - stretch.closed <= soon
        if stretch is not None and fits and _touches(stretch, piece, size):
            stretch.first, stretch.size, stretch.closed = min(stretch.first, piece.first), stretch.size + size, k
        else:
            stretch = current[piece.array] = Stretch(piece.array, piece.first, size, k, k)
        found.append(stretch)
    return found


def _touches(stretch: Stretch, piece: Piece, size: int) -> bool:
    return piece.first + size == stretch.first or piece.first == stretch.first + stretch.size


def _placed(stretches: Sequence[Stretch]) -> int:
    """Give each stretch a place that no other has while it waits; the numbers needed."""
    placed: list[Stretch] = []
    for stretch in stretches:
        beside = sorted((s for s in placed if s.closed > stretch.opened), key=lambda s: s.place)
        stretch.place = 0
        for other in beside:
            if other.place >= stretch.place + stretch.size:
                break
            stretch.place = max(stretch.place, other.place + other.size)
        placed.append(stretch)
    return max((s.place + s.size for s in placed), default=0)
