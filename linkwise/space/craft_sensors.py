"""Sensors of craft: what they would read along a motion, with noise that a seed repeats, and inside a control.

``measure(t, q, v, p)`` is the reading without noise, traced, for laws; ``read(trajectory, rng)`` has the readings
(..., T, n) along a motion, with noise; ``in_loop()`` is the sensor inside a sampled control, noise and all. White noise
has a standard deviation for each sample; biases are drawn once for each state of a batch, and walk where that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.checks import check_not_negative
from linkwise.errors import InputError
from linkwise.functions.function import compile as compiled
from linkwise.model.model import Model
from linkwise.sim.elements import Vector, checked_direction, checked_numbers
from linkwise.sim.measuring import Measured
from linkwise.sim.sensors import Seed, noisy
from linkwise.sim.trajectory import Trajectory
from linkwise.space.magnetism import MagneticField
from linkwise.space.orbit import Orbit
from linkwise.space.placed import Placed
from linkwise.space.sky import AnySky, sunlit
from linkwise.spatial.quaternions import from_matrix, multiply, normalized
from linkwise.spatial.scalar import Scalar, atan2, sqrt, where
from linkwise.spatial.vectors import Vec


class CraftSensor:
    """Sensor on a body: the base of all.

    Args:
        model: the mechanism.
        body: name of the body or frame that it is on; it reads in the axes of that.
        orbit: along which the world falls, as in ``simulate(..., frame=orbit)``; None for inertial axes about the
            planet's centre.
        sky: how the planet turns and where the Sun is.
    """

    size = 3
    """Numbers in a reading."""
    sees_place = False
    """Whether readings depend on the place above the planet, so on the orbit along which the world falls."""

    def __init__(self, model: Model, body: str, *, orbit: Orbit | None = None, sky: AnySky | None = None) -> None:
        place = Placed(model, about=body, sky=sky)
        self.model, self.body = model, body
        self.place = place if orbit is None else place.along(orbit)

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Reading without noise; x are the numbers of the sky and of an orbit with batch axes, where there are such."""
        raise NotImplementedError

    def _noise(self, clean: Array, t: Array, rng: np.random.Generator) -> Array:
        """Readings (..., T, n) with noise, at times (T)."""
        return noisy(clean, self.deviations.get("noise", 0.0), self.deviations.get("bias", 0.0), rng)

    @property
    def deviations(self) -> dict[str, ArrayLike]:
        """Standard deviations of ``noise``, ``bias`` and ``walk`` of its readings."""
        return {name: vars(self)[name] for name in ("noise", "bias", "walk") if name in vars(self)}

    def in_loop(self, **choices: Any) -> Measured:
        """The sensor in a :class:`~linkwise.Sampled` control: ``Sampled(..., sensors=[tracker.in_loop()])``.

        Args:
            choices: ``rate``, ``delay``, ``step``, ``seed`` and ``batch`` of
                :class:`~linkwise.sim.measuring.Measured`.
        """
        if self.place.tables:
            raise InputError(
                "in the loop a sensor knows a sky that stands still and one orbit",
                got=f"{self.place.sky!r}, orbit {self.place.orbit!r}",
                do="give sky=lw.space.StillSky(...), or read() it along a motion",
            )
        return Measured(self.measure, self.size, **{**self.deviations, **choices})

    def read(self, trajectory: Trajectory, rng: Seed = None) -> Array:
        """Readings (..., T, n) along a motion.

        Args:
            trajectory: the motion.
            rng: a generator or a seed.
        """
        if self.sees_place and self.place.orbit is None:
            self._check_outside(trajectory)
        tables = self.place.tables
        count = sum(table.size for table in tables)
        inputs: dict[str, str | int | tuple[int, ...]] = {"t": "scalar", "q": "q", "v": "v", "x": max(count, 1)}
        f = compiled(lambda m, t, q, v, x: self.measure(t, q, v, (), x), self.model, inputs, name=type(self).__name__)
        t, q, v = np.asarray(trajectory.t, float), np.asarray(trajectory.q, float), np.asarray(trajectory.v, float)
        x = np.concatenate([*(table(t) for table in tables), np.zeros((len(t), 0 if count else 1))], axis=-1)
        return self._noise(np.asarray(f(t, q, v, x)), t, np.random.default_rng(rng))

    def _check_outside(self, trajectory: Trajectory) -> None:
        """Refuse a motion in a falling world, which lies about the planet's centre for who does not know its orbit."""
        place = np.asarray(self.model.pose(np.asarray(trajectory.q, float), self.body))[..., :3, 3]
        nearest, planet = float(np.linalg.norm(place, axis=-1).min(initial=np.inf)), self.place.planet
        if nearest < 0.9 * planet.radius:
            raise InputError(
                f"{type(self).__name__} is inside {planet.name}",
                got=f"{nearest / 1e3:.4g} km from its centre",
                do="where the world falls along an orbit, give the sensor that orbit: orbit=…",
            )


