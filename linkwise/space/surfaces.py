"""Surfaces that air and light push on: facets, and the elements drag and sunlight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from linkwise.checks import check_not_negative, check_positive
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import FrameKey, Vector, Wrenches, checked_direction, checked_numbers
from linkwise.space.kepler import ASTRONOMICAL_UNIT, LIGHT_SPEED, Planet
from linkwise.space.placed import Placed
from linkwise.space.sky import AnySky, sunlit
from linkwise.spatial.scalar import Scalar, sqrt, where
from linkwise.spatial.vectors import Vec

SOLAR_FLUX = 1361.0
"""W/m² at one astronomical unit."""


@dataclass(frozen=True)
class Facet:
    """Flat piece of a craft's outside, seen from one side.

    Args:
        body: name of the body that it is on, or of a frame.
        area: m².
        normal: outward, in the body's axes, or in those of the node; None for a ball, which looks the same from
            everywhere.
        place: where pressure acts, in the same frame, m.
        specular: part of the light that it mirrors.
        diffuse: part of the light that it scatters.
        drag: coefficient of drag, for the area that the flow sees.
        node: of a flexible body, the node that it is on.
    """

    body: str
    area: float
    normal: tuple[float, float, float] | None
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    specular: float = 0.0
    diffuse: float = 0.0
    drag: float = 2.2
    node: str | int | None = None

    def __post_init__(self) -> None:
        check_positive(area=self.area)
        check_not_negative(specular=self.specular, diffuse=self.diffuse, drag=self.drag)
        if self.specular + self.diffuse > 1.0:
            raise InputError(
                "a facet sends back more light than it gets",
                got=f"specular + diffuse = {self.specular + self.diffuse:g}",
                allowed="at most 1",
            )
        object.__setattr__(self, "place", tuple(checked_numbers(self.place, 3, "the place").tolist()))
        if self.normal is not None:
            normal = checked_direction(self.normal, "the normal of a facet")
            object.__setattr__(self, "normal", tuple(normal.tolist()))

    @property
    def key(self) -> FrameKey:
        """Its place, as wrenches name it."""
        return self.body if self.node is None else (self.body, self.node)

    @classmethod
    def box(cls, body: str, size: Sequence[float], **others: Any) -> tuple[Facet, ...]:
        """Six facets of a box (3) in m about a body's origin; ``others`` as of a facet, ``place`` is its middle.

        >>> [facet.area for facet in Facet.box("hub", (1.0, 2.0, 3.0))][::2]
        [6.0, 3.0, 2.0]
        """
        lengths = checked_numbers(size, 3, "the size")
        middle = np.asarray(others.pop("place", (0.0, 0.0, 0.0)), float)
        made = []
        for axis in range(3):
            area = float(np.prod(np.delete(lengths, axis)))
            for side in (1.0, -1.0):
                normal = side * np.eye(3)[axis]
                place = middle + normal * lengths[axis] / 2
                made.append(cls(body, area, tuple(normal.tolist()), tuple(place.tolist()), **others))
        return tuple(made)

    @classmethod
    def plate(cls, body: str, area: float, normal: Sequence[float], **others: Any) -> tuple[Facet, Facet]:
        """Both sides of a thin plate; ``others`` as of a facet."""
        n = np.asarray(normal, float)
        front, back = (cls(body, area, tuple((side * n).tolist()), **others) for side in (1.0, -1.0))
        return front, back


class Air(Protocol):
    """Air whose density follows from the altitude."""

    def density(self, altitude: Scalar) -> Scalar:
        """Density at an altitude in m, kg/m³."""


class OnFacets(Placed):
    """Pressure on facets: the base of drag and sunlight."""

    by_place: tuple[tuple[FrameKey, tuple[Facet, ...]], ...]
    """Facets by the body, or body and node, that they are on."""

    @property
    def facets(self) -> tuple[Facet, ...]:
        """All facets."""
        return tuple(facet for _, own in self.by_place for facet in own)

    def _take(self, facets: Facet | Sequence[Facet]) -> tuple[tuple[FrameKey, tuple[Facet, ...]], ...]:
        given = (facets,) if isinstance(facets, Facet) else tuple(facets)
        if not given or not all(isinstance(facet, Facet) for facet in given):
            raise InputError("nothing to push on", got=repr(facets)[:80], allowed="lw.space.Facet(...), one or several")
        found: dict[FrameKey, tuple[Facet, ...]] = {}
        for facet in given:
            self.model.frame(facet.body, facet.node)  # says what is wrong with a name
            found[facet.key] = (*found.get(facet.key, ()), facet)
        return tuple(found.items())

    def pushed(self, force: Callable[[Facet], Vec], facets: Sequence[Facet]) -> Vector:
        """Wrench (6) at the origin of the frame that facets are on, of a force on each of them in its axes."""
        moment, total = Vec.zero(), Vec.zero()
        for facet in facets:
            push = force(facet)
            moment, total = moment + Vec.of(facet.place).cross(push), total + push
        return [*moment, *total]


class Drag(OnFacets):
    """Drag of thin air on facets: -½ ρ c_d A_seen |v| v each, with v against the air, where A_seen faces the flow.

    Facets do not shade each other. Density is taken once, where the body ``about`` is.

    Args:
        model: the mechanism.
        facets: one or several.
        air: :class:`~linkwise.space.Exponential`, :class:`~linkwise.space.Layers`, or anything with ``density``.
        turning: whether the air turns with the planet.
        about: as of :class:`Placed`, as are ``sky`` and ``planet``.
    """

    def __init__(
        self,
        model: Model,
        facets: Facet | Sequence[Facet],
        air: Air,
        *,
        turning: bool = True,
        about: str | None = None,
        sky: AnySky | None = None,
        planet: Planet | None = None,
    ) -> None:
        super().__init__(model, about=about, sky=sky, planet=planet)
        if not hasattr(air, "density"):
            raise InputError("this is no air", got=repr(air), allowed="lw.space.Exponential(...), lw.space.Layers(...)")
        self.air, self.turning, self.by_place = air, bool(turning), self._take(facets)

    def altitude(self, origin: Vec, q: Vector, p: Vector) -> Scalar:
        """Height of the craft above the planet's ellipsoid, m."""
        here = origin + self.pose(q, p, self.about)[1]
        altitude = sqrt(here.dot(here)) - self.planet.radius
        if self.planet.flattening:
            altitude = altitude + (self.planet.radius * self.planet.flattening) * (
                here.z * here.z * (1.0 / here.dot(here))
            )
        return altitude

    def trouble(self, t: float, q: Vector, v: Vector, x: Vector, p: Vector) -> str:
        """Sentence on the height of the craft, and the air there."""
        return f"the craft is {self.altitude(self.origin(t, x)[0], q, p) / 1e3:.4g} km high, in {self.air!r}"

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """At the bodies' origins."""
        origin, speed = self.origin(t, x)
        half = self.air.density(self.altitude(origin, q, p)) * 0.5
        spin = Vec(0.0, 0.0, self.planet.turning if self.turning else 0.0)
        found: Wrenches = {}
        for key, facets in self.by_place:
            name, node = key if isinstance(key, tuple) else (key, None)
            R, place = self.pose(q, p, name, node)
            omega, rate = self.velocity(q, v, p, name, node, reference="local")
            against = rate + R.transpose_times(speed - spin.cross(origin + place))  # the air, at the frame's origin
            turning = omega - R.transpose_times(spin)

            def push(facet: Facet, against: Vec = against, turning: Vec = turning) -> Vec:
                flow = against + turning.cross(Vec.of(facet.place))
                seen = sqrt(flow.dot(flow)) if facet.normal is None else Vec.of(facet.normal).dot(flow)
                if facet.normal is not None:
                    seen = where(seen > 0.0, seen, 0.0)  # the area that it shows, times |v|
                pressed: Vec = flow * (half * (-facet.drag * facet.area) * seen)
                return pressed

            found[key] = self.pushed(push, facets)
        return found


