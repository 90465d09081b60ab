"""Sphere and sphere."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts, between_balls
from linkwise.mechanism.description import Geometry
from linkwise.spatial.vectors import Vec


def sphere_sphere(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of two spheres. One slot, exact; the normal is z where their centres coincide."""
    return Contacts((between_balls(A.p, a.size[0], B.p, b.size[0], Vec.unit(2)),))
