"""Kinds of links: what links have in common becomes one link, what differs becomes a row of numbers for each of them.

Links are of one kind when their joints are of one type and all that they consist of has the same shape. Loops over the
links (:mod:`linkwise.functions.rolled`) and the arrays of operators (:mod:`linkwise.operators`) run once for each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.joints import Joint
from linkwise.mechanism.layout import ManyLinks
from linkwise.mechanism.tree import Link
from linkwise.spatial.flattening import flatten, taken_apart
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.transforms import Rotation, Shift, Transform, TransformFactor, Turn
from linkwise.spatial.vectors import Vec

Forms = Mapping[str, Callable[[Transform], Transform]]
"""Forms of a link's transforms, by the names of their fields, so that many links have the same shape."""


@dataclass(frozen=True)
class LinkKind:
    """Links of one kind.

    Args:
        template: the first of them.
        members: their numbers in the tree.
        rows: the constants of each, one row for each: an array (m, c), or lists where some are functions of run-time
            parameters.
        forms: how the transforms among them are written.
    """

    template: Link
    members: list[int]
    rows: Array | Matrix
    forms: Forms

    def fields_with(self, values: Flat) -> dict[str, Any]:
        """The fields of a link of this kind that has these constants."""
        template = self.template
        constants = flatten(_constants(template, self.forms))[1](values)
        same = {name: getattr(template, name) for name in template.__dataclass_fields__}
        return same | dict(zip(_names(template), constants, strict=True))


def link_kinds(links: Sequence[Link], forms: Forms, trait: Callable[[Link], Hashable]) -> list[LinkKind]:
    """The kinds of some links, in the order of their first members.

    Args:
        links: from a tree.
        forms: how transforms are written.
        trait: what links of one kind must have in common besides.
    """
    alike: dict[Hashable, list[tuple[Link, list[Scalar]]]] = {}
    for link in links:
        leaves, shape = taken_apart(_constants(link, forms))
        computed = tuple(i for i, x in enumerate(leaves) if not isinstance(x, (float, int)))
        key = (type(link), joint_key(link.joint), shape, computed, link.deforming, trait(link))
        alike.setdefault(key, []).append((link, leaves))
    return [
        LinkKind(same[0][0], [link.index for link, _ in same], [leaves for _, leaves in same], forms)
        for same in alike.values()
    ]


def kinds_of_many(links: ManyLinks, forms: Forms, traits: Array) -> list[LinkKind] | None:
    """The same from arrays; None where the shapes of links are seen one by one only.

    They are in frames that are not aligned: their joints have tails, of any shape. For a hundred thousand links this
    takes 0.2 s, and link by link 9 s.

    Args:
        links: of a rigid mechanism with constant parameters.
        forms: how transforms are written.
        traits: (n) a number for each link, equal for those that may be of one kind.
    """
    if links.tails is not None:
        return None
    known: dict[Hashable, int] = {}
    joints = [known.setdefault(joint_key(joint.type), len(known)) for joint in links.mechanism.joints]
    shapes = np.array(joints, int) * 2 + links.has_first_turn
    keys = shapes * (int(traits.max(initial=0)) + 1) + traits
    _, begins, kind = np.unique(keys, return_index=True, return_inverse=True)
    found = []
    for number in np.argsort(begins):
        members = np.flatnonzero(kind == number)
        leaves, _ = taken_apart(_constants(links.alike(members), forms))
        found.append(LinkKind(links[int(members[0])], members.tolist(), np.stack(leaves, axis=1), forms))
    return found


def joint_key(joint: Joint) -> Hashable:
    """The type and the constants of a joint apart from its axis, which is z in a laid-out tree."""
    constants = vars(joint)
    if len(constants) == 1 and "axis" in constants and joint.axis is not None:
        return type(joint)
    return type(joint), tuple(item for item in joint._key() if item[0] != "axis" or joint.axis is None)


_SAME = ("index", "name", "joint_name", "parent", "joint", "q_start", "v_start", "is_mimic", "seat")
"""Attributes of a link that are no constants of its mathematics, or the same for all of a kind."""

_DEFORMING = ("inertia", "deformation", "slack")
"""Likewise, of a link that deforms."""


def _names(link: Link) -> list[str]:
    """The fields in which links of a kind may differ."""
    same = (*_SAME, *_DEFORMING) if link.modes else _SAME
    return [name for name in link.__dataclass_fields__ if name not in same]


def _constants(link: Link, forms: Forms) -> list[object]:
    """All constants of a link."""
    own = {name: getattr(link, name) for name in _names(link)}
    return list((own | {name: form(own[name]) for name, form in forms.items()}).values())


def padded(placement: Transform) -> Transform:
    """A placement in the one shape that nearly all have: a shift, a turn about z if there is one, a turn about x."""
    shift: TransformFactor = Shift(Vec.zero())
    rest = list(placement.factors)
    if rest and isinstance(rest[0], Shift):
        shift = rest.pop(0)
    turn_z = [f for f in rest[:1] if isinstance(f, Turn) and f.axis == 2]
    rest = rest[len(turn_z) :]
    turn_x: TransformFactor = Turn(0, 1.0, 0.0)
    if rest and isinstance(rest[0], Turn) and rest[0].axis == 0:
        turn_x = rest.pop(0)
    return Transform(shift, *turn_z, turn_x, *rest)


def whole(transform: Transform) -> Transform:
    """A transform as a shift and a rotation, also where one is the identity and was left out."""
    factors = transform.factors
    if [type(factor) for factor in factors] == [Shift, Rotation]:
        return transform
    R, l = transform.matrix()
    return Transform(Shift(l), Rotation(R))
