"""Celestial bodies, and the motion of two of them over any scalar: Kepler's equation, elements, Lambert's problem.

Elements are the six numbers (a, e, i, node, perigee, anomaly): semi-major axis in m, eccentricity, and the angles in
rad of inclination, ascending node, perigee (from the node) and mean anomaly. An open orbit, a hyperbola, has e > 1 and
a negative a, and its mean anomaly is e sinh H - H, which grows without end.

Lambert's problem asks for the orbit from one place to another in a given time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.spatial.scalar import Scalar, atan2, cos, cosh, exp, hold, is_zero, log, repeated, sin, sinh, sqrt, where
from linkwise.spatial.vectors import Vec

_OPEN_STEPS = 7  # of order three
_STEPS = ((0.0, 0), (0.02, 1), (0.3, 2), (0.8, 3), (1.0, 5))  # of order four: up to an eccentricity, so many suffice


class Conic(NamedTuple):
    """Ellipse or hyperbola in space and the place on it at t = 0, in the numbers that a state is computed from."""

    a: Scalar
    e: Scalar
    n: Scalar
    """Mean motion, rad/s."""
    anomaly: Scalar
    """Mean anomaly at t = 0, rad."""
    towards: Vec
    """Unit vector to the perigee."""
    across: Vec
    """Unit vector in the plane, a quarter ahead of the perigee."""
    most: float = 1.0
    """Largest that e may be; above 1 it is a hyperbola."""


def eccentric_anomaly(M: Scalar, e: Scalar, most: float = 1.0) -> tuple[Scalar, Scalar]:
    """Sine and cosine of the solution E of Kepler's equation E - e sin E = M; their derivatives are exact.

    ``most`` is the largest that e may be: fewer steps are made where it is small.
    """
    s, c = sin(M), cos(M)
    if is_zero(e):
        return s, c
    E = M + e * s / sqrt(1.0 - 2.0 * e * c + e * e)
    for _ in range(next(count for limit, count in _STEPS if most <= limit)):
        s, c = e * sin(E), e * cos(E)
        f, slope = E - s - M, 1.0 - c
        step = f / slope
        step = f / (slope - 0.5 * step * s)
        E = E - f / (slope - 0.5 * step * s + step * step * c * (1.0 / 6.0))
    E = hold(E)
    s, c = sin(E), cos(E)
    last = (M - E + e * s) / (1.0 - e * c)  # so small that its square counts for nothing
    return s + c * last, c - s * last


def hyperbolic_anomaly(M: Scalar, e: Scalar) -> tuple[Scalar, Scalar]:
    """Hyperbolic sine and cosine of the solution H of e sinh H - H = M; their derivatives are exact."""
    size = abs(M)
    # Two bounds from above: sinh H >= H, and >= H + H³/6. From there Newton's steps come down without overshooting.
    x = size / (e - 1.0)
    H = log(x + sqrt(x * x + 1.0))
    cube = exp(log(where(size > 1e-300, size, 1e-300) * 6.0 / e) * (1.0 / 3.0))
    H = where(cube > H, H, cube)
    for _ in range(_OPEN_STEPS):
        s, c = e * sinh(H), e * cosh(H)
        f, slope = s - H - size, c - 1.0
        step = f / slope
        H = H - f / (slope - 0.5 * step * s)
    H = hold(where(M < 0.0, -H, H))
    s, c = sinh(H), cosh(H)
    last = (M + H - e * s) / (e * c - 1.0)
    return s + c * last, c + s * last


def perifocal_axes(i: Scalar, node: Scalar, perigee: Scalar) -> tuple[Vec, Vec]:
    """Unit vectors towards the perigee and a quarter ahead of it."""
    ci, si, cn, sn, cp, sp = cos(i), sin(i), cos(node), sin(node), cos(perigee), sin(perigee)
    towards = Vec(cn * cp - sn * sp * ci, sn * cp + cn * sp * ci, sp * si)
    across = Vec(-(cn * sp) - sn * cp * ci, cn * cp * ci - sn * sp, cp * si)
    return towards, across


def state_at(conic: Conic, t: Scalar) -> tuple[Vec, Vec]:
    """Position in m and velocity in m/s at a time in s."""
    a, e = conic.a, conic.e
    if conic.most > 1.0:
        s, c = hyperbolic_anomaly(conic.anomaly + conic.n * t, e)
        b, rate = a * -sqrt(e * e - 1.0), conic.n / (e * c - 1.0)
        r = conic.towards * (a * (c - e)) + conic.across * (b * s)
        return r, conic.across * (b * c * rate) + conic.towards * (a * s * rate)
    s, c = eccentric_anomaly(conic.anomaly + conic.n * t, e, conic.most)
    b, rate = a * sqrt(1.0 - e * e), conic.n / (1.0 - e * c)
    r = conic.towards * (a * (c - e)) + conic.across * (b * s)
    v = conic.across * (b * c * rate) - conic.towards * (a * s * rate)
    return r, v


def elements_of(
    r: Vec, v: Vec, mu: Scalar, is_open: bool = False
) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]:
    """Elements of a closed or open orbit from a state.

    A circle has its perigee where the body is, a plane orbit node 0.
    """
    h = r.cross(v)
    distance, speed2 = sqrt(r.dot(r)), v.dot(v)
    a = 1.0 / (2.0 / distance - speed2 / mu)
    e_cos, e_sin = distance * speed2 / mu - 1.0, r.dot(v) / sqrt(mu * abs(a))
    if is_open:
        e, H = sqrt((e_cos + e_sin) * (e_cos - e_sin)), 0.5 * log((e_cos + e_sin) / (e_cos - e_sin))
        true, M = atan2(sqrt(e * e - 1.0) * sinh(H), e - cosh(H)), e_sin - H
    else:
        e, E = sqrt(e_cos * e_cos + e_sin * e_sin), atan2(e_sin, e_cos)
        true, M = atan2(sqrt(1.0 - e * e) * sin(E), cos(E) - e), E - e_sin
    length, flat = sqrt(h.dot(h)), sqrt(h.x * h.x + h.y * h.y)
    plane = flat < 1e-14 * length
    safe = where(plane, 1.0, flat)
    to_node = Vec(where(plane, 1.0, -h.y / safe), where(plane, 0.0, h.x / safe), 0.0 * flat)
    ahead = h.cross(to_node)
    latitude = atan2(r.dot(ahead) / length, r.dot(to_node))
    return a, e, atan2(flat, h.z), atan2(to_node.y, to_node.x), latitude - true, M


ASTRONOMICAL_UNIT = 149_597_870_700.0
"""Metres."""
LIGHT_SPEED = 299_792_458.0
"""m/s."""
STANDARD_GRAVITY = 9.80665
"""m/s², by which specific impulses are given in seconds."""


@dataclass(frozen=True)
class Planet:
    """Celestial body, as far as orbits ask.

    Args:
        name: of the body.
        mu: its gravitational parameter, m³/s².
        radius: equatorial, m.
        j2: second zonal harmonic.
        turning: rate of its own rotation about the z axis, rad/s.
        flattening: of its ellipsoid.
    """

    name: str
    mu: float
    radius: float
    j2: float = 0.0
    turning: float = 0.0
    flattening: float = 0.0


EARTH = Planet("Earth", 3.986004418e14, 6378137.0, 1.08262668e-3, 7.292115146706979e-5, 1.0 / 298.257223563)
MOON = Planet("Moon", 4.902800066e12, 1737400.0, 2.0330e-4, 2.6617e-6)
MARS = Planet("Mars", 4.282837e13, 3396190.0, 1.96045e-3, 7.088218e-5, 1.0 / 169.89)
SUN = Planet("Sun", 1.32712440018e20, 695_700_000.0)


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
