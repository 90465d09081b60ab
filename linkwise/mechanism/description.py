"""Description of a model besides its mechanics: limits of joints, which joint follows which, what bodies look like.

Plain frozen data. The algorithms of motion never look at shapes; contact and drawing do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Literal

from linkwise.dataclass import dataclass, field
from linkwise.errors import InputError
from linkwise.mechanism.materials import Material


@dataclass(frozen=True, slots=True)
class JointLimits:
    """The range of a joint's coordinate, and the most it may move and push; infinite where nothing is said.

    Args:
        lower: least value of the coordinate, rad or m.
        upper: greatest value.
        velocity: the fastest it may move either way, rad/s or m/s.
        effort: the most its drive pushes either way, N m or N.
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = math.inf

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "velocity", "effort"):
            value = getattr(self, name)
            if not isinstance(value, Real) or math.isnan(value):
                raise InputError(
                    f"the {name} limit of a joint is not a number",
                    got=f"{name}={value!r}",
                    allowed="a number, or math.inf for none (the lower: -math.inf)",
                    do=f"drop {name} if there is no limit",
                )
            object.__setattr__(self, name, float(value))
        for name in ("velocity", "effort"):
            if getattr(self, name) < 0.0:
                raise InputError(
                    f"the {name} limit of a joint is negative",
                    got=f"{name}={getattr(self, name)!r}",
                    allowed="0 or more: it holds in both directions",
                    do=f"write {name}={-getattr(self, name)!r}",
                )
        if self.lower > self.upper:
            raise InputError(
                "the lower limit is above the upper limit",
                got=f"lower={self.lower!r}, upper={self.upper!r}",
                allowed="lower <= upper",
                do="swap them, or check their signs",
            )
        if self.lower == math.inf or self.upper == -math.inf:
            raise InputError(
                "the limits of a joint leave no room for it",
                got=f"lower={self.lower!r}, upper={self.upper!r}",
                allowed="lower < inf, upper > -inf",
                do="drop the limit that does not apply",
            )


@dataclass(frozen=True, slots=True)
class Mimic:
    """This joint has no coordinate of its own: ``q = multiplier * q[joint] + offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Source:
    """Origin of what was read, so that the files it names can be found later.

    Args:
        file: the path of the file; None for a text.
        search: the folders that the caller gave to look in.
    """

    file: str | None = None
    search: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a file lays on a shape. It is named, not read: a drawing reads ``picture_file(geometry)``.

    A mesh with coordinates of its own in the picture has it there. On other shapes it is projected along z: it covers
    the shape's extent along x and y ``repeat`` times, or, where ``uniform`` is set, squares with edges of 2 m.

    Args:
        file: its path as written.
        repeat: how often along x and y.
        uniform: whether lengths count, not the shape's extent.
    """

    file: str
    repeat: tuple[float, float] = (1.0, 1.0)
    uniform: bool = False


Kind = Literal["mesh", "box", "sphere", "cylinder", "capsule", "ellipsoid", "plane", "convex", "heightfield", "terrain"]
"""Kinds of shapes."""

SIZES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "heightfield": 2}
"""Count of the numbers in the size of a shape, by its kind; of others none."""


FIRST_PAIR_BIT = 32
"""Number of the first bit of :attr:`Geometry.contype` that files do not have: each pair of theirs gets one."""


