"""Jacobians as products: how outputs depend on waypoints, times how these depend on what is before them.

Forward mode carries every direction through everything. Where much depends on few numbers (a waypoint), it is cheaper
to begin there with new directions, one for each of these numbers, and to multiply afterwards. With several waypoints
there are blocks ∂(one)/∂(another), each as sparse as it is; a waypoint is eliminated by the product of what depends on
it with what it depends on, long ones in loops over tiles. The order of elimination is chosen by count of the
multiplications that are not known to be by zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from linkwise.trace.calls import CallingTracer
from linkwise.trace.derivatives import Tangent, is_one, is_zero
from linkwise.trace.tiles import TiledElimination, multiplications
from linkwise.trace.tracer import Traced

Pattern = NDArray[np.bool_]

_LOOPED = 1500
"""Multiplications from which on products are loops over tiles."""

_SPARSE = 4.0
"""How many times as many multiplications a loop over tiles may take as there are that are not by zero."""


class Waypoints:
    """Rows of the Jacobians of all waypoints, by directions of the inputs and of waypoints before.

    Args:
        count: number of the inputs' directions.
    """

    def __init__(self, count: int) -> None:
        self.starts = [0, count]
        """Where the directions of the inputs begin, then those of each waypoint, then those of the next."""
        self.rows: list[Tangent] = []

    def add(self, tangents: Sequence[Tangent]) -> list[Tangent]:
        """The tangents of the numbers of a waypoint, from here on: new unit directions."""
        self.rows += tangents
        first = self.starts[-1]
        self.starts.append(first + len(tangents))
        return [{first + k: 1.0} if x else {} for k, x in enumerate(tangents)]

    def multiplied(self, outputs: Sequence[Sequence[Tangent]]) -> list[list[Tangent]]:
        """The tangents of all outputs by the directions of the inputs alone."""
        if not self.rows:
            return [list(array) for array in outputs]
        rows = [dict(x) for x in (*self.rows, *(x for array in outputs for x in array))]
        first, groups = self.starts[1], list(pairwise(self.starts))[1:]
        order = elimination_order(_pattern(rows, self.starts[-1]), first, groups)
        numbers = (x for row in rows for x in row.values())
        tracer = next((x.tracer for x in numbers if isinstance(x, Traced)), None)
        before, looped, after = order, list[int](), list[int]()
        if isinstance(tracer, CallingTracer) and tracer.products:
            before, looped, after = _split(_pattern(rows, self.starts[-1]), first, groups, order)
        for k in before:
            _eliminate(rows, first, *groups[k])
        if looped and isinstance(tracer, CallingTracer):
            _eliminate_in_loops(tracer, rows, first, [groups[k] for k in looped])
        for k in after:
            _eliminate(rows, first, *groups[k])
        found = iter(rows[len(self.rows) :])
        return [[next(found) for _ in array] for array in outputs]


def _pattern(rows: Sequence[Tangent], directions: int) -> Pattern:
    """Where rows are other than zero."""
    pattern = np.zeros((len(rows), directions), bool)
    for row, tangent in zip(pattern, rows, strict=True):
        row[list(tangent)] = True
    return pattern


# The order.
Groups = Sequence[tuple[int, int]]
"""Of each waypoint, where its directions begin and end."""


def elimination_order(pattern: Pattern, first: int, groups: Groups) -> list[int]:
    """Numbers of the waypoints in the order of elimination.

    First those that make all others together no dearer than they are themselves, then the rest as in a chain of
    matrices: of each stretch of waypoints, one is the last.

    Args:
        pattern: (rows of waypoints and of outputs, directions), where entries are not zero.
        first: where the directions of waypoints begin: row k is that of direction first + k.
        groups: the waypoints.
    """
    order: list[int] = []
    left = list(range(len(groups)))
    while left:
        now = _costs(pattern, first, groups)
        gains = {}
        for k in left:
            after = _without(pattern, first, *groups[k])
            gains[k] = sum(now) - now[k] - sum(_costs(after, first, groups)), after
        best = max(left, key=lambda k: gains[k][0])
        if gains[best][0] < 0:
            return order + [left[k] for k in _chained(pattern, first, [groups[k] for k in left])]
        pattern = gains[best][1]
        left.remove(best)
        order.append(best)
    return order


def _costs(pattern: Pattern, first: int, groups: Groups) -> list[int]:
    """Multiplications that it takes to eliminate each waypoint."""
    uses, own = pattern.sum(axis=0), pattern.sum(axis=1)
    return [int(uses[begin:end] @ own[begin - first : end - first]) for begin, end in groups]


def _without(pattern: Pattern, first: int, begin: int, end: int) -> Pattern:
    """Pattern once a waypoint is eliminated."""
    own, uses, found = pattern[begin - first : end - first], pattern[:, begin:end], pattern.copy()
    users = uses.any(axis=1)
    found[users] |= uses[users].astype(np.float32) @ own.astype(np.float32) > 0.0
    found[:, begin:end] = found[begin - first : end - first] = False
    return found


def _chained(pattern: Pattern, first: int, groups: Groups) -> list[int]:
    """The order of the least cost, if what depends on a waypoint does so through waypoints that are beside it."""
    D, count = pattern.astype(np.float32), len(groups)
    rows, columns = [slice(a - first, b - first) for a, b in groups], [slice(a, b) for a, b in groups]
    costs = np.zeros((count, count, count))  # of waypoint k, where those from i to j are gone
    for k in range(count):
        uses, behind, C, B = [], [], D[:, columns[k]], D[rows[k]]
        for j in range(k, count):
            if j > k:
                C = np.minimum(C + D[:, columns[j]] @ C[rows[j]], 1.0)
            gone = np.zeros(len(D), bool)
            gone[rows[k].start : rows[j].stop] = True
            uses.append(C[~gone].sum(axis=0))
        for i in range(k, -1, -1):
            if i < k:
                B = np.minimum(B + B[:, columns[i]] @ D[rows[i]], 1.0)
            inside = np.zeros(D.shape[1], bool)
            inside[columns[i].start : columns[k].stop] = True
            behind.append(B[:, ~inside].sum(axis=1))
        for j, used in enumerate(uses, k):
            for i, own in zip(range(k, -1, -1), behind, strict=True):
                costs[k, i, j] = used @ own
    best: dict[tuple[int, int], tuple[float, list[int]]] = {(i, i - 1): (0.0, []) for i in range(count + 1)}
    for length in range(1, count + 1):
        for i in range(count - length + 1):
            j = i + length - 1
            ways = []
            for k in range(i, j + 1):
                (one, before), (other, after) = best[i, k - 1], best[k + 1, j]
                ways.append((one + other + float(costs[k, i, j]), [*before, *after, k]))
            best[i, j] = min(ways, key=lambda way: way[0])
    return best[0, count - 1][1]


# The products.
def _split(pattern: Pattern, first: int, groups: Groups, order: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Waypoints whose products are written out, those with products in loops, and again some that are written out."""
    long = []
    for place, k in enumerate(order):
        begin, end = groups[k]
        users = pattern[:, begin:end]
        A, B = users[users.any(axis=1)], pattern[begin - first : end - first]
        B = B[:, B.any(axis=0)]
        count = int(A.sum(axis=0) @ B.sum(axis=1))
        if count >= _LOOPED and multiplications(A, B) <= _SPARSE * count:
            long.append(place)
        pattern = _without(pattern, first, begin, end)
    if not long:
        return order, [], []
    return order[: long[0]], order[long[0] : long[-1] + 1], order[long[-1] + 1 :]


