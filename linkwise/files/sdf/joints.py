"""Joints: their types, axes, limits and springs; and gearboxes, which are couplings of joints.

An axis is written in the joint's frame, and used to be written in the model's: always up to version 1.4, with
``use_parent_model_frame`` in 1.5 and 1.6; since 1.7 ``expressed_in`` names any frame.

A gearbox is written as a joint between two links, and means: θ₂ = -ratio θ₁, where θ₁ is the angle from the reference
body to the parent about ``axis``, θ₂ the angle from the reference body to the child about ``axis2``. Each angle is the
sum of the joints on the way between the two links, if these are all hinges about parallel axes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import InputError, UnknownNameError
from linkwise.files.file_description import CouplingWritten, JointWritten, Vector
from linkwise.files.sdf.places import NamedFrame, body_of, relative_pose, world_pose
from linkwise.files.topology import WORLD
from linkwise.files.values import Attributes, bound, shown
from linkwise.files.xml import XmlElement
from linkwise.joints import joint_types
from linkwise.mechanism.description import JointLimits, Mimic


@dataclass(frozen=True, slots=True, eq=False)
class JointEnds:
    """The two links of a joint; the frames that the file names may be others on them."""

    parent: NamedFrame
    child: NamedFrame


def ends_of(place: NamedFrame) -> JointEnds:
    """The links that a joint connects."""
    scope, element = place.scope, place.at
    values, of = scope.values, f"joint {shown(place.name)}"
    child_at = values.required_child(element, "child", of=of)
    child_name = values.content(child_at, of=of)
    if child_name == WORLD:
        values.fail(f"the child of {of} is the world, which does not move", child_at, do="swap parent and child")
    child = body_of(scope.find(child_name, child_at, f"the child of {of}"))
    parent_at = values.required_child(element, "parent", of=of)
    parent_name = values.content(parent_at, of=of)
    if parent_name == WORLD:
        parent = _world(place)
    else:
        parent = body_of(scope.find(parent_name, parent_at, f"the parent of {of}"))
    if parent is child:
        values.fail(f"{of} connects a link with itself", element, got=f"parent and child are on {parent.name!r}")
    if child.kind == WORLD:
        values.fail(f"the child of {of} is fixed to the world, which does not move", child_at, do="swap the two")
    return JointEnds(parent, child)


def read_joint(place: NamedFrame, ends: JointEnds, file: str | None) -> JointWritten:
    """A joint that is no gearbox; `file` where it is not that of the description."""
    element, values = place.at, place.scope.values
    of = f"joint {shown(place.name)}"
    written = values.text(element, "type", of=of).strip()
    types = joint_types("sdf")
    if written not in types:
        unknown = UnknownNameError("joint type", written, (*types, "gearbox"))
        values.fail(f"{of} has an unknown type", element, got=shown(written), allowed=unknown.allowed, do=unknown.do)
    kind = types[written].word
    joint = JointWritten(
        place.name,
        element.line,
        kind,
        ends.parent.name,
        ends.child.name,
        relative_pose(place, ends.parent),
        joint_frame=relative_pose(place, ends.child),
        file=file,
    )
    if kind == "fixed":
        return joint
    if kind == "spherical":  # its axis says nothing, but some files have the damping there
        axis = values.child(element, "axis")
        return joint if axis is None else replace(joint, damping=_SdfAxis(axis, place, of).damping)
    first = _SdfAxis(values.required_child(element, "axis", of=of), place, of)
    joint = replace(joint, axis=axis_of(place, "axis", of), **first.parts(bounded=written != "continuous"))
    if kind == "helical":
        return replace(joint, pitch=_pitch(element, values, of))
    if kind == "cylindrical":  # turn and slide; what the file says is about the slide
        parts: dict[str, Any] = {
            name: _second_only(value) for name, value in first.parts(bounded=True).items() if name != "mimic"
        }
        return replace(joint, mimic=None, **parts)
    if kind == "universal":
        second = _SdfAxis(values.required_child(element, "axis2", of=of), place, of)
        both: dict[str, Any] = {name: (one, second.parts()[name]) for name, one in first.parts().items()}
        if any(both.pop("mimic")):
            values.fail(f"{of} follows another, but a joint of two axes cannot", element)
        return replace(joint, axis2=axis_of(place, "axis2", of), mimic=None, **both)
    return joint


def axis_of(place: NamedFrame, tag: str, of: str) -> Vector:
    """A unit vector in the joint's frame."""
    scope, values = place.scope, place.scope.values
    axis = values.required_child(place.at, tag, of=of)
    at = values.child(axis, "xyz")
    xyz: tuple[float, ...] = (0.0, 0.0, 1.0) if at is None or not at.text else values.content_vector(at, of=of)
    frame = "" if at is None else at.attributes.get("expressed_in", "").strip()
    if not frame and scope.version <= (1, 6):
        model = values.child_flag(axis, "use_parent_model_frame", scope.version <= (1, 4), of=of)
        frame = "__model__" if model else ""
    if frame:
        base = scope.find(frame, axis, f"the frame of <{tag}> of {of}")
        x, y, z = (relative_pose(base, place)[:3, :3] @ xyz).tolist()
        xyz = (x, y, z)
    return values.direction(xyz, axis, of=of, do="write <xyz>0 0 1</xyz>")


