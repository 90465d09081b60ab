"""001 algorithm 2: 𝓜, A_D = ∂T/∂θ' and B_D = ∂T/∂θ together, by composite bodies. O(n²).

𝓜 = H[φR + Rφ~*]H*,  A_D = 2Hφ[RḢ* + R̂H*] + 2H[Rφ~*Ḣ* + R̂φ~*H*],
B_D = Hφ[H̃f + 2R̂Ḣ* + RḦ*] + H[2R̂φ~*Ḣ* + Rφ~*Ḧ*]  (lemma 3.2).
"""

from __future__ import annotations

from linkwise.classics.dense import Matrix, zeros
from linkwise.classics.linearized_terms import Flat, MHat, outboard_forces, referred, tilde_H_f
from linkwise.mechanism.tree import Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.vectors import Vec


def inverse_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """𝓜, A_D and B_D, n × n each."""
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
