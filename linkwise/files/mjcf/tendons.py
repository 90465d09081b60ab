"""Tendons over joints, from site to site and around shapes: their sums, and what acts along them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from linkwise.files.description import Written
from linkwise.files.mjcf.compiled import Compiled
from linkwise.files.mjcf.tree import Names, Places
from linkwise.mechanism.actuation import EVERYWHERE, JointTransmission, PathTransmission, Range, Spring, Transmission
from linkwise.mechanism.wrapping import Wrap

_READ = ("tendonpos", "tendonvel", "tendonactfrc")  # sensors


def tendon_terms(source: Compiled, names: Names, tendon: int) -> dict[str, float] | None:
    """The factor of each joint in the length of a tendon; None for one that runs through space."""
    m = source.model
    first, count = int(m.tendon_adr[tendon]), int(m.tendon_num[tendon])
    terms: dict[str, float] = {}
    for wrap in range(first, first + count):
        if source.word("mjtWrap", m.wrap_type[wrap]) != "joint":
            return None
        joint = names.joints[m.wrap_objid[wrap]]
        terms[joint] = terms.get(joint, 0.0) + float(m.wrap_prm[wrap])
    return {joint: c for joint, c in terms.items() if c != 0.0} or None


def transmission_of(places: Places, tendon: int, gear: float = 1.0) -> Transmission | None:
    """A tendon over joints, or from site to site with pulleys and shapes; None for one that leads nowhere."""
    source, names = places.source, places.names
    m = source.model
    terms = tendon_terms(source, names, tendon)
    if terms is not None:
        return JointTransmission({joint: gear * c for joint, c in terms.items()})
    first, count = int(m.tendon_adr[tendon]), int(m.tendon_num[tendon])
    paths: list[tuple[list[str | Wrap], float]] = [([], gear)]
    for wrap in range(first, first + count):
        kind = source.word("mjtWrap", m.wrap_type[wrap])
        if kind == "pulley":
            paths.append(([], gear / float(m.wrap_prm[wrap])))
        elif kind == "site":
            paths[-1][0].append(names.sites[m.wrap_objid[wrap]])
        else:
            geom, side = int(m.wrap_objid[wrap]), round(float(m.wrap_prm[wrap]))
            shape: Literal["sphere", "cylinder"] = "sphere" if kind == "sphere" else "cylinder"
            on = names.sites[side] if side >= 0 else None
            paths[-1][0].append(Wrap(places.shape(geom), float(m.geom_size[geom, 0]), shape, on))
    found = tuple((tuple(stops), factor) for stops, factor in paths if len(stops) > 1)
    return PathTransmission(found) if found else None


def tendon_springs(places: Places, left_out: list[str]) -> Iterator[Written[Spring]]:
    """Springs along tendons, and tendons that a sensor reads; whatever they have beyond that is said by name."""
    source = places.source
    m = source.model
    read = {int(m.sensor_objid[i]) for i in range(m.nsensor) if source.word("mjtSensor", m.sensor_type[i]) in _READ}
    for i in range(m.ntendon):
        name = source.name("tendon", i)
        stiffness = 0.0 if source.is_off("spring") else float(m.tendon_stiffness[i])
        damping = 0.0 if source.is_off("damper") else float(m.tendon_damping[i])
        friction = 0.0 if source.is_off("frictionloss") else float(m.tendon_frictionloss[i])
        limits: Range = EVERYWHERE
        if m.tendon_limited[i] and not source.is_off("limit"):
            low, high = m.tendon_range[i].tolist()
            limits = (low, high)
        if m.tendon_actfrclimited[i] and not source.is_off("actuation"):
            left_out.append(f"the limits of the drives of tendon {name!r}")
        if m.tendon_armature[i]:
            raise source.fail(
                f"tendon {name!r} has an armature: it couples the inertias of its joints, which is not supported",
                "tendon", i, do="give its joints an armature instead",
            )  # fmt: skip
        bent = m.tendon_stiffnesspoly[i].any() or m.tendon_springyield[i]
        if (bent and not source.is_off("spring")) or (m.tendon_dampingpoly[i].any() and not source.is_off("damper")):
            left_out.append(f"what is not linear in the spring of tendon {name!r}")
        if not (stiffness or damping or friction or limits != EVERYWHERE or i in read):
            continue
        transmission = transmission_of(places, i)
        if transmission is None:
            left_out.append(f"tendon {name!r}, which leads nowhere")
            continue
        low, high = m.tendon_lengthspring[i].tolist()
        spring = Spring(name, transmission, stiffness, damping, (low, high), friction, limits)
        yield Written(spring, *source.at("tendon", i))


def ball_springs(source: Compiled, names: Names, left_out: list[str]) -> Iterator[Written[Spring]]:
    """Springs of ball joints: one about each axis. Those of free joints are said by name."""
    m = source.model
    if source.is_off("spring"):
        return
    for joint in range(m.njnt):
        if not m.jnt_stiffness[joint] or source.is_single(joint):
            continue
        at = int(m.jnt_qposadr[joint])
        if source.joint_type(joint) == "free" or m.qpos_spring[at : at + 4].tolist() != [1.0, 0.0, 0.0, 0.0]:
            left_out.append(f"the spring of joint {names.joints[joint]!r}")
            continue
        for axis, gear in (("x", (1.0, 0.0, 0.0)), ("y", (0.0, 1.0, 0.0)), ("z", (0.0, 0.0, 1.0))):
            spring = Spring(
                f"{names.joints[joint]}.{axis}",
                JointTransmission({names.joints[joint]: gear}),
                float(m.jnt_stiffness[joint]),
            )
            yield Written(spring, *source.at("joint", joint))
