"""Interface of a tree for the algorithms: sweeps over its links, and vectors over its freedoms.

Two trees implement it. :class:`linkwise.mechanism.tree.Tree` runs a step link after link (**unrolled**);
:class:`linkwise.functions.rolled.tree.RolledTree` runs it once for each kind of link, as the body of a loop
(**rolled**).
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


class Sweeps(Protocol):
    """How some links run what :mod:`linkwise.algorithms.sweeps` asks for; each is explained there."""

    @property
    def rolls(self) -> bool:
        """Whether sweeps run as loops: then a text cannot go through the links one by one."""

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""

    def only_at(self, values: Sequence[tuple[Any, Any]], elsewhere: Any) -> Field[Any]:
        """Values for some links, another for all others."""

    def looped_system(self, matrix: Sequence[Sequence[Any]], diagonal: Sequence[Any]) -> Any:
        """Solver in loops of a symmetric matrix with something added to its diagonal; None: to be written out."""


class Sweeper(Sweeps, Protocol):
    """A whole tree: its sweeps, and vectors over its freedoms."""

    def generalized(self, field: Field[Any]) -> Any:
        """A vector over the freedoms from one number for each joint axis."""

    def configured(self, field: Field[Any]) -> Any:
        """A configuration from the coordinates of each joint."""

    def per_body(self, field: Field[Any], shape: tuple[int, ...]) -> Any:
        """An array with one entry of this shape for each body."""

    def elementwise(self, function: Callable[..., Any], *vectors: Any) -> Any:
        """A vector over the freedoms from others, number by number."""

    def along(self, function: Callable[..., Any], at: Sequence[Any], directions: Sequence[Any]) -> tuple[Any, Any]:
        """Value and directional derivative of a function of configurations and vectors."""


class LinkByLink:
    """Sweeps of a tree whose links are at hand: parents before children, each with its ``index`` and ``parent``."""

    links: Sequence[Any]

    @property
    def rolls(self) -> bool:
        """Never: a text may go through these links one by one."""
        return False

    @property
    def places(self) -> int:
        """How many links a field has room for: the indices of these links are below it."""
        return len(self.links)

    def outward(self, step: Callable[[Any, Any], Any], root: Any, keeps: bool) -> Field[Any]:
        """Base to tips."""
        handed: list[Any] = [None] * self.places
        kept: list[Any] = [None] * self.places
        for link in self.links:
            result = step(link, root if link.parent < 0 else handed[link.parent])
            handed[link.index], kept[link.index] = result if keeps else (result, result)
        return Field(kept)

    def inward(self, step: Callable[[Any, Any], tuple[Any, Any]], nothing: Any) -> Field[Any]:
        """Tips to base."""
        sums: list[Any] = [nothing] * (self.places + 1)  # the last is the base's, whose index is -1
        kept: list[Any] = [None] * self.places
        for link in reversed(self.links):
            handed, kept[link.index] = step(link, sums[link.index])
            if handed is not None:
                known = sums[link.parent]
                sums[link.parent] = handed if known is nothing else known + handed
        return Field(kept, sums[-1])

    def everywhere(self, value: Any) -> Field[Any]:
        """The same value for every link."""
        return Field([value] * self.places)

    def only_at(self, values: Sequence[tuple[Any, Any]], elsewhere: Any) -> Field[Any]:
        """Values for some links, another for all others."""
        field = self.everywhere(elsewhere)
        for link, value in values:
            field.values[link.index] = value
        return field

    def looped_system(self, matrix: Sequence[Sequence[Any]], diagonal: Sequence[Any]) -> None:
        """None: elimination is written out, and leaves out what is zero."""
        return


class SomeLinks(LinkByLink):
    """Sweeps over some links of a tree only, each with all the links that it hangs on. They keep their indices."""

    def __init__(self, links: Sequence[Any], places: int) -> None:
        self.links = links
        self._places = places

    @property
    def places(self) -> int:
        """That of the whole tree: its fields and those of this part can be looked at alike."""
        return self._places
