"""Support functions of convex shapes: the point farthest along a direction, and the flat face that looks that way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.figures import Figure
from linkwise.contact.geometry.points import choose, direction, half_edges, out_of, signs, sizes, tangents, times
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Items, Scalar, absolute, looped_over, maximum, sqrt, where
from linkwise.spatial.vectors import Vec

Face = tuple[Vec, Vec, Vec, Vec]
"""Corners in order; some coincide where it is an edge or a point."""

_UPRIGHT = (
    1e-16  # sin² of the angle between a cylinder's axis and a direction below which its rims have no lowest point
)
_TILT = 0.02  # rad, between the directions along which the corners of a mesh's face are sought


def support(shape: Geometry, X: Placed, d: Vec) -> Vec:
    """The point of a shape that is farthest along d, in the common frame; of a plane there is none."""
    return out_of(X, _SUPPORTS[shape.kind](shape, X.R.transpose_times(d)))


def _sphere(shape: Geometry, d: Vec) -> Vec:
    return direction(d, Vec.unit(2)) * shape.size[0]


def _capsule(shape: Geometry, d: Vec) -> Vec:
    ball = direction(d, Vec.unit(2)) * shape.size[0]
    half = 0.5 * shape.size[1]
    return Vec(ball.x, ball.y, ball.z + where(d.z < 0.0, -half, half))


def _box(shape: Geometry, d: Vec) -> Vec:
    return times(signs(d), Vec.of(half_edges(shape)))


def _cylinder(shape: Geometry, d: Vec) -> Vec:
    rim = direction(Vec(d.x, d.y, 0.0), Vec.unit(0)) * shape.size[0]
    half = 0.5 * shape.size[1]
    return Vec(rim.x, rim.y, where(d.z < 0.0, -half, half))


def _ellipsoid(shape: Geometry, d: Vec) -> Vec:
    e = Vec.of(shape.size)
    return times(direction(times(e, d), Vec.unit(2)), e)


def _convex(shape: Geometry, d: Vec) -> Vec:
    if isinstance(shape, Figure):
        return _farthest(shape.vertices, d)
    best, found = None, Vec.zero()
    for x, y, z in shape.vertices:
        vertex = Vec(x, y, z)
        reach = d.dot(vertex)
        if best is None:
            best, found = reach, vertex
        else:
            found = choose(reach > best, vertex, found)
            best = maximum(reach, best)
    return found


def _farthest(vertices: Sequence[Sequence[Scalar]], d: Vec) -> Vec:
    """The one of many vertices that is farthest along d, by a loop over them."""

    def step(found: list[Scalar], vertex: list[Scalar]) -> tuple[list[Scalar], list[Scalar]]:
        reach = d.dot(Vec.of(vertex))
        farther = reach > found[0]
        return [where(farther, a, b) for a, b in zip([reach, *vertex], found, strict=True)], []

    begin = [d.dot(Vec.of(vertices[0])), *vertices[0]]
    return Vec.of(looped_over([Items.rows(vertices[1:])], step, begin)[0][1:])


_SUPPORTS: dict[str, Callable[[Geometry, Vec], Vec]] = {
    "sphere": _sphere,
    "capsule": _capsule,
    "box": _box,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
    "convex": _convex,
}


def downhill(X: Placed, d: Vec) -> Vec:
    """The direction perpendicular to the z axis of X that goes along d most; the x axis where d is along z."""
    axis = X.R.column(2)
    return direction(d - axis * axis.dot(d), X.R.column(0), _UPRIGHT)


def facing(shape: Geometry, X: Placed, d: Vec) -> Face:
    """Four corners of the face of a shape that looks along the unit vector d, in order around it.

    Corners coincide where the face is an edge or a point. The support point along d is among them, but for a convex
    mesh, whose corners are the support points along four directions nearby.
    """
    return _FACES[shape.kind](shape, X, d)


def _box_face(shape: Geometry, X: Placed, d: Vec) -> Face:
    local, h = X.R.transpose_times(d), half_edges(shape)
    s, size = signs(local), sizes(local)
    along_x = (size.x >= size.y) & (size.x >= size.z)
    along_y = size.y >= size.z

    def corner(u: float, v: float) -> Vec:
        if_x = Vec(s.x * h[0], u * h[1], v * h[2])
        if_y = Vec(u * h[0], s.y * h[1], v * h[2])
        if_z = Vec(u * h[0], v * h[1], s.z * h[2])
        return out_of(X, choose(along_x, if_x, choose(along_y, if_y, if_z)))

    return corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)


def _cylinder_face(shape: Geometry, X: Placed, d: Vec) -> Face:
    axis, u = X.R.column(2), downhill(X, d)
    r, half = shape.size[0], 0.5 * shape.size[1]
    up = axis.dot(d)
    outward = axis * where(up < 0.0, -1.0, 1.0)
    w = axis.cross(u)
    on_cap = absolute(up) > 0.7071
    cap, other = X.p + outward * half, X.p - outward * half
    side, far = cap + u * r, other + u * r
    return (
        side,
        choose(on_cap, cap + w * r, side),
        choose(on_cap, cap - u * r, far),
        choose(on_cap, cap - w * r, far),
    )


def _capsule_face(shape: Geometry, X: Placed, d: Vec) -> Face:
    half, out = X.R.column(2) * (0.5 * shape.size[1]), d * shape.size[0]
    start, end = X.p - half + out, X.p + half + out
    return start, start, end, end


def _point_face(shape: Geometry, X: Placed, d: Vec) -> Face:
    point = support(shape, X, d)
    return point, point, point, point


def _mesh_face(shape: Geometry, X: Placed, d: Vec) -> Face:
    u, w = tangents(d)
    a, b, c, e = (support(shape, X, d + t * _TILT) for t in (u + w, w - u, -u - w, u - w))
    return a, b, c, e


_FACES: dict[str, Callable[[Geometry, Placed, Vec], Face]] = {
    "sphere": _point_face,
    "capsule": _capsule_face,
    "box": _box_face,
    "cylinder": _cylinder_face,
    "ellipsoid": _point_face,
    "convex": _mesh_face,
}


def radius_about_origin(shape: Geometry) -> Scalar:
    """Radius of the ball about a shape's origin that holds it, m."""
    if isinstance(shape, Figure):
        radius: float = shape.radius
        return radius
    size = shape.size
    if shape.kind == "box":
        return 0.5 * sqrt(sum(x * x for x in size))
    if shape.kind == "capsule":
        return size[0] + 0.5 * size[1]
    if shape.kind == "cylinder":
        return sqrt(size[0] ** 2 + 0.25 * size[1] ** 2)
    if shape.kind == "convex":
        return float(sqrt(max(x * x + y * y + z * z for x, y, z in shape.vertices)))
    return max(size)
