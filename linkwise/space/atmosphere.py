"""Density of the air over altitude, over any scalar: an exponential, or a table."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_positive
from linkwise.dataclass import Alike
from linkwise.errors import InputError, require_extra
from linkwise.spatial.scalar import Scalar, exp, where

# Altitude in km, density in kg/m³: nodes of the exponential model that textbooks print.
_STANDARD = (
    (0, 1.225), (25, 3.899e-2), (30, 1.774e-2), (40, 3.972e-3), (50, 1.057e-3), (60, 3.206e-4), (70, 8.770e-5),
    (80, 1.905e-5), (90, 3.396e-6), (100, 5.297e-7), (110, 9.661e-8), (120, 2.438e-8), (130, 8.484e-9),
    (140, 3.845e-9), (150, 2.070e-9), (180, 5.464e-10), (200, 2.789e-10), (250, 7.248e-11), (300, 2.418e-11),
    (350, 9.518e-12), (400, 3.725e-12), (450, 1.585e-12), (500, 6.967e-13), (600, 1.454e-13), (700, 3.614e-14),
    (800, 1.170e-14), (900, 5.245e-15), (1000, 3.019e-15),
)  # fmt: skip


class Exponential(Alike):
    """Density ρ₀ exp(-(h - h₀)/H).

    Args:
        density: ρ₀, kg/m³.
        altitude: h₀, m.
        scale: H, m.

    >>> Exponential(1e-12, 400e3, 58e3).density(400e3)
    1e-12
    """

    def __init__(self, density: float, altitude: float, scale: float) -> None:
        check_positive(density=density, scale=scale)
        self.reference, self.altitude, self.scale = float(density), float(altitude), float(scale)

    def __repr__(self) -> str:
        return f"<Exponential: {self.reference:g} kg/m³ at {self.altitude / 1e3:g} km, scale {self.scale / 1e3:g} km>"

    def density(self, altitude: Scalar) -> Scalar:
        """Density at an altitude in m, kg/m³."""
        return exp((self.altitude - altitude) * (1.0 / self.scale)) * self.reference


class Layers(Alike):
    """Density from a table over altitude, exponential between its entries; outside of them it is not a number.

    A simulation that leaves the table ends there, and says so, instead of going on with a number nobody gave.

    Args:
        altitudes: (n) increasing, m.
        densities: (n) in kg/m³.

    >>> round(Layers.standard().density(425e3) * 1e12, 3)
    2.43
    """

    def __init__(self, altitudes: ArrayLike, densities: ArrayLike) -> None:
        h, rho = np.asarray(altitudes, float), np.asarray(densities, float)
        if h.ndim != 1 or h.shape != rho.shape or len(h) < 2 or not (np.diff(h) > 0).all() or not (rho > 0).all():
            raise InputError(
                "a table of densities does not make sense",
                got=f"altitudes {h.shape}, densities {rho.shape}",
                allowed="two or more increasing altitudes, a positive density for each",
            )
        self.altitudes, self.densities = tuple(h.tolist()), tuple(rho.tolist())

    def __repr__(self) -> str:
        low, high = self.altitudes[0] / 1e3, self.altitudes[-1] / 1e3
        return f"<Layers: {len(self.altitudes)} altitudes, {low:g} to {high:g} km>"

    @classmethod
    def standard(cls) -> Layers:
        """Layers up to 1000 km, of a mean Sun."""
        return cls([1e3 * h for h, _ in _STANDARD], [rho for _, rho in _STANDARD])

    @classmethod
    def msis(
        cls,
        date: str,
        *,
        solar_flux: float = 150.0,
        geomagnetic: float = 4.0,
        altitudes: ArrayLike | None = None,
    ) -> Layers:
        """Layers from the model NRLMSIS 2.1, as a mean over the globe; needs the extra ``space`` (pymsis).

        Args:
            date: as ``"2026-03-01T12:00"``, UTC.
            solar_flux: F10.7 and its mean, 1e-22 W/m²/Hz.
            geomagnetic: the index Ap.
            altitudes: (n) m; 100 to 1000 km if not given.
        """
        pymsis: Any = require_extra("pymsis", "space")
        heights = np.arange(100e3, 1000.1e3, 20e3) if altitudes is None else np.asarray(altitudes, float)
        when = np.datetime64(datetime.datetime.fromisoformat(date))
        longitudes, latitudes = np.arange(0.0, 360.0, 45.0), np.arange(-75.0, 76.0, 30.0)
        found = pymsis.calculate(
            when, longitudes, latitudes, heights * 1e-3, [solar_flux], [solar_flux], [[geomagnetic] * 7]
        )
        mass = np.asarray(found)[..., 0].reshape(len(longitudes), len(latitudes), len(heights))
        weights = np.cos(np.radians(latitudes))
        mean = (mass.mean(axis=0) * weights[:, None]).sum(axis=0) / weights.sum()
        return cls(heights, mean)

    def density(self, altitude: Scalar) -> Scalar:
        """Density at an altitude in m, kg/m³."""
        h, rho = self.altitudes, self.densities
        base, scale, reference = h[0], 0.0, rho[0]
        for k in range(len(h) - 1):
            inverse = math.log(rho[k + 1] / rho[k]) / (h[k + 1] - h[k])
            above = altitude >= h[k]
            base, scale, reference = (
                where(above, new, old) for new, old in ((h[k], base), (inverse, scale), (rho[k], reference))
            )
        value = reference * exp((altitude - base) * scale)
        value = where(altitude >= h[0], value, math.nan)
        return where(altitude <= h[-1], value, math.nan)
