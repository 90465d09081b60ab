"""The table of pairs of shapes: which function finds their contact points, and in how many slots."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.box_plane import box_plane
from linkwise.contact.geometry.capsule_box import capsule_box
from linkwise.contact.geometry.capsule_capsule import capsule_capsule
from linkwise.contact.geometry.capsule_cylinder import capsule_cylinder
from linkwise.contact.geometry.capsule_ellipsoid import capsule_ellipsoid
from linkwise.contact.geometry.capsule_plane import capsule_plane
from linkwise.contact.geometry.convex_plane import convex_plane
from linkwise.contact.geometry.cylinder_plane import cylinder_plane
from linkwise.contact.geometry.ellipsoid_plane import ellipsoid_plane
from linkwise.contact.geometry.points import Contacts, swapped
from linkwise.contact.geometry.sphere_box import sphere_box
from linkwise.contact.geometry.sphere_capsule import sphere_capsule
from linkwise.contact.geometry.sphere_cylinder import sphere_cylinder
from linkwise.contact.geometry.sphere_ellipsoid import sphere_ellipsoid
from linkwise.contact.geometry.sphere_plane import sphere_plane
from linkwise.contact.geometry.sphere_sphere import sphere_sphere
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry

__all__ = ["PAIRS", "Pair", "contacts", "slots"]


@dataclass(frozen=True)
class Pair:
    """Two kinds of shapes that can touch.

    Args:
        function: the contact points of a shape of the first kind and one of the second, from both and their placements.
        slots: number of contact points.
        choices: other numbers that the function takes as ``slots=``.
    """

    function: Callable[..., Contacts]
    slots: int
    choices: tuple[int, ...] = ()


PAIRS: dict[tuple[str, str], Pair] = {
    ("sphere", "plane"): Pair(sphere_plane, 1),
    ("capsule", "plane"): Pair(capsule_plane, 2),
    ("box", "plane"): Pair(box_plane, 4, (4, 8)),
    ("cylinder", "plane"): Pair(cylinder_plane, 4),
    ("ellipsoid", "plane"): Pair(ellipsoid_plane, 1),
    ("convex", "plane"): Pair(convex_plane, 4, (1, 2, 3, 4, 8)),
    ("sphere", "sphere"): Pair(sphere_sphere, 1),
    ("sphere", "capsule"): Pair(sphere_capsule, 1),
    ("sphere", "box"): Pair(sphere_box, 1),
    ("sphere", "cylinder"): Pair(sphere_cylinder, 1),
    ("sphere", "ellipsoid"): Pair(sphere_ellipsoid, 1),
    ("capsule", "capsule"): Pair(capsule_capsule, 2),
    ("capsule", "box"): Pair(capsule_box, 2),
    ("capsule", "cylinder"): Pair(capsule_cylinder, 2),
    ("capsule", "ellipsoid"): Pair(capsule_ellipsoid, 2),
}
"""All pairs, each in one order."""


def slots(a: Geometry, b: Geometry, most: int | None = None) -> int:
    """Number of contact points of two shapes, in either order; see :func:`contacts`."""
    pair, _ = _pair(a, b)
    return most if most in pair.choices and most is not None else pair.slots


def contacts(a: Geometry, A: Placed, b: Geometry, B: Placed, most: int | None = None) -> Contacts:
    """The contact points of two shapes, whose normals point from the second to the first.

    Args:
        a: a shape.
        A: its placement in the common frame.
        b: another.
        B: likewise.
        most: number of slots for pairs with flat faces, where it is not to be the pair's own.
    """
    pair, is_swapped = _pair(a, b)
    options = {"slots": most} if most in pair.choices else {}
    if is_swapped:
        return swapped(pair.function(b, B, a, A, **options))
    return pair.function(a, A, b, B, **options)


def touchable(a: Geometry, b: Geometry) -> bool:
    """Whether there is a function for two shapes; there is none for two that are both ground."""
    return (a.kind, b.kind) in PAIRS or (b.kind, a.kind) in PAIRS


def _pair(a: Geometry, b: Geometry) -> tuple[Pair, bool]:
    if (a.kind, b.kind) in PAIRS:
        return PAIRS[a.kind, b.kind], False
    if (b.kind, a.kind) in PAIRS:
        return PAIRS[b.kind, a.kind], True
    raise InputError(
        "there is no contact between two shapes of these kinds",
        got=f"{a.kind} of {a.name!r} and {b.kind} of {b.name!r}",
        allowed=", ".join(f"{x}-{y}" for x, y in PAIRS),
        do="take the hull of a mesh, and leave pairs of grounds out",
    )
