"""The articulated-body algorithm as 000 has it: eq. 45, 46, with velocities by eq. 60. O(n). Trees, all joints.

Inwards P, D, G, z, ε, ν; outwards α⁺, β', α.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.elimination import Eliminated, eliminate
from linkwise.classics.link_terms import Flat, base_acceleration, velocity_terms
from linkwise.classics.requirements import no_mimics
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion


def articulate(tree: Tree, q: Flat) -> Field[Eliminated]:
    """P = φP⁺φ* + M, D = HPH*, G = PH*D⁻¹, P⁺ = τ̄P (000 eq. 45)."""
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
    """v̇ by two sweeps (000 eq. 46 and 60)."""
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
