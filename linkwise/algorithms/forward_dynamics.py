"""Forward dynamics: the accelerations that joint forces cause. O(n).

v̇ = [I - HψK]* D⁻¹ [τ - Hψ(Kτ + b)], the articulated-body algorithm (000 §5).

DIFFERS FROM PAPER: the velocity-dependent accelerations a are carried outwards first, α₀ = φ*a, and enter as the
forces b₀ = Mα₀ + b of the inverse dynamics of v̇ = 0. That leaves a = 0 in the recursion (000 eq. 60), saves the
products P a, and gravity comes along for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.articulated import articulate, solve
from linkwise.algorithms.inverse_dynamics import Forces, bias_force, needed_forces
from linkwise.algorithms.mass_matrix import mass_factor
from linkwise.model.tree import Tree
from linkwise.spatial.scalar import Scalar


def forward_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], f_ext: Forces = None
) -> list[Scalar]:
    """v̇, nv numbers. ``f_ext``: external forces in link frames, one for each link."""
    if tree.has_mimics:  # a coordinate shared by two joints couples them: the tree's elimination order no longer exists
        bias = bias_force(tree, q, v, f_ext)
        return mass_factor(tree, q).solve([t - c for t, c in zip(tau, bias, strict=True)])
    return solve(tree, q, articulate(tree, q), tau, needed_forces(tree, q, v, None, f_ext))
