"""Random SDF files of frames, against a resolver of libsdformat's rules that shares nothing with our reader."""

from __future__ import annotations

import math
import warnings
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import linkwise as lw
from campaign.trial import Log, Trial, said

Rng = np.random.Generator
INERTIAL = "<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"


class Circle(Exception):  # noqa: N818  # it is a finding of the resolver, not a mistake
    """Frames that are placed by each other, or attached to each other."""


@dataclass
class Node:
    """A vertex of the graphs: the text of a pose, and the names that it and its attachment refer to."""

    kind: str
    scope: str
    at: ET.Element
    relative_to: str = ""
    attached_to: str = ""
    children: list[str] = field(default_factory=list)


class Resolver:
    """Poses and carriers by the rules: full names are the keys; a scope is the name of a model, "" for the world."""

    def __init__(self, text: str) -> None:
        top = next(iter(ET.fromstring(text)))
        self.nodes: dict[str, Node] = {"": Node("world", "", ET.Element("world"))}
        for each in top if top.tag == "world" else [top]:
            self.add(each, "")
        self.root = "" if top.tag == "world" else top.attrib["name"]

    def add(self, element: ET.Element, scope: str) -> None:
        """Take in an element, and what is in it."""
        if element.tag not in ("model", "link", "joint", "frame"):
            return
        name = self.full(scope, element.attrib["name"])
        pose = element.find("pose")
        node = Node(element.tag, scope, element, "" if pose is None else pose.attrib.get("relative_to", ""))
        if element.tag == "frame":
            node.attached_to = element.attrib.get("attached_to", "")
            node.relative_to = node.relative_to or node.attached_to
        if element.tag == "joint":
            node.attached_to = str(element.findtext("child"))
            node.relative_to = node.relative_to or node.attached_to
        self.nodes[name] = node
        self.nodes[scope].children.append(name)
        for child in element if element.tag == "model" else ():
            self.add(child, name)

    def full(self, scope: str, name: str) -> str:
        """The full name of what a name means in a scope; where there is none, of the scope itself."""
        if name in ("", "__model__", "world"):
            return scope
        return f"{scope}::{name}".removesuffix("::__model__") if scope else name.removesuffix("::__model__")

    def pose(self, name: str, below: str = "", seen: tuple[str, ...] = ()) -> Any:
        """The pose in the model `below`, or in the world."""
        if name == below:
            return np.eye(4)
        if name in seen or not name:
            raise Circle(name)
        node = self.nodes[name]
        X = written(node.at.find("pose"))
        placement = node.at.attrib.get("placement_frame", "")
        if placement:
            X = X @ np.linalg.inv(self.pose(self.full(name, placement), name))  # inside the model: a graph of its own
        return self.pose(self.full(node.scope, node.relative_to), below, (*seen, name)) @ X

    def carrier(self, name: str, seen: tuple[str, ...] = ()) -> str:
        """The link that carries a frame, or the world."""
        if name in seen:
            raise Circle(name)
        node = self.nodes[name]
        if node.kind in ("link", "world"):
            return name
        if node.kind != "model":
            return self.carrier(self.full(node.scope, node.attached_to), (*seen, name))
        if (node.at.findtext("static") or "") == "true":
            return ""
        chosen = node.at.attrib.get("canonical_link", "")
        if chosen:
            return self.full(name, chosen)
        for kind in ("link", "model"):
            first = [child for child in node.children if self.nodes[child].kind == kind][:1]
            if first:
                return self.carrier(first[0], (*seen, name))
        raise Circle(name)

    def shown(self, name: str) -> str:
        """The name in our model: a file of one model leaves the name of that out."""
        return name.removeprefix(f"{self.root}::") if self.root else name


