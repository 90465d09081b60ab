"""The tangent space of the configuration: how its directions fail to commute.

A small displacement δ of a joint whose velocities are quasi-velocities (spherical, free, planar) is given in the
child's frame, which itself turns: δ' = δv - [v, δ], with S [x, y] = (S x)×(S y). For all other joints δ' = δv.
"""

from __future__ import annotations

from linkwise.mechanism.tree import Tree


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
