"""Factors of matrices over any scalar, skipping structural zeros, and multipliers where rank is lost.

Eliminating the last row first keeps the branch-induced zeros of a tree's mass matrix (Featherstone 2005).

Unknowns that depend on each other only through others that are known already are found one after another (the
irreducible blocks of the matrix). A block of up to three rows is solved by its adjugate, a larger one by orthogonal
columns (Gram and Schmidt, modified): both are right wherever the block has an inverse, whatever its leading entries.

Multipliers of constraints are those of Λλ = r, where Λ = J_c𝓜⁻¹J_c* may have lost rank, by a fixed, small number of
proximal steps, (Λ + μW)λ ← r + μWλ from λ = 0, one factorisation, no branches. W is the diagonal of Λ, so that metres
and radians, light and heavy loops count alike. Components of λ along lost rows stay zero, so λ is the solution least in
the norm λ*Wλ; the others converge by μ/(μ + σ) a step, σ being an eigenvalue of Λ relative to W. Rounding of size ε/μ
stays in the lost rows, which do not reach the accelerations.

Which multiplier is eliminated when is decided from the zeros of Λ alone (least fill first), before any number is known:
with straight-line programs that costs nothing at run time, and loops that do not feel each other stay apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, is_zero, minus, quotient


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


Rows = Sequence[Sequence[Scalar]]


class BlockTriangular:
    """A with an inverse, factored; that row i may determine unknown i is taken from the order of its rows."""

    def __init__(self, A: Rows) -> None:
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


def _factored(A: Rows) -> SmallFactor:
    return Adjugate(A) if len(A) <= 3 else Orthogonal(A)


class Adjugate:
    """A⁻¹ = adj A / det A, of up to three rows."""

    def __init__(self, A: Rows) -> None:
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


def _cofactor(A: Rows, i: int, j: int) -> Scalar:
    minor = [[x for c, x in enumerate(row) if c != j] for r, row in enumerate(A) if r != i]
    if len(minor) < 2:
        value: Scalar = minor[0][0] if minor else 1.0
    else:
        value = minor[0][0] * minor[1][1] - minor[0][1] * minor[1][0]
    return -value if (i + j) % 2 else value


class Orthogonal:
    """A = QR with orthogonal columns, not of length one, and R unit upper triangular."""

    def __init__(self, A: Rows) -> None:
        n = len(A)
        self.Q: list[list[Scalar]] = [[row[j] for row in A] for j in range(n)]
        self.R: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        self.weights: list[Scalar] = []
        for j in range(n):
            self.weights.append(quotient(1.0, dot(self.Q[j], self.Q[j])))
            for k in range(j + 1, n):
                self.R[j][k], self.Q[k] = self._without(j, self.Q[k])

    def _without(self, j: int, b: Flat) -> tuple[Scalar, list[Scalar]]:
        """The share of column j in b, and the rest of b."""
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


def irreducible_blocks(A: Rows) -> list[list[int]]:
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


SOFTNESS = 1e-10
"""μ. Smaller, and lost rows gather more rounding; larger, and nearly lost ones take more steps."""

FLOOR = 1e-9
"""Least size of W, relative to the mean of Λ's diagonal: rows that move nothing have a pivot too."""

LEAST = 1e-20
"""Least size of W, in kg⁻¹ or the like: where all constraints are released, Λ is zero, and so is every λ."""

STEPS = 3


class Multipliers:
    """Λ, factored; solves for any number of right-hand sides.

    ``sure``: whether Λ is known to keep its rank. ``floor``: see :data:`FLOOR`. ``looped``: a way to solve
    in loops, which may decline.
    """

    def __init__(
        self,
        Lambda: Matrix,
        *,
        sure: bool = False,
        floor: float = FLOOR,
        looped: Callable[[Matrix, list[Scalar]], Factor | None] = lambda *_: None,
    ) -> None:
        n = len(Lambda)
        self.steps = 1 if sure else STEPS
        least = _trace(Lambda) * (floor / max(n, 1)) + LEAST
        soft: list[Scalar] = [0.0 if sure else (Lambda[i][i] + least) * SOFTNESS for i in range(n)]
        in_loops = looped(Lambda, soft)
        self.order = list(range(n)) if in_loops else elimination_order(Lambda)
        self.factor: Factor = in_loops or factorize(
            [[Lambda[i][j] + soft[i] if i == j else Lambda[i][j] for j in self.order] for i in self.order]
        )
        self.soft = self.factor.kept([soft[i] for i in self.order])

    def solve(self, r: Flat) -> list[Scalar]:
        """λ."""
        given = self.factor.kept([r[i] for i in self.order])
        solution: list[Scalar] = [0.0] * len(given)
        for _ in range(self.steps):
            pushed = [a + soft * x for a, soft, x in zip(given, self.soft, solution, strict=True)]
            solution = self.factor.solve(pushed)
        back: list[Scalar] = [0.0] * len(given)
        for place, i in enumerate(self.order):
            back[i] = solution[place]
        return back

    def inverse(self) -> Matrix:
        """(Λ + μW)⁻¹."""
        places = {i: place for place, i in enumerate(self.order)}
        inverse, n = self.factor.inverse(), range(len(self.order))
        return [[inverse[places[i]][places[j]] for j in n] for i in n]

    def softened(self, multipliers: Flat) -> list[Scalar]:
        """μWλ: what (Λ + μW)⁻¹r leaves of Λλ = r."""
        left: list[Scalar] = [0.0] * len(self.order)
        for i, soft in zip(self.order, self.soft, strict=True):
            left[i] = soft * multipliers[i]
        return left

    def of_least_norm(self, multipliers: Flat) -> list[Scalar]:
        """λ without what rounding left along lost rows: less [(Λ + μW)⁻¹μW]ⁿλ, which takes nothing from the others.

        Twice, since rounding in the factors spoils some 1e-5 of what is taken away.
        """
        cleaned = [multipliers[i] for i in self.order]
        for _ in range(2):
            lost = cleaned
            for _ in range(self.steps):
                lost = self.factor.solve([soft * x for soft, x in zip(self.soft, lost, strict=True)])
            cleaned = minus(cleaned, lost)
        back: list[Scalar] = [0.0] * len(cleaned)
        for place, i in enumerate(self.order):
            back[i] = cleaned[place]
        return back


def elimination_order(matrix: Matrix) -> list[int]:
    """The order of rows for :func:`factorize`, which begins with the last: each time the row with fewest neighbours."""
    n = len(matrix)
    neighbours = [{j for j in range(n) if j != i and not is_zero(matrix[i][j])} for i in range(n)]
    left = set(range(n))
    eliminated = []
    while left:
        i = min(left, key=lambda k: (len(neighbours[k]), k))
        left.remove(i)
        eliminated.append(i)
        for j in neighbours[i]:
            neighbours[j] |= neighbours[i] - {j}
            neighbours[j].discard(i)
    return eliminated[::-1]


def _trace(matrix: Matrix) -> Scalar:
    total: Scalar = 0.0
    for i, row in enumerate(matrix):
        total = total + row[i]
    return total
