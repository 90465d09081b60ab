"""Sensors: their kinds, what each is fixed to, and what could not be read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from linkwise.files.description import Written
from linkwise.files.mjcf.compiled import Compiled
from linkwise.files.mjcf.tree import Places
from linkwise.mechanism.actuation import SENSOR_KINDS, Sensor, Zone

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
        target = None if kind is None else _target(places, kind, i, actuators)
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


def _target(places: Places, kind: str, i: int, actuators: Collection[str]) -> str | None:
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
