"""Pictures of triangles, by a z-buffer in NumPy: no window, no driver, the same on every machine.

Plain shading from one lamp at the camera and one above, four samples for each pixel. It is for small videos and
thumbnails: some hundred thousand triangles take a second or so, a robot of twenty thousand some tenths of one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.viz.solids import GREY, Solid, merged

_TILE = 12
"""Pixels: triangles larger than this are cut into smaller ones before they are filled."""


@dataclass(frozen=True)
class Camera:
    """Viewpoint of a picture.

    Args:
        position: m.
        look_at: m.
        width: pixels.
        height: pixels.
        angle: of view across the height, rad.
    """

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    width: int = 640
    height: int = 480
    angle: float = 0.75

    @property
    def axes(self) -> Array:
        """Rows: to the right, downwards, into the picture."""
        forward = np.asarray(self.look_at, float) - np.asarray(self.position, float)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        if np.linalg.norm(right) < 1e-9:
            right = np.array([1.0, 0.0, 0.0])
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(forward, right), forward])

    @property
    def horizon(self) -> float:
        """Place of the horizon, from the top of the picture, as a share of its height."""
        rise = self.axes[2, 2]
        return 0.5 + 0.5 * float(rise / np.sqrt(max(1.0 - rise * rise, 1e-12)) / np.tan(self.angle / 2))

    def moved(self, way: ArrayLike) -> Camera:
        """The same elsewhere: moved by (3), m."""
        by = np.asarray(way, float)
        x, y, z = (np.asarray(self.position) + by).tolist()
        u, v, w = (np.asarray(self.look_at) + by).tolist()
        return replace(self, position=(x, y, z), look_at=(u, v, w))

    @classmethod
    def seeing(cls, low: ArrayLike, high: ArrayLike, width: int = 640, height: int = 480) -> Camera:
        """Camera at the side and a little above, with everything between two corners in view."""
        a, b = np.asarray(low, float), np.asarray(high, float)
        centre, size = (a + b) / 2, max(float(np.linalg.norm(b - a)), 1e-3)
        away = centre + 1.45 * size * np.array([0.72, -0.6, 0.35])
        return cls(tuple(away.tolist()), tuple(centre.tolist()), width, height)


def picture(solids: Sequence[Solid], camera: Camera, background: ArrayLike = (255, 255, 255)) -> Array:
    """RGB (height, width, 3), uint8, before a colour or before another picture of this size."""
    wide, high = 2 * camera.width, 2 * camera.height
    behind = np.broadcast_to(np.asarray(background, np.float32), (camera.height, camera.width, 3))
    colour = behind.repeat(2, axis=0).repeat(2, axis=1).reshape(high * wide, 3)
    depth = np.full(high * wide, np.inf, np.float32)
    opaque = [solid for solid in solids if solid.opacity >= 1.0]
    for group in ([opaque] if opaque else []) + [[solid] for solid in solids if solid.opacity < 1.0]:
        _fill(group, camera, wide, high, depth, colour)
    fine = colour.reshape(camera.height, 2, camera.width, 2, 3).mean(axis=(1, 3))
    return np.asarray(np.clip(fine + 0.5, 0, 255), np.uint8)


def _fill(solids: Sequence[Solid], camera: Camera, wide: int, high: int, depth: Array, colour: Array) -> None:
    """Draw surfaces of one opacity together."""
    axes = camera.axes
    whole = merged(solids)
    own = np.repeat([solid.colour or GREY for solid in solids], [len(solid.faces) for solid in solids], axis=0)
    x = (whole.vertices - np.asarray(camera.position)) @ axes.T
    focal = 0.5 * high / np.tan(camera.angle / 2)
    z = x[:, 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        u = focal * x[:, 0] / z + wide / 2
        v = focal * x[:, 1] / z + high / 2
    corners = np.stack([u, v, z], axis=-1)[whole.faces]  # (F, 3 corners, u v z)
    ahead = (corners[:, :, 2] > 1e-6).all(axis=1) & np.isfinite(corners).all(axis=(1, 2))
    keep = ahead & _on_screen(corners, wide, high)
    if not keep.any():
        return
    corners, world = corners[keep], x[whole.faces[keep]]
    normal = np.cross(world[:, 1] - world[:, 0], world[:, 2] - world[:, 0])
    length = np.linalg.norm(normal, axis=1)
    facing = np.abs(normal[:, 2]) / np.where(length > 0, length, 1.0)
    above = np.abs(normal @ axes[:, 2]) / np.where(length > 0, length, 1.0)
    light = 0.32 + 0.5 * facing + 0.18 * above
    unlit = np.repeat([solid.unlit for solid in solids], [len(solid.faces) for solid in solids])
    shade = (own[keep] * np.where(unlit[keep], 1.0, light)[:, None]).astype(np.float32)
    corners, which = _cut(corners, wide, high)
    _paint(corners, shade[which], wide, high, depth, colour, solids[0].opacity)


def _on_screen(corners: Array, wide: int, high: int) -> Array:
    """Mask of the triangles that may be seen."""
    low, most = corners[:, :, :2].min(axis=1), corners[:, :, :2].max(axis=1)
    seen: Array = (most >= 0.0).all(axis=1) & (low[:, 0] < wide) & (low[:, 1] < high)
    return seen


def _cut(corners: Array, wide: int, high: int) -> tuple[Array, Array]:
    """Triangles in pieces of at most a tile, and which triangle each is a piece of; 1/z is linear on the screen."""
    done: list[Array] = []
    owners: list[Array] = []
    now = corners.copy()
    now[:, :, 2] = 1.0 / now[:, :, 2]
    own = np.arange(len(now))
    for _ in range(24):
        size = np.ptp(now[:, :, :2], axis=1).max(axis=1)
        large = size > _TILE
        done.append(now[~large])
        owners.append(own[~large])
        if not large.any():
            break
        big, own = now[large], own[large]
        edges = np.linalg.norm(big[:, [1, 2, 0], :2] - big[:, [0, 1, 2], :2], axis=2)
        turn = (np.argmax(edges, axis=1)[:, None] + np.arange(3)) % 3
        big = np.take_along_axis(big, turn[:, :, None], axis=1)
        middle = (big[:, 0] + big[:, 1]) / 2
        now = np.concatenate([np.stack([big[:, 0], middle, big[:, 2]], 1), np.stack([middle, big[:, 1], big[:, 2]], 1)])
        own = np.concatenate([own, own])
        seen = _on_screen(now, wide, high)
        now, own = now[seen], own[seen]
    return np.concatenate(done), np.concatenate(owners)


def _paint(corners: Array, shade: Array, wide: int, high: int, depth: Array, colour: Array, opacity: float) -> None:
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    x0, y0 = np.ceil(corners[:, :, 0].min(1) - 0.5), np.ceil(corners[:, :, 1].min(1) - 0.5)
    across = np.floor(corners[:, :, 0].max(1) - 0.5) - x0
    down = np.floor(corners[:, :, 1].max(1) - 0.5) - y0
    solid = np.abs(area) > 1e-12
    places: list[Array] = []
    distances: list[Array] = []
    owners: list[Array] = []
    for dy in range(int(down.max(initial=-1)) + 1):
        rows = np.flatnonzero(solid & (down >= dy))
        for dx in range(int(across[rows].max(initial=-1)) + 1):
            k = rows[across[rows] >= dx]
            px, py = x0[k] + dx, y0[k] + dy
            ok = (px >= 0) & (px < wide) & (py >= 0) & (py < high)
            k, px, py = k[ok], px[ok], py[ok]
            sx, sy = px + 0.5, py + 0.5
            w1 = ((sx - a[k, 0]) * (c[k, 1] - a[k, 1]) - (sy - a[k, 1]) * (c[k, 0] - a[k, 0])) / area[k]
            w2 = ((b[k, 0] - a[k, 0]) * (sy - a[k, 1]) - (b[k, 1] - a[k, 1]) * (sx - a[k, 0])) / area[k]
            w0 = 1.0 - w1 - w2
            hit = (w0 >= -1e-9) & (w1 >= -1e-9) & (w2 >= -1e-9)
            inverse = w0 * a[k, 2] + w1 * b[k, 2] + w2 * c[k, 2]
            places.append((py[hit] * wide + px[hit]).astype(np.int64))
            distances.append((1.0 / inverse[hit]).astype(np.float32))
            owners.append(k[hit])
    if not places:
        return
    place, distance, owner = np.concatenate(places), np.concatenate(distances), np.concatenate(owners)
    order = np.argsort(-distance, kind="stable")  # the nearest is written last
    place, distance, owner = place[order], distance[order], owner[order]
    nearest = np.full(len(depth), -1, np.int64)
    nearest[place] = np.arange(len(place))
    seen = np.flatnonzero(nearest >= 0)
    first = nearest[seen]
    front = distance[first] < depth[seen]
    seen, first = seen[front], first[front]
    colour[seen] = (1.0 - opacity) * colour[seen] + opacity * shade[owner[first]]
    if opacity >= 1.0:
        depth[seen] = distance[first]
