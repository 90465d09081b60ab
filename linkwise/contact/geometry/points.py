"""Contact points, and the vector algebra without branches that every pair of shapes is written with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from linkwise.algorithms.kinematics import Placed
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, absolute, clip, minimum, sqrt, where
from linkwise.spatial.vectors import Vec

UNUSED_GAP = 1e6
"""Gap of a slot that holds no contact, m."""

TURNS = -0.618
"""Of a normal's z, where its tangents turn: walls, floors and slopes are hardly ever there."""

FAR = 1.0
"""m, a gap of which it does not matter where forces would act."""

_NOTHING = 1e-30  # square of a length (m) below which a vector has no direction


class ContactPoint(NamedTuple):
    """One place where two shapes come close.

    Args:
        gap: signed distance between the surfaces, m; negative where they penetrate, ``UNUSED_GAP`` for a slot that is
            not used.
        normal: unit vector from the second shape towards the first, in the common frame.
        point: midway between the two surfaces, m, in the common frame.
    """

    gap: Scalar
    normal: Vec
    point: Vec


class Contacts(NamedTuple):
    """The contact points of two shapes, as many as the pair has slots.

    Args:
        points: used or not, each can be computed with.
        overflow: number of points that touch and found no slot.
    """

    points: tuple[ContactPoint, ...]
    overflow: Scalar = 0.0


def unused() -> ContactPoint:
    """A slot that holds no contact."""
    return ContactPoint(UNUSED_GAP, Vec.unit(2), Vec.zero())


def swapped(contacts: Contacts) -> Contacts:
    """The same points for the two shapes in the other order."""
    return Contacts(tuple(p._replace(normal=-p.normal) for p in contacts.points), contacts.overflow)


def on_second_surface(point: Vec, normal: Vec, gap: Scalar) -> Vec:
    """The point on the second surface beside one that is midway between two surfaces.

    Where that surface is flat, all points of a foot are in one plane there, whatever their gaps, and may stand still
    together; :func:`linkwise.contact.touching.shifts` has how far from it forces act. Midway they are in none while an
    edge of the foot is off the ground: by a little they would press against each other until one of them slips, which
    takes ten times as many Newton steps to find.
    """
    found: Vec = point - normal * (0.5 * minimum(gap, FAR))
    return found


def in_plane(point: Vec, plane: Placed) -> Vec:
    """The point of a plane, z = 0 in its frame, next to another point: of level ground exactly at its height."""
    x, y = plane.R.column(0), plane.R.column(1)
    away = point - plane.p
    found: Vec = plane.p + x * x.dot(away) + y * y.dot(away)
    return found


# Vectors.
def choose(condition: Any, a: Vec, b: Vec) -> Vec:
    """The vector a where the condition holds, else b."""
    return Vec(*(where(condition, x, y) for x, y in zip(a, b, strict=True)))


def length(v: Vec) -> Scalar:
    """|v|, with a derivative of zero where v is zero."""
    square = v.dot(v)
    return where(square > _NOTHING, sqrt(where(square > _NOTHING, square, 1.0)), 0.0)


def direction(v: Vec, otherwise: Vec, nothing: float = _NOTHING) -> Vec:
    """v / |v|, or another unit vector where the square of v is not above ``nothing``."""
    square = v.dot(v)
    inverse = 1.0 / sqrt(where(square > nothing, square, 1.0))
    return choose(square > nothing, v * inverse, otherwise)


def tangents(n: Vec, along: Vec | None = None) -> tuple[Vec, Vec]:
    """Two unit vectors across a unit vector, the first of them nearest to a direction if one is given.

    Without one they are continuous but where n.z passes ``TURNS`` (Duff et al., Building an Orthonormal Basis,
    Revisited, 2017, who have them turn at zero: of what is gripped, rounding would turn them from step to step, and the
    friction of the step before would point the other way).
    """
    if along is None:
        s = where(n.z < TURNS, -1.0, 1.0)
        a = -1.0 / (s + n.z)
        b = n.x * n.y * a
        return Vec(1.0 + s * n.x * n.x * a, s * b, -s * n.x), Vec(b, s + n.y * n.y * a, -n.y)
    t = along - n * n.dot(along)
    square = t.dot(t)
    other, _ = tangents(n)
    lost = square < 1e-12
    scale = 1.0 / sqrt(where(lost, 1.0, square))
    first = Vec.of([where(lost, x, y * scale) for x, y in zip(other, t, strict=True)])
    return first, n.cross(first)


def signs(v: Vec) -> Vec:
    """1 or -1 for each number of v, 1 for zero."""
    return Vec(*(where(x < 0.0, -1.0, 1.0) for x in v))


def sizes(v: Vec) -> Vec:
    """|x| for each number of v."""
    return Vec(*(absolute(x) for x in v))


def times(a: Vec, b: Vec) -> Vec:
    """Products number by number."""
    return Vec(a.x * b.x, a.y * b.y, a.z * b.z)


def halfway(a: Vec, b: Vec) -> Vec:
    """The point between two."""
    return (a + b) * 0.5


def into(X: Placed, p: Vec) -> Vec:
    """A point of the common frame in the frame X."""
    return X.R.transpose_times(p - X.p)


def out_of(X: Placed, p: Vec) -> Vec:
    """A point of the frame X in the common frame."""
    return X.p + X.R @ p


# Segments.
def along_segment(p: Vec, a: Vec, d: Vec) -> Scalar:
    """The s in [0, 1] at which a + s d is nearest to p; 0 where d is zero."""
    square = d.dot(d)
    solid = square > _NOTHING
    return where(solid, clip((p - a).dot(d) / where(solid, square, 1.0), 0.0, 1.0), 0.0)


def between_balls(p: Vec, r: Scalar, c: Vec, s: Scalar, otherwise: Vec) -> ContactPoint:
    """Contact of the ball of radius r about p with that of radius s about c."""
    n = direction(p - c, otherwise)
    gap = n.dot(p - c) - (r + s)
    return ContactPoint(gap, n, p - n * (r + 0.5 * gap))


def ends(shape: Geometry, X: Placed) -> tuple[Vec, Vec]:
    """The two ends of the axis of a capsule or a cylinder."""
    half = X.R.column(2) * (0.5 * shape.size[1])
    return X.p - half, X.p + half


def half_edges(shape: Geometry) -> tuple[float, float, float]:
    """Half the edges of a box."""
    x, y, z = shape.size
    return 0.5 * x, 0.5 * y, 0.5 * z


def deepest(points: Sequence[ContactPoint]) -> ContactPoint:
    """The point of the least gap; the first of several."""
    found = points[0]
    for one in points[1:]:
        found = chosen(one.gap < found.gap, one, found)
    return found


def chosen(condition: Any, a: ContactPoint, b: ContactPoint) -> ContactPoint:
    """The point a where the condition holds, else b."""
    return ContactPoint(
        where(condition, a.gap, b.gap), choose(condition, a.normal, b.normal), choose(condition, a.point, b.point)
    )