class StarTracker(CraftSensor):
    """Attitude of a body in inertial axes, as a quaternion (4), w first, with a small rotation as noise.

    Args:
        model: the mechanism.
        body: that it is on.
        noise: standard deviation about its axes, rad, one for all or three.
    """

    size = 4

    def __init__(self, model: Model, body: str, *, noise: ArrayLike = 0.0) -> None:
        super().__init__(model, body)
        self.noise = checked_numbers(noise, 3, "noise", one_for_all=True)

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Quaternion of the body."""
        return list(normalized(from_matrix(self.place.pose(q, p, self.body)[0])))

    @property
    def deviations(self) -> dict[str, ArrayLike]:
        """In the loop a quaternion has the same noise in all its numbers, half of that of the angles."""
        return {"noise": 0.5 * float(np.sqrt((self.noise**2).mean()))}

    def _noise(self, clean: Array, t: Array, rng: np.random.Generator) -> Array:
        if not self.noise.any():
            return clean
        half = 0.5 * rng.normal(size=(*clean.shape[:-1], 3)) * self.noise
        out = np.stack(multiply(list(np.moveaxis(clean, -1, 0)), (1.0, *np.moveaxis(half, -1, 0))), axis=-1)
        return np.asarray(out / np.linalg.norm(out, axis=-1, keepdims=True))


class Gyro(CraftSensor):
    """Angular velocity (3) in the body's axes, rad/s, with a bias that walks.

    Args:
        model: the mechanism.
        body: that it is on.
        noise: standard deviation of each sample, rad/s.
        bias: standard deviation of the bias at the start, rad/s.
        walk: of the bias, rad/s/√s: after T seconds its standard deviation is walk √T.
    """

    def __init__(self, model: Model, body: str, *, noise: float = 0.0, bias: float = 0.0, walk: float = 0.0) -> None:
        super().__init__(model, body)
        check_not_negative(noise=noise, bias=bias, walk=walk)
        self.noise, self.bias, self.walk = float(noise), float(bias), float(walk)

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Rate of the body."""
        omega = self.place.velocity(q, v, p, self.body)[0]
        return list(self.place.pose(q, p, self.body)[0].transpose_times(omega))

    def _noise(self, clean: Array, t: Array, rng: np.random.Generator) -> Array:
        if self.walk:
            steps = rng.normal(size=(*clean.shape[:-2], len(t) - 1, 3)) * self.walk * np.sqrt(np.diff(t))[:, None]
            clean = clean + np.concatenate([np.zeros_like(clean[..., :1, :]), np.cumsum(steps, axis=-2)], axis=-2)
        return super()._noise(clean, t, rng)


