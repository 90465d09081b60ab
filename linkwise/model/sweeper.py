"""What a tree offers the algorithms: sweeps over its links, and vectors over its freedoms.

Two trees implement it. :class:`linkwise.model.tree.Tree` runs a step link after link (**unrolled**);
:class:`linkwise.rolled.tree.RolledTree` runs it once for each kind of link, as the body of a loop (**rolled**).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Field(Generic[T]):
    """One value for each link: ``field[link]``. Of an inward sweep, ``root`` is the sum of what reached the base."""

    def __init__(self, values: list[T], root: Any = None) -> None:
        self.values = values
        self.root = root

    def __getitem__(self, link: Any) -> T:
        value: T = self.values[link.index]
        return value


class Sweeper(Protocol):
    """How a tree runs what :mod:`linkwise.algorithms.sweeps` asks for; each is explained there."""

    @property
    def rolls(self) -> bool:
        """Whether sweeps run as loops: then a text cannot go through the links one by one."""

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""

    def only_at(self, link: Any, value: Any, elsewhere: Any) -> Field[Any]:
        """A value for one link, another for all others."""

    def generalized(self, field: Field[Any]) -> Any:
        """A vector over the freedoms from one number for each joint axis."""

    def configured(self, field: Field[Any]) -> Any:
        """A configuration from the coordinates of each joint."""

    def per_body(self, field: Field[Any], shape: tuple[int, ...]) -> Any:
        """An array with one entry of this shape for each body."""

    def elementwise(self, function: Callable[..., Any], *vectors: Any) -> Any:
        """A vector over the freedoms from others, number by number."""

    def along(self, function: Callable[[Any], Any], at: Any, direction: Any) -> tuple[Any, Any]:
        """Value and directional derivative of a function of a configuration or a vector."""


class LinkByLink:
    """Sweeps of a tree whose links are at hand: parents before children, each with its ``index`` and ``parent``."""

    links: Sequence[Any]

    @property
    def rolls(self) -> bool:
        """Never: a text may go through these links one by one."""
        return False

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""
        handed: list[Any] = []
        kept: list[Any] = []
        for link in self.links:
            result = step(link, root if link.parent < 0 else handed[link.parent])
            state, own = result if keeps else (result, result)
            handed.append(state)
            kept.append(own)
        return Field(kept)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""
        sums: list[Any] = [nothing] * (len(self.links) + 1)  # the last is the base's, whose index is -1
        kept: list[Any] = [None] * len(self.links)
        for link in reversed(self.links):
            handed, kept[link.index] = step(link, sums[link.index])
            if handed is not None:
                known = sums[link.parent]
                sums[link.parent] = handed if known is nothing else known + handed
        return Field(kept, sums[-1])

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""
        return Field([value] * len(self.links))

    def only_at(self, link: Any, value: Any, elsewhere: Any) -> Field[Any]:
        """A value for one link, another for all others."""
        return Field([value if other is link else elsewhere for other in self.links])
