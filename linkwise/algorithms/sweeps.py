"""The only control flow an algorithm needs: from the base outwards, and from the tips inwards.

An algorithm states its step for one link; the tree decides how the sweep runs: link after link for a tree of ordinary
links (**unrolled**), or once for each kind of link, as the body of a loop (**rolled**, :mod:`linkwise.rolled`).
A step must treat all links alike: it may look at what the link says of itself, at what the sweep hands it, and at
fields, ``field[link]``, that earlier sweeps made; and at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from linkwise.model.tree import Link, Tree
from linkwise.spatial.scalar import Scalar

T = TypeVar("T")
K = TypeVar("K")


class Field(Generic[T]):
    """One value for each link: ``field[link]``. Of an inward sweep, ``root`` is the sum of what reached the base."""

    def __init__(self, values: list[T], root: Any = None) -> None:
        self.values = values
        self.root = root

    def __getitem__(self, link: Link) -> T:
        return self.values[link.index]


def outward(tree: Tree, step: Callable[[Link, Any], Any], root: Any, *, keeps: bool = False) -> Field[Any]:
    """Base to tips: ``step(link, state of its parent)`` gives the link's state; the base's is ``root``.

    With ``keeps``, the step gives two things: what it hands to its children, and what it keeps; the field has the
    latter.
    """
    rolled = getattr(tree, "outward", None)
    if rolled is not None:
        return rolled(step, root, keeps)  # type: ignore[no-any-return]
    handed: list[Any] = []
    kept: list[Any] = []
    for link in tree:
        result = step(link, root if link.parent < 0 else handed[link.parent])
        state, own = result if keeps else (result, result)
        handed.append(state)
        kept.append(own)
    return Field(kept)


def inward(tree: Tree, step: Callable[[Link, Any], tuple[Any, K]], nothing: Any) -> Field[K]:
    """Tips to base: ``step(link, sum over its children)`` gives what it hands to its parent, and what it keeps.

    ``nothing`` is the sum over no children. A step may hand on None: nothing.
    """
    rolled = getattr(tree, "inward", None)
    if rolled is not None:
        return rolled(step, nothing)  # type: ignore[no-any-return]
    sums: list[Any] = [nothing] * (len(tree.links) + 1)  # the last is the base's, whose index is -1
    kept: list[Any] = [None] * len(tree.links)
    for link in reversed(tree.links):
        handed, kept[link.index] = step(link, sums[link.index])
        if handed is not None:
            known = sums[link.parent]
            sums[link.parent] = handed if known is nothing else known + handed
    return Field(kept, sums[-1])


def each(tree: Tree, step: Callable[[Link], T]) -> Field[T]:
    """A value for each link from the link alone."""
    return outward(tree, lambda link, _: (None, step(link)), None, keeps=True)


def generalized(tree: Tree, field: Field[Sequence[Scalar]]) -> list[Scalar]:
    """One number for each freedom from one for each joint axis; what acts on a mimic acts on the joint it follows."""
    rolled = getattr(tree, "output", None)
    return tree.generalized(field.values) if rolled is None else rolled(field, "v", tree.nv)


def configured(tree: Tree, field: Field[tuple[Scalar, ...]]) -> list[Scalar]:
    """The configuration that each joint's own coordinates make up; mimics have none."""
    rolled = getattr(tree, "output", None)
    if rolled is not None:
        return rolled(field, "q", tree.nq)  # type: ignore[no-any-return]
    whole: list[Scalar] = [0.0] * tree.nq
    for link in tree:
        if not link.is_mimic:
            for i, value in enumerate(field[link]):
                whole[link.q_start + i] = value
    return whole


def at_tip(tree: Tree, field: Field[T], size: int) -> T:
    """The value of the last link: the tip's, of a chain."""
    rolled = getattr(tree, "output", None)
    return field.values[-1] if rolled is None else rolled(field, "last", size)


def at_base(tree: Tree, field: Field[Any], size: int) -> Any:
    """What an inward sweep brought to the base."""
    rolled = getattr(tree, "base_output", None)
    return field.root if rolled is None else rolled(field, size)


def per_body(tree: Tree, field: Field[T], shape: tuple[int, ...]) -> list[T]:
    """One value of this shape for each body, in order."""
    rolled = getattr(tree, "output", None)
    return field.values if rolled is None else rolled(field, "body", (len(tree.links), *shape))
