"""Surroundings of a craft in orbit: the planet, the way along the orbit, the Sun; for films in a falling world."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.sim.checks import check_positive
from linkwise.space.orbit import Orbit
from linkwise.space.shadow import sunlit
from linkwise.space.sky import AnySky, Sky, StillSky
from linkwise.spatial.vectors import Vec
from linkwise.viz.markers import Markers


def surroundings(
    motion: Any, orbit: Orbit, *, sky: AnySky | None = None, about: str | None = None, size: float = 3.0
) -> list[Markers]:
    """Markers for ``motion.view(markers=...)`` and films: the planet as large as it looks, velocity, Sun.

    Real distances do not fit a picture, nor the numbers of a graphics card: the planet is a disc some lengths away,
    which fills the same part of the view as the planet does. The Sun's arrow is missing in the planet's shadow.

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
    check_positive("size", size)
    model, t = motion.model, np.asarray(motion.t, float)
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
    return [
        Markers(orbit.planet.name, "disc", (here + away * down)[:, None], -down[:, None], radius, (60, 110, 200)),
        Markers("velocity", "arrow", here[:, None], size * _unit(v)[:, None], colour=(60, 180, 90)),
        Markers("Sun", "arrow", here[:, None], size * to_sun[:, None], colour=(250, 200, 40)),
    ]


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
