"""Equations of closed loops on the bodies' accelerations, for the algorithms that treat bodies before joints.

A closure asks J_c v̇ = -bias; its forces λ act on the links as F λ, so that J_c v̇ = Σ F*(a - a₀), a the links' spatial
accelerations and a₀ those for v̇ = 0 (Featherstone 2000 eq. 15-17, Rodriguez 1989 eq. 2.16).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.equations import Constraint, equations
from linkwise.algorithms.sweeps import Field, outward
from linkwise.classics.terms import SpatialTerms, base_acceleration
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Force, Motion


@dataclass(frozen=True)
class Loop:
    """Σ F*a = u, m equations."""

    forces: dict[int, list[Force]]
    """On each link by its index, one force for each equation."""
    u: list[Scalar]


def loops(tree: Tree, q: Flat, v: Flat, terms: Field[SpatialTerms], constraints: Sequence[Constraint]) -> list[Loop]:
    """One for each closure between two bodies, or a body and the world."""

    def coast(link: Link, parent: Motion) -> Motion:
        return link.phi(q).T @ parent + terms[link].c

    coasting = outward(tree, coast, base_acceleration(tree))
    found = []
    for e in equations(tree, q, v, constraints)[0]:
        if e.efforts:
            raise InputError(
                "closures of these methods are between bodies",
                got="a relation between joints",
                do="use model.forward_dynamics, which takes it",
            )
        forces: dict[int, list[Force]] = {}
        u = [-x for x in e.bias]
        for link, own in e.forces:
            known = forces.get(link.index)
            forces[link.index] = own if known is None else [a + b for a, b in zip(known, own, strict=True)]
            u = [x + coasting[link].dot(f) for x, f in zip(u, own, strict=True)]
        found.append(Loop(forces, u))
    return found
