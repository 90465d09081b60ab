"""M = LᵀDL of a symmetric positive matrix, skipping structural zeros.

Eliminating the last row first keeps the branch-induced zeros of a tree's mass matrix (Featherstone 2005).
"""

from __future__ import annotations

from functools import cached_property

from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero, quotient


@dataclass(frozen=True)
class Factor:
    """L unit lower triangular and the inverses of D."""

    L: Matrix
    d_inverse: list[Scalar]

    def solve(self, b: Flat) -> list[Scalar]:
        """x with LᵀDL x = b."""
        x = list(b)
        for i, row in reversed(list(enumerate(self._below))):
            for j, entry in row:
                x[j] = x[j] - entry * x[i]
        x = [a * d for a, d in zip(x, self.d_inverse, strict=True)]
        for i, row in enumerate(self._below):
            for j, entry in row:
                x[i] = x[i] - entry * x[j]
        return x

    @cached_property
    def _below(self) -> list[list[tuple[int, Scalar]]]:
        """Column and value of the entries of each row of L that are not zero, before the diagonal."""
        rows = enumerate(self.L)
        return [[(j, entry) for j, entry in enumerate(row[:i]) if not is_zero(entry)] for i, row in rows]

    def kept(self, numbers: Flat) -> list[Scalar]:
        """The same numbers; where systems are solved in loops, laid down once for all that need them."""
        return list(numbers)

    def inverse(self) -> Matrix:
        """M⁻¹, its upper half computed and mirrored."""
        n = len(self.L)
        columns = [self.solve([1.0 if i == j else 0.0 for i in range(n)]) for j in range(n)]
        return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def factorize(matrix: Matrix) -> Factor:
    """Factor a symmetric positive matrix; not finite where it is singular."""
    n = len(matrix)
    A = [list(row) for row in matrix]
    d_inverse: list[Scalar] = [0.0] * n
    for k in reversed(range(n)):
        d_inverse[k] = quotient(1.0, A[k][k])
        row = A[k]
        filled = [i for i in range(k) if not is_zero(row[i])]
        # Downwards: row[j] for j <= i are still the old entries when they are used.
        for place, i in reversed(list(enumerate(filled))):
            a = row[i] * d_inverse[k]
            for j in filled[: place + 1]:
                A[i][j] = A[i][j] - a * row[j]
            row[i] = a
    L = [[A[i][j] if j < i else (1.0 if i == j else 0.0) for j in range(n)] for i in range(n)]
    return Factor(L, d_inverse)
