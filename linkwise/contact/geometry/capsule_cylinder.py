"""Capsule and cylinder."""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.points import Contacts
from linkwise.contact.geometry.surface import capsule_near
from linkwise.mechanism.description import Geometry


def capsule_cylinder(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Contacts:
    """The nearest points of a capsule and a cylinder, and a second place where the capsule lies along its surface.

    Two slots. Exact as long as the capsule's axis does not enter the cylinder; then the gap is that of the axis's deepest point.
    """
    return capsule_near(a, A, b, B)
