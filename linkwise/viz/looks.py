"""Looks of the bodies of a model: their shapes from the file, or those that their mass and joints suggest."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field, replace
from linkwise.errors import LinkwiseError, ModelFileError, ModelWarning
from linkwise.files.resources import mesh_file, picture_file
from linkwise.mechanism.bodies_and_joints import Body, rows
from linkwise.mechanism.closures.instances import ClosureInstance
from linkwise.mechanism.description import Geometry
from linkwise.model.model import Model
from linkwise.viz.bending import Bending, bending
from linkwise.viz.meshes import placeholder, read_mesh
from linkwise.viz.solids import (
    Solid,
    bounds_of,
    box,
    capsule,
    cylinder,
    ellipsoid,
    joined,
    merged,
    simplified,
    sphere,
    stick,
)
from linkwise.viz.textures import papered, read_picture, tinted

if TYPE_CHECKING:
    from PIL.Image import Image

Key = tuple[object, ...]
"""Mesh or picture and the file that names it: shapes of one key share what is read."""
BONE = (120, 144, 176)
"""Colour of a body without shapes."""
KNOB = (226, 150, 66)
"""Colour of a joint between such bodies."""
_ELLIPSOID = 0.05
"""Longest half axis of the ellipsoid on such a body's rods, in sizes of the model."""
MANY = 150
"""Bodies of a model of which each is drawn as one surface, where it has no shapes of its own."""
_READERS = 2
"""Threads that read meshes: the files are small, and parsing them holds the interpreter most of the time."""


@dataclass(frozen=True)
class Looks:
    """Shapes to draw of a model, in the frames of its bodies.

    Args:
        base: what is fixed to the world.
        ground: what is fixed and touched from above, unless it is level: hills, slopes, other grounds of contacts.
        bodies: for each body, in the order of ``model.bodies``.
        bent: for each flexible body, by index, the surfaces that deform with it.
        ellipsoids: for each body, that of its inertia; None without mass.
        size: of the whole, m: a length to measure arrows and spheres by.
        missing: what could not be read, as told in the warning.
    """

    base: tuple[Solid, ...]
    ground: tuple[Solid, ...]
    bodies: tuple[tuple[Solid, ...], ...]
    bent: dict[int, tuple[Bending, ...]]
    ellipsoids: tuple[Solid | None, ...]
    size: float
    missing: tuple[str, ...] = field(default=())

    def surfaces(self, body: int) -> tuple[Solid, ...]:
        """All surfaces of a body, those that bend as they are at rest."""
        return (*self.bodies[body], *(each.solid for each in self.bent.get(body, ())))

    def reach(self, body: int) -> float:
        """Farthest that a body goes from its origin, along any axis of its frame, m."""
        return max((float(np.abs(solid.vertices).max()) for solid in self.surfaces(body)), default=0.0)

    def corners(self, poses: Array) -> Array:
        """Corners (..., 8 n_bodies, 3) of a box around each body, for poses (..., n_bodies, 4, 4).

        Of a body without surfaces, its origin.
        """
        boxes = np.zeros((len(self.bodies), 2, 3))
        for k in range(len(boxes)):
            if solids := self.surfaces(k):
                boxes[k] = bounds_of(solids)
        choice = np.stack(np.meshgrid((0, 1), (0, 1), (0, 1), indexing="ij"), -1).reshape(8, 3)
        corners = boxes[:, choice, np.arange(3)]  # (n, 8, 3)
        at = np.einsum("...nij,ncj->...nci", poses[..., :3, :3], corners) + poses[..., None, :3, 3]
        return np.asarray(at.reshape(*poses.shape[:-3], -1, 3))

    def middle(self, body: int) -> Array:
        """The middle of the box around a body (3), in its frame."""
        low, high = bounds_of(self.surfaces(body))
        return (low + high) / 2


