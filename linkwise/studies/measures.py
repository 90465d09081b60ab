"""Measures and events that can be named in a file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, fields
from linkwise.errors import InputError, UnknownNameError
from linkwise.model.model import Model
from linkwise.sim.elements import Vector
from linkwise.sim.events import Event
from linkwise.sim.trajectory import Trajectory
from linkwise.spatial.scalar import Scalar

_TIMES = {"last": None, "max": np.nanmax, "min": np.nanmin, "mean": np.nanmean}
_AXES = ("x", "y", "z", "distance")


@dataclass(frozen=True)
class Measured:
    """One number of a motion: a channel, or the place of a body, over joints and over time.

    Args:
        model: the mechanism.
        channel: "q", "v", "tau", "vdot" or "energy".
        body: a body or frame instead, whose place in the world is meant (m).
        axis: of the place: "x", "y", "z", or "distance" from ``target``.
        target: a point (3), m.
        joint: which one; the largest of all if not given.
        over_time: "last", "max", "min" or "mean".
        absolute: whether the sign is dropped first.
    """

    model: Model
    channel: str | None = None
    body: str | None = None
    axis: str = "distance"
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    joint: str | None = None
    over_time: str = "last"
    absolute: bool = False

    def __post_init__(self) -> None:
        if (self.channel is None) == (self.body is None):
            raise InputError("a measure is of a channel or of a body", got=f"{self.channel!r}, {self.body!r}")
        if self.channel is not None and self.channel not in ("q", "v", "tau", "vdot", "energy"):
            raise UnknownNameError("channel", self.channel, ("q", "v", "tau", "vdot", "energy"))
        if self.body is not None:
            self.model.frame(self.body)
        if self.axis not in _AXES:
            raise UnknownNameError("axis", self.axis, _AXES)
        if self.over_time not in _TIMES:
            raise UnknownNameError("way to look over time", self.over_time, _TIMES)
        if self.joint is not None:
            self.model.joints[self.joint]

    def __call__(self, trajectory: Trajectory) -> Array:
        """One number for each member (n)."""
        values = self._samples(trajectory)
        values = np.abs(values) if self.absolute else values
        reduce = _TIMES[self.over_time]
        return np.asarray(values[:, -1] if reduce is None else reduce(values, axis=1))

    def _samples(self, trajectory: Trajectory) -> Array:
        """(n, T)."""
        if self.body is not None:
            place = trajectory.pose(self.body)[..., :3, 3]
            if self.axis == "distance":
                return np.asarray(np.sqrt(((place - np.asarray(self.target, float)) ** 2).sum(axis=-1)))
            return np.asarray(place[..., _AXES.index(self.axis)])
        values = np.asarray(getattr(trajectory, str(self.channel)))
        if self.channel == "energy":
            return values
        if self.joint is not None:
            joint = self.model.joints[self.joint]
            values = values[..., joint.q_slice if self.channel == "q" else joint.v_slice]
        return np.asarray((np.abs(values) if self.absolute else values).max(axis=-1))


def measure_fields() -> tuple[str, ...]:
    """Names of the fields that a measure in a file may have."""
    return tuple(field.name for field in fields(Measured) if field.name != "model")


@dataclass(frozen=True)
class Threshold:
    """Whether a measure is above or below a value."""

    measure: Measured
    above: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        if self.above is None and self.below is None:
            raise InputError("failure needs a value", allowed="above = 1.0 or below = 0.1")

    def __call__(self, trajectory: Trajectory) -> Array:
        """Truth values (n)."""
        values = self.measure(trajectory)
        failed = np.zeros(len(values), bool)
        if self.above is not None:
            failed |= values > self.above
        if self.below is not None:
            failed |= values < self.below
        return failed


@dataclass(frozen=True)
class CoordinateMeasure:
    """A joint's coordinate or rate, less a value."""

    place: int
    rate: bool
    value: float

    def __call__(self, t: Scalar, q: Vector, v: Vector, p: Vector) -> Scalar:
        """Zero where the event is."""
        return (v if self.rate else q)[self.place] - self.value


def crossing(model: Model, name: str, spec: object) -> Event:
    """An event from a file: ``{joint = "elbow", reaches = 1.2, of = "q", terminal = true, direction = 1}``."""
    known = ("joint", "reaches", "of", "terminal", "direction")
    if not isinstance(spec, Mapping) or not {"joint", "reaches"} <= set(spec) or set(spec) - set(known):
        raise InputError(f"the event {name!r} cannot be read", got=str(spec), allowed=f"{', '.join(known)}")
    joint = model.joints[str(spec["joint"])]
    rate = spec.get("of", "q") == "v"
    place = (joint.v_slice if rate else joint.q_slice).start
    function = CoordinateMeasure(place, rate, float(spec["reaches"]))
    return Event(function, int(spec.get("direction", 0)), bool(spec.get("terminal", False)), name=name)
