"""Sphere and plane."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import ContactPoint, Contacts
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec


def sphere_plane(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The point of a sphere that is lowest over a plane. One slot, exact."""
    return Contacts((ball_plane(A.p, a.size[0], B),))


def ball_plane(p: Vec, r: Scalar, B: Placed) -> ContactPoint:
    """Contact of the ball of radius r about p with a plane."""
    n = B.R.column(2)
    gap = n.dot(p - B.p) - r
    return ContactPoint(gap, n, p - n * (r + 0.5 * gap))
