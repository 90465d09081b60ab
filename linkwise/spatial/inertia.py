"""Rigid inertias (10 numbers) and articulated inertias (21 numbers) about a frame's origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, Value, is_one, is_zero
from linkwise.spatial.vectors import Force, Motion, Vec

if TYPE_CHECKING:
    from linkwise.spatial.transforms import TransformFactor


class MotionLike(Protocol):
    """Motion of a frame, or its rate of change: what :meth:`RigidInertia.wrench` is linear in."""

    @property
    def E(self) -> Mat3:
        """The matrix whose product with a lever arm is a point's acceleration beyond the origin's."""

    @property
    def deviations(self) -> Vec:
        """E_yy - E_zz, E_zz - E_xx, E_xx - E_yy."""

    @property
    def a(self) -> Vec:
        """The acceleration of the origin."""


class RigidInertia(Value):
    """M = [[J, h~], [-h~, m]]: mass m, first moment h = m p and second moment J about the origin."""

    __slots__ = ("J", "h", "m")

    def __init__(self, m: Scalar, h: Vec, J: Sym3) -> None:
        self.m = m
        self.h = h
        self.J = J

    @classmethod
    def zero(cls) -> RigidInertia:
        return cls(0.0, Vec.zero(), Sym3.zero())

    @classmethod
    def from_com(cls, m: Scalar, com: Vec, J_com: Sym3) -> RigidInertia:
        """Inertia from the mass centre and the inertia about it: J = J_c - m p~p~."""
        return cls(m, com * m, J_com.plus(_steiner(com * m, com)))

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m + other.m, self.h + other.h, self.J.plus(other.J))

    def __sub__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(self.m - other.m, self.h - other.h, self.J.minus(other.J))

    def __matmul__(self, V: Motion) -> Force:
        """Momentum M V (or M α): [Jω + h×v; m v - h×ω]."""
        return Force(self.J @ V.ang + self.h.cross(V.lin), V.lin * self.m + V.ang.cross(self.h))

    def articulated(self) -> ArticulatedInertia:
        """Inertia that joints can be eliminated from."""
        m = self.m
        return ArticulatedInertia(self.J, Mat3.cross(self.h), Sym3.of(m, m, m, 0.0, 0.0, 0.0))

    def carried_in(self, factor: TransformFactor) -> RigidInertia:
        """φ M φ*."""
        return factor.rigid_in(self)

    def wrench(self, moving: MotionLike) -> Force:
        """Mα + b = [Jω' + ω~Jω + h~a; m a + E h]: the force that a motion takes.

        The moment Jω' + ω~Jω is the axial part of E Σ - (E Σ)*, Σ = ½ tr(J) 1 - J being Euler's tensor.
        """
        E, a = moving.E, moving.a
        e, (dx, dy, dz) = E.m, moving.deviations
        (Jxx, Jxy, Jxz), (_, Jyy, Jyz), (_, _, Jzz) = self.J.m
        Sxx, Syy, Szz = (Jyy + Jzz - Jxx) * 0.5, (Jxx + Jzz - Jyy) * 0.5, (Jxx + Jyy - Jzz) * 0.5
        N = Vec(
            Syy * e[2][1] - Szz * e[1][2] + Jxz * e[1][0] - Jxy * e[2][0] + Jyz * dx,
            Szz * e[0][2] - Sxx * e[2][0] + Jxy * e[2][1] - Jyz * e[0][1] + Jxz * dy,
            Sxx * e[1][0] - Syy * e[0][1] + Jyz * e[0][2] - Jxz * e[1][2] + Jxy * dz,
        )
        return Force(N + self.h.cross(a), a * self.m + E @ self.h)


def _steiner(h: Vec, p: Vec) -> Sym3:
    """-h~p~ for parallel h and p: (h·p) 1 - h pᵀ."""
    xx, yy, zz = h.x * p.x, h.y * p.y, h.z * p.z
    return Sym3.of(yy + zz, xx + zz, xx + yy, -(h.x * p.y), -(h.x * p.z), -(h.y * p.z))


class ArticulatedInertia(Value):
    """P = [[J, B], [Bᵀ, M]]: what a force needs to accelerate a link with all that hangs outboard free to move."""

    __slots__ = ("B", "J", "M")

    def __init__(self, J: Sym3, B: Mat3, M: Sym3) -> None:
        self.J = J
        self.B = B
        self.M = M

    @classmethod
    def zero(cls) -> ArticulatedInertia:
        return cls(Sym3.zero(), Mat3.zero(), Sym3.zero())

    def __add__(self, other: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.J.plus(other.J), self.B + other.B, self.M.plus(other.M))

    def carried_in(self, factor: TransformFactor) -> ArticulatedInertia:
        """φ P φ*."""
        return factor.articulated_in(self)

    def __matmul__(self, V: Motion) -> Force:
        return Force(self.J @ V.ang + self.B @ V.lin, self.B.transpose_times(V.ang) + self.M @ V.lin)

    def without(self, u: Force, g: Force, axis: int | None) -> ArticulatedInertia:
        """P - g u* = P - u D⁻¹ u*, symmetric. ``axis`` names a coordinate direction in which nothing is left.

        When S is the coordinate direction ``axis``, (P - u D⁻¹ u*) S vanishes exactly; writing the zeros
        instead of computing them is what keeps the following transforms cheap.
        """

        def left(i: int, j: int, entry: Scalar) -> Scalar:
            return 0.0 if axis in (i, j) else entry - u[i] * g[j]

        J, B, M = self.J.m, self.B.m, self.M.m
        return ArticulatedInertia(
            Sym3.build_symmetric(lambda i, j: left(i, j, J[i][j])),
            Mat3.build(lambda i, j: left(i, j + 3, B[i][j])),
            Sym3.build_symmetric(lambda i, j: left(i + 3, j + 3, M[i][j])),
        )


def coordinate_axis(s: Motion) -> int | None:
    """The index when ``s`` is exactly a coordinate direction (0–5; modes first, if it has some), else None."""
    numbers = list(s)
    ones = [i for i, component in enumerate(numbers) if is_one(component)]
    zeros = sum(is_zero(component) for component in numbers)
    return ones[0] if len(ones) == 1 and zeros == len(numbers) - 1 else None
