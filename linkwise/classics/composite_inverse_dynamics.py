"""Inverse dynamics by composite bodies: f = Rα + y (Jain 1991 lemma 3.2, eq. 29). O(n).

R(k)α(k) is what the force would be if the outboard joints were frozen; y(k) corrects for their accelerations. The
inward sweep for y and the outward one for α do not wait for each other.

DIFFERS FROM PAPER: eq. 29 leaves out velocities. With them φMφ*(H*β' + a) + φb splits the same way,
y = φ~R(H*β' + a) + φb: each joint hands on what it accelerates by, H*β' + a, and b joins y.
Trees, all joints, mimics too.
"""

from __future__ import annotations

from linkwise.algorithms.rigid_motion import combination
from linkwise.algorithms.sweeps import each, inward, outward
from linkwise.classics.mass_matrices import composite_inertias
from linkwise.classics.newton_euler import with_rotors
from linkwise.classics.terms import base_acceleration, velocity_terms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Force, Motion


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T = H(Rα + y)."""
    terms = velocity_terms(tree, q, v)
    R = composite_inertias(tree, q)
    across = each(tree, lambda link: combination(link.S(q), link.rates(vdot)) + terms[link].a)

    def correct(link: Link, outboard: Force) -> tuple[Force, Force]:
        y = outboard + terms[link].b
        return link.phi(q) @ (y + R[link] @ across[link]), y

    y = inward(tree, correct, Force.zero())

    def accelerate(link: Link, alpha: Motion) -> Motion:
        return link.phi(q).T @ alpha + across[link]

    alpha = outward(tree, accelerate, base_acceleration(tree))
    f = each(tree, lambda link: R[link] @ alpha[link] + y[link])
    return with_rotors(tree, [[s.dot(f[link]) for s in link.S(q)] for link in tree], vdot)
