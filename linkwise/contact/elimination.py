"""Small dense systems over any scalar, written out: products that skip known zeros, squares, elimination."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial.scalar import Scalar, is_zero, repeated


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
    """The squared length of a vector."""
    total: Scalar = 0.0
    for x in values:
        total = total + x * x
    return total


def eliminated_in_a_loop(matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]) -> list[Scalar]:
    """The same by a loop, of little code for many unknowns: each pass clears the first column, then turns it away.

    A row that has given its pivot goes behind the others, and is cleared on with them (Gauss and Jordan), so that
    after as many passes as there are rows they stand in their order again.
    """
    n = len(matrix)

    def step(state: list[Scalar]) -> list[Scalar]:
        rows = [state[k * (n + 1) : (k + 1) * (n + 1)] for k in range(n)]
        pivot = [x * (1.0 / rows[0][0]) for x in rows[0][1:]]
        found: list[Scalar] = []
        for row in rows[1:]:
            found += [a - row[0] * b for a, b in zip(row[1:], pivot, strict=True)][:-1]
            found += [0.0, row[-1] - row[0] * pivot[-1]]
        return [*found, *pivot[:-1], 0.0, pivot[-1]]

    found = repeated(n, step, [x for row, b in zip(matrix, right, strict=True) for x in (*row, b)])
    return [found[k * (n + 1) + n] for k in range(n)]
