"""Forward dynamics: the accelerations that joint forces cause. O(n).

v̇ = [I - HψK]* D⁻¹ [τ - Hψ(Kτ + b)], the articulated-body algorithm (Jain 1991 §5).

DIFFERS FROM PAPER: the velocity-dependent accelerations a are carried outwards first, α₀ = φ*a, and enter as the
forces b₀ = Mα₀ + b of the inverse dynamics of v̇ = 0. That leaves a = 0 in the recursion (Jain 1991 eq. 60), saves the
products P a, and gravity comes along at no extra cost.
"""

from __future__ import annotations

from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.solver import solver
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Flat, Matrix, Scalar


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces = None) -> list[Scalar]:
    """v̇, nv numbers. ``f_ext``: external forces in link frames, one for each link."""
    return solver(tree, q).accelerations(tau, needed_forces(tree, q, v, None, f_ext))


def mass_solve(tree: Tree, q: Flat, x: Flat) -> list[Scalar]:
    """𝓜(q)⁻¹ x without the matrix. O(n)."""
    return solver(tree, q).accelerations(x)


def mass_matrix_inverse(tree: Tree, q: Flat) -> Matrix:
    """𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK], nv × nv. O(n²)."""
    return solver(tree, q).inverse()
