"""φ: how forces, motions and inertias cross from one frame to the next.

A transform is a product of simple factors, each cheap to apply: shifts along the parent's axes, turns
about one coordinate axis, and (for joints that need it) a full rotation. A turn about an axis costs 4
multiplications on a vector and 8 on a symmetric matrix, where a full 3×3 rotation costs 9 and 30 or
more (the "successive axial screws" of McMillan and Orin, cited in Featherstone and Orin 2000).

For the frame C placed at l in the parent P with rotation R (child to parent axes):
``φ @ f`` takes a force to the parent, [R N + l × R F; R F]; ``φ.T @ V`` takes a motion to the child,
[Rᵀω; Rᵀ(v + ω × l)]; ``φ.congruence(P)`` is φ P φ*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Protocol

from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, Value, cos, is_constant, is_one, is_zero, sin
from linkwise.spatial.vectors import NO_FORCE, Force, Motion, Vec

_NEXT = ((0, 1, 2), (1, 2, 0), (2, 0, 1))  # cyclic orders; the last entry below is the axis itself


class TransformFactor(Protocol):
    """One simple transform. ``R`` and ``l`` in the module's text are this factor's own."""

    def rotate(self, v: Vec) -> Vec:
        """R v: child axes to parent axes."""

    def rotate_back(self, v: Vec) -> Vec:
        """Rᵀ v: parent axes to child axes."""

    def force_in(self, f: Force) -> Force:
        """φ f."""

    def motion_out(self, V: Motion) -> Motion:
        """φ* V."""

    def motion_in(self, V: Motion) -> Motion:
        """φ*⁻¹ V: a motion of the child seen at the parent's origin."""

    def rigid_in(self, M: RigidInertia) -> RigidInertia:
        """φ M φ*."""

    def articulated_in(self, P: ArticulatedInertia) -> ArticulatedInertia:
        """φ P φ*."""

    def carry(self, thing: Any) -> Any:
        """Take something that knows how over this factor: ``thing.shifted(l)``, or ``thing.turned(factor)``."""

    def origin_velocity(self, omega: Vec) -> Vec:
        """Velocity of the child's origin past the parent's when both turn with ω."""

    def matrix(self) -> tuple[Mat3, Vec]:
        """R and l."""


class KeptAxes:
    """A factor that turns nothing; ``l`` is where the child's origin is."""

    __slots__ = ()
    l: Vec

    def rotate(self, v: Vec) -> Vec:
        return v

    def rotate_back(self, v: Vec) -> Vec:
        return v

    def origin_velocity(self, omega: Vec) -> Vec:
        return omega.cross(self.l)

    def matrix(self) -> tuple[Mat3, Vec]:
        return Mat3.identity(), self.l


class _AboutOrigin(Value, ABC):
    """A rotation: what it does to vectors and matrices says all."""

    __slots__ = ()

    @abstractmethod
    def rotate(self, v: Vec) -> Vec:
        """R v."""

    @abstractmethod
    def rotate_back(self, v: Vec) -> Vec:
        """Rᵀ v."""

    @abstractmethod
    def _symmetric(self, A: Sym3) -> Sym3:
        """R A Rᵀ."""

    @abstractmethod
    def _general(self, A: Mat3) -> Mat3:
        """R A Rᵀ."""

    def force_in(self, f: Force) -> Force:
        return Force(self.rotate(f.ang), self.rotate(f.lin))

    def motion_out(self, V: Motion) -> Motion:
        return Motion(self.rotate_back(V.ang), self.rotate_back(V.lin))

    def motion_in(self, V: Motion) -> Motion:
        return Motion(self.rotate(V.ang), self.rotate(V.lin))

    def rigid_in(self, M: RigidInertia) -> RigidInertia:
        return RigidInertia(M.m, self.rotate(M.h), self._symmetric(M.J))

    def articulated_in(self, P: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self._symmetric(P.J), self._general(P.B), self._symmetric(P.M))

    def carry(self, thing: Any) -> Any:
        return thing.turned(self)

    def origin_velocity(self, omega: Vec) -> Vec:
        return Vec.zero()


