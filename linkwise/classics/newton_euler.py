"""Newton and Euler's inverse dynamics: Jain 1991 eq. 17 (Luh, Walker and Paul 1980), Featherstone 2000 eq. 3-8. O(n).

Two texts: with the inertial rates of [ω; v] as Jain 1991 has them, and with spatial accelerations as Featherstone 2000
has them, the latter in link coordinates. Trees, all joints.
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.terms import base_acceleration, spatial_terms, velocity_terms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Motion


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T = Hφ(Mα + b), α = φ*(H*β' + a) (Jain 1991 eq. 17)."""
    terms = velocity_terms(tree, q, v)

    def accelerate(link: Link, alpha: Motion) -> Motion:
        return link.phi(q).T @ alpha + combination(link.S(q), link.rates(vdot)) + terms[link].a

    alpha = outward(tree, accelerate, base_acceleration(tree))

    def balance(link: Link, f: Force) -> tuple[Force, list[Scalar]]:
        f = f + link.inertia @ alpha[link] + terms[link].b
        return link.phi(q) @ f, [s.dot(f) for s in link.S(q)]

    return with_rotors(tree, inward(tree, balance, Force.zero()).values, vdot)


def inverse_dynamics_spatial(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """τ = h*f, f = Ia + v ×* Iv + Σ f(children) (Featherstone 2000 eq. 3, 4, 7, 8, in link coordinates)."""
    terms = spatial_terms(tree, q, v)

    def accelerate(link: Link, a: Motion) -> Motion:
        return link.phi(q).T @ a + terms[link].c + combination(link.S(q), link.rates(vdot))

    a = outward(tree, accelerate, base_acceleration(tree))

    def balance(link: Link, f: Force) -> tuple[Force, list[Scalar]]:
        f = link.inertia @ a[link] + terms[link].p + f
        return link.phi(q) @ f, [s.dot(f) for s in link.S(q)]

    return with_rotors(tree, inward(tree, balance, Force.zero()).values, vdot)


def mass_times(tree: Tree, q: Flat, x: Flat) -> list[Scalar]:
    """𝓜x = HφMφ*H*x: the inverse dynamics of a mechanism at rest, without gravity (Jain 1991 eq. 21)."""
    alpha = outward(
        tree, lambda link, parent: link.phi(q).T @ parent + combination(link.S(q), link.rates(x)), Motion.zero()
    )

    def balance(link: Link, f: Force) -> tuple[Force, list[Scalar]]:
        f = f + link.inertia @ alpha[link]
        return link.phi(q) @ f, [s.dot(f) for s in link.S(q)]

    return with_rotors(tree, inward(tree, balance, Force.zero()).values, x)


def with_rotors(tree: Tree, per_link: Matrix, vdot: Flat) -> list[Scalar]:
    """One number for each freedom, with what the rotors take."""
    forces = [
        [f + J * x for f, J, x in zip(values, link.armature, link.rates(vdot), strict=True)]
        for link, values in zip(tree, per_link, strict=True)
    ]
    return tree.generalized(Field(forces))


def bias_free(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """T̄ = T - C: the joint forces less what velocities and gravity take (Jain 1991 eq. 22)."""
    C = inverse_dynamics(tree, q, v, [0.0] * tree.nv)
    return [t - c for t, c in zip(tau, C, strict=True)]
