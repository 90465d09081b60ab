"""Composite bodies: R = M + E_φ R E_φ* (Jain 1991 §3), a link with all outboard as if it were frozen. O(n)."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.sweeps import Field, inward
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar


def composites(tree: Tree, q: Sequence[Scalar]) -> Field[RigidInertia]:
    """R of every link; its ``root`` is that of the whole tree, about the root frame's origin."""

    def gather(link: Link, outboard: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        R = link.M(q) + outboard
        return link.phi(q).congruence(R), R

    return inward(tree, gather, RigidInertia.zero())
