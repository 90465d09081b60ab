"""Dense systems (I - L W) x = s in groups of rows, of which most may be empty, as programs.

Where L is zero, x is s: that is brought to the right side, and the other groups alone are eliminated, tile by tile of
pivots, whose rows then clear those of each tile below; pivots are whole blocks. Groups and tiles are those of
:mod:`linkwise.trace.grouped_systems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from linkwise.trace.block import Block
from linkwise.trace.grouped_systems import (
    USED,
    Numbers,
    RowTable,
    Tiles,
    W,
    block_of,
    both_flags,
    flags_raised,
    if_both,
    tile_flags,
)
from linkwise.trace.program import PARAMETERS, Buffer, Call, Copy, IfAny, Program, Statement, Stretch
from linkwise.trace.state_loops import zeros

ACTIVE, IN_W = "in:active", f"in:{W}"


@cache
def solution(tiles: Tiles) -> Program:
    """The x of (I - L W) x = s, zero where groups are not used, and W x.

    Inputs are ``used``, ``active``, one for each group that is used and whose L is not zero, the blocks of L, s, and W.
    """
    return _Elimination(tiles).program()


class _Elimination:
    """Statements of the elimination, and the table that they go through."""

    def __init__(self, tiles: Tiles) -> None:
        self.tiles, self.n, self.block, self.groups = tiles, tiles.size, tiles.size**2, tiles.count
        self.all_tiles, self.numbers = tiles.tiles, range(len(tiles.tiles))
        self.table, self.ones = RowTable(), list[float]()

    def program(self) -> Program:
        """The whole."""
        statements = [*flags_raised(self.tiles), *flags_raised(self.tiles, ACTIVE, "active")]
        statements += [*self._right_side(), *self._matrix()]
        statements += [self._pivots(i) for i in self.numbers]
        statements += [self._unknowns(i) for i in reversed(self.numbers)]
        statements.append(Call(_added(self.groups * self.n), ("known", "unknown"), ("x",)))
        products = self._times(IN_W, "x", "moved", self.numbers, 1.0)
        statements += [self._over_rows(i, self.numbers, products, "tile") for i in self.numbers]
        return self.table.program("solution", self._buffers(), statements, self.ones)

    def _buffers(self) -> list[Buffer]:
        groups, n, block = self.groups, self.n, self.block
        given = {USED: groups, ACTIVE: groups, "in:lines": groups * block, "in:shift": groups * n}
        given[IN_W] = groups * groups * block
        own = dict.fromkeys(("known", "rest", "unknown"), groups * n)
        own |= {"matrix": groups * groups * block, "right": groups * n, "inverses": groups * block}
        own |= {"factor": block, "flag": 1}
        return [
            *(Buffer(name, size, load=True) for name, size in given.items()),
            *(Buffer(name, groups * n, store=True) for name in ("x", "moved")),
            *(Buffer(name, size) for name, size in own.items()),
            *tile_flags(self.tiles),
            *tile_flags(self.tiles, "active"),
        ]

    def _at(self, row: int, column: int) -> int:
        """Beginning of a block of the matrix."""
        return (row * self.groups + column) * self.block

    def _times(
        self, matrix: str, x: str, target: str, later: Sequence[int], sign: float, flags: str = "tile"
    ) -> list[Statement]:
        """Products of a row, in the third column on, with numbers x, added to a target or taken from it."""
        place = Stretch(target, 1)
        found: list[Statement] = []
        for number, j in enumerate(later):
            given = (place, Stretch(matrix, 3 + number), Stretch(x, 3 + len(later) + number))
            code = _times(self.n, len(self.all_tiles[j]), sign)
            found.append(IfAny(f"{flags}{j}", (Call(code, given, (place,)),)))
        return found

    def _over_rows(
        self, i: int, later: Sequence[int], body: Sequence[Statement], flags: str = "active", reverse: bool = False
    ) -> Statement:
        """A loop over the groups of a tile, whose rows know where blocks and numbers of later tiles are."""
        n, starts = self.n, [self.all_tiles[j][0] for j in later]
        rows = [
            [k, k * n, k * self.block, *(self._at(k, start) for start in starts), *(start * n for start in starts)]
            for k in self.all_tiles[i]
        ]
        asks = Copy(Stretch(ACTIVE if flags == "active" else USED, 0), "flag")
        return IfAny(f"{flags}{i}", (self.table.over(rows, (asks, IfAny("flag", tuple(body))), reverse),))

    def _right_side(self) -> list[Statement]:
        """The right side, s + L W x of what is known of x."""
        n, right = self.n, Stretch("right", 1)
        statements: list[Statement] = [Call(_apart(n, self.groups), (ACTIVE, "in:shift"), ("known", "rest"))]
        statements += [Call(zeros(self.groups * n), (), (name,)) for name in ("unknown", "moved")]
        known = [Call(zeros(n), (), (right,)), *self._times(IN_W, "known", "right", self.numbers, 1.0)]
        known.append(Call(_right(n), (right, Stretch("in:lines", 2), Stretch("rest", 1)), (right,)))
        return [*statements, *(self._over_rows(i, self.numbers, known) for i in self.numbers)]

    def _matrix(self) -> list[Statement]:
        """The blocks of I - L W."""
        n, found = self.n, list[Statement]()
        for i in self.numbers:
            for j in self.numbers:
                tile, rows = self.all_tiles[j], []
                for p in self.all_tiles[i]:
                    rows.append([p, p * self.block, self._at(p, tile[0]), len(self.ones)])
                    self.ones += [float(p == q and r == c) for q in tile for r in range(n) for c in range(n)]
                given = (Stretch(PARAMETERS, 3), Stretch("in:lines", 1), Stretch(IN_W, 2))
                made = Call(_cleared(n, len(tile)), given, (Stretch("matrix", 2),))
                asks = Copy(Stretch(ACTIVE, 0), "flag")
                found.append(if_both((i, j), (self.table.over(rows, (asks, IfAny("flag", (made,)))),), "active"))
        return found

    def _pivots(self, i: int) -> Statement:
        """Inverses of the pivots of a tile, in turn, and the rows below without their columns."""
        inverted = Call(_inverse(self.n), (Stretch("matrix", 1),), (Stretch("inverses", 2),))
        tile, found = self.all_tiles[i], list[Statement]()
        for k in tile:
            one = (Copy(Stretch(ACTIVE, 0), "flag"), IfAny("flag", (inverted,)))
            found.append(self.table.over([[k, self._at(k, k), k * self.block]], one))
            pairs = [(k, p) for p in tile if p > k]
            if pairs:
                found.append(self._cleared(i, i, pairs))
        for below in self.numbers[i + 1 :]:
            pairs = [(k, p) for k in tile for p in self.all_tiles[below]]
            found.append(IfAny(f"active{below}", (self._cleared(i, below, pairs),)))
        return IfAny(f"active{i}", tuple(found))

    def _cleared(self, pivots: int, below: int, pairs: Sequence[tuple[int, int]]) -> Statement:
        """Rows below some pivots without the columns of these."""
        n, later = self.n, self.numbers[pivots:]
        rows = [
            [
                *(k, i, self._at(i, k), k * self.block, k * n, i * n),
                *(self._at(x, self.all_tiles[j][0]) for j in later for x in (i, k)),
            ]
            for k, i in pairs
        ]
        right = Stretch("right", 5)
        given = (Stretch("matrix", 2), Stretch("inverses", 3), Stretch("right", 4), right)
        body: list[Statement] = [Call(_factor(n), given, ("factor", right))]
        for number, j in enumerate(later):
            there, pivot = (Stretch("matrix", 6 + 2 * number + k) for k in (0, 1))
            one = Call(_cleared(n, len(self.all_tiles[j])), (there, "factor", pivot), (there,))
            body.append(one if j in (pivots, below) else IfAny(f"active{j}", (one,)))
        asks = Call(both_flags(), (Stretch(ACTIVE, 0), Stretch(ACTIVE, 1)), ("flag",))
        return self.table.over(rows, (asks, IfAny("flag", tuple(body))))

    def _unknowns(self, i: int) -> Statement:
        """The x of a tile's groups, from the last one on."""
        found = Call(_applied(self.n), (Stretch("inverses", 2), Stretch("right", 1)), (Stretch("unknown", 1),))
        later = self.numbers[i:]
        body = [*self._times("matrix", "unknown", "right", later, -1.0, "active"), found]
        return self._over_rows(i, later, body, reverse=True)


