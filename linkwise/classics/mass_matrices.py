"""The mass matrix by the three methods of Walker and Orin 1982, as in Jain 1991 §3; what follows from any of them."""

from __future__ import annotations

from linkwise.algorithms.kinematics import combination
from linkwise.algorithms.sweeps import Field, each, inward, outward
from linkwise.classics.dense import solve_cholesky
from linkwise.classics.newton_euler import bias_free, mass_times, with_rotors
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import base_acceleration, velocity_terms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import identity, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Motion


def direct(tree: Tree, q: Flat) -> Matrix:
    """𝓜 by the direct method: column k is the inverse dynamics of a unit acceleration of joint k.

    Jain 1991 §3 eq. 23; method 1 of Walker and Orin 1982; Featherstone 2000 §3.2. n inverse dynamics of O(n). Trees,
    all joints, mimics too.
    """
    return transposed([mass_times(tree, q, unit) for unit in identity(tree.nv)])


def by_symmetry(tree: Tree, q: Flat) -> Matrix:
    """𝓜 by half the direct method: a unit acceleration of joint k moves only what is outboard of k.

    Jain 1991 §3, "symmetry based method"; method 2 of Walker and Orin 1982. Inverse dynamics of the subtree outboard
    of k alone gives the entries of the joints outboard of k; symmetry gives the rest. Trees, all joints.
    """
    no_mimics(tree, "symmetry")
    matrix = zeros(tree.nv, tree.nv)
    for k in tree:
        for i, s in enumerate(k.S(q)):
            column = k.v_start + i
            for row, value in _outboard(tree, q, k, s):
                matrix[row][column] = matrix[column][row] = value
            matrix[column][column] = matrix[column][column] + k.armature[i]
    return matrix


def _outboard(tree: Tree, q: Flat, k: Link, s: Motion) -> list[tuple[int, Scalar]]:
    """Row and joint force for every joint from k outwards, when k accelerates by s."""
    alpha: dict[int, Motion] = {k.index: s}
    for link in tree.links[k.index + 1 :]:
        if link.parent in alpha:
            alpha[link.index] = link.phi(q).T @ alpha[link.parent]
    f = {index: tree.links[index].inertia @ a for index, a in alpha.items()}
    entries = []
    for index in reversed(alpha):
        link = tree.links[index]
        entries += [(link.v_start + j, t.dot(f[index])) for j, t in enumerate(link.S(q))]
        if link is not k:
            f[link.parent] = f[link.parent] + link.phi(q) @ f[index]
    return entries


def composite_inertias(tree: Tree, q: Flat) -> Field[RigidInertia]:
    """R(k) = M(k) + Σ φ(k, child) R(child) φ*(k, child) (Jain 1991 eq. 25)."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        R = link.inertia + outboard
        return link.phi(q).congruence(R), R

    return inward(tree, gather, RigidInertia.zero())


def by_composite_bodies(tree: Tree, q: Flat) -> Matrix:
    """𝓜 = H(R + φ~R + Rφ~*)H* by composite bodies, R = M + E_φRE_φ*.

    Jain 1991 eq. 24-28; method 3 of Walker and Orin 1982; Featherstone 2000 eq. 9, 10. O(n²). Trees, all joints. By
    eq. 28, X(k) = R(k)H*(k), X(j) = φ(j, j-1)X(j-1) inwards, 𝓜(j, k) = H(j)X(j).
    """
    no_mimics(tree, "composite body")
    R = composite_inertias(tree, q)
    matrix = zeros(tree.nv, tree.nv)
    for k in tree:
        for i, s in enumerate(k.S(q)):
            column, X, inner = k.v_start + i, R[k] @ s, k
            for j in tree.ancestors(k):
                if j is not k:
                    X, inner = inner.phi(q) @ X, j
                for row, t in enumerate(j.S(q), start=j.v_start):
                    if row <= column:
                        matrix[row][column] = matrix[column][row] = t.dot(X)
            matrix[column][column] = matrix[column][column] + k.armature[i]
    return matrix


def forward_direct(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ from 𝓜v̇ = T̄ (Jain 1991 eq. 22, 23) by Cholesky's method, O(n³), 𝓜 by the direct method."""
    return solve_cholesky(direct(tree, q), bias_free(tree, q, v, tau))


def forward_by_symmetry(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """The same, 𝓜 by half the direct method (Jain 1991 eq. 22, 23)."""
    return solve_cholesky(by_symmetry(tree, q), bias_free(tree, q, v, tau))


def forward_by_composite_bodies(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """The same, 𝓜 by composite bodies (Jain 1991 eq. 22, 28): the fewest operations of all for short chains."""
    return solve_cholesky(by_composite_bodies(tree, q), bias_free(tree, q, v, tau))


def inverse_by_composite_bodies(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T = H(Rα + y) by composite bodies (Jain 1991 lemma 3.2, eq. 29). O(n).

    R(k)α(k) is what the force would be if the outboard joints were frozen; y(k) corrects for their accelerations. The
    inward sweep for y and the outward one for α do not wait for each other. Trees, all joints, mimics too.

    DIFFERS FROM PAPER: eq. 29 leaves out velocities. With them φMφ*(H*β' + a) + φb splits the same way,
    y = φ~R(H*β' + a) + φb: each joint hands on what it accelerates by, H*β' + a, and b joins y.
    """
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
