"""Spatial values taken apart into their scalars and put together again.

A sweep that keeps values in memory needs them flat. What is not a scalar (an axis number, a joint type) is structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Scalar

Rebuild = Callable[[Sequence[Scalar]], Any]


def flatten(value: Any) -> tuple[list[Scalar], Rebuild]:
    """The scalars of a value in a fixed order, and a function that puts others in their places."""
    leaves: list[Scalar] = []
    build = _walk(value, leaves)
    return leaves, lambda scalars: build(iter(scalars))


def _walk(value: Any, leaves: list[Scalar]) -> Callable[[Any], Any]:
    if value is None or isinstance(value, (int, str, bool)):
        return lambda scalars: value
    if isinstance(value, Sym3):
        leaves.extend(value.six())
        return lambda scalars: Sym3.of(*(next(scalars) for _ in range(6)))
    if isinstance(value, (list, tuple)):
        parts = [_walk(part, leaves) for part in value]
        kind = type(value)
        return lambda scalars: kind(part(scalars) for part in parts)
    names = _part_names(type(value))  # type: ignore[arg-type]  # types are hashable
    if names is None:
        leaves.append(value)
        return next
    parts = [_walk(getattr(value, name), leaves) for name in names]
    return lambda scalars: _assemble(type(value), names, [part(scalars) for part in parts])


_VALUES = ("linkwise.spatial.", "linkwise.algorithms.")  # whose classes are values with parts
_SCALARS = (".dual", ".scalar")  # whose classes are scalars


@cache
def _part_names(kind: type[Any]) -> tuple[str, ...] | None:
    """The parts of a spatial value or a dataclass; None for a scalar."""
    if is_dataclass(kind):
        return tuple(f.name for f in fields(kind))
    if not kind.__module__.startswith(_VALUES) or kind.__module__.endswith(_SCALARS):
        return None
    return tuple(name for base in reversed(kind.__mro__) for name in getattr(base, "__slots__", ()))


def _assemble(kind: type[Any], names: tuple[str, ...], parts: list[Any]) -> Any:
    made = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made