def is_loop_joint(place: NamedFrame) -> bool:
    """Whether the file asks for the loop to be opened here."""
    values, of = place.scope.values, f"joint {shown(place.name)}"
    physics = values.child(place.at, "physics")
    simbody = None if physics is None else values.child(physics, "simbody")
    return simbody is not None and values.child_flag(simbody, "must_be_loop_joint", False, of=of)


class _SdfAxis:
    """Contents of an ``<axis>`` beside its direction."""

    def __init__(self, element: XmlElement, place: NamedFrame, of: str) -> None:
        self.element, self.place, self.of = element, place, of
        self.values = place.scope.values
        self.dynamics = self.values.child(element, "dynamics") or XmlElement("dynamics", {}, element.line)

    @property
    def damping(self) -> float:
        return self.values.child_number(self.dynamics, "damping", 0.0, of=self.of)

    def parts(self, *, bounded: bool = True) -> dict[str, Any]:
        """The fields of a joint."""
        number = self.values.child_number
        return {
            "limits": self._limits(bounded),
            "damping": self.damping,
            "friction": number(self.dynamics, "friction", 0.0, of=self.of),
            "stiffness": number(self.dynamics, "spring_stiffness", 0.0, of=self.of),
            "rest": number(self.dynamics, "spring_reference", 0.0, of=self.of),
            "mimic": self._mimic(),
        }

    def _limits(self, bounded: bool) -> JointLimits:
        at = self.values.child(self.element, "limit") or XmlElement("limit", {}, self.element.line)
        lower, upper, velocity, effort = (
            bound(self.values.child_number(at, tag, usual, of=self.of, infinite=True))
            for tag, usual in (("lower", -math.inf), ("upper", math.inf), ("velocity", math.inf), ("effort", math.inf))
        )
        if not bounded:
            lower, upper = -math.inf, math.inf
        velocity, effort = (math.inf if x < 0.0 else x for x in (velocity, effort))
        try:
            return JointLimits(lower, upper, velocity, effort)
        except InputError as error:
            self.values.fail(f"{self.of}: {error.what}", at, **error.parts)

    def _mimic(self) -> Mimic | None:
        """Follower = multiplier (leader - reference) + offset."""
        at = self.values.child(self.element, "mimic")
        if at is None:
            return None
        name = self.values.text(at, "joint", of=self.of).strip()
        leader = self.place.scope.find(name, at, f"the joint that {self.of} follows")
        if leader.kind != "joint" or at.attributes.get("axis", "axis") != "axis":
            self.values.fail(f"{self.of} follows what is not a joint of one axis", at, got=shown(name))
        multiplier, offset, reference = (
            self.values.child_number(at, tag, usual, of=self.of)
            for tag, usual in (("multiplier", 1.0), ("offset", 0.0), ("reference", 0.0))
        )
        return Mimic(leader.name, multiplier, offset - multiplier * reference)


def _pitch(element: XmlElement, values: Attributes, of: str) -> float:
    """M per rad. ``screw_thread_pitch`` is in m per turn; the older ``thread_pitch`` in rad per m, left-handed."""
    if values.child(element, "screw_thread_pitch") is not None:
        return values.child_number(element, "screw_thread_pitch", of=of) / (2.0 * math.pi)
    old = values.child(element, "thread_pitch")
    if old is None:
        values.fail(f"{of} has no pitch", element, do="write <screw_thread_pitch>, in m for each turn")
    pitch = values.child_number(element, "thread_pitch", of=of)
    if abs(pitch) < 1e-30:
        values.fail(f"{of} has a thread_pitch of zero", old, got=pitch, allowed="rad per m, as it is read")
    return -1.0 / pitch


