"""Sphere and box."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.geometry.surface import ball_near
from linkwise.mechanism.description import Geometry


def sphere_box(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of a sphere and a box. One slot, exact, also where the centre is inside the box."""
    return Contacts((ball_near(A.p, a.size[0], b, B),))
