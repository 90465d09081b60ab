"""Moving about in configuration space: q ⊕ dv and its inverse, joint by joint."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.sweeps import configured, each, generalized
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar


def integrate(tree: Tree, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
    """The configuration reached from q with constant velocity dv in unit time."""
    moved = each(tree, lambda link: link.joint.integrate(link.coordinates(q), link.rates(dv)))
    return configured(tree, moved)


def difference(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """The dv that leads from q0 to q1 in unit time."""

    def step(link: Link) -> Sequence[Scalar]:
        if link.is_mimic:  # moves with the joint it follows, which has the coordinate
            return [0.0] * link.joint.nv
        return link.joint.difference(link.coordinates(q0), link.coordinates(q1))

    return generalized(tree, each(tree, step))
