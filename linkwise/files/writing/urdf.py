"""A mechanism as URDF, and the loops that URDF cannot say as a side file.

Bodies, welded parts and frames become links; a body whose frame is not on its joint hangs on a link that is. Joints of
several freedoms become joints of one in series, with links of no mass between, which moves in the same way; so does a
screw, as a turn and a slide that follows it. The numbers are those of the model: what is read again moves as it does,
to rounding.
"""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from linkwise.dataclass import dataclass
from linkwise.errors import ModelError
from linkwise.files.bodies import unused
from linkwise.files.loops import loop_words
from linkwise.files.writing.output import (
    Losses,
    depth_first,
    element,
    sayable,
    text_of,
    vector,
    write_whole,
)
from linkwise.joints import SeriesJoint
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism import closures
from linkwise.mechanism.bodies_and_joints import IDENTITY, Body, JointInstance, Part, Pose, is_identity, product, rows
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.mechanism.description import Geometry, JointLimits
from linkwise.mechanism.joined_bodies import moved_shape
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.placement import inverse_pose, pose, rpy_of

_UNLIMITED = 1e30  # other readers ask for a number; ours takes this one for none
_TAGS = {"turn": "revolute", "slide": "prismatic", "free": "floating", "plane": "planar"}
_USUAL_GRAVITY = (0.0, 0.0, -9.81)


def write_urdf(mechanism: Mechanism, path: str | os.PathLike[str]) -> list[str]:
    """Write the file, and ``name.loops.yaml`` beside it where there are loops; see :meth:`linkwise.Model.save`."""
    text, side, lost = urdf_text(mechanism)
    write_whole(Path(path), text.encode())
    if side:
        beside = Path(path).with_suffix(".loops.yaml")
        write_whole(beside, side.encode())
        lost.append(f"loops and couplings are in {beside.name}: load(..., loops={beside.name!r})")
    return lost


def urdf_text(mechanism: Mechanism) -> tuple[str, str, list[str]]:
    """The file, its side file (empty if there are no loops), and what was lost."""
    if mechanism._is_flexible or any(body.flexible is not None for body in mechanism.bodies):
        raise ModelError("URDF has no flexible bodies", do='model.save("name.lw.json")')
    lost = Losses()
    mechanism = sayable(mechanism, "URDF", lost)
    writer = _Writer(mechanism, lost)
    writer.write()
    return text_of(writer.root), _side_file(mechanism, lost), list(lost)


