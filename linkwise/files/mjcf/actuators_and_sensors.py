"""Actuators (transmission, gain and bias, activation) and sensors, with what could not be read of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

from linkwise.array_types import Array
from linkwise.files.file_description import Written
from linkwise.files.mjcf.compiled import Compiled
from linkwise.files.mjcf.couplings import transmission_of
from linkwise.files.mjcf.joints_and_places import Places
from linkwise.mechanism.actuation import (
    SENSOR_KINDS,
    Activation,
    Actuator,
    FrameTransmission,
    JointTransmission,
    Range,
    Sensor,
    Spring,
    Transmission,
    Zone,
)
from linkwise.mechanism.muscles import Muscle

_LEAST = 1e-15  # what MuJoCo takes for nothing
_SHORTEST = 1e-10  # s: below, MuJoCo takes a filter for none too


def read_actuators(places: Places, left_out: list[str]) -> Iterator[Written[Actuator]]:
    """The actuators that can be described; the others are named in `left_out`."""
    source = places.source
    m = source.model
    if source.is_off("actuation") and m.nactuator:
        left_out.append("all actuators: the file switches actuation off")
        return
    for i in range(m.nactuator):
        name = source.name("actuator", i)
        reason = _unsupported(source, i)
        transmission = None if reason else _transmission(places, i)
        if reason or transmission is None:
            left_out.append(f"actuator {name!r} ({reason or _target(source, i)})")
            continue
        laws = (
            (source.word("mjtGain", m.actuator_gaintype[i]), m.actuator_gainprm[i]),
            (source.word("mjtBias", m.actuator_biastype[i]), m.actuator_biasprm[i]),
        )
        muscle = _muscle(source, i) if laws[0][0] == "muscle" else None
        gain, bias = ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0)) if muscle else (_affine(kind, prm) for kind, prm in laws)
        clamped = bool(m.actuator_ctrllimited[i]) and not source.is_off("clampctrl")
        actuator = Actuator(
            name,
            transmission,
            gain,
            bias,
            _range(clamped, m.actuator_ctrlrange[i]),
            _range(m.actuator_forcelimited[i], m.actuator_forcerange[i]),
            _activation(source, i),
            muscle,
        )
        yield Written(actuator, *source.at("actuator", i))


def reflected(places: Places, left_out: list[str]) -> tuple[dict[str, float], dict[str, float], list[Written[Spring]]]:
    """Additions of actuators to their joints: armature and damping behind the gear, by joint; dampers along tendons."""
    source, names = places.source, places.names
    m = source.model
    armature: dict[str, float] = {}
    damping: dict[str, float] = {}
    dampers: list[Written[Spring]] = []
    for i in range(m.nactuator):
        square = float(m.actuator_gear[i, 0]) ** 2
        inertia = float(m.actuator_armature[i]) * square
        loss = 0.0 if source.is_off("damper") else float(m.actuator_damping[i]) * square
        if m.actuator_dampingpoly[i].any() and not source.is_off("damper"):
            left_out.append(f"what is not linear in the damping of actuator {source.name('actuator', i)!r}")
        if not inertia and not loss:
            continue
        target = int(m.actuator_trnid[i, 0])
        on = source.word("mjtTrn", m.actuator_trntype[i])
        if on in ("joint", "jointinparent"):
            joint = names.joints[target]
            armature[joint] = armature.get(joint, 0.0) + inertia
            damping[joint] = damping.get(joint, 0.0) + loss
            continue
        along = transmission_of(places, target) if on == "tendon" else None
        name = source.name("actuator", i)
        if inertia:
            raise source.fail(
                f"actuator {name!r} has an armature and pulls a tendon: that couples the inertias of its joints, "
                "which is not supported", "actuator", i, do="give the joints an armature instead",
            )  # fmt: skip
        if along is None:
            left_out.append(f"the damping of actuator {name!r}")
            continue
        dampers.append(Written(Spring(f"{name}.damping", along, damping=loss), *source.at("actuator", i)))
    return armature, damping, dampers


def _unsupported(source: Compiled, i: int) -> str | None:
    """Why an actuator cannot be described, in a word."""
    m = source.model
    gain, bias = source.word("mjtGain", m.actuator_gaintype[i]), source.word("mjtBias", m.actuator_biastype[i])
    dynamics = ("none", "integrator", "filter", "filterexact", "muscle")
    for word, known in (
        (gain, ("fixed", "affine", "muscle")),
        (bias, ("none", "muscle") if gain == "muscle" else ("none", "affine")),
        (source.word("mjtDyn", m.actuator_dyntype[i]), dynamics),
    ):
        if word not in known:
            return word
    if gain == bias == "muscle" and m.actuator_gainprm[i, :9].tolist() != m.actuator_biasprm[i, :9].tolist():
        return "a muscle whose active and passive curves are two muscles'"
    if gain == "muscle" and not m.actuator_lengthrange[i, 0] < m.actuator_lengthrange[i, 1]:
        return "a muscle without a range of lengths"
    group = int(m.actuator_group[i])
    if 0 <= group < 31 and int(m.opt.disableactuator) >> group & 1:
        return "of a group that is switched off"
    if m.actuator_delay[i]:
        return "delayed control"
    if m.actuator_ctrlnum[i] != 1 or m.actuator_outnum[i] != 1:
        return "several controls or forces"
    return None


def _target(source: Compiled, i: int) -> str:
    word = source.word("mjtTrn", source.model.actuator_trntype[i])
    said = {
        "body": "adhesion, which needs contact",
        "tendon": "a tendon that leads nowhere",
        "site": "a site with a reference",
        "slidercrank": "a slider-crank",
        "joint": "a free joint",
        "jointinparent": "a joint, in the parent's axes",
    }
    return said.get(word, word)


def _transmission(places: Places, i: int) -> Transmission | None:
    source, names = places.source, places.names
    m = source.model
    word, target = source.word("mjtTrn", m.actuator_trntype[i]), int(m.actuator_trnid[i, 0])
    gear = m.actuator_gear[i].tolist()
    if word in ("joint", "jointinparent"):
        if source.is_single(target):
            return JointTransmission({names.joints[target]: gear[0]})
        if source.joint_type(target) == "ball" and word == "joint":
            return JointTransmission({names.joints[target]: gear[:3]})
        return None
    if word == "tendon":
        return transmission_of(places, target, gear[0])
    if word == "site" and m.actuator_trnid[i, 1] < 0:
        return FrameTransmission(names.sites[target], (*gear[3:6], *gear[:3]))
    return None


def _affine(kind: str, numbers: Array) -> tuple[float, float, float]:
    constant, length, speed = (float(x) for x in numbers[:3])
    known = {"none": (0.0, 0.0, 0.0), "fixed": (constant, 0.0, 0.0), "affine": (constant, length, speed)}
    return known[kind]


def _muscle(source: Compiled, i: int) -> Muscle:
    """MuJoCo's muscle: its curves, the force of a peak that is given by what it accelerates, the range of lengths."""
    m = source.model
    low, high, force, scale, l_min, l_max, v_max, passive, lengthening = m.actuator_gainprm[i, :9].tolist()
    if force < 0.0:
        force = scale / max(float(m.actuator_acc0[i]), _LEAST)
    if source.word("mjtBias", m.actuator_biastype[i]) == "none":
        passive = 0.0
    shortest, longest = m.actuator_lengthrange[i].tolist()
    return Muscle(force, (shortest, longest), (low, high), l_min, l_max, v_max, passive, lengthening)