# Blocks.
@cache
def _inverse(n: int) -> Block:
    """The inverse of a block."""

    def text(block: Numbers) -> dict[str, object]:
        rows = [[*block[i * n : (i + 1) * n], *(1.0 if i == j else 0.0 for j in range(n))] for i in range(n)]
        for k in range(n):
            inverse = 1.0 / rows[k][k]
            rows[k] = [x * inverse for x in rows[k]]
            for i in range(n):
                if i != k:
                    factor = rows[i][k]
                    rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
        return {"inverse": [x for row in rows for x in row[n:]]}

    return block_of("inverse", text, block=n * n)


@cache
def _factor(n: int) -> Block:
    """How often the row of a pivot is taken from another one; and the right side of that one."""

    def text(block: Numbers, inverse: Numbers, pivot: Numbers, right: Numbers) -> dict[str, object]:
        factor = [sum(block[i * n + k] * inverse[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]
        left = [right[i] - sum(factor[i * n + k] * pivot[k] for k in range(n)) for i in range(n)]
        return {"factor": factor, "left": left}

    return block_of("factor", text, block=n * n, inverse=n * n, pivot=n, right=n)


@cache
def _cleared(n: int, width: int) -> Block:
    """Blocks of a row without so much of another one's: I - L W, and what elimination leaves."""

    def text(row: Numbers, factor: Numbers, pivot: Numbers) -> dict[str, object]:
        return {
            "row": [
                row[(q * n + i) * n + j] - sum(factor[i * n + k] * pivot[(q * n + k) * n + j] for k in range(n))
                for q in range(width)
                for i in range(n)
                for j in range(n)
            ]
        }

    return block_of("cleared", text, row=width * n * n, factor=n * n, pivot=width * n * n)


@cache
def _times(n: int, width: int, sign: float) -> Block:
    """Numbers with a row of blocks times others added, or taken away."""

    def text(total: Numbers, row: Numbers, x: Numbers) -> dict[str, object]:
        return {
            "total": [
                total[i] + sign * sum(row[(q * n + i) * n + k] * x[q * n + k] for q in range(width) for k in range(n))
                for i in range(n)
            ]
        }

    return block_of("times", text, total=n, row=width * n * n, x=width * n)


@cache
def _apart(n: int, groups: int) -> Block:
    """Numbers of groups that are not active, with zeros for others, and the rest."""

    def text(active: Numbers, shift: Numbers) -> dict[str, object]:
        rest = [active[k // n] * x for k, x in enumerate(shift)]
        return {"known": [a - b for a, b in zip(shift, rest, strict=True)], "rest": rest}

    return block_of("apart", text, active=groups, shift=groups * n)


@cache
def _right(n: int) -> Block:
    """The right side, s + L v."""

    def text(v: Numbers, line: Numbers, rest: Numbers) -> dict[str, object]:
        return {"right": [rest[i] + sum(line[i * n + k] * v[k] for k in range(n)) for i in range(n)]}

    return block_of("right", text, v=n, line=n * n, rest=n)


@cache
def _added(count: int) -> Block:
    """Sums of numbers."""
    return block_of("added", lambda a, b: {"sum": [x + y for x, y in zip(a, b, strict=True)]}, a=count, b=count)


@cache
def _applied(n: int) -> Block:
    """A block times numbers."""

    def text(block: Numbers, x: Numbers) -> dict[str, object]:
        return {"found": [sum(block[i * n + k] * x[k] for k in range(n)) for i in range(n)]}

    return block_of("applied", text, block=n * n, x=n)
