"""Actuators and sensors of a mechanism, as a file describes them: plain frozen data.

Nothing here acts. :class:`linkwise.Drives` turns the actuators of a model into forces in a simulation,
:class:`linkwise.Instruments` reads its sensors along a trajectory; springs across several joints act in every
simulation, as those of the joints do. Joints, bodies and frames are named, so that a description outlives changes of
the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import pairwise
from typing import Any, Literal

from numpy.typing import ArrayLike

from linkwise.checks import finite_numbers, set_finite
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.fields import FluidBox, FluidEllipsoid, GravityCompensation
from linkwise.mechanism.muscles import HillMuscle, Muscle
from linkwise.mechanism.wrapping import Wrap

__all__ = [
    "SENSOR_KINDS",
    "Activation",
    "Actuator",
    "FluidBox",
    "FluidEllipsoid",
    "FrameTransmission",
    "GravityCompensation",
    "HillMuscle",
    "JointTransmission",
    "Muscle",
    "PathTransmission",
    "Sensor",
    "Spring",
    "Transmission",
    "Wrap",
]

Affine = tuple[float, float, float]
Range = tuple[float, float]

EVERYWHERE: Range = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class JointTransmission:
    """A force f along l = Σ g·q: joints feel g f, and l̇ = Σ g·v. One joint behind a gear, or a tendon over several.

    Args:
        gears: for each joint, by name, the factor g of each of its freedoms (one number, or nv of them). Of a ball
            joint, q in the sum is the turn from its zero position as a vector.

    Example:
        >>> JointTransmission({"knee": 50.0})
        JointTransmission(gears=(('knee', (50.0,)),))
    """

    gears: tuple[tuple[str, tuple[float, ...]], ...]

    def __init__(self, gears: Mapping[str, ArrayLike] | Iterable[tuple[str, ArrayLike]]) -> None:
        pairs = gears.items() if isinstance(gears, Mapping) else gears
        each = tuple((str(joint), finite_numbers(gear, f"the gear of joint {joint!r}")) for joint, gear in pairs)
        if not each:
            raise InputError("a transmission moves no joint", got="no gears", allowed='e.g. {"knee": 50.0}')
        object.__setattr__(self, "gears", each)

    @property
    def joints(self) -> tuple[str, ...]:
        """The names of the joints."""
        return tuple(joint for joint, _ in self.gears)


@dataclass(frozen=True, slots=True)
class FrameTransmission:
    """A force fixed in a body: f times a wrench at a frame, in its axes; l = 0, and l̇ is the wrench's power for f = 1.

    Args:
        frame: name of a body or frame.
        wrench: [moment, force] (6) for f = 1.
    """

    frame: str
    wrench: tuple[float, ...]

    def __post_init__(self) -> None:
        set_finite(self, "wrench", f"the force at {self.frame!r}", 6)


@dataclass(frozen=True, slots=True)
class PathTransmission:
    """A tendon from frame to frame, straight or around spheres and cylinders; l is its length.

    A force f > 0 pushes its ends apart; a tendon that pulls has f < 0, as in MuJoCo.

    Args:
        paths: for each branch the names of its frames, in order, at least two, between which a :class:`Wrap` may
            stand; and the factor of its length in l (a pulley with two branches beyond it halves theirs).
    """

    paths: tuple[tuple[tuple[str | Wrap, ...], float], ...]

    def __post_init__(self) -> None:
        paths = tuple(
            (tuple(stop if isinstance(stop, Wrap) else str(stop) for stop in stops), float(factor))
            for stops, factor in self.paths
        )
        if not paths or any(len(stops) < 2 or not math.isfinite(factor) for stops, factor in paths):
            raise InputError(
                "a tendon leads nowhere", got=repr(self.paths)[:80], allowed='e.g. ((("hook", "hand"), 1.0),)'
            )
        for stops, _ in paths:
            wraps = [isinstance(stop, Wrap) for stop in (stops[0], *stops, stops[-1])]
            if any(a and b for a, b in pairwise(wraps)):
                raise InputError(
                    "a tendon wraps around something that is not between two frames",
                    got=repr(stops)[:80],
                    allowed='a frame before and behind each, e.g. ("hip", lw.equipment.Wrap("knee", 0.03), "shin")',
                )
        object.__setattr__(self, "paths", paths)

    @property
    def frames(self) -> tuple[str, ...]:
        """The names of all frames on it, those of wraps and their sides included."""
        found: dict[str, None] = {}
        for stops, _ in self.paths:
            for stop in stops:
                names = (stop.frame, stop.side) if isinstance(stop, Wrap) else (stop,)
                found |= dict.fromkeys(name for name in names if name is not None)
        return tuple(found)

    def renamed(self, new: Callable[[str], str]) -> PathTransmission:
        """The same along frames of other names."""

        def stop(old: str | Wrap) -> str | Wrap:
            if isinstance(old, Wrap):
                return replace(old, frame=new(old.frame), side=None if old.side is None else new(old.side))
            return new(old)

        return PathTransmission(tuple((tuple(map(stop, stops)), factor) for stops, factor in self.paths))


Transmission = JointTransmission | PathTransmission | FrameTransmission


def ratio(one: Transmission, other: Transmission) -> float | None:
    """Ratio of the length of one to that of the other; None where they do not run the same way."""
    x, y = _factors(one), _factors(other)
    found = next((x[place] / number for place, number in y.items() if number and place in x), None)
    if type(one) is not type(other) or found is None or x.keys() != y.keys():
        return None
    return found if all(math.isclose(x[place], found * y[place], rel_tol=1e-12) for place in x) else None


def _factors(way: Transmission) -> dict[tuple[Hashable, int], float]:
    """The factor of each part of a length in it."""
    if isinstance(way, JointTransmission):
        return {(joint, k): g for joint, gear in way.gears for k, g in enumerate(gear)}
    if isinstance(way, PathTransmission):
        return {(stops, k): factor for k, (stops, factor) in enumerate(way.paths)}
    return {}


ACTIVATIONS = ("integrator", "filter", "muscle")


@dataclass(frozen=True, slots=True)
class Activation:
    """A state a between the control u and the force.

    Args:
        kind: ``"integrator"``: ȧ = u; ``"filter"``: ȧ = (u - a) / time_constant; ``"muscle"``: a filter of u between 0
            and 1 that rises in time_constant · (½ + 3a/2) and falls in release_time / (½ + 3a/2), of Millard 2013.
        time_constant: s, of a filter or a muscle.
        range: in which a stays.
        release_time: s, of a muscle.
        smoothing: of a muscle, the width of u - a over which it goes from falling to rising; 0 for a switch.
    """

    kind: Literal["integrator", "filter", "muscle"]
    time_constant: float = 1.0
    range: Range = EVERYWHERE
    release_time: float = 0.04
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in ACTIVATIONS:
            raise UnknownNameError("kind of activation", self.kind, ACTIVATIONS)
        set_finite(self, "time_constant release_time", "an activation", above=0.0)
        set_finite(self, "smoothing", "an activation", least=0.0)
        object.__setattr__(self, "range", _range(self.range, "the range of an activation"))


@dataclass(frozen=True, slots=True)
class Actuator:
    """One drive: f = (gain · [1, l, l̇]) a + bias · [1, l, l̇], or what a muscle exerts, along its transmission.

    a is the control u, or the state of its activation. A motor is ``gain=(k, 0, 0)``; a position servo adds
    ``bias=(0, -k, -d)``; a muscle has a law of its own instead of both.

    Args:
        name: unlike any other actuator.
        transmission: what it moves.
        gain: constant, per length and per speed.
        bias: likewise.
        control_range: u is held inside.
        force_range: f is held inside, N m or N.
        activation: dynamics between u and f, if there are some.
        muscle: :class:`Muscle` or :class:`HillMuscle`.
    """

    name: str
    transmission: Transmission
    gain: Affine = (1.0, 0.0, 0.0)
    bias: Affine = (0.0, 0.0, 0.0)
    control_range: Range = EVERYWHERE
    force_range: Range = EVERYWHERE
    activation: Activation | None = None
    muscle: Muscle | HillMuscle | None = None

    def __post_init__(self) -> None:
        _check_transmission(self.transmission, f"the actuator {self.name!r}")
        set_finite(self, "gain bias", f"actuator {self.name!r}", 3)
        for what in ("control_range", "force_range"):
            object.__setattr__(self, what, _range(getattr(self, what), f"the {what} of actuator {self.name!r}"))


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring and a damper along a transmission: f = -k (l - rest) - d l̇, slack while l is inside ``rest``.

    Args:
        name: unlike any other spring.
        transmission: what it pulls.
        stiffness: k.
        damping: d.
        rest: the lengths between which it is slack; twice the same where it never is.
        friction: dry friction, N or N m, smoothed as that of joints.
        limits: the shortest and the longest length; beyond, it pushes back as a joint at its limit.
    """

    name: str
    transmission: Transmission
    stiffness: float = 0.0
    damping: float = 0.0
    rest: Range = (0.0, 0.0)
    friction: float = 0.0
    limits: Range = EVERYWHERE

    def __post_init__(self) -> None:
        _check_transmission(self.transmission, f"the spring {self.name!r}")
        set_finite(self, "stiffness damping friction", f"spring {self.name!r}", least=0.0)
        for what in ("rest", "limits"):
            object.__setattr__(self, what, _range(getattr(self, what), f"the {what} of spring {self.name!r}"))


