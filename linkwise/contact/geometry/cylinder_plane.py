"""Cylinder and plane."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.geometry.sphere_plane import ball_plane
from linkwise.contact.geometry.supports import downhill
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import where

_SIN_120 = 0.8660254037844386


def cylinder_plane(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """Points of a cylinder's rims over a plane. Four slots; the first is the lowest point, exact.

    On the cap that looks down: the lowest point of its rim and two more, 120° to both sides; on the other cap the
    lowest point of the rim. So a cylinder stands on three points and lies on two.
    """
    r, half = a.size[0], 0.5 * a.size[1]
    n = B.R.column(2)
    axis = A.R.column(2)
    axis = axis * where(axis.dot(n) > 0.0, -1.0, 1.0)  # towards the plane
    u = downhill(A, -n)
    w = axis.cross(u)
    cap, other = A.p + axis * half, A.p - axis * half
    points = [
        cap + u * r,
        other + u * r,
        cap + (u * -0.5 + w * _SIN_120) * r,
        cap + (u * -0.5 - w * _SIN_120) * r,
    ]
    return Contacts(tuple(ball_plane(p, 0.0, B) for p in points))
