"""Ellipsoid and plane."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.geometry.sphere_plane import ball_plane
from linkwise.contact.geometry.supports import support
from linkwise.mechanism.description import Geometry


def ellipsoid_plane(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The point of an ellipsoid that is lowest over a plane. One slot, exact."""
    return Contacts((ball_plane(support(a, A, -B.R.column(2)), 0.0, B),))