def written(pose: ET.Element | None) -> Any:
    """The matrix of a pose."""
    X = np.eye(4)
    if pose is None or not pose.text:
        return X
    numbers = [float(x) for x in pose.text.split()]
    X[:3, 3] = numbers[:3]
    if pose.attrib.get("rotation_format") == "quat_xyzw":
        x, y, z, w = np.array(numbers[3:]) / np.linalg.norm(numbers[3:])
        K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        X[:3, :3] = np.eye(3) + 2 * w * K + 2 * K @ K
        return X
    angles = numbers[3:]
    if pose.attrib.get("degrees") == "true":
        angles = [math.radians(a) for a in angles]
    for axis, angle in zip((2, 1, 0), angles[::-1], strict=True):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        turn = np.eye(3)
        turn[i, i] = turn[j, j] = math.cos(angle)
        turn[i, j], turn[j, i] = -math.sin(angle), math.sin(angle)
        X[:3, :3] = X[:3, :3] @ turn
    return X


class Writer:
    """A random file; most names that it uses come before, so that circles are rare."""

    def __init__(self, rng: Rng) -> None:
        self.rng, self.count = rng, 0

    def file(self) -> str:
        """A file of one model, or of a world."""
        version = self.rng.choice(["1.8", "1.9", "1.10", "1.12"])
        if self.rng.random() < 0.5:
            return f'<sdf version="{version}">{self.model(2, [], root=True)}</sdf>'
        known: list[str] = []
        parts = [self.frame(known, "world") for _ in range(self.rng.integers(3))]
        parts += [self.model(1, known) for _ in range(self.rng.integers(2, 4))]
        parts += [self.frame(known, "world") for _ in range(self.rng.integers(1, 4))]
        return f'<sdf version="{version}"><world name="w">{self.mixed(parts)}</world></sdf>'

    def mixed(self, parts: list[str]) -> str:
        """In any order: names may be used before they appear."""
        return "".join(self.rng.permutation(np.array(parts, object)))

    def name(self, kind: str) -> str:
        """A new name."""
        self.count += 1
        return f"{kind}{self.count}"

    def pose(self, known: list[str], chance: float = 0.8, to: float = 0.6) -> str:
        """A pose in one of the known frames, in any of the ways to write it; or none."""
        if self.rng.random() > chance:
            return ""
        relative = f' relative_to="{self.rng.choice(known)}"' if known and self.rng.random() < to else ""
        place = " ".join(f"{x:.3f}" for x in self.rng.uniform(-1, 1, 3))
        kind = self.rng.integers(4)
        if kind == 0:
            turn, more = " ".join(f"{x:.3f}" for x in self.rng.normal(size=4)), ' rotation_format="quat_xyzw"'
        else:
            size, more = (180.0, ' degrees="true"') if kind == 1 else (math.pi, "")
            turn = " ".join(f"{x:.3f}" for x in self.rng.uniform(-size, size, 3))
        return f"<pose{relative}{more}>{place} {turn}</pose>" if self.rng.random() < 0.9 else f"<pose{relative}/>"

    def frame(self, known: list[str], scope: str) -> str:
        """A frame; rarely one that refers to itself."""
        name = self.name("f")
        usable = [*known, scope] if self.rng.random() < 0.95 else [*known, scope, name]
        attached = f' attached_to="{self.rng.choice(usable)}"' if self.rng.random() < 0.7 else ""
        text = f'<frame name="{name}"{attached}>{self.pose(usable)}</frame>'
        known.append(name)
        return text

    def model(self, depth: int, around: list[str], *, root: bool = False) -> str:
        """A model; the names that its surroundings can use are added to `around`."""
        rng, name = self.rng, self.name("m")
        own = self.pose([] if root else around)
        known, parts, links = ["__model__"], [], []
        static = not root and rng.random() < 0.1
        nested = 0 if static or not depth else int(rng.integers(3))
        for _ in range(nested):
            parts.append(self.model(depth - 1, known))
        for k in range(int(rng.integers(0 if nested else 1, 4))):
            link, joint = self.name("l"), self.name("j")
            parts.append(f'<link name="{link}">{self.pose(known)}{INERTIAL}</link>')
            parent = str(rng.choice(links)) if links and rng.random() < 0.5 else "world"
            known.append(link)
            links.append(link)
            axis = f' expressed_in="{rng.choice(known)}"' if rng.random() < 0.5 else ""
            xyz = " ".join(f"{x:.3f}" for x in rng.normal(size=3))
            placed = self.pose([n for n in known if n != link]) if rng.random() < 0.5 else self.pose([])
            parts.append(
                f'<joint name="{joint}" type="revolute">{placed}<parent>{parent}</parent><child>{link}</child>'
                f"<axis><xyz{axis}>{xyz}</xyz></axis></joint>"
            )
            known.append(joint)
            if k == 0 and rng.random() < 0.3:
                parts.append(self.frame(known, "__model__"))
        parts += [self.frame(known, "__model__") for _ in range(rng.integers(4))]
        attributes = ""
        if rng.random() < 0.3:
            attributes += f' placement_frame="{rng.choice(known)}"'
        inner = [n for n in known if n.rpartition("::")[2].startswith("l")]
        if inner and rng.random() < 0.3:
            attributes += f' canonical_link="{rng.choice(inner)}"'
        around += [name, *(f"{name}::{each}" for each in known)]
        still = "<static>true</static>" if static else ""
        return f'<model name="{name}"{attributes}>{still}{own}{self.mixed(parts)}</model>'


