"""Shapes whose sizes are numbers of the program: one text then serves all pairs of the same kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class Figure:
    """A shape of some kind, as functions of pairs take one in the place of a :class:`Geometry`.

    Args:
        kind: as of a :class:`Geometry`.
        size: likewise, of any scalars.
        radius: of the ball about its origin that holds it, m.
        vertices: of a convex shape, m.
        name: for messages.
    """

    kind: str
    size: tuple[Scalar, ...]
    radius: Scalar
    vertices: tuple[tuple[Scalar, ...], ...] = ()
    name: str = ""


def figure(like: Geometry, numbers: list[Scalar]) -> Any:
    """A shape with the kind of another, made of the numbers of its own: see :func:`numbers_of`."""
    count = len(like.size)
    rest = numbers[count + 1 :]
    corners = tuple(tuple(rest[3 * k : 3 * k + 3]) for k in range(len(rest) // 3))
    return Figure(like.kind, tuple(numbers[:count]), numbers[count], corners, like.name)


def numbers_of(shape: Geometry, radius: float, vertices: int) -> list[float]:
    """Sizes, radius and vertices of a shape, so many that the last is there several times if need be."""
    corners = [*shape.vertices, *[shape.vertices[-1]] * (vertices - len(shape.vertices))] if vertices else []
    return [*shape.size, radius, *(x for corner in corners for x in corner)]
