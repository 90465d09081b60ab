"""Surroundings of a craft in orbit: the planet, the way along the orbit, the Sun; for films in a falling world."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linkwise.array_types import Array
from linkwise.checks import check_positive
from linkwise.errors import InputError
from linkwise.sim.trajectory import Trajectory
from linkwise.space.kepler import EARTH
from linkwise.space.orbit import Orbit
from linkwise.space.sky import AnySky, Sky, StillSky, sunlit
from linkwise.spatial.vectors import Vec
from linkwise.viz.markers import Markers

_LAND = (
    ".........######.....................",
    ".....######.####.......#...#####....",
    ".###########.####.##################",
    "..#..####.##.....###############.#..",
    ".....#######.....################...",
    "......#####......###.###########....",
    "......####......##############......",
    "........###.....#######..#.##.#.....",
    "..........###...#######.....###.....",
    "..........#####....###......#####...",
    "..........####.....####.......###...",
    "...........###.....####......#####..",
    "..........###......##........#.###.#",
    "..........##....................#.#.",
    "..........##........................",
    "...........##.........############..",
    "......######...####################.",
    "####################################",
)  # squares of ten degrees with more land than sea, from north to south, eastwards from 180°
_NARROW, _FINE = 0.7, 2
"""Horizon, rad from below the craft, within which squares of land are cut in so many each way."""


def surroundings(
    motion: Trajectory, orbit: Orbit, *, sky: AnySky | None = None, about: str | None = None, size: float = 3.0
) -> list[Markers]:
    """Markers for ``motion.view(markers=...)`` and films: the planet as large as it looks, velocity, Sun.

    Real distances do not fit a picture, nor the numbers of a graphics card: the planet is a disc some lengths away,
    which fills the same part of the view as the planet does; land is drawn on that of the Earth. The Sun's arrow is
    missing in the planet's shadow.

    Args:
        motion: one motion in a world that falls along the orbit, ``simulate(..., frame=orbit)``.
        orbit: that one.
        sky: where the Sun is; as for :class:`~linkwise.space.StillSky` if not given.
        about: name of the body that they are around; the first one if not given.
        size: length of the arrows, m; the planet is eight of it away.
    """
    if np.ndim(motion.q) != 2 or orbit.batch_shape:
        raise InputError(
            "surroundings are those of one motion", got=f"q of shape {np.shape(motion.q)}", allowed="(T, nq)"
        )
    check_positive(size=size)
    model, t = motion._with_model("surroundings"), np.asarray(motion.t, float)
    over: AnySky = StillSky(planet=orbit.planet) if sky is None else sky
    here = np.asarray(model.pose(motion.q, model.bodies[0].name if about is None else about)[:, :3, 3])
    r, v = orbit.state(t)
    place = r + here
    far = np.linalg.norm(place, axis=1)
    down = -place / far[:, None]
    numbers = np.moveaxis(over.at(t), -1, 0) if isinstance(over, Sky) else []
    parts = np.broadcast_arrays(*(np.asarray(each, float) for each in over.sun(t, list(numbers))), t)[:3]
    sun = np.stack(parts, axis=-1)
    light = np.asarray(sunlit(Vec(*place.T), Vec(*sun.T), orbit.planet.radius))
    to_sun = _unit(sun - place)
    to_sun[light < 0.5] = np.nan
    away = 8.0 * size
    radius = away * float(np.median(np.tan(np.arcsin(np.clip(orbit.planet.radius / far, 0.0, 0.999)))))
    land = []
    if orbit.planet == EARTH:
        R = np.stack(
            np.broadcast_arrays(*(x for row in over.to_fixed(t, list(numbers)).m for x in row), t)[:9], axis=-1
        )
        spots, width = _land_below(place, R.reshape(-1, 3, 3), radius / away)
        flat = here[:, None] + (away - 0.04 * radius) * (down[:, None] + spots)  # before the planet's disc
        land = [Markers("land", "disc", flat, np.broadcast_to(-down[:, None], flat.shape), away * width, (70, 130, 60))]
    return [
        Markers(orbit.planet.name, "disc", (here + away * down)[:, None], -down[:, None], radius, (60, 110, 200)),
        Markers("velocity", "arrow", here[:, None], size * _unit(v)[:, None], colour=(60, 180, 90)),
        Markers("Sun", "arrow", here[:, None], size * to_sun[:, None], colour=(250, 200, 40)),
        *land,
    ]


def _land_below(place: Array, to_fixed: Array, edge: float) -> tuple[Array, float]:
    """Spots of land as a craft sees them, and their radius, on a plane at distance one; ``edge`` is the planet's there.

    Args:
        place: of the craft (T, 3), from the centre of the Earth, m.
        to_fixed: rotation from inertial axes to those of the ground (T, 3, 3).
        edge: radius of the planet on that plane.

    Returns:
        vectors (T, k, 3) from the middle of the plane, not finite where there are fewer spots than elsewhere.
    """
    up = _unit(place)
    horizon = np.arccos(np.clip(EARTH.radius / np.linalg.norm(place, axis=1), 0.0, 1.0))
    parts = _FINE if horizon.max() < _NARROW else 1
    north, east = (np.array(each) for each in zip(*_squares(parts), strict=True))
    ground = np.stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east), np.sin(north)], axis=-1)
    found = np.einsum("tji,kj->tki", to_fixed, ground)
    seen = np.einsum("tki,ti->tk", found, up) > np.cos(0.9 * horizon)[:, None]
    away = EARTH.radius * found - place[:, None]
    depth = -np.einsum("tki,ti->tk", away, up)
    with np.errstate(all="ignore"):
        spots = np.where(seen[..., None], away / depth[..., None] + up[:, None], np.nan)
    first = np.argsort(~seen, axis=1, kind="stable")[:, : max(int(seen.sum(axis=1).max()), 1)]
    return np.take_along_axis(spots, first[..., None], axis=1), edge * 0.6 * np.radians(10.0 / parts) / horizon.max()


def _squares(parts: int) -> Iterator[tuple[float, float]]:
    """Latitude and longitude of the middle of all squares of land, each cut in so many each way, rad."""
    size = 10.0 / parts
    for k, row in enumerate(_LAND):
        for n in np.flatnonzero(np.array(list(row)) == "#"):
            for i, j in np.ndindex(parts, parts):
                yield np.radians(90.0 - 10.0 * k - size * (i + 0.5)), np.radians(10.0 * n - 180.0 + size * (j + 0.5))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
