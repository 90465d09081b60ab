"""Surfaces made of triangles: primitives, and what can be done with any of them; rotations as quaternions, w first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.joints.directions import turn_z_to

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = tuple[int, int, int]

GREY: Colour = (184, 190, 198)
"""Colour of solids that have none of their own."""


@dataclass(frozen=True, eq=False)
class Texture:
    """A picture on a surface.

    Args:
        image: a ``PIL.Image``; None for coordinates on which one is still to be laid.
        uv: where in it each vertex is (V, 2), from its lower left corner, 0 to 1.
    """

    image: Image | None
    uv: Array


@dataclass(frozen=True)
class Solid:
    """One surface of one colour.

    Args:
        vertices: (V, 3), m.
        faces: (F, 3), vertex numbers, anticlockwise seen from outside.
        colour: red, green, blue, 0 to 255; None where nothing is said.
        opacity: 0 to 1.
        smooth: whether it is round: light changes across a face, not from face to face.
        unlit: whether it has its colour in any light.
        texture: a picture on it, whose mean colour it has where that cannot be drawn.
    """

    vertices: Array
    faces: Array
    colour: Colour | None = None
    opacity: float = 1.0
    smooth: bool = False
    unlit: bool = False
    texture: Texture | None = None

    def placed(self, X: ArrayLike, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Solid:
        """Scaled along its axes, then moved by the pose X (4×4)."""
        pose = np.asarray(X, float)
        linear = pose[:3, :3] * np.asarray(scale, float)
        faces = self.faces if np.linalg.det(linear) >= 0.0 else self.faces[:, ::-1]  # a mirrored one is inside out
        return replace(self, vertices=self.vertices @ linear.T + pose[:3, 3], faces=faces)

    def painted(self, colour: Colour | None, opacity: float = 1.0) -> Solid:
        """Solid in another colour; unchanged where that is None."""
        return self if colour is None else replace(self, colour=colour, opacity=opacity)


def box(x: float, y: float, z: float) -> Solid:
    """Box with these edges, around the origin; corners are not shared, so that edges look sharp."""
    corners = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)]) * (x, y, z)
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    vertices = np.concatenate([corners[list(side)] for side in sides])
    faces = np.concatenate([[[4 * n, 4 * n + 1, 4 * n + 2], [4 * n, 4 * n + 2, 4 * n + 3]] for n in range(6)])
    return Solid(vertices, faces)


def revolved(outline: ArrayLike, sides: int = 24) -> Solid:
    """The surface that an outline (n, 2) of (radius, height) makes about z, from below to above; ends at radius 0."""
    points = np.asarray(outline, float)
    angle = 2.0 * np.pi * np.arange(sides) / sides
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    rows = np.concatenate(
        [points[:, None, :1] * ring, np.broadcast_to(points[:, None, 1:], (len(points), sides, 1))], 2
    )
    at = np.arange(len(points) * sides).reshape(len(points), sides)
    a, b = at[:-1], np.roll(at[:-1], -1, axis=1)
    c, d = at[1:], np.roll(at[1:], -1, axis=1)
    lower, upper = np.stack([a, b, d], -1), np.stack([a, d, c], -1)
    keep_lower, keep_upper = points[:-1, 0] > 0.0, points[1:, 0] > 0.0
    faces = np.concatenate([lower[keep_lower].reshape(-1, 3), upper[keep_upper].reshape(-1, 3)])
    return Solid(rows.reshape(-1, 3), faces, smooth=True)


def cylinder(radius: float, length: float, sides: int = 24) -> Solid:
    """Cylinder along z, around the origin; rims doubled, so that they look sharp."""
    h = length / 2
    outline = [(0.0, -h), (radius, -h), (radius, -h), (radius, h), (radius, h), (0.0, h)]
    return revolved(outline, sides)


def capsule(radius: float, length: float, sides: int = 24) -> Solid:
    """Capsule along z, around the origin: a cylinder of this length and a half sphere on each end."""
    angle = np.linspace(0.0, np.pi / 2, sides // 4 + 1)
    low = np.stack([radius * np.sin(angle), -length / 2 - radius * np.cos(angle)], axis=-1)
    return revolved(np.concatenate([low, (low * (1.0, -1.0))[::-1]]), sides)


def sphere(radius: float = 1.0, sides: int = 24) -> Solid:
    """Around the origin."""
    return capsule(radius, 0.0, sides)


def arrow(length: float, radius: float) -> Solid:
    """Arrow from the origin along z."""
    neck = max(length - 4.0 * radius, 0.6 * length)
    outline = [(0.0, 0.0), (radius, 0.0), (radius, 0.0), (radius, neck), (radius, neck), (2.2 * radius, neck)]
    return revolved([*outline, (2.2 * radius, neck), (0.0, length)], 12)


def stick(start: ArrayLike, end: ArrayLike, radius: float) -> Solid:
    """A rod between two points."""
    a, b = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(b - a))
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = towards(b - a), (a + b) / 2
    return cylinder(radius, length, 12).placed(X)


def towards(direction: ArrayLike) -> Array:
    """A rotation (3×3) that takes z into a direction; any, for the direction zero."""
    d = np.asarray(direction, float)
    length = float(np.linalg.norm(d))
    if not length > 0.0:
        return np.eye(3)
    return turn_z_to(d / length)


def ellipsoid(mass: float, com: ArrayLike, inertia: ArrayLike) -> Solid | None:
    """The homogeneous ellipsoid of this mass and inertia (3×3, about the mass centre); None without mass.

    With semi-axes a, b, c its principal moments are m(b² + c²)/5 and so on. Moments that no body can have give the
    nearest one; an axis is at least 2 % of the longest, so that rods can be seen.
    """
    if not mass > 0.0:
        return None
    moments, axes = np.linalg.eigh(np.asarray(inertia, float))
    squares = 5.0 / (2.0 * mass) * (moments.sum() - 2.0 * moments)
    radii = np.sqrt(np.maximum(squares, 0.0))
    if not (np.isfinite(radii).all() and radii.max() > 0.0):
        return None
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = axes if np.linalg.det(axes) > 0.0 else -axes, np.asarray(com, float)
    return sphere(1.0, 20).placed(X, np.maximum(radii, 0.02 * radii.max()).tolist())


def bounds_of(solids: Sequence[Solid]) -> tuple[Array, Array]:
    """The least and the greatest corner (3); those of a box of one metre around the origin where there is nothing."""
    if not solids:
        return -0.5 * np.ones(3), 0.5 * np.ones(3)
    low = np.min([solid.vertices.min(axis=0) for solid in solids], axis=0)
    return low, np.max([solid.vertices.max(axis=0) for solid in solids], axis=0)


def merged(solids: Sequence[Solid]) -> Solid:
    """One surface of all, in the colour of the largest; with a texture where all have the same picture."""
    textures = [solid.texture for solid in solids]
    first = textures[0]
    texture = None
    if first is not None and all(each is not None and each.image is first.image for each in textures):
        texture = Texture(first.image, np.concatenate([each.uv for each in textures if each is not None]))
    starts = np.cumsum([0, *(len(solid.vertices) for solid in solids)])
    largest = max(solids, key=lambda solid: len(solid.faces))
    return Solid(
        np.concatenate([solid.vertices for solid in solids]),
        np.concatenate([solid.faces + start for solid, start in zip(solids, starts, strict=False)]),
        largest.colour,
        largest.opacity,
        largest.smooth,
        texture=texture,
    )


def joined(solids: Sequence[Solid]) -> list[Solid]:
    """Surfaces, those of one colour and one picture joined to one."""
    groups: dict[tuple[object, ...], list[Solid]] = {}
    for solid in solids:
        image = None if solid.texture is None else id(solid.texture.image)
        groups.setdefault((solid.colour, solid.opacity, solid.smooth, image), []).append(solid)
    return [merged(group) for group in groups.values()]


def simplified(solid: Solid, most: int) -> Solid:
    """Solid with at most so many faces: vertices in one cell of a grid become one, in cells as small as will do."""
    if len(solid.faces) <= most:
        return solid
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    cells = max(4, int(np.sqrt(len(solid.faces))))
    while True:
        place = np.floor((solid.vertices - low) / size * cells).astype(np.int64)
        _, first, which = np.unique(place, axis=0, return_index=True, return_inverse=True)
        faces = which.reshape(-1)[solid.faces]
        real = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
        faces = faces[real]
        faces = faces[np.unique(np.sort(faces, axis=1), axis=0, return_index=True)[1]]
        if len(faces) <= most or cells <= 4:
            count = np.bincount(which.reshape(-1), minlength=len(first))[:, None]
            centres = np.stack([np.bincount(which.reshape(-1), solid.vertices[:, k]) for k in range(3)], -1) / count
            return replace(solid, vertices=centres, faces=faces, texture=None)
        cells = max(4, int(cells * 0.8))


# SciPy takes quaternions with w first itself from 1.14 on; 1.13 is allowed.
def from_wxyz(quaternion: ArrayLike) -> Rotation:
    """Rotations of quaternions (..., 4)."""
    return Rotation.from_quat(np.roll(np.asarray(quaternion, float), -1, axis=-1))


def as_wxyz(rotation: Rotation) -> Array:
    """Quaternions (..., 4)."""
    return np.roll(np.asarray(rotation.as_quat()), 1, axis=-1)
