"""Memory of a model: results that it has worked out and keeps.

A model is frozen: what it *is* are its fields, which are compared, pickled and copied. What has been compiled for it is
none of that, and is made again where a copy is used. All of it is kept here, and goes when the model goes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from linkwise.memoized import once

T = TypeVar("T")

_PLACE = "_memory"


class Memory:
    """Tables by name, for those who compile something for a model."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[Any, Any]] = {}
        self._clock = itertools.count()

    @classmethod
    def of(cls, model: Any) -> Memory:
        """The memory of a model."""
        memory: Memory | None = vars(model).get(_PLACE)
        if memory is None:
            memory = vars(model).setdefault(_PLACE, cls())  # of two threads, the first one's
        return memory

    def table(self, name: str) -> dict[Any, Any]:
        """The table with this name, empty at first."""
        return self._tables.setdefault(name, {})

    def recent(self, name: str, key: Hashable, make: Callable[[], T], most: int) -> T:
        """An entry of a table that keeps those used last, made if it is not there; at most so many are kept.

        Any number of threads may ask at once: each step is one of a dict's own, so none is seen half done.
        """
        table, used = self.table(name), self.table(f"{name}: when used")
        value = once(table, key, make)
        used[key] = next(self._clock)
        while len(table) > most:
            oldest = min(list(table), key=lambda k: used.get(k, -1))
            table.pop(oldest, None)
            used.pop(oldest, None)
        return value


def shadow(model: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a compiled function before the method of this name: a look-up on the model ends there, without a detour."""
    vars(model)[name] = function
