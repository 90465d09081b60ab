"""The only control flow an algorithm needs: from the base outwards, and from the tips inwards.

An algorithm states its step for one link; the tree decides how the sweep runs: link after link for a tree of ordinary
links (**unrolled**), or once for each kind of link, as the body of a loop (**rolled**,
:mod:`linkwise.functions.rolled`). A step must treat all links alike: it may look at what the link says of itself, at
what the sweep hands it, and at fields, ``field[link]``, that earlier sweeps made; and at nothing else. A value that is
known before the sweep reaches it through :func:`everywhere` or :func:`only_at`. Between sweeps, ``field[link]`` is the
value of one link of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from linkwise.mechanism.sweeper import Field, Sweeper, Sweeps
from linkwise.mechanism.tree import Link
from linkwise.spatial.scalar import Flat, Scalar

__all__ = [
    "Field",
    "along",
    "configured",
    "each",
    "elementwise",
    "everywhere",
    "generalized",
    "inward",
    "only_at",
    "outward",
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