def looks_of(model: Model) -> Looks:
    """Looks of a model; one warning names the meshes that could not be read and where they were looked for."""
    size = size_of(model)
    shapes = [body.visuals or body.collisions for body in model.bodies]
    hills = _hills(model)
    fixed = [shape for shape in model.base_visuals if shape.kind not in _HILLS]
    all_shapes = [*fixed, *hills, *(shape for each in shapes for shape in each)]
    meshes, troubles = _read_all(all_shapes, size)
    if troubles:
        _warn(model, troubles, "a mesh of {} is drawn as a placeholder")
    images, lost = _read_pictures(all_shapes)
    if lost:
        _warn(model, lost, "a picture on {} is left out")
    troubles |= lost
    ellipsoids = tuple(ellipsoid(body.mass, body.com, body.inertia) for body in model.bodies)
    bodies, bent = [], {}
    for body, inertia, own in zip(model.bodies, ellipsoids, shapes, strict=True):
        solids = _solids(own, meshes, images)
        if body.flexible is not None:
            bent[body.index] = bending(body.flexible, solids, size)
            solids = []
        elif not solids:
            solids = _imagined(model, body, inertia, size)
        bodies.append(tuple(joined(solids)))
    base, ground = (tuple(joined(_solids(each, meshes, images))) for each in (fixed, hills))
    slopes = [half for X in planes_of(model) if not is_level(X) for half in _slope(X, size)]
    ground = (*(solid.painted(solid.colour or EARTH, solid.opacity) for solid in ground), *slopes)
    found = tuple(str(error) for error in troubles.values())
    return Looks(base, ground, tuple(bodies), bent, ellipsoids, size, found)


_HILLS = ("heightfield", "terrain")
EARTH = (166, 172, 138)
"""Colour of hills that have none of their own."""
_SLOPES = ((188, 192, 166), EARTH)
"""Colours of the squares of slopes."""


def planes_of(model: Model) -> list[Array]:
    """Poses (4, 4) in the world of the planes that bodies can touch; above each is its z axis."""
    scene = model._contact_scene
    grounds = () if scene is None else scene.grounds
    shapes = [(np.eye(4), shape) for shape in model._base_collisions]
    shapes += [(np.array(ground.placement), ground.shape) for ground in grounds]
    return [X @ np.array(shape.placement) for X, shape in shapes if shape.kind == "plane"]


def is_level(plane: Array) -> bool:
    """Whether a plane (4, 4) lies level, as the floor does."""
    return bool(plane[2, 2] > 1.0 - 1e-9)


def _slope(plane: Array, size: float) -> list[Solid]:
    """A plane that is not level: squares as large as the model, in two colours."""
    at = np.stack(np.meshgrid(np.arange(-8, 8), np.arange(-8, 8), indexing="ij"), -1).reshape(-1, 2)
    found = []
    for parity, colour in enumerate(_SLOPES):
        xy = size * (at[at.sum(axis=1) % 2 == parity][:, None] + np.array([[0, 0], [1, 0], [1, 1], [0, 1]]))
        corners = np.concatenate([xy, np.zeros((*xy.shape[:2], 1))], axis=-1).reshape(-1, 3)
        squares = 4 * np.arange(len(xy))[:, None, None] + np.array([[0, 1, 2], [0, 2, 3]])
        found.append(Solid(corners, squares.reshape(-1, 3), colour).placed(plane))
    return found


def _hills(model: Model) -> list[Geometry]:
    """Shapes of the ground, in the world; a plane is drawn as the floor."""
    fixed = [shape for shape in (*model.base_visuals, *model._base_collisions) if shape.kind in _HILLS]
    found = {(shape.placement, shape.heights, shape.vertices): shape for shape in reversed(fixed)}
    grounds = () if model._contact_scene is None else model._contact_scene.grounds
    own = [
        replace(ground.shape, placement=rows(np.array(ground.placement) @ np.array(ground.shape.placement)))
        for ground in grounds
        if ground.shape.kind != "plane"
    ]
    return [*found.values(), *own]


def fewer(looks: Looks, most: int) -> Looks:
    """Looks with so many triangles at most, shared out by what each surface has now."""
    total = sum(len(solid.faces) for solids in (looks.base, *looks.bodies) for solid in solids)
    ground = tuple(simplified(solid, most) for solid in looks.ground)
    if total <= most:
        return replace(looks, ground=ground)
    share = most / total

    def small(solids: Sequence[Solid]) -> tuple[Solid, ...]:
        return tuple(simplified(solid, max(40, int(share * len(solid.faces)))) for solid in joined(solids))

    return replace(looks, base=small(looks.base), ground=ground, bodies=tuple(map(small, looks.bodies)))


def outlines_of(model: Model, size: float) -> tuple[tuple[Solid, ...], ...]:
    """Shapes for contact of each body, in its frame."""
    meshes, troubles = _read_all([shape for body in model.bodies for shape in body.collisions], size)
    if troubles:
        _warn(model, troubles, "a mesh of {} is drawn as a placeholder")
    return tuple(tuple(_solids(body.collisions, meshes, {})) for body in model.bodies)


