"""001 algorithm 3, the conventional way: solve 𝓜 δθ'' = δT - A_D δθ' - B_D δθ. O(n³)."""

from __future__ import annotations

from linkwise.algorithms.sparse_factor import factorize
from linkwise.classics.dense import Matrix, minus, zeros
from linkwise.classics.linearized_1_inverse_vector import delta_torque
from linkwise.classics.linearized_terms import Flat, referred
from linkwise.mechanism.tree import Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar


def delta_acceleration(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dtau: Flat) -> list[Scalar]:
    """δθ'', n numbers, about the motion whose acceleration is ``vdot``."""
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
