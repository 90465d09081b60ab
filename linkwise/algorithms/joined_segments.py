"""Segments joined: what lies beyond a cut, and what that does to the segment before it (see :mod:`.segments`).

What lies from segment i on answers as F = P̂α + ẑ. With F' = P̂'α' + ẑ' beyond the cut and α' = c + Ψ*α - ΛF',

    F' = Q (c + Ψ*α - Λẑ') + ẑ',   Q = (1 + P̂'Λ)⁻¹P̂' = L(1 + L*ΛL)⁻¹L*,   P̂' = LL*,

and P̂ = P + ΨQΨ*, ẑ = z + ΨF'(α = 0). The form through L keeps Q symmetric, and 1 + L*ΛL is never badly conditioned
from below, however stiff or heavy the two sides are.
"""

from __future__ import annotations

from linkwise.spatial.scalar import Flat, Matrix, Scalar, sqrt, where

_ROUNDING = 1e-13

UPPER = [(i, j) for i in range(6) for j in range(i, 6)]
"""Places of the 21 numbers of a symmetric 6×6 matrix, its upper half by rows."""


def symmetric(numbers: Flat) -> Matrix:
    """A 6×6 matrix from its upper half by rows."""
    matrix: Matrix = [[0.0] * 6 for _ in range(6)]
    for x, (i, j) in zip(numbers, UPPER, strict=True):
        matrix[i][j] = matrix[j][i] = x
    return matrix


def upper(matrix: Matrix) -> list[Scalar]:
    """The upper half of a symmetric matrix by rows."""
    return [matrix[i][j] for i, j in UPPER]


def cholesky(A: Matrix) -> Matrix:
    """L with LL* = A, for a matrix that may be singular: P̂ is, along the joint at the cut.

    A pivot that is nothing but rounding is a direction in which the matrix has nothing: its column of L is zero.
    """
    L: Matrix = [[0.0] * 6 for _ in range(6)]
    for j in range(6):
        pivot = A[j][j]
        for k in range(j):
            pivot = pivot - L[j][k] * L[j][k]
        something = pivot > A[j][j] * _ROUNDING
        L[j][j] = where(something, sqrt(where(something, pivot, 1.0)), 0.0)
        scale = where(something, 1.0 / where(something, L[j][j], 1.0), 0.0)
        for i in range(j + 1, 6):
            x = A[i][j]
            for k in range(j):
                x = x - L[i][k] * L[j][k]
            L[i][j] = x * scale
    return L


def compliance(P: Matrix, Lambda: Matrix) -> Matrix:
    """Q = (1 + PΛ)⁻¹P, symmetric."""
    L = cholesky(P)
    LambdaL = product(Lambda, L)
    inner = product(transposed(L), LambdaL)
    for i in range(6):
        inner[i][i] = inner[i][i] + 1.0
    Y = lower_solve(cholesky(inner), transposed(L))
    return product(transposed(Y), Y)


def lower_solve(C: Matrix, B: Matrix) -> Matrix:
    """C⁻¹B for a lower triangular C."""
    rows: Matrix = []
    for i in range(6):
        row = list(B[i])
        for k in range(i):
            row = [x - C[i][k] * y for x, y in zip(row, rows[k], strict=True)]
        rows.append([x / C[i][i] for x in row])
    return rows


def product(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    columns = transposed(B)
    return [[_dot(row, column) for column in columns] for row in A]


def times(A: Matrix, x: Flat) -> list[Scalar]:
    """A x."""
    return [_dot(row, x) for row in A]


def transposed(A: Matrix) -> Matrix:
    """A*."""
    return [list(column) for column in zip(*A, strict=True)]


def plus(a: Flat, b: Flat) -> list[Scalar]:
    """a + b."""
    return [x + y for x, y in zip(a, b, strict=True)]


def minus(a: Flat, b: Flat) -> list[Scalar]:
    """a - b."""
    return [x - y for x, y in zip(a, b, strict=True)]


def _dot(a: Flat, b: Flat) -> Scalar:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total
