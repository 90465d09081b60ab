"""The linearised forward dynamics δv̇ = 𝓜⁻¹ δτ - A_C δv - B_C δq: all three matrices together.

A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D (001 lemma 4.1), with A_D and B_D of :mod:`linkwise.algorithms.linearized_inverse` at the
v̇ that τ causes. Two ways, the same numbers:

* ``articulated``: 𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK] (001 lemma 4.4) is run over the columns as inward and outward sweeps;
  neither 𝓜 nor its inverse is used. O(n²).
* ``factored``: 𝓜 = LᵀDL, which A_D's composite bodies give for nothing, and products with its inverse, or with its
  factors where these have more zeros. O(n² · depth), but with so small a factor that it is the cheaper way as long as a
  freedom has fewer than some twenty others inboard of it (40 % fewer operations for a Panda, 43 % for a G1).

DIFFERS FROM PAPER: algorithm 6 walks rows of ψ from every link and needs Υ, P̂ and Ĵ besides; see
:mod:`linkwise.classics.linearized_6_forward_matrices`, which is the cheapest for chains of more than some ten links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.articulated import articulate, solve
from linkwise.algorithms.forward_dynamics import forward_dynamics
from linkwise.algorithms.inverse_dynamics import Forces, bias_force
from linkwise.algorithms.linearized_inverse import linearized_inverse
from linkwise.algorithms.mass_matrix import Matrix, mass_factor, mass_matrix_inverse
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar, is_zero

FACTORED_UP_TO = 20
"""Freedoms inboard of a freedom, on average, up to which the factored way is taken."""


class LinearizedForward(NamedTuple):
    """v̇ (nv) and its derivatives (nv × nv each): dq = ∂v̇/∂q = -B_C, dv = ∂v̇/∂v = -A_C, dtau = ∂v̇/∂τ = 𝓜⁻¹."""

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any


def linearized_forward(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    tau: Sequence[Scalar],
    f_ext: Forces = None,
    *,
    articulated: bool | None = None,
) -> LinearizedForward:
    """v̇, ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹. ``f_ext``: forces fixed in link frames, one for each link.

    ``articulated`` chooses the way; None chooses by size. A mechanism with mimic joints has no elimination order along
    the tree and is always factored.
    """
    if articulated is None:
        inboard = sum(link.joint.nv * ancestor.joint.nv for link in tree for ancestor in tree.ancestors(link))
        articulated = inboard > FACTORED_UP_TO * tree.nv
    way = _articulated if articulated and not tree.has_mimics else _factored
    return way(tree, q, v, tau, f_ext)


def _factored(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], f_ext: Forces
) -> LinearizedForward:
    factor = mass_factor(tree, q)
    bias = bias_force(tree, q, v, f_ext)
    vdot = factor.solve([t - c for t, c in zip(tau, bias, strict=True)])
    inverse = linearized_inverse(tree, q, v, vdot, f_ext)
    M_inverse = factor.inverse()
    solve_cost = tree.nv + 2 * sum(not is_zero(x) for i, row in enumerate(factor.L) for x in row[:i])

    def minus_solved(matrix: Matrix) -> Matrix:
        """-𝓜⁻¹ times each column: by the inverse where it or the column has zeros enough, else by the factors."""
        columns = []
        for column in zip(*matrix, strict=True):
            product_cost = sum(
                not is_zero(x) and not is_zero(y) for row in M_inverse for x, y in zip(row, column, strict=True)
            )
            if product_cost <= solve_cost:
                columns.append([-_dot(row, column) for row in M_inverse])
            else:
                columns.append(factor.solve([-x for x in column]))
        return [list(row) for row in zip(*columns, strict=True)]

    return LinearizedForward(vdot, minus_solved(inverse.dq), minus_solved(inverse.dv), M_inverse)


def _articulated(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], f_ext: Forces
) -> LinearizedForward:
    vdot = forward_dynamics(tree, q, v, tau, f_ext)
    inverse = linearized_inverse(tree, q, v, vdot, f_ext)
    axes = articulate(tree, q)

    def minus_solved(matrix: Matrix) -> Matrix:
        columns = [solve(tree, q, axes, [-x for x in column], None) for column in zip(*matrix, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]

    return LinearizedForward(vdot, minus_solved(inverse.dq), minus_solved(inverse.dv), mass_matrix_inverse(tree, q))


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        if not is_zero(x) and not is_zero(y):
            total = total + x * y
    return total
