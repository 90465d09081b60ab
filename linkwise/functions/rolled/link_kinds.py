"""Kinds of links: what links have in common becomes code, what differs becomes a row of a table.

Links are of one kind when their joints are of one type and all that they consist of has the same shape. A constant that
is a function of run-time parameters is no entry of the table but computed before the first sweep, and links that have
such constants are of kinds of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwise.functions.rolled.link_vectors import part
from linkwise.mechanism.flexible_link import FlexibleLink
from linkwise.mechanism.many_links import ManyLinks
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.flattening import flatten, taken_apart
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Factor, Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Vec
from linkwise.trace.program import PARAMETERS
from linkwise.trace.tracer import Traced, Tracer

COMPUTED = "computed"
"""The space of link constants that are functions of run-time parameters."""


@dataclass
class LinkKind:
    """One kind of link: a tracer of its own, shared by all loops, so that what they have in common is one node."""

    index: int
    template: Link
    first: bool
    """Whether links of this kind are the first child to add to their parent's sum (else they add to what is there)."""
    members: list[int] = field(default_factory=list)
    tracer: Tracer = field(default_factory=Tracer)
    arrays: dict[str, list[Traced]] = field(default_factory=dict)
    link: Any = None
    rows: Any = None
    """The constants in which the members differ, one row for each."""
    computed: list[list[Traced]] = field(default_factory=list)
    """Constants of each member that depend on run-time parameters."""
    modes_of_parents: Any = None
    """The tree's way to the modal coordinates of each link's parent."""

    def of_parent(self, q: Any) -> list[Scalar]:
        """The modal coordinates of the parents of these links."""
        eta: list[Scalar] = self.modes_of_parents(q)[self.link]
        return eta

    def array(self, name: str, size: int) -> list[Traced]:
        """An input array of the bodies of this kind."""
        if name not in self.arrays:
            self.arrays[name] = self.tracer.input(name, (size,))
        return self.arrays[name]


class SymbolicLink:
    """A link that stands for all of its kind; reads its part of q and v from the loop's arrays."""

    kind: LinkKind
    joint: Any
    multiplier: Any
    offset: Any
    is_mimic: bool

    def coordinates(self, q: Any) -> list[Scalar]:
        """This joint's part of q, from memory."""
        own = part(q, self, self.joint.nq)
        return [x * self.multiplier + self.offset for x in own] if self.is_mimic else own

    def rates(self, v: Any) -> list[Scalar]:
        """This joint's part of v, from memory."""
        own = part(v, self, self.joint.nv)
        return [x * self.multiplier for x in own] if self.is_mimic else own

    def own(self, numbers: Any, size: int) -> list[Scalar]:
        """This body's part of an array with so many numbers for each body, from memory."""
        return part(numbers, self, size)


@dataclass(frozen=True, eq=False)
class SymbolicRigidLink(SymbolicLink, Link):
    """One that does not deform."""

    kind: LinkKind = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class SymbolicSeat:
    """The node that the links of a kind sit on; their parents' η comes from memory."""

    shape: Any
    modes: int
    kind: LinkKind

    def at(self, q: Any) -> Transform:
        """Transform from the root of the flexible body to the node's frame."""
        return Transform(*self.shape.factors(self.eta(q)))

    def eta(self, q: Any) -> list[Scalar]:
        """The modal coordinates of the body."""
        own: list[Scalar] = self.kind.of_parent(q)[: self.modes]
        return own


def sorted_into_kinds(tree: Tree, space: str = PARAMETERS) -> list[LinkKind]:
    """The kinds of a tree's links, each with its members; a link of its own stands for all of them.

    ``space``: where the links' constants are found.
    """
    groups = _groups.get(tree)
    if groups is None:
        groups = _groups[tree] = _grouped(tree.links)
    kinds = []
    for index, (template, first, members, rows) in enumerate(groups):
        kinds.append(LinkKind(index, template, first, members))
        _make_symbolic(kinds[-1], rows, space)
    return kinds


Group = tuple[Link, bool, list[int], Any]


def _grouped(links: Sequence[Link]) -> list[Group]:
    """Kinds of links: a link that shows the shape, whether its links come first, their numbers, and their constants."""
    if isinstance(links, ManyLinks) and links.shapes is not None:
        return _grouped_at_once(links, links.shapes)
    found: dict[Any, Group] = {}
    last_child = {link.parent: link.index for link in links}  # an inward sweep meets the last child first
    for link in links:
        first = last_child[link.parent] == link.index
        leaves, shape = taken_apart(_constants(link))
        computed = tuple(i for i, x in enumerate(leaves) if isinstance(x, Traced))
        traits = (not all(map(is_zero, link.armature)), first, link.is_mimic, link.deforming)
        key = (type(link.joint), _joint_key(link), shape, traits, computed)
        _, _, members, rows = found.setdefault(key, (link, first, [], []))
        members.append(link.index)
        rows.append(leaves)
    return list(found.values())