def _eliminate(rows: list[Tangent], first: int, begin: int, end: int) -> None:
    """Put the rows of a waypoint in the place of its directions."""
    own = rows[begin - first : end - first]
    rows[begin - first : end - first] = [{} for _ in own]
    for row in rows:
        for k in [k for k in row if begin <= k < end]:
            factor = row.pop(k)
            for j, x in own[k - begin].items():
                term = x if is_one(factor) else factor if is_one(x) else factor * x
                row[j] = row[j] + term if j in row else term
        for j in [j for j in row if is_zero(row[j])]:
            del row[j]


def _eliminate_in_loops(tracer: CallingTracer, rows: list[Tangent], first: int, groups: Groups) -> None:
    """The same for several waypoints, one after the other, by a program."""
    inside = {j for begin, end in groups for j in range(begin, end)}
    own = [j - first for begin, end in groups for j in range(begin, end)]
    users = [i for i, row in enumerate(rows) if i + first not in inside and any(j in inside for j in row)]
    outside = sorted({j for i in own for j in rows[i] if j not in inside})
    columns = [*(i + first for i in own), *outside]
    place, taken = {j: k for k, j in enumerate(columns)}, [*own, *users]
    pattern = _pattern([{place[j]: x for j, x in rows[i].items() if j in place} for i in taken], len(columns))
    tiled = TiledElimination(pattern, [end - begin for begin, end in groups])
    given = [0.0 if at is None else rows[taken[at[0]]].get(columns[at[1]], 0.0) for at in tiled.given]
    (found,) = tracer.call(tiled.program, [given])
    filled, size = pattern, len(own)
    sizes = np.cumsum([0, *(end - begin for begin, end in groups)]).tolist()
    for begin, end in pairwise(sizes):
        filled = _without(filled, 0, begin, end)
    for i in users:
        for j in [j for j in rows[i] if j in inside]:
            del rows[i][j]
    for at, x in zip(tiled.made, found, strict=True):
        if at is not None and filled[at]:
            rows[users[at[0] - size]][columns[at[1]]] = x
    for i in own:
        rows[i] = {}
