"""Small dense matrices over any scalar, as lists of rows; a constant zero costs nothing when traced."""

from __future__ import annotations

from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, plus


def zeros(rows: int, columns: int) -> Matrix:
    """A matrix of zeros, to be filled."""
    return [[0.0] * columns for _ in range(rows)]


def identity(n: int) -> Matrix:
    """1."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def transposed(A: Matrix, columns: int | None = None) -> Matrix:
    """Aᵀ; ``columns`` says how many A has where it has no rows."""
    return [list(column) for column in zip(*A, strict=True)] if A else [[] for _ in range(columns or 0)]


def times(A: Matrix, x: Flat) -> list[Scalar]:
    """A x."""
    return [dot(row, x) for row in A]


def product(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    columns = transposed(B)
    return [[dot(row, column) for column in columns] for row in A]


def matrix_plus(A: Matrix, B: Matrix) -> Matrix:
    """A + B."""
    return [plus(a, b) for a, b in zip(A, B, strict=True)]
