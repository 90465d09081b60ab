"""Magnetic field of the Earth over any scalar, a dipole or the IGRF's harmonics, and coils that turn a craft by it."""

from __future__ import annotations

import bisect
import datetime
import math
from typing import Any

import numpy as np

from linkwise.checks import check_not_negative
from linkwise.dataclass import Alike
from linkwise.errors import InputError, require_extra
from linkwise.model.model import Model
from linkwise.sim.elements import Vector, Wrenches
from linkwise.space.harmonics import Harmonics
from linkwise.space.kepler import Planet
from linkwise.space.placed import Placed
from linkwise.space.sky import AnySky
from linkwise.space.wheels import Command, asked, checked_command
from linkwise.spatial.scalar import Scalar, within
from linkwise.spatial.vectors import Vec

_RADIUS = 6371200.0  # of the IGRF, m


class MagneticField(Alike):
    """Magnetic field in axes that turn with the planet, in tesla.

    Args:
        harmonics: the potential's; its gradient, reversed, is the field.

    >>> north = MagneticField.dipole().at(Vec(0.0, 0.0, 7e6))
    >>> north.z < 0  # down, at the pole in the north
    True
    """

    def __init__(self, harmonics: Harmonics) -> None:
        self.harmonics = harmonics

    def __repr__(self) -> str:
        return f"<MagneticField {self.harmonics.name!r}, degree {self.harmonics.degree}>"

    @classmethod
    def of_schmidt(cls, coefficients: dict[tuple[int, int], tuple[float, float]], name: str) -> MagneticField:
        """Field from coefficients (g, h) in tesla, normalised after Schmidt, as those of the IGRF are."""
        full = {(n, m): (g / math.sqrt(2 * n + 1), h / math.sqrt(2 * n + 1)) for (n, m), (g, h) in coefficients.items()}
        return cls(Harmonics(_RADIUS**2, _RADIUS, full, name))

    @classmethod
    def dipole(cls, g10: float = -29350.0e-9, g11: float = -1410.3e-9, h11: float = 4545.5e-9) -> MagneticField:
        """Tilted dipole from the three coefficients of degree one, tesla; those of 2025 if not given."""
        return cls.of_schmidt({(1, 0): (g10, 0.0), (1, 1): (g11, h11)}, "dipole")

    @classmethod
    def igrf(cls, date: str, degree: int = 13) -> MagneticField:
        """Field of the IGRF at a date as ``"2026-03-01"``, up to a degree; needs the extra ``space`` (ppigrf)."""
        ppigrf: Any = require_extra("ppigrf.ppigrf", "space")
        if not 1 <= degree <= 13:
            raise InputError("the IGRF has degrees 1 to 13", got=repr(degree))
        g, h = ppigrf.read_shc()
        when = datetime.datetime.fromisoformat(date)
        times = [moment.to_pydatetime() for moment in g.index]
        if not times[0] <= when <= times[-1]:
            raise InputError(
                "the date lies outside the table of the IGRF",
                got=date,
                allowed=f"{times[0]:%Y-%m-%d} to {times[-1]:%Y-%m-%d}",
                do="install a newer ppigrf, or give coefficients to MagneticField.of_schmidt",
            )
        k = min(bisect.bisect_right(times, when) - 1, len(times) - 2)
        part: float = (when - times[k]) / (times[k + 1] - times[k])

        def between(table: Any, n: int, m: int) -> float:
            one, two = (float(table[n, m].iloc[k + step]) for step in (0, 1))
            return (one + part * (two - one)) * 1e-9

        pairs = {(n, m): (between(g, n, m), between(h, n, m)) for n in range(1, degree + 1) for m in range(n + 1)}
        return cls.of_schmidt(pairs, f"IGRF at {date}")

    def at(self, r: Vec) -> Vec:
        """Field at a place in m from the planet's centre, tesla, in axes that turn with the planet."""
        return -self.harmonics.gradient(r)


class Torquer(Placed):
    """Three coils on a body: the moment m × B, with m their dipole in the body's axes and B the planet's field.

    Args:
        model: the mechanism.
        body: name of the body that they are on.
        dipole: A m² along the body's axes (3), or a function ``(t, q, v, p)`` of them. A law that needs the field asks
            for :meth:`field_at`.
        field: the planet's; a tilted dipole if not given.
        limit: largest dipole of each coil, A m².
        sky: as of :class:`Placed`, as is ``planet``.
    """

    is_actuator = True

    def __init__(
        self,
        model: Model,
        body: str,
        dipole: Command,
        *,
        field: MagneticField | None = None,
        limit: float = np.inf,
        sky: AnySky | None = None,
        planet: Planet | None = None,
    ) -> None:
        super().__init__(model, about=body, sky=sky, planet=planet)
        check_not_negative(limit=limit, or_infinite=True)
        self.dipole, self.limit = checked_command(dipole, 3, "the dipole"), float(limit)
        if isinstance(self.dipole, np.ndarray):
            self.dipole = tuple(self.dipole.tolist())
        self.field = MagneticField.dipole() if field is None else field

    def field_at(self, t: Scalar, q: Vector, x: Vector, p: Vector) -> Vec:
        """Magnetic field in the body's axes, tesla."""
        R, place = self.pose(q, p, self.about)
        fixed = self.sky.to_fixed(t, self.sky_numbers(x))
        return R.transpose_times(fixed.transpose_times(self.field.at(fixed @ (self.origin(t, x)[0] + place))))

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """The moment on the body."""
        m = asked(self.dipole, t, q, v, p, 3, "the dipole")
        m = [within(each, -self.limit, self.limit) for each in m]
        return {self.about: [*Vec.of(m).cross(self.field_at(t, q, x, p)), 0.0, 0.0, 0.0]}
