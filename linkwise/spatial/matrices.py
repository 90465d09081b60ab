"""Matrices over any scalar: 3×3 as rows, a symmetric one sharing its entries; small dense ones as lists of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value, dot, plus
from linkwise.spatial.vectors import Vec

Rows = tuple[tuple[Scalar, Scalar, Scalar], ...]


class Mat3(Value):
    """A general 3×3 matrix."""

    __slots__ = ("m",)

    def __init__(self, rows: Sequence[Sequence[Scalar]]) -> None:
        a, b, c = rows
        self.m: Rows = ((a[0], a[1], a[2]), (b[0], b[1], b[2]), (c[0], c[1], c[2]))

    @classmethod
    def build(cls, entry: Callable[[int, int], Scalar]) -> Mat3:
        """Matrix from a function of row and column."""
        return cls([[entry(i, j) for j in range(3)] for i in range(3)])

    @classmethod
    def identity(cls) -> Mat3:
        return cls(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))

    @classmethod
    def zero(cls) -> Mat3:
        return cls(((0.0,) * 3,) * 3)

    @classmethod
    def cross(cls, v: Vec) -> Mat3:
        """v~, so that ``Mat3.cross(v) @ w`` is v × w."""
        return cls(((0.0, -v.z, v.y), (v.z, 0.0, -v.x), (-v.y, v.x, 0.0)))

    def column(self, j: int) -> Vec:
        return Vec(self.m[0][j], self.m[1][j], self.m[2][j])

    @property
    def T(self) -> Mat3:
        return Mat3(tuple(zip(*self.m, strict=True)))

    def __add__(self, other: Mat3) -> Mat3:
        return Mat3.build(lambda i, j: self.m[i][j] + other.m[i][j])

    def __sub__(self, other: Mat3) -> Mat3:
        return Mat3.build(lambda i, j: self.m[i][j] - other.m[i][j])

    def __mul__(self, scale: Scalar) -> Mat3:
        return Mat3.build(lambda i, j: self.m[i][j] * scale)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(*(r[0] * v.x + r[1] * v.y + r[2] * v.z for r in self.m))

    def transpose_times(self, v: Vec) -> Vec:
        """Mᵀ v."""
        m = self.m
        return Vec(*(m[0][j] * v.x + m[1][j] * v.y + m[2][j] * v.z for j in range(3)))

    def times(self, other: Mat3) -> Mat3:
        """The product of two matrices."""
        a, b = self.m, other.m
        return Mat3.build(lambda i, j: a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j])


class Sym3(Mat3):
    """A symmetric matrix: six numbers, each off-diagonal one standing in two places."""

    __slots__ = ()

    @classmethod
    def of(cls, xx: Scalar, yy: Scalar, zz: Scalar, xy: Scalar, xz: Scalar, yz: Scalar) -> Sym3:
        return cls(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    @classmethod
    def build_symmetric(cls, entry: Callable[[int, int], Scalar]) -> Sym3:
        """Matrix from a function of row ≤ column."""
        return cls.of(*(entry(i, j) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))

    @classmethod
    def zero(cls) -> Sym3:
        return cls.of(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def six(self) -> tuple[Scalar, ...]:
        """xx, yy, zz, xy, xz, yz."""
        m = self.m
        return (m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2])

    def parts(self) -> Sequence[Scalar]:
        return self.six()

    @classmethod
    def from_parts(cls, parts: Sequence[Scalar]) -> Sym3:
        return cls.of(*parts)

    def plus(self, other: Sym3) -> Sym3:
        """The sum, symmetric again."""
        return Sym3.of(*(a + b for a, b in zip(self.six(), other.six(), strict=True)))

    def minus(self, other: Sym3) -> Sym3:
        """The difference, symmetric again."""
        return Sym3.of(*(a - b for a, b in zip(self.six(), other.six(), strict=True)))


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
