"""Convex mesh and plane, by vertices."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.manifold import Seen, Spot, margin_of, spread
from linkwise.contact.geometry.points import ContactPoint, Contacts, out_of
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec


def convex_plane(
    a: Geometry, A: Placed, b: Geometry, B: Placed, *, slots: int = 4, margin: Scalar | None = None
) -> Contacts:
    """Vertices of a convex mesh over a plane: the lowest, and those that span the widest base with it.

    Args:
        slots: number of contact points.
        margin: how much higher than the lowest vertex, or than the plane if that is higher, another may be, m; 2 % of
            the mesh's size if not given. Vertices that touch and find no slot are counted as overflow.
    """
    n = A.R.transpose_times(B.R.column(2))  # in the mesh's frame
    height = B.R.column(2).dot(A.p - B.p)
    frame = Seen.along(n, Vec.zero())
    spots = []
    for x, y, z in a.vertices:
        at = frame.within(Vec(x, y, z))
        gap = height + at.z
        spots.append(Spot(gap, at.x, at.y, at.z - 0.5 * gap))
    points, overflow = spread(spots, frame, slots, margin_of(a) if margin is None else margin)
    return Contacts(tuple(ContactPoint(p.gap, A.R @ p.normal, out_of(A, p.point)) for p in points), overflow)
