"""Dense systems of which most may be empty, as programs: W = A*B and sweeps, in groups of rows.

Rows come in groups of a few, of which a state uses some. Groups stand in *tiles*, and whatever
belongs to a tile, or to a group, that no state of a block uses is passed over. So work grows with the groups that are
there and not with those there is room for, and code with the number of tiles alone: all of it calls a few short blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.trace.block import Block
from linkwise.trace.calls import traced
from linkwise.trace.program import Buffer, Call, Copy, For, IfAny, Place, Program, Statement, Stretch
from linkwise.trace.state_loops import Column, zeros
from linkwise.trace.tracer import Number

USED, W = "in:used", "products"

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


class RowTable:
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
    table, all_tiles = RowTable(), tiles.tiles
    sources = range(len(tiles.sources))
    sides = [[f"in:left{k}" for k in sources], [f"in:{'left' if is_square else 'right'}{k}" for k in sources]]
    buffers = [Buffer(USED, groups, load=True)]
    for names in sides[: 1 if is_square else 2]:
        buffers += [Buffer(name, sizes[k], load=True) for k, name in enumerate(names)]
    buffers += [Buffer(W, groups * groups * block, store=True), Buffer("flag", 1), *tile_flags(tiles)]
    statements = flags_raised(tiles)
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
                body: list[Statement] = [Call(both_flags(), asks, ("flag",)), made]
                statements.append(if_both((i, j), (table.over(rows, body),)))
    return table.program("products", buffers, statements)


def sweeps(tiles: Tiles, codes: Sequence[Block], columns: Sequence[Sequence[Column]], passes: int) -> Program:
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
    table, all_tiles, statements = RowTable(), tiles.tiles, flags_raised(tiles)
    sizes = {"in:v": groups * n, "in:x": groups * n, f"in:{W}": groups * groups * block}
    buffers = [Buffer(USED, groups, load=True), *(Buffer(name, size, load=True) for name, size in sizes.items())]
    for source, given in enumerate(columns):
        buffers += [Buffer(f"in:items{source}:{k}", c.size, load=True) for k, c in enumerate(given)]
    buffers += [Buffer("v", groups * n, store=True), Buffer("x", groups * n, store=True)]
    buffers += [Buffer("change", n), Buffer("nothing", 0), Buffer("flag", 1), *tile_flags(tiles)]
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
def tile_flags(tiles: Tiles, name: str = "tile") -> list[Buffer]:
    """A flag for each tile."""
    return [Buffer(f"{name}{k}", 1) for k in range(len(tiles.tiles))]


def flags_raised(tiles: Tiles, used: str = USED, name: str = "tile") -> list[Statement]:
    """The call that raises the flags of tiles that are used."""

    def text(used: Numbers) -> dict[str, object]:
        return {f"tile{k}": sum(used[group] for group in tile) for k, tile in enumerate(tiles.tiles)}

    names = tuple(f"{name}{k}" for k in range(len(tiles.tiles)))
    return [Call(block_of("tiles", text, used=tiles.count), (used,), names)]


def if_both(both: tuple[int, int], body: tuple[Statement, ...], name: str = "tile") -> Statement:
    """Statements for two tiles that are used."""
    for k in sorted(set(both), reverse=True):
        body = (IfAny(f"{name}{k}", body),)
    return body[0]


# Blocks.
def block_of(name: str, text: Callable[..., dict[str, object]], **inputs: int) -> Block:
    """The block of a text that calls nothing."""
    found = traced(name, text, inputs)
    assert isinstance(found, Block)
    return found


@cache
def both_flags() -> Block:
    """A flag of two groups."""
    return block_of("both", lambda a, b: {"flag": a[0] * b[0]}, a=1, b=1)


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
                    found[i, j] = sum(a[i * first + k] * b[j * second + k] for k in range(width))
        here = [found[i, j] for i in range(n) for j in range(n)]
        there = [found[j, i] for i in range(n) for j in range(n)]
        return {"here": here} if is_diagonal else {"here": here, "there": there}

    return block_of("product", text, a=n * first, b=n * second)


@cache
def _pushed(n: int, width: int) -> Block:
    """Numbers of a tile with a column of W times a change added: W is its own mirror image."""

    def text(v: Numbers, row: Numbers, change: Numbers) -> dict[str, object]:
        return {
            "v": [
                v[q * n + j] + sum(row[(q * n + i) * n + j] * change[i] for i in range(n))
                for q in range(width)
                for j in range(n)
            ]
        }

    return block_of("pushed", text, v=width * n, row=width * n * n, change=n)
