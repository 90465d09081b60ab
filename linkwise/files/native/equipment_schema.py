"""Actuators, muscles, sensors, springs and fields of a native file, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from linkwise.files.native.kinds import REQUIRED, At, Document, Kind, ListOf, Number, Numbers, OrNone, Record, Row, Text
from linkwise.mechanism.actuation import (
    ACTIVATIONS,
    EVERYWHERE,
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


class _OneOf(Kind):
    """An object of one of several classes, told apart by its field ``type``."""

    def __init__(self, variants: Mapping[str, Record]) -> None:
        self.records = dict(variants)
        self.tags = {record.make: tag for tag, record in variants.items()}

    def write(self, value: Any, to: Document) -> Any:
        tag = self.tags[type(value)]
        return {"type": tag, **self.records[tag].write(value, to)}

    def read(self, at: At) -> Any:
        if not isinstance(at.value, dict) or "type" not in at.value:
            at.fail("the field 'type' is missing", allowed=", ".join(self.records))
        record = self.records[Text(tuple(self.records)).read(at.inside("type"))]
        return record.made(at, record.values(at, ("type",)))


class _Range(Kind):
    """Two numbers, the first not above the second; null for an end that is not there."""

    def write(self, value: Any, to: Document) -> Any:
        return [None if math.isinf(x) else float(x) for x in value]

    def read(self, at: At) -> tuple[float, float]:
        items = at.items("a range")
        if len(items) != 2:
            at.fail("a range has two ends", allowed="[low, high], null for none")
        low, high = (OrNone(Number()).read(item) for item in items)
        return (-math.inf if low is None else low, math.inf if high is None else high)


class Stop(Kind):
    """On the way of a tendon: the name of a frame, or a shape to wrap around."""

    wrap = Record(
        {
            "frame": (Text(), REQUIRED),
            "radius": (Number(0.0), REQUIRED),
            "shape": (Text(("sphere", "cylinder")), "sphere"),
            "side": (OrNone(Text()), None),
        },
        Wrap,
    )

    def write(self, value: Any, to: Document) -> Any:
        return self.wrap.write(value, to) if isinstance(value, Wrap) else Text().write(value, to)

    def read(self, at: At) -> Any:
        return self.wrap.read(at) if isinstance(at.value, dict) else Text().read(at)


class _Transmission(Kind):
    """Along joints, at a frame, or from frame to frame."""

    joints = Record({"gears": (ListOf(Row(Text(), Numbers())), REQUIRED)}, JointTransmission)
    frame = Record({"frame": (Text(), REQUIRED), "wrench": (Numbers(6), REQUIRED)}, FrameTransmission)
    path = Record({"paths": (ListOf(Row(ListOf(Stop()), Number())), REQUIRED)}, PathTransmission)

    def write(self, value: Any, to: Document) -> Any:
        kinds = {JointTransmission: self.joints, FrameTransmission: self.frame, PathTransmission: self.path}
        return kinds[type(value)].write(value, to)

    def read(self, at: At) -> Any:
        keys = at.value if isinstance(at.value, dict) else ()
        return (self.joints if "gears" in keys else self.path if "paths" in keys else self.frame).read(at)


ACTIVATION = Record(
    {
        "kind": (Text(ACTIVATIONS), REQUIRED),
        "time_constant": (Number(), 1.0),
        "range": (_Range(), EVERYWHERE),
        "release_time": (Number(0.0), 0.04),
        "smoothing": (Number(0.0), 0.0),
    },
    Activation,
)
MUSCLE = _OneOf(
    {
        "muscle": Record(
            {
                "force": (Number(0.0), REQUIRED),
                "lengths": (Numbers(2), REQUIRED),
                "range": (Numbers(2), (0.75, 1.05)),
                "l_min": (Number(), 0.5),
                "l_max": (Number(), 1.6),
                "v_max": (Number(), 1.5),
                "passive": (Number(), 1.3),
                "lengthening": (Number(), 1.2),
            },
            Muscle,
        ),
        "hill": Record(
            {
                "force": (Number(0.0), REQUIRED),
                "optimal_length": (Number(0.0), REQUIRED),
                "slack_length": (Number(0.0), REQUIRED),
                "pennation": (Number(), 0.0),
                "v_max": (Number(), 10.0),
                "passive_strain": (Number(), 0.6),
                "damping": (Number(), 0.0),
                "tendon_stiffness": (OrNone(Number()), None),
                "least": (Number(), 0.01),
                "start": (Number(), 1.0),
            },
            HillMuscle,
        ),
    }
)
ACTUATOR = Record(
    {
        "name": (Text(), REQUIRED),
        "transmission": (_Transmission(), REQUIRED),
        "gain": (Numbers(3), (1.0, 0.0, 0.0)),
        "bias": (Numbers(3), (0.0, 0.0, 0.0)),
        "control_range": (_Range(), EVERYWHERE),
        "force_range": (_Range(), EVERYWHERE),
        "activation": (OrNone(ACTIVATION), None),
        "muscle": (OrNone(MUSCLE), None),
    },
    Actuator,
)
SPRING = Record(
    {
        "name": (Text(), REQUIRED),
        "transmission": (_Transmission(), REQUIRED),
        "stiffness": (Number(0.0), 0.0),
        "damping": (Number(0.0), 0.0),
        "rest": (_Range(), (0.0, 0.0)),
        "friction": (Number(0.0), 0.0),
        "limits": (_Range(), EVERYWHERE),
    },
    Spring,
)
SENSOR = Record(
    {
        "name": (Text(), REQUIRED),
        "kind": (Text(tuple(SENSOR_KINDS)), REQUIRED),
        "target": (Text(), ""),
        "reference": (OrNone(Text()), None),
        "noise": (Number(0.0), 0.0),
        "cutoff": (Number(0.0), 0.0),
        "field": (Numbers(3), (0.0, 0.0, 0.0)),
        "zone": (OrNone(Record({"shape": (Text(), REQUIRED), "size": (Numbers(3), REQUIRED)}, Zone)), None),
    },
    Sensor,
)
_FIXED = {"name": (Text(), REQUIRED), "frame": (Text(), REQUIRED)}
_FLUID = {"density": (Number(0.0), 0.0), "viscosity": (Number(0.0), 0.0), "wind": (Numbers(3), (0.0, 0.0, 0.0))}
FIELD = _OneOf(
    {
        "gravity_compensation": Record({**_FIXED, "mass": (Number(), REQUIRED)}, GravityCompensation),
        "fluid_box": Record({**_FIXED, "size": (Numbers(3), REQUIRED), **_FLUID}, FluidBox),
        "fluid_ellipsoid": Record(
            {
                **_FIXED,
                "semi_axes": (Numbers(3), REQUIRED),
                **_FLUID,
                "drag": (Numbers(3), (0.5, 0.25, 1.5)),
                "lift": (Numbers(2), (1.0, 1.0)),
                "virtual_mass": (Numbers(3), (0.0, 0.0, 0.0)),
                "virtual_inertia": (Numbers(3), (0.0, 0.0, 0.0)),
            },
            FluidEllipsoid,
        ),
    }
)
