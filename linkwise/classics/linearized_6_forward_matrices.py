"""001 algorithm 6: 𝓜⁻¹, A_C and B_C directly, with neither 𝓜 nor an inversion. O(n²).

𝓜⁻¹ = L - K*ψ*U* - UψK,  A_C = UψY_A + K*ψ*E_A + Q*φ*H*,  B_C = UψY_B + K*ψ*E_B + Q*φ*Ḣ*  (lemma 4.9).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.classics.dense import Matrix, zeros
from linkwise.classics.linearized_articulated import articulated
from linkwise.classics.linearized_terms import Flat, referred
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion


def forward_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """𝓜⁻¹, A_C = -∂θ''/∂θ' and B_C = -∂θ''/∂θ, n × n each, about the motion whose acceleration is ``vdot``."""
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
    return Motion.of([_dot(row, list(f)) for row in upsilon])


def _applied(J_hat: Sequence[Force], y: Motion) -> Motion:
    """Ĵy."""
    return Motion.of([y.dot(row) for row in J_hat])


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