SENSOR_KINDS: dict[str, tuple[str, int]] = {
    "joint_position": ("joint", 1),
    "joint_velocity": ("joint", 1),
    "joint_drive_force": ("joint", 1),
    "ball_orientation": ("joint", 4),
    "ball_angular_velocity": ("joint", 3),
    "actuator_position": ("actuator", 1),
    "actuator_velocity": ("actuator", 1),
    "actuator_force": ("actuator", 1),
    "tendon_position": ("spring", 1),
    "tendon_velocity": ("spring", 1),
    "tendon_drive_force": ("spring", 1),
    "gyroscope": ("frame", 3),
    "accelerometer": ("frame", 3),
    "velocimeter": ("frame", 3),
    "magnetometer": ("frame", 3),
    "touch": ("frame", 1),
    "force": ("frame", 3),
    "torque": ("frame", 3),
    "frame_position": ("frame", 3),
    "frame_orientation": ("frame", 4),
    "frame_x_axis": ("frame", 3),
    "frame_y_axis": ("frame", 3),
    "frame_z_axis": ("frame", 3),
    "frame_linear_velocity": ("frame", 3),
    "frame_angular_velocity": ("frame", 3),
    "frame_linear_acceleration": ("frame", 3),
    "frame_angular_acceleration": ("frame", 3),
    "subtree_center_of_mass": ("frame", 3),
    "subtree_linear_velocity": ("frame", 3),
    "subtree_angular_momentum": ("frame", 3),
    "kinetic_energy": ("", 1),
    "potential_energy": ("", 1),
    "clock": ("", 1),
}
"""For each kind of sensor, what it is fixed to and how many numbers it reads."""