def _second_only(value: object) -> tuple[object, object]:
    return (JointLimits(), value) if isinstance(value, JointLimits) else (0.0, value)


def _world(place: NamedFrame) -> NamedFrame:
    at = place
    while at.kind != WORLD:
        at = at.scope.place if at.kind != "model" or at.base is None else at.base
    return at


_PARALLEL = 1e-6  # sine of the angle between axes that are meant to be one; files have six digits


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """The joint that carries each link, and the place of everything."""

    inboard: Mapping[str, JointWritten]
    poses: Mapping[str, FloatArray]

    def way(self, link: str) -> list[JointWritten]:
        """The joints from the link to the world."""
        joints = []
        while link in self.inboard:
            joints.append(self.inboard[link])
            link = joints[-1].parent
        return joints

    def direction(self, joint: JointWritten) -> FloatArray:
        X = self.poses[joint.child] @ joint.joint_frame
        return np.asarray(X[:3, :3] @ joint.axis)


def couplings_of(
    gearboxes: Sequence[tuple[NamedFrame, JointEnds, str | None]],
    joints: Sequence[JointWritten],
    links: Sequence[NamedFrame],
) -> list[CouplingWritten]:
    """A coupling for each gearbox; `joints` are those of the forest."""
    forest = _Forest(
        {joint.child: joint for joint in joints},
        {WORLD: np.eye(4), **{link.name: world_pose(link) for link in links}} if gearboxes else {},
    )
    return [_coupling(place, ends, file, forest) for place, ends, file in gearboxes]


def _coupling(place: NamedFrame, ends: JointEnds, file: str | None, forest: _Forest) -> CouplingWritten:
    values, of = place.scope.values, f"gearbox {shown(place.name)}"
    ratio = values.child_number(place.at, "gearbox_ratio", 1.0, of=of)
    if ratio == 0.0:
        values.fail(f"{of} has a ratio of zero", place.at, allowed="any other number")
    at = values.required_child(place.at, "gearbox_reference_body", of=of)
    name = values.content(at, of=of)
    reference = body_of(place.scope.find(name, at, f"the reference body of {of}"))
    turn = world_pose(place)[:3, :3]
    theta_1 = _angle(reference, ends.parent, turn @ axis_of(place, "axis", of), place, of, forest)
    theta_2 = _angle(reference, ends.child, turn @ axis_of(place, "axis2", of), place, of, forest)
    terms = {joint: ratio * theta_1.get(joint, 0.0) + theta_2.get(joint, 0.0) for joint in (*theta_2, *theta_1)}
    terms = {joint: c for joint, c in terms.items() if c != 0.0}
    if not terms:
        values.fail(f"{of} couples nothing: its links do not turn against the reference body", place.at)
    return CouplingWritten(place.name, place.at.line, terms, file=file)


def _angle(
    reference: NamedFrame, link: NamedFrame, direction: FloatArray, place: NamedFrame, of: str, forest: _Forest
) -> dict[str, float]:
    """The angle from the reference body to a link as a sum of joint coordinates: the factor of each."""
    ups, downs = forest.way(reference.name), forest.way(link.name)
    while ups and downs and ups[-1] is downs[-1]:
        ups.pop()
        downs.pop()
    values: Attributes = place.scope.values
    terms: dict[str, float] = {}
    for joint, sign in (*((joint, 1.0) for joint in downs), *((joint, -1.0) for joint in ups)):
        if joint.type == "fixed":
            continue
        axis = forest.direction(joint)
        if joint.type not in ("revolute", "helical") or np.linalg.norm(np.cross(axis, direction)) > _PARALLEL:
            values.fail(
                f"{of} cannot be read: the links turn about other axes as well",
                place.at,
                got=f"joint {joint.name!r} ({joint.type}) between {reference.name!r} and {link.name!r}",
                allowed="hinges about the axis of the gearbox on the way from the reference body",
            )
        terms[joint.name] = sign if float(axis @ direction) > 0.0 else -sign
    return terms
