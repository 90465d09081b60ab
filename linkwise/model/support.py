"""Polygons of support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError


def support_margin(centre: Array, points: ArrayLike, gravity: Array) -> Array:
    """How far (...) mass centres (..., 3), seen along gravity, are inside the convex hulls of points (..., n, 3)."""
    ground = np.asarray(points, float)
    if ground.ndim < 2 or ground.shape[-1] != 3 or ground.shape[-2] < 3:
        raise InputError("points have the wrong shape", got=str(ground.shape), allowed="(..., n, 3), n of 3 or more")
    down = gravity / np.linalg.norm(gravity)
    plane = np.linalg.svd(down[None])[2][1:]  # two directions across
    batch = np.broadcast_shapes(centre.shape[:-1], ground.shape[:-2])
    seen = np.broadcast_to(centre @ plane.T, (*batch, 2)).reshape(-1, 2)
    corners = np.broadcast_to(ground @ plane.T, (*batch, *ground.shape[-2:-1], 2)).reshape(len(seen), -1, 2)
    margins = np.array([_margin(c, hull) for c, hull in zip(seen, corners, strict=True)])
    return margins.reshape(batch)[()]


def _margin(c: Array, points: Array) -> float:
    """Distance to the hull's boundary, positive inside."""
    if not (np.isfinite(c).all() and np.isfinite(points).all()):
        return float("nan")
    hull = _hull(points)
    ends = np.roll(hull, -1, axis=0)
    way, to = ends - hull, c - hull
    square = (way**2).sum(1)
    share = np.clip((way * to).sum(1) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    distance = float(np.linalg.norm(to - share[:, None] * way, axis=1).min())
    sides = way[:, 0] * to[:, 1] - way[:, 1] * to[:, 0]
    return distance if len(hull) > 2 and bool((sides >= 0.0).all()) else -distance


def _hull(points: Array) -> Array:
    """Corners counterclockwise (Andrew's monotone chain); points in a line give its two ends."""
    ordered = sorted(map(tuple, points.tolist()))

    def half(line: list[Any]) -> list[Any]:
        kept: list[Any] = []
        for p in line:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0.0:
                kept.pop()
            kept.append(p)
        return kept

    lower, upper = half(ordered), half(ordered[::-1])
    return np.array(lower[:-1] + upper[:-1] or ordered[:1])


def _turn(a: Any, b: Any, c: Any) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
