"""Values taken apart into their scalars and put together again.

A sweep that keeps values in memory needs them flat. What is not a scalar (an axis number, a name) is structure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from linkwise.spatial.dual import Dual
from linkwise.spatial.scalar import Scalar, Value

T = TypeVar("T")
Rebuild = Callable[[Sequence[Scalar]], T]
Walk = Callable[[Iterator[Scalar]], Any]


def flatten(value: T, levels: Sequence[int] = ()) -> tuple[list[Scalar], Rebuild[T]]:
    """The scalars of a value in a fixed order, and a function that puts others in their places.

    Lists, tuples, dataclasses and every :class:`Value` have parts; a dual number is two scalars. With ``levels``, every
    number is first made a dual number of these levels (highest first), so that the shape does not depend on which are.
    """
    leaves: list[Scalar] = []
    build = _walk(value, leaves, levels)
    return leaves, lambda scalars: build(iter(scalars))


def _walk(value: object, leaves: list[Scalar], levels: Sequence[int] = ()) -> Walk:
    if value is None or isinstance(value, (int, str, bool)):
        return lambda scalars: value
    if isinstance(value, (list, tuple)):
        return _walk_parts(value, _sequence(type(value)), leaves, levels)
    if isinstance(value, Value):
        return _walk_parts(value.parts(), type(value).from_parts, leaves, levels)
    names = _field_names(type(value))
    if names is not None:
        kind, parts = type(value), [getattr(value, n) for n in names]
        return _walk_parts(parts, lambda made: _with_fields(kind, names, made), leaves, levels)
    if levels:
        return _walk(lifted(value, levels), leaves)
    if isinstance(value, Dual):
        level = value.level
        return _walk_parts((value.value, value.tangent), lambda made: Dual(made[0], made[1], level), leaves, ())
    leaves.append(value)
    return next


def lifted(x: Scalar, levels: Sequence[int]) -> Scalar:
    """A number as a dual number of these levels, the highest first."""
    if not levels:
        return x
    own = isinstance(x, Dual) and x.level == levels[0]
    value, tangent = (x.value, x.tangent) if own else (x, 0.0)
    return Dual(lifted(value, levels[1:]), lifted(tangent, levels[1:]), levels[0])


def _walk_parts(
    parts: Sequence[object], assemble: Callable[[list[Any]], object], leaves: list[Scalar], levels: Sequence[int]
) -> Walk:
    walks = [_walk(part, leaves, levels) for part in parts]
    return lambda scalars: assemble([walk(scalars) for walk in walks])


def _sequence(kind: type) -> Callable[[list[Any]], object]:
    make = getattr(kind, "_make", kind)  # named tuples take their parts one by one
    return lambda parts: make(parts)


def _fields(kind: type) -> tuple[str, ...] | None:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


_field_names: Callable[[type], tuple[str, ...] | None] = cache(_fields)


def _with_fields(kind: type[T], names: tuple[str, ...], parts: list[object]) -> T:
    made = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def taken_apart(value: object) -> tuple[list[Scalar], Hashable]:
    """The scalars of a value, as :func:`flatten` gives them, and a key that says of what shape it is."""
    leaves: list[Scalar] = []
    return leaves, _shape(value, leaves)


def _shape(value: object, leaves: list[Scalar]) -> Hashable:
    if type(value) is float:
        leaves.append(value)
        return None
    if value is None or isinstance(value, (int, str, bool)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple([_shape(part, leaves) for part in value])
    if isinstance(value, Value):
        return (type(value), *[_shape(part, leaves) for part in value.parts()])
    names = _field_names(type(value))
    if names is not None:
        return (type(value), *[_shape(getattr(value, name), leaves) for name in names])
    leaves.append(value)
    return None
