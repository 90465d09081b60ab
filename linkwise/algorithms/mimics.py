"""Joints that follow others, as couplings of axes that move by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, each, generalized, only_at
from linkwise.model.tree import Link, Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


def mimic_pulls(tree: Tree) -> Pulls:
    """The pulls that keep each mimic to the joint that it follows, one for each."""
    leaders = {link.v_start: link for link in tree.links if not link.is_mimic}
    followers = [link for link in tree.links if link.is_mimic]
    count = len(followers)
    nothing = [[0.0] * count]

    def effort(k: int, value: Scalar) -> list[list[Scalar]]:
        return [[value if i == k else 0.0 for i in range(count)]]

    fields: list[Field[Sequence[Sequence[Scalar]]]] = []
    for k, link in enumerate(followers):
        fields.append(only_at(tree, link, effort(k, 1.0), nothing))
        fields.append(only_at(tree, leaders[link.v_start], effort(k, -link.multiplier), nothing))
    return Pulls(count, (), fields)


def own_efforts(link: Link, tau: Flat) -> Flat:
    """The joint forces on a link's own axes; a mimic has none."""
    return [0.0] * link.joint.nv if link.is_mimic else link.rates(tau)


def of_freedoms(tree: Tree, field: Field[list[Scalar]]) -> list[Scalar]:
    """A vector over the freedoms from a number for each axis: that of the joint which others follow."""
    return generalized(tree, each(tree, lambda link: [0.0] * link.joint.nv if link.is_mimic else field[link]))
