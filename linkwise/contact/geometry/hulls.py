"""Meshes for contact: convex hulls, convex pieces, and surfaces that are closed. On the host, by NumPy and SciPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import FloatArray
from linkwise.errors import InputError, ModelError, require_extra
from linkwise.mechanism.bodies_and_joints import Named
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.mechanism import Mechanism

MechanismT = TypeVar("MechanismT", bound=Mechanism)
MOST_VERTICES = 64
"""Most vertices of a hull: contact looks at each of them."""


def hull(vertices: ArrayLike, most: int = MOST_VERTICES) -> FloatArray:
    """Corners (n, 3) of the convex hull of points (m, 3).

    Args:
        vertices: the points, m.
        most: most corners that are kept. Of more, those are taken one by one that are farthest from the hull of those
            before, so that what is cut off is as thin as can be.
    """
    points = np.unique(np.asarray(vertices, float).reshape(-1, 3), axis=0)
    corners: FloatArray = points[_hull(points).vertices]
    if len(corners) <= most:
        return corners
    centre = corners.mean(axis=0)
    kept = [int(np.argmax(((corners - centre) ** 2).sum(axis=1)))]
    away = ((corners - corners[kept[0]]) ** 2).sum(axis=1)
    for _ in range(3):  # a first tetrahedron: farthest from the point, the line, the plane
        kept.append(int(np.argmax(away)))
        span = np.linalg.qr((corners[kept[1:]] - corners[kept[0]]).T)[0]
        left = corners - corners[kept[0]]
        away = ((left - left @ span @ span.T) ** 2).sum(axis=1)
    while len(kept) < most:
        planes = _hull(corners[kept]).equations
        outside = (corners @ planes[:, :3].T + planes[:, 3]).max(axis=1)
        outside[kept] = -np.inf
        if not outside.max() > 0.0:
            break
        kept.append(int(np.argmax(outside)))
    fewer: FloatArray = corners[sorted(kept)]
    return fewer


def convex(shape: Geometry, vertices: ArrayLike, most: int = MOST_VERTICES) -> Geometry:
    """The convex hull of a mesh in its place.

    Args:
        shape: the mesh, whose scale is applied.
        vertices: of its file (m, 3).
        most: most corners of the hull.
    """
    corners = hull(np.asarray(vertices, float) * np.array(shape.scale), most)
    points = tuple((float(x), float(y), float(z)) for x, y, z in corners)
    return replace(shape, kind="convex", mesh=None, scale=(1.0, 1.0, 1.0), vertices=points)


def pieces(
    shape: Geometry, vertices: ArrayLike, faces: ArrayLike, *, threshold: float = 0.05, most: int = MOST_VERTICES
) -> tuple[Geometry, ...]:
    """A mesh as convex pieces (extra ``contact``: CoACD, Wei et al. 2022).

    Args:
        shape: the mesh, whose scale is applied.
        vertices: of its file (m, 3).
        faces: three numbers of vertices each (n, 3), counterclockwise seen from outside.
        threshold: how much of a hollow may be filled, 0.01 to 1; less makes more pieces.
        most: most corners of a piece.

    Raises:
        ModelError: the surface is not closed, so that it has no inside to be cut into pieces.
    """
    check_closed(faces, shape.name)
    coacd = require_extra("coacd", "contact")
    coacd.set_log_level("error")
    scaled = np.asarray(vertices, float) * np.array(shape.scale)
    plain = replace(shape, scale=(1.0, 1.0, 1.0))
    parts = coacd.run_coacd(coacd.Mesh(scaled, np.asarray(faces)), threshold=threshold)
    return tuple(convex(plain, part[0], most) for part in parts)


def check_closed(faces: ArrayLike, name: str) -> None:
    """An error where a surface of triangles has an edge that does not lie between two of them."""
    edges: Counter[tuple[int, int]] = Counter()
    for a, b, c in np.asarray(faces, int).reshape(-1, 3).tolist():
        edges.update(((a, b), (b, c), (c, a)))
    loose = [edge for edge, count in edges.items() if count != 1 or edges[edge[1], edge[0]] != 1]
    if loose:
        raise ModelError(
            f"the mesh of {name!r} is not closed",
            got=f"{len(loose)} edges that are not between two faces, the first between vertices {loose[0]}",
            allowed="a surface with an inside: each edge belongs to two faces, that run along it in opposite ways",
            do="merge vertices at one place and fill holes (trimesh: mesh.merge_vertices(), mesh.fill_holes()), or "
            "take its convex hull, which needs no surface",
        )


def with_hulls(
    mechanism: MechanismT,
    read: Callable[[Geometry], ArrayLike],
    most: int = MOST_VERTICES,
    wanted: Callable[[str | None, Geometry], bool] = lambda body, shape: True,
) -> MechanismT:
    """A copy of a mechanism whose meshes for contact are their convex hulls.

    Args:
        mechanism: any.
        read: gives the vertices (m, 3) of a mesh, from its file.
        most: most corners of a hull.
        wanted: of which shapes, each with the name of its body; None for the world.
    """
    known: dict[tuple[str | None, tuple[float, float, float]], Geometry] = {}

    def hull_of(shape: Geometry) -> Geometry:
        """The hull of a mesh, which several shapes may have in common."""
        key = (shape.mesh, shape.scale)
        if key not in known:
            known[key] = convex(shape, read(shape), most)
        return replace(shape, kind="convex", mesh=None, scale=(1.0, 1.0, 1.0), vertices=known[key].vertices)

    def changed(body: str | None, shapes: Iterable[Geometry]) -> tuple[Geometry, ...]:
        return tuple(hull_of(shape) if shape.kind == "mesh" and wanted(body, shape) else shape for shape in shapes)

    bodies = Named(replace(body, collisions=changed(body.name, body.collisions)) for body in mechanism.bodies)
    return replace(mechanism, bodies=bodies, _base_collisions=changed(None, mechanism._base_collisions))


def _hull(points: FloatArray) -> Any:
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise InputError(
            "these points have no hull with an inside",
            got=f"{len(points)} points, {np.ptp(points, axis=0).tolist() if len(points) else ''} m across",
            allowed="four or more points that are not all in one plane",
            do="give a flat mesh some thickness, or use a thin box",
        ) from error
