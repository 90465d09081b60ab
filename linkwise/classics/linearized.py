"""The six algorithms of Jain 1993: changes of joint forces and of accelerations with the motion, with printed counts.

Links are referred to one inertially fixed point (Jain 1993 §2, (3.4)). There φ has identities for blocks, so that
velocities, accelerations, forces and composite inertias are plain sums.

DIFFERS FROM PAPER: gravity enters as an acceleration of the base; the links are numbered base to tip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.kinematics import Placed
from linkwise.classics.registry import PrintedCount
from linkwise.classics.requirements import joint_types, no_armature, no_mimics, serial
from linkwise.dataclass import dataclass
from linkwise.joints import Revolute
from linkwise.mechanism.tree import Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.matrices import Mat3, product, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot, minus
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


class MHat:
    """M̂ = ½(Ṁ - Q[MV]) = [[A, 0], [-c~, 0]] with M̂V = ṀV (2.7), or a sum of such.

    DIFFERS FROM PAPER: algorithm 1 prints A = ω~(½ tr(J) 1 - J) - m p~u~; (2.7) holds with ω~(J - ½ tr(J) 1) - m p~u~.
    """

    __slots__ = ("A", "c")

    def __init__(self, A: Mat3, c: Vec) -> None:
        self.A = A
        self.c = c

    @classmethod
    def of(cls, M: RigidInertia, V: Motion) -> MHat:
        """Of one link."""
        half = sum(M.J.m[i][i] for i in range(3)) * 0.5
        less = Mat3.build(lambda i, j: M.J.m[i][j] - half if i == j else M.J.m[i][j])
        turning = Mat3([list(V.ang.cross(less.column(j))) for j in range(3)]).T
        h, u = M.h, V.lin
        along = h.dot(u)
        A = Mat3.build(lambda i, j: turning.m[i][j] - u[i] * h[j] + (along if i == j else 0.0))
        return cls(A, u * M.m + V.ang.cross(h))

    def __add__(self, other: MHat) -> MHat:
        return MHat(self.A + other.A, self.c + other.c)

    def __matmul__(self, y: Motion) -> Force:
        return Force(self.A @ y.ang, y.ang.cross(self.c))

    def transposed(self, y: Motion) -> Vec:
        """M̂* y: a couple, the linear part is zero."""
        return self.A.transpose_times(y.ang) + self.c.cross(y.lin)

    def columns(self) -> tuple[Force, Force, Force]:
        """The three columns that are not zero."""
        x, y, z = (Force(self.A.column(i), Vec.unit(i).cross(self.c)) for i in range(3))
        return x, y, z


@dataclass(frozen=True, slots=True)
class Referred:
    """One link about the inertial point: H*, Ḣ*, Ḧ*, V, α, M and M̂."""

    H: Motion
    H_dot: Motion
    H_ddot: Motion
    V: Motion
    alpha: Motion
    M: RigidInertia
    M_hat: MHat


def referred(tree: Tree, q: Flat, v: Flat, vdot: Flat, method: str) -> list[Referred]:
    """The base-to-tip recursion (3.4), for a serial chain of hinges."""
    no_mimics(tree, method)
    serial(tree, method)
    joint_types(tree, method, [Revolute])
    no_armature(tree, method)
    frame = Placed(Mat3.identity(), Vec.zero())
    V, alpha = Motion.zero(), Motion(Vec.zero(), -tree.gravity)
    links = []
    for link in tree:
        frame = link.phi(q).carry(frame)
        (s,) = link.S(q)
        axis = frame.R @ s.ang
        H = Motion(axis, frame.p.cross(axis))
        (rate,), (acceleration,) = link.rates(v), link.rates(vdot)
        V = V + H * rate
        H_dot = V.cross(H)  # (2.13)
        alpha = alpha + H * acceleration + H_dot * rate
        H_ddot = alpha.cross(H) + V.cross(H_dot)
        M = Transform.rigid(frame.R, frame.p).congruence(link.inertia)
        links.append(Referred(H, H_dot, H_ddot, V, alpha, M, MHat.of(M, V)))
    return links


def outboard_forces(links: Sequence[Referred]) -> list[Force]:
    """f(k), the force across every hinge: f(k) = f(k-1) + M(k)α(k) + M̂(k)V(k) (2.9)."""
    forces: list[Force] = []
    f = Force.zero()
    for k in reversed(links):
        f = f + k.M @ k.alpha + k.M_hat @ k.V
        forces.append(f)
    return forces[::-1]


def tilde_H_f(k: Referred, f: Force) -> Force:
    """H̃f: S[H*] f.

    DIFFERS FROM PAPER: (2.14) defines H̃ = S*[H*]; the proof of lemma 3.1 (A.13) has -Q[f]H* = S[H*]f here.
    """
    return k.H.cross_force(f)


def delta_torque(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dvdot: Flat | None) -> list[Scalar]:
    """Jain 1993 algorithm 1: the change δT of the joint forces, for changes δθ, δθ', δθ''. O(n).

    δT, n numbers; ``dvdot`` None means zero.

    δT = Hφ(Mφ*{H*δθ'' + 2Ḣ*δθ' + Ḧ*δθ} + 2M̂φ*{H*δθ' + Ḣ*δθ} + H̃f δθ)  (3.3).

    DIFFERS FROM PAPER: (3.3) and (3.5) have lost the 2 before M̂ and the δθ behind H̃f, which lemma 3.1 has.
    """
    links = referred(tree, q, v, vdot, "linearized_1")
    # (3.4): base to tip
    zeta, theta = Motion.zero(), Motion.zero()
    moved: list[tuple[Motion, Motion]] = []
    for i, k in enumerate(links):
        if dvdot is not None:
            zeta = zeta + k.H * dvdot[i]
        zeta = zeta + k.H_dot * (dv[i] + dv[i]) + k.H_ddot * dq[i]
        theta = theta + k.H * dv[i] + k.H_dot * dq[i]
        moved.append((zeta, theta + theta))
    # (3.5): tip to base
    f = outboard_forces(links)
    lam = Force.zero()
    delta: list[Scalar] = [0.0] * len(links)
    for i in reversed(range(len(links))):
        k, (zeta, twice_theta) = links[i], moved[i]
        lam = lam + k.M @ zeta + k.M_hat @ twice_theta + tilde_H_f(k, f[i]) * dq[i]
        delta[i] = k.H.dot(lam)
    return delta


def inverse_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """Jain 1993 algorithm 2: 𝓜, A_D = ∂T/∂θ' and B_D = ∂T/∂θ together, by composite bodies. O(n²).

    𝓜, A_D and B_D, n × n each.

    𝓜 = H[φR + Rφ~*]H*,  A_D = 2Hφ[RḢ* + R̂H*] + 2H[Rφ~*Ḣ* + R̂φ~*H*],
    B_D = Hφ[H̃f + 2R̂Ḣ* + RḦ*] + H[2R̂φ~*Ḣ* + Rφ~*Ḧ*]  (lemma 3.2).
    """
    links = referred(tree, q, v, vdot, "linearized_2")
    f = outboard_forces(links)
    n = len(links)
    M, A_D, B_D = zeros(n, n), zeros(n, n), zeros(n, n)
    R, R_hat = RigidInertia.zero(), MHat(Mat3.zero(), Vec.zero())
    for i in reversed(range(n)):  # (3.8)
        k = links[i]
        R, R_hat = R + k.M, R_hat + k.M_hat
        X = R @ k.H
        X_hat = R_hat.transposed(k.H) * 2.0
        X_A = (R @ k.H_dot + R_hat @ k.H) * 2.0
        X_B = (R_hat @ k.H_dot) * 2.0 + R @ k.H_ddot + tilde_H_f(k, f[i])
        M[i][i], A_D[i][i], B_D[i][i] = k.H.dot(X), k.H.dot(X_A), k.H.dot(X_B)
        twice_X = X * 2.0
        for j in reversed(range(i)):
            a = links[j]
            M[i][j] = M[j][i] = a.H.dot(X)
            A_D[j][i], B_D[j][i] = a.H.dot(X_A), a.H.dot(X_B)
            A_D[i][j] = a.H_dot.dot(twice_X) + a.H.ang.dot(X_hat)
            B_D[i][j] = a.H_ddot.dot(X) + a.H_dot.ang.dot(X_hat)
    return M, A_D, B_D


def conventional_delta_acceleration(
    tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dtau: Flat
) -> list[Scalar]:
    """Jain 1993 algorithm 3, the conventional way: solve 𝓜 δθ'' = δT - A_D δθ' - B_D δθ. O(n³).

    δθ'', n numbers, about the motion whose acceleration is ``vdot``.
    """
    x = delta_torque(tree, q, v, vdot, dq, dv, None)
    return factorize(_mass_matrix(tree, q, v, vdot)).solve(minus(dtau, x))


def _mass_matrix(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> Matrix:
    """𝓜 by the steps of algorithm 2."""
    links = referred(tree, q, v, vdot, "linearized_3")
    n = len(links)
    M = zeros(n, n)
    R = RigidInertia.zero()
    for i in reversed(range(n)):
        R = R + links[i].M
        X = R @ links[i].H
        for j in range(i + 1):
            M[i][j] = M[j][i] = links[j].H.dot(X)
    return M


def conventional_forward_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """Jain 1993 algorithm 4, the conventional way: invert 𝓜; A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D by products. O(n³).

    𝓜⁻¹, A_C = -∂θ''/∂θ' and B_C = -∂θ''/∂θ, n × n each, about the motion whose acceleration is ``vdot``.
    """
    M, A_D, B_D = inverse_matrices(tree, q, v, vdot)
    M_inverse = factorize(M).inverse()
    return M_inverse, product(M_inverse, A_D), product(M_inverse, B_D)


Columns = tuple[Force, Force, Force]
"""P̂ by the three of its columns that are not zero."""


@dataclass(frozen=True, slots=True)
class ArticulatedRates:
    """D⁻¹, G, Ĝ, Y_A and Y_B of one link."""

    d_inverse: Scalar
    G: Force
    G_hat: Force
    Y_A: Force
    Y_B: Force


def articulated(links: Sequence[Referred]) -> list[ArticulatedRates]:
    """The recursion that algorithms 5 and 6 of Jain 1993 share (4.16): articulated inertias P and their kin P̂.

    Every link's, base first.

    DIFFERS FROM PAPER: (4.12) prints Ĝ = P̂H*D⁻¹. P̂ is not symmetric, and the proof of lemma 4.7 needs DK̂* = HP̂E_φ*, so
    Ĝ = P̂*H*D⁻¹: a pure couple.
    """
    f = outboard_forces(links)
    P = ArticulatedInertia.zero()
    P_hat: Columns = (Force.zero(), Force.zero(), Force.zero())
    found = []
    for i in reversed(range(len(links))):
        k = links[i]
        P = P + k.M.articulated()
        x, y, z = (a + b for a, b in zip(P_hat, k.M_hat.columns(), strict=True))
        P_hat = (x, y, z)
        u = P @ k.H
        d_inverse = 1.0 / k.H.dot(u)
        G = u * d_inverse
        G_hat = Force(Vec(*(k.H.dot(column) for column in P_hat)) * d_inverse, Vec.zero())
        Y_A = (_P_hat_times(P_hat, k.H) + P @ k.H_dot) * 2.0
        Y_B = _P_hat_times(P_hat, k.H_dot) * 2.0 + P @ k.H_ddot + tilde_H_f(k, f[i])
        found.append(ArticulatedRates(d_inverse, G, G_hat, Y_A, Y_B))
        P = P.without(u, G, None)  # τ̄P
        x, y, z = (column - G * k.H.dot(column) for column in P_hat)  # τ̄P̂
        P_hat = (x, y, z)
    return found[::-1]


def _P_hat_times(P_hat: Columns, y: Motion) -> Force:
    a, b, c = P_hat
    total: Force = a * y.ang.x + b * y.ang.y + c * y.ang.z
    return total


def delta_acceleration(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dtau: Flat) -> list[Scalar]:
    """Jain 1993 algorithm 5: the change δθ'' of the accelerations, without a mass matrix. O(n).

    δθ'', n numbers, about the motion whose acceleration is ``vdot``.

    δθ'' = [I - HψK]*(D⁻¹{δT - Hψ[KδT + Y_A δθ' + Y_B δθ]} - 2K̂*φ*(H*δθ' + Ḣ*δθ)) - K*ψ*[2Ḣ*δθ' + Ḧ*δθ]  (4.15).
    """
    links = referred(tree, q, v, vdot, "linearized_5")
    bodies = articulated(links)
    n = len(links)
    eps: list[Scalar] = [0.0] * n
    z_plus = Force.zero()
    for i in reversed(range(n)):  # (4.17)
        k, b = links[i], bodies[i]
        z = z_plus + b.Y_A * dv[i] + b.Y_B * dq[i]
        eps[i] = dtau[i] - k.H.dot(z)
        z_plus = z + b.G * eps[i]
    delta: list[Scalar] = []
    theta, alpha = Motion.zero(), Motion.zero()
    for i in range(n):  # (4.18)
        k, b = links[i], bodies[i]
        nu = eps[i] * b.d_inverse - (theta + theta).dot(b.G_hat)
        delta.append(nu - alpha.dot(b.G))
        alpha = alpha + k.H * delta[i] + k.H_dot * (dv[i] + dv[i]) + k.H_ddot * dq[i]
        theta = theta + k.H * dv[i] + k.H_dot * dq[i]
    return delta


def forward_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """Jain 1993 algorithm 6: 𝓜⁻¹, A_C and B_C directly, with neither 𝓜 nor an inversion. O(n²).

    𝓜⁻¹, A_C = -∂θ''/∂θ' and B_C = -∂θ''/∂θ, n × n each, about the motion whose acceleration is ``vdot``.

    𝓜⁻¹ = L - K*ψ*U* - UψK,  A_C = UψY_A + K*ψ*E_A + Q*φ*H*,  B_C = UψY_B + K*ψ*E_B + Q*φ*Ḣ*  (lemma 4.9).
    """
    links = referred(tree, q, v, vdot, "linearized_6")
    bodies = articulated(links)
    n = len(links)
    M_inverse, A_C, B_C = zeros(n, n), zeros(n, n), zeros(n, n)
    upsilon = zeros(6, 6)
    J_hat = [Force.zero()] * 6  # by rows, each a form on motions
    E_A, E_B = [], []
    for i, (k, b) in enumerate(zip(links, bodies, strict=True)):  # (4.26), base to tip
        Z = _times(upsilon, b.G)
        L = b.d_inverse + Z.dot(b.G)
        U = k.H * L - Z
        upsilon = _updated(upsilon, k.H, U, Z)
        # outwards along the row of ψ
        M_inverse[i][i] = L
        A_C[i][i], B_C[i][i] = U.dot(b.Y_A), U.dot(b.Y_B)
        X = U
        for j in range(i + 1, n):
            entry = -X.dot(bodies[j].G)
            M_inverse[i][j] = M_inverse[j][i] = entry
            X = X + links[j].H * entry
            A_C[i][j], B_C[i][j] = X.dot(bodies[j].Y_A), X.dot(bodies[j].Y_B)
        # what the inboard links will need
        C = Force.zero()
        for g, row in zip(b.G, J_hat, strict=True):
            C = C + row * g
        half_Q = b.G_hat - C
        J_hat = [row + half_Q * h for row, h in zip(J_hat, k.H, strict=True)]
        E_A.append(k.H_dot * 2.0 - _times(upsilon, b.Y_A) + _applied(J_hat, k.H) * 2.0)
        E_B.append(k.H_ddot - _times(upsilon, b.Y_B) + _applied(J_hat, k.H_dot) * 2.0)
        # inwards along the column
        Q, W = half_Q * 2.0, b.G
        for j in reversed(range(i)):
            a = links[j]
            A_C[i][j] = E_A[j].dot(W) + a.H.dot(Q)
            B_C[i][j] = E_B[j].dot(W) + a.H_dot.dot(Q)
            W = W - bodies[j].G * a.H.dot(W)
    return M_inverse, A_C, B_C


def _updated(upsilon: Matrix, H: Motion, U: Motion, Z: Motion) -> Matrix:
    """Υ(k) = Υ(k+1) + H*U - ZH, symmetric: each off-diagonal entry computed once."""
    upper = {(i, j): upsilon[i][j] + H[i] * U[j] - Z[i] * H[j] for i in range(6) for j in range(i, 6)}
    return [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]


def _times(upsilon: Matrix, f: Force) -> Motion:
    """Υf."""
    return Motion.of([dot(row, list(f)) for row in upsilon])


def _applied(J_hat: Sequence[Force], y: Motion) -> Motion:
    """Ĵy."""
    return Motion.of([y.dot(row) for row in J_hat])


@dataclass(frozen=True)
class LinearizedAlgorithm:
    """One algorithm of Jain 1993, for serial chains of hinges.

    ``function(tree, q, v, vdot, *changes)`` takes as many changes as ``changes`` names, flat sequences of n scalars.
    """

    number: int
    what: str
    order: str
    function: Callable[..., Any]
    changes: tuple[str, ...]
    M: PrintedCount
    A: PrintedCount

    @property
    def name(self) -> str:
        """Its number after a word."""
        return f"linearized_{self.number}"


def _algorithm(
    number: int, what: str, order: str, function: Callable[..., Any], changes: str, M: str, A: str
) -> LinearizedAlgorithm:
    return LinearizedAlgorithm(number, what, order, function, tuple(changes.split()), PrintedCount(M), PrintedCount(A))


LINEARIZED: tuple[LinearizedAlgorithm, ...] = (
    _algorithm(1, "δT", "n", delta_torque, "dq dv dvdot", "320n - 159", "303n - 149"),
    _algorithm(2, "𝓜, A_D, B_D", "n²", inverse_matrices, "", "21n² + 333n - 132", "47n²/2 + 605n/2 - 145"),
    _algorithm(
        3, "δθ'', conventional", "n³", conventional_delta_acceleration, "dq dv dtau",
        "n³/6 + 3n²/2 + 952n/3 - 153", "n³/6 + n² + 1805n/6 - 147",
    ),
    _algorithm(
        4, "𝓜⁻¹, A_C, B_C, conventional", "n³", conventional_forward_matrices, "",
        "17n³/6 + 43n²/2 + 998n/3 - 132", "17n³/6 + 20n² + 1819n/6 - 145",
    ),
    _algorithm(5, "δθ''", "n", delta_acceleration, "dq dv dtau", "259n - 129", "232n - 123"),
    _algorithm(6, "𝓜⁻¹, A_C, B_C", "n²", forward_matrices, "", "36n² + 781n - 225", "33n² + 773n - 255"),
)  # fmt: skip
