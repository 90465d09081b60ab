"""Two neighbouring segments of a chain that answer as one: forward dynamics in O(log n) steps.

A segment answers to the acceleration α of its base and to the force F that its tip must bring up (:mod:`.segments`):

    F_base = P α + z + Ψ F,        α_tip = Ψ*α + c - Λ F.

Put segment 2 on the tip of segment 1. Between them α' and F' are such that both hold; with Q = (1 + P₂Λ₁)⁻¹P₂ and
E = 1 - QΛ₁ = (1 + P₂Λ₁)⁻¹,

    F' = G α + T F + f,   G = QΨ₁*,   T = EΨ₂,   f = Qc₁ + Ez₂,        α' = Ψ₁*α + c₁ - Λ₁F',

and the two together are a segment again:

    P = P₁ + Ψ₁G,   Ψ = Ψ₁T,   Λ = Λ₂ + Ψ₂*Λ₁T,   z = z₁ + Ψ₁f,   c = c₂ + Ψ₂*(c₁ - Λ₁f).

The operation is associative, so segments are joined pair by pair, level by level, until one is left; what
happens at its ends is known, and from there, level by level back, what happens at every cut. Rates of turn are
found in the same way. A segment of no links is neutral: it fills up a level of odd length.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.algorithms.joined_segments import compliance, minus, plus, product, symmetric, times, transposed, upper
from linkwise.algorithms.segments import Turned
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Vec

SEGMENT, CUT, ENDS = 21 + 6 + 36 + 21 + 6, 36 + 36 + 6, 12
"""Numbers of a :class:`Segment`, of a :class:`Cut`, and of [α, F]."""


@dataclass(frozen=True, slots=True)
class Segment:
    """How a piece of a chain answers."""

    P: Matrix
    z: Flat
    Psi: Matrix
    Lambda: Matrix
    c: Flat

    @classmethod
    def of(cls, numbers: Flat) -> Segment:
        """From :attr:`numbers`."""
        return cls(
            symmetric(numbers[:21]), numbers[21:27], _rows(numbers[27:63]), symmetric(numbers[63:84]), numbers[84:90]
        )

    @classmethod
    def of_no_links(cls) -> Segment:
        """Segment of no links: whatever is done to its tip is done to its base."""
        nothing = [[0.0] * 6 for _ in range(6)]
        return cls(nothing, [0.0] * 6, [[float(i == j) for j in range(6)] for i in range(6)], nothing, [0.0] * 6)

    @property
    def numbers(self) -> list[Scalar]:
        """P and Λ by their upper halves, Ψ by rows."""
        return [*upper(self.P), *self.z, *_flat(self.Psi), *upper(self.Lambda), *self.c]


@dataclass(frozen=True, slots=True)
class Cut:
    """The force between two segments, from what happens at the ends of both together: F' = G α + T F + f."""

    G: Matrix
    T: Matrix
    f: Flat

    @classmethod
    def of(cls, numbers: Flat) -> Cut:
        """From :attr:`numbers`."""
        return cls(_rows(numbers[:36]), _rows(numbers[36:72]), numbers[72:78])

    @property
    def numbers(self) -> list[Scalar]:
        """The matrices by rows, then f."""
        return [*_flat(self.G), *_flat(self.T), *self.f]


def joined(inner: Segment, outer: Segment) -> tuple[Segment, Cut]:
    """Both as one, and what that hides."""
    Q = compliance(outer.P, inner.Lambda)
    E = [[float(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(product(Q, inner.Lambda))]
    G, T = product(Q, transposed(inner.Psi)), product(E, outer.Psi)
    f = plus(times(Q, inner.c), times(E, outer.z))
    from_base = transposed(outer.Psi)
    both = Segment(
        _sum(inner.P, product(inner.Psi, G)),
        plus(inner.z, times(inner.Psi, f)),
        product(inner.Psi, T),
        _sum(outer.Lambda, product(from_base, product(inner.Lambda, T))),
        plus(outer.c, times(from_base, minus(inner.c, times(inner.Lambda, f)))),
    )
    return both, Cut(G, T, f)


def ends_of_both(inner: Segment, cut: Cut, alpha: Flat, F: Flat) -> tuple[tuple[Flat, Flat], tuple[Flat, Flat]]:
    """[α, F] at the ends of the inner and of the outer segment, from those of both together."""
    F_cut = plus(plus(times(cut.G, alpha), times(cut.T, F)), cut.f)
    free = plus(times(transposed(inner.Psi), alpha), inner.c)
    return (alpha, F_cut), (minus(free, times(inner.Lambda, F_cut)), F)


def turned_together(inner: Turned, outer: Turned) -> Turned:
    """How both together turn: R = R₁R₂, ω = R₂*ω₁ + ω₂."""
    R = Mat3([list(outer.R.transpose_times(Vec.of(row))) for row in inner.R.m])
    return Turned(R, outer.R.transpose_times(inner.omega) + outer.omega)


def turn_beyond(inner: Turned, omega: Vec) -> Vec:
    """The rate of turn between two segments, from that of the base of both: ω' = R₁*ω + ω₁."""
    return inner.R.transpose_times(omega) + inner.omega


def _rows(numbers: Flat) -> Matrix:
    return [list(numbers[6 * i : 6 * i + 6]) for i in range(6)]


def _flat(matrix: Matrix) -> list[Scalar]:
    return [x for row in matrix for x in row]


def _sum(A: Matrix, B: Matrix) -> Matrix:
    return [plus(a, b) for a, b in zip(A, B, strict=True)]


def turned_of(numbers: Flat) -> Turned:
    """From R by rows and ω."""
    return Turned(Mat3([list(numbers[0:3]), list(numbers[3:6]), list(numbers[6:9])]), Vec.of(numbers[9:12]))
