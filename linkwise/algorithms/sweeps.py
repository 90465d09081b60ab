"""The only control flow an algorithm needs: from the base outwards, and from the tips inwards.

An algorithm states its step for one link; the sweep decides how it runs. A step must treat all links alike: it may
look at what the link says of itself and at what the sweep hands it, and at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from linkwise.model.tree import Link, Tree

T = TypeVar("T")
K = TypeVar("K")


class Field(Generic[T]):
    """One value for each link: ``field[link]``."""

    def __init__(self, values: list[T]) -> None:
        self.values = values

    def __getitem__(self, link: Link) -> T:
        return self.values[link.index]


def each(tree: Tree, step: Callable[[Link], T]) -> Field[T]:
    """A value for each link from the link alone."""
    return Field([step(link) for link in tree])


def outward(tree: Tree, step: Callable[[Link, Any], T], root: Any) -> Field[T]:
    """Base to tips: ``step(link, state of its parent)`` gives the link's state; the base's is ``root``."""
    states: list[Any] = []
    for link in tree:
        states.append(step(link, root if link.parent < 0 else states[link.parent]))
    return Field(states)


def inward(tree: Tree, step: Callable[[Link, Any], tuple[Any, K]], nothing: Any) -> Field[K]:
    """Tips to base: ``step(link, sum over its children)`` gives what it hands to its parent, and what it keeps.

    ``nothing`` is the sum over no children. A step may return None to hand nothing on.
    """
    sums: list[Any] = [nothing] * len(tree.links)
    kept: list[Any] = [None] * len(tree.links)
    for link in reversed(tree.links):
        handed, kept[link.index] = step(link, sums[link.index])
        if link.parent >= 0 and handed is not None:
            known = sums[link.parent]
            sums[link.parent] = handed if known is nothing else known + handed
    return Field(kept)
