"""The only control flow an algorithm needs: outwards from the base, inwards from the tips; and from axes to freedoms.

An algorithm states its step for one link; the tree decides how the sweep runs: link after link for a tree of ordinary
links (**unrolled**), or once for each kind of link, as the body of a loop (**rolled**,
:mod:`linkwise.functions.rolled`). A step must treat all links alike: it may look at what the link says of itself, at
what the sweep hands it, and at fields, ``field[link]``, that earlier sweeps made; and at nothing else. A value that is
known before the sweep reaches it through :func:`everywhere` or :func:`only_at`. Between sweeps, ``field[link]`` is the
value of one link of the tree.

A joint that follows another (a mimic) has axes but no freedom of its own: what concerns one of its axes concerns the
freedom that it follows, scaled by its multiplier. With F the matrix of these multipliers (one row for each axis),
τ = F*τ_axes, J = J_axes F and 𝓜 = F*𝓜_axes F. Where nothing is shared, F only puts numbers in their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from linkwise.mechanism.tree import Field, Link, Sweeper, Sweeps, Tree
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar

__all__ = [
    "Field",
    "add",
    "add_symmetric",
    "along",
    "configured",
    "each",
    "elementwise",
    "everywhere",
    "freedom",
    "generalized",
    "inward",
    "only_at",
    "outward",
    "over_freedoms",
    "own",
    "per_body",
    "total",
]

T = TypeVar("T")
K = TypeVar("K")
F = TypeVar("F", bound=Flat)


def outward(tree: Sweeps, step: Callable[[Link, Any], Any], root: Any, *, keeps: bool = False) -> Field[Any]:
    """Base to tips: ``step(link, state of its parent)`` gives the link's state; the base's is ``root``.

    With ``keeps``, the step gives two things: what it hands to its children, and what it keeps; the field has the
    latter.
    """
    return tree.outward(step, root, keeps)


def inward(tree: Sweeps, step: Callable[[Link, Any], tuple[Any, K]], nothing: Any) -> Field[K]:
    """Tips to base: ``step(link, sum over its children)`` gives what it hands to its parent, and what it keeps.

    ``nothing`` is the sum over no children. A step may hand on None: nothing. What reaches the base is the field's
    ``root``.
    """
    return tree.inward(step, nothing)


def each(tree: Sweeps, step: Callable[[Link], T]) -> Field[T]:
    """A value for each link from the link alone."""
    return outward(tree, lambda link, _: (None, step(link)), None, keeps=True)


def total(tree: Sweeps, step: Callable[[Link], T], nothing: T) -> T:
    """The sum over all links of a value for each."""
    summed: T = inward(tree, lambda link, outboard: (outboard + step(link), None), nothing).root
    return summed


def everywhere(tree: Sweeps, value: T) -> Field[T]:
    """A value that every link may look at."""
    return tree.everywhere(value)


def only_at(tree: Sweeps, values: Sequence[tuple[Link, T]], elsewhere: T) -> Field[T]:
    """Values for some links, each named once, and a constant for all others; all of one shape."""
    return tree.only_at(values, elsewhere)


def generalized(tree: Sweeper, field: Field[F]) -> list[Scalar]:
    """One number for each freedom from one for each joint axis; what acts on a mimic acts on the joint it follows."""
    vector: list[Scalar] = tree.generalized(field)
    return vector


def configured(tree: Sweeper, field: Field[F]) -> list[Scalar]:
    """The configuration that each joint's own coordinates make up; mimics have none."""
    configuration: list[Scalar] = tree.configured(field)
    return configuration


def per_body(tree: Sweeper, field: Field[T], shape: tuple[int, ...]) -> list[T]:
    """One value of this shape for each body, in order."""
    values: list[T] = tree.per_body(field, shape)
    return values


def elementwise(tree: Sweeper, function: Callable[..., Scalar], *vectors: Flat) -> list[Scalar]:
    """A vector over the freedoms from others of its kind, number by number."""
    vector: list[Scalar] = tree.elementwise(function, *vectors)
    return vector


def along(
    tree: Sweeper, function: Callable[..., Any], at: Sequence[Flat], directions: Sequence[Flat]
) -> tuple[Any, Any]:
    """Value and derivative of a function of configurations and vectors, each in a direction of its own numbers."""
    return tree.along(function, at, directions)


MatrixPlace = tuple[int, float]
"""A row or column of a matrix, and the share of a value that arrives there."""


def freedom(link: Link, i: int) -> MatrixPlace:
    """The place of the i-th axis of a link's joint."""
    return link.v_start + i, link.multiplier


def own(index: int) -> MatrixPlace:
    """A row or column that is no joint axis."""
    return index, 1.0


def over_freedoms(tree: Tree) -> Matrix:
    """An empty nv × nv matrix."""
    return zeros(tree.nv, tree.nv)


def add(matrix: Matrix, row: MatrixPlace, column: MatrixPlace, value: Scalar) -> None:
    """Add a value between two axes (or other places) where it belongs."""
    (r, row_share), (c, column_share) = row, column
    matrix[r][c] = matrix[r][c] + value * row_share * column_share


def add_symmetric(matrix: Matrix, row: MatrixPlace, column: MatrixPlace, value: Scalar) -> None:
    """Add a value and its mirror image; two axes that share a freedom put both on the diagonal."""
    add(matrix, row, column, value)
    if row[0] == column[0]:
        add(matrix, column, row, value)
    else:
        matrix[column[0]][row[0]] = matrix[row[0]][column[0]]
