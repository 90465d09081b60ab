"""Named frames: whose pose is relative to whose, and which link carries which.

Links, joints, models and ``<frame>`` elements all name a frame, and any of them may be placed relative to any other of
its scope. Nothing is resolved while the file is read, since a name may be used before it appears.
"""

from __future__ import annotations

import math
from typing import Literal, NoReturn

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, field
from linkwise.errors import ModelFileError, UnknownNameError
from linkwise.files.values import Attributes, shown
from linkwise.files.xml import XmlElement
from linkwise.mechanism.placement import inverse_pose, pose, rotation_rpy
from linkwise.spatial import quaternions

FrameKind = Literal["link", "joint", "frame", "model", "world"]


@dataclass(slots=True, eq=False)
class NamedFrame:
    """One named frame.

    Args:
        name: with the names of the models around it.
        kind: what it is the frame of.
        at: its element.
        scope: where the names that it mentions are looked up.
        written: its pose, relative to `base` where the file does not say to what.
        attached: the name of the place that carries it; empty: that of `carrier`.
        inner: the scope of a model.
    """

    name: str
    kind: FrameKind
    at: XmlElement
    scope: NameScope
    written: PoseWritten
    base: NamedFrame | None = None
    attached: str = ""
    carrier: NamedFrame | None = None
    inner: NameScope | None = None
    placement_frame: str = ""
    X: FloatArray | None = None
    in_hand: bool = False
    """Whether its pose is being worked out, so that it cannot be asked for."""


@dataclass(slots=True, eq=False)
class NameScope:
    """The names that can be used inside a model, or inside a world.

    Args:
        values: how the file that it was written in is read.
        version: of that file.
        prefix: what the names in it get in front.
        place: the frame of the model or world itself.
        around: the scope whose names this one shares, where the model was merged into another.
        includes: how many files it was included through.
    """

    values: Attributes
    version: tuple[int, int]
    prefix: str = ""
    names: dict[str, NamedFrame] = field(default_factory=dict)
    place: NamedFrame = field(init=False)
    around: NameScope | None = None
    static: bool = False
    includes: int = 0

    def find(self, name: str, at: XmlElement, what: str) -> NamedFrame:
        """The place of this name; names of nested models come before ``::``."""
        if name == ("world" if self.place.kind == "world" else "__model__"):
            return self.place
        scope: NameScope = self
        rest = name
        while True:
            found = scope.names.get(rest)
            if found is not None:
                return found
            head, deeper, rest = rest.partition("::")
            model = scope.names.get(head)
            if not deeper or model is None or model.inner is None:
                break
            scope = model.inner
            if rest == "__model__":
                return scope.place
        if self.around is not None:
            return self.around.find(name, at, what)
        raise self._unknown(name, at, what)

    def _unknown(self, name: str, at: XmlElement, what: str) -> ModelFileError:
        unknown = UnknownNameError("frame", name, self.names)
        do = unknown.do
        if name == "world":
            do = "drop it: poses are relative to the model's frame, which is placed in the world as a whole"
        return ModelFileError(
            f"{what} is a name that does not exist here",
            file=self.values.file,
            line=at.line,
            got=shown(name),
            allowed=f"{'world' if self.place.kind == 'world' else '__model__'}, {unknown.allowed}",
            do=do,
        )


def world_pose(place: NamedFrame) -> FloatArray:
    """The pose in the world, with every joint at its zero position."""
    chain: list[NamedFrame] = []
    open_places: set[int] = set()
    at = place
    while at.X is None:
        if id(at) in open_places:
            _fail_circle(at, "poses are relative to each other")
        open_places.add(id(at))
        chain.append(at)
        at = _base(at)
    X = at.X
    for each in reversed(chain):
        X = each.X = X @ _local(each)
    return X


def relative_pose(place: NamedFrame, to: NamedFrame) -> FloatArray:
    """The pose of a place in another, exactly as written where the one was placed by the other."""
    if place is to:
        return pose()
    above, around = _base_or_none(place), _base_or_none(to)
    if above is to:
        return _local(place)
    if around is place:
        return inverse_pose(_local(to))
    if above is not None and above is around:
        X, X_to = _local(place), _local(to)
    else:
        X, X_to = world_pose(place), world_pose(to)
    return tidied(inverse_pose(X_to) @ X, float(abs(X[:3, 3]).max() + abs(X_to[:3, 3]).max()))


