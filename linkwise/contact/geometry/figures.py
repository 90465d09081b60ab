"""Shapes whose sizes are numbers of the program: one text then serves all pairs of the same kinds."""

from __future__ import annotations

from typing import Any

from linkwise.dataclass import dataclass
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class Figure:
    """A shape of some kind, as functions of pairs take one in the place of a :class:`Geometry`.

    Args:
        kind: as of a :class:`Geometry`.
        size: likewise, of any scalars.
        radius: of the ball about its origin that holds it, m.
        middle: of the box along its axes that holds it, m.
        half: half the edges of that box, m.
        vertices: of a convex shape, m.
        name: for messages.
        most: a shape of the kind that is no smaller than any of those that the text serves.
    """

    kind: str
    size: tuple[Scalar, ...]
    radius: Scalar
    middle: tuple[Scalar, ...]
    half: tuple[Scalar, ...]
    vertices: tuple[tuple[Scalar, ...], ...] = ()
    name: str = ""
    most: Geometry | None = None


def figure(like: Geometry, numbers: list[Scalar]) -> Any:
    """A shape with the kind of another that is no smaller, made of the numbers of its own: see :func:`numbers_of`."""
    count = len(like.size)
    radius, *box = numbers[count : count + 7]
    rest = numbers[count + 7 :]
    corners = tuple(tuple(rest[3 * k : 3 * k + 3]) for k in range(len(rest) // 3))
    return Figure(like.kind, tuple(numbers[:count]), radius, tuple(box[:3]), tuple(box[3:]), corners, like.name, like)


def numbers_of(shape: Geometry, radius: float, vertices: int) -> list[float]:
    """Sizes, radius, box and vertices of a shape, so many that the last is there several times if need be."""
    corners = [*shape.vertices, *[shape.vertices[-1]] * (vertices - len(shape.vertices))] if vertices else []
    return [*shape.size, radius, *_box_about(shape), *(x for corner in corners for x in corner)]


def _box_about(shape: Geometry) -> list[float]:
    """The middle and half the edges of the box along a shape's axes that holds it."""
    size, none = shape.size, [0.0, 0.0, 0.0]
    match shape.kind:
        case "box":
            return [*none, *(0.5 * x for x in size)]
        case "sphere":
            return [*none, *size * 3]
        case "capsule":
            return [*none, size[0], size[0], size[0] + 0.5 * size[1]]
        case "cylinder":
            return [*none, size[0], size[0], 0.5 * size[1]]
        case "ellipsoid":
            return [*none, *size]
        case "convex":
            ends = [(min(x), max(x)) for x in zip(*shape.vertices, strict=True)]
            return [*(0.5 * (a + b) for a, b in ends), *(0.5 * (b - a) for a, b in ends)]
        case _:
            return [*none, *none]
