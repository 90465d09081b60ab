"""Links that stand for all of their kind: their constants are entries of a table, their state is read from memory.

A constant that is a function of run-time parameters is no entry of the table but computed before the first sweep, and
links that have such constants are of kinds of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, field
from linkwise.functions.rolled.link_vectors import Vector, part
from linkwise.joints import Joint
from linkwise.mechanism.flexible_link import NodeShape
from linkwise.mechanism.layout import ManyLinks, numbers_of
from linkwise.mechanism.link_kinds import LinkKind, kinds_of_many, link_kinds, padded, whole
from linkwise.mechanism.tree import Field, Link, Tree
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.transforms import Transform
from linkwise.trace.program import PARAMETERS
from linkwise.trace.tracer import Traced, Tracer

COMPUTED = "computed"
"""The space of link constants that are functions of run-time parameters."""


@dataclass
class RolledKind:
    """One kind of link: a tracer of its own, shared by all loops, so that what they have in common is one node."""

    index: int
    template: Link
    first: bool
    """Whether links of this kind are the first child to add to their parent's sum (else they add to what is there)."""
    members: list[int] = field(default_factory=list)
    tracer: Tracer = field(default_factory=Tracer)
    arrays: dict[str, list[Traced]] = field(default_factory=dict)
    link: Any = None
    rows: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """The constants in which the members differ, one row for each."""
    computed: list[list[Traced]] = field(default_factory=list)
    """For each member, its constants that depend on run-time parameters."""
    modes_of_parents: Callable[[Vector], Field[list[Scalar]]] | None = None
    """The tree's way to the modal coordinates of each link's parent."""

    def of_parent(self, q: Vector) -> list[Scalar]:
        """The modal coordinates of the parents of these links."""
        assert self.modes_of_parents is not None
        return self.modes_of_parents(q)[self.link]

    def array(self, name: str, size: int) -> list[Traced]:
        """An input array of the bodies of this kind."""
        if name not in self.arrays:
            self.arrays[name] = self.tracer.input(name, (size,))
        return self.arrays[name]


class SymbolicLink:
    """A link that stands for all of its kind; reads its part of q and v from the loop's arrays."""

    kind: RolledKind
    joint: Joint
    multiplier: Scalar
    offset: Scalar
    is_mimic: bool

    def coordinates(self, q: Vector | Flat) -> list[Scalar]:
        """This joint's part of q, from memory."""
        own = part(q, self, self.joint.nq)
        return [x * self.multiplier + self.offset for x in own] if self.is_mimic else own

    def rates(self, v: Vector | Flat) -> list[Scalar]:
        """This joint's part of v, from memory."""
        own = part(v, self, self.joint.nv)
        return [x * self.multiplier for x in own] if self.is_mimic else own

    def own(self, numbers: Vector | Flat, size: int) -> list[Scalar]:
        """This body's part of an array with so many numbers for each body, from memory."""
        return part(numbers, self, size)


@dataclass(frozen=True, eq=False)
class SymbolicRigidLink(SymbolicLink, Link):
    """One that does not deform."""

    kind: RolledKind = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class SymbolicSeat:
    """The node that the links of a kind sit on; their parents' η comes from memory."""

    shape: NodeShape
    modes: int
    kind: RolledKind

    def at(self, q: Vector) -> Transform:
        """From the root of the flexible body to the node's frame."""
        return Transform(*self.shape.factors(self.eta(q)))

    def eta(self, q: Vector) -> list[Scalar]:
        """The modal coordinates of the body."""
        return self.kind.of_parent(q)[: self.modes]


def sorted_into_kinds(tree: Tree, space: str = PARAMETERS) -> list[RolledKind]:
    """The kinds of a tree's links, each with its members; a link of its own stands for all of them.

    ``space``: where the links' constants are found.
    """
    found = _known.get(tree)
    if found is None:
        found = _known[tree] = grouped(tree.links)
    kinds = []
    for index, (links, first) in enumerate(found):
        kinds.append(RolledKind(index, links.template, first, links.members))
        _make_symbolic(kinds[-1], links, space)
    return kinds


# The tables of a tree serve all of its functions.
_known: WeakKeyDictionary[Tree, list[tuple[LinkKind, bool]]] = WeakKeyDictionary()

_FORMS = {"placement": padded, "to_body": whole}


def grouped(links: Sequence[Link]) -> list[tuple[LinkKind, bool]]:
    """The kinds of links, and whether those of a kind come first: a tip of the loop starts the sum on its parent."""
    parents, indices = numbers_of(links, "parent"), np.arange(len(links))
    last_child = np.full(len(links) + 1, -1)
    last_child[parents] = indices  # an inward sweep meets the last child first; of what is assigned, the last stays
    first = last_child[parents] == indices
    found = None
    if isinstance(links, ManyLinks):
        found = kinds_of_many(links, _FORMS, first + 2 * links.has_armature + 4 * links.is_mimic)
    if found is None:
        found = link_kinds(
            links,
            _FORMS,
            lambda link: (not all(map(is_zero, link.armature)), bool(first[link.index]), link.is_mimic),
        )
    return [(kind, bool(first[kind.template.index])) for kind in found]


def _make_symbolic(kind: RolledKind, links: LinkKind, space: str) -> None:
    """Constants that all members share stay constants, the others become entries of the kind's parameter rows."""
    rows = links.rows
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
    fields = links.fields_with(values)
    if kind.template.seat is not None:
        fields["seat"] = SymbolicSeat(kind.template.seat.shape, kind.template.seat.modes, kind)
    symbolic = _flexible_link() if kind.template.modes else SymbolicRigidLink
    kind.link = symbolic(**fields, kind=kind)


@cache
def _flexible_link() -> Any:
    """The class of a link that deforms and stands for all of its kind, made where flexible bodies are used."""
    from linkwise.mechanism.flexible_link import FlexibleLink

    @dataclass(frozen=True, eq=False)
    class SymbolicFlexibleLink(SymbolicLink, FlexibleLink):
        """Its modes are the same for all of the kind; where it is and on what joint, from the loop's arrays."""

        kind: RolledKind = field(kw_only=True)

    return SymbolicFlexibleLink
