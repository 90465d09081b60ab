"""Tanks: mass, centre and inertia of what is in them, by how much there is; and the sloshing of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.checks import check_not_negative, check_positive
from linkwise.dataclass import Alike
from linkwise.errors import InputError
from linkwise.joints import Prismatic, Universal
from linkwise.mechanism.placement import transform
from linkwise.model.model import ModelBuilder
from linkwise.sim.elements import checked_direction, checked_numbers
from linkwise.spatial.scalar import Scalar, where
from linkwise.spatial.vectors import Vec


class Tank(Alike):
    """Propellant in a tank: its mass centre and inertia follow from its mass.

    In the model the propellant is a body of its own, welded to the one that carries the tank, which :meth:`add` adds;
    the tank's shell belongs to the carrier. Made by :meth:`sphere`, :meth:`cylinder` or :meth:`table`.

    Args:
        body: name of the propellant's body.
        propellant: mass at the start, kg.
        masses: (n) increasing from 0, kg: where the tables are given.
        centres: (n, 3) mass centre in the body's frame, m.
        inertias: (n, 6) about the mass centre, xx, yy, zz, xy, xz, yz, divided by the mass, m².
    """

    def __init__(
        self, body: str, propellant: float, masses: ArrayLike, centres: ArrayLike, inertias: ArrayLike
    ) -> None:
        m, c, J = (np.asarray(values, float) for values in (masses, centres, inertias))
        if m.ndim != 1 or len(m) < 2 or c.shape != (len(m), 3) or J.shape != (len(m), 6) or not (np.diff(m) > 0).all():
            raise InputError(
                "the tables of a tank do not fit together",
                got=f"masses {m.shape}, centres {c.shape}, inertias {J.shape}",
                allowed="(n) increasing, (n, 3), (n, 6)",
            )
        if not np.isfinite(propellant) or not propellant > 0.0:
            raise InputError("the tank is empty", got=f"{propellant} kg", allowed="more than 0 kg at the start")
        if propellant > m[-1] * (1.0 + 1e-12):
            raise InputError("the tank cannot hold so much", got=f"{propellant} kg", allowed=f"up to {m[-1]} kg")
        self.body, self.propellant = body, float(propellant)
        self.masses = tuple(m.tolist())
        self.centres, self.inertias = (tuple(map(tuple, values.tolist())) for values in (c, J))

    def __repr__(self) -> str:
        return f"<Tank {self.body!r}: {self.propellant:g} of {self.capacity:g} kg>"

    @property
    def capacity(self) -> float:
        """Mass that it holds at most, kg."""
        return float(self.masses[-1])

    @classmethod
    def sphere(cls, body: str, radius: float, propellant: float, capacity: float | None = None) -> Tank:
        """Sphere about the body's origin, filled evenly: the density falls as it empties.

        Args:
            body: name of the propellant's body.
            radius: m.
            propellant: mass at the start, kg.
            capacity: kg; as much as there is at the start if not given.
        """
        check_positive(radius=radius)
        full = max(propellant, 1e-300) if capacity is None else capacity
        J = [0.4 * radius**2] * 3 + [0.0] * 3
        return cls(body, propellant, [0.0, full], np.zeros((2, 3)), [J, J])

    @classmethod
    def cylinder(
        cls,
        body: str,
        radius: float,
        length: float,
        propellant: float,
        capacity: float | None = None,
        *,
        settled: bool = False,
    ) -> Tank:
        """Cylinder along the body's z axis about its origin; filled evenly, or settled on its lower end.

        Args:
            body: name of the propellant's body.
            radius: m.
            length: m.
            propellant: mass at the start, kg.
            capacity: kg; as much as there is at the start if not given.
            settled: whether the propellant lies at the end towards -z, so that its centre moves as it empties.
        """
        check_positive(radius=radius, length=length)
        full = max(propellant, 1e-300) if capacity is None else capacity
        part = np.linspace(0.0, 1.0, 33 if settled else 2)
        height = length * part if settled else np.full(2, length)
        across = radius**2 / 4.0 + height**2 / 12.0
        zero = np.zeros(len(part))
        J = np.column_stack([across, across, np.full(len(part), radius**2 / 2.0), zero, zero, zero])
        centres = np.column_stack([zero, zero, 0.5 * (height - length)])
        return cls(body, propellant, full * part, centres, J)

    @classmethod
    def table(cls, body: str, propellant: float, masses: ArrayLike, centres: ArrayLike, inertias: ArrayLike) -> Tank:
        """Tank by tables over the mass that is left: centres (n, 3) in m, inertias (n, 6) about them in kg m².

        At no mass at all the inertia per mass is that of the next entry.
        """
        m, J = np.asarray(masses, float), np.asarray(inertias, float)
        if m.ndim != 1 or J.shape != (len(m), 6) or len(m) < 2:
            raise InputError(
                "the tables of a tank do not fit together", got=f"{m.shape}, {J.shape}", allowed="(n), (n, 6)"
            )
        each = J / np.where(m > 0.0, m, 1.0)[:, None]
        each[0] = each[1] if m[0] == 0.0 else each[0]
        return cls(body, propellant, m, centres, each)

    def content(self, mass: Scalar) -> tuple[Vec, list[Scalar]]:
        """Mass centre (3) in m and inertia (6) about it in kg m², of so much propellant in kg."""
        centre, inertia = list(self.centres[0]), list(self.inertias[0])
        for k in range(len(self.masses) - 1):
            a, b = self.masses[k], self.masses[k + 1]
            s = (mass - a) * (1.0 / (b - a))
            here = mass >= a
            for values, table in ((centre, self.centres), (inertia, self.inertias)):
                for i, (low, high) in enumerate(zip(table[k], table[k + 1], strict=True)):
                    value = low if low == high else low + s * (high - low)
                    values[i] = value if k == 0 else where(here, value, values[i])
        return Vec.of(centre), [mass * each for each in inertia]

    def add(self, builder: ModelBuilder, parent: str, placement: ArrayLike | None = None) -> None:
        """Add the propellant, as it is at the start, to a model that is being built.

        Args:
            builder: of the model.
            parent: body that carries the tank.
            placement: 4×4 of the tank's frame in the parent's.
        """
        centre, J = self.content(self.propellant)
        xx, yy, zz, xy, xz, yz = (float(value) for value in J)
        builder.add_body(
            self.body,
            parent,
            placement=np.eye(4) if placement is None else placement,
            mass=self.propellant,
            com=tuple(float(x) for x in centre),
            inertia=[[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]],
        )


def add_pendulum(
    builder: ModelBuilder,
    name: str,
    parent: str,
    *,
    mass: float,
    length: float,
    hinge: Sequence[float] = (0.0, 0.0, 0.0),
    down: Sequence[float] = (0.0, 0.0, -1.0),
    damping: float = 0.0,
) -> None:
    """Add sloshing propellant as a pendulum, a particle that slides in a sphere about its hinge.

    Args:
        builder: of the model.
        name: of the pendulum's body.
        parent: body that carries the tank.
        mass: that sloshes, kg.
        length: of the pendulum, m.
        hinge: in the parent's frame, m.
        down: where it hangs at rest, in the parent's axes: against the acceleration of the craft.
        damping: at the hinge, N m s/rad.
    """
    check_positive(mass=mass, length=length)
    check_not_negative(damping=damping)
    d = checked_direction(down, "down")
    first = np.cross(d, np.eye(3)[int(np.argmin(np.abs(d)))])
    first = first / np.linalg.norm(first)
    second = np.cross(d, first)
    joint = Universal(tuple(first.tolist()), tuple(second.tolist()))
    builder.add_body(
        name, parent, joint, transform(xyz=tuple(hinge)), mass, tuple((d * length).tolist()), damping=damping
    )


def add_particle(
    builder: ModelBuilder,
    name: str,
    parent: str,
    axis: Sequence[float],
    *,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    place: Sequence[float] = (0.0, 0.0, 0.0),
) -> None:
    """Add sloshing propellant as a particle on a spring that slides along an axis.

    Args:
        builder: of the model.
        name: of the particle's body.
        parent: body that carries the tank.
        axis: along which it slides, in the parent's axes.
        mass: that sloshes, kg.
        stiffness: N/m.
        damping: N s/m.
        place: of the particle at rest, in the parent's frame, m.
    """
    check_positive(mass=mass)
    check_not_negative(stiffness=stiffness, damping=damping)
    builder.add_body(
        name,
        parent,
        Prismatic(tuple(checked_numbers(axis, 3, "the axis").tolist())),
        transform(xyz=tuple(place)),
        mass,
        stiffness=stiffness,
        damping=damping,
    )
