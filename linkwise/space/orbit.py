"""Orbits: elements to states and back, the frame that falls along one, and motion beside it.

Motion beside an orbit is by exact differences of gravity, and the equations of Hill, Clohessy and Wiltshire.

Hill's axes: x away from the planet, y along the orbit (towards the velocity of a circle), z along its normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.functions.scalar_arrays import scalar_array
from linkwise.memoized import cached_property
from linkwise.model.model import Model
from linkwise.sim.elements import Element
from linkwise.space.kepler import EARTH, Conic, Planet, elements_of, perifocal_axes, state_at
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Scalar, sqrt
from linkwise.spatial.vectors import Vec


def difference_of_pull(origin: Vec, offset: Vec, mu: Scalar) -> Vec:
    """Difference of a point's gravity between origin + offset and origin, in m/s², without loss of digits.

    Battin's way: with q = (ρ·ρ + 2 R·ρ)/R² the quotient of the cubes of both distances differs from one by F(q), which
    is written without a subtraction.
    """
    q = offset.dot(offset + origin * 2.0) * (1.0 / origin.dot(origin))
    cube = (1.0 + q) * sqrt(1.0 + q)
    F = q * (3.0 + q * (3.0 + q)) / (cube * (1.0 + cube))
    difference: Vec = (offset - (origin + offset) * F) * (inverse_cube(origin) * -mu)
    return difference


def inverse_cube(r: Vec) -> Scalar:
    """1/|r|³."""
    inverse = 1.0 / r.dot(r)
    return inverse * sqrt(inverse)


def tensor_of_pull(r: Vec, mu: Scalar) -> Sym3:
    """Gradient of a point's gravity at r from it: μ/r³ (3 r r* / r² - 1), 1/s²."""
    scale = inverse_cube(r) * mu
    along = r * (3.0 * (1.0 / r.dot(r)) * scale)
    return Sym3.build_symmetric(lambda i, j: along[i] * r[j] - (scale if i == j else 0.0))


def local_axes(r: Vec, v: Vec) -> tuple[Vec, Vec, Vec]:
    """Hill's axes x, y, z of a state, as unit vectors."""
    h = r.cross(v)
    x, z = r * (1.0 / sqrt(r.dot(r))), h * (1.0 / sqrt(h.dot(h)))
    return x, z.cross(x), z


def hill_transition(n: float, t: ArrayLike) -> Array:
    """Matrix (..., 6, 6) that leads from [position, velocity] in Hill's axes at 0 to those at t, s.

    Args:
        n: mean motion of the reference orbit, a circle, rad/s.
        t: time or times (...), s.

    >>> hill_transition(1e-3, 0.0).tolist() == np.eye(6).tolist()
    True
    """
    t = np.asarray(t, float)
    s, c = np.sin(n * t), np.cos(n * t)
    out = np.zeros((*t.shape, 6, 6))
    entries: dict[tuple[int, int], ArrayLike] = {
        (0, 0): 4 - 3 * c, (0, 3): s / n, (0, 4): 2 * (1 - c) / n,
        (1, 0): 6 * (s - n * t), (1, 1): 1.0, (1, 3): -2 * (1 - c) / n, (1, 4): (4 * s - 3 * n * t) / n,
        (2, 2): c, (2, 5): s / n,
        (3, 0): 3 * n * s, (3, 3): c, (3, 4): 2 * s,
        (4, 0): -6 * n * (1 - c), (4, 3): -2 * s, (4, 4): 4 * c - 3,
        (5, 2): -n * s, (5, 5): c,
    }  # fmt: skip
    for (i, j), value in entries.items():
        out[..., i, j] = value
    return out


def hill_transfer(n: float, start: ArrayLike, end: ArrayLike, duration: float) -> tuple[Array, Array]:
    """Velocities (..., 3) at both ends of a way between two places in Hill's axes, by the linear equations.

    Args:
        n: mean motion of the reference orbit, a circle, rad/s.
        start: place at 0 (..., 3), m.
        end: place at the end (..., 3), m.
        duration: s; whole half turns of the orbit have no answer out of the plane.

    >>> v, _ = hill_transfer(1.0780076e-3, [0.0, -1000.0, 0.0], [0.0, 0.0, 0.0], 1457.129)
    >>> v.round(6).tolist()
    [-0.6558, 0.3279, 0.0]
    """
    matrix = hill_transition(n, duration)
    near, rate = matrix[:3, :3], matrix[:3, 3:]
    if np.linalg.cond(rate * n) > 1e9:
        raise InputError(
            "in this time every velocity leads to the same place", got=f"{duration} s", do="choose another duration"
        )
    first, last = np.asarray(start, float), np.asarray(end, float)
    v0 = np.linalg.solve(rate, (last - first @ near.T)[..., None])[..., 0]
    v1 = first @ matrix[3:, :3].T + v0 @ matrix[3:, 3:].T
    return v0, v1


