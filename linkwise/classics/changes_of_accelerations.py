"""Algorithms 3 to 6 of Jain 1993: how accelerations change with state and forces, δθ'' and its matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.sparse_factor import factorize
from linkwise.classics.changes_of_forces import delta_torque, inverse_matrices
from linkwise.classics.dense import dot, minus, zeros
from linkwise.classics.linearized_terms import Referred, outboard_forces, referred, tilde_H_f
from linkwise.mechanism.tree import Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Motion, Vec


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
    return M_inverse, _product(M_inverse, A_D), _product(M_inverse, B_D)


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [[dot(row, column) for column in columns] for row in a]


Columns = tuple[Force, Force, Force]
"""P̂ by the three of its columns that are not zero."""


@dataclass(frozen=True, slots=True)
class Articulated:
    """D⁻¹, G, Ĝ, Y_A and Y_B of one link."""

    d_inverse: Scalar
    G: Force
    G_hat: Force
    Y_A: Force
    Y_B: Force


def articulated(links: Sequence[Referred]) -> list[Articulated]:
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
        found.append(Articulated(d_inverse, G, G_hat, Y_A, Y_B))
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
