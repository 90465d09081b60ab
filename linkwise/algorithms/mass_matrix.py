"""The mass matrix by composite bodies: 𝓜 = HφMφ*H* = H(R + φ~R + Rφ~*)H* (Jain 1991 eq. 28). O(n · depth).

Or half of it, H(R + φ~R)H*, which is enough, column by column: column j is the force R_j S_j that the unit acceleration
of freedom j takes, handed inboard: nothing outboard of link j takes part, and what it needs of each link is the same
for all columns. :func:`of_links` finds that once for a state; :func:`inboard_product` is the one inward sweep that is
left for a column. O(n) each, O(n · depth) for the whole.
"""

from __future__ import annotations

from typing import Any

from linkwise.algorithms.factors import Factor, factorize
from linkwise.algorithms.sweeps import (
    Field,
    add,
    add_symmetric,
    freedom,
    generalized,
    inward,
    outward,
    over_freedoms,
    per_body,
)
from linkwise.mechanism.tree import Link, Sweeper, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force


def mass_matrix(tree: Tree, q: Flat) -> Matrix:
    """𝓜(q), nv × nv, armature on its diagonal."""
    R = composites(tree, q)
    M = over_freedoms(tree)
    for link in tree:
        for j, column in enumerate(link.S(q)):
            here = freedom(link, j)
            f = R[link] @ column
            for i, row in enumerate(link.S(q)[:j]):
                add_symmetric(M, freedom(link, i), here, row.dot(f))
            add(M, here, here, column.dot(f) + link.armature[j])
            inner = link
            for ancestor in tree.inboard(link):
                f = inner.phi(q) @ f
                inner = ancestor
                for i, row in enumerate(ancestor.S(q)):
                    add_symmetric(M, freedom(ancestor, i), here, row.dot(f))
    return M


def mass_factor(tree: Tree, q: Flat) -> Factor:
    """The factors of 𝓜(q)."""
    M = mass_matrix(tree, q)
    for link in tree:
        if not link.is_mimic:
            for i in range(link.v_start, link.v_start + link.joint.nv):
                link.checked_inertia(M[i][i])
    return factorize(M)


def composites(tree: Tree, q: Flat) -> Field[RigidInertia]:
    """R of every link; its ``root`` is that of the whole tree, about the root frame's origin."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        R = link.M(q) + outboard
        return link.phi(q).congruence(R), R

    return inward(tree, gather, RigidInertia.zero())


def width(freedoms: int) -> int:
    """Count of the numbers that :func:`of_links` gives for a link whose joint has so many freedoms."""
    return 12 + 13 * freedoms


def of_links(tree: Tree, q: Flat, most: int) -> list[list[Scalar]]:
    """For each link the rotation (9) and shift (3) of φ, then S (6), R S (6) and the armature for each freedom.

    ``most``: freedoms of the joint that has the most of them.
    """
    R = composites(tree, q)

    def numbers(link: Link, _: None) -> tuple[None, list[Scalar]]:
        turn, l = link.phi(q).matrix()
        row = [*(x for r in turn.m for x in r), *l]
        for column, armature in zip(link.S(q), link.armature, strict=True):
            row += [*column, *(R[link] @ column), armature]
        return None, row

    return per_body(tree, outward(tree, numbers, None, keeps=True), (width(most),))


def inboard_product(tree: Sweeper, x: object) -> list[Scalar]:
    """H(R + φ~R)H* x, for links that know φ, S, R S and their armature as :func:`of_links` gives them."""

    def gather(link: Any, outboard: Force) -> tuple[Force, list[Scalar]]:
        rates, f = link.rates(x), outboard
        for force, rate in zip(link.RS, rates, strict=True):
            f = f + force * rate
        efforts = [column.dot(f) + a * rate for column, a, rate in zip(link.axes, link.armature, rates, strict=True)]
        return link.across @ f, efforts

    return generalized(tree, inward(tree, gather, Force.zero()))
