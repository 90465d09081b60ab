"""Elements that know where they are: in inertial axes about the planet, or in axes that fall along an orbit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Self

import numpy as np

from linkwise.algorithms.kinematics import Reference
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import Element, Vector, frame_pose, frame_velocity
from linkwise.sim.tables import Table
from linkwise.space.kepler import EARTH, Planet, state_at
from linkwise.space.orbit import Orbit
from linkwise.space.sky import AnySky, StillSky
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec


class Placed(Element):
    """Element that asks where the craft is: the base of gravity, drag, sunlight and magnetic torques.

    Args:
        model: the mechanism; its world has inertial axes, with the planet's centre as origin, or one that falls along
            an orbit (``simulate(..., frame=orbit)``).
        about: name of the body, or frame, that stands for the craft where a field is asked for once; the first body
            if not given.
        sky: how the planet turns and where the Sun is.
        planet: what the craft goes around.
    """

    is_actuator = False

    def __init__(
        self, model: Model, *, about: str | None = None, sky: AnySky | None = None, planet: Planet | None = None
    ) -> None:
        self.model = model
        self.about = model.bodies[0].name if about is None else about
        model.frame(self.about)  # says what is wrong with a name
        self.planet = planet or (EARTH if sky is None else sky.planet)
        self.sky: AnySky = StillSky(planet=self.planet) if sky is None else sky
        self.orbit: Orbit | None = None
        self.tables = self.sky.tables

    def along(self, orbit: Orbit) -> Self:
        """The same in a world that falls along an orbit."""
        if orbit.planet != self.planet:
            raise InputError(
                f"{type(self).__name__} and the orbit go around different planets",
                got=f"{self.planet.name} and {orbit.planet.name}",
            )
        tables = self.sky.tables
        if orbit.batch_shape:
            tables = (*tables, Table([0.0], orbit.numbers[..., None, :], "held"))
        made = object.__new__(type(self))
        made.__setstate__({**self.__getstate__(), "orbit": orbit, "tables": tables})
        return made

    @property
    def signature(self) -> Hashable:
        """Its numbers; those of tables, and of one orbit for each member of a batch, are read at run time."""
        facts = {name: value for name, value in vars(self).items() if name not in ("tables", "model", "_finished")}
        if self.orbit is not None and self.orbit.batch_shape:
            facts["orbit"] = (self.orbit.planet, self.orbit.conic().most)
        return (type(self), *facts.items())

    # In the axes of the world.
    def sky_numbers(self, x: Vector) -> list[Scalar]:
        """Numbers that the sky's tables give now."""
        first = self.nx + self.nh
        return list(x[first : first + self.sky.size])

    def origin(self, t: Scalar, x: Vector) -> tuple[Vec, Vec]:
        """Place in m and velocity in m/s of the world's origin, from the planet's centre."""
        if self.orbit is None:
            return Vec.zero(), Vec.zero()
        first = self.nx + self.nh + self.sky.size
        own = list(x[first:]) if self.orbit.batch_shape else None
        return state_at(self.orbit.conic(own), t)

    def pose(self, q: Vector, p: Vector, body: str, node: str | int | None = None) -> tuple[Mat3, Vec]:
        """Rotation and place of a body, frame or node in the world."""
        return frame_pose(self.model, q, p, body, node)

    def velocity(
        self, q: Vector, v: Vector, p: Vector, body: str, node: str | int | None = None, reference: Reference = "mixed"
    ) -> tuple[Vec, Vec]:
        """Angular velocity of a body, frame or node, and velocity of its origin; in the world's axes by default."""
        return frame_velocity(self.model, q, v, p, body, node, reference)


def entered(orbit: Orbit, model: Model, elements: Sequence[Element]) -> tuple[Element, ...]:
    """Elements as they act in a world that falls along an orbit; gravity is added where none of them is it."""
    from linkwise.space.craft_sensors import CraftSensor
    from linkwise.space.gravity import Gravity

    if np.any(model.gravity):
        raise InputError(
            "in a world that falls along an orbit there is no uniform gravity",
            got=f"model.gravity = {np.asarray(model.gravity).tolist()}",
            do="build the model with gravity=(0, 0, 0): the orbit's own gravity is added",
        )
    for element in elements:
        for sensor in getattr(element, "sensors", ()):
            craft = getattr(getattr(sensor, "output", None), "__self__", None)
            if isinstance(craft, CraftSensor) and craft.sees_place and craft.place.orbit != orbit:
                raise InputError(
                    f"{type(craft).__name__} in the loop does not know the orbit that the world falls along",
                    got=repr(craft.place.orbit),
                    do="give the sensor that orbit: orbit=…",
                )
    placed = tuple(element.along(orbit) if isinstance(element, Placed) else element for element in elements)
    if any(isinstance(element, Gravity) for element in placed):
        return placed
    return (*placed, Gravity(model, planet=orbit.planet).along(orbit))
