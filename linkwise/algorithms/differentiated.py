"""Derivatives of the inverse dynamics by dual numbers through its own text: for trees whose links deform.

Those of :mod:`linkwise.algorithms.linearized_inverse` (001) and :mod:`linkwise.algorithms.perturbed` are written for
rigid links. Here every column is the text of :mod:`linkwise.algorithms.inverse_dynamics` along one direction of the
tangent space: O(n) each, O(n²) for the matrices, and nothing is differentiated by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.freedoms import Matrix
from linkwise.algorithms.inverse_dynamics import Forces, inverse_dynamics
from linkwise.algorithms.kinematics import configuration_rate
from linkwise.algorithms.sweeps import along
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar

Flat = Sequence[Scalar]


def inverse_along_q(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, f_ext: Forces = None) -> list[Scalar]:
    """The change of τ for a small displacement dq (nv)."""
    direction = configuration_rate(tree, q, dq)
    rate: list[Scalar] = along(tree, lambda x: inverse_dynamics(tree, x, v, vdot, f_ext), q, direction)[1]
    return rate


def inverse_along_v(tree: Tree, q: Flat, v: Flat, dv: Flat) -> list[Scalar]:
    """The change of τ for a change dv of the velocity."""
    rate: list[Scalar] = along(tree, lambda x: inverse_dynamics(tree, q, x, None), v, dv)[1]
    return rate


def inverse_derivatives(tree: Tree, q: Flat, v: Flat, vdot: Flat, f_ext: Forces = None) -> tuple[Matrix, Matrix]:
    """∂τ/∂q and ∂τ/∂v, nv × nv."""
    units = [[1.0 if i == j else 0.0 for j in range(tree.nv)] for i in range(tree.nv)]
    by_q = [inverse_along_q(tree, q, v, vdot, unit, f_ext) for unit in units]
    by_v = [inverse_along_v(tree, q, v, unit) for unit in units]
    return _transposed(by_q), _transposed(by_v)


def _transposed(columns: Matrix) -> Matrix:
    return [list(row) for row in zip(*columns, strict=True)]