def size_of(model: Model) -> float:
    """The extent of the joints and mass centres in the neutral configuration, m."""
    if not model.bodies:
        return 1.0
    poses = model.poses(model.neutral())
    points = [np.zeros(3)]
    for body, X in zip(model.bodies, poses, strict=True):
        points += [X[:3, 3], X[:3, :3] @ body.com + X[:3, 3]] if body.mass > 0.0 else [X[:3, 3]]
        if body.flexible is not None:
            points += [X[:3, :3] @ node.position + X[:3, 3] for node in body.flexible.nodes]
    reach = np.ptp(np.array(points), axis=0).max()
    radii = [_radius(body) for body in model.bodies]
    return float(max(reach, 2.0 * max(radii), 1e-3))


def _radius(body: Body) -> float:
    return float(np.sqrt(max(np.trace(body.inertia), 0.0) / body.mass)) if body.mass > 0.0 else 0.0


def _imagined(model: Model, body: Body, inertia: Solid | None, size: float) -> list[Solid]:
    """Drawing of a body without shapes: rods from its joint to the next ones and to closures, and a small ellipsoid.

    The ellipsoid lies where the mass centre is and has the axes of the inertia; its own size only for a body that flies
    alone, without rods.
    """
    radius = 0.012 * size
    start = np.array(body.joint_frame)[:3, 3]
    ends = [np.array(child.placement)[:3, 3] for child in model.bodies if child.parent == body.index]
    for closure in model.closures:
        if isinstance(closure, ClosureInstance):
            ends += [np.array(placement)[:3, 3] for tied, placement, _ in closure.sides if tied == body.index]
    com = body.com
    if body.mass > 0.0 and all(_distance(com, start, end) > 2.0 * radius for end in ends):
        ends.append(com)  # or nothing would hold the ellipsoid
    distant = [end for end in ends if np.linalg.norm(end - start) > 1e-9]
    found = [stick(start, end, radius).painted(BONE) for end in distant]
    found += [rail for child in model.bodies if child.parent == body.index for rail in _rails(model, child, size)]
    flies = model.joints[body.index].nv == 6
    if not flies:
        found.append(sphere(1.6 * radius, 16).placed(body.joint_frame).painted(KNOB))
    if inertia is not None:
        reach = float(np.abs(inertia.vertices - com).max())
        share = min(1.0, _ELLIPSOID * size / reach) if distant or not flies else 1.0
        X = np.eye(4)
        X[:3, 3] = (1.0 - share) * com
        found.append(inertia.placed(X, (share, share, share)).painted(BONE))
    if len(model.bodies) > MANY:
        return [merged(found).painted(BONE)]
    return found


def _rails(model: Model, body: Body, size: float) -> list[Solid]:
    """A thin rod along which a body slides, in the frame of the body that it slides on; as long as its way."""
    joint = model.joints[body.index]
    if [part.kind for part in joint.type.series() or ()] != ["slide"]:
        return []
    low, high = (float(bounds[joint.q_slice][0]) for bounds in (model.limits.lower, model.limits.upper))
    X = np.array(body.placement)
    ends = [X[:3, :3] @ (np.clip(end, -size, size) * np.asarray(joint.type.axis)) + X[:3, 3] for end in (low, high)]
    way = np.linalg.norm(ends[1] - ends[0])
    return [stick(ends[0], ends[1], 0.005 * size).painted(BONE)] if way > 1e-9 else []


def _distance(point: Array, start: Array, end: Array) -> float:
    """Distance of a point from the way between two others, m."""
    way = end - start
    square = float(way @ way)
    share = min(max(float((point - start) @ way) / square, 0.0), 1.0) if square > 0.0 else 0.0
    return float(np.linalg.norm(point - start - share * way))


def _solids(shapes: Iterable[Geometry], meshes: dict[Key, list[Solid]], images: dict[Key, Image]) -> list[Solid]:
    found: list[Solid] = []
    for shape in shapes:
        rgba = shape.rgba
        colour = None if rgba is None else (_byte(rgba[0]), _byte(rgba[1]), _byte(rgba[2]))
        opacity = 1.0 if rgba is None else rgba[3]
        for solid in meshes[_key(shape)] if shape.kind == "mesh" else _primitives(shape):
            own = solid if solid.colour is not None else solid.painted(colour, opacity)
            if shape.texture is not None:
                image = images.get(_picture_key(shape))
                own = replace(own, texture=None) if image is None else papered(own, image, shape.texture)
            found.append(own.placed(shape.placement, shape.scale))
    return found


