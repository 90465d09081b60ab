"""The mass matrix by composite bodies: R = M + E_φRE_φ*, 𝓜 = H(R + φ~R + Rφ~*)H*.

000 eq. 24-28; method 3 of Walker and Orin 1982; 003 eq. 9, 10. O(n²). Trees, all joints.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, inward
from linkwise.classics.dense import Matrix, solve_cholesky, zeros
from linkwise.classics.link_terms import Flat
from linkwise.classics.newton_euler import bias_free
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar


def composite_inertias(tree: Tree, q: Flat) -> Field[RigidInertia]:
    """R(k) = M(k) + Σ φ(k, child) R(child) φ*(k, child) (000 eq. 25)."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        R = link.inertia + outboard
        return link.phi(q).congruence(R), R

    return inward(tree, gather, RigidInertia.zero())


def mass_matrix(tree: Tree, q: Flat) -> Matrix:
    """𝓜 by 000 eq. 28: X(k) = R(k)H*(k), X(j) = φ(j, j-1)X(j-1) inwards, 𝓜(j, k) = H(j)X(j)."""
    no_mimics(tree, "composite body")
    R = composite_inertias(tree, q)
    matrix = zeros(tree.nv, tree.nv)
    for k in tree:
        for i, s in enumerate(k.S(q)):
            column, X, inner = k.v_start + i, R[k] @ s, k
            for j in tree.ancestors(k):
                if j is not k:
                    X, inner = inner.phi(q) @ X, j
                for row, t in enumerate(j.S(q), start=j.v_start):
                    if row <= column:
                        matrix[row][column] = matrix[column][row] = t.dot(X)
            matrix[column][column] = matrix[column][column] + k.armature[i]
    return matrix


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ from 𝓜v̇ = T̄ (000 eq. 22) by Cholesky's method: O(n³), and the fewest operations of all for short chains."""
    return solve_cholesky(mass_matrix(tree, q), bias_free(tree, q, v, tau))
