"""Shapes of bodies made by hand: mass, mass centre, inertia, looks and outline for contact, all from one word.

>>> import linkwise as lw
>>> crate = lw.shapes.box((1.0, 1.0, 1.0), density=600.0)
>>> float(crate.mass), float(crate.inertia[0, 0])
(600.0, 100.0)
>>> b = lw.ModelBuilder("drop")
>>> b.add_body("crate", joint=lw.Free(), shape=crate)

A shape weighs what its ``mass`` (kg) or ``density`` (kg/m³, of what is solid) says, and nothing where neither is given.
Shapes add up: ``box(…) + sphere(…)`` is one body. Their numbers serve alone, too: ``rod(…, mass=2.0).inertia``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.checks import finite_number, finite_numbers
from linkwise.dataclass import dataclass, field, replace
from linkwise.errors import InputError
from linkwise.joints.directions import turn_z_to
from linkwise.mechanism.bodies_and_joints import rows
from linkwise.mechanism.body_checks import checked_pose, checked_vector
from linkwise.mechanism.contacts import check_material
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material

__all__ = ["BodyShape", "box", "capsule", "cylinder", "heightfield", "mesh", "rod", "sphere", "terrain"]

Point = Sequence[float]
Colour = tuple[float, float, float] | tuple[float, float, float, float]


class ShapeOptions(TypedDict, total=False):
    """Options of any shape.

    Args:
        mass: kg.
        density: kg/m³, instead of the mass.
        placement: pose of the shape (4, 4) in the frame of the body, or the place (3) of its middle, m.
        rgba: red, green, blue, and opacity unless it is one, 0 to 1.
        collides: whether it is an outline for contact (True), or only looks.
        visible: whether it is drawn (True), or only an outline.
        label: a name of its own, by which ``with_contacts`` knows it beside that of its body.
        contype, conaffinity: bits of what it is and of what it touches, for contact; see :class:`Geometry`.
        material: of its surface, for contact.
    """

    mass: float | None
    density: float | None
    placement: ArrayLike
    rgba: Colour | None
    collides: bool
    visible: bool
    label: str
    contype: int
    conaffinity: int
    material: Material


@dataclass(frozen=True, eq=False)
class BodyShape:
    """Shape of a body: its looks, its outline for contact, and its inertia.

    Args:
        visuals: shapes to draw.
        collisions: shapes for contact.
        mass: kg.
        com: mass centre (3) in the frame of the body, m.
        inertia: (3, 3) about the mass centre, in the axes of the body, kg m².
    """

    visuals: tuple[Geometry, ...] = ()
    collisions: tuple[Geometry, ...] = ()
    mass: float = 0.0
    com: FloatArray = field(default_factory=lambda: np.zeros(3))
    inertia: FloatArray = field(default_factory=lambda: np.zeros((3, 3)))

    def __add__(self, other: BodyShape) -> BodyShape:
        """Both, as one body."""
        if not isinstance(other, BodyShape):
            return NotImplemented
        mass = self.mass + other.mass
        com = (self.mass * self.com + other.mass * other.com) / mass if mass else np.zeros(3)
        inertia = sum((each.inertia + each.mass * _steiner(each.com - com) for each in (self, other)), np.zeros((3, 3)))
        return BodyShape(
            self.visuals + other.visuals, self.collisions + other.collisions, mass, np.asarray(com), inertia
        )

    def placed(self, placement: ArrayLike) -> BodyShape:
        """The shape elsewhere on its body: moved by a pose (4, 4), or by a vector (3), m."""
        X = _pose(placement)
        R = X[:3, :3]

        def moved(shapes: tuple[Geometry, ...]) -> tuple[Geometry, ...]:
            return tuple(replace(each, placement=rows(X @ np.array(each.placement))) for each in shapes)

        com = R @ self.com + X[:3, 3]
        return BodyShape(moved(self.visuals), moved(self.collisions), self.mass, com, R @ self.inertia @ R.T)

    def named(self, link: str) -> BodyShape:
        """The shape as that of a link: its geometries have the link's name."""
        visuals, collisions = (
            tuple(replace(each, name=link) for each in shapes) for shapes in (self.visuals, self.collisions)
        )
        return replace(self, visuals=visuals, collisions=collisions)

    def __repr__(self) -> str:
        kinds = ", ".join(each.kind for each in self.visuals or self.collisions)
        return f"<BodyShape: {kinds or 'nothing'}; {self.mass:.6g} kg>"