class Sunlight(OnFacets):
    """Pressure of sunlight on facets, with the planet's shadow and its penumbra.

    Facets do not shade each other. Light is taken once, where the body ``about`` is.

    Args:
        model: the mechanism.
        facets: one or several.
        flux: at one astronomical unit, W/m².
        shadow: whether the planet casts one.
        about: as of :class:`Placed`, as are ``sky`` and ``planet``.
    """

    def __init__(
        self,
        model: Model,
        facets: Facet | Sequence[Facet],
        *,
        flux: float = SOLAR_FLUX,
        shadow: bool = True,
        about: str | None = None,
        sky: AnySky | None = None,
        planet: Planet | None = None,
    ) -> None:
        super().__init__(model, about=about, sky=sky, planet=planet)
        check_positive(flux=flux)
        self.flux, self.shadow, self.by_place = float(flux), bool(shadow), self._take(facets)

    def light(self, t: Scalar, q: Vector, x: Vector, p: Vector) -> tuple[Scalar, Vec]:
        """Pressure of the light in N/m², 0 in the umbra, and the unit vector to the Sun in the world's axes."""
        here = self.origin(t, x)[0] + self.pose(q, p, self.about)[1]
        sun = self.sky.sun(t, self.sky_numbers(x))
        away = sun - here
        far = sqrt(away.dot(away))
        if self.shadow:
            near = sqrt(here.dot(here))
            inverse, seen = near * (1.0 / (near * far)), sunlit(here, sun, self.planet.radius)  # one division for both
        else:
            inverse, seen = 1.0 / far, 1.0
        pressure = (inverse * inverse) * (self.flux / LIGHT_SPEED * ASTRONOMICAL_UNIT**2) * seen
        return pressure, away * inverse

    def wrench(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Wrenches:
        """At the bodies' origins."""
        pressure, to_sun = self.light(t, q, x, p)
        found: Wrenches = {}
        for key, facets in self.by_place:
            name, node = key if isinstance(key, tuple) else (key, None)
            s = self.pose(q, p, name, node)[0].transpose_times(to_sun)

            def push(facet: Facet, s: Vec = s) -> Vec:
                whole = pressure * -facet.area
                if facet.normal is None:  # a ball: mirrored light pushes as absorbed light does, scattered light more
                    pressed: Vec = s * (whole * (1.0 + facet.diffuse * (4.0 / 9.0)))
                else:
                    n = Vec.of(facet.normal)
                    c = n.dot(s)
                    c = where(c > 0.0, c, 0.0)
                    seen = whole * c
                    along = seen * (c * (2.0 * facet.specular) + facet.diffuse * (2.0 / 3.0))
                    pressed = s * (seen * (1.0 - facet.specular)) + n * along
                return pressed

            found[key] = self.pushed(push, facets)
        return found