@dataclass(frozen=True, slots=True)
class Zone:
    """Space in which a touch sensor feels: a shape about its frame.

    Args:
        shape: ``"sphere"``, ``"ellipsoid"``, ``"box"``, ``"cylinder"`` or ``"capsule"``.
        size: m, half of its extent along x, y, z; of cylinders and capsules the radius, twice, and half their length.
    """

    shape: str
    size: tuple[float, float, float]

    def __post_init__(self) -> None:
        if self.shape not in (known := ("sphere", "ellipsoid", "box", "cylinder", "capsule")):
            raise InputError("no such zone of a touch sensor", got=repr(self.shape), allowed=", ".join(known))
        if not all(x > 0.0 for x in self.size):
            raise InputError("a zone of a touch sensor has no inside", got=repr(self.size), allowed="lengths above 0 m")

    def holds(self, points: Any) -> Any:
        """For each of some points (..., 3) of the frame, whether it lies in it (...)."""
        x, y, z = (points[..., k] for k in range(3))
        a, b, c = self.size
        if self.shape == "box":
            return (abs(x) <= a) & (abs(y) <= b) & (abs(z) <= c)
        if self.shape == "cylinder":
            return (x * x + y * y <= a * a) & (abs(z) <= c)
        if self.shape == "capsule":
            beyond = (abs(z) - c) * (abs(z) > c)
            return x * x + y * y + beyond * beyond <= a * a
        return (x / a) ** 2 + (y / b) ** 2 + (z / c) ** 2 <= 1.0


@dataclass(frozen=True, slots=True)
class Sensor:
    """One instrument.

    Args:
        name: unlike any other sensor.
        kind: one of :data:`SENSOR_KINDS`.
        target: name of the joint, actuator, spring, body or frame that it is fixed to; "" for those fixed to nothing.
        reference: of the kinds ``frame_…``, the body or frame that the reading is relative to; the world if not given.
        noise: standard deviation of white noise on each sample, in the reading's unit.
        cutoff: readings are held within ± this; 0 for no bound.
        field: of a magnetometer, the magnetic field in world axes.
        zone: of a touch sensor, where on its body it feels; everywhere if not given.
    """

    name: str
    kind: str
    target: str = ""
    reference: str | None = None
    noise: float = 0.0
    cutoff: float = 0.0
    field: tuple[float, float, float] = (0.0, 0.0, 0.0)
    zone: Zone | None = None

    def __post_init__(self) -> None:
        if self.kind not in SENSOR_KINDS:
            raise UnknownNameError("kind of sensor", self.kind, SENSOR_KINDS)
        wanted = SENSOR_KINDS[self.kind][0]
        if bool(wanted) != bool(self.target):
            raise InputError(
                f"the sensor {self.name!r} is fixed to nothing" if wanted else f"{self.kind} is of the whole mechanism",
                got=f"target={self.target!r}",
                allowed=f"the name of a {wanted}" if wanted else 'target=""',
            )
        set_finite(self, "noise cutoff", f"sensor {self.name!r}", least=0.0)
        set_finite(self, "field", f"sensor {self.name!r}", 3)

    @property
    def size(self) -> int:
        """Count of the numbers that it reads."""
        return SENSOR_KINDS[self.kind][1]


def _check_transmission(transmission: object, whose: str) -> None:
    if not isinstance(transmission, (JointTransmission, FrameTransmission, PathTransmission)):
        raise InputError(
            f"{whose} has no transmission",
            got=repr(transmission),
            allowed='lw.equipment.JointTransmission({"knee": 50.0}) or lw.equipment.FrameTransmission("hull", wrench)',
        )


def _range(values: Iterable[float], what: str) -> Range:
    try:
        low, high = (float(x) for x in values)
    except (TypeError, ValueError):
        raise InputError(f"{what} is not two numbers", got=repr(values)[:80], allowed="(low, high)") from None
    if not low <= high or low == math.inf or high == -math.inf:
        raise InputError(f"{what} leaves no room", got=f"({low!r}, {high!r})", allowed="low <= high")
    return low, high
