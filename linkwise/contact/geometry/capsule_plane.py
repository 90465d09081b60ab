"""Capsule and plane."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts, ends
from linkwise.contact.geometry.sphere_plane import ball_plane
from linkwise.mechanism.description import Geometry


def capsule_plane(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """Both ends of a capsule over a plane. Two slots, exact."""
    return Contacts(tuple(ball_plane(p, a.size[0], B) for p in ends(a, A)))
