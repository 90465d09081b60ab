"""Moving about in configuration space: q ⊕ dv and its inverse, joint by joint."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar


def integrate(tree: Tree, q: Sequence[Scalar], dv: Sequence[Scalar]) -> list[Scalar]:
    """The configuration reached from q with constant velocity dv in unit time."""
    out: list[Scalar] = [0.0] * tree.nq
    for link in tree:
        if not link.is_mimic:
            for i, x in enumerate(link.joint.integrate(link.coordinates(q), link.rates(dv))):
                out[link.q_start + i] = x
    return out


def difference(tree: Tree, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> list[Scalar]:
    """The dv that leads from q0 to q1 in unit time."""
    out: list[Scalar] = [0.0] * tree.nv
    for link in tree:
        if not link.is_mimic:
            for i, x in enumerate(link.joint.difference(link.coordinates(q0), link.coordinates(q1))):
                out[link.v_start + i] = x
    return out
