"""Brandl, Johanni and Otter 1986: the recursion without inversion of the mass matrix, for general joints. O(n).

Jain 1991 §5, table 1 (ref. 11), in their letters: joint map Φ, joint force λ̂ (here τ), transformation C with a(k) = C
a(k-1) + Φq̈ + ζ, interaction force h = I*a - β*, joint inertia M̂ = Φ*I*Φ. What it adds to Featherstone's is the
general joint, whose M̂ is factored (not inverted), and ordinary accelerations in joint coordinates. Trees, all
joints.

DIFFERS FROM PAPER: gravity is an acceleration of the base, not a force on every link.
"""

from __future__ import annotations

from linkwise.algorithms.factors import Factor, factorize
from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import base_acceleration, velocity_terms
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, coordinate_axis
from linkwise.spatial.scalar import Flat, Scalar, is_zero, minus
from linkwise.spatial.vectors import Force, Motion, weighted_sum


@dataclass(frozen=True)
class _ArticulatedTerms:
    """I* and β* of a link with all that hangs on it."""

    I: ArticulatedInertia
    beta: Force

    def __add__(self, other: _ArticulatedTerms) -> _ArticulatedTerms:
        return _ArticulatedTerms(self.I + other.I, self.beta + other.beta)


@dataclass(frozen=True, slots=True)
class _JointTerms:
    """Φ, I*Φ and the factors of M̂; and the joint force that is left for acceleration, τ - Φ*(I*ζ - β*)."""

    Phi: tuple[Motion, ...]
    IPhi: list[Force]
    M_hat: Factor
    k: list[Scalar]


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈ by one sweep inwards and one outwards."""
    no_mimics(tree, "Brandl, Johanni and Otter")
    terms = velocity_terms(tree, q, v)  # their first sweep: ω, ζ (our a) and β (our -b)

    def condense(link: Link, outboard: _ArticulatedTerms) -> tuple[_ArticulatedTerms, _JointTerms]:
        I = link.inertia.articulated() + outboard.I
        beta, zeta = outboard.beta - terms[link].b, terms[link].a
        Phi = link.S(q)
        IPhi = [I @ column for column in Phi]
        M_hat = [[s.dot(f) for f in IPhi] for s in Phi]
        for i, rotor in enumerate(link.armature):
            M_hat[i][i] = M_hat[i][i] + rotor
        factor = factorize(M_hat)
        bias = I @ zeta - beta
        k = minus(link.rates(tau), [s.dot(bias) for s in Phi])
        C = link.phi(q)
        I_left = I
        for (s, rotor), f, g in zip(_axes(link, Phi), IPhi, _solved(factor, IPhi), strict=True):
            I_left = I_left.without(f, g, coordinate_axis(s) if len(Phi) == 1 and is_zero(rotor) else None)
        handed = _ArticulatedTerms(
            C.congruence(I_left), -(C @ (bias + weighted_sum(IPhi, factor.solve(k), Force.zero())))
        )
        return handed, _JointTerms(Phi, IPhi, factor, k)

    joints = inward(tree, condense, _ArticulatedTerms(ArticulatedInertia.zero(), Force.zero()))

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        joint = joints[link]
        Ca = link.phi(q).T @ parent[0]
        qddot = joint.M_hat.solve(minus(joint.k, [Ca.dot(f) for f in joint.IPhi]))
        return Ca + combination(joint.Phi, qddot) + terms[link].a, qddot

    return tree.generalized(Field([x for _, x in outward(tree, accelerate, (base_acceleration(tree), [])).values]))


def _axes(link: Link, Phi: tuple[Motion, ...]) -> list[tuple[Motion, Scalar]]:
    return list(zip(Phi, link.armature, strict=True))


def _solved(factor: Factor, IPhi: list[Force]) -> list[Force]:
    """I*ΦM̂⁻¹, column by column."""
    rows = [factor.solve([f[i] for f in IPhi]) for i in range(6)]
    return [Force.of([row[j] for row in rows]) for j in range(len(IPhi))]
