"""Operational space: the inertia felt at a place. Λ⁻¹ = J𝓜⁻¹J* = B*ΩB (Rodriguez 1989 §3), by unit forces; O(n)."""

from __future__ import annotations

from linkwise.algorithms.freedoms import zeros
from linkwise.algorithms.jacobian import force_on_link
from linkwise.algorithms.kinematics import Place
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.solver import solver
from linkwise.algorithms.sparse_factor import factorize
from linkwise.algorithms.sweeps import only_at
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Matrix
from linkwise.spatial.vectors import Force


def operational_admittance(tree: Tree, q: Flat, place: Place) -> Matrix:
    """J𝓜⁻¹J*, 6 × 6: the acceleration of the place for each unit force on it, world axes."""
    if place.link is None:
        return zeros(6, 6)
    units = [Force.of([1.0 if i == j else 0.0 for j in range(6)]) for i in range(6)]
    forces = tuple(force_on_link(tree, q, place, None, unit) for unit in units)
    nothing = (Force.zero(),) * 6
    return solver(tree, q).admittance(Pulls(6, [only_at(tree, [(place.link, forces)], nothing)]))


def operational_inertia(tree: Tree, q: Flat, place: Place) -> Matrix:
    """(J𝓜⁻¹J*)⁻¹, 6 × 6. Infinite or NaN where the place cannot move in some direction: then use the admittance."""
    return factorize(operational_admittance(tree, q, place)).inverse()
