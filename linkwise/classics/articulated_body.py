"""The articulated-body algorithm as Jain 1991 has it: eq. 45, 46, with velocities by eq. 60. O(n). Trees, all joints.

Inwards P, D, G, z, ε, ν; outwards α⁺, β', α.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.newton_euler import bias_free
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import Eliminated, base_acceleration, eliminate, velocity_terms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import identity
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot
from linkwise.spatial.vectors import Force, Motion


def articulate(tree: Tree, q: Flat) -> Field[Eliminated]:
    """P = φP⁺φ* + M, D = HPH*, G = PH*D⁻¹, P⁺ = τ̄P (Jain 1991 eq. 45)."""
    return articulated_inertias(tree, q)[1]


def articulated_inertias(tree: Tree, q: Flat) -> tuple[Field[ArticulatedInertia], Field[Eliminated]]:
    """P of every link, and its joint eliminated."""

    def step(
        link: Link, outboard: ArticulatedInertia
    ) -> tuple[ArticulatedInertia, tuple[ArticulatedInertia, Eliminated]]:
        P = outboard + link.inertia.articulated()
        joint = eliminate(P, link.S(q), link.armature)
        return link.phi(q).congruence(joint.P_plus), (P, joint)

    both = inward(tree, step, ArticulatedInertia.zero())
    return Field([P for P, _ in both.values]), Field([joint for _, joint in both.values])


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ by two sweeps (Jain 1991 eq. 46 and 60)."""
    no_mimics(tree, "articulated body")
    P, joints = articulated_inertias(tree, q)
    terms = velocity_terms(tree, q, v)

    def innovate(link: Link, z_outboard: Force) -> tuple[Force, list[Scalar]]:
        joint = joints[link]
        z = z_outboard + P[link] @ terms[link].a + terms[link].b
        eps = [T - Hz for T, Hz in zip(link.rates(tau), joint.H(z), strict=True)]
        return link.phi(q) @ (z + joint.apply_G(eps)), joint.apply_D_inverse(eps)

    nu = inward(tree, innovate, Force.zero())

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        joint = joints[link]
        alpha_plus = link.phi(q).T @ parent[0]
        beta_dot = [x - y for x, y in zip(nu[link], joint.apply_G_star(alpha_plus), strict=True)]
        return alpha_plus + joint.H_star(beta_dot) + terms[link].a, beta_dot

    states = outward(tree, accelerate, (base_acceleration(tree), [])).values
    return tree.generalized(Field([vdot for _, vdot in states]))


def forward_by_innovations(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ from triangular systems: 𝓜 = [I + HφK] D [I + HφK]*, the innovations factorisation. O(n²). Trees, all joints.

    Jain 1991 §4, lemma 6.2: K and D by the recursions of eq. 45, the factor [I + HφK] entry by entry, then
    (a) [I + HφK] D x = T̄ and (b) [I + HφK]* β' = x. Rosenthal's O(n²) form of Kane's equations (ref. 6 of
    Jain 1991) is the same.

    DIFFERS FROM PAPER: Jain 1991 says that Rosenthal's m_kk correspond to D⁻¹(k); they are D(k), as its own table 1
    has it.
    """
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
