"""A ``<mujoco>`` element to a description.

MuJoCo's own compiler resolves defaults, orientations and the inertias of shapes (`linkwise.files.mjcf.compiled`);
what it returns is read here. Coordinates have its numbers and its order, but for free joints: q is [quaternion, place]
here and the other way round there (`linkwise.files.mjcf.mujoco_states` converts).

Left out with one warning: what is about contact, and what acts but has no counterpart here. Refused, with the line:
what would make the equations of motion themselves wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from linkwise.errors import ModelWarning
from linkwise.files.file_description import Description, JointWritten
from linkwise.files.mjcf.actuators_and_sensors import read_actuators, read_sensors, reflected
from linkwise.files.mjcf.compiled import Compiled, compiled
from linkwise.files.mjcf.couplings import ball_springs, read_loops, tendon_springs
from linkwise.files.mjcf.document import read_document
from linkwise.files.mjcf.geoms import shapes_of
from linkwise.files.mjcf.joints_and_places import MjcfNames, names_of, read_tree
from linkwise.files.mjcf.options import NOTHING, USED, forces_left_out, read_fields
from linkwise.files.resources import SearchPath
from linkwise.files.topology import WORLD
from linkwise.files.xml import XmlElement
from linkwise.spatial.quaternions import rotation_matrix

_ByJoint = dict[str, tuple[float, ...]]
"""Numbers of each joint, by its name."""


def read_mjcf(
    root: XmlElement, file: str, name: str, places: SearchPath, snap: float
) -> tuple[Description, list[ModelWarning]]:
    """The description, and what to warn about."""
    source = compiled(read_document(root, file, places))
    m = source.model
    names = names_of(source)
    links, joints, found = read_tree(source, names, snap)
    loops = read_loops(source, names, snap)
    ignored: list[str] = []
    armature, damping, dampers = reflected(found, ignored)
    actuators = list(read_actuators(found, ignored))
    sensors = list(read_sensors(found, {each.name for each in actuators}, ignored))
    springs = [*tendon_springs(found, ignored), *ball_springs(source, names, ignored), *dampers]
    fields = list(read_fields(found))
    ignored += loops.left_out
    ignored += _forces_left_out(source, names)
    gx, gy, gz = (0.0, 0.0, 0.0) if source.is_off("gravity") else m.opt.gravity.tolist()
    description = Description(
        root.attributes.get("model", "").strip() or name,
        file,
        root.line,
        tuple(links),
        tuple(_with_reflected(joint, armature, damping) for joint in joints),
        tuple(found.frames),
        tuple(loops.closures),
        tuple(loops.couplings),
        (gx, gy, gz),
        tuple(loops.polynomials),
        tuple(actuators),
        tuple(sensors),
        tuple(springs),
        tuple(fields),
        tuple(_configurations(source, names)),
        shapes_of(source, 0, WORLD, snap)[1],
        tuple(_excludes(source, names)),
    )
    return description, [*_warnings(file, ignored), *(ModelWarning(f"{file}: {note}") for note in source.notes)]


def _excludes(source: Compiled, names: MjcfNames) -> Iterator[tuple[str, str]]:
    """The pairs of bodies that <exclude> keeps from touching."""
    for signature in source.model.exclude_signature.tolist():
        yield names.bodies[signature >> 16], names.bodies[signature & 0xFFFF]


def _with_reflected(joint: JointWritten, armature: Mapping[str, float], damping: Mapping[str, float]) -> JointWritten:
    if joint.name not in armature:
        return joint
    return replace(
        joint,
        armature=_sum(joint.armature, armature[joint.name]),
        damping=_sum(joint.damping, damping[joint.name]),
    )


def _sum(value: float | tuple[float, ...], more: float) -> float:
    assert isinstance(value, float)  # one for all freedoms, as `read_tree` has it
    return value + more


def _configurations(source: Compiled, names: MjcfNames) -> list[tuple[str, _ByJoint, _ByJoint]]:
    """The reference configuration of the file as "initial", then its keyframes, with their velocities."""
    m = source.model
    found: dict[str, tuple[_ByJoint, _ByJoint]] = {"initial": (_by_joint(source, names, m.qpos0), {})}
    for i in range(m.nkey):
        q = _by_joint(source, names, m.key_qpos[i])
        found[source.name("key", i)] = q, _rates_by_joint(source, names, q, m.key_qvel[i])
    return [(name, q, v) for name, (q, v) in found.items()]


def _by_joint(source: Compiled, names: MjcfNames, qpos: np.ndarray) -> _ByJoint:
    m = source.model
    values = {}
    for joint, name in enumerate(names.joints):
        at, kind = int(m.jnt_qposadr[joint]), source.joint_type(joint)
        if kind == "free":
            own = [*qpos[at + 3 : at + 7], *qpos[at : at + 3]]
        elif kind == "ball":
            own = list(qpos[at : at + 4])
        else:
            own = [qpos[at]]
        values[name] = tuple(float(x) for x in own)
    return values


def _rates_by_joint(source: Compiled, names: MjcfNames, q: _ByJoint, qvel: np.ndarray) -> _ByJoint:
    """Velocities, those of free joints in their own axes."""
    values = {}
    for joint, name in enumerate(names.joints):
        at, kind = int(source.model.jnt_dofadr[joint]), source.joint_type(joint)
        own = qvel[at : at + {"free": 6, "ball": 3}.get(kind, 1)]
        if kind == "free":
            turn = np.array(q[name][:4])
            R: np.ndarray = np.array(rotation_matrix((turn / np.linalg.norm(turn)).tolist()).m)
            own = np.concatenate([own[3:], own[:3] @ R])
        values[name] = tuple(float(x) for x in own)
    return values


def _forces_left_out(source: Compiled, names: MjcfNames) -> list[str]:
    """Forces that act in MuJoCo and not here, by name."""
    m = source.model
    found = [said for said in forces_left_out(source) if said not in (USED, NOTHING)]
    lifted = m.opt.gravity.any() and m.body_gravcomp.any() and not (source.is_off("gravity") or source.is_passive_off)
    if m.nmocap:
        moved = [names.bodies[i] for i in np.flatnonzero(np.asarray(m.body_mocapid) >= 0)]
        found.append(f"mocap: {', '.join(map(repr, moved[:3]))} stand still")
    own = np.asarray(m.pair_friction)
    if m.npair and not np.allclose(own[:, [0, 3]], own[:, [1, 4]]):
        found.append("friction of contact pairs that differs in two directions (their mean counts)")
    if np.any(m.pair_margin):
        found.append("the margin of contact pairs")
    for joint, name in enumerate(names.joints):
        dof = int(m.jnt_dofadr[joint])
        bent = m.jnt_stiffnesspoly[joint].any() or m.jnt_springyield[joint]
        if (bent and not source.is_off("spring")) or (m.dof_dampingpoly[dof].any() and not source.is_off("damper")):
            found.append(f"what is not linear in the spring or damping of joint {name!r}")
        kind = source.joint_type(joint)
        if kind == "ball" and m.jnt_limited[joint] and not source.is_off("limit"):
            found.append(f"the limit of ball joint {name!r}")
        if kind == "free" and m.dof_armature[dof]:
            found.append(f"that the armature of free joint {name!r} does not turn with the body")
        low, high = m.jnt_actfrcrange[joint].tolist()
        if m.jnt_actfrclimited[joint] and low != -high and not source.is_off("actuation"):
            found.append(f"the limits of the drives of joint {name!r}, which differ in the two directions")
        if m.jnt_actgravcomp[joint] and lifted and m.jnt_actfrclimited[joint] and not source.is_off("actuation"):
            found.append(f"that the limits of the drives of joint {name!r} hold for gravity compensation too")
    return found


def _warnings(file: str, ignored: list[str]) -> list[ModelWarning]:
    """One line, whatever it is that has no counterpart here: the list is for ``linkwise check``."""
    everything = list(dict.fromkeys(ignored))
    if not everything:
        return []
    count = "1 thing is" if len(everything) == 1 else f"{len(everything)} things are"
    listed = (
        "the left_out of this warning lists them" if file.startswith("<") else f"`linkwise check {file}` lists them"
    )
    return [ModelWarning(f"{file}: {count} left out; {listed}", left_out=everything)]
