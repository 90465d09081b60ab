"""Bae and Haug 1987: forward dynamics from the variational form of d'Alembert's principle. O(n).

Jain 1991 eq. 50-52, table 1 (ref. 12). For every virtual displacement δx = φ*H*δβ, δx*(Mα - Q) = 0. The known forces
are generalised forces Q on the links, not joint forces: Q = φ⁻¹f, and only HφQ = T matters. Eliminating a joint's δβ
leaves on its parent a reduced inertia K and a reduced force L:

    (M + K) = P,   H(Pα - Q - L) = 0,   K(p) = Σ φP⁺φ*,   L(p) = Σ φ[τ̄(Q + L) - P⁺a].

With the true interaction forces f in Q = φ⁻¹f, Pα = f - z = Q + L (eq. 52).

DIFFERS FROM PAPER: the velocity-dependent force -b is part of Q and the acceleration a of L. Joints of one freedom and
cylindrical joints, as in the original; trees too. A rotor adds to the joint's D.
"""

from __future__ import annotations

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.sweeps import Field, each, inward, outward
from linkwise.classics.requirements import joint_types, no_mimics
from linkwise.classics.terms import Eliminated, Terms, base_acceleration, eliminate, velocity_terms
from linkwise.dataclass import dataclass
from linkwise.joints import Cylindrical, Helical, Prismatic, Revolute
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.scalar import Flat, Scalar, minus
from linkwise.spatial.vectors import Force, Motion


@dataclass(frozen=True)
class Reduced:
    """K and L: what the links outboard of a link add to its inertia and to its force."""

    K: ArticulatedInertia
    L: Force

    def __add__(self, other: Reduced) -> Reduced:
        return Reduced(self.K + other.K, self.L + other.L)


@dataclass(frozen=True, slots=True)
class Variation:
    """A link's P = M + K and L, and its joint eliminated."""

    P: ArticulatedInertia
    L: Force
    joint: Eliminated


def generalized_forces(tree: Tree, q: Flat, terms: Field[Terms], f: Field[Force]) -> Field[Force]:
    """Q(k) = f(k) - Σ φ(k, child) f(child) - b(k): eq. 50, with the gyroscopic force."""
    outboard = inward(tree, lambda link, total: (link.phi(q) @ f[link], total), Force.zero())
    return each(tree, lambda link: f[link] - outboard[link] - terms[link].b)


def actuator_forces(tree: Tree, q: Flat, tau: Flat) -> Field[Force]:
    """Some f with Hf = T: a force along the joint's own axes, H*(HH*)⁻¹T."""

    def along(link: Link) -> Force:
        S = link.S(q)
        gram = [[dot_motions(s, t) for t in S] for s in S]
        total = Force.zero()
        for s, x in zip(S, factorize(gram).solve(link.rates(tau)), strict=True):
            total = total + Force(s.ang, s.lin) * x
        return total

    return each(tree, along)


def dot_motions(s: Motion, t: Motion) -> Scalar:
    """Σ of the products of components, whatever their units."""
    return s.dot(Force(t.ang, t.lin))


def reduce(tree: Tree, q: Flat, terms: Field[Terms], Q: Field[Force]) -> Field[Variation]:
    """K and L from the tips inwards."""

    def step(link: Link, outboard: Reduced) -> tuple[Reduced, Variation]:
        P = link.inertia.articulated() + outboard.K
        joint = eliminate(P, link.S(q), link.armature)
        y = Q[link] + outboard.L
        through = y - joint.apply_G(joint.H(y)) - joint.P_plus @ terms[link].a
        phi = link.phi(q)
        return Reduced(phi.congruence(joint.P_plus), phi @ through), Variation(P, outboard.L, joint)

    return inward(tree, step, Reduced(ArticulatedInertia.zero(), Force.zero()))


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈ = D⁻¹H[Q + L - P(φ*α + a)], outwards."""
    joint_types(tree, "Bae and Haug", (Revolute, Prismatic, Helical, Cylindrical))
    no_mimics(tree, "Bae and Haug")
    terms = velocity_terms(tree, q, v)
    Q = generalized_forces(tree, q, terms, actuator_forces(tree, q, tau))
    links = reduce(tree, q, terms, Q)

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        here, joint = links[link], links[link].joint
        frozen = link.phi(q).T @ parent[0] + terms[link].a
        driven = joint.apply_D_inverse(joint.H(Q[link] + here.L))
        qddot = minus(driven, joint.apply_G_star(frozen))
        return frozen + joint.H_star(qddot), qddot

    return tree.generalized(Field([x for _, x in outward(tree, accelerate, (base_acceleration(tree), [])).values]))
