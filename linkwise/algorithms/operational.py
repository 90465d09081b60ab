"""Operational space: the inertia felt at a place. Λ⁻¹ = J𝓜⁻¹J* = B*ΩB (004 §3), by unit forces; O(n)."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.articulated import articulate, solve
from linkwise.algorithms.kinematics import Place, jacobian
from linkwise.algorithms.mass_matrix import Matrix, mass_factor
from linkwise.algorithms.sparse_factor import factorize
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar


def operational_admittance(tree: Tree, q: Sequence[Scalar], place: Place) -> Matrix:
    """J𝓜⁻¹J*, 6 × 6: the acceleration of the place for each unit force on it, world axes."""
    J = jacobian(tree, q, place)
    if tree.has_mimics:
        factor = mass_factor(tree, q)
        columns = [factor.solve(row) for row in J]
    else:
        axes = articulate(tree, q)
        columns = [solve(tree, q, axes, row, None) for row in J]
    half = [[_dot(J[i], columns[j]) if i <= j else 0.0 for j in range(6)] for i in range(6)]
    return [[half[min(i, j)][max(i, j)] for j in range(6)] for i in range(6)]


def operational_inertia(tree: Tree, q: Sequence[Scalar], place: Place) -> Matrix:
    """(J𝓜⁻¹J*)⁻¹, 6 × 6. Infinite or NaN where the place cannot move in some direction: then use the admittance."""
    return factorize(operational_admittance(tree, q, place)).inverse()


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
