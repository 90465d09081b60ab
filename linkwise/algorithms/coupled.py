"""Joints that share a freedom, without a mass matrix: every axis moves by itself, and multipliers couple them.

A mimic's axis obeys v̇_f - c v̇_l = 0: its pull is one on its own axis and -c on that of the joint it follows. Those
that follow are few, so this stays O(n) where a factor of 𝓜 would not: the way for sweeps that run as loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.constrained import PulledTree
from linkwise.algorithms.freedoms import Matrix
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.multipliers import Multipliers
from linkwise.algorithms.pulls import Pulls, joined
from linkwise.algorithms.sweeps import Field, each, generalized, only_at
from linkwise.model.tree import Link, Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


class Coupled:
    """𝓜⁻¹ where some joints follow others."""

    def __init__(self, tree: Tree, q: Flat) -> None:
        self.tree, self.q = tree, q
        self.couplings = mimic_pulls(tree)
        self.pulled = PulledTree(tree, q, self.couplings, sure=True)

    def accelerations(self, tau: Flat, b: Forces = None) -> list[Scalar]:
        """One sweep in, one out."""
        vdot, _ = self.pulled.axis_accelerations(lambda link: own_efforts(link, tau), b, [0.0] * self.couplings.count)
        return of_freedoms(self.tree, vdot)

    def columns(self, matrix: Matrix) -> Matrix:
        """One column at a time."""
        return [list(row) for row in zip(*(self.accelerations(c) for c in zip(*matrix, strict=True)), strict=True)]

    def inverse(self) -> Matrix:
        """One unit force at a time."""
        n = self.tree.nv
        return self.columns([[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)])

    def admittance(self, pulls: Pulls) -> Matrix:
        """Λ of the pulls less what the couplings hold back: Λ_pp - Λ_pc Λ_cc⁻¹ Λ_cp."""
        n = pulls.count
        Lambda = PulledTree(self.tree, self.q, joined(pulls, self.couplings), sure=True).Lambda
        within = Multipliers([row[n:] for row in Lambda[n:]], sure=True)
        held = [within.solve(row[n:]) for row in Lambda[:n]]
        return [[_less(Lambda[i][j], Lambda[i][n:], held[j]) for j in range(n)] for i in range(n)]


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


def _less(x: Scalar, a: Flat, b: Flat) -> Scalar:
    for u, v in zip(a, b, strict=True):
        x = x - u * v
    return x