class Turn(_AboutOrigin):
    """Rotation about coordinate axis 0, 1 or 2 by an angle given through its cosine and sine."""

    __slots__ = ("axis", "c", "s")

    def __init__(self, axis: int, c: Scalar, s: Scalar) -> None:
        self.axis = axis
        self.c = c
        self.s = s

    def rotate(self, v: Vec) -> Vec:
        i, j, k = _plane(self.axis)
        out: list[Scalar] = [0.0] * 3
        out[i] = self.c * v[i] - self.s * v[j]
        out[j] = self.s * v[i] + self.c * v[j]
        out[k] = v[k]
        return Vec(*out)

    def rotate_back(self, v: Vec) -> Vec:
        return Turn(self.axis, self.c, -self.s).rotate(v)

    @staticmethod
    def by(axis: int, angle: Scalar) -> TurnBy:
        """The turn by an angle."""
        return TurnBy(axis, angle)

    def after(self, angle: Scalar) -> Turn:
        """A turn by ``angle`` about the same axis, then this one: as one turn."""
        quarters = _quarters(angle)
        if quarters is not None:
            return Turn(self.axis, *_turned_by_quarters(self.c, self.s, quarters))
        c, s = cos(angle), sin(angle)
        return Turn(self.axis, c * self.c - s * self.s, s * self.c + c * self.s)

    def matrix(self) -> tuple[Mat3, Vec]:
        return Mat3([list(self.rotate(Vec.unit(i))) for i in range(3)]).T, Vec.zero()

    def _in_plane(self, A: Mat3) -> tuple[Scalar, Scalar, Scalar, Scalar]:
        """R A Rᵀ in the plane of rotation.

        The trace and A_ij - A_ji do not change, which leaves two numbers: with e = s (A_ii - A_jj) + c (A_ij + A_ji),
        the diagonal changes by ∓ s e and the rest is c e - A_ji, c e - A_ij.
        """
        i, j, _ = _plane(self.axis)
        a, c, s = A.m, self.c, self.s
        difference = a[i][i] - a[j][j]
        # twice a symmetric entry: the cosine takes the two, shared between matrices, where the entry is no constant
        doubled = isinstance(A, Sym3) and not isinstance(a[i][j], float)
        both, weight = (a[i][j], c + c) if doubled else (a[i][j] + a[j][i], c)
        if isinstance(c, float) and isinstance(s, float) and is_zero(both):
            se, ce = (s * s) * difference, (s * c) * difference
        else:
            e = s * difference + weight * both
            se, ce = s * e, c * e
        return a[i][i] - se, a[j][j] + se, ce - a[j][i], ce - a[i][j]

    def _symmetric(self, A: Sym3) -> Sym3:
        i, j, k = _plane(self.axis)
        m: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
        m[i][i], m[j][j], m[i][j], m[j][i] = self._in_plane(A)
        m[j][i] = m[i][j]
        m[i][k] = m[k][i] = self.c * A.m[i][k] - self.s * A.m[j][k]
        m[j][k] = m[k][j] = self.s * A.m[i][k] + self.c * A.m[j][k]
        m[k][k] = A.m[k][k]
        return Sym3(m)

    def _general(self, A: Mat3) -> Mat3:
        i, j, k = _plane(self.axis)
        m: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
        m[i][i], m[j][j], m[i][j], m[j][i] = self._in_plane(A)
        for row, column, a, b in ((i, k, A.m[i][k], A.m[j][k]), (k, i, A.m[k][i], A.m[k][j])):
            m[row][column] = self.c * a - self.s * b
        for row, column, a, b in ((j, k, A.m[i][k], A.m[j][k]), (k, j, A.m[k][i], A.m[k][j])):
            m[row][column] = self.s * a + self.c * b
        m[k][k] = A.m[k][k]
        return Mat3(m)


class TurnBy(Turn):
    """A turn that knows its angle, so that one before it about the same axis costs an addition, or nothing."""

    __slots__ = ("angle",)

    def __init__(self, axis: int, angle: Scalar) -> None:
        super().__init__(axis, cos(angle), sin(angle))
        self.angle = angle

    def after(self, angle: Scalar) -> Turn:
        if _quarters(angle) is not None:
            return super().after(angle)
        return Turn(self.axis, cos(self.angle + angle), sin(self.angle + angle))


def _quarters(angle: Scalar) -> int | None:
    """Number of quarter turns of a constant angle; None if it is not a whole number of them."""
    if not isinstance(angle, (float, int)):
        return None
    quarters = angle / (math.pi / 2)
    return round(quarters) if abs(quarters - round(quarters)) < 1e-15 else None


def _turned_by_quarters(c: Scalar, s: Scalar, quarters: int) -> tuple[Scalar, Scalar]:
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]


