"""Sunlight behind a planet: the visible part of the Sun's disc, over any scalar."""

from __future__ import annotations

import math

from linkwise.spatial.scalar import Scalar, acos, asin, atan2, clip, sqrt, where
from linkwise.spatial.vectors import Vec


def sunlit(r: Vec, sun: Vec, planet_radius: Scalar, sun_radius: Scalar = 695_700_000.0) -> Scalar:
    """Fraction of the Sun's disc that is seen from r: 1 in light, 0 in the umbra, between them in the penumbra.

    Args:
        r: place, from the planet's centre, m.
        sun: the Sun's place, from the planet's centre, m.
        planet_radius: of the planet, a sphere, m.
        sun_radius: of the Sun, m; 0 makes the edge of the shadow sharp.
    """
    to_sun = sun - r
    far, near = sqrt(to_sun.dot(to_sun)), sqrt(r.dot(r))
    a = asin(clip(sun_radius / far, 0.0, 1.0))
    b = asin(clip(planet_radius / near, 0.0, 1.0))
    across = to_sun.cross(r)
    c = atan2(sqrt(across.dot(across)), -(to_sun.dot(r)))
    if isinstance(sun_radius, (int, float)) and sun_radius == 0.0:
        return where(c < b, 0.0, 1.0)
    # Two discs of angular radii a and b whose centres are c apart: how much of the first the second hides.
    apart = where(c > 1e-12, c, 1e-12)
    x = (c * c + a * a - b * b) / (2.0 * apart)
    y = sqrt(where(a * a - x * x > 0.0, a * a - x * x, 0.0))
    hidden = a * a * acos(clip(x / a, -1.0, 1.0)) + b * b * acos(clip((c - x) / b, -1.0, 1.0)) - c * y
    partly = 1.0 - hidden / (math.pi * a * a)
    inside = where(b > a, 0.0, 1.0 - b * b / (a * a))
    return where(c >= a + b, 1.0, where(c <= abs(b - a), inside, partly))