class SunSensor(CraftSensor):
    """Direction of the Sun (3) in the body's axes; zero in the planet's shadow or outside the field of view.

    Args:
        model: the mechanism.
        body: that it is on.
        boresight: in the body's axes; None sees all around.
        half_angle: of the field of view, rad.
        noise: standard deviation of each component.
        orbit: as of :class:`CraftSensor`, as is ``sky``.
    """

    sees_place = True

    def __init__(
        self,
        model: Model,
        body: str,
        *,
        boresight: Sequence[float] | None = None,
        half_angle: float = 1.0,
        noise: float = 0.0,
        orbit: Orbit | None = None,
        sky: AnySky | None = None,
    ) -> None:
        super().__init__(model, body, orbit=orbit, sky=sky)
        check_not_negative(noise=noise)
        self.noise = float(noise)
        self.boresight = None
        if boresight is not None:
            self.boresight = Vec.of(checked_direction(boresight, "the boresight").tolist())
        self.least = float(np.cos(half_angle))

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Direction, or zero."""
        R, at = self.place.pose(q, p, self.body)
        here, sky = self.place.origin(t, x)[0] + at, self.place.sky
        sun = sky.sun(t, self.place.sky_numbers(x))
        away = sun - here
        s = R.transpose_times(away * (1.0 / sqrt(away.dot(away))))
        seen = where(sunlit(here, sun, self.place.planet.radius) > 0.5, 1.0, 0.0)
        if self.boresight is not None:
            seen = where(s.dot(self.boresight) > self.least, seen, 0.0)
        return list(s * seen)

    def _noise(self, clean: Array, t: Array, rng: np.random.Generator) -> Array:
        seen = np.abs(clean).sum(axis=-1, keepdims=True) > 0.0
        return np.where(seen, super()._noise(clean, t, rng), 0.0)


class Magnetometer(CraftSensor):
    """Magnetic field (3) in the body's axes, tesla.

    Args:
        model: the mechanism.
        body: that it is on.
        field: the planet's; a tilted dipole if not given.
        noise: standard deviation of each sample, tesla.
        bias: standard deviation of a constant offset, tesla.
        orbit: as of :class:`CraftSensor`, as is ``sky``.
    """

    sees_place = True

    def __init__(
        self,
        model: Model,
        body: str,
        *,
        field: MagneticField | None = None,
        noise: float = 0.0,
        bias: float = 0.0,
        orbit: Orbit | None = None,
        sky: AnySky | None = None,
    ) -> None:
        super().__init__(model, body, orbit=orbit, sky=sky)
        check_not_negative(noise=noise, bias=bias)
        self.noise, self.bias = float(noise), float(bias)
        self.field = MagneticField.dipole() if field is None else field

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Field where it is."""
        R, at = self.place.pose(q, p, self.body)
        fixed = self.place.sky.to_fixed(t, self.place.sky_numbers(x))
        B = self.field.at(fixed @ (self.place.origin(t, x)[0] + at))
        return list(R.transpose_times(fixed.transpose_times(B)))


class GNSS(CraftSensor):
    """Position and velocity (6) in inertial axes about the planet's centre, m and m/s.

    Args:
        model: the mechanism.
        body: that its antenna is on.
        noise: standard deviation of positions, m.
        speed_noise: standard deviation of velocities, m/s.
        orbit: as of :class:`CraftSensor`.
    """

    sees_place = True
    size = 6

    def __init__(
        self, model: Model, body: str, *, noise: float = 0.0, speed_noise: float = 0.0, orbit: Orbit | None = None
    ) -> None:
        super().__init__(model, body, orbit=orbit)
        check_not_negative(noise=noise, speed_noise=speed_noise)
        self.noise, self.speed_noise = float(noise), float(speed_noise)

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Place and velocity of the antenna."""
        r, speed = self.place.origin(t, x)
        return [*(r + self.place.pose(q, p, self.body)[1]), *(speed + self.place.velocity(q, v, p, self.body)[1])]

    @property
    def deviations(self) -> dict[str, ArrayLike]:
        """Of places and of velocities."""
        return {"noise": [self.noise] * 3 + [self.speed_noise] * 3}


class RangeAndBearing(CraftSensor):
    """Distance in m, azimuth and elevation in rad (3) of another body, in the axes of the one that it is on.

    Azimuth is counted from x to y, elevation from there to z.

    Args:
        model: the mechanism.
        body: that it is on.
        target: name of the body or frame that it looks at.
        noise: standard deviation of the distance, m.
        angle_noise: standard deviation of the angles, rad.
    """

    def __init__(self, model: Model, body: str, target: str, *, noise: float = 0.0, angle_noise: float = 0.0) -> None:
        super().__init__(model, body)
        model.frame(target)
        check_not_negative(noise=noise, angle_noise=angle_noise)
        self.target, self.noise, self.angle_noise = target, float(noise), float(angle_noise)

    def measure(self, t: Scalar, q: Vector, v: Vector, p: Vector = (), x: Vector = ()) -> list[Scalar]:
        """Distance, azimuth, elevation."""
        R, at = self.place.pose(q, p, self.body)
        d = R.transpose_times(self.place.pose(q, p, self.target)[1] - at)
        flat = sqrt(d.x * d.x + d.y * d.y)
        return [sqrt(d.dot(d)), atan2(d.y, d.x), atan2(d.z, flat)]

    @property
    def deviations(self) -> dict[str, ArrayLike]:
        """Of the distance and of the angles."""
        return {"noise": [self.noise, self.angle_noise, self.angle_noise]}