class Rotation(_AboutOrigin):
    """A rotation with no preferred axis, by its matrix."""

    __slots__ = ("R",)

    def __init__(self, R: Mat3) -> None:
        self.R = R

    def rotate(self, v: Vec) -> Vec:
        return self.R @ v

    def rotate_back(self, v: Vec) -> Vec:
        return self.R.transpose_times(v)

    def matrix(self) -> tuple[Mat3, Vec]:
        return self.R, Vec.zero()

    def _symmetric(self, A: Sym3) -> Sym3:
        """R A Rᵀ."""
        m = self._turned(A, symmetric=True)
        return Sym3.of(m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2])

    def _general(self, A: Mat3) -> Mat3:
        """R A Rᵀ."""
        return Mat3(self._turned(A, symmetric=False))

    def _turned(self, A: Mat3, *, symmetric: bool) -> list[list[Scalar]]:
        """R A Rᵀ. A multiple of 1 stays what it is, so an A_kk comes off first; the trace gives one more entry.

        Not where that saves nothing: where R has zeros or A is constant. There a small entry beside large ones, such
        as the moment of a rod about itself, keeps its digits.
        """
        pairs = [(0, 0), (1, 1), (0, 1), (0, 2), (1, 2), *(() if symmetric else ((1, 0), (2, 0), (2, 1)))]
        if any(is_zero(x) for row in self.R.m for x in row) or all(is_constant(x) for row in A.m for x in row):
            return self._products(A, [*pairs, (2, 2)])
        k = next((i for i in range(3) if is_zero(A.m[i][i])), 2)
        common = A.m[k][k]
        less = Mat3.build(lambda i, j: A.m[i][j] - common if i == j else A.m[i][j])
        out = self._products(less, pairs)
        out[2][2] = less.m[0][0] + less.m[1][1] + less.m[2][2] - out[0][0] - out[1][1]
        for i in range(3):
            out[i][i] = out[i][i] + common
        return out

    def _products(self, A: Mat3, pairs: Sequence[tuple[int, int]]) -> list[list[Scalar]]:
        """Entries ``pairs`` of R A Rᵀ, zeros elsewhere."""
        R, RA = self.R.m, self.R.times(A).m
        out: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
        for i, j in pairs:
            out[i][j] = RA[i][0] * R[j][0] + RA[i][1] * R[j][1] + RA[i][2] * R[j][2]
        return out


class Tilt(_AboutOrigin):
    """Rotation about an axis across a coordinate axis e, by Rodrigues' parameters c with c·e = 0.

    It is two reflections, R = (1 - k a a*)(1 - 2 e e*) with a = e + c×e and k = 2/(1 + c·c): the second only changes
    signs, and a is 1 along e. A vector costs 5 multiplications, a symmetric matrix 20.
    """

    __slots__ = ("a", "across", "k", "ka")

    def __init__(self, across: int, c: Vec, k: Scalar, kc: Vec) -> None:
        e = Vec.unit(across)
        self.across = across
        self.k = k
        self.a, self.ka = e + c.cross(e), e * k + kc.cross(e)

    def rotate(self, v: Vec) -> Vec:
        return self._reflected(self._flipped(v))

    def rotate_back(self, v: Vec) -> Vec:
        return self._flipped(self._reflected(v))

    def matrix(self) -> tuple[Mat3, Vec]:
        first = self.across

        def entry(i: int, j: int) -> Scalar:
            low, high = (i, j) if j != first and (i < j or i == first) else (j, i)  # a is 1 along e
            reflected = (1.0 if i == j else 0.0) - self.a[low] * self.ka[high]
            return -reflected if j == first else reflected

        return Mat3.build(entry), Vec.zero()

    def _flipped(self, v: Vec) -> Vec:
        return Vec(*(-x if i == self.across else x for i, x in enumerate(v)))

    def _sign(self, i: int, j: int, A: Mat3) -> Scalar:
        return -A.m[i][j] if (i == self.across) != (j == self.across) else A.m[i][j]

    def _reflected(self, v: Vec) -> Vec:
        reflected: Vec = v - self.ka * self.a.dot(v)
        return reflected

    def _symmetric(self, A: Sym3) -> Sym3:
        """A - a v* - v a* with v = kAa - ½k²(a*Aa) a, of the A with signs changed."""
        flipped = Sym3.build_symmetric(lambda i, j: self._sign(i, j, A))
        a, k = self.a, self.k
        Aa = flipped @ a
        v = Aa * k - a * ((k * k * 0.5) * a.dot(Aa))
        return Sym3.build_symmetric(lambda i, j: flipped.m[i][j] - (a[i] * v[j] + a[j] * v[i]))

    def _general(self, B: Mat3) -> Mat3:
        """B - p a* - a r* with p = kBa - k²(a*Ba) a and r = kB*a, of the B with signs changed."""
        flipped = Mat3.build(lambda i, j: self._sign(i, j, B))
        a, k = self.a, self.k
        Ba = flipped @ a
        p, r = Ba * k - a * ((k * k) * a.dot(Ba)), flipped.transpose_times(a) * k
        return Mat3.build(lambda i, j: flipped.m[i][j] - (p[i] * a[j] + a[i] * r[j]))