def _activation(source: Compiled, i: int) -> Activation | None:
    m = source.model
    word = source.word("mjtDyn", m.actuator_dyntype[i])
    if word == "none":
        return None
    bounds = _range(m.actuator_actlimited[i], m.actuator_actrange[i])
    if word == "integrator":
        return Activation("integrator", range=bounds)
    if word == "muscle":
        rise, fall, smoothing = m.actuator_dynprm[i, :3].tolist()
        return Activation("muscle", max(rise, _SHORTEST), bounds, max(fall, _SHORTEST), smoothing)
    return Activation("filter", max(float(m.actuator_dynprm[i, 0]), _SHORTEST), bounds)


def _range(limited: object, numbers: Array) -> Range:
    low, high = numbers.tolist()
    return (low, high) if limited else (-math.inf, math.inf)


KINDS = {
    "jointpos": "joint_position",
    "jointvel": "joint_velocity",
    "jointactfrc": "joint_drive_force",
    "ballquat": "ball_orientation",
    "ballangvel": "ball_angular_velocity",
    "actuatorpos": "actuator_position",
    "actuatorvel": "actuator_velocity",
    "actuatorfrc": "actuator_force",
    "tendonpos": "tendon_position",
    "tendonvel": "tendon_velocity",
    "tendonactfrc": "tendon_drive_force",
    "gyro": "gyroscope",
    "accelerometer": "accelerometer",
    "velocimeter": "velocimeter",
    "magnetometer": "magnetometer",
    "touch": "touch",
    "force": "force",
    "torque": "torque",
    "framepos": "frame_position",
    "framequat": "frame_orientation",
    "framexaxis": "frame_x_axis",
    "frameyaxis": "frame_y_axis",
    "framezaxis": "frame_z_axis",
    "framelinvel": "frame_linear_velocity",
    "frameangvel": "frame_angular_velocity",
    "framelinacc": "frame_linear_acceleration",
    "frameangacc": "frame_angular_acceleration",
    "subtreecom": "subtree_center_of_mass",
    "subtreelinvel": "subtree_linear_velocity",
    "subtreeangmom": "subtree_angular_momentum",
    "e_kinetic": "kinetic_energy",
    "e_potential": "potential_energy",
    "clock": "clock",
}
"""Kinds of sensors by MuJoCo's words."""