@dataclass
class _Writer:
    mechanism: Mechanism
    lost: Losses

    def __post_init__(self) -> None:
        self.root = ET.Element("robot", name=self.mechanism.name)
        m = self.mechanism
        self.taken = {"world", *(b.name for b in m.bodies), *(f.name for f in m.frames)}
        self.taken |= {part.name for body in m.bodies for part in body.parts} | {part.name for part in m.base_parts}
        self.joint_names = {joint.name for joint in m.joints}

    def write(self) -> None:
        m = self.mechanism
        element(self.root, "link", name="world")
        self.welded("world", m.base_parts, m.base_visuals, m._base_collisions, -1)
        if m._contact_excludes:
            self.lost.add("which links do not touch: that is said in an SRDF file")
        for body, joint in zip(m.bodies, m.joints, strict=True):
            parent = "world" if body.parent < 0 else m.bodies[body.parent].name
            self.body(body, joint, parent)
        if depth_first(m) != list(range(len(m.bodies))):
            self.lost.add("the order of the joints: readers of URDF go through one branch after the other")
        if tuple(m.gravity) != _USUAL_GRAVITY:
            self.lost.add(f"gravity {m.gravity}: load(..., gravity=...)")
        for what in ("actuators", "sensors", "springs", "fields"):
            if getattr(m, what):
                self.lost.add(f"{what}: {', '.join(each.name for each in getattr(m, what))}")
        if m.configurations:
            self.lost.add(f"configurations: {', '.join(m.configurations)}")
        if m._parameter_names:
            self.lost.add(f"run-time parameters: {', '.join(m._parameter_names)}")

    # -- links

    def body(self, body: Body, joint: JointInstance, parent: str) -> None:
        own = next((part for part in body.parts if part.name == body.name and is_identity(part.placement)), None)
        placement, frame = body.placement, body.joint_frame
        for each in joint.type.series() or ():
            if each.kind == "plane":  # readers disagree about the axis of a plane, unless it is z
                turn = pose(R=turn_z_to(each.axis))
                placement, frame = product(placement, turn), product(frame, turn)
        seat = body.name if is_identity(frame) else self.name(f"{body.name}_at_{joint.name}")
        self.joint(joint, parent, seat, placement)
        if seat != body.name:
            element(self.root, "link", name=seat)
            self.fixed(seat, body.name, rows(inverse_pose(np.array(frame))))
        others = tuple(part for part in body.parts if part is not own)
        at_parts = {part.name for part in others}
        self.link(
            body.name,
            own,
            [g for g in body.visuals if g.name not in at_parts],
            [g for g in body.collisions if g.name not in at_parts],
        )
        self.welded(body.name, others, body.visuals, body.collisions, body.index)

    def welded(
        self, on: str, parts: Sequence[Part], visuals: Sequence[Geometry], collisions: Sequence[Geometry], index: int
    ) -> None:
        """Parts and frames that sit on a link."""
        written = set()
        for part in parts:
            name = part.name if part.name != on and part.name not in written else self.name(f"{part.name}_part")
            written.add(name)
            X = inverse_pose(np.array(part.placement))
            mine = ([moved_shape(g, X) for g in shapes if g.name == part.name] for shapes in (visuals, collisions))
            self.link(name, part, *mine)
            self.fixed(on, name, part.placement)
        for frame in self.mechanism.frames:
            if frame.body == index and frame.name not in written:
                element(self.root, "link", name=frame.name)
                self.fixed(on, frame.name, frame.placement)
        if index < 0:
            for shape in (*visuals, *collisions):
                if shape.name not in written:
                    self.lost.add(f"a shape of {shape.name!r}, which is fixed to the world")

    def link(self, name: str, part: Part | None, visuals: list[Geometry], collisions: list[Geometry]) -> None:
        at = element(self.root, "link", name=name)
        if part is not None and (part.mass or any(part.inertia)):
            inertial = element(at, "inertial")
            element(inertial, "origin", xyz=vector(part.com))
            element(inertial, "mass", value=vector([part.mass]))
            names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
            element(inertial, "inertia", **{k: vector([x]) for k, x in zip(names, part.inertia, strict=True)})
        for tag, shapes in (("visual", visuals), ("collision", collisions)):
            for shape in shapes:
                self.shape(at, tag, shape)

    def shape(self, link: ET.Element, tag: str, shape: Geometry) -> None:
        if shape.kind not in ("mesh", "box", "sphere", "cylinder", "capsule"):
            self.lost.add(f"a shape of {shape.name!r}, which is of kind {shape.kind}")
            return
        at = element(link, tag)
        _origin(at, shape.placement)
        geometry = element(at, "geometry")
        if shape.kind == "mesh":
            element(geometry, "mesh", filename=shape.mesh, scale=vector(shape.scale))
        elif shape.kind == "box":
            element(geometry, "box", size=vector(shape.size))
        elif shape.kind == "sphere":
            element(geometry, "sphere", radius=vector(shape.size))
        else:
            element(geometry, shape.kind, radius=vector(shape.size[:1]), length=vector(shape.size[1:]))

    # -- joints

    def fixed(self, parent: str, child: str, X: Pose) -> None:
        self.plain("fixed", self.joint_name(f"{child}_fixed"), parent, child, X)

    def joint(self, joint: JointInstance, parent: str, child: str, X: Pose) -> None:
        """One joint, or several in series with links of no mass between."""
        if any(joint.armature):
            self.lost.add(f"armature of joint {joint.name!r}")
        if any(joint.stiffness):
            self.lost.add(f"spring of joint {joint.name!r}")
        series = joint.type.series() or ()
        if any(each.kind == "ball" for each in series):
            series = tuple(SeriesJoint("turn", axis, k) for k, axis in enumerate(np.eye(3).tolist()))
            self.lost.add(f"the coordinates of joint {joint.name!r}: a spherical joint is written as three turns")
        on, first = parent, self.root
        for k, each in enumerate(series):
            last = k == len(series) - 1
            to = child if last else self.name(f"{child}_{k + 1}")
            name = joint.name if k == 0 else self.joint_name(f"{joint.name}_{k + 1}")
            at = self.plain(_TAGS[each.kind], name, on, to, X if k == 0 else IDENTITY)
            first = at if k == 0 else first
            if each.kind != "free":
                element(at, "axis", xyz=vector(each.axis if each.kind != "plane" else (0.0, 0.0, 1.0)))
            if not last:
                element(self.root, "link", name=to)
            if each.ratio is not None:
                element(at, "mimic", joint=joint.name, multiplier=vector([each.ratio]))
                element(at, "limit", lower=vector([-_UNLIMITED]), upper=vector([_UNLIMITED]), effort="0", velocity="0")
            elif each.single:
                self.details(at, joint, each.freedom)
            elif any(joint.damping) or any(joint.friction) or joint.limits:
                self.lost.add(f"limits, damping and friction of joint {joint.name!r}")
            on = to
        if joint.mimic is not None:
            element(
                first,
                "mimic",
                joint=joint.mimic.joint,
                multiplier=vector([joint.mimic.multiplier]),
                offset=vector([joint.mimic.offset]),
            )

    def plain(self, tag: str, name: str, parent: str, child: str, X: Pose) -> ET.Element:
        at = element(self.root, "joint", name=name, type=tag)
        _origin(at, X)
        element(at, "parent", link=parent)
        element(at, "child", link=child)
        return at

    def details(self, at: ET.Element, joint: JointInstance, freedom: int) -> None:
        """Limits, damping and friction of one freedom."""
        limits = joint.limits[freedom] if joint.limits else JointLimits()
        bounded = math.isfinite(limits.lower) or math.isfinite(limits.upper)
        if at.get("type") == "revolute" and not bounded:
            at.set("type", "continuous")
        written: dict[str, str | None] = {"effort": _finite(limits.effort), "velocity": _finite(limits.velocity)}
        if bounded or at.get("type") == "prismatic":
            written |= {"lower": _finite(limits.lower), "upper": _finite(limits.upper)}
        if bounded or at.get("type") == "prismatic" or math.isfinite(min(limits.effort, limits.velocity)):
            element(at, "limit", **written)
        damping = joint.damping[freedom] if joint.damping else 0.0
        friction = joint.friction[freedom] if joint.friction else 0.0
        if damping or friction:
            element(at, "dynamics", damping=vector([damping]), friction=vector([friction]))

    # -- names that nothing else has

    def name(self, wanted: str) -> str:
        return unused(wanted, self.taken)

    def joint_name(self, wanted: str) -> str:
        return unused(wanted, self.joint_names)