def frame_problem(text: str) -> str:
    """What is wrong with how the file was read, or ""."""
    from tests.oracles.eager import Eager

    rules = Resolver(text)
    try:
        expected = {name: (rules.pose(name), rules.carrier(name)) for name in rules.nodes if name}
    except Circle:
        expected = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.errors.ModelWarning)
            model = lw.loads(text)
    except lw.errors.ModelFileError as refusal:
        return "" if not expected and "circle" in str(refusal) else f"refused: {refusal}"
    if not expected:
        return "a circle was not seen"
    poses = Eager(model).poses(model.neutral()) if model.bodies else np.zeros((0, 4, 4))
    for name, (X, carrier) in expected.items():
        node = rules.nodes[name]
        if node.kind == "joint":
            problem = _axis_problem(rules, model, name, X)
            if problem:
                return problem
        if node.kind not in ("link", "frame"):
            continue
        frame = model.frame(rules.shown(name))
        found = (poses[frame.body] if frame.body >= 0 else np.eye(4)) @ np.array(frame.placement)
        if not np.allclose(found, X, atol=1e-9):
            return f"{name} is off by {np.abs(found - X).max():.1e}"
        body = model.frame(rules.shown(carrier)).body if carrier else -1
        if frame.body != body:
            return f"{name} is carried by body {frame.body}, not by {carrier or 'the world'}"
    return ""


def _axis_problem(rules: Resolver, model: lw.Model, name: str, X: Any) -> str:
    node = rules.nodes[name]
    scope = rules.nodes[node.scope]
    if (scope.at.findtext("static") or "") == "true":
        return ""
    xyz = node.at.find("axis/xyz")
    assert xyz is not None
    axis = np.array([float(x) for x in str(xyz.text).split()])
    frame = xyz.attrib.get("expressed_in", "")
    R = rules.pose(rules.full(node.scope, frame))[:3, :3] if frame else X[:3, :3]
    wanted = X[:3, :3].T @ R @ axis / np.linalg.norm(axis)
    joint: Any = model.joints[rules.shown(name)].type
    return "" if np.allclose(joint.axis, wanted, atol=1e-9) else f"the axis of {name} is {joint.axis}, not {wanted}"


class Frames(Trial):
    """Random graphs of SDF frames."""

    name, unit, target, chunk = "frames", "SDF files of frames against libsdformat's rules", 10**6, 10**4

    def run(self, seed: int, numbers: range, log: Log) -> None:
        """Write, read, resolve."""
        for number in log.numbers(numbers):
            text = Writer(np.random.default_rng([seed, number])).file()
            log.begin(number, text)
            try:
                problem = frame_problem(text)
            except Exception as error:
                problem = said(error)
            if problem:
                log.fail(number, f"{problem}\n{text}")
