"""Joints that follow others, as couplings of axes that move by themselves."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.sweeps import Field, each, generalized, only_at
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


def mimic_pulls(tree: Tree) -> Pulls:
    """The pulls that keep each mimic to the joint that it follows, one for each."""
    leaders = {link.v_start: link for link in tree.links if not link.is_mimic}
    followers = [link for link in tree.links if link.is_mimic]
    count = len(followers)
    efforts: dict[int, list[Scalar]] = {}
    for k, link in enumerate(followers):
        for end, value in ((link, 1.0), (leaders[link.v_start], -link.multiplier)):
            efforts.setdefault(end.index, [0.0] * count)[k] = value
    own = [(tree.links[index], [row]) for index, row in efforts.items()]
    return Pulls(count, (), [only_at(tree, own, [[0.0] * count])])


def own_efforts(link: Link, tau: Flat) -> Flat:
    """The joint forces on a link's own axes; a mimic has none."""
    return [0.0] * link.joint.nv if link.is_mimic else link.rates(tau)


def of_freedoms(tree: Tree, field: Field[list[Scalar]]) -> list[Scalar]:
    """A vector over the freedoms from a number for each axis: that of the joint which others follow."""
    return generalized(tree, each(tree, lambda link: [0.0] * link.joint.nv if link.is_mimic else field[link]))