def _grouped_at_once(links: ManyLinks, shapes: Any) -> list[Group]:
    """Kinds of links as of :func:`_grouped`, from arrays."""
    count = len(links)
    last_child = np.full(count + 1, -1)
    last_child[links.parent] = links.index  # of what is assigned to one place, the last stays
    first = last_child[links.parent] == links.index
    keys = shapes * 2 + first
    _, begins, kind = np.unique(keys, return_index=True, return_inverse=True)
    found = []
    for number in np.argsort(begins):  # kinds in the order in which their first links come
        members = np.flatnonzero(kind == number)
        leaves, _ = taken_apart(_constants(links.alike(members)))
        template = int(members[0])
        found.append((links[template], bool(first[template]), members.tolist(), np.stack(leaves, axis=1)))
    return found


# The tables of a tree serve all of its functions.
_groups: WeakKeyDictionary[Tree, list[Group]] = WeakKeyDictionary()


def _make_symbolic(kind: LinkKind, rows: list[list[Scalar]], space: str) -> None:
    """Constants that all members share stay constants, the others become entries of the kind's parameter rows."""
    computed = [i for i, x in enumerate(rows[0]) if isinstance(x, Traced)]
    kind.computed = [[row[i] for i in computed] for row in rows] if computed else []
    table = np.array([[0.0 if isinstance(x, Traced) else x for x in row] for row in rows] if computed else rows)
    varying = np.flatnonzero(~(table == table[0]).all(axis=0))
    kind.rows = table[:, varying]
    array = kind.array(space, max(1, len(varying)))
    values: list[Scalar] = [float(x) for x in table[0]]
    for place, i in enumerate(varying.tolist()):
        values[i] = array[place]
    for place, i in enumerate(computed):
        values[i] = kind.array(COMPUTED, len(computed))[place]
    kind.link = _with_constants(kind, values)


def _joint_key(link: Link) -> Any:
    """The constants of a joint apart from its axis, which is z in a laid-out tree."""
    return tuple((name, value) for name, value in link.joint._key() if name != "axis")


_SAME = ("index", "name", "joint_name", "parent", "joint", "q_start", "v_start", "is_mimic", "seat")
"""Attributes of a link that are no constants of its mathematics, or the same for all of a kind."""

_DEFORMING = ("inertia", "deformation", "slack")
"""Likewise, of a link that deforms."""


def _names(link: Link) -> list[str]:
    """Names of the attributes that differ from link to link."""
    same = (*_SAME, *_DEFORMING) if link.modes else _SAME
    return [name for name in link.__dataclass_fields__ if name not in same]


def _constants(link: Link) -> list[Any]:
    """All constants of a link, transforms in a shape that many links share."""
    own = {name: getattr(link, name) for name in _names(link)}
    own["placement"] = _padded(link.placement)
    own["to_body"] = _whole(link.to_body)
    return list(own.values())


def _with_constants(kind: LinkKind, values: list[Scalar]) -> Any:
    template = kind.template
    constants = dict(zip(_names(template), flatten(_constants(template))[1](values), strict=True))
    same = {name: getattr(template, name) for name in template.__dataclass_fields__ if name not in constants}
    if template.seat is not None:
        same["seat"] = SymbolicSeat(template.seat.shape, template.seat.modes, kind)
    if not template.modes:
        return SymbolicRigidLink(**same, **constants, kind=kind)
    from linkwise.functions.rolled.link_kinds import SymbolicFlexibleLink

    return SymbolicFlexibleLink(**same, **constants, kind=kind)


def _padded(placement: Transform) -> Transform:
    """A placement in the one shape that nearly all have: a shift, a turn about z if there is one, a turn about x."""
    shift: Factor = Shift(Vec.zero())
    rest = list(placement.factors)
    if rest and isinstance(rest[0], Shift):
        shift = rest.pop(0)
    turn_z = [f for f in rest[:1] if isinstance(f, Turn) and f.axis == 2]
    rest = rest[len(turn_z) :]
    turn_x: Factor = Turn(0, 1.0, 0.0)
    if rest and isinstance(rest[0], Turn) and rest[0].axis == 0:
        turn_x = rest.pop(0)
    return Transform(shift, *turn_z, turn_x, *rest)


def _whole(transform: Transform) -> Transform:
    """A constant transform as a shift and a rotation, also where one is the identity and was left out."""
    shift: Factor = Shift(Vec.zero())
    rotation: Factor = Rotation(Mat3.identity())
    for factor in transform.factors:
        if isinstance(factor, Shift):
            shift = factor
        else:
            rotation = factor
    return Transform(shift, rotation)


@dataclass(frozen=True, eq=False)
class SymbolicFlexibleLink(SymbolicLink, FlexibleLink):
    """Link whose modes are the same for all of the kind; where it is and on what joint, from the loop's arrays."""

    kind: LinkKind = None  # type: ignore[assignment]
