"""Forward dynamics of one long chain, cut into segments that are worked on side by side.

The articulated-body recursion maps what happens at the outer end of a segment to what happens at its inner end, and
such maps compose: a filter over a long record is the product of the filters over its pieces. Cut after some link, a
segment answers to the acceleration α of its base and to the force F that its tip must bring up for what lies beyond:

    F_base = P α + z + Ψ F,        α_tip = Ψ*α + β - Λ F,

with P, z the articulated inertia and bias force of the segment alone, Ψ the product of its ψ(k+1, k) (Jain 1991 eq.
55), and Λ = Σ (HΨ)*D⁻¹HΨ its compliance at the tip, as Ω of Rodriguez 1989 §3. Three steps, each of independent
segments: how each turns; how each answers; and, with α and F known at every cut, the ordinary forward dynamics of each.

Joined one after the other, what lies from segment i on answers as F = P̂α + ẑ. With F' = P̂'α' + ẑ' beyond the cut and
α' = c + Ψ*α - ΛF',

    F' = Q (c + Ψ*α - Λẑ') + ẑ',   Q = (1 + P̂'Λ)⁻¹P̂' = L(1 + L*ΛL)⁻¹L*,   P̂' = LL*,

and P̂ = P + ΨQΨ*, ẑ = z + ΨF'(α = 0). The form through L keeps Q symmetric, and 1 + L*ΛL is never badly conditioned
from below, however stiff or heavy the two sides are.

Joined pair by pair, in O(log n) steps: put segment 2 on the tip of segment 1, with c = β for each. Between them α' and
F' are such that both hold; with Q = (1 + P₂Λ₁)⁻¹P₂ and E = 1 - QΛ₁ = (1 + P₂Λ₁)⁻¹,

    F' = G α + T F + f,   G = QΨ₁*,   T = EΨ₂,   f = Q(c₁ - Λ₁z₂) + z₂,        α' = Ψ₁*α + c₁ - Λ₁F',

and the two together are a segment again:

    P = P₁ + Ψ₁G,   Ψ = Ψ₁T,   Λ = Λ₂ + Ψ₂*Λ₁T,   z = z₁ + Ψ₁f,   c = c₂ + Ψ₂*(c₁ - Λ₁f).

The operation is associative, so segments are joined pair by pair, level by level, until one is left; what
happens at its ends is known, and from there, level by level back, what happens at every cut. Rates of turn are
found in the same way. A segment of no links is neutral: it fills up a level of odd length.
"""

from __future__ import annotations

from linkwise.algorithms.inverse_dynamics import needed_forces
from linkwise.algorithms.kinematics import combination, next_motion
from linkwise.algorithms.solver import Articulated
from linkwise.algorithms.sweeps import inward, outward
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import Mat3, matrix_plus, product, times, transposed
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar, minus, plus, sqrt, where
from linkwise.spatial.vectors import Force, Vec

TURNED, MOVED, ANSWER = 12, 9, 21 + 6 + 36 + 21 + 6
"""Numbers in a :class:`Turned`, a :class:`RigidMotion` and a :class:`SegmentAnswer`."""


@dataclass(frozen=True, slots=True)
class Turned:
    """The turn from a segment's base to a link, and the link's rate of turn relative to the base."""

    R: Mat3
    omega: Vec


def turned(tree: Tree, q: Flat, v: Flat) -> Turned:
    """:class:`Turned` of the tip: ω_tip = R*ω_base + omega."""

    def turn(link: Link, parent: Turned) -> Turned:
        phi = link.phi(q)
        R = Mat3([list(phi.rotate_back(Vec.of(row))) for row in parent.R.m])
        return Turned(R, phi.rotate_back(parent.omega) + combination(link.S(q), link.rates(v)).ang)

    tip: Turned = outward(tree, turn, Turned(Mat3.identity(), Vec.zero()))[tree.links[-1]]
    return tip


@dataclass(frozen=True, slots=True)
class SegmentAnswer:
    """P, z, Ψ (by columns), Λ (its upper half by rows) and β."""

    P: ArticulatedInertia
    z: Force
    Psi: tuple[Force, ...]
    Lambda: tuple[Scalar, ...]
    beta: tuple[Scalar, ...]

    @classmethod
    def of_nothing(cls) -> SegmentAnswer:
        """Before the first link: what the tip must bring up reaches it as it is."""
        unit = tuple(Force.of([1.0 if i == j else 0.0 for j in range(6)]) for i in range(6))
        return cls(ArticulatedInertia.zero(), Force.zero(), unit, (0.0,) * 21, (0.0,) * 6)


