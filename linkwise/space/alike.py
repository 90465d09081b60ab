"""Values that are equal where all their numbers are: parts of elements, by which compiled code is found again."""

from __future__ import annotations

from collections.abc import Hashable


class Alike:
    """Value that is told from others of its class by its attributes alone; tables of numbers over time do not count."""

    @property
    def facts(self) -> tuple[Hashable, ...]:
        """Key that tells it from others."""
        return tuple((name, value) for name, value in vars(self).items() if not name.startswith("table"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and type(self) is type(other) and self.facts == other.facts

    def __hash__(self) -> int:
        return hash((type(self), self.facts))