@dataclass(frozen=True, slots=True)
class NamedPair:
    """Material of two shapes that a file names as a pair.

    Args:
        bit: number of the bit that they share.
        material: between their surfaces, whatever those of the shapes are.
        compliance: as of a :class:`Geometry`.
    """

    bit: int
    material: Material
    compliance: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Geometry:
    """One shape fixed to a link: what it looks like, or its outline for contact.

    A mesh is named, not read: its path stays as the file has it (``package://...``). Whoever draws asks
    ``linkwise.files.mesh_file(geometry)`` for the file.

    Args:
        kind: what the shape is. A plane is the half space below z = 0; a convex shape is the hull of its vertices; a
            heightfield and a terrain of triangles are the ground below them.
        size: box ``(x, y, z)`` edge lengths, sphere ``(radius,)``, cylinder and capsule ``(radius, length)`` along z
            (the capsule's caps not counted), ellipsoid the half axes ``(x, y, z)``, heightfield ``(x, y)`` edge
            lengths, the others ``()``.
        mesh: the mesh's path as written, None for the other kinds.
        scale: factors along the mesh's axes.
        placement: the 4x4 pose of the shape in the link's frame, as rows.
        name: the name of the link that carries it; of what a file fixes to the world, its own where it has one.
        source: the file that names the mesh; None where a program did. Two shapes that differ in it alone are equal.
        rgba: red, green, blue and opacity, 0 to 1; None where nothing is said. A mesh's own colours count more.
        vertices: of a convex shape or a terrain, m, in the shape's frame.
        faces: of a terrain, three numbers of vertices each, counterclockwise seen from above.
        heights: of a heightfield, m: rows along y, each along x, evenly over the edges; the middle is the origin.
        contype: bits of what the shape is, for contact.
        conaffinity: bits of what it touches: two shapes meet where a bit of the one's contype is in the other's
            conaffinity. Bits from :data:`FIRST_PAIR_BIT` on are of pairs, which meet on neighbouring bodies too.
        material: of the surface; that of the body, or of the scene, where nothing is said.
        compliance: stiffness (N/m) and damping (s) of the surface as a file has them, for contact. They count where
            ``with_contacts(softness="file")`` asks for them.
        texture: a picture on the shape; ``rgba`` tints it. It counts more than what a mesh's own file says.
        pairs: materials of pairs that it is the first shape of.
        label: its own name in a file, if it has one.
    """

    kind: Kind
    size: tuple[float, ...]
    mesh: str | None
    scale: tuple[float, float, float]
    placement: tuple[tuple[float, ...], ...]
    name: str
    source: Source | None = field(default=None, compare=False, repr=False)
    rgba: tuple[float, float, float, float] | None = None
    vertices: tuple[tuple[float, float, float], ...] = ()
    faces: tuple[tuple[int, int, int], ...] = ()
    heights: tuple[tuple[float, ...], ...] = ()
    contype: int = 1
    conaffinity: int = 1
    material: Material | None = None
    compliance: tuple[float, float] | None = None
    texture: Picture | None = None
    pairs: tuple[NamedPair, ...] = ()
    label: str = ""

    def names_on(self, body: str | None) -> tuple[str, ...]:
        """Names that it answers to on a body of this name, None for the world: its own, its link's and the body's."""
        return tuple(dict.fromkeys(name for name in (self.label, self.name, body) if name))

    def __repr__(self) -> str:
        """Its kind and measures; of hulls and grounds how many numbers they are made of, which may be thousands."""
        facts = [f"{self.kind}{f' {self.name!r}' if self.name else ''}"]
        facts += [f"size {self.size}"] if self.size else []
        facts += [f"mesh {self.mesh!r}"] if self.mesh else []
        facts += [f"{len(self.vertices)} vertices"] if self.vertices else []
        facts += [f"{len(self.faces)} faces"] if self.faces else []
        facts += [f"{len(self.heights)} x {len(self.heights[0])} heights"] if self.heights else []
        return f"<Geometry: {', '.join(facts)}>"

    def __post_init__(self) -> None:
        size: object = self.size
        if not isinstance(size, tuple):
            numbers = size.tolist() if hasattr(size, "tolist") else size
            object.__setattr__(self, "size", tuple(numbers) if isinstance(numbers, list) else (numbers,))
        for name in ("placement", "vertices", "faces", "heights"):
            given = getattr(self, name)
            if not isinstance(given, tuple):  # an array, say of lw.transform: shapes are known by their numbers
                rows = given.tolist() if hasattr(given, "tolist") else given
                if not isinstance(rows, Iterable) or not all(isinstance(row, Iterable) for row in rows):
                    raise InputError(f"the {name} of a shape are not rows of numbers", got=repr(given)[:80])
                object.__setattr__(self, name, tuple(map(tuple, rows)))
