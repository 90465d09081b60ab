"""Small matrices over any scalar: systems, inverses, determinants, factors.

Rows are exchanged by ``where``, since a traced pivot has no value yet: the operations are those of Gaussian elimination
with partial pivoting, and as many choices again. For matrices of a few rows.
"""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.spatial.scalar import Scalar, is_zero, sqrt, where


def _is_numeric(*arrays: Array) -> bool:
    return all(np.asarray(array).dtype.kind in "fiub" for array in arrays)


def _square(A: Array, what: str) -> Array:
    A = np.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise InputError(f"{what} takes a square matrix", got=f"shape {A.shape}", allowed="(n, n)")
    return A


def _eliminated(A: Array, B: Array) -> tuple[list[list[Scalar]], list[list[Scalar]], Scalar]:
    """U and the right sides after elimination with partial pivoting, and the sign of the exchanges."""
    n = len(A)
    U, right = [list(row) for row in A], [list(row) for row in B]
    sign: Scalar = 1.0
    for k in range(n):
        for i in range(k + 1, n):
            if is_zero(U[i][k]):
                continue
            larger = abs(U[i][k]) > abs(U[k][k])
            for rows in (U, right):
                pairs = [(where(larger, b, a), where(larger, a, b)) for a, b in zip(rows[k], rows[i], strict=True)]
                rows[k], rows[i] = [a for a, _ in pairs], [b for _, b in pairs]
            sign = where(larger, -sign, sign)
        for i in range(k + 1, n):
            if is_zero(U[i][k]):
                continue
            factor = U[i][k] / U[k][k]
            U[i] = [*U[i][: k + 1], *(b - factor * a for a, b in zip(U[k][k + 1 :], U[i][k + 1 :], strict=True))]
            right[i] = [b - factor * a for a, b in zip(right[k], right[i], strict=True)]
    return U, right, sign


def solve(A: Array, b: Array) -> Array:
    """The solution x of A x = b, with A (n, n) and b (n) or (n, m), over any scalar.

    >>> solve([[0.0, 2.0], [1.0, 0.0]], [4.0, 3.0]).tolist()
    [3.0, 2.0]
    """
    if _is_numeric(A, b):
        return np.linalg.solve(np.asarray(A, float), np.asarray(b, float))
    A, b = _square(A, "solve"), np.asarray(b, object)
    if b.ndim not in (1, 2) or len(b) != len(A):
        raise InputError("the sides of a system do not fit together", got=f"{A.shape} and {b.shape}")
    n = len(A)
    U, right, _ = _eliminated(A, b.reshape(n, -1))
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            right[i] = [x - U[i][j] * y for x, y in zip(right[i], right[j], strict=True)]
        right[i] = [x / U[i][i] for x in right[i]]
    solution: Array = scalar_array([x for row in right for x in row], b.shape)
    return solution


def inverse(A: Array) -> Array:
    """A⁻¹ of a small matrix (n, n)."""
    return solve(A, np.eye(len(_square(A, "inv"))))


def determinant(A: Array) -> Scalar:
    """Det A of a small matrix (n, n)."""
    A = _square(A, "det")
    if _is_numeric(A):
        return float(np.linalg.det(A))
    U, _, total = _eliminated(A, np.empty((len(A), 0), object))
    for k in range(len(A)):
        total = total * U[k][k]
    return total


def cholesky(A: Array) -> Array:
    """The lower triangle L with A = L Lᵀ, of a positive symmetric matrix (n, n), over any scalar.

    >>> cholesky([[4.0, 2.0], [2.0, 5.0]]).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """
    if _is_numeric(A):
        return np.linalg.cholesky(np.asarray(A, float))
    A = _square(A, "cholesky")
    n = len(A)
    L: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            total = A[i, j]
            for k in range(j):
                total = total - L[i][k] * L[j][k]
            L[i][j] = sqrt(total) if i == j else total / L[j][j]
    lower: Array = scalar_array([x for row in L for x in row], (n, n))
    return lower


def norm(x: Array, order: float | str | None = None) -> Scalar:
    """The length of a vector, or the root of the sum of squares of a matrix; orders 1 and inf of vectors too."""
    flat = list(np.asarray(x, object).reshape(-1))
    total: Scalar = 0.0
    if order in (None, 2, "fro") and not (order == 2 and np.ndim(x) > 1):
        for value in flat:
            total = total + value * value
        return sqrt(total)
    if np.ndim(x) == 1 and order in (1, np.inf):
        for value in flat:
            size = abs(value)
            total = total + size if order == 1 else where(size > total, size, total)
        return total
    raise TypeError("only the usual norm, and those of order 1 and inf of vectors")
