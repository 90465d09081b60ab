"""The blocks of one link over any scalar, each as the two maps it stands for; no block is multiplied out.

The articulated blocks rest on the eliminated axes (s_i, d_i, g_i) of :mod:`linkwise.algorithms.articulated`. For a
joint of several freedoms these are the factors of the papers' blocks: with L unit lower triangular, L_ji = s_j·g_i,

    D = L diag(d) L*,   D⁻¹ = L⁻* diag(1/d) L⁻¹,   G = PH*D⁻¹ = [g_1 … g_m] L⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any, final

from linkwise.algorithms.articulated import Axis
from linkwise.dataclass import dataclass
from linkwise.spatial.inertia import coordinate_axis
from linkwise.spatial.scalar import Flat, Matrix, Scalar, is_zero, sqrt

Vector = Any
"""A motion or a force of a link, or the :class:`AxisEntries` of a joint."""


class AxisEntries(tuple[Scalar, ...]):
    """The numbers of a joint's axes, added and scaled as a vector is."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Flat) -> AxisEntries:
        """From any sequence."""
        return cls(values)

    def __add__(self, other: Flat) -> AxisEntries:
        return AxisEntries(a + b for a, b in zip(self, other, strict=True))

    def __sub__(self, other: Flat) -> AxisEntries:
        return AxisEntries(a - b for a, b in zip(self, other, strict=True))

    def __neg__(self) -> AxisEntries:
        return AxisEntries(-a for a in self)

    def __mul__(self, scale: Scalar) -> AxisEntries:
        return AxisEntries(a * scale for a in self)

    def dot(self, other: Iterable[Scalar]) -> Scalar:
        """Σ a b."""
        return reduce(add, (a * b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True)
class Shape:
    """The vectors that a block leads to or from: how many numbers, and of what type."""

    size: int
    type: Any

    def units(self) -> list[Vector]:
        """The unit vectors."""
        return [self.type.of([1.0 if i == j else 0.0 for i in range(self.size)]) for j in range(self.size)]


class Map:
    """A block X and its adjoint, given as the maps they are; and how φ X x is left undone, if not as φ of X x."""

    def __init__(
        self,
        forward: Callable[[Vector], Vector],
        adjoint: Callable[[Vector], Vector],
        rows: Shape,
        cols: Shape,
        crossing: Callable[[Any, Vector], Crossing] | None = None,
    ) -> None:
        self.forward = forward
        self.adjoint = adjoint
        self.rows = rows
        self.cols = cols
        self.crossing = crossing or (lambda phi, x: Crossing(phi, passed=forward(x)))

    def __matmul__(self, x: Any) -> Any:
        if not isinstance(x, Map):
            return self.forward(x)
        return Map(lambda y: self.forward(x.forward(y)), lambda y: x.adjoint(self.adjoint(y)), self.rows, x.cols)

    @property
    def T(self) -> Map:
        """X*."""
        return Map(self.adjoint, self.forward, self.cols, self.rows)

    def congruence(self, X: Any) -> BlockByEntries:
        """A X A*, written out."""
        columns = [list(self.forward(X @ self.adjoint(unit))) for unit in self.rows.units()]
        return BlockByEntries(columns, self.rows)


def symmetric(apply: Callable[[Vector], Vector], shape: Shape) -> Map:
    """A symmetric block."""
    return Map(apply, apply, shape, shape)


@final
class BlockByEntries(Map):
    """A symmetric block by its entries."""

    def __init__(self, entries: Sequence[Flat], shape: Shape) -> None:
        super().__init__(self._times, self._times, shape, shape)
        self.entries = entries

    def _times(self, x: Vector) -> Vector:
        return self.rows.type.of([AxisEntries(row).dot(x) for row in self.entries])

    def __add__(self, other: BlockByEntries) -> BlockByEntries:
        pairs = zip(self.entries, other.entries, strict=True)
        return BlockByEntries([[a + b for a, b in zip(*pair, strict=True)] for pair in pairs], self.rows)


def triangular(rows: Sequence[Flat]) -> Map:
    """A lower triangular block between joints by its entries."""
    n = len(rows)
    return Map(
        lambda x: AxisEntries(AxisEntries(rows[i][: i + 1]).dot(list(x)[: i + 1]) for i in range(n)),
        lambda y: AxisEntries(AxisEntries(rows[i][j] for i in range(j, n)).dot(list(y)[j:]) for j in range(n)),
        Shape(n, AxisEntries),
        Shape(n, AxisEntries),
    )


def lower_root(X: Sequence[Flat]) -> Matrix:
    """F with F*F = X, lower triangular; of a positive matrix of few rows, the last of which is taken first."""
    n = len(X)
    left = [list(row) for row in X]
    F: Matrix = [[0.0] * n for _ in range(n)]
    for k in reversed(range(n)):
        root = sqrt(left[k][k])
        F[k] = [*(x / root for x in left[k][:k]), root, *F[k][k + 1 :]]
        for i in range(k):
            left[i] = [x - F[k][i] * F[k][j] if j <= i else x for j, x in enumerate(left[i])]
    return F


def joint_map(S: Sequence[Any], cols: Shape) -> Map:
    """H(k): the joint's share of a force; H*(k) = S makes a motion of joint rates."""
    return Map(
        lambda f: AxisEntries(s.dot(f) for s in S),
        lambda rates: reduce(add, (s * rate for s, rate in zip(S, rates, strict=True)), cols.type.zero()),
        Shape(len(S), AxisEntries),
        cols,
    )


def rotors(armature: Flat) -> Map:
    """J_r(k)."""
    return symmetric(
        lambda x: AxisEntries(J * u for J, u in zip(armature, x, strict=True)), Shape(len(armature), AxisEntries)
    )


def eliminated(P: Any, S: Sequence[Any], armature: Flat) -> tuple[Any, list[Axis]]:
    """P⁺, and the axes that were taken out of P one after another."""
    axes = []
    for s, rotor in zip(S, armature, strict=True):
        bare = coordinate_axis(s) if is_zero(rotor) else None  # then s*g = 1 and P⁺s = 0 exactly
        u = P @ s
        d_inverse = 1.0 / (s.dot(u) + rotor)
        g = u * d_inverse
        if bare is not None:
            g = type(g).of([1.0 if i == bare else x for i, x in enumerate(g)])
        axes.append(Axis(s, d_inverse, g))
        P = P.without(u, g, bare)
    return P, axes


def gain(axes: Sequence[Axis], rows: Shape) -> Map:
    """G(k) = PH*D⁻¹ (Jain 1991 eq. 33)."""

    def force(x: Vector) -> Vector:
        parts = zip(axes, innovations(axes, x), strict=True)
        return reduce(add, (axis.g * y for axis, y in parts), rows.type.zero())

    def innovation(alpha: Vector) -> Vector:
        motion = rows.type.of(list(alpha))
        return smoothed(axes, [motion.dot(axis.g) for axis in axes])

    cols = Shape(len(axes), AxisEntries)
    G = Map(force, innovation, rows, cols, lambda phi, x: Crossing(phi, G, given=x))
    return G


def complement(G: Map, H: Map) -> Map:
    """τ̄(k) = I - G(k)H(k) (Jain 1991 eq. 39)."""
    return Map(
        lambda x: x - G @ (H @ x),
        lambda y: y - H.adjoint(G.adjoint(y)),
        G.rows,
        G.rows,
        lambda phi, x: Crossing(phi, G, passed=x, explained=H @ x),
    )


def joint_inertia_inverse(axes: Sequence[Axis]) -> Map:
    """D⁻¹(k) = L⁻* diag(1/d) L⁻¹."""

    def apply(x: Vector) -> Vector:
        return smoothed(axes, [y * axis.d_inverse for axis, y in zip(axes, innovations(axes, x), strict=True)])

    return symmetric(apply, Shape(len(axes), AxisEntries))


def innovations(axes: Sequence[Axis], x: Vector) -> list[Scalar]:
    """L⁻¹x: the innovation of each axis, what the axes before it explain taken off."""
    y = list(x)
    for j in range(len(y)):
        for i in range(j):
            y[j] = y[j] - axes[j].s.dot(axes[i].g) * y[i]
    return y


def smoothed(axes: Sequence[Axis], x: Vector) -> AxisEntries:
    """L⁻*x."""
    y = list(x)
    for i in reversed(range(len(y))):
        for j in range(i + 1, len(y)):
            y[i] = y[i] - axes[j].s.dot(axes[i].g) * y[j]
    return AxisEntries(y)


@final
class Passage(Map):
    """φ(p,k) X(k), from a link to its parent: a block of E_φ (X the identity), E_ψ or K.

    Its product with a vector is a :class:`Crossing`, so that φ is applied once to all that crosses.
    """

    def __init__(self, phi: Any, rows: Shape, cols: Shape, inner: Map | None = None) -> None:
        super().__init__(lambda x: (self @ x).arrived(), self._outward, rows, cols)
        self.phi = phi
        self.inner = inner

    def _outward(self, y: Vector) -> Vector:
        carried = self.phi.T @ y
        return carried if self.inner is None else self.inner.adjoint(carried)

    def __matmul__(self, x: Any) -> Any:
        if isinstance(x, Map):
            return Passage(self.phi, self.rows, x.cols, x)
        return Crossing(self.phi, passed=x) if self.inner is None else self.inner.crossing(self.phi, x)

    def congruence(self, X: Any) -> Any:
        return self.phi.congruence(X) if self.inner is None else super().congruence(X)


@final
@dataclass(frozen=True)
class Crossing:
    """φ (passed + G (given - explained)): what a link has for its parent, φ and G not yet applied."""

    phi: Any
    G: Map | None = None
    passed: Vector | None = None
    given: Vector | None = None
    explained: Vector | None = None

    def __add__(self, other: Crossing) -> Crossing:
        return Crossing(
            self.phi,
            self.G or other.G,
            _sum(self.passed, other.passed),
            _sum(self.given, other.given),
            _sum(self.explained, other.explained),
        )

    def __mul__(self, scale: Scalar) -> Crossing:
        parts = (None if x is None else times(x, scale) for x in (self.passed, self.given, self.explained))
        return Crossing(self.phi, self.G, *parts)

    def arrived(self) -> Vector:
        """The vector at the parent."""
        innovation = self.given
        if self.explained is not None:
            innovation = -self.explained if innovation is None else innovation - self.explained
        if self.G is None or innovation is None:
            return self.phi @ self.passed
        return self.phi @ _sum(self.passed, self.G @ innovation)


def _sum(x: Vector | None, y: Vector | None) -> Vector | None:
    if x is None or y is None:
        return y if x is None else x
    return x + y


def times(x: Vector, scale: Scalar) -> Vector:
    """A vector times a number, without a product where the number is -1."""
    return -x if isinstance(scale, float) and scale == -1.0 else x * scale
