"""The tip-to-base recursion that algorithms 5 and 6 of 001 share (4.16): articulated inertias P and their kin P̂.

DIFFERS FROM PAPER: (4.12) prints Ĝ = P̂H*D⁻¹. P̂ is not symmetric, and the proof of lemma 4.7 needs DK̂* = HP̂E_φ*, so
Ĝ = P̂*H*D⁻¹: a pure couple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.classics.linearized_terms import Referred, outboard_forces, tilde_H_f
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion, Vec

Columns = tuple[Force, Force, Force]
"""P̂ by the three of its columns that are not zero."""


@dataclass(frozen=True, slots=True)
class Articulated:
    """D⁻¹, G, Ĝ, Y_A and Y_B of one link."""

    d_inverse: Scalar
    G: Force
    G_hat: Force
    Y_A: Force
    Y_B: Force


def articulated(links: Sequence[Referred]) -> list[Articulated]:
    """Every link's, base first."""
    f = outboard_forces(links)
    P = ArticulatedInertia.zero()
    P_hat: Columns = (Force.zero(), Force.zero(), Force.zero())
    found = []
    for i in reversed(range(len(links))):
        k = links[i]
        P = P + k.M.articulated()
        x, y, z = (a + b for a, b in zip(P_hat, k.M_hat.columns(), strict=True))
        P_hat = (x, y, z)
        u = P @ k.H
        d_inverse = 1.0 / k.H.dot(u)
        G = u * d_inverse
        G_hat = Force(Vec(*(k.H.dot(column) for column in P_hat)) * d_inverse, Vec.zero())
        Y_A = (_times(P_hat, k.H) + P @ k.H_dot) * 2.0
        Y_B = _times(P_hat, k.H_dot) * 2.0 + P @ k.H_ddot + tilde_H_f(k, f[i])
        found.append(Articulated(d_inverse, G, G_hat, Y_A, Y_B))
        P = P.without(u, G, None)  # τ̄P
        x, y, z = (column - G * k.H.dot(column) for column in P_hat)  # τ̄P̂
        P_hat = (x, y, z)
    return found[::-1]


def _times(P_hat: Columns, y: Motion) -> Force:
    a, b, c = P_hat
    total: Force = a * y.ang.x + b * y.ang.y + c * y.ang.z
    return total