class Shift(KeptAxes, Value):
    """A translation by l, given in parent axes."""

    __slots__ = ("l",)

    def __init__(self, l: Vec) -> None:  # the papers' letter for this vector
        self.l = l

    def force_in(self, f: Force) -> Force:
        return Force(f.ang + self.l.cross(f.lin), f.lin)

    def motion_out(self, V: Motion) -> Motion:
        return Motion(V.ang, V.lin + V.ang.cross(self.l))

    def motion_in(self, V: Motion) -> Motion:
        return Motion(V.ang, V.lin + self.l.cross(V.ang))

    def rigid_in(self, M: RigidInertia) -> RigidInertia:
        # J' = J - h~l~ - l~h'~ with h' = h + m l;  -a~b~ = (a·b) 1 - b aᵀ.
        l, h = self.l, M.h
        h_new = h + l * M.m
        s = [l[i] * (h[i] + h_new[i]) for i in range(3)]

        def entry(i: int, j: int) -> Scalar:
            if i == j:
                return M.J.m[i][i] + (s[(i + 1) % 3] + s[(i + 2) % 3])
            return M.J.m[i][j] - (l[i] * h[j] + h_new[i] * l[j])

        return RigidInertia(M.m, h_new, Sym3.build_symmetric(entry))

    def articulated_in(self, P: ArticulatedInertia) -> ArticulatedInertia:
        for axis in range(3):
            if not is_zero(self.l[axis]):
                P = _shift_along(axis, self.l[axis], P)
        return P

    def carry(self, thing: Any) -> Any:
        return thing.shifted(self.l)


def _shift_along(axis: int, d: Scalar, P: ArticulatedInertia) -> ArticulatedInertia:
    """φ P φ* for a shift d along one axis: B' = B + l~M, J' = J + l~B'* + B l~*, written out."""
    i, j, k = _plane(axis)
    J, B, M = P.J.m, P.B.m, P.M.m
    B_new = [list(row) for row in B]
    for column in range(3):
        B_new[i][column] = B[i][column] - d * M[j][column]
        B_new[j][column] = B[j][column] + d * M[i][column]
    J_new = [list(row) for row in J]
    J_new[i][i] = J[i][i] - d * (B_new[i][j] + B[i][j])
    J_new[j][j] = J[j][j] + d * (B_new[j][i] + B[j][i])
    J_new[i][j] = J_new[j][i] = J[i][j] + d * (B[i][i] - B_new[j][j])
    J_new[i][k] = J_new[k][i] = J[i][k] - d * B[k][j]
    J_new[j][k] = J_new[k][j] = J[j][k] + d * B[k][i]
    return ArticulatedInertia(Sym3(J_new), Mat3(B_new), P.M)


def _plane(axis: int) -> tuple[int, int, int]:
    """The two axes of the plane of rotation, in right-handed order, then the axis itself."""
    k, i, j = _NEXT[axis]
    return i, j, k