def box(size: Sequence[float], **options: Unpack[ShapeOptions]) -> BodyShape:
    """A box.

    Args:
        size: its edges (3) along x, y and z, m.
        options: ``mass`` or ``density``, ``placement``, ``rgba``, ``collides``, …; see :class:`ShapeOptions`.
    """
    x, y, z = (finite_number(edge, "an edge of a box", above=0.0) for edge in checked_vector(size, "the size of a box"))
    moments = [(y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12]
    return _shape("box", (x, y, z), x * y * z, np.diag(moments), options)


def sphere(radius: float, **options: Unpack[ShapeOptions]) -> BodyShape:
    """A ball.

    Args:
        radius: m.
        options: as of :func:`box`.
    """
    r = finite_number(radius, "the radius of a sphere", above=0.0)
    return _shape("sphere", (r,), 4 / 3 * math.pi * r**3, 0.4 * r * r * np.eye(3), options)


def cylinder(
    radius: float,
    length: float | None = None,
    *,
    ends: tuple[Point, Point] | None = None,
    **options: Unpack[ShapeOptions],
) -> BodyShape:
    """A cylinder, along z, or from one point to another.

    Args:
        radius: m.
        length: m.
        ends: two points in the frame of the body, m, instead of length and placement.
        options: as of :func:`box`.
    """
    r = finite_number(radius, "the radius of a cylinder", above=0.0)
    l = _length(length, ends, options)
    across = (3 * r * r + l * l) / 12
    return _shape("cylinder", (r, l), math.pi * r * r * l, np.diag([across, across, r * r / 2]), options)


def capsule(
    radius: float,
    length: float | None = None,
    *,
    ends: tuple[Point, Point] | None = None,
    **options: Unpack[ShapeOptions],
) -> BodyShape:
    """A cylinder with half balls at its ends, along z, or from one point to another.

    Args:
        radius: m.
        length: from the middle of one half ball to that of the other, m.
        ends: these middles in the frame of the body, m, instead of length and placement.
        options: as of :func:`box`.
    """
    r = finite_number(radius, "the radius of a capsule", above=0.0)
    l = _length(length, ends, options)
    middle, balls = math.pi * r * r * l, 4 / 3 * math.pi * r**3
    volume = middle + balls
    across = middle * (r * r / 4 + l * l / 12) + balls * (0.4 * r * r + l * l / 4 + 3 / 8 * l * r)
    along = middle * r * r / 2 + balls * 0.4 * r * r
    return _shape("capsule", (r, l), volume, np.diag([across, across, along]) / volume, options)


def rod(start: Point, end: Point, radius: float, **options: Unpack[ShapeOptions]) -> BodyShape:
    """A round bar from one point to another: a :func:`cylinder` between them.

    Args:
        start, end: in the frame of the body, m.
        radius: m.
        options: as of :func:`box`, but for the placement.
    """
    return cylinder(radius, ends=(start, end), **options)


def mesh(
    path: str | PathLike[str], *, scale: float | Sequence[float] = 1.0, **options: Unpack[ShapeOptions]
) -> BodyShape:
    """A body from the file of its surface (STL, OBJ, PLY, GLB, COLLADA; needs the extra ``viz``).

    Mass centre and inertia are those of what the surface encloses, which must be closed where it shall have a mass.

    Args:
        path: of the file.
        scale: factor, or one along each axis of the file: 0.001 for a file in millimetres.
        options: as of :func:`box`; the frame of the file is that of the body unless ``placement`` moves it.
    """
    factors = np.broadcast_to(np.asarray(scale, float), (3,))
    if not (np.isfinite(factors).all() and factors.all()):
        raise InputError("the scale of a mesh is not usable", got=repr(scale), allowed="one or three numbers, not zero")
    file = Path(path)
    shape = Geometry("mesh", (), fspath(path), (float(factors[0]), float(factors[1]), float(factors[2])), _ROWS, "")
    if not (options.get("mass") or options.get("density")):
        return _weighed(shape, 1.0, np.zeros(3), np.zeros((3, 3)), options)
    # What reads meshes lies above this layer.
    solids = [solid.placed(np.eye(4), factors) for solid in import_module("linkwise.viz.meshes").read_mesh(file)]
    corners = np.concatenate([solid.vertices[solid.faces] for solid in solids])
    volume, com, inertia = _enclosed(corners, file)
    return _weighed(shape, volume, com, inertia, options)


def heightfield(heights: ArrayLike, size: Sequence[float], *, rgba: Colour | None = None) -> Geometry:
    """Hills, as ground to be touched: ``lw.Ground(shape=lw.shapes.heightfield(heights, (10, 10)))``.

    Args:
        heights: (rows, columns), m: rows along y, columns along x; two triangles between each four.
        size: from the first to the last of them along x and y, m; the middle is the origin.
        rgba: as of :func:`box`.
    """
    given = _array(heights)
    if given.ndim != 2 or min(given.shape) < 2 or not np.isfinite(given).all():
        raise InputError(
            "the heights of a field are not usable",
            got=f"{given.shape}" if np.isfinite(given).all() else f"{given.shape}, not all of them finite",
            allowed="two or more rows and columns of finite numbers",
        )
    x, y = finite_numbers(size, "the size of a heightfield", 2, above=0.0)
    looks = None if rgba is None else _colour(rgba)
    return Geometry("heightfield", (x, y), None, (1.0, 1.0, 1.0), _ROWS, "", rgba=looks, heights=rows(given))


def terrain(vertices: ArrayLike, faces: ArrayLike, *, rgba: Colour | None = None) -> Geometry:
    """A surface of triangles, as ground to be touched from above: ``lw.Ground(shape=lw.shapes.terrain(…))``.

    Args:
        vertices: (n, 3), m.
        faces: (m, 3), numbers of vertices, counterclockwise seen from above, or from in front of a
            wall; what looks down bears nothing.
        rgba: as of :func:`box`.
    """
    corners, triangles = _array(vertices), _array(faces)
    fits = corners.ndim == triangles.ndim == 2 and corners.shape[1] == triangles.shape[1] == 3 and triangles.size
    if not fits or not np.isfinite(corners).all() or not np.isin(triangles, np.arange(len(corners))).all():
        raise InputError(
            "the triangles of a terrain are not usable",
            got=f"vertices {corners.shape}, faces {triangles.shape}",
            allowed="vertices (n, 3), finite, and faces (m, 3), numbers of vertices from 0 to n - 1",
        )
    a, b, c = (corners[triangles[:, k].astype(int)] for k in range(3))
    if not (np.cross(b - a, c - a)[:, 2] > 0.0).any():
        raise InputError(
            "no triangle of a terrain looks up, so that nothing would stand on it",
            got=f"{len(triangles)} triangles that are upright, without area, or clockwise seen from above",
            allowed="corners counterclockwise, seen from above",
            do="faces[:, ::-1] turns them over",
        )
    looks = None if rgba is None else _colour(rgba)
    points = tuple((x, y, z) for x, y, z in corners.tolist())
    numbers = tuple((a, b, c) for a, b, c in triangles.astype(int).tolist())
    return Geometry("terrain", (), None, (1.0, 1.0, 1.0), _ROWS, "", rgba=looks, vertices=points, faces=numbers)


def _array(given: ArrayLike) -> FloatArray:
    """Numbers in an array; a NaN for what is none."""
    try:
        return np.asarray(given, float)
    except (TypeError, ValueError):
        return np.full((), np.nan)


_ROWS = rows(np.eye(4))


def _shape(
    kind: Literal["box", "sphere", "cylinder", "capsule"],
    size: tuple[float, ...],
    volume: float,
    inertia: FloatArray,
    options: ShapeOptions,
) -> BodyShape:
    """A shape around its own middle, from its inertia for each kilogram."""
    return _weighed(Geometry(kind, size, None, (1.0, 1.0, 1.0), _ROWS, ""), volume, np.zeros(3), inertia, options)


def _weighed(shape: Geometry, volume: float, com: FloatArray, inertia: FloatArray, options: ShapeOptions) -> BodyShape:
    """A shape with its mass, in its place on the body."""
    unknown = set(options) - set(ShapeOptions.__annotations__)
    if unknown:
        raise InputError(
            f"a {shape.kind} has no {sorted(unknown)[0]!r}", got=repr(sorted(unknown)), allowed=", ".join(_SAID)
        )
    mass, density = options.get("mass"), options.get("density")
    if mass is not None and density is not None:
        raise InputError(
            f"a {shape.kind} has a mass and a density",
            got=f"mass={mass!r}, density={density!r}",
            allowed="one of them",
            do=f"drop one: the volume is {volume:.6g} m³",
        )
    for name, value in (("mass", mass), ("density", density)):
        if value is not None:
            finite_numbers(value, f"the {name} of a {shape.kind}", 1, least=0.0)
    kilograms = float(mass) if mass is not None else volume * float(density or 0.0)
    rgba = options.get("rgba")
    if rgba is not None:
        shape = replace(shape, rgba=_colour(rgba))
    said: Mapping[str, Any] = {name: value for name, value in options.items() if name in _OF_CONTACT}
    outline = replace(shape, **said)
    check_material(outline.material)
    weighed = BodyShape(
        (shape,) if options.get("visible", True) else (),
        (outline,) if options.get("collides", True) else (),
        kilograms,
        com,
        kilograms * inertia,
    )
    return weighed.placed(options["placement"]) if "placement" in options else weighed


_SAID = tuple(ShapeOptions.__annotations__)
_OF_CONTACT = ("label", "contype", "conaffinity", "material")


def _colour(rgba: Sequence[float]) -> tuple[float, float, float, float]:
    values = np.asarray(rgba, float)
    if values.shape not in ((3,), (4,)) or not ((values >= 0.0) & (values <= 1.0)).all():
        raise InputError("a colour is not usable", got=repr(rgba), allowed="three or four numbers from 0 to 1")
    red, green, blue, opacity = (*values.tolist(), 1.0)[:4]
    return red, green, blue, opacity


def _length(length: float | None, ends: tuple[Point, Point] | None, options: ShapeOptions) -> float:
    """The length of something round; of one between two points, its place goes to the options."""
    if ends is None:
        if length is None:
            raise InputError("there is neither a length nor two ends", allowed="length=0.3, or ends=(start, end)")
        return finite_number(length, "a length", above=0.0)
    if length is not None or "placement" in options:
        raise InputError(
            "two ends say where it is and how long", got="ends beside length or placement", do="give ends alone"
        )
    start, end = (np.array(checked_vector(point, "the end of a shape")) for point in ends)
    between = float(np.linalg.norm(end - start))
    if not between > 0.0:
        raise InputError("the ends are in one place", got=repr(ends), allowed="two points", do="use a sphere")
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = turn_z_to((end - start) / between), (start + end) / 2
    options["placement"] = X
    return between


def _pose(placement: ArrayLike) -> FloatArray:
    if np.shape(placement) == (3,):
        X = np.eye(4)
        X[:3, 3] = checked_vector(np.asarray(placement), "the place of a shape")
        return X
    return np.array(checked_pose(placement, "the placement of a shape"))


def _steiner(d: FloatArray) -> FloatArray:
    """The inertia of one kilogram at d, about the origin."""
    return np.asarray(d @ d * np.eye(3) - np.outer(d, d))


def _enclosed(corners: FloatArray, file: Path) -> tuple[float, FloatArray, FloatArray]:
    """Volume, middle, and inertia about it for each kilogram, of what triangles (n, 3, 3) enclose.

    Each triangle makes a tetrahedron with the origin, of signed volume; ∫xxᵀ over one is V/20 (Σᵢ xᵢxᵢᵀ + s sᵀ) with
    its corners xᵢ and their sum s.
    """
    cut = np.einsum("ni,ni->n", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]).sum(axis=0) / 2.0
    volume = float(cut.sum())
    surface = float(
        np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    )
    if not volume > 0.0 or np.linalg.norm(area) > 1e-3 * surface / 2.0:
        raise InputError(
            f"the surface in {file.name!r} encloses nothing: it is open, or inside out",
            got=f"{len(corners)} triangles around {volume:.3g} m³",
            allowed="a closed surface with triangles anticlockwise as seen from outside",
            do="mend the file, or give the body mass, com and inertia, and visuals=shape.visuals",
        )
    sums = corners.sum(axis=1)
    com = np.einsum("n,ni->i", cut, sums) / (4.0 * volume)
    second = np.einsum("n,nki,nkj->ij", cut, corners, corners) + np.einsum("n,ni,nj->ij", cut, sums, sums)
    second = second / (20.0 * volume) - np.outer(com, com)
    return volume, com, np.asarray(np.trace(second) * np.eye(3) - second)
