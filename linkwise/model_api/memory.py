"""What a model has worked out and keeps.

A model is frozen: what it *is* are its fields, which are compared, pickled and copied. What has been compiled for it is
none of that, and is made again where a copy is used. All of it is kept here, and goes when the model goes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

_PLACE = "_memory"


class Memory:
    """Tables by name, for those who compile something for a model."""

    def __init__(self) -> None:
        self._tables: dict[str, OrderedDict[Any, Any]] = {}

    @classmethod
    def of(cls, model: Any) -> Memory:
        """The memory of a model."""
        memory = vars(model).get(_PLACE)
        if memory is None:
            memory = vars(model).setdefault(_PLACE, cls())  # of two threads, the first one's
        return memory  # type: ignore[no-any-return]

    def table(self, name: str) -> OrderedDict[Any, Any]:
        """The table with this name, empty at first."""
        return self._tables.setdefault(name, OrderedDict())


def shadow(model: Any, name: str, function: Callable[..., Any]) -> None:
    """Put a compiled function before the method of this name: a look-up on the model ends there, without a detour."""
    vars(model)[name] = function
