"""A square system with structural zeros, solved block by block, without a branch on numbers and without pivots.

Unknowns that depend on each other only through others that are known already are found one after another (the
irreducible blocks of the matrix). A block of up to three rows is solved by its adjugate, a larger one by orthogonal
columns (Gram and Schmidt, modified): both are right wherever the block has an inverse, whatever its leading entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from linkwise.spatial.scalar import Flat, Scalar, is_zero, quotient

Matrix = Sequence[Sequence[Scalar]]


class BlockTriangular:
    """A with an inverse, factored; that row i may determine unknown i is taken from the order of its rows."""

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self.blocks = irreducible_blocks(A)
        self.factors = [_factored([[A[i][j] for j in block] for i in block]) for block in self.blocks]

    def solve(self, b: Flat) -> list[Scalar]:
        """x with A x = b."""
        x: list[Scalar] = [0.0] * len(b)
        known: list[int] = []
        for block, factor in zip(self.blocks, self.factors, strict=True):
            left = [b[i] - dot([self.A[i][j] for j in known], [x[j] for j in known]) for i in block]
            for i, value in zip(block, factor.solve(left), strict=True):
                x[i] = value
            known += block
        return x

    def solve_adjoint(self, b: Flat) -> list[Scalar]:
        """x with A*x = b."""
        x: list[Scalar] = [0.0] * len(b)
        known: list[int] = []
        for block, factor in zip(reversed(self.blocks), reversed(self.factors), strict=True):
            left = [b[j] - dot([self.A[i][j] for i in known], [x[i] for i in known]) for j in block]
            for j, value in zip(block, factor.solve_adjoint(left), strict=True):
                x[j] = value
            known += block
        return x


class SmallFactor(Protocol):
    """A block without structure."""

    def solve(self, b: Flat) -> list[Scalar]:
        """A⁻¹b."""

    def solve_adjoint(self, b: Flat) -> list[Scalar]:
        """A⁻*b."""


def _factored(A: Matrix) -> SmallFactor:
    return Adjugate(A) if len(A) <= 3 else Orthogonal(A)


class Adjugate:
    """A⁻¹ = adj A / det A, of up to three rows."""

    def __init__(self, A: Matrix) -> None:
        n = len(A)
        adjugate = [[_cofactor(A, j, i) for j in range(n)] for i in range(n)]
        scale = quotient(1.0, dot(A[0], [row[0] for row in adjugate]))
        self.inverse = [[x * scale for x in row] for row in adjugate]

    def solve(self, b: Flat) -> list[Scalar]:
        """A⁻¹b."""
        return [dot(row, b) for row in self.inverse]

    def solve_adjoint(self, b: Flat) -> list[Scalar]:
        """A⁻*b."""
        return [dot(column, b) for column in zip(*self.inverse, strict=True)]


def _cofactor(A: Matrix, i: int, j: int) -> Scalar:
    minor = [[x for c, x in enumerate(row) if c != j] for r, row in enumerate(A) if r != i]
    if len(minor) < 2:
        value: Scalar = minor[0][0] if minor else 1.0
    else:
        value = minor[0][0] * minor[1][1] - minor[0][1] * minor[1][0]
    return -value if (i + j) % 2 else value


class Orthogonal:
    """A = QR with orthogonal columns, not of length one, and R unit upper triangular."""

    def __init__(self, A: Matrix) -> None:
        n = len(A)
        self.Q: list[list[Scalar]] = [[row[j] for row in A] for j in range(n)]
        self.R: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        self.weights: list[Scalar] = []
        for j in range(n):
            self.weights.append(quotient(1.0, dot(self.Q[j], self.Q[j])))
            for k in range(j + 1, n):
                self.R[j][k], self.Q[k] = self._without(j, self.Q[k])

    def _without(self, j: int, b: Flat) -> tuple[Scalar, list[Scalar]]:
        """How much of column j is in b, and the rest of b."""
        share = dot(self.Q[j], b) * self.weights[j]
        return share, [x - share * y for x, y in zip(b, self.Q[j], strict=True)]

    def solve(self, b: Flat) -> list[Scalar]:
        """A⁻¹b."""
        x: list[Scalar] = []
        for j in range(len(self.Q)):
            share, b = self._without(j, b)
            x.append(share)
        for j in reversed(range(len(x))):
            x[j] = x[j] - dot(self.R[j][j + 1 :], x[j + 1 :])
        return x

    def solve_adjoint(self, b: Flat) -> list[Scalar]:
        """A⁻*b."""
        w: list[Scalar] = []
        for j in range(len(self.Q)):
            w.append(b[j] - dot([self.R[i][j] for i in range(j)], w))
        scaled = [x * weight for x, weight in zip(w, self.weights, strict=True)]
        return [dot(row, scaled) for row in zip(*self.Q, strict=True)]


def irreducible_blocks(A: Matrix) -> list[list[int]]:
    """The unknowns in groups, each of which depends on itself and on those before it (Tarjan's components)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    open_: list[int] = []
    blocks: list[list[int]] = []

    def visit(i: int) -> None:
        number[i] = lowest[i] = len(number)
        open_.append(i)
        for j, x in enumerate(A[i]):
            if is_zero(x) or i == j:
                continue
            if j not in number:
                visit(j)
                lowest[i] = min(lowest[i], lowest[j])
            elif j in open_:
                lowest[i] = min(lowest[i], number[j])
        if lowest[i] == number[i]:
            place = open_.index(i)
            blocks.append(sorted(open_[place:]))
            del open_[place:]

    for i in range(len(A)):
        if i not in number:
            visit(i)
    return blocks


def dot(x: Flat, y: Flat) -> Scalar:
    """Σ x y without what is known to be zero."""
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        if not is_zero(a) and not is_zero(b):
            total = total + a * b
    return total
