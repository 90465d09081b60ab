"""The table of pairs of shapes: which function finds their contact points, and in how many slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.box_box import box_box
from linkwise.contact.geometry.box_plane import box_plane
from linkwise.contact.geometry.capsule_capsule import capsule_capsule
from linkwise.contact.geometry.capsule_plane import capsule_plane
from linkwise.contact.geometry.convex_convex import closest, convex_convex
from linkwise.contact.geometry.convex_plane import convex_plane
from linkwise.contact.geometry.cylinder_plane import cylinder_plane
from linkwise.contact.geometry.ellipsoid_plane import ellipsoid_plane
from linkwise.contact.geometry.faces_on_ground import faces_ground
from linkwise.contact.geometry.ground import SLOTS, capsule_ground, sphere_ground
from linkwise.contact.geometry.points import Contacts, deepest, swapped
from linkwise.contact.geometry.sphere_capsule import sphere_capsule
from linkwise.contact.geometry.sphere_plane import sphere_plane
from linkwise.contact.geometry.sphere_sphere import sphere_sphere
from linkwise.contact.geometry.surface import capsule_surface, sphere_surface
from linkwise.dataclass import dataclass
from linkwise.errors import InputError
from linkwise.mechanism.description import Geometry
from linkwise.spatial.scalar import Scalar, where

__all__ = ["PAIRS", "Pair", "contacts", "distance", "slots", "touchable"]


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


_GROUNDS = ("heightfield", "terrain")
_ON_GROUND = {"sphere": sphere_ground, "capsule": capsule_ground}

PAIRS: dict[tuple[str, str], Pair] = {
    ("sphere", "plane"): Pair(sphere_plane, 1),
    ("capsule", "plane"): Pair(capsule_plane, 2),
    ("box", "plane"): Pair(box_plane, 4, (4, 8)),
    ("cylinder", "plane"): Pair(cylinder_plane, 4),
    ("ellipsoid", "plane"): Pair(ellipsoid_plane, 1),
    ("convex", "plane"): Pair(convex_plane, 4, (1, 2, 3, 4, 8)),
    ("sphere", "sphere"): Pair(sphere_sphere, 1),
    ("sphere", "capsule"): Pair(sphere_capsule, 1),
    **{("sphere", kind): Pair(sphere_surface, 1) for kind in ("box", "cylinder", "ellipsoid")},
    ("capsule", "capsule"): Pair(capsule_capsule, 2),
    **{("capsule", kind): Pair(capsule_surface, 2) for kind in ("box", "cylinder", "ellipsoid")},
    ("box", "box"): Pair(box_box, 4, (4, 8)),
    **{(kind, "ellipsoid"): Pair(convex_convex, 1, (1,)) for kind in ("box", "cylinder", "ellipsoid", "convex")},
    **{pair: Pair(convex_convex, 4, (4, 8)) for pair in (("box", "cylinder"), ("cylinder", "cylinder"))},
    **{(kind, "convex"): Pair(convex_convex, 4, (4, 8)) for kind in ("box", "cylinder", "convex")},
    ("sphere", "convex"): Pair(convex_convex, 1, (1,)),
    ("capsule", "convex"): Pair(convex_convex, 2, (2,)),
    **{(kind, ground): Pair(_ON_GROUND.get(kind, faces_ground), n) for kind, n in SLOTS.items() for ground in _GROUNDS},
}
"""All pairs, each in one order."""


def slots(a: Geometry, b: Geometry, most: int | None = None) -> int:
    """Number of contact points of two shapes, in either order; see :func:`contacts`."""
    return _taken(_pair(a, b)[0], most)


def contacts(
    a: Geometry, A: Placed, b: Geometry, B: Placed, most: int | None = None, within: Scalar | None = None
) -> Contacts:
    """The contact points of two shapes, whose normals point from the second to the first.

    Args:
        a: a shape.
        A: its placement in the common frame.
        b: another.
        B: likewise.
        most: number of slots for pairs with flat faces, where it is not to be the pair's own.
        within: distance beyond which a bound from below is enough, m; none if not given.
    """
    pair, is_swapped = _pair(a, b)
    options: dict[str, Any] = {"slots": _taken(pair, most)} if pair.choices else {}
    if within is not None and pair.function is convex_convex:
        options["within"] = within
    if is_swapped:
        return swapped(pair.function(b, B, a, A, **options))
    return pair.function(a, A, b, B, **options)


def distance(a: Geometry, A: Placed, b: Geometry, B: Placed) -> Scalar:
    """Signed distance of two shapes, m, negative where they overlap.

    It is the least gap of their contact points, but for boxes apart, whose corners may be farther than their axes say.
    """
    gap = deepest(contacts(a, A, b, B).points).gap
    if a.kind == b.kind == "box":
        return where(gap > 0.0, closest(a, A, b, B).gap, gap)
    return gap


def _taken(pair: Pair, most: int | None) -> int:
    return most if most is not None and most in pair.choices else pair.slots


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
