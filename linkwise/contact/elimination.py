"""Small dense systems over any scalar, written out: products that skip known zeros, squares, elimination."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.spatial.scalar import Scalar, is_zero


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
