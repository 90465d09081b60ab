"""001 algorithm 4, the conventional way: invert 𝓜; A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D by products. O(n³)."""

from __future__ import annotations

from linkwise.algorithms.sparse_factor import factorize
from linkwise.classics.dense import Matrix, dot
from linkwise.classics.linearized_2_inverse_matrices import inverse_matrices
from linkwise.classics.linearized_terms import Flat
from linkwise.mechanism.tree import Tree


def forward_matrices(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> tuple[Matrix, Matrix, Matrix]:
    """𝓜⁻¹, A_C = -∂θ''/∂θ' and B_C = -∂θ''/∂θ, n × n each, about the motion whose acceleration is ``vdot``."""
    M, A_D, B_D = inverse_matrices(tree, q, v, vdot)
    M_inverse = factorize(M).inverse()
    return M_inverse, _product(M_inverse, A_D), _product(M_inverse, B_D)


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [[dot(row, column) for column in columns] for row in a]
