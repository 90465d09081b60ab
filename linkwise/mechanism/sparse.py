"""Constant arrays with many zeros, times a vector over any scalar: only what is not zero is multiplied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Vec, weighted_sum

Sparse = list[tuple[tuple[int, ...], float]]
"""The entries of a constant array that are not zero, with their places."""


def sparse(array: FloatArray) -> Sparse:
    """Of an array."""
    return [(tuple(place), float(array[tuple(place)])) for place in np.argwhere(array).tolist()]


def columns_of(entries: Sparse, x: Flat, count: int) -> list[Vec]:
    """For an array (3, m, n): the m vectors of its product with x."""
    rows: Matrix = [[0.0] * 3 for _ in range(count)]
    for (k, i, j), value in entries:
        rows[i][k] = rows[i][k] + value * x[j]
    return [Vec.of(row) for row in rows]


def sum_of_vectors(columns: Sequence[Vec], x: Flat) -> Vec:
    """Σ columns_i x_i."""
    return weighted_sum(columns, x, Vec.zero())


class QuadraticForm:
    """x*Qx and its slope for a constant Q (3, m, m), symmetric in the last two."""

    def __init__(self, Q: FloatArray) -> None:
        self.modes = Q.shape[-1]
        self.entries = sparse(Q)
        self.pairs = [_by_coefficient(Q[k]) for k in range(3)]

    def slope(self, x: Flat) -> list[Vec]:
        """Qx: a vector for each mode."""
        return columns_of(self.entries, x, self.modes)

    def value(self, x: Flat) -> Vec:
        """x*Qx. Products x_ix_j with the same coefficient are added first: a beam bends alike in two planes."""
        total: list[Scalar] = [0.0] * 3
        for k, groups in enumerate(self.pairs):
            for coefficient, places in groups:
                products: Scalar = 0.0
                for i, j in places:
                    products = products + x[i] * x[j]
                total[k] = total[k] + products * coefficient
        return Vec.of(total)


def _by_coefficient(Q: FloatArray) -> list[tuple[float, list[tuple[int, int]]]]:
    """The entries i <= j of a symmetric matrix, those that are equal to rounding together."""
    groups: list[tuple[float, list[tuple[int, int]]]] = []
    largest = np.abs(Q).max(initial=0.0)
    for i, j in zip(*np.triu_indices(len(Q)), strict=True):
        coefficient = float(Q[i, j]) if i == j else float(Q[i, j] + Q[j, i])
        if coefficient == 0.0:
            continue
        near = next((places for known, places in groups if abs(known - coefficient) <= 1e-14 * largest), None)
        if near is None:
            groups.append((coefficient, near := []))
        near.append((int(i), int(j)))
    return groups
