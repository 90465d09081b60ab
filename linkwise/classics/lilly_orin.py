"""Lilly and Orin: the mass matrix grown link by link (1991), and operational-space inertia from the base out (1993).

Named in Featherstone 2000 §2 ([22] there), which prints no formulas; these are the recursions as they are generally
known. Of the four methods of 1991 the spatial composite-rigid-body method, and the one that carries composite bodies as
mass, first moment and inertia, are :func:`linkwise.classics.mass_matrices.by_composite_bodies`: R there has these
ten numbers.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, outward
from linkwise.classics.articulated_body import articulated_inertias
from linkwise.classics.dense import inverse
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import identity, matrix_plus, product, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix
from linkwise.spatial.vectors import Force, Motion

Columns = dict[int, Motion]
"""The columns of a Jacobian that are not zero, by coordinate."""


def structurally_recursive(tree: Tree, q: Flat) -> Matrix:
    """𝓜 grown by one link at a time: 𝓜 ← 𝓜 + J_k*M_kJ_k, with J_k = [φ*J_p, S_k]. O(n³).

    Lilly and Orin 1991, structurally recursive method: what is there of 𝓜 when link k is reached is the mass matrix of
    the mechanism without the links beyond. Trees, all joints.
    """
    no_mimics(tree, "structurally recursive")
    matrix = zeros(tree.nv, tree.nv)

    def grow(link: Link, parent: Columns) -> Columns:
        phi = link.phi(q)
        J = {i: phi.T @ column for i, column in parent.items()}
        for i, (s, armature) in enumerate(zip(link.S(q), link.armature, strict=True), link.v_start):
            J[i] = s
            matrix[i][i] = matrix[i][i] + armature
        for i, column in J.items():
            force = link.inertia @ column
            for j, other in J.items():
                if j <= i:
                    matrix[i][j] = matrix[i][j] + other.dot(force)
                    matrix[j][i] = matrix[i][j]
        return J

    outward(tree, grow, {})
    return matrix


def force_propagation(tree: Tree, q: Flat) -> Field[Matrix]:
    """Λ⁻¹ of every link's frame, 6 × 6: its acceleration by a force on it, from the base outwards. O(n).

    Lilly and Orin 1993: Λ⁻¹(k) = L*Λ⁻¹(p)L + S D⁻¹S*, where L = φ(I - P S D⁻¹S*) is what of a force on link k reaches
    its parent through the joint, the articulation transformation. Zero on the base. Trees, all joints.
    """
    no_mimics(tree, "force propagation")
    P, _ = articulated_inertias(tree, q)

    def step(link: Link, parent: Matrix) -> Matrix:
        S = [list(s) for s in link.S(q)]
        phi = transposed([list(link.phi(q) @ Force.of(row)) for row in identity(6)])
        if not S:
            return product(transposed(phi), product(parent, phi))
        PS = transposed([list(P[link] @ s) for s in link.S(q)])
        D: Matrix = product(S, PS)
        for i, armature in enumerate(link.armature):
            D[i][i] = D[i][i] + armature
        given = product(inverse(D), S)  # D⁻¹S*
        held = [[float(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(product(PS, given))]
        L = product(phi, held)
        return matrix_plus(product(transposed(L), product(parent, L)), product(transposed(S), given))

    return outward(tree, step, zeros(6, 6))
