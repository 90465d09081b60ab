"""Gravity of a planet, the Sun and the Moon on every link and mode of a craft."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from linkwise.errors import InputError
from linkwise.model.model import Model
from linkwise.sim.elements import Field, Vector
from linkwise.space.harmonics import Harmonics, jgm3, oblateness
from linkwise.space.kepler import EARTH, MOON, SUN, Planet
from linkwise.space.orbit import difference_of_pull, inverse_cube, tensor_of_pull
from linkwise.space.placed import Placed
from linkwise.space.sky import AnySky
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, sqrt, where
from linkwise.spatial.vectors import Vec

_DEPTH = 0.01  # of a planet's radius: no valley is so deep
_OTHERS = {"sun": SUN.mu, "moon": MOON.mu}


class Gravity(Placed):
    """Gravity in orbit: it acts on every link at its own place, with its gradient, and on the modes of flexible ones.

    The planet's central pull is taken link by link, or once for the craft with its tidal tensor. Harmonics, Sun and
    Moon are taken once, where the body ``about`` is, with their tidal tensor for all links. In a world that falls along
    an orbit only the difference to the pull at its origin acts, written so that no digit is lost. Inside the planet,
    deeper than a hundredth of its radius, the field is not a number: a run that gets there ends, and says so.

    Build the craft with ``gravity=(0, 0, 0)``.

    Args:
        model: the mechanism.
        degree: of the harmonics: 0 for the central pull alone, ``"J2"`` for the flattening, or a number.
        field: harmonics to take; JGM-3 for the Earth if not given.
        others: which of ``"sun"`` and ``"moon"`` pull too.
        tidal_degree: degree up to which harmonics act differently on different links.
        each_link: whether the central pull is taken at each link's own place. False takes it where ``about`` is, with
            its gradient: less work, and right within (size of the craft / distance to the planet)².
        about: as of :class:`Placed`, as are ``sky`` and ``planet``.

    >>> from linkwise import samples
    >>> Gravity(samples.flexible_satellite(), degree=8).field.degree
    8
    """

    def __init__(
        self,
        model: Model,
        degree: int | str = 0,
        *,
        field: Harmonics | None = None,
        others: str | Sequence[str] = (),
        tidal_degree: int = 2,
        each_link: bool = True,
        about: str | None = None,
        sky: AnySky | None = None,
        planet: Planet | None = None,
    ) -> None:
        super().__init__(model, about=about, sky=sky, planet=planet)
        self.others = (others,) if isinstance(others, str) else tuple(others)
        unknown = [name for name in self.others if name not in _OTHERS]
        if unknown:
            raise InputError("nothing of this name pulls", got=repr(unknown[0]), allowed='"sun", "moon"')
        if "moon" in self.others:
            self.sky.moon(0.0, [0.0] * self.sky.size)  # says where there is none
        self.each_link = bool(each_link)
        self.field = self._harmonics(degree, field)
        self.tidal = (
            None if self.field is None or tidal_degree < 2 else self.field.up_to(min(tidal_degree, self.field.degree))
        )

    def _harmonics(self, degree: int | str, field: Harmonics | None) -> Harmonics | None:
        if degree == "J2":
            return oblateness(self.planet.mu, self.planet.radius, self.planet.j2)
        if not isinstance(degree, int) or degree < 0:
            raise InputError("this is not a degree of a field", got=repr(degree), allowed='0, "J2", 2, 3, …')
        if field is None and degree and self.planet != EARTH:
            raise InputError(
                f"no harmonics of {self.planet.name} are known",
                got=f"degree={degree}",
                do="give field=lw.space.Harmonics(...)",
            )
        if field is None:
            return jgm3().up_to(degree) if degree else None
        return field.up_to(degree) if degree else field

    @property
    def _turns(self) -> bool:
        """Whether the field turns with the planet."""
        return self.field is not None and any(m for _, m in self.field.coefficients)

    def _beside(self, t: Scalar, r: Vec, numbers: Sequence[Scalar]) -> tuple[Vec, Sym3]:
        """Acceleration at a place from the planet's centre, the central pull left out, and its gradient."""
        total, tensor = Vec.zero(), Sym3.zero()
        if self.field is not None:
            square = r.dot(r)
            R = self.sky.to_fixed(t, numbers) if self._turns else Mat3.identity()
            total = R.transpose_times(self.field.gradient(R @ r, square))
            if self.tidal is not None:
                tensor = tensor.plus(_turned(self.tidal.tensor(R @ r, square), R))
            more = self.field.mu - self.planet.mu  # fields have a constant of their own
            if more:
                total = total - r * (inverse_cube(r) * more)
        for name in self.others:
            place = self.sky.sun(t, numbers) if name == "sun" else self.sky.moon(t, numbers)
            total = total + difference_of_pull(-place, r, _OTHERS[name])
            tensor = tensor.plus(tensor_of_pull(r - place, _OTHERS[name]))
        return total, tensor

    def acceleration(self, t: Scalar, q: Vector, v: Vector, x: Vector, p: Vector) -> Field:
        """Field at a point in the world's axes, m/s², or the values at the world's origin of one that is linear."""
        origin = self.origin(t, x)[0]
        here = self.pose(q, p, self.about)[1]
        base, tensor = self._beside(t, origin + here, self.sky_numbers(x))
        base = base + Vec(self._inside(origin + here), 0.0, 0.0)
        if not self.each_link:
            base = base + self._central(origin, here)
            tensor = tensor.plus(tensor_of_pull(origin + here, self.planet.mu))
            return list(base - tensor @ here), tensor.m
        return lambda point: list(
            base + tensor @ (Vec.of(list(point)) - here) + self._central(origin, Vec.of(list(point)))
        )

    def _inside(self, r: Vec) -> Scalar:
        """Not a number inside the planet, where the field is another; else zero."""
        square, deepest = r.dot(r), (1.0 - _DEPTH) * self.planet.radius
        flat = square - (2.0 * self.planet.flattening) * (r.z * r.z)  # |r| < R (1 - f sin²) without root and division
        return where(square * square < flat * deepest**2, math.nan, 0.0)

    def trouble(self, t: float, q: Vector, v: Vector, x: Vector, p: Vector) -> str:
        """Sentence on the distance of the craft from the planet's centre."""
        r = self.origin(t, x)[0] + self.pose(q, p, self.about)[1]
        name, radius = self.planet.name, self.planet.radius / 1e3
        return f"the craft is {sqrt(r.dot(r)) / 1e3:.5g} km from the centre of {name}, whose radius is {radius:.5g} km"

    def _central(self, origin: Vec, place: Vec) -> Vec:
        """Central pull at a place in the world's axes; where the world falls, less that at its origin."""
        if self.orbit is not None:
            return difference_of_pull(origin, place, self.planet.mu)
        pull: Vec = place * (inverse_cube(place) * -self.planet.mu)
        return pull

    def potential(self, q: Vector, x: Vector, p: Vector) -> Callable[[Vector], Scalar] | None:
        """Potential at a point, J/kg, where it does not depend on the time."""
        if self.orbit is not None or self.others or self._turns:
            return None
        field = self.field
        mu = self.planet.mu if field is None else field.mu

        def at(point: Vector) -> Scalar:
            place = Vec.of(list(point))
            energy = -mu / sqrt(place.dot(place))
            return energy if field is None else energy - field.potential(place)

        return at


def _turned(tensor: Sym3, R: Mat3) -> Sym3:
    """R* T R."""
    half = tensor.times(R)
    return Sym3.build_symmetric(lambda i, j: R.column(i).dot(half.column(j)))
