"""One long chain in O(log n) steps: segments joined pair by pair, :mod:`linkwise.algorithms.pairwise` level by level.

Every step is a function of a batch, the pairs of a level, so that it runs where the arrays are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from linkwise.algorithms.joined_segments import plus
from linkwise.algorithms.pairwise import (
    CUT,
    ENDS,
    SEGMENT,
    Cut,
    Segment,
    ends_of_both,
    joined,
    turn_beyond,
    turned_of,
    turned_together,
)
from linkwise.algorithms.segments import ANSWER, MOVED, TURNED, Turned
from linkwise.array_types import Array
from linkwise.functions.function import CompiledFunction
from linkwise.functions.rolled.segments import ParallelForwardDynamics, inertia_rows
from linkwise.spatial.flattening import flatten
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec

Flat = Sequence[Scalar]


class PairwiseForwardDynamics(ParallelForwardDynamics):
    """Forward dynamics of one state of a long chain, by segments that are joined two at a time."""

    library: Any = np
    """Where arrays are made."""

    def _omegas(self, turns: Array) -> Array:
        count = len(turns)
        levels = [self._filled_up(turns, _still())]
        while len(levels[-1]) > 1:
            levels.extend(self._do("turned_together", _paired(levels[-1])))
        omegas: Array = self.library.zeros((1, 3))
        for level in levels[-2::-1]:
            omegas = self._do("turn_beyond", _paired(level), omegas)[0].reshape(-1, 3)
        return omegas[:count]

    def _joined(self, answers: Array, moved: Array, omegas: Array) -> tuple[Array, Array]:
        count = len(answers)
        level = self._filled_up(self._do("segment", answers, moved)[0], Segment.of_no_links().numbers)
        cuts = []
        while len(level) > 1:
            pairs = _paired(level)
            level, cut = self._do("joined", pairs)
            cuts.append((pairs, cut))
        ends = self._at_the_ends
        for pairs, cut in reversed(cuts):
            ends = self._do("ends_of_both", pairs, cut, ends)[0].reshape(-1, ENDS)
        bases = self.library.concatenate([omegas, ends[:count, :6]], axis=1)
        return bases, self.library.ascontiguousarray(ends[:count, 6:])

    def _do(self, name: str, *arrays: Array) -> tuple[Array, ...]:
        """One of the steps, for all pairs of a level."""
        made = step(name)(*arrays)
        return made if isinstance(made, tuple) else (made,)

    @property
    def _at_the_ends(self) -> Array:
        """[α, F] of the whole chain: a base at rest in the field of gravity, nothing on the tip."""
        gravity = [-float(g) for g in self.chain.tree.gravity]
        ends: Array = self.library.asarray(np.array([[0.0] * 3 + gravity + [0.0] * 6]))
        return ends

    def _filled_up(self, rows: Array, neutral: Flat) -> Array:
        """With neutral rows up to a power of two."""
        missing = (1 << (len(rows) - 1).bit_length()) - len(rows)
        if not missing:
            return rows
        more = self.library.asarray(np.tile(np.array(neutral, float), (missing, 1)))
        filled: Array = self.library.concatenate([rows, more])
        return filled


def _paired(rows: Array) -> Array:
    """Two neighbouring rows as one."""
    return rows.reshape(len(rows) // 2, -1)


def _still() -> list[Scalar]:
    return flatten(Turned(Mat3.identity(), Vec.zero()))[0]


def _segment(answer: Flat, moved: Flat) -> list[Scalar]:
    """From what a sweep of a segment gives: see :class:`linkwise.algorithms.segments.Answer`."""
    P = inertia_rows(answer[:21])
    Psi = [[answer[27 + 6 * j + i] for j in range(6)] for i in range(6)]
    own = Segment(P, answer[21:27], Psi, [], plus(answer[84:90], moved[3:9]))
    return [*Segment(P, own.z, Psi, P, own.c).numbers[:63], *answer[63:84], *own.c]


def _turned_together(pair: Flat) -> list[Scalar]:
    return flatten(turned_together(turned_of(pair[:TURNED]), turned_of(pair[TURNED:])))[0]


def _turn_beyond(pair: Flat, omega: Flat) -> list[Scalar]:
    return [*omega, *turn_beyond(turned_of(pair[:TURNED]), Vec.of(omega))]


def _joined(pair: Flat) -> tuple[list[Scalar], list[Scalar]]:
    both, cut = joined(Segment.of(pair[:SEGMENT]), Segment.of(pair[SEGMENT:]))
    return both.numbers, cut.numbers


def _ends_of_both(pair: Flat, cut: Flat, ends: Flat) -> list[Scalar]:
    inner, outer = ends_of_both(Segment.of(pair[:SEGMENT]), Cut.of(cut), ends[:6], ends[6:])
    return [*inner[0], *inner[1], *outer[0], *outer[1]]


_TEXTS: dict[str, tuple[Callable[..., Any], dict[str, int]]] = {
    "segment": (_segment, {"answer": ANSWER, "moved": MOVED}),
    "turned_together": (_turned_together, {"pair": 2 * TURNED}),
    "turn_beyond": (_turn_beyond, {"pair": 2 * TURNED, "omega": 3}),
    "joined": (_joined, {"pair": 2 * SEGMENT}),
    "ends_of_both": (_ends_of_both, {"pair": 2 * SEGMENT, "cut": CUT, "ends": ENDS}),
}


@cache
def step(name: str) -> CompiledFunction:
    """A step of a level; the same for all chains."""
    text, inputs = _TEXTS[name]
    return CompiledFunction(f"chain_{name}", text, [(n, (size,)) for n, size in inputs.items()])