def body_of(place: NamedFrame) -> NamedFrame:
    """The link that carries a place, or the world."""
    seen: set[int] = set()
    at = place
    while at.kind not in ("link", "world"):
        if id(at) in seen:
            _fail_circle(at, "frames are attached to each other")
        seen.add(id(at))
        if at.attached:
            scope = at.inner if at.kind == "model" and at.inner is not None else at.scope
            at = scope.find(at.attached, at.at, f"what carries the {at.kind} {shown(at.name)}")
        elif at.carrier is None:
            at.scope.values.fail(f"nothing carries the {at.kind} {shown(at.name)}: it has no links", at.at)
        else:
            at = at.carrier
    return at


def _base(place: NamedFrame) -> NamedFrame:
    found = _base_or_none(place)
    assert found is not None  # only the world stands on nothing, and it has its pose
    return found


def _base_or_none(place: NamedFrame) -> NamedFrame | None:
    name = place.written.relative_to
    if not name:
        return place.base
    return place.scope.find(
        name, place.at, f"the frame that the pose of {place.kind} {shown(place.name)} is relative to"
    )


def _local(place: NamedFrame) -> FloatArray:
    """The pose in `_base`: as written, or where that is the pose of a frame inside a model, of the model itself."""
    if not place.placement_frame or place.inner is None:
        return place.written.X
    if place.in_hand:
        _fail_circle(place, "poses are relative to each other")
    place.in_hand = True
    at = place.inner.find(place.placement_frame, place.at, f"the placement_frame of model {shown(place.name)}")
    X = pose()
    seen: set[int] = set()
    while at is not place:
        if id(at) in seen or at.kind == "world":
            _fail_circle(at, "poses are relative to each other")
        seen.add(id(at))
        X = _local(at) @ X
        at = _base(at)
    place.in_hand = False
    return place.written.X @ inverse_pose(X)


def _fail_circle(place: NamedFrame, what: str) -> NoReturn:
    place.scope.values.fail(f"the {what} in a circle", place.at, got=f"{place.kind} {shown(place.name)} is one of them")


_ROUNDING = 1e-15  # what products of poses leave of an exact zero or one


@dataclass(frozen=True, slots=True, eq=False)
class PoseWritten:
    """A pose, and the name of the frame it is relative to; empty where the file does not say."""

    X: FloatArray
    relative_to: str = ""


def read_pose(element: XmlElement, values: Attributes, *, of: str) -> PoseWritten:
    """The ``<pose>`` of an element; the identity where there is none, or nothing in it."""
    at = values.child(element, "pose")
    if at is None:
        return PoseWritten(pose())
    of = f"the pose of {of}"
    # Versions 1.5 and 1.6 wrote "frame" and left its meaning open; 1.7 gave it one, and another name.
    relative_to = at.attributes.get("relative_to", at.attributes.get("frame", "")).strip()
    if not at.text:
        return PoseWritten(pose(), relative_to)
    form = at.attributes.get("rotation_format", "euler_rpy").strip()
    if form not in ("euler_rpy", "quat_xyzw"):
        values.fail(f"{of}: the rotation_format is unknown", at, got=shown(form), allowed="euler_rpy, quat_xyzw")
    degrees = values.flag(at.attributes.get("degrees", "false"), at, "the attribute 'degrees'", of=of)
    if form == "quat_xyzw":
        if degrees:
            values.fail(f"{of} is a quaternion in degrees", at, do="delete one of the two attributes")
        numbers = values.content_vector(at, of=of, length=7)
        return PoseWritten(pose(numbers[:3], _from_quaternion(numbers[3:], at, values, of)), relative_to)
    numbers = values.content_vector(at, of=of, length=6)
    angles = [math.radians(angle) for angle in numbers[3:]] if degrees else numbers[3:]
    return PoseWritten(pose(numbers[:3], rotation_rpy(angles, values.snap)), relative_to)


def tidied(X: FloatArray, size: float) -> FloatArray:
    """The same without the rounding of products: exact zeros and ones cost nothing later. `size`: of what was added."""
    R, p = X[:3, :3], X[:3, 3]
    R = np.where(abs(R) < _ROUNDING, 0.0, R)
    R = np.where(abs(abs(R) - 1.0) < _ROUNDING, np.sign(R), R)
    return pose(np.where(abs(p) < _ROUNDING * (1.0 + size), 0.0, p).tolist(), R)


def _from_quaternion(numbers: tuple[float, ...], at: XmlElement, values: Attributes, of: str) -> FloatArray:
    x, y, z, w = numbers
    if not any(numbers):
        values.fail(f"{of} has a zero quaternion", at, got="0 0 0 0", allowed="x y z w, not all zero")
    return np.array(quaternions.rotation_matrix((w, x, y, z)).m)
