"""Celestial bodies: what an orbit goes around, and what else pulls."""

from __future__ import annotations

from linkwise.dataclass import dataclass

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
