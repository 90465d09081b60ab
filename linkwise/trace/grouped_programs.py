"""Dense systems of which most may be empty, as programs: W = A*B, sweeps, and (I - L W) x = s, in groups of rows.

Rows come in groups of a few, of which a state uses some; L is block-diagonal. Groups stand in *tiles*, and whatever
belongs to a tile, or to a group, that no state of a block uses is passed over. So work grows with the groups that are
there and not with those there is room for, and code with the number of tiles alone: all of it calls a few short blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.trace.block import Block
from linkwise.trace.calls import traced
from linkwise.trace.program import PARAMETERS, Buffer, Call, Copy, For, IfAny, Place, Program, Statement, Stretch
from linkwise.trace.state_loops import ItemColumn, zeros
from linkwise.trace.tracer import Number

USED, ACTIVE, W = "in:used", "in:active", "products"

Numbers = Sequence[Number]


@dataclass(frozen=True)
class Tiles:
    """Groups of rows in tiles, from several sources.

    Args:
        size: rows of a group.
        sources: of each source how many groups it has.
        most: groups of a tile.
    """

    size: int
    sources: tuple[int, ...]
    most: int

    @property
    def count(self) -> int:
        """Number of groups."""
        return sum(self.sources)

    @property
    def tiles(self) -> list[range]:
        """Groups of each tile; none has groups of two sources."""
        found, first = [], 0
        for count in self.sources:
            found += [range(k, min(k + self.most, first + count)) for k in range(first, first + count, self.most)]
            first += count
        return found

    def source(self, group: int) -> tuple[int, int]:
        """Number of the source that a group is from, and its place there."""
        for number, count in enumerate(self.sources):
            if group < count:
                return number, group
            group -= count
        raise IndexError(group)


class _RangeTable:
    """The table of a program, filled range by range."""

    def __init__(self) -> None:
        self.rows: list[Sequence[int]] = []
        self.ranges: list[tuple[str, int, int]] = []

    def over(self, rows: Sequence[Sequence[int]], body: Sequence[Statement], reverse: bool = False) -> For:
        """A loop over some rows."""
        name = f"range{len(self.ranges)}"
        self.ranges.append((name, len(self.rows), len(rows)))
        self.rows += rows
        return For(name, tuple(body), reverse)

    def program(
        self, name: str, buffers: Sequence[Buffer], statements: Sequence[Statement], parameters: Sequence[float] = ()
    ) -> Program:
        """The program with this table."""
        width = max(map(len, self.rows))
        rows = np.array([[*row, *[0] * (width - len(row))] for row in self.rows], np.int64)
        given = np.array(parameters, float)
        return Program(name, tuple(buffers), tuple(statements), rows=rows, ranges=tuple(self.ranges), parameters=given)


@cache
def products(tiles: Tiles, widths: tuple[int, ...], sizes: tuple[int, ...], is_square: bool) -> Program:
    """W = A*B of groups of rows, of which it is known that it is symmetric.

    Rows of a source have so many numbers each; those that a shorter row leaves out are zero.
    Inputs are ``used``, one for each group that is used and zero for others, then the rows a of each source, and the
    rows b of each, unless these are the same: as many numbers as ``sizes`` says, perhaps more than there are groups. W
    has for each two groups a block, one after the other.
    """
    n, block, groups = tiles.size, tiles.size**2, tiles.count
    table, all_tiles = _RangeTable(), tiles.tiles
    sources = range(len(tiles.sources))
    sides = [[f"in:left{k}" for k in sources], [f"in:{'left' if is_square else 'right'}{k}" for k in sources]]
    buffers = [Buffer(USED, groups, load=True)]
    for names in sides[: 1 if is_square else 2]:
        buffers += [Buffer(name, sizes[k], load=True) for k, name in enumerate(names)]
    buffers += [Buffer(W, groups * groups * block, store=True), Buffer("flag", 1), *_flags(tiles)]
    statements = _of_tiles(tiles)
    # A state that goes on beside others may be asked for what no state of its block uses.
    everywhere = [[k * groups * block] for k in range(groups)]
    statements.append(table.over(everywhere, (Call(zeros(groups * block), (), (Stretch(W, 0),)),)))
    here, there = Stretch(W, 4), Stretch(W, 5)
    for i, first in enumerate(all_tiles):
        for j, second in enumerate(all_tiles[i:], i):
            a, b = (Stretch(sides[k][tiles.source(tile[0])[0]], k) for k, tile in enumerate((first, second)))
            asks: tuple[Place, ...] = (Stretch(USED, 2), Stretch(USED, 3))
            for is_diagonal in (True, False):
                pairs = [(p, q) for p in first for q in second if (p == q if is_diagonal else p < q)]
                if not pairs:
                    continue
                own = [widths[tiles.source(tile[0])[0]] for tile in (first, second)]
                rows = [
                    [
                        *(tiles.source(group)[1] * n * width for group, width in zip((p, q), own, strict=True)),
                        *(p, q, (p * groups + q) * block, (q * groups + p) * block),
                    ]
                    for p, q in pairs
                ]
                places = (here,) if is_diagonal else (here, there)
                made = IfAny("flag", (Call(_product(n, *own, is_diagonal), (a, b), places),))
                body: list[Statement] = [Call(_both(), asks, ("flag",)), made]
                statements.append(_if_any((i, j), (table.over(rows, body),)))
    return table.program("products", buffers, statements)


@cache
def solution(tiles: Tiles) -> Program:
    """The x of (I - L W) x = s, zero where groups are not used, and W x.

    Inputs are ``used``, ``active``, one for each group that is used and whose L is not zero, the blocks of L, s, and W.
    Where L is zero, x is s: that is brought to the right side, and the other groups alone are eliminated, tile by tile
    of pivots, whose rows then clear those of each tile below; pivots are whole blocks.
    """
    n, block, groups = tiles.size, tiles.size**2, tiles.count
    table, all_tiles = _RangeTable(), tiles.tiles
    numbers = range(len(all_tiles))
    sizes = {ACTIVE: groups, "in:lines": groups * block, "in:shift": groups * n, f"in:{W}": groups * groups * block}
    buffers = [Buffer(USED, groups, load=True), *(Buffer(name, size, load=True) for name, size in sizes.items())]
    buffers += [Buffer("x", groups * n, store=True), Buffer("moved", groups * n, store=True)]
    own = {
        "known": groups * n,
        "rest": groups * n,
        "unknown": groups * n,
        "matrix": groups * groups * block,
        "right": groups * n,
        "inverses": groups * block,
        "factor": block,
    }
    buffers += [*(Buffer(name, size) for name, size in own.items()), Buffer("flag", 1)]
    buffers += [*_flags(tiles), *_flags(tiles, "active")]
    statements = [*_of_tiles(tiles), *_of_tiles(tiles, ACTIVE, "active")]
    statements.append(Call(_apart(n, groups), (ACTIVE, "in:shift"), ("known", "rest")))
    statements += [Call(zeros(groups * n), (), (name,)) for name in ("unknown", "moved")]

    def at(row: int, column: int) -> int:
        return (row * groups + column) * block

    def times(
        matrix: str, x: str, target: str, later: Sequence[int], sign: float, flags: str = "tile"
    ) -> list[Statement]:
        """Products of a row, in the third column on, with numbers x, added to a target or taken from it."""
        place = Stretch(target, 1)
        found: list[Statement] = []
        for number, j in enumerate(later):
            given = (place, Stretch(matrix, 3 + number), Stretch(x, 3 + len(later) + number))
            found.append(IfAny(f"{flags}{j}", (Call(_times(n, len(all_tiles[j]), sign), given, (place,)),)))
        return found

    def over_rows(
        i: int, later: Sequence[int], body: Sequence[Statement], flags: str = "active", reverse: bool = False
    ) -> Statement:
        rows = [
            [
                *(k, k * n, k * block),
                *(at(k, all_tiles[j][0]) for j in later),
                *(all_tiles[j][0] * n for j in later),
            ]
            for k in all_tiles[i]
        ]
        asks = Copy(Stretch(ACTIVE if flags == "active" else USED, 0), "flag")
        return IfAny(f"{flags}{i}", (table.over(rows, (asks, IfAny("flag", tuple(body))), reverse),))

    # The matrix, I - L W, and the right side, s + L W x of what is known of x: W is read once for both.
    line, rest, right = Stretch("in:lines", 2), Stretch("rest", 1), Stretch("right", 1)
    ones: list[float] = []
    for i in numbers:
        rows = []
        for p in all_tiles[i]:
            rows.append([p, p * n, p * block])
            for tile in all_tiles:
                rows[-1] += [at(p, tile[0]), tile[0] * n, len(ones)]
                ones += [1.0 if p == q and r == c else 0.0 for q in tile for r in range(n) for c in range(n)]
        own_row: list[Statement] = [Call(zeros(n), (), (right,))]
        for j in numbers:
            there, known, unit = (3 + 3 * j + k for k in range(3))
            given = (Stretch(PARAMETERS, unit), line, Stretch(f"in:{W}", there), Stretch("known", known), right)
            made = Call(_line(n, len(all_tiles[j])), given, (Stretch("matrix", there), right))
            own_row.append(IfAny(f"tile{j}", (made,)))
        own_row.append(Call(_right(n), (right, line, rest), (right,)))
        asks = Copy(Stretch(ACTIVE, 0), "flag")
        statements.append(IfAny(f"active{i}", (table.over(rows, (asks, IfAny("flag", tuple(own_row)))),)))

    def cleared(pivots: int, below: int, pairs: Sequence[tuple[int, int]]) -> Statement:
        """Rows below some pivots without the columns of these."""
        later = [j for j in numbers if j >= pivots]
        rows = [
            [k, i, at(i, k), k * block, k * n, i * n, *(at(x, all_tiles[j][0]) for j in later for x in (i, k))]
            for k, i in pairs
        ]
        right = Stretch("right", 5)
        given = (Stretch("matrix", 2), Stretch("inverses", 3), Stretch("right", 4), right)
        body: list[Statement] = [Call(_factor(n), given, ("factor", right))]
        for number, j in enumerate(later):
            there, pivot = (Stretch("matrix", 6 + 2 * number + k) for k in (0, 1))
            one = Call(_cleared(n, len(all_tiles[j])), (there, "factor", pivot), (there,))
            body.append(one if j in (pivots, below) else IfAny(f"active{j}", (one,)))
        asks = Call(_both(), (Stretch(ACTIVE, 0), Stretch(ACTIVE, 1)), ("flag",))
        return table.over(rows, (asks, IfAny("flag", tuple(body))))

    inverted = Call(_inverse(n), (Stretch("matrix", 1),), (Stretch("inverses", 2),))
    for i in numbers:
        of_tile: list[Statement] = []
        for k in all_tiles[i]:
            one = (Copy(Stretch(ACTIVE, 0), "flag"), IfAny("flag", (inverted,)))
            of_tile.append(table.over([[k, at(k, k), k * block]], one))
            pairs = [(k, p) for p in all_tiles[i] if p > k]
            if pairs:
                of_tile.append(cleared(i, i, pairs))
        for below in numbers[i + 1 :]:
            pairs = [(k, p) for k in all_tiles[i] for p in all_tiles[below]]
            of_tile.append(IfAny(f"active{below}", (cleared(i, below, pairs),)))
        statements.append(IfAny(f"active{i}", tuple(of_tile)))
    for i in reversed(numbers):
        later = numbers[i:]
        found = Call(_applied(n), (Stretch("inverses", 2), right), (Stretch("unknown", 1),))
        body = [*times("matrix", "unknown", "right", later, -1.0, "active"), found]
        statements.append(over_rows(i, later, body, reverse=True))
    statements.append(Call(_added(groups * n), ("known", "unknown"), ("x",)))
    products = times(f"in:{W}", "x", "moved", numbers, 1.0)
    statements += [over_rows(i, numbers, products, "tile") for i in numbers]
    return table.program("solution", buffers, statements, ones)


def sweeps(tiles: Tiles, codes: Sequence[Block], columns: Sequence[Sequence[ItemColumn]], passes: int) -> Program:
    """Passes over the groups, one after the other: x of a group from v of it, then v + W (change of x) of all.

    Inputs are ``used``, v, x, W, and the columns of each source.

    Args:
        tiles: the groups.
        codes: of each source the block that takes v of a group, nothing, x, and items of the columns, and makes the
            next x and its change.
        columns: of each source.
        passes: how many.
    """
    n, block, groups = tiles.size, tiles.size**2, tiles.count
    table, all_tiles, statements = _RangeTable(), tiles.tiles, _of_tiles(tiles)
    sizes = {"in:v": groups * n, "in:x": groups * n, f"in:{W}": groups * groups * block}
    buffers = [Buffer(USED, groups, load=True), *(Buffer(name, size, load=True) for name, size in sizes.items())]
    for source, given in enumerate(columns):
        buffers += [Buffer(f"in:items{source}:{k}", c.size, load=True) for k, c in enumerate(given)]
    buffers += [Buffer("v", groups * n, store=True), Buffer("x", groups * n, store=True)]
    buffers += [Buffer("change", n), Buffer("nothing", 0), Buffer("flag", 1), *_flags(tiles)]
    body: list[Statement] = []
    for i, tile in enumerate(all_tiles):
        source, _ = tiles.source(tile[0])
        rows = []
        for group in tile:
            place = tiles.source(group)[1]
            starts = [all_tiles[j][0] for j in range(len(all_tiles))]
            targets = [x for s in starts for x in (s * n, (group * groups + s) * block)]
            rows.append([group, group * n, *targets, *(column.starts[place] for column in columns[source])])
        first = 2 + 2 * len(all_tiles)
        items = [Stretch(f"in:items{source}:{k}", first + k) for k in range(len(columns[source]))]
        own: list[Statement] = [
            Call(codes[source], (Stretch("v", 1), "nothing", Stretch("x", 1), *items), (Stretch("x", 1), "change"))
        ]
        for j, other in enumerate(all_tiles):
            v = Stretch("v", 2 + 2 * j)
            pushed = Call(_pushed(n, len(other)), (v, Stretch(f"in:{W}", 3 + 2 * j), "change"), (v,))
            own.append(pushed if i == j else IfAny(f"tile{j}", (pushed,)))
        asks = Copy(Stretch(USED, 0), "flag")
        body.append(IfAny(f"tile{i}", (table.over(rows, (asks, IfAny("flag", tuple(own)))),)))
    statements += [Copy("in:v", "v"), Copy("in:x", "x"), For(passes, tuple(body))]
    return table.program("sweeps", buffers, statements)


# Flags of tiles.
def _flags(tiles: Tiles, name: str = "tile") -> list[Buffer]:
    return [Buffer(f"{name}{k}", 1) for k in range(len(tiles.tiles))]


def _of_tiles(tiles: Tiles, used: str = USED, name: str = "tile") -> list[Statement]:
    """The call that raises the flags of tiles that are used."""

    def text(used: Numbers) -> dict[str, object]:
        return {f"tile{k}": _sum(used[group] for group in tile) for k, tile in enumerate(tiles.tiles)}

    names = tuple(f"{name}{k}" for k in range(len(tiles.tiles)))
    return [Call(_block("tiles", text, used=tiles.count), (used,), names)]


def _if_any(both: tuple[int, int], body: tuple[Statement, ...]) -> Statement:
    """Statements for two tiles that are used."""
    for k in sorted(set(both), reverse=True):
        body = (IfAny(f"tile{k}", body),)
    return body[0]


# Blocks.
def _block(name: str, text: Callable[..., dict[str, object]], **inputs: int) -> Block:
    found = traced(name, text, inputs)
    assert isinstance(found, Block)
    return found


def _sum(numbers: Iterable[Number]) -> Number:
    total: Number = 0.0
    for x in numbers:
        total = total + x
    return total


@cache
def _both() -> Block:
    """A flag of two groups."""
    return _block("both", lambda a, b: {"flag": a[0] * b[0]}, a=1, b=1)


@cache
def _product(n: int, first: int, second: int, is_diagonal: bool) -> Block:
    """A block a*b, of rows of two widths, and its mirror image; the one on the diagonal is its own."""
    width = min(first, second)

    def text(a: Numbers, b: Numbers) -> dict[str, object]:
        found: dict[tuple[int, int], Number] = {}
        for i in range(n):
            for j in range(n):
                if is_diagonal and j < i:
                    found[i, j] = found[j, i]
                else:
                    found[i, j] = _sum(a[i * first + k] * b[j * second + k] for k in range(width))
        here = [found[i, j] for i in range(n) for j in range(n)]
        there = [found[j, i] for i in range(n) for j in range(n)]
        return {"here": here} if is_diagonal else {"here": here, "there": there}

    return _block("product", text, a=n * first, b=n * second)


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

    return _block("inverse", text, block=n * n)


@cache
def _factor(n: int) -> Block:
    """Multiple of a pivot's row that is taken from another one; and the right side of that one."""

    def text(block: Numbers, inverse: Numbers, pivot: Numbers, right: Numbers) -> dict[str, object]:
        factor = [_sum(block[i * n + k] * inverse[k * n + j] for k in range(n)) for i in range(n) for j in range(n)]
        left = [right[i] - _sum(factor[i * n + k] * pivot[k] for k in range(n)) for i in range(n)]
        return {"factor": factor, "left": left}

    return _block("factor", text, block=n * n, inverse=n * n, pivot=n, right=n)


