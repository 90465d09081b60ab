"""Linear systems of many unknowns as programs with loops: tiles of the matrix, and a list of what is done to them.

The matrix is cut into square tiles. Factoring it is a long list of a few tasks, each a straight-line body over one, two
or three tiles: factor a tile on the diagonal, solve with it to the right and below, take a product from what is left.
Which tiles a task works on is data. Tiles that stay zero are left out of memory and of the list.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from linkwise.trace.block import ArraySpec
from linkwise.trace.program import Call, For, Program, Stretch, choice, input_buffer, output_buffer
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


class TiledProduct:
    """Program that makes C + A B, where tiles of A, B and C that are zero are left out.

    Its inputs ``a``, ``b`` and, if anything of it is needed, ``c`` are tiles one behind the other; so is what it makes,
    ``product``, of which tiles that A B does not reach are left out too. Beyond the last rows and columns tiles are
    filled up with zeros.

    Args:
        A: where A may be other than zero.
        B: where B may be.
        C: where C may be.
    """

    def __init__(self, A: Any, B: Any, C: Any) -> None:
        rows, inner, columns = _tile_sizes(A, B)
        of_a, of_b, of_c = (
            _tiles_of(pattern, *size) for pattern, size in ((A, (rows, inner)), (B, (inner, columns)), (C, (rows, columns)))
        )
        pairs: dict[tuple[int, int], list[int]] = {}
        for i, k in of_a:
            for m, j in of_b:
                if k == m:
                    pairs.setdefault((i, j), []).append(k)
        made = sorted(pairs)
        of_c = [tile for tile in of_c if tile in pairs]
        self.a, self.b = _entries(of_a, rows, inner), _entries(of_b, inner, columns)
        """Row and column of each number of the inputs; those beyond the last are zero."""
        self.c, self.made = _entries(of_c, rows, columns), _entries(made, rows, columns)
        self.multiplications = sum(map(len, pairs.values())) * rows * inner * columns
        tasks = _Tasks()
        at_a, at_b = (
            {tile: (f"in:{name}", n * size) for n, tile in enumerate(tiles)}
            for name, tiles, size in (("a", of_a, rows * inner), ("b", of_b, inner * columns))
        )
        size = rows * columns
        at_c = {tile: ("in:c", n * size) for n, tile in enumerate(of_c)}
        for n, (i, j) in enumerate(made):
            here = ("out:product", n * size)
            begin = at_c.get((i, j))
            for k in pairs[i, j]:
                read, lengths = [at_a[i, k], at_b[k, j]], [rows * inner, inner * columns]
                if begin is not None:
                    read, lengths = [begin, *read], [size, *lengths]
                tasks.add(_plus_product, (rows, inner, columns), read, lengths, here, size)
                begin = here
        inputs = [("a", self.a), ("b", self.b), ("c", self.c)]
        specs = [ArraySpec(name, (len(entries),)) for name, entries in inputs if entries]
        self.program = tasks.program("product", specs, ArraySpec("product", (len(self.made),)))


def _tile_sizes(A: Any, B: Any) -> tuple[int, int, int]:
    """Rows, inner numbers and columns of the tiles with which a product takes the least work."""

    def work(sizes: tuple[int, int, int]) -> int:
        rows, inner, columns = sizes
        users, made = (np.zeros(1 + A.shape[1] // inner) for _ in range(2))
        for _, k in _tiles_of(A, rows, inner):
            users[k] += 1
        for k, _ in _tiles_of(B, inner, columns):
            made[k] += 1
        return int(users @ made) * (rows * inner * columns + 2 * rows * columns + _TASK)

    return min(itertools.product(_TILES, repeat=3), key=work)


_TILES = (8, 7, 6, 5)
_TASK = 20
"""The time from one task to the next, in multiplications."""


def _tiles_of(pattern: Any, rows: int, columns: int) -> list[tuple[int, int]]:
    """Tiles that are not zero."""
    i, j = np.nonzero(pattern)
    return sorted(set(zip((i // rows).tolist(), (j // columns).tolist(), strict=True)))


def _entries(tiles: Sequence[tuple[int, int]], rows: int, columns: int) -> list[tuple[int, int]]:
    """Row and column of every number of some tiles."""
    return [(i * rows + r, j * columns + c) for i, j in tiles for r in range(rows) for c in range(columns)]


class _Tasks:
    """A list of tasks while it is written."""

    def __init__(self) -> None:
        self.bodies: dict[Hashable, tuple[int, Call]] = {}
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
            body = Call(trace(task.__name__, text, inputs), tuple(stretches), (Stretch(write[0], len(read)),))
            self.bodies[key] = len(self.bodies), body
        self.kinds.append(self.bodies[key][0])
        self.rows.append([*(start for _, start in read), write[1]])

    def program(self, name: str, inputs: Sequence[ArraySpec], output: ArraySpec) -> Program:
        """All of them, in the order in which they were added."""
        kind_column = max(map(len, self.rows))
        table = np.zeros((len(self.rows), kind_column + 1), np.int64)
        for row, numbers in zip(table, self.rows, strict=True):
            row[: len(numbers)] = numbers
        table[:, kind_column] = self.kinds
        bodies = [body for _, body in self.bodies.values()]
        return Program(
            name,
            (*map(input_buffer, inputs), output_buffer(output)),
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


def _plus_product(rows: int, inner: int, columns: int, *read: Sequence[Number]) -> Tile:
    """C + A B, or A B."""
    *start, a, b = read
    A, B = _tile(a, inner), _tile(b, columns)
    C = _tile(start[0], columns) if start else [[0.0] * columns for _ in range(rows)]
    for i in range(rows):
        for k in range(inner):
            C[i] = [c + A[i][k] * x for c, x in zip(C[i], B[k], strict=True)]
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