def _byte(x: float) -> int:
    return round(255 * min(max(x, 0.0), 1.0))


def _primitives(shape: Geometry) -> list[Solid]:
    """The surface of a shape that is no mesh file; none of a plane, which has no end."""
    if shape.kind == "plane":
        return []
    if shape.kind == "ellipsoid":
        return [sphere(1.0).placed(np.eye(4), shape.size)]
    if shape.kind == "convex":
        from scipy.spatial import ConvexHull

        points = np.array(shape.vertices)
        hull = ConvexHull(points)
        a, b, c = points[hull.simplices].swapaxes(0, 1)
        inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
        return [Solid(points, np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices))]
    if shape.kind == "terrain":
        return [Solid(np.array(shape.vertices), np.array(shape.faces))]
    if shape.kind == "heightfield":
        return [_field(shape)]
    make: dict[str, Callable[..., Solid]] = {"box": box, "sphere": sphere, "cylinder": cylinder, "capsule": capsule}
    return [make[shape.kind](*shape.size)]


def _field(shape: Geometry) -> Solid:
    heights = np.array(shape.heights)
    rows, columns = heights.shape
    x, y = (np.linspace(-0.5 * edge, 0.5 * edge, n) for edge, n in zip(shape.size, (columns, rows), strict=True))
    points = np.stack([*np.meshgrid(x, y), heights], axis=-1).reshape(-1, 3)
    at = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = at[:-1, :-1], at[:-1, 1:], at[1:, :-1], at[1:, 1:]
    return Solid(points, np.concatenate([np.stack(each, -1).reshape(-1, 3) for each in ((a, b, d), (a, d, c))]))


def _key(shape: Geometry) -> Key:
    return shape.mesh, shape.source, shape.texture is not None


def _read_all(shapes: Sequence[Geometry], size: float) -> tuple[dict[Key, list[Solid]], dict[Key, LinkwiseError]]:
    """Every mesh once; a placeholder for one that cannot be had, and why."""
    wanted = {_key(shape): shape for shape in shapes if shape.kind == "mesh"}
    found: dict[Key, list[Solid]] = {}
    troubles: dict[Key, LinkwiseError] = {}
    files: dict[Key, tuple[Path, bool]] = {}
    for key, shape in wanted.items():
        try:
            files[key] = mesh_file(shape), shape.texture is not None
        except ModelFileError as error:
            troubles[key] = error

    def read(file: tuple[Path, bool]) -> list[Solid] | ModelFileError:
        try:
            return read_mesh(*file)
        except ModelFileError as error:
            return error

    paths = list(dict.fromkeys(files.values()))
    with ThreadPoolExecutor(_READERS) as pool:
        contents = dict(zip(paths, pool.map(read, paths), strict=True))
    for key in wanted:
        content = contents[files[key]] if key in files else None
        if isinstance(content, ModelFileError):
            troubles[key] = content
        found[key] = content if isinstance(content, list) else [placeholder(0.04 * size)]
    return found, troubles


def _picture_key(shape: Geometry) -> Key:
    """Picture, source and tint: shapes that agree in these share one image."""
    assert shape.texture is not None
    return shape.texture.file, shape.source, shape.rgba


def _read_pictures(shapes: Sequence[Geometry]) -> tuple[dict[Key, Image], dict[Key, LinkwiseError]]:
    """Every picture once in every tint, and why some cannot be had, by their names."""
    found: dict[Key, Image] = {}
    troubles: dict[Key, LinkwiseError] = {}
    for shape in shapes:
        if shape.texture is None or (key := _picture_key(shape)) in found or key[:2] in troubles:
            continue
        try:
            r, g, b, _ = shape.rgba or (1.0, 1.0, 1.0, 1.0)
            found[key] = tinted(read_picture(picture_file(shape)), (_byte(r), _byte(g), _byte(b)))
        except ModelFileError as error:
            troubles[key[:2]] = error
    return found, troubles


def _warn(model: Model, troubles: dict[Key, LinkwiseError], what: str) -> None:
    """One warning for all, with the first in full."""
    first = next(iter(troubles.values()))
    names = list(dict.fromkeys(str(name) for name, *_ in troubles))
    others = f" (and {len(names) - 1} more: {', '.join(names[1:4])}{', …' if len(names) > 4 else ''})"
    warnings.warn(
        ModelWarning(
            f"{what.format(repr(model.name))}: {first.what}" + (others if len(names) > 1 else ""),
            got=first.got,
            allowed=first.allowed,
            do=first.do,
        ),
        stacklevel=4,
    )