def _side_file(mechanism: Mechanism, lost: Losses) -> str:
    """Closures and couplings in the second form of :mod:`linkwise.files.loops`."""
    loops, couplings = [], []
    for each in mechanism.closures:
        kind = each.type
        if isinstance(kind, closures.Coupling):
            terms = ", ".join(f"{_quoted(j)}: {c!r}" for j, c in zip(kind.joints, kind.coefficients, strict=True))
            couplings.append(f"  - name: {_quoted(each.name)}\n    terms: {{{terms}}}\n    offset: {kind.offset!r}")
            continue
        joint = kind.joint if isinstance(kind, closures.JointClosure) else None
        if not isinstance(each, ClosureInstance) or joint is None or joint.word not in loop_words():
            lost.add(f"closure {each.name!r} ({kind.kind})")
            continue
        lines = [f"  - name: {_quoted(each.name)}", f"    type: {joint.word}"]
        for side, (body, X, _) in zip("ab", each.sides, strict=True):
            on = "world" if body < 0 else mechanism.bodies[body].name
            P = np.array(X)
            lines.append(f"    {side}: {_quoted(on)}")
            lines.append(f"    placement_{side}: {{xyz: {P[:3, 3].tolist()}, rpy: {list(rpy_of(P))}}}")
        for name, value in joint.constants().items():
            key = "axis" if name == "axis1" else name
            lines.append(f"    {key}: {list(value) if isinstance(value, tuple) else value!r}")
        for name in ("damping", "friction", "stiffness", "rest"):
            if any(getattr(each, name)):
                lines.append(f"    {name}: {list(getattr(each, name))}")
        if any(math.isfinite(x) for limit in each.limits for x in (limit.lower, limit.upper)):
            pairs = [[max(-_UNLIMITED, limit.lower), min(limit.upper, _UNLIMITED)] for limit in each.limits]
            lines.append(f"    limits: {pairs}")
        if any(math.isfinite(x) for limit in each.limits for x in (limit.velocity, limit.effort)):
            lost.add(f"limits of velocity and effort of closure {each.name!r}")
        loops.append("\n".join(lines))
    text = "closures:\n" + "\n".join(loops) + "\n" if loops else ""
    return text + ("couplings:\n" + "\n".join(couplings) + "\n" if couplings else "")


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _finite(x: float) -> str:
    return vector([max(-_UNLIMITED, min(x, _UNLIMITED))])


def _origin(at: ET.Element, X: Pose) -> None:
    P = np.array(X)
    if not np.array_equal(P, np.eye(4)):
        element(at, "origin", xyz=vector(P[:3, 3]), rpy=vector(rpy_of(P)))