def read_sensors(places: Places, actuators: Collection[str], left_out: list[str]) -> Iterator[Written[Sensor]]:
    """The sensors that can be described; the others are named in `left_out`, each kind once."""
    source = places.source
    m = source.model
    missing: dict[str, list[str]] = {}
    if source.is_off("sensor") and m.nsensor:
        left_out.append("all sensors: the file switches them off")
        return
    for i in range(m.nsensor):
        name = source.name("sensor", i)
        word = source.word("mjtSensor", m.sensor_type[i])
        kind = KINDS.get(word)
        target = None if kind is None else _sensed(places, kind, i, actuators)
        if kind is None or target is None:
            missing.setdefault(word, []).append(name)
            continue
        reference = None
        if kind.startswith("frame_") and m.sensor_refid[i] >= 0:
            kind_of, index = source.word("mjtObj", m.sensor_reftype[i]), int(m.sensor_refid[i])
            reference = places.frame(kind_of, index)
            if reference is None:
                missing.setdefault(word, []).append(name)
                continue
        x, y, z = m.opt.magnetic.tolist() if kind == "magnetometer" else (0.0, 0.0, 0.0)
        zone = _zone(source, int(m.sensor_objid[i])) if kind == "touch" else None
        known = (float(m.sensor_noise[i]), float(m.sensor_cutoff[i]), (x, y, z), zone)
        sensor = Sensor(name, kind, target, reference, *known)
        yield Written(sensor, *source.at("sensor", i))
    for word, own in missing.items():
        shown = ", ".join(map(repr, own[:3])) + (f" and {len(own) - 3} more" if len(own) > 3 else "")
        left_out.append(f"sensors of kind {word} ({shown})")


def _zone(source: Compiled, site: int) -> Zone:
    """The site of a touch sensor, as a shape."""
    m = source.model
    kind = source.word("mjtGeom", m.site_type[site])
    a, b, c = (float(x) for x in m.site_size[site])
    halves = {"sphere": (a, a, a), "capsule": (a, a, b), "cylinder": (a, a, b)}.get(kind, (a, b, c))
    return Zone(kind, halves)


def _sensed(places: Places, kind: str, i: int, actuators: Collection[str]) -> str | None:
    """The name here of what a sensor is fixed to; None where it is nothing that we have."""
    source, names = places.source, places.names
    m = source.model
    index = int(m.sensor_objid[i])
    of = SENSOR_KINDS[kind][0]
    if not of:
        return ""
    if of == "joint":
        return names.joints[index]
    if of == "spring":
        return source.name("tendon", index)
    if of == "actuator":
        name = source.name("actuator", index)
        return name if name in actuators else None
    if kind.startswith("subtree_"):
        return names.bodies[index] if index and m.body_jntnum[index] else None
    if kind == "touch" and not m.body_weldid[m.site_bodyid[index]]:
        return None  # on what is fixed to the world
    if kind in ("force", "torque") and not m.body_jntnum[m.site_bodyid[index]]:
        return None  # what goes through a weld is not known: welded bodies are one
    return places.frame(source.word("mjtObj", m.sensor_objtype[i]), index)
