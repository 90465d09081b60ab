"""Lambert's problem: the orbit from one place to another in a given time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.space.kepler import EARTH
from linkwise.spatial.scalar import Scalar, cos, cosh, hold, repeated, sin, sinh, sqrt, where
from linkwise.spatial.vectors import Vec

_TURN = 4.0 * math.pi**2  # the square of the eccentric angle of one turn
_LOWEST = -_TURN
_HALVINGS = 60
_SERIES = 0.05  # below this size Stumpff's functions lose digits to subtraction


def _stumpff(z: Scalar) -> tuple[Scalar, Scalar]:
    """(1 - cos √z)/z and (√z - sin √z)/√z³, for z of either sign."""
    small, positive = abs(z) < _SERIES, z > 0.0
    root = sqrt(where(small, 1.0, abs(z)))
    bounded = where(positive, root, 1.0)
    grown = where(positive, 1.0, root)
    c = where(positive, (1.0 - cos(bounded)) / (root * root), (cosh(grown) - 1.0) / (root * root))
    s = where(positive, bounded - sin(bounded), sinh(grown) - grown) / (root * root * root)
    c_series = s_series = 0.0 * z
    for k in reversed(range(9)):  # Horner's rule
        sign = -1.0 if k % 2 else 1.0
        c_series = c_series * z + sign / math.factorial(2 * k + 2)
        s_series = s_series * z + sign / math.factorial(2 * k + 3)
    return where(small, c_series, c), where(small, s_series, s)


def solve(
    first: Vec, last: Vec, duration: Scalar, mu: Scalar, way: Scalar, turns: int = 0, wide: bool = False
) -> tuple[Vec, Vec]:
    """Velocities at both ends, over any scalar; NaN where no orbit does it in the time.

    ``way`` is 1 for an angle below half a turn, else -1; ``turns`` whole turns come on top, by the wider or the
    narrower of two orbits.
    """
    r1, r2 = sqrt(first.dot(first)), sqrt(last.dot(last))
    A = way * sqrt(r1 * r2 + first.dot(last))
    root_mu = sqrt(mu)

    def height(z: Scalar) -> Scalar:
        c, s = _stumpff(z)
        return r1 + r2 + A * (z * s - 1.0) / sqrt(c)

    def time(z: Scalar) -> Scalar:
        c, s = _stumpff(z)
        y = height(z)
        y = where(y > 0.0, y, 0.0)
        chi = sqrt(y / c)
        return (chi * chi * chi * s + A * sqrt(y)) / root_mu

    def halved(bounds: list[Scalar]) -> list[Scalar]:
        low, high = bounds
        middle = 0.5 * (low + high)
        short = (time(middle) < duration) if not wide else (time(middle) > duration)
        return [where(short, middle, low), where(short, high, middle)]

    def narrowed(bounds: list[Scalar]) -> list[Scalar]:
        """Around the shortest time: of thirds, the outer one with the longer time is cut off."""
        low, high = bounds
        one, two = low + (high - low) * (1.0 / 3.0), high - (high - low) * (1.0 / 3.0)
        rising = time(one) < time(two)
        return [where(rising, low, one), where(rising, two, high)]

    # With whole turns the time is infinite at both ends, and shortest between them: an orbit on either side of that.
    bounds = [(_LOWEST if turns == 0 else turns**2 * _TURN * (1.0 + 1e-12)) + 0.0 * r1]
    bounds.append((turns + 1) ** 2 * _TURN * (1.0 - 1e-12) + 0.0 * r1)
    exists: Scalar = True
    if turns:
        low, high = repeated(_HALVINGS, narrowed, bounds)
        shortest = 0.5 * (low + high)
        exists = time(shortest) <= duration
        bounds = [bounds[0], shortest] if wide else [shortest, bounds[1]]
    low, high = repeated(_HALVINGS, halved, bounds)
    z = hold(0.5 * (low + high))
    step = 1e-4
    slope = hold(time(z + step) - time(z - step)) / (2.0 * step)
    z = z - (time(z) - duration) / slope
    y = height(z)
    f, g, g_dot = 1.0 - y / r1, A * sqrt(y) / root_mu, 1.0 - y / r2
    inverse = 1.0 / g if exists is True else where(exists, 1.0 / g, math.nan)
    return (last - first * f) * inverse, (last * g_dot - first) * inverse


def lambert(
    first: ArrayLike,
    last: ArrayLike,
    duration: Any,
    mu: float = EARTH.mu,
    *,
    long_way: bool = False,
    turns: int = 0,
    wide: bool = False,
) -> tuple[Any, Any]:
    """Velocities at both ends of the orbit from one place to another.

    Args:
        first: place at the start (..., 3), m.
        last: place at the end (..., 3), m.
        duration: of the flight (...), s.
        mu: gravitational parameter of the body in the middle, m³/s²; the Earth's if not given.
        long_way: whether the angle between the places is travelled the other way, by more than half a turn.
        turns: whole turns on top of that angle; each needs some time at least.
        wide: whether to take the larger of the two orbits with so many turns.

    Returns:
        velocities (..., 3) at the start and at the end, m/s.

    >>> from linkwise.space import Orbit
    >>> orbit = Orbit(a=8e6, e=0.1, i=0.5)
    >>> (r1, v1), (r2, v2) = orbit.state(100.0), orbit.state(1500.0)
    >>> bool(np.allclose(lambert(r1, r2, 1400.0)[0], v1, rtol=1e-10))
    True
    """
    a, b = (np.moveaxis(np.asarray(place), -1, 0) for place in (first, last))
    if a.shape[:1] != (3,) or b.shape[:1] != (3,):
        raise InputError("a place is three numbers", got=f"{np.shape(first)} and {np.shape(last)}", allowed="(..., 3)")
    numeric = a.dtype.kind in "fiu" and b.dtype.kind in "fiu"
    if numeric:
        turned = np.linalg.norm(np.cross(a, b, axis=0), axis=0)
        if (turned <= 1e-9 * np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)).any():
            raise InputError(
                "the places lie on one line with the centre, so the plane of the orbit is not known",
                got=f"{np.asarray(first).tolist()!r:.60}, {np.asarray(last).tolist()!r:.60}",
                do="move one of them out of the line, or choose another duration",
            )
        if not (np.asarray(duration) > 0.0).all():
            raise InputError("a flight takes time", got=repr(duration), allowed="seconds > 0")
    if turns < 0 or turns != int(turns):
        raise InputError("whole turns are counted", got=repr(turns), allowed="0, 1, 2, …")
    if wide and not turns:
        raise InputError("without whole turns there is one orbit", got="wide=True", do="leave it out, or give turns")
    vectors = solve(Vec(*a), Vec(*b), duration, mu, -1.0 if long_way else 1.0, turns, wide)
    if numeric and np.isnan(vectors[0].x).any():
        raise InputError(
            f"no orbit makes {turns} turns on the way in so short a time",
            got=f"{np.asarray(duration).tolist()!r:.60} s",
            do="give more time, or fewer turns",
        )
    if numeric:
        start, end = (np.stack(np.broadcast_arrays(*vector), axis=-1) for vector in vectors)
        return start, end
    return scalar_array(list(vectors[0])), scalar_array(list(vectors[1]))
