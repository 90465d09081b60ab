"""Moving about in configuration space: q ⊕ dv and its inverse, joint by joint.

And the tangent space there, whose directions need not commute: a small displacement δ of a joint whose velocities are
quasi-velocities (spherical, free, planar) is given in the child's frame, which itself turns: δ' = δv - [v, δ], with S
[x, y] = (S x)×(S y). For all other joints δ' = δv.
"""

from __future__ import annotations

from linkwise.algorithms.pulls import of_freedoms
from linkwise.algorithms.sweeps import configured, each, generalized
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar


def integrate(tree: Tree, q: Flat, dv: Flat) -> list[Scalar]:
    """The configuration reached from q with constant velocity dv in unit time."""
    moved = each(tree, lambda link: link.joint.integrate(link.coordinates(q), link.rates(dv)))
    return configured(tree, moved)


def difference(tree: Tree, q0: Flat, q1: Flat) -> list[Scalar]:
    """The dv that leads from q0 to q1 in unit time."""

    def step(link: Link) -> Flat:
        if link.is_mimic:  # moves with the joint it follows, which has the coordinate
            return [0.0] * link.joint.nv
        return link.joint.difference(link.coordinates(q0), link.coordinates(q1))

    return generalized(tree, each(tree, step))


def carry(tree: Tree, q: Flat, dv: Flat) -> list[Scalar]:
    """The configuration reached with a motion dv whose velocity is carried along with turning axes."""
    return configured(tree, each(tree, lambda link: link.joint.carry(link.coordinates(q), link.rates(dv))))


def carry_rates(tree: Tree, v: Flat) -> list[Scalar]:
    """Rates of velocities while they are carried along."""
    return of_freedoms(tree, each(tree, lambda link: list(link.joint.carry_rate(link.rates(v)))))


def carried(tree: Tree, v: Flat, turn: Flat) -> list[Scalar]:
    """Velocities written in the axes that joints reach with a motion ``turn``."""
    return generalized(tree, each(tree, lambda link: _own_carried(link, v, turn)))


def _own_carried(link: Link, v: Flat, turn: Flat) -> list[Scalar]:
    if link.is_mimic:
        return [0.0] * link.joint.nv
    return list(link.joint.carried(link.rates(v), link.rates(turn)))


def structure_constants(tree: Tree) -> list[tuple[int, int, int, float]]:
    """The entries (i, j, k, c) of [x, y]_i = Σ c x_j y_k that are not zero."""
    found = []
    for link in tree:
        if link.is_mimic or not link.joint.quasi_velocities:
            continue
        S = link.joint.subspace(link.joint.neutral())
        for j, x in enumerate(S):
            for k, y in enumerate(S):
                bracket = x.cross(y)
                for i, s in enumerate(S):  # the columns are coordinate directions: their own dual basis
                    c = float(sum(a * b for a, b in zip(s, bracket, strict=True)))
                    if c != 0.0:
                        found.append((link.v_start + i, link.v_start + j, link.v_start + k, c))
    return found
