"""How long stretches must take for velocities and accelerations to keep within limits."""

from __future__ import annotations

import math

import numpy as np

from linkwise.array_types import Array

_QUINTIC_VELOCITY = 15.0 / 8.0  # the largest ṡ of a stretch that takes 1 s
_QUINTIC_ACCELERATION = 10.0 / math.sqrt(3.0)
_RAMP = 0.25  # of the time, where no acceleration is limited


def rates(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The largest ṡ and s̈ with which s δ keeps within limits; infinite where there are none."""
    size = np.abs(delta)
    moves = size > 0.0
    fastest = float((velocity[moves] / size[moves]).min(initial=np.inf))
    strongest = float((acceleration[moves] / size[moves]).min(initial=np.inf))
    return fastest, strongest


def quintic_time(delta: Array, velocity: Array, acceleration: Array) -> float:
    """The least time from rest to rest, s."""
    fastest, strongest = rates(delta, velocity, acceleration)
    return max(_QUINTIC_VELOCITY / fastest, math.sqrt(_QUINTIC_ACCELERATION / strongest))


def trapezoidal_time(delta: Array, velocity: Array, acceleration: Array) -> tuple[float, float]:
    """The least time from rest to rest, s, and the share of it that each ramp takes."""
    fastest, strongest = rates(delta, velocity, acceleration)
    if math.isinf(strongest):
        return 1.0 / ((1.0 - _RAMP) * fastest), _RAMP
    if fastest * fastest >= strongest:  # the top speed is not reached
        return 2.0 / math.sqrt(strongest), 0.5
    time = 1.0 / fastest + fastest / strongest
    return time, fastest / strongest / time


def knot_velocities(times: Array, q: Array, deltas: Array, plain: list[tuple[int, int]], nv: int) -> Array:
    """Velocities (points, nv) at the points of a spline that begins and ends at rest.

    Where v is q̇ (``plain``: places in v and q), those of the cubic spline with continuous acceleration. Elsewhere, the
    mean of the velocities before and after, each weighted with the other's time (Catmull and Rom).
    """
    from scipy.interpolate import CubicSpline

    h = np.diff(times)[:, None]
    v = np.zeros((len(times), nv))
    slopes = deltas / h
    v[1:-1] = (h[1:] * slopes[:-1] + h[:-1] * slopes[1:]) / (h[1:] + h[:-1])
    if plain:
        in_v, in_q = (list(x) for x in zip(*plain, strict=True))
        v[:, in_v] = CubicSpline(times, q[:, in_q], bc_type="clamped")(times, 1)
    return v
