"""Magnetic torquers: coils that turn a craft against the planet's magnetic field."""

from __future__ import annotations

import numpy as np

from linkwise.model.model import Model
from linkwise.sim.checks import check_not_negative
from linkwise.sim.elements import Vector, Wrenches
from linkwise.space.magnetism import MagneticField
from linkwise.space.placed import Placed
from linkwise.space.planets import Planet
from linkwise.space.sky import AnySky
from linkwise.space.wheels import Command, asked, checked_command
from linkwise.spatial.scalar import Scalar, within
from linkwise.spatial.vectors import Vec


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
