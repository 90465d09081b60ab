"""Box and plane."""

from __future__ import annotations

from itertools import product

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts, half_edges, out_of
from linkwise.contact.geometry.sphere_plane import ball_plane
from linkwise.contact.geometry.supports import facing
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import where
from linkwise.spatial.vectors import Vec


def box_plane(a: Geometry, A: Placed, b: Geometry, B: Placed, *, slots: int = 4) -> Contacts:
    """Corners of a box over a plane, exact.

    Args:
        slots: 4, the corners of the face that looks down most, or 8, all corners. The lowest corner of all is among
            the four; other corners below the plane that are not are counted as overflow.
    """
    h = half_edges(a)
    corners = [Vec(x * h[0], y * h[1], z * h[2]) for x, y, z in product((-1.0, 1.0), repeat=3)]
    if slots == 8:
        return Contacts(tuple(ball_plane(out_of(A, corner), 0.0, B) for corner in corners))
    below = tuple(ball_plane(corner, 0.0, B) for corner in facing(a, A, -B.R.column(2)))
    # The other four are opposite to these: the middle of the box is midway between both.
    middle = ball_plane(A.p, 0.0, B).gap
    return Contacts(below, sum(where(2.0 * middle < one.gap, 1.0, 0.0) for one in below))
