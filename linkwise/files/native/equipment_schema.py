"""Actuators, muscles, sensors, springs and fields of a native file, as records."""

from __future__ import annotations

import math

from linkwise.files.native.kinds import (
    Document,
    FilePlace,
    Json,
    Number,
    Numbers,
    OneOf,
    OrNone,
    RecordKind,
    TextKind,
    ValueKind,
)
from linkwise.mechanism.actuation import (
    SENSOR_KINDS,
    Activation,
    Actuator,
    FrameTransmission,
    JointTransmission,
    PathTransmission,
    Sensor,
    Spring,
    Zone,
)
from linkwise.mechanism.fields import FluidBox, FluidEllipsoid, GravityCompensation
from linkwise.mechanism.muscles import HillMuscle, Muscle
from linkwise.mechanism.wrapping import Wrap


class _Range(ValueKind[tuple[float, float]]):
    """Two numbers, the first not above the second; null for an end that is not there."""

    def write(self, value: tuple[float, float], to: Document) -> Json:
        return [None if math.isinf(x) else float(x) for x in value]

    def read(self, at: FilePlace) -> tuple[float, float]:
        items = at.items("a range")
        if len(items) != 2:
            at.fail("a range has two ends", allowed="[low, high], null for none")
        low, high = (OrNone(Number()).read(item) for item in items)
        return (-math.inf if low is None else low, math.inf if high is None else high)


_RANGE = _Range()
_POSITIVE = Number(0.0)

RecordKind.of(Wrap, radius=_POSITIVE)
RecordKind.of(JointTransmission)
RecordKind.of(PathTransmission)
RecordKind.of(FrameTransmission, wrench=Numbers(6))
RecordKind.of(Activation, range=_RANGE, release_time=_POSITIVE, smoothing=_POSITIVE)
RecordKind.of(Zone)
_MUSCLE = OneOf(
    {
        "muscle": RecordKind.of(Muscle, force=_POSITIVE),
        "hill": RecordKind.of(HillMuscle, force=_POSITIVE, optimal_length=_POSITIVE, slack_length=_POSITIVE),
    }
)
ACTUATOR = RecordKind.of(Actuator, control_range=_RANGE, force_range=_RANGE, muscle=OrNone(_MUSCLE))
SPRING = RecordKind.of(Spring, stiffness=_POSITIVE, damping=_POSITIVE, rest=_RANGE, friction=_POSITIVE, limits=_RANGE)
SENSOR = RecordKind.of(Sensor, kind=TextKind(tuple(SENSOR_KINDS)), noise=_POSITIVE, cutoff=_POSITIVE)
FIELD = OneOf(
    {
        "gravity_compensation": RecordKind.of(GravityCompensation),
        "fluid_box": RecordKind.of(FluidBox, density=_POSITIVE, viscosity=_POSITIVE),
        "fluid_ellipsoid": RecordKind.of(FluidEllipsoid, density=_POSITIVE, viscosity=_POSITIVE),
    }
)
