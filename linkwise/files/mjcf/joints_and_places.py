"""Bodies, joints and places of a compiled model.

A body of MuJoCo may have several joints, one after the other; ours has one. So there are bodies without mass between
them, named ``body.joint``, each with its frame where the body's is after the joints up to that one. A joint turns about
its anchor, which is its frame here. Coordinates are MuJoCo's own numbers: a hinge with ``ref`` stands at its place in
the file when q is ref, and the coordinates of a free joint are the body's place in the world.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.files.bodies import unused
from linkwise.files.file_description import FrameWritten, JointWritten, LinkWritten, Vector
from linkwise.files.mjcf.compiled import Compiled, turn
from linkwise.files.mjcf.geoms import shapes_of
from linkwise.files.topology import WORLD
from linkwise.joints import joint_types
from linkwise.mechanism.description import JointLimits
from linkwise.mechanism.placement import axis_rotation, pose


@dataclass(eq=False)
class MjcfNames:
    """Names here of the elements of the file.

    MuJoCo keeps the names of bodies, sites, cameras and joints apart; here bodies and frames share theirs, so that a
    site of the same name as a body has ``_site`` after it.
    """

    bodies: list[str]
    joints: list[str]
    sites: list[str]
    cameras: list[str]
    taken: set[str]
    between: dict[int, str] = field(default_factory=dict)
    """For each joint but the last of its body, the body without mass that it carries."""


@dataclass(eq=False)
class Places:
    """Frames, and those that are added because something is fixed to a shape or a mass centre."""

    source: Compiled
    names: MjcfNames
    snap: float
    frames: list[FrameWritten] = field(default_factory=list)
    added: dict[tuple[str, int], str] = field(default_factory=dict)

    def frame(self, kind: str, index: int) -> str | None:
        """The name of a body or frame; a frame more for a mass centre ("body") or a shape ("geom")."""
        if kind == "xbody":
            return self.names.bodies[index]
        if kind == "site":
            return self.names.sites[index]
        if kind == "camera":
            return self.names.cameras[index]
        if kind == "body":
            return self.mass_centre(index)
        return self.shape(index) if kind == "geom" else None

    def mass_centre(self, body: int) -> str:
        """The name of a frame at the mass centre of a body, along its principal axes."""
        m = self.source.model
        X = pose(m.body_ipos[body], turn(m.body_iquat[body], self.snap))
        return self._added(("inertial", body), self.names.bodies[body], body, X)

    def shape(self, geom: int) -> str:
        """The name of a frame at a shape."""
        m = self.source.model
        X = pose(m.geom_pos[geom], turn(m.geom_quat[geom], self.snap))
        return self._added(("geom", geom), self.source.name("geom", geom), int(m.geom_bodyid[geom]), X)

    def _added(self, key: tuple[str, int], of: str, body: int, X: FloatArray) -> str:
        if key not in self.added:
            self.added[key] = own = unused(f"{of}_{key[0]}", self.names.taken)
            self.frames.append(FrameWritten(own, self.source.at("body", body)[0], self.names.bodies[body], X))
        return self.added[key]


def names_of(source: Compiled) -> MjcfNames:
    """A name for every body, joint, site and camera, unlike any other of its kind here."""
    m = source.model
    written = [source.name("body", i) for i in range(m.nbody)]
    taken = {WORLD, *written}
    sites = [_own(source.name("site", i), "_site", taken) for i in range(m.nsite)]
    cameras = [_own(source.name("camera", i), "_camera", taken) for i in range(m.ncam)]
    named = {source.written("joint", i) for i in range(m.njnt)}
    joints: list[str] = []
    for i in range(m.njnt):
        joints.append(source.written("joint", i) or unused(f"{written[m.jnt_bodyid[i]]}_joint", named))
    names = MjcfNames([WORLD, *written[1:]], joints, sites, cameras, taken)
    for body in range(1, m.nbody):
        first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
        for joint in range(first, first + count - 1):
            names.between[joint] = _own(f"{names.bodies[body]}.{joints[joint]}", "", taken)
    return names


def read_tree(source: Compiled, names: MjcfNames, snap: float) -> tuple[list[LinkWritten], list[JointWritten], Places]:
    """Links, the joints that carry them, and the sites and cameras on them."""
    m = source.model
    links = [LinkWritten(WORLD, source.document.where[0][1])]
    joints: list[JointWritten] = []
    for body in range(1, m.nbody):
        line, other = source.at("body", body)
        for joint in _joints(source, names, body, snap):
            joints.append(joint)
            if joint.child != names.bodies[body]:
                links.append(LinkWritten(joint.child, joint.line, file=joint.file))
        visuals, collisions = shapes_of(source, body, names.bodies[body], snap)
        turned = turn(m.body_iquat[body], snap)
        links.append(
            LinkWritten(
                names.bodies[body],
                line,
                float(m.body_mass[body]),
                _vector(m.body_ipos[body]),
                turned @ np.diag(m.body_inertia[body]) @ turned.T,
                visuals,
                collisions,
                other,
            )
        )
    places = Places(source, names, snap)
    for kind, own, of, at, quat in (
        ("site", names.sites, m.site_bodyid, m.site_pos, m.site_quat),
        ("camera", names.cameras, m.cam_bodyid, m.cam_pos, m.cam_quat),
    ):
        for i, name in enumerate(own):
            line, other = source.at(kind, i)
            X = pose(at[i], turn(quat[i], snap))
            places.frames.append(FrameWritten(name, line, names.bodies[of[i]], X, other))
    return links, joints, places


def _joints(source: Compiled, names: MjcfNames, body: int, snap: float) -> Iterator[JointWritten]:
    """The joints from a body's parent to the body, in series."""
    m = source.model
    parent, name = names.bodies[m.body_parentid[body]], names.bodies[body]
    X = pose(m.body_pos[body], turn(m.body_quat[body], snap))
    first, count = int(m.body_jntadr[body]), int(m.body_jntnum[body])
    if count == 0:
        line, file = source.at("body", body)
        yield JointWritten(unused(f"{name}_joint", set(names.joints)), line, "fixed", parent, name, X, file=file)
        return
    types = joint_types("mjcf")
    for joint in range(first, first + count):
        kind = source.joint_type(joint)
        line, file = source.at("joint", joint)
        child = names.between.get(joint, name)
        anchor = pose(m.jnt_pos[joint])
        axis = _axis(m.jnt_axis[joint], snap)
        parts = _parts(source, joint)
        if kind == "free":
            placement, anchor = pose(), pose()
        elif kind == "ball":
            placement = X @ anchor
        else:
            slides = kind == "slide"
            ref = float(m.qpos0[m.jnt_qposadr[joint]])
            back = pose([-ref * x for x in axis]) if slides else pose(R=axis_rotation(axis, -ref, snap))
            placement = X @ anchor @ back if ref else X @ anchor
        yield JointWritten(
            names.joints[joint], line, types[kind].word, parent, child, placement, axis, joint_frame=anchor,
            file=file, **parts,
        )  # fmt: skip
        parent, X = child, pose()