@cache
def _line(n: int, width: int) -> Block:
    """Blocks of a row of I - L W; and W times numbers, added to others."""

    def text(unit: Numbers, line: Numbers, row: Numbers, x: Numbers, total: Numbers) -> dict[str, object]:
        cleared, sums, size = list[Number](), list(total), n * n
        for q in range(width):  # block by block, so that each number of W is in a register once
            own = row[q * size : (q + 1) * size]
            sums = [a + b for a, b in zip(sums, _block_times(n, own, x[q * n : (q + 1) * n]), strict=True)]
            cleared += _less(n, unit[q * size : (q + 1) * size], line, own)
        return {"row": cleared, "total": sums}

    size = width * n * n
    return _block("line", text, unit=size, line=n * n, row=size, x=width * n, total=n)


def _less(n: int, block: Numbers, factor: Numbers, pivot: Numbers) -> list[Number]:
    """A block less the product of two others."""
    return [
        block[i * n + j] - _sum(factor[i * n + k] * pivot[k * n + j] for k in range(n))
        for i in range(n)
        for j in range(n)
    ]


def _block_times(n: int, block: Numbers, x: Numbers) -> list[Number]:
    """A block times numbers."""
    return [_sum(block[i * n + k] * x[k] for k in range(n)) for i in range(n)]


