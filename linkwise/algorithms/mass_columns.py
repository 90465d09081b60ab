"""Half of the mass matrix, column by column: 𝓜 = H(R + φ~R + Rφ~*)H* (Jain 1991 eq. 28): H(R + φ~R)H* is enough.

Column j of it is the force R_j S_j that the unit acceleration of freedom j takes, handed inboard: nothing outboard of
link j takes part, and what it needs of each link is the same for all columns. :func:`of_links` finds that once for a
state; :func:`inboard_product` is the one inward sweep that is left for a column. O(n) each, O(n · depth) for the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.composite import composites
from linkwise.algorithms.sweeps import generalized, inward, outward, per_body
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force


def width(freedoms: int) -> int:
    """How many numbers :func:`of_links` gives for a link whose joint has so many freedoms."""
    return 12 + 13 * freedoms


def of_links(tree: Any, q: Sequence[Scalar], most: int) -> Any:
    """For each link the rotation (9) and shift (3) of φ, then S (6), R S (6) and the armature for each freedom.

    ``most``: freedoms of the joint that has the most of them.
    """
    R = composites(tree, q)

    def numbers(link: Any, _: None) -> tuple[None, list[Scalar]]:
        turn, l = link.phi(q).matrix()
        row = [*(x for r in turn.m for x in r), *l]
        for column, armature in zip(link.S(q), link.armature, strict=True):
            row += [*column, *(R[link] @ column), armature]
        return None, row

    return per_body(tree, outward(tree, numbers, None, keeps=True), (width(most),))


def inboard_product(tree: Any, x: Any) -> Any:
    """H(R + φ~R)H* x, for links that know φ, S, R S and their armature as :func:`of_links` gives them."""

    def gather(link: Any, outboard: Force) -> tuple[Force, list[Scalar]]:
        rates, f = link.rates(x), outboard
        for force, rate in zip(link.RS, rates, strict=True):
            f = f + force * rate
        efforts = [column.dot(f) + a * rate for column, a, rate in zip(link.axes, link.armature, rates, strict=True)]
        return link.across @ f, efforts

    return generalized(tree, inward(tree, gather, Force.zero()))