class Transform(Value):
    """φ(parent, child): the product of its factors, the parent's side first."""

    __slots__ = ("factors",)

    def __init__(self, *factors: TransformFactor) -> None:
        self.factors = factors

    @classmethod
    def rigid(cls, R: Mat3, p: Vec) -> Transform:
        """Transform of a rotation matrix and a position, factors that are identities left out."""
        factors: list[TransformFactor] = []
        if not all(is_zero(x) for x in p):
            factors.append(Shift(p))
        if not all(is_one(R.m[i][j]) if i == j else is_zero(R.m[i][j]) for i in range(3) for j in range(3)):
            factors.append(Rotation(R))
        return cls(*factors)

    def then(self, other: Transform) -> Transform:
        """This transform followed by a further one on the child's side."""
        return Transform(*self.factors, *other.factors)

    def merged(self) -> Transform:
        """Transform with each run of rotations as one factor, where that is the cheaper: one has no axis, or all do."""
        factors: list[TransformFactor] = []
        for rotations, run in groupby(self.factors, lambda factor: isinstance(factor, _AboutOrigin)):
            several = list(run)
            factors.extend(_merged(several) if rotations else several)
        return Transform(*factors)

    def after_turn(self, axis: int, angle: Scalar) -> Transform:
        """A turn about a coordinate axis, then this transform.

        The turn passes shifts along its axis and joins the first turn about it; only where that is not the first thing
        it meets it becomes a factor of its own.
        """
        for i, factor in enumerate(self.factors):
            if isinstance(factor, Turn) and factor.axis == axis:
                return Transform(*self.factors[:i], factor.after(angle), *self.factors[i + 1 :])
            if not isinstance(factor, Shift) or not all(is_zero(x) for k, x in enumerate(factor.l) if k != axis):
                break
        return self if is_zero(angle) else Transform(Turn(axis, 1.0, 0.0).after(angle), *self.factors)

    @property
    def T(self) -> _Adjoint:
        """φ*, to be applied to motions with ``@``."""
        return _Adjoint(self)

    def __matmul__(self, f: Force) -> Force:
        if f is NO_FORCE:
            return f
        for factor in reversed(self.factors):
            f = factor.force_in(f)
        return f

    def motion_to_child(self, V: Motion) -> Motion:
        for factor in self.factors:
            V = factor.motion_out(V)
        return V

    def motion_to_parent(self, V: Motion) -> Motion:
        """φ*⁻¹ V."""
        for factor in reversed(self.factors):
            V = factor.motion_in(V)
        return V

    def congruence(self, inertia: Any) -> Any:
        """φ X φ* for an inertia of any kind, of the same kind again."""
        for factor in reversed(self.factors):
            inertia = inertia.carried_in(factor)
        return inertia

    def carry(self, thing: Any) -> Any:
        """Something taken from the parent to the child, factor by factor."""
        for factor in self.factors:
            thing = factor.carry(thing)
        return thing

    def rotate(self, v: Vec) -> Vec:
        """R v."""
        for factor in reversed(self.factors):
            v = factor.rotate(v)
        return v

    def rotate_back(self, v: Vec) -> Vec:
        """Rᵀ v."""
        for factor in self.factors:
            v = factor.rotate_back(v)
        return v

    def matrix(self) -> tuple[Mat3, Vec]:
        """R and l of the whole product."""
        R, p = Mat3.identity(), Vec.zero()
        for factor in reversed(self.factors):
            p = factor.rotate(p) + factor.matrix()[1]
            R = Mat3([list(factor.rotate(R.column(j))) for j in range(3)]).T
        return R, p

    @property
    def R(self) -> Mat3:
        """The rotation from child to parent axes."""
        return self.matrix()[0]

    @property
    def l(self) -> Vec:  # noqa: E743
        """The child's origin in the parent's frame."""
        return self.matrix()[1]


def _merged(run: Sequence[TransformFactor]) -> Sequence[TransformFactor]:
    """Rotations one after the other as one, by its matrix; a turn about an axis where that is what they make."""
    if len(run) < 2:
        return run
    matrices = [factor.matrix()[0].m for factor in run]
    varying = [k for k, rows in enumerate(matrices) if not all(is_constant(x) for row in rows for x in row)]
    turn = run[varying[0]] if len(varying) == 1 else None
    if isinstance(turn, Turn):
        m = _around(_product(run[: varying[0]]), turn, _product(run[varying[0] + 1 :]))
    else:
        m = [list(row) for row in _product(run)]
    for axis in range(3):
        i, j, k = _plane(axis)
        if is_one(m[k][k]) and all(is_zero(x) for x in (m[i][k], m[j][k], m[k][i], m[k][j])):
            return [Turn(axis, m[i][i], m[j][i])]
    no_axis = any(isinstance(factor, Rotation) for factor in run) or (
        len(run) > 2 and any(isinstance(factor, Tilt) for factor in run)
    )
    return [Rotation(Mat3(m))] if no_axis else run


def _product(run: Sequence[TransformFactor]) -> list[Vec]:
    """The rows of the matrix of rotations one after the other."""
    rows = [Vec(*row) for row in (run[0].matrix()[0] if run else Mat3.identity()).m]
    for factor in run[1:]:
        rows = [factor.rotate_back(row) for row in rows]
    return rows


def _around(before: Sequence[Vec], turn: Turn, after: Sequence[Vec]) -> list[list[Scalar]]:
    """A T B with constant A and B around one turn T: K + c K' + s K'' with constant K, 18 products and not 39."""
    i, j, k = _plane(turn.axis)

    def entry(a: Vec, column: int) -> Scalar:
        x, y, z = (after[row][column] for row in (i, j, k))
        return a[k] * z + turn.c * (a[i] * x + a[j] * y) + turn.s * (a[j] * x - a[i] * y)

    return [[entry(a, column) for column in range(3)] for a in before]


class _Adjoint:
    __slots__ = ("transform",)

    def __init__(self, transform: Transform) -> None:
        self.transform = transform

    def __matmul__(self, V: Motion) -> Motion:
        return self.transform.motion_to_child(V)
