"""Joints that share a freedom, without a mass matrix: every axis moves by itself, and multipliers couple them.

A mimic's axis obeys v̇_f - c v̇_l = 0: its pull is one on its own axis and -c on that of the joint it follows. Those
that follow are few, so this stays O(n) where a factor of 𝓜 would not: the way for sweeps that run as loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.constrained import PulledTree
from linkwise.algorithms.freedoms import Matrix
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.mimics import mimic_pulls, of_freedoms, own_efforts
from linkwise.algorithms.multipliers import Multipliers
from linkwise.algorithms.pulls import Pulls, joined
from linkwise.mechanism.tree import Tree
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


def _less(x: Scalar, a: Flat, b: Flat) -> Scalar:
    for u, v in zip(a, b, strict=True):
        x = x - u * v
    return x
