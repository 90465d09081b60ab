"""From joint axes to freedoms: the one place that knows that several axes may share a freedom.

A joint that follows another (a mimic) has axes but no freedom of its own: what concerns one of its axes concerns the
freedom that it follows, scaled by its multiplier. With F the matrix of these multipliers (one row for each axis),
τ = F*τ_axes, J = J_axes F and 𝓜 = F*𝓜_axes F. Where nothing is shared, F only puts numbers in their places.
"""

from __future__ import annotations

from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Matrix, Scalar

Place = tuple[int, float]
"""A row or column of a matrix, and the share of a value that arrives there."""


def freedom(link: Link, i: int) -> Place:
    """Where the i-th axis of a link's joint belongs."""
    return link.v_start + i, link.multiplier


def own(index: int) -> Place:
    """A row or column that is no joint axis."""
    return index, 1.0


def over_freedoms(tree: Tree) -> Matrix:
    """An empty nv × nv matrix."""
    return zeros(tree.nv, tree.nv)


def add(matrix: Matrix, row: Place, column: Place, value: Scalar) -> None:
    """Add a value between two axes (or other places) where it belongs."""
    (r, row_share), (c, column_share) = row, column
    matrix[r][c] = matrix[r][c] + value * row_share * column_share


def add_symmetric(matrix: Matrix, row: Place, column: Place, value: Scalar) -> None:
    """Add a value and its mirror image; two axes that share a freedom put both on the diagonal."""
    add(matrix, row, column, value)
    if row[0] == column[0]:
        add(matrix, column, row, value)
    else:
        matrix[column[0]][row[0]] = matrix[row[0]][column[0]]
