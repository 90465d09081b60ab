"""Points on the mechanism, as users name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from linkwise.algorithms.kinematics import Place
from linkwise.errors import InputError
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Vec

Point = str | tuple[str, Sequence[float]]
"""The name of a body or frame, alone or with a position in it."""


def places(points: Point | Sequence[Point], find: Callable[[str], Place]) -> tuple[str, list[Place]]:
    """How the points are called, and where they are on the links."""
    listed = [points] if isinstance(points, str) or _is_pair(points) else list(points)
    found, labels = [], []
    for point in listed:
        name, offset = (point, None) if isinstance(point, str) else _pair(point)
        place = find(name)
        if place.link is None:
            raise InputError(
                f"the point on {name!r} does not move",
                got="a point fixed to the world",
                allowed="points on moving bodies",
            )
        if place.seat is not None:
            raise InputError(
                f"the point on {name!r} is on a flexible body",
                got=repr(point),
                allowed="points on rigid bodies",
                do="use model.jacobian(q, body, node=…)",
            )
        if offset is not None:
            place = Place(place.link, place.offset.then(Transform(Shift(Vec.of(offset)))))
        found.append(place)
        labels.append(name if offset is None else f"{name}{tuple(offset)}")
    return ", ".join(labels), found


def _is_pair(point: Any) -> bool:
    return isinstance(point, tuple) and len(point) == 2 and isinstance(point[0], str) and not isinstance(point[1], str)


def _pair(point: Any) -> tuple[str, list[Any]]:
    if not _is_pair(point) or len(list(point[1])) != 3:
        raise InputError(
            "a point is a name, or a name and a position in that frame",
            got=repr(point),
            allowed='"hand", or ("hand", (0.0, 0.0, 0.1))',
        )
    return point[0], list(point[1])
