"""What a tree offers the algorithms: sweeps over its links, and vectors over its freedoms.

Two trees implement it. :class:`linkwise.model.tree.Tree` runs a step link after link (**unrolled**);
:class:`linkwise.rolled.tree.RolledTree` runs it once for each kind of link, as the body of a loop (**rolled**).
"""

from __future__ import annotations

from collections.abc import Callable
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