@cache
def _cleared(n: int, width: int) -> Block:
    """Blocks of a row without so much of another one's: what elimination leaves."""

    def text(row: Numbers, factor: Numbers, pivot: Numbers) -> dict[str, object]:
        blocks = range(0, width * n * n, n * n)
        return {"row": [x for s in blocks for x in _less(n, row[s : s + n * n], factor, pivot[s : s + n * n])]}

    return _block("cleared", text, row=width * n * n, factor=n * n, pivot=width * n * n)


@cache
def _times(n: int, width: int, sign: float) -> Block:
    """Numbers with a row of blocks times others added, or taken away."""

    def text(total: Numbers, row: Numbers, x: Numbers) -> dict[str, object]:
        made = [_block_times(n, row[q * n * n : (q + 1) * n * n], x[q * n : (q + 1) * n]) for q in range(width)]
        return {"total": [a + sign * _sum(parts) for a, *parts in zip(total, *made, strict=True)]}

    return _block("times", text, total=n, row=width * n * n, x=width * n)


@cache
def _pushed(n: int, width: int) -> Block:
    """Numbers of a tile with a column of W times a change added: W is its own mirror image."""

    def text(v: Numbers, row: Numbers, change: Numbers) -> dict[str, object]:
        return {
            "v": [
                v[q * n + j] + _sum(row[(q * n + i) * n + j] * change[i] for i in range(n))
                for q in range(width)
                for j in range(n)
            ]
        }

    return _block("pushed", text, v=width * n, row=width * n * n, change=n)


@cache
def _apart(n: int, groups: int) -> Block:
    """Numbers of groups that are not active, with zeros for others, and the rest."""

    def text(active: Numbers, shift: Numbers) -> dict[str, object]:
        rest = [active[k // n] * x for k, x in enumerate(shift)]
        return {"known": [a - b for a, b in zip(shift, rest, strict=True)], "rest": rest}

    return _block("apart", text, active=groups, shift=groups * n)


@cache
def _right(n: int) -> Block:
    """The right side, s + L v."""

    def text(v: Numbers, line: Numbers, rest: Numbers) -> dict[str, object]:
        return {"right": [rest[i] + _sum(line[i * n + k] * v[k] for k in range(n)) for i in range(n)]}

    return _block("right", text, v=n, line=n * n, rest=n)


@cache
def _added(count: int) -> Block:
    """Sums of numbers."""
    return _block("added", lambda a, b: {"sum": [x + y for x, y in zip(a, b, strict=True)]}, a=count, b=count)


@cache
def _applied(n: int) -> Block:
    """A block times numbers."""

    def text(block: Numbers, x: Numbers) -> dict[str, object]:
        return {"found": _block_times(n, block, x)}

    return _block("applied", text, block=n * n, x=n)
