"""The linearised forward dynamics δv̇ = 𝓜⁻¹ δτ - A_C δv - B_C δq: all three matrices together.

A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D (Jain 1993 lemma 4.1), with A_D and B_D of :mod:`linkwise.algorithms.linearized_inverse`
at the v̇ that τ causes. Two ways, the same numbers:

* ``articulated``: 𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK] (Jain 1993 lemma 4.4) is run over the columns as inward and outward
sweeps;
  neither 𝓜 nor its inverse is used. O(n²).
* ``factored``: 𝓜 = LᵀDL, which A_D's composite bodies give at no extra cost, and products with its inverse, or with its
  factors where these have more zeros. O(n² · depth), but with so small a factor that it is the cheaper way as long as a
  freedom has fewer than some twenty others inboard of it (40 % fewer operations for a Panda, 43 % for a G1).

DIFFERS FROM PAPER: algorithm 6 walks rows of ψ from every link and needs Υ, P̂ and Ĵ besides; see
:mod:`linkwise.classics.changes_of_accelerations`, which is the cheapest for chains of more than some ten links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.linearized_inverse import linearized_inverse
from linkwise.algorithms.solver import Solver, many_sided_solver
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar


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
    solver: Solver | None = None,
) -> LinearizedForward:
    """v̇, ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹. ``f_ext``: forces fixed in link frames, one for each link.

    ``solver`` chooses the way; None chooses by the shape of the tree.
    """
    by = many_sided_solver(tree, q) if solver is None else solver
    vdot = by.accelerations(tau, needed_forces(tree, q, v, None, f_ext))
    inverse = linearized_inverse(tree, q, v, vdot, f_ext)
    dq, dv = (by.columns([[-x for x in row] for row in matrix]) for matrix in (inverse.dq, inverse.dv))
    return LinearizedForward(vdot, dq, dv, by.inverse())
