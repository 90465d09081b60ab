"""Linear systems of many unknowns as programs with loops: tiles of the matrix, and a list of what is done to them.

The matrix is cut into square tiles. Factoring it is a long list of a few tasks, each a straight-line body over one, two
or three tiles: factor a tile on the diagonal, solve with it to the right and below, take a product from what is left.
Which tiles a task works on is data. Tiles that stay zero are left out of memory and of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from linkwise.trace.block import ArraySpec, Block
from linkwise.trace.program import Buffer, Call, For, Program, Stretch, choice, input_buffer, output_buffer
from linkwise.trace.tracer import Number, trace

TILE = 8

Tile = list[list[Number]]
Place = tuple[str, int]
"""A space and where to begin in it."""


class TiledSystem:
    """Programs that factor (d I - J) without pivoting and solve with it.

    ``factor`` takes ``matrix``, the columns of J one behind the other (more may follow), and ``shift``, d; it makes
    ``factors``. ``solve`` takes these and ``right`` and makes ``x``.

    Args:
        pattern: (n, n), where J may be other than zero.
        columns: columns in ``matrix``, at least n.
        tile: rows and columns of a tile.
    """

    def __init__(self, pattern: Any, columns: int, tile: int = TILE) -> None:
        self.n = len(pattern)
        self.starts = list(range(0, self.n, tile))
        self.sizes = [min(tile, self.n - start) for start in self.starts]
        count = range(len(self.starts))
        given = {(i, j) for i in count for j in count if i == j or self._block(pattern, i, j).any()}
        filled = set(given)
        for k in count:
            below, right = [i for i in count if i > k and (i, k) in filled], [j for j in count if (k, j) in filled]
            filled |= {(i, j) for i in below for j in right if j > k}
        self.place: dict[tuple[int, int], int] = {}
        total = 0
        for i, j in sorted(filled):
            self.place[i, j] = total
            total += self.sizes[i] * self.sizes[j]
        self.total = total
        self.columns, self.given = columns, given
        self.factor = self._factor()
        self.solve = self._solve()

    def _block(self, matrix: Any, i: int, j: int) -> Any:
        rows, columns = (slice(self.starts[k], self.starts[k] + self.sizes[k]) for k in (i, j))
        return matrix[rows, columns]

    def _inputs(self) -> list[ArraySpec]:
        """Inputs of ``factor``."""
        return [ArraySpec("matrix", (self.columns * self.n,)), ArraySpec("shift", (1,))]

    def _load(self, tasks: _Tasks, i: int, j: int) -> None:
        """Fill a tile."""
        b = self.sizes
        columns = [("in:matrix", (self.starts[j] + c) * self.n + self.starts[i]) for c in range(b[j])]
        read = [*columns, ("in:shift", 0)] if (i, j) in self.given else []
        tasks.add(_loaded, (b[i], b[j], i == j, bool(read)), read, [b[i]] * b[j] + [1], self._at(i, j), b[i] * b[j])

    def _factor(self) -> Program:
        tasks = _Tasks()
        count = range(len(self.starts))
        b = self.sizes
        for i, j in self.place:
            self._load(tasks, i, j)
        for k in count:
            own = self._at(k, k)
            square = b[k] * b[k]
            tasks.add(_factored, (b[k],), [own], [square], own, square)
            right = [j for j in count if j > k and (k, j) in self.place]
            below = [i for i in count if i > k and (i, k) in self.place]
            for j in right:
                there = self._at(k, j)
                tasks.add(_to_the_right, (b[k], b[j]), [own, there], [square, b[k] * b[j]], there, b[k] * b[j])
            for i in below:
                there = self._at(i, k)
                tasks.add(_below, (b[i], b[k]), [own, there], [square, b[i] * b[k]], there, b[i] * b[k])
            for i in below:
                for j in right:
                    there = self._at(i, j)
                    read, sizes = [there, self._at(i, k), self._at(k, j)], [b[i] * b[j], b[i] * b[k], b[k] * b[j]]
                    tasks.add(_less_product, (b[i], b[k], b[j]), read, sizes, there, b[i] * b[j])
        return tasks.program("factor", self._inputs(), ArraySpec("factors", (self.total,)))

    def _at(self, i: int, j: int) -> Place:
        return "out:factors", self.place[i, j]

    def _solve(self) -> Program:
        tasks = _Tasks()
        count = range(len(self.starts))
        b = self.sizes

        def x(i: int) -> Place:
            return "out:x", self.starts[i]

        def tile(i: int, j: int) -> Place:
            return "in:factors", self.place[i, j]

        for i in count:
            tasks.add(_same, (b[i],), [("in:right", self.starts[i])], [b[i]], x(i), b[i])
        for way, step, order in ((1, _lower, count), (-1, _upper, reversed(count))):
            for i in order:
                for j in count:
                    if (j - i) * way < 0 and (i, j) in self.place:
                        read, sizes = [x(i), tile(i, j), x(j)], [b[i], b[i] * b[j], b[j]]
                        tasks.add(_less_product, (b[i], b[j], 1), read, sizes, x(i), b[i])
                tasks.add(step, (b[i],), [tile(i, i), x(i)], [b[i] * b[i], b[i]], x(i), b[i])
        inputs = [ArraySpec("factors", (self.total,)), ArraySpec("right", (self.n,))]
        return tasks.program("solve", inputs, ArraySpec("x", (self.n,)))


class SymmetricSystem(TiledSystem):
    """Programs that factor S + diag(d), S symmetric and the sum positive, and solve with it.

    ``factor`` takes ``matrix``, the lower half of S row by row, and ``diagonal``, d.

    Args:
        n: number of unknowns.
        tile: rows and columns of a tile.
    """

    def __init__(self, n: int, tile: int = TILE) -> None:
        super().__init__(np.ones((n, n), bool), n, tile)

    def _inputs(self) -> list[ArraySpec]:
        return [ArraySpec("matrix", (self.n * (self.n + 1) // 2,)), ArraySpec("diagonal", (self.n,))]

    def _load(self, tasks: _Tasks, i: int, j: int) -> None:
        below, beside = max(i, j), min(i, j)
        start, b = self.starts, self.sizes
        numbers = range(start[below], start[below] + b[below])
        read = [("in:matrix", row * (row + 1) // 2 + start[beside]) for row in numbers]
        sizes = [row - start[i] + 1 for row in numbers] if i == j else [b[beside]] * b[below]
        options = (b[i], b[j], (i > j) - (i < j))
        tasks.add(_half, options, [*read, ("in:diagonal", start[i])], [*sizes, b[i]], self._at(i, j), b[i] * b[j])


class TiledElimination:
    """Program that eliminates unknowns from X = [[D, E], [F, G]]: of its own rows, [D, E], and of users, [F, G].

    D is strictly block-triangular in some order of its groups: each unknown is what its row says, and the last rows are
    wanted in terms of the last columns alone, F(I - D)⁻¹E + G. Group after group is put in where it is used, by
    products of tiles; tiles that are zero are left out, also of what is made: those that F(I - D)⁻¹E does not reach.

    The program takes ``entries``, tiles one behind the other, and makes ``rows``, likewise. Row and column of each
    number are in ``given`` and ``made``; None where a tile goes beyond the last row or column.

    Args:
        pattern: where X may be other than zero.
        sizes: of the groups of unknowns, in a good order of elimination; a better one is looked for.
    """

    def __init__(self, pattern: Any, sizes: Sequence[int]) -> None:
        grids = [_Grid(pattern, sizes, tile) for tile in _TILES]
        grid = min(grids, key=lambda grid: grid.work(grid.order))
        square = grid.tile * grid.tile
        given = [(int(i), int(j)) for i, j in np.argwhere(grid.pattern)]
        at: dict[tuple[int, int], Place] = {tile: ("in:entries", k * square) for k, tile in enumerate(given)}
        made: list[tuple[int, int]] = []
        free: list[Place] = []
        room, tasks = 0, _Tasks()
        for products, done in grid.stages():
            for i, j, inner in products:
                here = at.get((i, j))
                for k, parts in inner:
                    start = here
                    if here is None or here[0] == "in:entries":
                        if i >= grid.own and j >= grid.own:
                            here = ("out:rows", len(made) * square)
                            made.append((i, j))
                        elif free:
                            here = free.pop()
                        else:
                            here, room = ("work", room), room + square
                    read = [at[i, k], at[k, j]] if start is None else [start, at[i, k], at[k, j]]
                    tasks.add(_plus_product, (grid.tile, parts), read, [square] * len(read), here, square)
                assert here is not None
                at[i, j] = here
            free += [place for place in map(at.pop, done) if place[0] == "work"]
        self.given, self.made = grid.entries(given), grid.entries(made)
        inputs, output = [ArraySpec("entries", (len(self.given),))], ArraySpec("rows", (len(self.made),))
        self.program = tasks.program("eliminated", inputs, output, [Buffer("work", room)] if room else [])


class _Grid:
    """X in tiles of one size, and the tasks that eliminate its unknowns."""

    def __init__(self, pattern: Any, sizes: Sequence[int], tile: int) -> None:
        self.tile, self.shape, self.filled = tile, pattern.shape, pattern
        ends = np.cumsum([0, *sizes]).tolist()
        of_unknown = [(group, k // tile) for group, size in enumerate(sizes) for k in range(size)]
        names = {name: k for k, name in enumerate(dict.fromkeys(of_unknown))}
        self.own = len(names)
        starts = [ends[group] + tile * part for group, part in names]
        last = [min(start + tile, ends[group + 1]) for start, (group, _) in zip(starts, names, strict=True)]
        self._begin: list[list[int]] = []
        self._end: list[list[int]] = []
        places = []
        for total in pattern.shape:
            rest = range(ends[-1], total, tile)
            self._begin.append([*starts, *rest])
            self._end.append([*last, *(min(x + tile, total) for x in rest)])
            more = [self.own + k // tile for k in range(total - ends[-1])]
            places.append(np.array([*(names[name] for name in of_unknown), *more], int))
        self.pattern = np.zeros([len(begin) for begin in self._begin], bool)
        i, j = np.nonzero(pattern)
        self.pattern[places[0][i], places[1][j]] = True
        self.groups: list[list[int]] = [[] for _ in sizes]
        for (group, _), k in names.items():
            self.groups[group].append(k)
        self.order = self._bettered(list(range(len(sizes))))

    def work(self, order: Sequence[int]) -> int:
        """Work of all products, in multiplications."""
        now, tasks = self.pattern.astype(np.float32), 0
        for own in map(self.groups.__getitem__, order):
            users, behind = now[:, own], now[own]
            tasks += int(users.sum(axis=0) @ behind.sum(axis=1))
            now = np.minimum(now + users @ behind, 1.0)
            now[:, own] = now[own] = 0.0
        return tasks * (self.tile**3 + 2 * self.tile**2 + _TASK)

    def _bettered(self, order: list[int]) -> list[int]:
        """An order in which no group is better moved elsewhere, or nearly so."""
        best = self.work(order)
        for k in 2 * order:
            rest = [other for other in order if other != k]
            ways = [[*rest[:place], k, *rest[place:]] for place in range(len(order))]
            least, way = min(((self.work(way), way) for way in ways), key=lambda found: found[0])
            best, order = (least, way) if least < best else (best, order)
        return order

    def stages(self) -> Iterator[tuple[list[tuple[int, int, list[tuple[int, Parts]]]], list[tuple[int, int]]]]:
        """Of each group: tiles of X, with the tiles of unknowns put in there; and tiles that nothing needs after it."""
        now, filled = self.pattern.copy(), self.filled.copy()
        for own in map(self.groups.__getitem__, self.order):
            users, behind = (np.flatnonzero(x).tolist() for x in (now[:, own].any(axis=1), now[own].any(axis=0)))
            halves = cache(partial(self._halves, filled))
            products = [
                (i, j, [(k, _parts(halves(i, k), halves(k, j))) for k in own if now[i, k] and now[k, j]])
                for i in users
                for j in behind
            ]
            done = [(i, k) for i in users for k in own if now[i, k]]
            done += [(k, j) for k in own for j in behind if now[k, j]]
            yield [one for one in products if one[2]], done
            unknowns = slice(self._begin[0][own[0]], self._end[0][own[-1]])
            for pattern, gone in ((now, own), (filled, unknowns)):
                pattern |= pattern[:, gone].astype(np.float32) @ pattern[gone].astype(np.float32) > 0.0
                pattern[:, gone] = pattern[gone] = False

    def _halves(self, filled: Any, i: int, j: int) -> Any:
        """Where halves of a tile are other than zero (2, 2)."""
        rows, columns = (slice(self._begin[a][x], self._end[a][x]) for a, x in enumerate((i, j)))
        block = filled[rows, columns]
        return _of_tiles(np.pad(block, [(0, self.tile - n) for n in block.shape]), -(-self.tile // 2))

    def entries(self, tiles: Sequence[tuple[int, int]]) -> list[tuple[int, int] | None]:
        """Row and column of every number of some tiles."""
        found: list[tuple[int, int] | None] = []
        for tile in tiles:
            (i, rows), (j, columns) = ((self._begin[a][x], self._end[a][x]) for a, x in enumerate(tile))
            for row in range(i, i + self.tile):
                for column in range(j, j + self.tile):
                    found.append((row, column) if row < rows and column < columns else None)
        return found


Parts = frozenset[tuple[int, int, int]]
"""Rows, inner index and columns of products, each the first or the second half of a tile."""


def _parts(A: Any, B: Any) -> Parts:
    """Products of halves of two tiles that are not zero: three quarters of all, in Jacobians of steps."""
    return frozenset((i, k, j) for i in (0, 1) for k in (0, 1) for j in (0, 1) if A[i, k] and B[k, j])


_TILES = (6, 7, 8)
_TASK = 20
"""The time from one task to the next, in multiplications."""


def multiplications(A: Any, B: Any, tile: int = 7) -> int:
    """Multiplications of a product of matrices with these patterns, by tiles."""
    a, b = (_of_tiles(pattern, tile) for pattern in (A, B))
    return int(a.sum(axis=0) @ b.sum(axis=1)) * tile**3


def _of_tiles(pattern: Any, tile: int) -> Any:
    """Tiles of a matrix that are not zero."""
    found = np.zeros([-(-n // tile) for n in pattern.shape], bool)
    i, j = np.nonzero(pattern)
    found[i // tile, j // tile] = True
    return found


class _Tasks:
    """A list of tasks while it is written."""

    def __init__(self) -> None:
        self.bodies: dict[Hashable, tuple[int, Call]] = {}
        self.blocks: dict[Hashable, Block] = {}
        self.kinds: list[int] = []
        self.rows: list[list[int]] = []

    def add(
        self,
        task: Callable[..., Tile],
        options: tuple[Hashable, ...],
        read: Sequence[Place],
        sizes: Sequence[int],
        write: Place,
        size: int,
    ) -> None:
        """Do one thing: ``task(*options, *arrays)`` of what is read there, written here."""
        spaces = tuple(space for space, _ in (*read, write))
        key = (task, options, spaces)
        if key not in self.bodies:
            inputs = [(f"x{k}", (n,)) for k, (n, _) in enumerate(zip(sizes, read, strict=False))]

            def text(*arrays: Sequence[Number]) -> list[tuple[str, tuple[int, ...], list[Number]]]:
                return [("y", (size,), [x for row in task(*options, *arrays) for x in row])]

            # What a task changes it reads from where it writes.
            columns = [len(read) if place == write else k for k, place in enumerate(read)]
            stretches = [Stretch(space, column) for (space, _), column in zip(read, columns, strict=True)]
            block = (task, options, tuple(sizes))
            if block not in self.blocks:
                self.blocks[block] = trace(task.__name__, text, inputs)
            body = Call(self.blocks[block], tuple(stretches), (Stretch(write[0], len(read)),))
            self.bodies[key] = len(self.bodies), body
        self.kinds.append(self.bodies[key][0])
        self.rows.append([*(start for _, start in read), write[1]])

    def program(self, name: str, inputs: Sequence[ArraySpec], output: ArraySpec, own: Sequence[Buffer] = ()) -> Program:
        """All of them, in the order in which they were added."""
        kind_column = max(map(len, self.rows))
        table = np.zeros((len(self.rows), kind_column + 1), np.int64)
        for row, numbers in zip(table, self.rows, strict=True):
            row[: len(numbers)] = numbers
        table[:, kind_column] = self.kinds
        bodies = [body for _, body in self.bodies.values()]
        return Program(
            name,
            (*map(input_buffer, inputs), *own, output_buffer(output)),
            (For("tasks", choice(bodies, kind_column)),),
            rows=table,
            ranges=(("tasks", 0, len(table)),),
        )


# The tasks, on tiles of so many rows and columns, each row by row. On the diagonal L (with ones there) and U lie in one
# tile, with the diagonal of U inverted.
def _tile(numbers: Sequence[Number], columns: int) -> Tile:
    return [list(numbers[k : k + columns]) for k in range(0, len(numbers), columns)]


def _loaded(rows: int, columns: int, diagonal: bool, given: bool, *read: Sequence[Number]) -> Tile:
    """Tile of d I - J."""
    if not given:
        return [[0.0] * columns for _ in range(rows)]
    shift = read[columns][0]
    return [[(shift if diagonal and i == j else 0.0) - read[j][i] for j in range(columns)] for i in range(rows)]


def _half(rows: int, columns: int, side: int, *read: Sequence[Number]) -> Tile:
    """Tile of S + diag(d), from rows of the lower half: below the diagonal (1), above it (-1), or on it (0)."""
    if side:
        return [[read[i][j] if side > 0 else read[j][i] for j in range(columns)] for i in range(rows)]
    diagonal = read[rows]
    return [
        [read[max(i, j)][min(i, j)] + (diagonal[i] if i == j else 0.0) for j in range(columns)] for i in range(rows)
    ]


def _factored(size: int, numbers: Sequence[Number]) -> Tile:
    A = _tile(numbers, size)
    for k in range(size):
        A[k][k] = 1.0 / A[k][k]
        for i in range(k + 1, size):
            A[i][k] = A[i][k] * A[k][k]
            for j in range(k + 1, size):
                A[i][j] = A[i][j] - A[i][k] * A[k][j]
    return A


def _to_the_right(size: int, columns: int, factors: Sequence[Number], numbers: Sequence[Number]) -> Tile:
    """L⁻¹ A."""
    F, A = _tile(factors, size), _tile(numbers, columns)
    for i in range(size):
        for k in range(i):
            A[i] = [a - F[i][k] * b for a, b in zip(A[i], A[k], strict=True)]
    return A


def _below(rows: int, size: int, factors: Sequence[Number], numbers: Sequence[Number]) -> Tile:
    """A U⁻¹."""
    F, A = _tile(factors, size), _tile(numbers, size)
    for row in A:
        for j in range(size):
            for k in range(j):
                row[j] = row[j] - row[k] * F[k][j]
            row[j] = row[j] * F[j][j]
    return A


def _less_product(rows: int, inner: int, columns: int, *read: Sequence[Number]) -> Tile:
    """C - A B."""
    C, A, B = _tile(read[0], columns), _tile(read[1], inner), _tile(read[2], columns)
    for i in range(rows):
        for k in range(inner):
            C[i] = [c - A[i][k] * b for c, b in zip(C[i], B[k], strict=True)]
    return C


def _plus_product(size: int, parts: Parts, *read: Sequence[Number]) -> Tile:
    """C + A B, or A B, of some parts of the product."""
    *start, a, b = read
    A, B = _tile(a, size), _tile(b, size)
    C = _tile(start[0], size) if start else [[0.0] * size for _ in range(size)]
    half = -(-size // 2)
    for i, k, j in product(range(size), repeat=3):
        if (i // half, k // half, j // half) in parts:
            C[i][j] = C[i][j] + A[i][k] * B[k][j]
    return C


def _same(size: int, numbers: Sequence[Number]) -> Tile:
    return [list(numbers)]


def _lower(size: int, factors: Sequence[Number], numbers: Sequence[Number]) -> Tile:
    """L⁻¹ x."""
    return _to_the_right(size, 1, factors, numbers)


def _upper(size: int, factors: Sequence[Number], numbers: Sequence[Number]) -> Tile:
    """U⁻¹ x."""
    F, x = _tile(factors, size), list(numbers)
    for i in reversed(range(size)):
        for k in range(i + 1, size):
            x[i] = x[i] - F[i][k] * x[k]
        x[i] = x[i] * F[i][i]
    return [[value] for value in x]
