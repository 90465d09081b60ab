"""Sphere and capsule."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts, along_segment, between_balls, ends
from linkwise.mechanism.description import Geometry


def sphere_capsule(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of a sphere and a capsule. One slot, exact.

    The normal is the capsule's x axis where the centre of the sphere is on the capsule's.
    """
    start, end = ends(b, B)
    nearest = start + (end - start) * along_segment(A.p, start, end - start)
    return Contacts((between_balls(A.p, a.size[0], nearest, b.size[0], B.R.column(0)),))
