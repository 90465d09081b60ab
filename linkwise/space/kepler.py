"""Celestial bodies, and the motion of two of them over any scalar: Kepler's equation, elements and states.

Elements are the six numbers (a, e, i, node, perigee, anomaly): semi-major axis in m, eccentricity, and the angles in
rad of inclination, ascending node, perigee (from the node) and mean anomaly. An open orbit, a hyperbola, has e > 1 and
a negative a, and its mean anomaly is e sinh H - H, which grows without end.
"""

from __future__ import annotations

from typing import NamedTuple

from linkwise.dataclass import dataclass
from linkwise.spatial.scalar import Scalar, atan2, cos, cosh, exp, hold, is_zero, log, sin, sinh, sqrt, where
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
