"""Sunlight behind a planet: the visible part of the Sun's disc, over any scalar."""

from __future__ import annotations

import math

from linkwise.spatial.scalar import Scalar, atan2, clip, sqrt, where
from linkwise.spatial.vectors import Vec


def sunlit(r: Vec, sun: Vec, planet_radius: Scalar, sun_radius: Scalar = 695_700_000.0) -> Scalar:
    """Fraction of the Sun's disc that is seen from r: 1 in light, 0 in the umbra, between them in the penumbra.

    Args:
        r: place, from the planet's centre, m.
        sun: the Sun's place, from the planet's centre, m.
        planet_radius: of the planet, a sphere, m.
        sun_radius: of the Sun, m, a small part of its distance; 0 makes the edge of the shadow sharp.
    """
    to_sun = sun - r
    near, far = sqrt(r.dot(r)), sqrt(to_sun.dot(to_sun))
    across = to_sun.cross(r)
    # Angular radii a and b of Sun and planet, and c between their centres; d = c - b is where the planet's edge is.
    scale = 1.0 / (near * far)
    sin_a, sin_b = near * scale * sun_radius, clip(far * scale * planet_radius, 0.0, 1.0)
    cos_b = sqrt(1.0 - sin_b * sin_b)
    sin_c, cos_c = sqrt(across.dot(across)) * scale, -(to_sun.dot(r) * scale)
    sin_d, cos_d = sin_c * cos_b - cos_c * sin_b, cos_c * cos_b + sin_c * sin_b
    if isinstance(sun_radius, (int, float)) and sun_radius == 0.0:
        return where((cos_d > 0.0) & (sin_d < 0.0), 0.0, 1.0)
    a, b = _small_arc_sine(sin_a), atan2(sin_b, cos_b)
    d = _small_arc_sine(clip(sin_d, -sin_a, sin_a))
    c = b + d
    # Two discs in a plane: how much of the first the second hides.
    apart = where(c > 1e-12, c, 1e-12)
    x = (d * (c + b) + a * a) / (apart + apart)
    y = sqrt(where(a * a - x * x > 0.0, a * a - x * x, 0.0))
    whole = 1.0 / (a * a)
    hidden = a * a * atan2(y, x) + b * b * atan2(y, c - x) - c * y
    partly = 1.0 - hidden * whole * (1.0 / math.pi)
    inside = where(b > a, 0.0, 1.0 - b * b * whole)
    lit = (cos_d <= 0.0) | (sin_d >= sin_a)
    return where(lit, 1.0, where((sin_d <= -sin_a) | (c <= a - b), inside, partly))


def _small_arc_sine(x: Scalar) -> Scalar:
    """Arc sine, by its series: of the Sun's angular radius to all digits; of 0.1 to eleven."""
    z = x * x
    return x * (1.0 + z * (1 / 6 + z * (3 / 40 + z * (5 / 112 + z * (35 / 1152)))))