NAMES = ("a", "e", "i", "node", "perigee", "anomaly")


class Orbit:
    """Orbit around a planet: an ellipse or a hyperbola in inertial axes, with the planet's centre as origin.

    Elements may have batch axes (...), one orbit for each member of a batch: all closed, or all open.

    Args:
        a: semi-major axis, m; negative for an open orbit.
        e: eccentricity, 0 <= e < 1; above 1 for an open orbit. A parabola, e = 1, lies between them and has no a.
        i: inclination, rad.
        node: longitude of the ascending node, rad.
        perigee: angle from the node to the perigee, rad.
        anomaly: mean anomaly at t = 0, rad.
        planet: what it goes around.
        through_ground: whether the perigee may lie inside the planet, as that of a ballistic flight does.

    >>> orbit = Orbit(a=7e6, e=0.01, i=0.9)
    >>> round(orbit.period, 3)
    5828.517
    >>> r, v = orbit.state(orbit.period)
    >>> bool(np.allclose(r, orbit.state(0.0)[0]))
    True
    """

    def __init__(
        self,
        a: ArrayLike,
        e: ArrayLike = 0.0,
        i: ArrayLike = 0.0,
        node: ArrayLike = 0.0,
        perigee: ArrayLike = 0.0,
        anomaly: ArrayLike = 0.0,
        *,
        planet: Planet = EARTH,
        through_ground: bool = False,
    ) -> None:
        if not isinstance(planet, Planet):
            raise InputError("this is not a planet", got=repr(planet), allowed="lw.space.Planet(...)")
        try:
            numbers = [np.asarray(value, float) for value in (a, e, i, node, perigee, anomaly)]
        except (TypeError, ValueError):
            raise InputError("elements of an orbit are numbers", got=repr((a, e, i, node, perigee, anomaly))) from None
        for name, value in zip(NAMES, numbers, strict=True):
            if not np.isfinite(value).all():
                raise InputError(f"the element {name!r} of an orbit is not finite", got=repr(value.tolist()))
        try:
            elements = np.stack(np.broadcast_arrays(*numbers), axis=-1)
        except ValueError:
            shapes = ", ".join(f"{name} {value.shape}" for name, value in zip(NAMES, numbers, strict=True))
            raise InputError("the batches of an orbit's elements do not fit together", got=shapes) from None
        size, shape = elements[..., 0], elements[..., 1]
        if ((shape < 0.0) | (shape == 1.0)).any():
            raise InputError(
                "an orbit that closes has 0 <= e < 1, an open one e > 1",
                got=f"e = {_first(shape, (shape < 0) | (shape == 1))}",
                do="a parabola is the limit of both: take e = 1.00000001",
            )
        tilt = elements[..., 2]
        if ((tilt < 0.0) | (tilt > math.pi)).any():
            raise InputError(
                "an inclination lies between 0 and π",
                got=f"i = {_first(tilt, (tilt < 0) | (tilt > math.pi))} rad",
                do="angles are in rad: i=np.radians(51.6)",
            )
        is_open = shape > 1.0
        if is_open.any() and not is_open.all():
            raise InputError("a batch of orbits has closed and open ones", got=f"e from {shape.min()} to {shape.max()}")
        if ((size <= 0.0) != is_open).any() or (size == 0.0).any():
            raise InputError(
                "the semi-major axis is positive; of an open orbit (e > 1), negative",
                got=f"a = {_first(size, ((size <= 0) != is_open) | (size == 0))} m",
            )
        low = size * (1.0 - shape)
        if not through_ground and (low < planet.radius).any():
            bad = _first(low, low < planet.radius)
            raise InputError(
                f"the orbit goes through the ground of {planet.name}",
                got=f"perigee at {bad / 1e3:.1f} km from the centre",
                allowed=f"at least the radius, {planet.radius / 1e3:.1f} km",
                do="a is measured from the centre, not from the ground; through_ground=True for a ballistic flight",
            )
        elements.flags.writeable = False
        self.elements: Array = elements
        """(..., 6): a, e, i, node, perigee, anomaly."""
        self.planet = planet

    def __repr__(self) -> str:
        batch = f", batch {self.batch_shape}" if self.batch_shape else ""
        if batch:
            return f"<Orbit around {self.planet.name}{batch}>"
        a, e, i, *_ = self.elements.tolist()
        return f"<Orbit around {self.planet.name}: a = {a / 1e3:.3f} km, e = {e:.6g}, i = {math.degrees(i):.3f}°>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Orbit) and self.planet == other.planet and np.array_equal(self.elements, other.elements)
        )

    def __hash__(self) -> int:
        return hash((self.planet, self.elements.tobytes()))

    @classmethod
    def from_state(
        cls, r: ArrayLike, v: ArrayLike, t: float = 0.0, *, planet: Planet = EARTH, through_ground: bool = False
    ) -> Orbit:
        """Orbit through a state.

        Args:
            r: position (..., 3), m.
            v: velocity (..., 3), m/s.
            t: when, s.
            planet: what it goes around.
            through_ground: as of :class:`Orbit`.

        >>> orbit = Orbit.from_state([7e6, 0.0, 0.0], [0.0, 7600.0, 1000.0])
        >>> bool(np.allclose(orbit.state(0.0)[1], [0.0, 7600.0, 1000.0]))
        True
        """
        place, speed = (np.moveaxis(np.asarray(x, float), -1, 0) for x in (r, v))
        if place.shape[:1] != (3,) or speed.shape[:1] != (3,):
            raise InputError("a state is two vectors", got=f"{np.shape(r)} and {np.shape(v)}", allowed="(..., 3) each")
        across = np.sqrt((np.cross(place, speed, axis=0) ** 2).sum(axis=0))
        far = np.sqrt((place**2).sum(axis=0))
        if (across <= 1e-12 * np.sqrt(planet.mu * far)).any():
            raise InputError(
                "a body that stands still, or moves straight up or down, has no orbit",
                got=f"r = {np.asarray(r).tolist()!r:.60} m, v = {np.asarray(v).tolist()!r:.60} m/s",
                do="simulate it in inertial axes: leave frame= out, and give lw.space.Gravity(model) as control",
            )
        leaves = (speed**2).sum(axis=0) * far >= 2.0 * planet.mu
        if leaves.any() and not leaves.all():
            raise InputError(
                "some of these states are on closed orbits and some on open ones", got=f"{leaves.tolist()}"
            )
        found = [np.asarray(x) for x in elements_of(Vec(*place), Vec(*speed), planet.mu, bool(leaves.any()))]
        found[5] = found[5] - np.sqrt(planet.mu / np.abs(found[0]) ** 3) * t
        found[3:5] = [np.mod(angle, 2.0 * math.pi) for angle in found[3:5]]
        if not leaves.any():
            found[5] = np.mod(found[5], 2.0 * math.pi)
        return cls(*found, planet=planet, through_ground=through_ground)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Batch axes of the elements."""
        return tuple(self.elements.shape[:-1])

    @property
    def is_open(self) -> bool:
        """Whether it leads away for ever."""
        return bool((self.elements[..., 1] > 1.0).any())

    @property
    def mean_motion(self) -> Any:
        """Rate of the mean anomaly in rad/s, (...)."""
        return _number(np.sqrt(self.planet.mu / np.abs(self.elements[..., 0]) ** 3))

    @property
    def period(self) -> Any:
        """Time of one turn (...), s; infinite for an open orbit."""
        return _number(2.0 * math.pi / np.asarray(self.mean_motion) * (np.inf if self.is_open else 1.0))

    @property
    def perigee_altitude(self) -> Any:
        """Height of the lowest point above the equator's radius (...), m."""
        return _number(self.elements[..., 0] * (1.0 - self.elements[..., 1]) - self.planet.radius)

    @cached_property
    def numbers(self) -> Array:
        """The numbers (..., 10) of a :class:`~linkwise.space.kepler.Conic`: a, e, n, anomaly, two unit vectors."""
        a, e, i, node, perigee, anomaly = (self.elements[..., k] for k in range(6))
        towards, across = perifocal_axes(i, node, perigee)
        parts = [a, e, np.asarray(self.mean_motion), anomaly, *towards, *across]
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def conic(self, numbers: Sequence[Scalar] | None = None) -> Conic:
        """Its ellipse or hyperbola; from the numbers (10) of one member of a batch, or its own."""
        if numbers is None:
            numbers = self.numbers.tolist() if not self.batch_shape else list(np.moveaxis(self.numbers, -1, 0))
        a, e, n, anomaly = numbers[:4]
        most = float(self.elements[..., 1].max(initial=0.0))
        return Conic(a, e, n, anomaly, Vec.of(numbers[4:7]), Vec.of(numbers[7:10]), most)

    def state(self, t: Scalar) -> tuple[Array, Array]:
        """Position in m and velocity in m/s, (..., 3) each, in inertial axes about the planet's centre.

        Args:
            t: time or times (...), s; also a traced scalar, in functions that are compiled.
        """
        r, v = _arrays(state_at(self.conic(), _time(t)))
        return r, v

    def local_axes(self, t: Scalar) -> Array:
        """Rotation (..., 3, 3) whose columns are Hill's axes: away from the planet, along the orbit, its normal."""
        axes = _arrays(local_axes(*state_at(self.conic(), _time(t))))
        return np.stack(axes, axis=-1)

    def local_rate(self, t: Scalar) -> Array:
        """Angular velocity (..., 3) of Hill's axes, in inertial axes, rad/s."""
        r, v = state_at(self.conic(), _time(t))
        return _arrays([r.cross(v) * (1.0 / r.dot(r))])[0]

    def to_local(self, t: Scalar, r: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """State (..., 3) as seen in Hill's axes, of position and velocity beside the orbit in inertial axes."""
        R, w = self.local_axes(t), self.local_rate(t)
        place, speed = np.asarray(r, float), np.asarray(v, float)
        seen = speed - np.cross(w, place)
        return np.einsum("...ji,...j->...i", R, place), np.einsum("...ji,...j->...i", R, seen)

    def from_local(self, t: Scalar, r: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
        """State (..., 3) beside the orbit in inertial axes, of one in Hill's axes: the reverse of :meth:`to_local`."""
        R, w = self.local_axes(t), self.local_rate(t)
        place, speed = (np.einsum("...ij,...j->...i", R, np.asarray(x, float)) for x in (r, v))
        return place, speed + np.cross(w, place)

    def drift(self) -> tuple[Any, Any, Any]:
        """Mean rates by the planet's J2: of node, perigee and mean anomaly (...), rad/s.

        >>> node, perigee, _ = Orbit(a=7e6, e=0.01, i=np.radians(51.6)).drift()
        >>> f"{node:.6e}, {perigee:.6e}"
        '-9.029532e-07, 6.753259e-07'
        """
        if self.is_open:
            raise InputError("an open orbit does not come round, so nothing drifts", got=repr(self))
        a, e, i = (self.elements[..., k] for k in range(3))
        n = np.sqrt(self.planet.mu / a**3)
        flat = 1.0 - e * e
        k = 1.5 * self.planet.j2 * (self.planet.radius / (a * flat)) ** 2 * n
        c2 = np.cos(i) ** 2
        return (
            _number(-k * np.cos(i)),
            _number(0.5 * k * (5.0 * c2 - 1.0)),
            _number(n + 0.5 * k * np.sqrt(flat) * (3.0 * c2 - 1.0)),
        )

    # The frame that falls along the orbit, for ``simulate(..., frame=orbit)``.
    def enter(self, model: Model, elements: Sequence[Element]) -> tuple[Element, ...]:
        """Elements as they act in a world that falls along this orbit; gravity is added where none of them is it."""
        from linkwise.space.placed import entered

        return entered(self, model, elements)


def _first(values: Array, bad: Array) -> float:
    return float(values[bad].flat[0])


def _number(value: Array) -> Any:
    return float(value) if np.ndim(value) == 0 else value


def _time(t: Scalar) -> Scalar:
    if isinstance(t, (int, float)):
        if not math.isfinite(t):
            raise InputError("a time is not finite", got=repr(t), allowed="seconds")
        return float(t)
    array = np.asarray(t)
    return array.astype(float) if array.ndim and array.dtype.kind in "iuf" else t


def _arrays(vectors: Sequence[Vec]) -> tuple[Array, ...]:
    """Vectors as arrays (..., 3); of traced scalars, as object arrays (3)."""
    made = []
    for vector in vectors:
        parts = list(vector)
        if all(isinstance(x, (float, int, np.ndarray, np.floating)) for x in parts):
            made.append(np.stack(np.broadcast_arrays(*(np.asarray(x, float) for x in parts)), axis=-1))
        else:
            made.append(scalar_array(parts))
    return tuple(made)
