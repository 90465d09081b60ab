"""Forward dynamics: the accelerations that joint forces cause. O(n).

v̇ = [I - HψK]* D⁻¹ [τ - Hψ(Kτ + b)], the articulated-body algorithm (Jain 1991 §5).

DIFFERS FROM PAPER: the velocity-dependent accelerations a are carried outwards first, α₀ = φ*a, and enter as the
forces b₀ = Mα₀ + b of the inverse dynamics of v̇ = 0. That leaves a = 0 in the recursion (Jain 1991 eq. 60), saves the
products P a, and gravity comes along at no extra cost.

Beside it operational space, the inertia felt at a place: Λ⁻¹ = J𝓜⁻¹J* = B*ΩB (Rodriguez 1989 §3), by unit forces; O(n).
"""

from __future__ import annotations

from linkwise.algorithms.factors import factorize
from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.jacobian import force_on_link
from linkwise.algorithms.kinematics import Place
from linkwise.algorithms.pulls import Pulls
from linkwise.algorithms.solver import solver
from linkwise.algorithms.sweeps import only_at
from linkwise.mechanism.tree import Tree
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces = None) -> list[Scalar]:
    """v̇, nv numbers. ``f_ext``: external forces in link frames, one for each link."""
    return solver(tree, q).accelerations(tau, needed_forces(tree, q, v, None, f_ext))


def mass_solve(tree: Tree, q: Flat, x: Flat) -> list[Scalar]:
    """𝓜(q)⁻¹ x without the matrix. O(n)."""
    return solver(tree, q).accelerations(x)


def mass_matrix_inverse(tree: Tree, q: Flat) -> Matrix:
    """𝓜⁻¹ = [I - HψK]* D⁻¹ [I - HψK], nv × nv. O(n²)."""
    return solver(tree, q).inverse()


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
