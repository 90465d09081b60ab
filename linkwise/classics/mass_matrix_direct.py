"""The mass matrix by the direct method: column k is the inverse dynamics of a unit acceleration of joint k.

000 §3 eq. 23; method 1 of Walker and Orin 1982; 003 §3.2. n inverse dynamics of O(n). Trees, all joints, mimics too.
"""

from __future__ import annotations

from linkwise.classics.dense import Matrix, identity, solve_cholesky, transposed
from linkwise.classics.link_terms import Flat
from linkwise.classics.newton_euler import bias_free, mass_times
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar


def mass_matrix(tree: Tree, q: Flat) -> Matrix:
    """𝓜, column by column."""
    return transposed([mass_times(tree, q, unit) for unit in identity(tree.nv)])


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """v̇ from 𝓜v̇ = T̄ (000 eq. 22) by Cholesky's method. O(n³)."""
    return solve_cholesky(mass_matrix(tree, q), bias_free(tree, q, v, tau))
