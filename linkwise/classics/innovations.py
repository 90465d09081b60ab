"""Forward dynamics from triangular systems: 𝓜 = [I + HφK] D [I + HφK]*, the innovations factorisation. O(n²).

000 §4, lemma 6.2: K and D by the recursions of eq. 45, the factor [I + HφK] entry by entry, then (a) [I + HφK] D x =
T̄ and (b) [I + HφK]* β' = x. Rosenthal's O(n²) form of Kane's equations (ref. 6 of 000) is the same.

DIFFERS FROM PAPER: 000 says that Rosenthal's m_kk correspond to D⁻¹(k); they are D(k), as its own table 1 has it.
Trees, all joints.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field
from linkwise.classics.articulated_body import articulate
from linkwise.classics.dense import Matrix, dot, identity
from linkwise.classics.elimination import Eliminated
from linkwise.classics.link_terms import Flat
from linkwise.classics.newton_euler import bias_free
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ by forward and back substitution."""
    no_mimics(tree, "innovations")
    joints = articulate(tree, q)
    factor = innovations_factor(tree, q, joints)
    n = tree.nv
    # (a): tips first, since a joint's row holds the joints outboard of it.
    eps = bias_free(tree, q, v, tau)
    for i in reversed(range(n)):
        eps[i] = eps[i] - dot(factor[i][i + 1 :], eps[i + 1 :])
    x = [nu for link in tree for nu in joints[link].apply_D_inverse(link.rates(eps))]
    # (b): base first.
    for i in range(n):
        x[i] = x[i] - dot([factor[k][i] for k in range(i)], x[:i])
    return x


def innovations_factor(tree: Tree, q: Flat, joints: Field[Eliminated]) -> Matrix:
    """[I + HφK], nv × nv, ones on its diagonal: H(j) φ(j, parent(k)) K(parent(k), k), K = E_φG.

    Numbered base to tip it is upper triangular where the paper, numbering tip to base, has lower.
    """
    factor = identity(tree.nv)
    for k in tree:
        for i, g in enumerate(joints[k].G):
            X, inner = g, k
            for j in list(tree.ancestors(k))[1:]:
                X, inner = inner.phi(q) @ X, j
                for row, value in enumerate(joints[j].H(X), start=j.v_start):
                    factor[row][k.v_start + i] = value
    return factor
