"""The mass matrix by half the direct method: a unit acceleration of joint k moves only what is outboard of k.

000 §3, "symmetry based method"; method 2 of Walker and Orin 1982. Inverse dynamics of the subtree outboard of k
alone gives the entries of the joints outboard of k; symmetry gives the rest. Trees, all joints.
"""

from __future__ import annotations

from linkwise.classics.dense import Matrix, solve_cholesky, zeros
from linkwise.classics.link_terms import Flat
from linkwise.classics.newton_euler import bias_free
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Motion


def mass_matrix(tree: Tree, q: Flat) -> Matrix:
    """𝓜, one half computed and mirrored."""
    no_mimics(tree, "symmetry")
    matrix = zeros(tree.nv, tree.nv)
    for k in tree:
        for i, s in enumerate(k.S(q)):
            column = k.v_start + i
            for row, value in _outboard(tree, q, k, s):
                matrix[row][column] = matrix[column][row] = value
            matrix[column][column] = matrix[column][column] + k.armature[i]
    return matrix


def _outboard(tree: Tree, q: Flat, k: Link, s: Motion) -> list[tuple[int, Scalar]]:
    """Row and joint force for every joint from k outwards, when k accelerates by s."""
    alpha: dict[int, Motion] = {k.index: s}
    for link in tree.links[k.index + 1 :]:
        if link.parent in alpha:
            alpha[link.index] = link.phi(q).T @ alpha[link.parent]
    f = {index: tree.links[index].inertia @ a for index, a in alpha.items()}
    entries = []
    for index in reversed(alpha):
        link = tree.links[index]
        entries += [(link.v_start + j, t.dot(f[index])) for j, t in enumerate(link.S(q))]
        if link is not k:
            f[link.parent] = f[link.parent] + link.phi(q) @ f[index]
    return entries


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ from 𝓜v̇ = T̄ (000 eq. 22) by Cholesky's method. O(n³)."""
    return solve_cholesky(mass_matrix(tree, q), bias_free(tree, q, v, tau))
