"""Time and frames: how the planet turns, where Sun and Moon are over a span of dates, and where the Sun shines.

A sky is looked up inside the kernel: what changes slowly (the pole, Sun and Moon) is tabulated when the sky is made, by
ERFA's models, and read by cubic interpolation; the planet's turn is linear in time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_finite, check_positive
from linkwise.dataclass import Alike
from linkwise.errors import InputError, require_extra
from linkwise.sim.tables import Table
from linkwise.space.kepler import ASTRONOMICAL_UNIT, EARTH, Planet
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, atan2, clip, cos, sin, sqrt, where
from linkwise.spatial.vectors import Vec

_STEP = 1800.0  # s; the Moon's place by cubics is then good to a metre


class StillSky(Alike):
    """Sky in which the Sun stands still and the planet turns steadily about its z axis.

    Args:
        sun: direction of the Sun, or its place (3), m; a direction of length one is taken to be at 1 AU.
        angle: of the planet's axes at t = 0, rad.
        planet: which turns.

    >>> StillSky(sun=(0, 1, 0)).sun(0.0, ()).y
    149597870700.0
    """

    tables: tuple[Table, ...] = ()
    size = 0
    """Numbers that its tables give."""

    def __init__(self, sun: ArrayLike = (1.0, 0.0, 0.0), angle: float = 0.0, planet: Planet = EARTH) -> None:
        place = np.asarray(sun, float)
        far = float(np.linalg.norm(place)) if place.shape == (3,) else 0.0
        if not 0.0 < far < np.inf:
            raise InputError("the Sun has no direction", got=repr(sun), allowed="three numbers, not all 0")
        check_finite(angle=angle)
        self._sun = tuple((place * (ASTRONOMICAL_UNIT / far if far < 1e6 else 1.0)).tolist())
        self.angle, self.planet = float(angle), planet

    def __repr__(self) -> str:
        return f"<StillSky of {self.planet.name}>"

    def to_fixed(self, t: Scalar, numbers: Sequence[Scalar]) -> Mat3:
        """Rotation from inertial axes to those that turn with the planet."""
        return turn(self.angle + self.planet.turning * t)

    def sun(self, t: Scalar, numbers: Sequence[Scalar]) -> Vec:
        """Place of the Sun, m."""
        return Vec(*self._sun)

    def moon(self, t: Scalar, numbers: Sequence[Scalar]) -> Vec:
        """Place of the Moon: here it has none."""
        raise InputError("this sky has no Moon", got=repr(self), do='use lw.space.Sky("2026-03-01T00:00", duration)')


class Sky(Alike):
    """Sky of the Earth from a date on: rotation by IAU 2006/2000A, Sun and Moon; needs the extra ``space`` (pyerfa).

    The inertial axes are those of the GCRS. Motion of the pole on the ground is left out (10 m there).

    Args:
        start: date at t = 0, as ``"2026-03-01T12:00:00"``, UTC.
        duration: how long it is known, s; simulations that go beyond are refused.
        dut1: UT1 - UTC, s, from the bulletins.

    >>> Sky("2026-03-01T00:00:00", 86400.0)  # doctest: +SKIP
    <Sky from 2026-03-01T00:00:00, 24 h>
    """

    size = 10
    planet = EARTH

    def __init__(self, start: str, duration: float, *, dut1: float = 0.0) -> None:
        erfa: Any = require_extra("erfa", "space")
        check_positive(duration=duration)
        check_finite(dut1=dut1)
        try:
            moment = np.datetime64(start, "us")
        except ValueError:
            raise InputError("this is not a date", got=repr(start), allowed='as "2026-03-01T12:00:00", UTC') from None
        if np.isnat(moment):
            raise InputError("this is not a date", got=repr(start), allowed='as "2026-03-01T12:00:00", UTC')
        self.start, self.duration = start, float(duration)
        self._check_span(erfa, moment)
        day = moment.astype("datetime64[D]")
        base, part = 2440587.5 + float(day.astype(int)), float((moment - day) / np.timedelta64(1, "D"))
        tt = erfa.taitt(*erfa.utctai(base, part))
        ut1 = erfa.utcut1(base, part, dut1)
        times = np.linspace(0.0, self.duration, max(int(np.ceil(self.duration / _STEP)) + 1, 4))
        first, second = np.full(len(times), tt[0]), tt[1] + times / 86400.0
        X, Y, s = erfa.xys06a(first, second)
        sun = -_position(erfa.epv00(first, second)[0])
        moon = _position(erfa.moon98(first, second))
        angle = np.full(len(times), float(erfa.era00(*ut1) + erfa.sp00(*tt)))
        rows = np.column_stack([X, Y, s, sun * ASTRONOMICAL_UNIT, moon * ASTRONOMICAL_UNIT, angle])
        self.table = Table(times, rows, "cubic", outside="refuse")
        self.tables: tuple[Table, ...] = (self.table,)

    def _check_span(self, erfa: Any, moment: Any) -> None:
        """Refuse spans that the models do not cover, or in which seconds may have leapt that nobody knows of yet."""
        end = moment + np.timedelta64(int(self.duration * 1e6), "us")
        for when in (moment, end):
            year, month = (int(part) for part in str(when)[:7].split("-")[:2])
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                erfa.dat(year, month, 1, 0.0)
            if told or not 1960 <= year < 2100:
                raise InputError(
                    "the date lies outside what the time scales know",
                    got=str(when)[:19],
                    allowed="1960 to five years after the newest leap second that pyerfa knows",
                    do="install a newer pyerfa",
                )

    @property
    def facts(self) -> tuple[()]:
        """Nothing: all its numbers are in the table, so that other dates are compiled alike."""
        return ()

    def __repr__(self) -> str:
        return f"<Sky from {self.start}, {self.duration / 3600:g} h>"

    def at(self, t: ArrayLike) -> Any:
        """Tabulated numbers (..., 10) at times (...), s.

        The pole's X, Y and s; places of Sun and Moon, m; the Earth's angle at t = 0, rad.
        """
        times = np.asarray(t, float)
        if (times < 0.0).any() or (times > self.duration).any():
            raise InputError(
                "the time lies outside the sky's table", got=f"{times.min():g} to {times.max():g} s",
                allowed=f"0 to {self.duration:g} s after {self.start}", do="make a sky with a longer duration",
            )  # fmt: skip
        return self.table(times)

    def to_fixed(self, t: Scalar, numbers: Sequence[Scalar]) -> Mat3:
        """Rotation from the GCRS to the axes that turn with the Earth, from the numbers (10) of its table."""
        X, Y, s = numbers[:3]
        square = X * X + Y * Y
        a = 1.0 / (1.0 + sqrt(1.0 - square))
        pole = Mat3(((1.0 - a * X * X, -a * X * Y, -X), (-a * X * Y, 1.0 - a * Y * Y, -Y), (X, Y, 1.0 - a * square)))
        return turn(numbers[9] + EARTH.turning * t - s).times(pole)

    def sun(self, t: Scalar, numbers: Sequence[Scalar]) -> Vec:
        """Place of the Sun, m."""
        return Vec.of(numbers[3:6])

    def moon(self, t: Scalar, numbers: Sequence[Scalar]) -> Vec:
        """Place of the Moon, m."""
        return Vec.of(numbers[6:9])


AnySky = StillSky | Sky


def turn(angle: Scalar) -> Mat3:
    """Rotation to axes that are turned about z by an angle."""
    c, s = cos(angle), sin(angle)
    return Mat3(((c, s, 0.0), (-s, c, 0.0), (0.0, 0.0, 1.0)))


def _position(pair: Any) -> Any:
    """Places (n, 3) of ERFA's pairs of position and velocity."""
    return np.asarray(pair["p"] if pair.dtype.names else pair[..., 0, :])


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