def answered(tree: Tree, q: Flat, v: Flat, tau: Flat, omega: Vec) -> tuple[SegmentAnswer, RigidMotion]:
    """Answer of a segment whose base turns with ``omega``, and the motion of its tip when its base does not move."""
    held = RigidMotion(omega, Vec.zero(), Vec.zero())
    b = needed_forces(tree, q, v, None, base=held)
    tip = outward(tree, lambda link, parent: next_motion(link, parent, q, v, None), held)[tree.links[-1]]

    def gather(link: Link, outboard: SegmentAnswer) -> tuple[SegmentAnswer, None]:
        P, z, Psi = link.inertia.articulated() + outboard.P, outboard.z + b[link], outboard.Psi
        Lambda, beta = outboard.Lambda, outboard.beta
        for s, force, armature in zip(link.S(q), link.rates(tau), link.armature, strict=True):
            u = P @ s
            d_inverse = 1.0 / link.checked_inertia(s.dot(u) + armature)
            g = u * d_inverse
            eps = force - s.dot(z)
            r = [s.dot(column) for column in Psi]
            Lambda = tuple(x + d_inverse * r[i] * r[j] for x, (i, j) in zip(Lambda, UPPER, strict=True))
            beta = tuple(x + d_inverse * eps * y for x, y in zip(beta, r, strict=True))
            P, z = P.without(u, g, None), z + g * eps
            Psi = tuple(column - g * y for column, y in zip(Psi, r, strict=True))
        phi = link.phi(q)
        return SegmentAnswer(phi.congruence(P), phi @ z, tuple(phi @ column for column in Psi), Lambda, beta), None

    return inward(tree, gather, SegmentAnswer.of_nothing()).root, tip


def accelerated(tree: Tree, q: Flat, v: Flat, tau: Flat, base: RigidMotion, tip: Force) -> list[Scalar]:
    """v̇ of a segment whose base moves as ``base`` and whose tip must bring up the force ``tip``."""
    return Articulated(tree, q, tip).accelerations(tau, needed_forces(tree, q, v, None, base=base))


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


SEGMENT, CUT, ENDS = 21 + 6 + 36 + 21 + 6, 36 + 36 + 6, 12
"""Numbers of a :class:`Segment`, of a :class:`Cut`, and of [α, F]."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The answer of a piece of a chain to motions of its base and forces at its tip."""

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
    f = plus(times(Q, minus(inner.c, times(inner.Lambda, outer.z))), outer.z)
    from_base = transposed(outer.Psi)
    both = Segment(
        matrix_plus(inner.P, product(inner.Psi, G)),
        plus(inner.z, times(inner.Psi, f)),
        product(inner.Psi, T),
        matrix_plus(outer.Lambda, product(from_base, product(inner.Lambda, T))),
        plus(outer.c, times(from_base, minus(inner.c, times(inner.Lambda, f)))),
    )
    return both, Cut(G, T, f)


def ends_of_both(inner: Segment, cut: Cut, alpha: Flat, F: Flat) -> tuple[tuple[Flat, Flat], tuple[Flat, Flat]]:
    """[α, F] at the ends of the inner and of the outer segment, from those of both together."""
    F_cut = plus(plus(times(cut.G, alpha), times(cut.T, F)), cut.f)
    free = plus(times(transposed(inner.Psi), alpha), inner.c)
    return (alpha, F_cut), (minus(free, times(inner.Lambda, F_cut)), F)


def turned_together(inner: Turned, outer: Turned) -> Turned:
    """The turn of both together: R = R₁R₂, ω = R₂*ω₁ + ω₂."""
    R = Mat3([list(outer.R.transpose_times(Vec.of(row))) for row in inner.R.m])
    return Turned(R, outer.R.transpose_times(inner.omega) + outer.omega)


def turn_beyond(inner: Turned, omega: Vec) -> Vec:
    """The rate of turn between two segments, from that of the base of both: ω' = R₁*ω + ω₁."""
    return inner.R.transpose_times(omega) + inner.omega


def _rows(numbers: Flat) -> Matrix:
    return [list(numbers[6 * i : 6 * i + 6]) for i in range(6)]


def _flat(matrix: Matrix) -> list[Scalar]:
    return [x for row in matrix for x in row]


def turned_of(numbers: Flat) -> Turned:
    """From R by rows and ω."""
    return Turned(Mat3([list(numbers[0:3]), list(numbers[3:6]), list(numbers[6:9])]), Vec.of(numbers[9:12]))
