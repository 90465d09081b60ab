"""Kinds of links: what links have in common becomes code, what differs becomes a row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linkwise.errors import InputError
from linkwise.model.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.structure import flatten
from linkwise.spatial.transforms import Factor, Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Force, Vec
from linkwise.tracing.program import ArraySpec
from linkwise.tracing.rolled_program import PARAMETERS
from linkwise.tracing.tracer import Traced, Tracer


@dataclass
class Kind:
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

    def array(self, name: str, size: int) -> list[Traced]:
        """An input array of the bodies of this kind."""
        if name not in self.arrays:
            self.arrays[name] = self.tracer.input(name, (size,))
        return self.arrays[name]


class InputElement:
    """One element of an input array of the whole program: part of what the base or the tips are given. A scalar."""

    __slots__ = ("element", "name")

    def __init__(self, name: str, element: int) -> None:
        self.name = name
        self.element = element


@dataclass(frozen=True)
class GlobalInput:
    """An input array of the whole program, read link by link."""

    name: str
    spec: ArraySpec
    per_link: str
    """How links find their parts: by their place in ``q`` or ``v``, by ``body``; ``none``: it is for base or tips."""

    def elements(self) -> list[InputElement]:
        """All elements, to be handed to the base or the tips."""
        return [InputElement(self.name, i) for i in range(self.spec.size)]


@dataclass(frozen=True, eq=False)
class SymbolicLink(Link):
    """A link that stands for all of its kind; reads its part of q and v from the loop's arrays."""

    kind: Kind = None  # type: ignore[assignment]

    def coordinates(self, q: Sequence[Scalar]) -> list[Scalar]:
        """This joint's part of q, from memory."""
        return self.part(q, self.joint.nq)

    def rates(self, v: Sequence[Scalar]) -> list[Scalar]:
        """This joint's part of v, from memory."""
        return self.part(v, self.joint.nv)

    def external(self, f_ext: Any) -> Force:
        """The external force on this link, from memory."""
        return self.to_body @ Force.of(self.part(f_ext, 6))

    def part(self, whole: Any, size: int) -> list[Scalar]:
        """This link's part of an input of the program, from memory."""
        if not isinstance(whole, GlobalInput):
            if all(isinstance(x, (int, float)) and x == 0.0 for x in whole):
                return [0.0] * size
            raise InputError("a rolled sweep reads inputs and zeros only", got=type(whole).__name__)
        return list(self.kind.array(f"in:{whole.name}", size))


def sorted_into_kinds(tree: Tree, space: str = PARAMETERS) -> list[Kind]:
    """The kinds of a tree's links, each with its members; a link of its own stands for all of them.

    ``space``: where the links' constants are found.
    """
    groups = _groups.get(tree)
    if groups is None:
        groups = _groups[tree] = _grouped(tree.links)
    kinds = []
    for index, (template, first, members, rows) in enumerate(groups):
        kinds.append(Kind(index, template, first, members))
        _make_symbolic(kinds[-1], rows, space)
    return kinds


def _grouped(links: Sequence[Link]) -> list[tuple[Link, bool, list[int], Any]]:
    """For each kind: a link that shows its shape, whether its links come first, their numbers, and their constants."""
    found: dict[Any, tuple[Link, bool, list[int]]] = {}
    last_child = {link.parent: link.index for link in links}  # an inward sweep meets the last child first
    for link in links:
        first = last_child[link.parent] == link.index
        key = (type(link.joint), _joint_key(link), _pattern(link), any(link.armature), first)
        found.setdefault(key, (link, first, []))[2].append(link.index)
    return [(*group, np.array([_constants(links[k]) for k in group[2]])) for group in found.values()]


# The tables of a tree serve all of its functions.
_groups: WeakKeyDictionary[Tree, list[tuple[Link, bool, list[int], Any]]] = WeakKeyDictionary()


def _make_symbolic(kind: Kind, rows: Any, space: str) -> None:
    """Constants that all members share stay constants, the others become entries of the kind's parameter rows."""
    varying = np.flatnonzero(~(rows == rows[0]).all(axis=0))
    kind.rows = rows[:, varying]
    array = kind.array(space, max(1, len(varying)))
    values: list[Scalar] = [float(x) for x in rows[0]]
    for place, i in enumerate(varying):
        values[i] = array[place]
    kind.link = _with_constants(kind, values)


def _joint_key(link: Link) -> Any:
    """The constants of a joint apart from its axis, which is z in a laid-out tree."""
    return tuple((name, value) for name, value in link.joint._key() if name != "axis")


def _pattern(link: Link) -> Any:
    return tuple(
        ("shift",) if isinstance(f, Shift) else ("turn", f.axis) if isinstance(f, Turn) else ("rotation",)
        for f in _padded(link)
    )


def _padded(link: Link) -> tuple[Factor, ...]:
    """A placement in the one shape that nearly all have: a shift, a turn about z if there is one, a turn about x."""
    factors = link.placement.factors
    shift: Factor = Shift(Vec.zero())
    rest = list(factors)
    if rest and isinstance(rest[0], Shift):
        shift = rest.pop(0)
    turn_z = [f for f in rest[:1] if isinstance(f, Turn) and f.axis == 2]
    rest = rest[len(turn_z) :]
    turn_x: Factor = Turn(0, 1.0, 0.0)
    if rest and isinstance(rest[0], Turn) and rest[0].axis == 0:
        turn_x = rest.pop(0)
    return (shift, *turn_z, turn_x, *rest)


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


def _constants(link: Link) -> list[float]:
    """All constants of a link, in the order in which :func:`_with_constants` takes them back.

    Written out, since it runs for every one of a hundred thousand links: ``flatten`` of each part would give the same.
    """
    numbers: list[float] = []
    for factor in _padded(link):
        if isinstance(factor, Shift):
            numbers += factor.l
        elif isinstance(factor, Turn):
            numbers += (factor.c, factor.s)
        else:
            numbers += flatten(factor)[0]
    M = link.inertia
    shift, rotation = _whole(link.to_body).factors
    numbers += (link.lead, *M.J.six(), *M.h, M.m, *link.armature, *shift.l)  # type: ignore[attr-defined]
    for row in rotation.R.m:  # type: ignore[attr-defined]
        numbers += row
    if not all(type(x) is float for x in numbers):
        numbers = [x + 0.0 for x in numbers]
        if not all(isinstance(x, float) for x in numbers):
            raise InputError("rolled sweeps take no run-time parameters", do='use sweeps="unrolled"')
    return numbers


def _with_constants(kind: Kind, values: list[Scalar]) -> SymbolicLink:
    link = kind.template
    rest = iter(values)

    def take(value: Any) -> Any:
        leaves, rebuild = flatten(value)
        return rebuild([next(rest) for _ in leaves])

    factors = take(list(_padded(link)))
    lead = next(rest)
    inertia: RigidInertia = take(link.inertia)
    armature = tuple(next(rest) for _ in link.armature)
    to_body = take(_whole(link.to_body))
    if link.tail.factors:
        raise InputError("rolled sweeps need aligned frames")
    own = {f: getattr(link, f) for f in Link.__dataclass_fields__}
    own |= {
        "placement": Transform(*factors),
        "lead": lead,
        "inertia": inertia,
        "armature": armature,
        "to_body": to_body,
    }
    return SymbolicLink(**own, kind=kind)
