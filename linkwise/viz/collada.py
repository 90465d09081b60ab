"""COLLADA (``.dae``): the triangles and colours of a file, where its own nodes put them.

Read by the same small and harmless part of XML as model files. Triangles, lists of polygons and single polygons are
known; of materials the diffuse colour with its opacity. What robots' files do not use (skins, morphing, splines,
textures) is left out. Axes stay as written, whatever ``up_axis`` says: ROS does the same, and robots' files are written
for it. Lengths are scaled by the file's ``unit``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linkwise.formats.xml import Element, parse
from linkwise.viz.solids import Colour, Solid, joined

Array = NDArray[Any]

_DEEPEST = 64
"""Levels of nodes: a node may be an instance of another, and a circle of those must end."""
_MOST_NODES = 20_000
"""Nodes met on the way: instances of instances multiply."""


def read_collada(content: bytes, file: str) -> list[Solid]:
    """The surfaces of a file, one for each colour; `file` is its name in messages."""
    return joined(_Reader(parse(content, file)).solids())


class _Reader:
    def __init__(self, root: Element) -> None:
        self.root = root
        self.by_id = {e.attributes["id"]: e for e in root.walk() if "id" in e.attributes}
        self.found: list[Solid] = []
        self.met = 0

    def solids(self) -> list[Solid]:
        unit = next((e for e in self.root.walk() if e.tag == "unit"), None)
        meter = float(unit.attributes.get("meter", 1.0)) if unit is not None else 1.0
        X = np.diag([meter, meter, meter, 1.0])
        scenes = [e for e in self.root.walk() if e.tag == "instance_visual_scene"]
        shown = [self.target(e) for e in scenes] or [e for e in self.root.walk() if e.tag == "visual_scene"][:1]
        for scene in shown:
            if scene is not None:
                for node in scene.all("node"):
                    self.node(node, X, 0)
        if not shown:  # geometry alone
            for geometry in (e for e in self.root.walk() if e.tag == "geometry"):
                self.geometry(geometry, X, {})
        return self.found

    def target(self, element: Element | None, attribute: str = "url") -> Element | None:
        if element is None:
            return None
        return self.by_id.get(element.attributes.get(attribute, "").removeprefix("#"))

    def node(self, node: Element, X: Array, depth: int) -> None:
        self.met += 1
        if depth > _DEEPEST or self.met > _MOST_NODES:
            return
        for child in node.children:
            if child.tag in _MOVES:
                X = X @ _MOVES[child.tag](_numbers(child))
        for child in node.children:
            if child.tag == "node":
                self.node(child, X, depth + 1)
            elif child.tag == "instance_node":
                other = self.target(child)
                if other is not None:
                    self.node(other, X, depth + 1)
            elif child.tag in ("instance_geometry", "instance_controller"):
                shape = self.target(child)
                if shape is not None and shape.tag == "controller":
                    shape = self.target(next((e for e in shape.walk() if e.tag == "skin"), None), "source")
                if shape is not None:
                    bound = [e for e in child.walk() if e.tag == "instance_material"]
                    self.geometry(shape, X, {e.attributes.get("symbol", ""): self.target(e, "target") for e in bound})

    def geometry(self, geometry: Element, X: Array, materials: Mapping[str, Element | None]) -> None:
        for mesh in geometry.all("mesh"):
            for primitive in mesh.children:
                if primitive.tag not in ("triangles", "polylist", "polygons"):
                    continue
                faces = _faces(primitive)
                positions = self.positions(mesh, primitive)
                if positions is None or not len(faces) or faces.max() >= len(positions) or faces.min() < 0:
                    continue
                symbol = primitive.attributes.get("material", "")
                colour, opacity = self.colour(materials.get(symbol) or self.by_id.get(symbol))
                used, numbers = np.unique(faces, return_inverse=True)
                solid = Solid(positions[used], numbers.reshape(-1, 3), colour, opacity)
                self.found.append(solid.placed(X))

    def positions(self, mesh: Element, primitive: Element) -> Array | None:
        vertex = next((e for e in primitive.all("input") if e.attributes.get("semantic") == "VERTEX"), None)
        vertices = self.target(vertex, "source")
        inputs = [] if vertices is None else vertices.all("input")
        wanted = next((e for e in inputs if e.attributes.get("semantic") == "POSITION"), None)
        source = self.target(wanted, "source")
        array = None if source is None else next((e for e in source.children if e.tag == "float_array"), None)
        if source is None or array is None:
            return None
        accessor = next((e for e in source.walk() if e.tag == "accessor"), None)
        stride = 3 if accessor is None else int(accessor.attributes.get("stride", 3))
        values = _numbers(array)
        return values[: len(values) // stride * stride].reshape(-1, stride)[:, :3] if stride >= 3 else None

    def colour(self, material: Element | None) -> tuple[Colour | None, float]:
        effect = None if material is None else self.target(next(iter(material.all("instance_effect")), None))
        for shading in () if effect is None else (e for e in effect.walk() if e.tag in _SHADINGS):
            for diffuse in shading.all("diffuse"):
                for colour in diffuse.all("color"):
                    values = _numbers(colour)
                    if len(values) >= 3:
                        r, g, b = (round(255 * min(max(float(x), 0.0), 1.0)) for x in values[:3])
                        opacity = float(values[3]) if len(values) > 3 else 1.0
                        return (r, g, b), opacity if 0.05 < opacity <= 1.0 else 1.0  # some write 0 and mean 1
        return None, 1.0


_SHADINGS = ("phong", "lambert", "blinn", "constant")


def _faces(primitive: Element) -> Array:
    """Triangles (F, 3) of vertex numbers; polygons are fans."""
    inputs = primitive.all("input")
    offsets = [int(e.attributes.get("offset", 0)) for e in inputs]
    stride = max(offsets, default=0) + 1
    at = next((o for e, o in zip(inputs, offsets, strict=True) if e.attributes.get("semantic") == "VERTEX"), 0)
    lists = [_integers(p)[at::stride] for p in primitive.all("p")]
    if primitive.tag == "triangles":
        corners = np.concatenate([*lists, np.zeros(0, np.int64)])
        return corners[: len(corners) // 3 * 3].reshape(-1, 3)
    if primitive.tag == "polylist":
        corners = np.concatenate([*lists, np.zeros(0, np.int64)])
        counts = np.concatenate([*(_integers(v) for v in primitive.all("vcount")), np.zeros(0, np.int64)])
        if counts.sum() != len(corners) or (counts < 0).any():
            return np.zeros((0, 3), np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
    else:
        corners = np.concatenate([*lists, np.zeros(0, np.int64)])
        starts = np.cumsum([0, *(len(each) for each in lists)])
        counts = np.diff(starts)
    fans = []
    for sides in np.unique(counts[counts >= 3]):
        of = corners[starts[:-1][counts == sides][:, None] + np.arange(sides)]
        fans += [of[:, [0, k, k + 1]] for k in range(1, int(sides) - 1)]
    return np.concatenate([*fans, np.zeros((0, 3), np.int64)])


def _numbers(element: Element) -> Array:
    return np.array(element.text.split(), float)


def _integers(element: Element) -> Array:
    return np.array(element.text.split(), np.int64)


def _translated(x: Array) -> Array:
    X = np.eye(4)
    X[:3, 3] = x[:3]
    return X


def _turned(x: Array) -> Array:
    """About an axis, by an angle in degrees."""
    from scipy.spatial.transform import Rotation

    X = np.eye(4)
    length = float(np.linalg.norm(x[:3]))
    if length > 0.0:
        X[:3, :3] = Rotation.from_rotvec(np.deg2rad(x[3]) * x[:3] / length).as_matrix()
    return X


_MOVES: dict[str, Callable[[Array], Array]] = {
    "matrix": lambda x: x[:16].reshape(4, 4),
    "translate": _translated,
    "rotate": _turned,
    "scale": lambda x: np.diag([*x[:3], 1.0]),
}
