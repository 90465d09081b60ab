"""Motions to order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.model.model import Model


def cycloidal(
    model: Model, start: ArrayLike, end: ArrayLike, t: ArrayLike, duration: float
) -> tuple[Array, Array, Array]:
    """The motion from rest to rest of 002 eq. 38 and 39: q (..., nq), v and v̇ (..., nv) at the times t (...).

    θ(t) = θ(0) + (θ(T) - θ(0)) [t/T - sin(2πt/T)/2π], along the straight line of every joint (a constant direction of
    turning, for joints with quaternions). Before 0 and after T it rests.
    """
    phase = np.clip(np.asarray(t, float) / duration, 0.0, 1.0)[..., None]
    turn = 2.0 * np.pi * phase
    way = model.difference(start, end)
    q = model.integrate(np.asarray(start, float), (phase - np.sin(turn) / (2.0 * np.pi)) * way)
    v = (1.0 - np.cos(turn)) / duration * way
    vdot = 2.0 * np.pi * np.sin(turn) / duration**2 * way
    return q, v, vdot
