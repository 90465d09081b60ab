"""Equality constraints, to closures and couplings, and tendons: over joints, from site to site and around shapes.

MuJoCo's constraints are soft: they pull with a spring of their own. Here they hold exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.files.file_description import ClosureWritten, CouplingWritten, JointWritten, PolynomialWritten, Written
from linkwise.files.mjcf.compiled import Compiled, turn
from linkwise.files.mjcf.joints_and_places import MjcfNames, Places
from linkwise.mechanism.actuation import EVERYWHERE, JointTransmission, PathTransmission, Range, Spring, Transmission
from linkwise.mechanism.placement import pose
from linkwise.mechanism.wrapping import Wrap

_READ = ("tendonpos", "tendonvel", "tendonactfrc")  # sensors


def tendon_terms(source: Compiled, names: MjcfNames, tendon: int) -> dict[str, float] | None:
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


def ball_springs(source: Compiled, names: MjcfNames, left_out: list[str]) -> Iterator[Written[Spring]]:
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


@dataclass(eq=False)
class Loops:
    """Closures of loops and couplings of joints, and by name those that could not be read."""

    closures: list[ClosureWritten] = field(default_factory=list)
    couplings: list[CouplingWritten] = field(default_factory=list)
    polynomials: list[PolynomialWritten] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def read_loops(source: Compiled, names: MjcfNames, snap: float) -> Loops:
    """The equality constraints that are in force."""
    m = source.model
    loops = Loops()
    if source.is_off("equality"):
        return loops
    for i in range(m.neq):
        name = source.name("equality", i)
        kind = source.word("mjtEq", m.eq_type[i])
        if not m.eq_active0[i]:
            loops.left_out.append(f"equality {name!r}, which is not active")
        elif kind in ("connect", "weld"):
            loops.closures.append(_closure(source, names, i, name, snap))
        elif kind in ("joint", "tendon"):
            _couple(source, names, i, name, loops)
        else:
            loops.left_out.append(f"equality {name!r} ({kind})")
    return loops


def _closure(source: Compiled, names: MjcfNames, i: int, name: str, snap: float) -> ClosureWritten:
    """Frame a on the first body, frame b on the second: together at a point, or altogether."""
    m = source.model
    data = m.eq_data[i]
    weld = source.word("mjtEq", m.eq_type[i]) == "weld"
    a, b = pose(), pose()
    if source.word("mjtObj", m.eq_objtype[i]) == "site":
        ends = [_site(source, names, int(site), snap) for site in (m.eq_obj1id[i], m.eq_obj2id[i])]
        (body_a, a), (body_b, b) = ends
    else:
        body_a, body_b = names.bodies[m.eq_obj1id[i]], names.bodies[m.eq_obj2id[i]]
        if weld:
            a, b = pose(data[3:6], turn(data[6:10], snap)), pose(data[0:3])
        else:
            a, b = pose(data[0:3]), pose(data[3:6])
    holds_turn = weld and data[10] != 0.0  # a weld without torque is a point
    line, file = source.at("equality", i)
    kind = "fixed" if holds_turn else "spherical"
    return ClosureWritten(JointWritten(name, line, kind, body_a, body_b, a, joint_frame=b, file=file), implied=True)


def _site(source: Compiled, names: MjcfNames, site: int, snap: float) -> tuple[str, FloatArray]:
    m = source.model
    return names.bodies[m.site_bodyid[site]], pose(m.site_pos[site], turn(m.site_quat[site], snap))


def _couple(source: Compiled, names: MjcfNames, i: int, name: str, loops: Loops) -> None:
    """x₁ - x₁(0) = a₀ + a₁ y + … a₄ y⁴ with y = x₂ - x₂(0), of joints or of tendons over joints."""
    m = source.model
    sides = [_side(source, names, i, int(index)) for index in (m.eq_obj1id[i], m.eq_obj2id[i]) if index >= 0]
    if any(side is None for side in sides):
        loops.left_out.append(f"equality {name!r}, of a tendon through space or of a joint with several freedoms")
        return
    (left, start_left), *rest = (side for side in sides if side is not None)
    a = np.array(m.eq_data[i][:5], float)
    a[0] += start_left
    line, other = source.at("equality", i)
    if not rest:
        loops.couplings.append(CouplingWritten(name, line, left, float(a[0]), other))
        return
    right, start = rest[0]
    if not a[2:].any():
        terms = dict(left)
        for joint, c in right.items():
            terms[joint] = terms.get(joint, 0.0) - float(a[1]) * c
        terms = {joint: c for joint, c in terms.items() if c != 0.0}
        loops.couplings.append(CouplingWritten(name, line, terms, float(a[0] - a[1] * start), other))
    elif set(left) & set(right):
        loops.left_out.append(f"equality {name!r}, a polynomial with a joint on both sides")
    else:
        loops.polynomials.append(PolynomialWritten(name, line, left, right, tuple(a.tolist()), start, other))


def _side(source: Compiled, names: MjcfNames, i: int, index: int) -> tuple[dict[str, float], float] | None:
    """A sum of joint coordinates, and its value in the reference configuration."""
    m = source.model
    if source.word("mjtEq", m.eq_type[i]) == "tendon":
        terms = tendon_terms(source, names, index)
        return None if terms is None else (terms, float(m.tendon_length0[index]))
    if not source.is_single(index):
        return None
    return {names.joints[index]: 1.0}, float(m.qpos0[m.jnt_qposadr[index]])
