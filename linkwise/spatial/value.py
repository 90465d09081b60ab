"""Values made of scalars: they know their parts, so that they can be taken apart and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Self


class Value:
    """A value with parts: those its slots name, unless a class says otherwise."""

    __slots__ = ()

    def parts(self) -> Sequence[Any]:
        """Scalars, values, or numbers and names that belong to the structure."""
        return [getattr(self, name) for name in _slots(type(self))]  # type: ignore[arg-type]  # types are hashable

    @classmethod
    def from_parts(cls, parts: Sequence[Any]) -> Self:
        """The value with these parts."""
        made = object.__new__(cls)
        for name, part in zip(_slots(cls), parts, strict=True):  # type: ignore[arg-type]
            object.__setattr__(made, name, part)
        return made


@cache
def _slots(kind: type[Any]) -> tuple[str, ...]:
    return tuple(name for base in reversed(kind.__mro__) for name in getattr(base, "__slots__", ()))
