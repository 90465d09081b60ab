"""The mass matrix by composite bodies: 𝓜 = HφMφ*H* = H(R + φ~R + Rφ~*)H* (Jain 1991 eq. 28). O(n · depth)."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.composite import composites
from linkwise.algorithms.freedoms import Matrix, add, add_symmetric, freedom, over_freedoms
from linkwise.algorithms.sparse_factor import Factor, factorize
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar


def mass_matrix(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """𝓜(q), nv × nv, armature on its diagonal."""
    R = composites(tree, q)
    M = over_freedoms(tree)
    for link in tree:
        for j, column in enumerate(link.S(q)):
            here = freedom(link, j)
            f = R[link] @ column
            for i, row in enumerate(link.S(q)[:j]):
                add_symmetric(M, freedom(link, i), here, row.dot(f))
            add(M, here, here, column.dot(f) + link.armature[j])
            inner = link
            for ancestor in tree.inboard(link):
                f = inner.phi(q) @ f
                inner = ancestor
                for i, row in enumerate(ancestor.S(q)):
                    add_symmetric(M, freedom(ancestor, i), here, row.dot(f))
    return M


def mass_factor(tree: Tree, q: Sequence[Scalar]) -> Factor:
    """The factors of 𝓜(q)."""
    M = mass_matrix(tree, q)
    for link in tree:
        if not link.is_mimic:
            for i in range(link.v_start, link.v_start + link.joint.nv):
                link.felt(M[i][i])
    return factorize(M)
