"""Long programs as several kernels, one after another.

Every part computes some pieces of the results from the beginning; what several parts need is computed several times.
That pays where a program is long and its results are wide: each part has fewer values alive at a time, which then are
in registers, is compiled in a fraction of the time (several side by side), and its instructions stay on the chip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from linkwise.codegen.cuda.instructions import Instruction, Piece, Pieces, instructions, operand
from linkwise.tracing.program import Program

LONGEST = 5000
"""Instructions of a part; each takes 16 bytes, and a multiprocessor keeps about 128 kB of them."""

_REPEATED = 2.5  # times all instructions, up to which parts are better than a whole


@dataclass(frozen=True)
class Part:
    """One kernel of several.

    Args:
        program: what it computes.
        outputs: which of the whole program's outputs its own are.
        pieces: of which of its outputs it gives only these pieces.
    """

    program: Program
    outputs: tuple[int, ...]
    pieces: Pieces


def split(program: Program, in_pieces: Pieces, longest: int = LONGEST) -> tuple[Part, ...]:
    """The parts of a program, in the order in which they run; one, if it is short or has no wide results.

    ``in_pieces``: the results that may leave in pieces.
    """
    made = instructions(program, in_pieces)
    whole = (Part(program, tuple(range(len(program.outputs))), in_pieces),)
    if len(made) <= longest or not in_pieces:
        return whole
    graph = _Needs(program, made)
    groups = graph.grouped(longest)
    if sum(graph.size(group) for group in groups) <= _REPEATED * len(made):
        return tuple(graph.part(group) for group in groups)
    return whole


class _Needs:
    """Which instructions each piece of the results needs: sets, written as whole numbers with a bit for each."""

    def __init__(self, program: Program, made: Sequence[Instruction]) -> None:
        self.program, self.made = program, made
        self.home = {value: k for k, each in enumerate(made) for value in each.writes}
        self.pieces = [each.piece for each in made if each.piece is not None]
        # Results that do not leave in pieces belong together: None.
        partial = {piece.array for piece in self.pieces}
        self.narrow = tuple(k for k in range(len(program.outputs)) if k not in partial)
        self.needs: dict[Piece | None, int] = {}
        reached: list[int] = []
        for k, each in enumerate(made):
            needed = 1 << k
            for value in each.reads:
                needed |= reached[self.home[value]] if value in self.home else 0
            reached.append(needed)
            if each.piece is not None:
                self.needs[each.piece] = needed
        if self.narrow:
            values = [operand(program, v).value for k in self.narrow for v in program.results[k]]
            self.needs[None] = self._together([reached[self.home[v]] for v in values if v in self.home])

    @staticmethod
    def _together(sets: Iterable[int]) -> int:
        return reduce(or_, sets, 0)

    def size(self, group: Sequence[Piece | None]) -> int:
        """Instructions that some pieces need together."""
        return self._together(self.needs[piece] for piece in group).bit_count()

    def grouped(self, longest: int) -> list[list[Piece | None]]:
        """Beginning with the piece that needs the most, always the one that adds the least, while there is room."""
        left = dict(self.needs)
        groups = []
        while left:
            first = max(left, key=lambda piece: left[piece].bit_count())
            held, group = left.pop(first), [first]
            while left:
                best = min(left, key=lambda piece, held=held: (left[piece] | held).bit_count())  # type: ignore[misc]
                if (held | left[best]).bit_count() > longest:
                    break
                held |= left.pop(best)
                group.append(best)
            groups.append(group)
        return groups

    def part(self, group: Sequence[Piece | None]) -> Part:
        """A kernel for some pieces."""
        return part_of(self.program, self.narrow if None in group else (), [p for p in group if p is not None])


def part_of(program: Program, narrow: Sequence[int], pieces: Sequence[Piece]) -> Part:
    """A kernel that fills some outputs, and pieces of others."""
    by_array: dict[int, list[int]] = {}
    for piece in pieces:
        by_array.setdefault(piece.array, []).append(piece.first)
    outputs = tuple(sorted({*narrow, *by_array}))
    own = replace(
        program,
        outputs=tuple(program.outputs[k] for k in outputs),
        results=tuple(program.results[k] for k in outputs),
    )
    return Part(own, outputs, {outputs.index(k): tuple(sorted(starts)) for k, starts in by_array.items()})
