"""More of small dense matrices over any scalar, as lists of rows: inverses, factors, inertias as 6×6."""

from __future__ import annotations

from linkwise.algorithms.factors import factorize
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import Mat3, Sym3, product, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus, sqrt


def matrix_minus(A: Matrix, B: Matrix) -> Matrix:
    """A - B."""
    return [minus(a, b) for a, b in zip(A, B, strict=True)]


def negative(A: Matrix) -> Matrix:
    """-A."""
    return [[-x for x in row] for row in A]


def congruent(A: Matrix, B: Matrix) -> Matrix:
    """Aᵀ B A for symmetric B, its upper half computed and mirrored."""
    BA = product(B, A)
    columns, AT = transposed(BA), transposed(A)
    n = len(AT)
    half = [[dot(AT[i], columns[j]) if i <= j else 0.0 for j in range(n)] for i in range(n)]
    return [[half[min(i, j)][max(i, j)] for j in range(n)] for i in range(n)]


def inverse(A: Matrix) -> Matrix:
    """A⁻¹ of a symmetric positive matrix, symmetric again."""
    return factorize(A).inverse() if A else []


def as_rows(P: ArticulatedInertia) -> Matrix:
    """The 6×6 matrix of an inertia."""
    J, B, M = P.J.m, P.B.m, P.M.m
    return [[*J[i], *B[i]] for i in range(3)] + [[B[0][i], B[1][i], B[2][i], *M[i]] for i in range(3)]


def as_inertia(A: Matrix) -> ArticulatedInertia:
    """A symmetric 6×6 matrix as an inertia."""
    return ArticulatedInertia(
        Sym3.build_symmetric(lambda i, j: A[i][j]),
        Mat3.build(lambda i, j: A[i][j + 3]),
        Sym3.build_symmetric(lambda i, j: A[i + 3][j + 3]),
    )


def cholesky(A: Matrix) -> Matrix:
    """L with A = LL*, lower triangular; its diagonal holds the inverses of L's."""
    n = len(A)
    L = zeros(n, n)
    for j in range(n):
        L[j][j] = 1.0 / sqrt(A[j][j] - dot(L[j][:j], L[j][:j]))
        for i in range(j + 1, n):
            L[i][j] = (A[i][j] - dot(L[i][:j], L[j][:j])) * L[j][j]
    return L


def solve_cholesky(A: Matrix, b: Flat) -> list[Scalar]:
    """x with A x = b: forward and back substitution (Jain 1991 §3, Walker and Orin)."""
    L, n = cholesky(A), len(A)
    x = list(b)
    for i in range(n):
        x[i] = (x[i] - dot(L[i][:i], x[:i])) * L[i][i]
    for i in reversed(range(n)):
        x[i] = (x[i] - dot([L[k][i] for k in range(i + 1, n)], x[i + 1 :])) * L[i][i]
    return x