def _parts(source: Compiled, joint: int) -> dict[str, Any]:
    """Limits, losses, springs and rotor inertia."""
    m = source.model
    dof = int(m.jnt_dofadr[joint])
    parts: dict[str, Any] = {
        "armature": float(m.dof_armature[dof]),
        "damping": 0.0 if source.is_off("damper") else float(m.dof_damping[dof]),
        "friction": 0.0 if source.is_off("frictionloss") else float(m.dof_frictionloss[dof]),
    }
    if source.is_single(joint):
        limited = bool(m.jnt_limited[joint]) and not source.is_off("limit")
        lower, upper = m.jnt_range[joint].tolist() if limited else (-np.inf, np.inf)
        effort = np.inf
        if m.jnt_actfrclimited[joint]:
            low, high = m.jnt_actfrcrange[joint].tolist()
            if low == -high:
                effort = high
        if limited or np.isfinite(effort):
            parts["limits"] = JointLimits(lower, upper, effort=effort)
        if not source.is_off("spring") and m.jnt_stiffness[joint]:
            parts["stiffness"] = float(m.jnt_stiffness[joint])
            parts["rest"] = float(m.qpos_spring[m.jnt_qposadr[joint]])
    return parts


def _axis(axis: ArrayLike, snap: float) -> Vector:
    a = np.array(axis, float)
    a[np.abs(a) <= max(snap, 1e-15)] = 0.0
    return _vector(a / np.linalg.norm(a))


def _vector(numbers: Iterable[float]) -> Vector:
    x, y, z = (float(each) + 0.0 for each in numbers)
    return x, y, z


def _own(name: str, suffix: str, taken: set[str]) -> str:
    return unused(name if name not in taken else f"{name}{suffix}", taken)
