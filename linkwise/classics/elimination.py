"""One joint eliminated from an articulated body: D, G, τ̄ and P⁺ of Jain 1991 eq. 33, 39 and 41.

Rotor inertias stand beside HPH* in D, where a filter has the covariance of its measurement noise.
"""

from __future__ import annotations

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.kinematics import combination
from linkwise.dataclass import dataclass
from linkwise.spatial.inertia import ArticulatedInertia, coordinate_axis
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, is_zero
from linkwise.spatial.vectors import Force, Motion, weighted_sum


@dataclass(frozen=True, slots=True)
class Eliminated:
    """Articulated inertia of a link that is left when its joint gives way."""

    S: tuple[Motion, ...]
    """H*, column by column."""
    D: Matrix
    D_inverse: Matrix
    U: list[Force]
    """PH*, column by column."""
    G: list[Force]
    """PH*D⁻¹, column by column."""
    P_plus: ArticulatedInertia
    """P⁺ = τ̄P = P - GHP."""

    def H(self, f: Force) -> list[Scalar]:
        """H f."""
        return [s.dot(f) for s in self.S]

    def H_star(self, x: Flat) -> Motion:
        """H* x."""
        return combination(self.S, x)

    def apply_D_inverse(self, x: Flat) -> list[Scalar]:
        """D⁻¹ x."""
        return [dot(row, x) for row in self.D_inverse]

    def apply_G(self, x: Flat) -> Force:
        """G x."""
        return weighted_sum(self.G, x, Force.zero())

    def apply_G_star(self, alpha: Motion) -> list[Scalar]:
        """G* α."""
        return [alpha.dot(g) for g in self.G]


def eliminate(P: ArticulatedInertia, S: tuple[Motion, ...], armature: Flat) -> Eliminated:
    """D = HPH* (+ rotors), G = PH*D⁻¹, P⁺ = P - G(PH*)*."""
    U = [P @ s for s in S]
    D = [[s.dot(u) if i <= j else 0.0 for j, u in enumerate(U)] for i, s in enumerate(S)]
    for i in range(len(S)):
        D[i][i] = D[i][i] + armature[i]
        for j in range(i):
            D[i][j] = D[j][i]
    D_inverse = [[1.0 / D[0][0]]] if len(S) == 1 else factorize(D).inverse()
    G = [weighted_sum(U, column, Force.zero()) for column in zip(*D_inverse, strict=True)]
    # P⁺H* = 0 (eq. 38): where H* is made of coordinate directions, the zeros are known.
    free = [coordinate_axis(s) for s in S]
    dead = {i for i in free if i is not None} if None not in free and all(map(is_zero, armature)) else set()
    return Eliminated(S, D, D_inverse, U, G, _less(P, U, G, dead))


def _less(P: ArticulatedInertia, U: list[Force], G: list[Force], dead: set[int]) -> ArticulatedInertia:
    def left(i: int, j: int, entry: Scalar) -> Scalar:
        if i in dead or j in dead:
            return 0.0
        for u, g in zip(U, G, strict=True):
            entry = entry - u[i] * g[j]
        return entry

    J, B, M = P.J.m, P.B.m, P.M.m
    return ArticulatedInertia(
        Sym3.build_symmetric(lambda i, j: left(i, j, J[i][j])),
        Mat3.build(lambda i, j: left(i, j + 3, B[i][j])),
        Sym3.build_symmetric(lambda i, j: left(i + 3, j + 3, M[i][j])),
    )
