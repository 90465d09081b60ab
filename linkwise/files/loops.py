"""The side file of a model: loops, couplings and other joint types for a format that cannot say them.

Two forms, which may be mixed; both as YAML or JSON.

The form of `example-parallel-robots`::

    closed_loop: [['frame_a', 'frame_b'], ...]   # names of links, or of joints for their frames
    type: ['6d', '3d', ...]                      # one for each loop; 6d where there is no list
    name_mot: ['joint', ...]                     # the joints with motors: checked, and left to the caller
    joint_name: ['joint', ...]                   # joints that the file could not write as what they are:
    joint_type: ['SPHERICAL', 'UJOINT_XY', ...]  # SPHERICAL, FIXED, or UJOINT_ and two axes

and one that can say more::

    closures:
      - name: pin               # frame_a and frame_b with a hyphen where there is none
        a: link3                # a link, or a joint for its frame, or world
        b: link5
        placement_a: {xyz: [0, 0, 1], rpy: [0, 0, 0]}
        placement_b: {xyz: [0, 0, 1]}
        type: revolute          # what stays free: 6d (fixed), 3d (spherical), revolute, prismatic, helical,
        axis: [0, 1, 0]         #   cylindrical, universal (axis and axis2), planar (axis is its normal)
        pitch: 0.01             # of a helical one, m per rad
        damping: 0.1            # along its freedoms, one number or one for each; so are friction, stiffness and rest
        limits: [-1, 1]         # of its coordinate; for several freedoms one pair for each
    couplings:
      - name: gear
        terms: {motor: 1, wheel: -5}
        offset: 0               # 1 motor - 5 wheel = 0
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from linkwise.array_types import FloatArray
from linkwise.dataclass import dataclass, replace
from linkwise.errors import ModelFileError, UnknownNameError
from linkwise.files.bodies import unused
from linkwise.files.file_description import (
    ClosureWritten,
    CouplingWritten,
    Description,
    JointWritten,
    Vector,
)
from linkwise.files.topology import WORLD
from linkwise.files.values import one_long
from linkwise.files.yaml import Node, parse_yaml
from linkwise.joints import joint_types
from linkwise.mechanism.description import JointLimits
from linkwise.mechanism.placement import pose, rotation_rpy
from linkwise.memoized import cached_property

_KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type", "closures", "couplings")
_SAID = {"axis", "axis1", "axis2", "pitch"}  # constants of a joint that a side file can say
_NUMBERS = ("damping", "friction", "stiffness", "rest")
_LARGEST = 1e30


def loop_words() -> tuple[str, ...]:
    """Words of the joint types that a side file can close a loop with."""
    every = joint_types().items()
    return tuple(word for word, kind in every if set(kind.constant_names()) <= _SAID and getattr(kind, "nv", 6) < 6)


def with_loops(description: Description, content: bytes, file: str) -> Description:
    """The description with what a side file adds to it."""
    return _SideFile(file, description).applied(parse_yaml(content, file))


@dataclass
class _SideFile:
    file: str
    description: Description

    def applied(self, root: Node) -> Description:
        parts = self.mapping(root, "the file", _KEYS)
        self.motors(parts.get("name_mot"))
        joints = self.retyped(parts.get("joint_name"), parts.get("joint_type"))
        closures = [*self.pairs(parts), *self.closures(parts.get("closures"))]
        couplings = self.couplings(parts.get("couplings"))
        taken = {closure.joint.name for closure in self.description.closures}
        taken |= {coupling.name for coupling in self.description.couplings}
        named = []
        for closure in closures:
            named.append(replace(closure, joint=replace(closure.joint, name=unused(closure.joint.name, taken))))
        return replace(
            self.description,
            joints=joints,
            closures=(*self.description.closures, *named),
            couplings=(*self.description.couplings, *couplings),
        )

    # The form of example-parallel-robots.
    def pairs(self, parts: dict[str, Node]) -> list[ClosureWritten]:
        loops = self.items(parts.get("closed_loop"), "closed_loop")
        types = self.items(parts.get("type"), "type")
        if types and len(types) != len(loops):
            self.fail("there is not one type for each loop", parts["type"], got=f"{len(types)} for {len(loops)} loops")
        found = []
        for i, pair in enumerate(loops):
            ends = self.items(pair, "a loop")
            if len(ends) != 2:
                self.fail("a loop is closed between two frames", pair, got=f"{len(ends)} names")
            a, b = (self.name(end, "a frame") for end in ends)
            kind = self.kind(types[i]) if types else "fixed"
            found.append(self.closure(f"{a}-{b}", pair, a, b, kind))
        return found

    def motors(self, node: Node | None) -> None:
        for item in self.items(node, "name_mot"):
            self.known("joint", self.name(item, "a joint"), self.joint_names, item)

    def retyped(self, names: Node | None, types: Node | None) -> tuple[JointWritten, ...]:
        listed, kinds = self.items(names, "joint_name"), self.items(types, "joint_type")
        if len(listed) != len(kinds):
            self.fail(
                "joint_name and joint_type are not of one length",
                types or names or Node(None, 1),
                got=f"{len(listed)} names, {len(kinds)} types",
            )
        changes: dict[str, dict[str, Any]] = {}
        for item, kind in zip(listed, kinds, strict=True):
            name = self.name(item, "a joint")
            self.known("joint", name, self.joint_names, item)
            changes[name] = self.other_type(self.name(kind, "a joint type"), kind)
        return tuple(
            replace(joint, **changes[joint.name]) if joint.name in changes else joint
            for joint in self.description.joints
        )

    def other_type(self, written: str, at: Node) -> dict[str, object]:
        """The fields of a joint that is of another type than its file could say; its range was that of one freedom."""
        word = written.upper()
        if word in ("SPHERICAL", "FIXED"):
            return {"type": word.lower(), "limits": None, "mimic": None}
        axes = word.removeprefix("UJOINT_")
        if axes == word or len(axes) != 2 or not set(axes) <= set("XYZ") or axes[0] == axes[1]:
            self.fail("a joint type is not known", at, got=repr(written), allowed="SPHERICAL, FIXED, UJOINT_XY, ...")
        axis, axis2 = (tuple(float(letter == each) for each in "XYZ") for letter in axes)
        return {"type": "universal", "axis": axis, "axis2": axis2, "limits": None, "mimic": None}

    # The form that can say more.
    def closures(self, node: Node | None) -> list[ClosureWritten]:
        found = []
        for item in self.items(node, "closures"):
            parts = self.mapping(
                item, "a closure",
                ("name", "a", "b", "placement_a", "placement_b", "type", "axis", "axis2", "pitch", "limits", *_NUMBERS),
                ("a", "b", "type"),
            )  # fmt: skip
            a, b = self.name(parts["a"], "a"), self.name(parts["b"], "b")
            name = self.name(parts["name"], "name") if "name" in parts else f"{a}-{b}"
            more: dict[str, Any] = {}
            for axis in ("axis", "axis2"):
                if axis in parts:
                    more[axis] = self.direction(parts[axis], axis)
            if "pitch" in parts:
                more["pitch"] = self.number(parts["pitch"], "pitch")
            more |= {each: self.each_freedom(parts[each], each) for each in _NUMBERS if each in parts}
            if "limits" in parts:
                more["limits"] = self.limits(parts["limits"])
            kind = self.kind(parts["type"])
            needs = joint_types()[kind].constant_names()
            if needs and "axis" not in parts:
                self.fail(f"a closure of type {kind!r} needs an axis", item, do="axis: [0, 0, 1]")
            if any((each in needs) != (each in parts) for each in ("axis2", "pitch")):
                self.fail("axis2 is for a universal closure, pitch for a helical one, and each needs its own", item)
            places = [self.placement(parts.get(f"placement_{side}")) for side in "ab"]
            found.append(self.closure(name, item, a, b, kind, *places, **more))
        return found

    def couplings(self, node: Node | None) -> list[CouplingWritten]:
        found = []
        for item in self.items(node, "couplings"):
            parts = self.mapping(item, "a coupling", ("name", "terms", "offset"), ("name", "terms"))
            terms = self.mapping(parts["terms"], "the terms of a coupling")
            for joint in terms:
                self.known("joint", joint, self.joint_names, parts["terms"])
            factors = {joint: self.number(c, joint) for joint, c in terms.items()}
            offset = self.number(parts["offset"], "offset") if "offset" in parts else 0.0
            found.append(CouplingWritten(self.name(parts["name"], "name"), item.line, factors, offset, self.file))
        return found

    # Parts of both.
    def closure(
        self, name: str, at: Node, a: str, b: str, kind: str, X_a: FloatArray | None = None,
        X_b: FloatArray | None = None, **more: Any,
    ) -> ClosureWritten:  # fmt: skip
        (link_a, frame_a), (link_b, frame_b) = self.place(a, at), self.place(b, at)
        X_a, X_b = (pose() if X is None else X for X in (X_a, X_b))
        return ClosureWritten(
            JointWritten(
                name, at.line, kind, link_a, link_b, frame_a @ X_a, joint_frame=frame_b @ X_b, file=self.file, **more
            )
        )

    def place(self, name: str, at: Node) -> tuple[str, FloatArray]:
        """The link of this name, or the child of the joint of this name with the joint's frame on it."""
        self.known("link, frame or joint", name, self.places, at)
        return self.places[name]

    @cached_property
    def places(self) -> dict[str, tuple[str, FloatArray]]:
        """By name; links before frames before joints."""
        found = {joint.name: (joint.child, joint.joint_frame) for joint in self.description.joints}
        found |= {frame.name: (frame.link, frame.placement) for frame in self.description.frames}
        return found | {link.name: (link.name, pose()) for link in self.description.links} | {WORLD: (WORLD, pose())}

    @cached_property
    def joint_names(self) -> dict[str, JointWritten]:
        return {joint.name: joint for joint in self.description.joints}

    def known(self, what: str, name: str, names: Collection[str], at: Node) -> None:
        if name not in names:
            self.fail(f"the model has no {what} of this name", at, **UnknownNameError(what, name, names).parts)

    def kind(self, node: Node) -> str:
        written = self.name(node, "a type")
        known = {"6d": "fixed", "3d": "spherical"} | {word: word for word in loop_words()}
        if written.lower() not in known:
            self.fail("the type of a loop is not known", node, got=repr(written), allowed=", ".join(known))
        return known[written.lower()]

    def each_freedom(self, node: Node, what: str) -> float | tuple[float, ...]:
        if isinstance(node.value, list):
            return tuple(self.number(item, what) for item in node.value)
        return self.number(node, what)

    def limits(self, node: Node) -> JointLimits | tuple[JointLimits, ...]:
        items = self.items(node, "limits")
        if items and isinstance(items[0].value, list):
            return tuple(limit for item in items if isinstance(limit := self.limits(item), JointLimits))
        if len(items) != 2:
            self.fail("limits are two numbers", node, got=f"{len(items)} values", allowed="[-1, 1]")
        lower, upper = (self.number(item, "a limit") for item in items)
        return JointLimits(lower if lower > -_LARGEST else -math.inf, upper if upper < _LARGEST else math.inf)

    def placement(self, node: Node | None) -> FloatArray:
        if node is None:
            return pose()
        parts = self.mapping(node, "a placement", ("xyz", "rpy"))
        xyz, rpy = (self.numbers(parts[key], key) if key in parts else (0.0, 0.0, 0.0) for key in ("xyz", "rpy"))
        return pose(xyz, rotation_rpy(rpy))

    def direction(self, node: Node, what: str) -> Vector:
        xyz = self.numbers(node, what)
        if not any(xyz):
            self.fail(f"the {what} is zero", node)
        return one_long(xyz)

    def numbers(self, node: Node, what: str) -> Vector:
        items = self.items(node, what)
        if len(items) != 3:
            self.fail(f"{what} must be three numbers", node, got=f"{len(items)} values", allowed="[0, 0, 1]")
        x, y, z = (self.number(item, what) for item in items)
        return x, y, z

    def number(self, node: Node, what: str) -> float:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, float) or not abs(value) <= _LARGEST:
            self.fail(f"{what} must be a number", node, got=_shown(value))
        return value

    def name(self, node: Node, what: str) -> str:
        if not isinstance(node.value, str) or not node.value:
            self.fail(f"{what} must be a name", node, got=_shown(node.value), do="put it in quotes")
        return node.value

    def items(self, node: Node | None, what: str) -> list[Node]:
        if node is None or node.value is None:
            return []
        if not isinstance(node.value, list):
            self.fail(f"{what} must be a list", node, got=_shown(node.value))
        return node.value

    def mapping(
        self, node: Node, what: str, keys: Sequence[str] | None = None, required: Sequence[str] = ()
    ) -> dict[str, Node]:
        if not isinstance(node.value, dict):
            self.fail(f"{what} must be names with values", node, got=_shown(node.value))
        for key, value in node.value.items():
            if keys is not None and key not in keys:
                self.fail(f"{what} has an unknown key", value, **UnknownNameError("key", key, keys).parts)
        missing = [key for key in required if key not in node.value]
        if missing:
            self.fail(f"{what} has no {missing[0]!r}", node, allowed=", ".join(keys or ()))
        return node.value

    def fail(self, what: str, at: Node, *, got: object = None, allowed: object = None, do: object = None) -> NoReturn:
        raise ModelFileError(what, file=self.file, line=at.line, got=got, allowed=allowed, do=do)


def _shown(value: object) -> str:
    if isinstance(value, list):
        return "a list"
    return "a mapping" if isinstance(value, dict) else repr(value)[:60]
