"""Small dense systems over any scalar, written out: products that skip known zeros, squares, elimination."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial.scalar import Items, Scalar, is_zero, looped_over


def sparse_product(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    """The inner product of two rows, without the terms that are known to be zero."""
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not is_zero(x) and not is_zero(y):
            total = total + x * y
    return total


def eliminated(matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
    """The solution of a system whose pivots stand on the diagonal."""
    rows = [[*row, x] for row, x in zip(matrix, right, strict=True)]
    n = len(rows)
    inverses: list[Scalar] = []
    for k in range(n):
        inverses.append(1.0 / rows[k][k])
        for i in range(k + 1, n):
            if is_zero(rows[i][k]):
                continue
            factor = rows[i][k] * inverses[k]
            for j in range(k + 1, n + 1):
                rows[i][j] = rows[i][j] - factor * rows[k][j]
    found: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        rest = rows[k][n]
        for i in range(k + 1, n):
            rest = rest - rows[k][i] * found[i]
        found[k] = rest * inverses[k]
    return found


def squared(values: Sequence[Scalar]) -> Scalar:
    """The squared length of a vector; of a long one by halves, which need not wait for each other."""
    half = len(values) // 2
    if half > 4:
        return squared(values[:half]) + squared(values[half:])
    total: Scalar = 0.0
    for x in values:
        total = total + x * x
    return total


def eliminated_in_loops(matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar], block: int = 6) -> list[Scalar]:
    """The same by loops, of little code for many unknowns.

    Some rows at a time are written out; a loop over all rows below clears the columns of their pivots, so that what is
    left of a matrix is read and written once for each block of them.

    Args:
        matrix: rows.
        right: the right side.
        block: how many rows are written out at a time.
    """
    numbers: list[Scalar] = [x for row, last in zip(matrix, right, strict=True) for x in (*row, last)]
    n, width = len(right), len(right) + 1
    upper: list[list[Scalar]] = []
    for done in range(0, n, block):
        size, left = min(block, n - done), n - done
        head = [numbers[k * width : (k + 1) * width] for k in range(size)]
        for k, pivot in enumerate(head):
            inverse = 1.0 / pivot[k]
            head[k] = [0.0] * k + [x * inverse for x in pivot[k:]]
            for i in range(k + 1, size):
                head[i] = _cleared(head[i], head[k], k)
        upper += head

        def below_cleared(
            _: Sequence[Scalar],
            row: Sequence[Scalar],
            head: Sequence[Sequence[Scalar]] = tuple(head),
        ) -> tuple[list[Scalar], list[Scalar]]:
            now = list(row)
            for k, pivot in enumerate(head):
                now = _cleared(now, pivot, k)
            return [], now[len(head) :]

        if left > size:
            below = Items(numbers, [k * width for k in range(size, left)], width)
            made = looped_over([below], below_cleared, [])[1]
            numbers, width = [x for row in made for x in row], width - size
    found: list[Scalar] = []
    for k, row in reversed(list(enumerate(upper))):
        own = row[k % block :]
        rest = own[-1]
        for a, x in zip(own[1:-1], found, strict=True):
            rest = rest - a * x
        found.insert(0, rest)
    return found


def _cleared(row: Sequence[Scalar], pivot: Sequence[Scalar], k: int) -> list[Scalar]:
    """A row without its number of place k, by one that has a one there and zeros before."""
    return [*row[:k], 0.0, *(a - row[k] * b for a, b in zip(row[k + 1 :], pivot[k + 1 :], strict=True))]
