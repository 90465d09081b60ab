"""The mass matrix by composite bodies: 𝓜 = HφMφ*H* = H(R + φ~R + Rφ~*)H* (000 eq. 28). O(n²) at most, O(n · depth)."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.articulated import articulate, solve
from linkwise.algorithms.sparse_factor import Factor, factorize
from linkwise.algorithms.sweeps import inward
from linkwise.model.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar

Matrix = list[list[Scalar]]


def mass_matrix(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """𝓜(q), nv × nv, armature on its diagonal."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        R = link.inertia + outboard
        return link.phi(q).congruence(R), R

    composite = inward(tree, gather, RigidInertia.zero())
    matrix: Matrix = [[0.0] * tree.nv for _ in range(tree.nv)]

    def add(row: Link, i: int, column: Link, j: int, value: Scalar) -> None:
        r, c = row.v_start + i, column.v_start + j
        value = value * row.multiplier * column.multiplier
        if row is column and j > i:
            return
        matrix[r][c] = matrix[r][c] + value
        if r != c:
            matrix[c][r] = matrix[r][c]
        elif row is not column:  # a mimic and the joint it follows: both orders land on one diagonal entry
            matrix[r][c] = matrix[r][c] + value

    for link in tree:
        for j, column in enumerate(link.S(q)):
            f = composite[link] @ column
            for i, other in enumerate(link.S(q)):
                add(link, i, link, j, other.dot(f))
            add(link, j, link, j, link.armature[j])
            inner = link
            for ancestor in list(tree.ancestors(link))[1:]:
                f = inner.phi(q) @ f
                inner = ancestor
                for i, other in enumerate(ancestor.S(q)):
                    add(ancestor, i, link, j, other.dot(f))
    return matrix


def mass_factor(tree: Tree, q: Sequence[Scalar]) -> Factor:
    """The factors of 𝓜(q): for trees in which joints follow others, which no sweep can solve."""
    matrix = mass_matrix(tree, q)
    for link in tree:
        if not link.is_mimic:
            for i in range(link.v_start, link.v_start + link.joint.nv):
                link.felt(matrix[i][i])
    return factorize(matrix)


def mass_matrix_inverse(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK], one unit force at a time; no matrix is inverted. O(n²)."""
    if tree.has_mimics:
        return mass_factor(tree, q).inverse()
    axes = articulate(tree, q)
    n = tree.nv
    columns = [solve(tree, q, axes, [1.0 if i == j else 0.0 for i in range(n)], None) for j in range(n)]
    # Symmetric: entry (i, j) is taken from the column of the outer of the two, whose inward sweep is the shorter.
    return [[columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]


def mass_solve(tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> list[Scalar]:
    """𝓜(q)⁻¹ x without the matrix. O(n)."""
    if tree.has_mimics:
        return mass_factor(tree, q).solve(x)
    return solve(tree, q, articulate(tree, q), x, None)
