"""Links as the operators see them, all that they know of bodies; and scalars that hold a number for each of a kind.

The texts of joints and links run over any scalar. On lanes they run once for all links of one kind, at NumPy's speed.

A link of another sort brings a class of its own in ``link.blocks``, with the members of :class:`RigidLinks`. The widths
of all spaces and blocks follow from its vectors: those of a link that deforms are [η̇; V] and [χ; f].
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.algorithms.kinematics import next_motion
from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.mechanism.link_kinds import link_kinds, whole
from linkwise.mechanism.tree import Link, Tree
from linkwise.memoized import cached_property
from linkwise.spatial.flexible import FlexibleMotion, FlexibleMoving, flexible_motions
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec

_NUMBERS = (int, float, np.floating, np.integer)


class Lanes:
    """An array that takes part in arithmetic as one number does: element by element, never as a container."""

    __slots__ = ("x",)
    __array_ufunc__ = None  # NumPy leaves the operators to us

    def __init__(self, x: Array) -> None:
        self.x = x

    @staticmethod
    def lift(x: Scalar, like: Lanes) -> Lanes:
        """A constant as lanes."""
        return x if isinstance(x, Lanes) else Lanes(np.full_like(like.x, x))

    def __pow__(self, exponent: float) -> Lanes:
        return Lanes(self.x**exponent)

    def __neg__(self) -> Lanes:
        return Lanes(-self.x)

    def __abs__(self) -> Lanes:
        return Lanes(abs(self.x))

    def arctan2(self, x: Scalar) -> Lanes:
        """Angle of the point (x, self)."""
        return Lanes(np.arctan2(self.x, _array(x)))

    def where(self, a: Scalar, b: Scalar) -> Lanes:
        """``a`` in the lanes that are true, ``b`` in those that are false."""
        return Lanes(np.asarray(np.where(self.x, _array(a), _array(b))))


def _array(value: Scalar) -> Scalar:
    """The array or number of an operand; None when the operand must lead."""
    if isinstance(value, Lanes):
        return value.x
    return value if isinstance(value, _NUMBERS) else None


def numbers(value: Scalar) -> Scalar:
    """The array behind lanes, or the number itself."""
    return value.x if isinstance(value, Lanes) else value


def _binary(of: Callable[[Scalar, Scalar], Array]) -> Callable[[Lanes, Scalar], Lanes]:
    def method(self: Lanes, other: Scalar) -> Lanes:
        y = _array(other)
        return NotImplemented if y is None else Lanes(of(self.x, y))

    return method


def _reflected(of: Callable[[Scalar, Scalar], Array]) -> Callable[[Lanes, Scalar], Lanes]:
    return _binary(lambda x, y: of(y, x))


def _unary(of: Callable[[Array], Array]) -> Callable[[Lanes], Lanes]:
    return lambda self: Lanes(of(self.x))


for _name in ("add", "sub", "mul", "truediv"):
    setattr(Lanes, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(Lanes, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge"):
    setattr(Lanes, f"__{_name}__", _binary(getattr(operator, _name)))
for _name in ("sin", "cos", "tan", "sqrt", "exp", "log", "tanh"):
    setattr(Lanes, _name, _unary(getattr(np, _name)))


class RigidLinks:
    """The blocks of one link, or of several that differ in their numbers only.

    Args:
        indices: the links' numbers in the tree.
        link: the link, or one that stands for all of them: its numbers are then lanes. It reads q and v from index 0.
        q: the coordinates that :meth:`reads` lists.
        v: the rates that it lists, where velocity terms are asked for.
    """

    def __init__(self, indices: Sequence[int], link: Link, q: Flat, v: Flat | None) -> None:
        self.indices = indices
        self.index = indices[0]
        self.parent = link.parent
        self.link = link
        self.q = q
        self.v = v
        self.vectors = self.vectors_of(link)

    @staticmethod
    def vectors_of(link: Link) -> type[Motion]:
        """The type of a link's stacked vectors: ``of(numbers)``, ``zero()``, ``+ - *``, ``dot``, iteration."""
        return flexible_motions(link.modes) if link.modes else Motion

    @staticmethod
    def freedoms(link: Link) -> int:
        """The number of axes in S."""
        return link.joint.nv

    @staticmethod
    def reads(link: Link) -> tuple[range | list[int], range | list[int]]:
        """The numbers of q and of v that the link's blocks are made of."""
        q, v = link.q_start, link.v_start
        of_parent = () if link.seat is None else range(link.seat.q_start, link.seat.q_start + link.seat.modes)
        return [*range(q, q + link.joint.nq), *of_parent], range(v, v + link.joint.nv)

    @cached_property
    def phi(self) -> Transform:
        """φ(parent, link): ``@`` on forces, ``.T @`` on motions, ``congruence`` of inertias."""
        return self.link.phi(self.q)

    @cached_property
    def S(self) -> tuple[Motion, ...]:
        """H*, one column for each axis of the joint."""
        return self.link.S(self.q)

    @cached_property
    def inertia(self) -> Any:
        """M."""
        return self.link.M(self.q)

    @property
    def articulated(self) -> Any:
        """M as an articulated inertia, whose ``without`` takes the joint's axes out."""
        return self.inertia.articulated()

    @property
    def armature(self) -> tuple[Scalar, ...]:
        """J_r, the rotor inertia of each axis."""
        return self.link.armature

    def coriolis(self, V_parent: Flat) -> Motion:
        """The acceleration a(k) that velocities cause, from the parent's V: [ω; v], and zeros (Jain 1991 eq. 14)."""
        seat = self.link.seat
        parent = _turning(V_parent, 0 if seat is None else seat.modes)
        moved = next_motion(self.link, parent, self.q, self.v or (), None)
        if not self.link.modes:
            return Motion(moved.omega_dot, moved.a)
        return FlexibleMotion(moved.rate_dot, moved.root.omega_dot, moved.root.a)

    def gyroscopic(self, V: Flat) -> Force:
        """The force b(k) = [ω~Jω; ω~ω~h] (Jain 1991 eq. 16); of a link that deforms, with Kη + Dη̇ on its modes."""
        return self.link.wrench(self.q, _turning(V, self.link.modes))


def _turning(V: Flat, modes: int) -> RigidMotion | FlexibleMoving:
    """A frame that turns by the ω of V, nothing accelerated; with the modes' rates where V has a tail."""
    root = RigidMotion(Vec.of(V[modes : modes + 3]), Vec.zero(), Vec.zero())
    return FlexibleMoving(root, tuple(V[:modes]), (0.0,) * modes) if modes else root


def blocks_of(link: Link) -> type[RigidLinks]:
    """The class that knows a link's blocks."""
    found: type[RigidLinks] = getattr(link, "blocks", RigidLinks)
    return found


def width(link: Link) -> int:
    """Numbers in a motion of a link."""
    return len(list(blocks_of(link).vectors_of(link).zero()))


@dataclass(frozen=True)
class AlikeLinks:
    """Links of one kind as one link, so that a link's text runs once for all of them.

    Args:
        indices: the links, by their number in the tree.
        link: stands for all of them: where their numbers differ it has lanes (m, 1), and it reads q and v from index 0.
        q: (m, count) which coordinates they read.
        v: (m, count) which velocities they read.
    """

    indices: Sequence[int]
    link: Link
    q: Array
    v: Array

    def at(self, q: Array, v: Array | None) -> RigidLinks:
        """The blocks of these links, over lanes (m, B), for states (B, nq) and (B, nv)."""
        return blocks_of(self.link)(self.indices, self.link, _lanes(q, self.q), v if v is None else _lanes(v, self.v))


def alike_links(tree: Tree) -> tuple[AlikeLinks, ...]:
    """The links of a tree, those of one kind as one."""
    has_tails = any(link.tail.factors for link in tree)
    forms = {"placement": whole, "to_body": whole} | ({"tail": whole} if has_tails else {})
    found = []
    for kind in link_kinds(tree.links, forms, width):
        values = [_lane(column) for column in zip(*kind.rows, strict=True)]
        reads = [blocks_of(kind.template).reads(tree.links[k]) for k in kind.members]
        q, v = (np.array([list(read[i]) for read in reads], int) for i in range(2))
        link = type(kind.template)(**kind.fields_with(values)).alone()
        found.append(AlikeLinks(kind.members, link, q, v))
    return tuple(found)


def _lane(column: Flat) -> Scalar:
    """The number that all links have, or the numbers of all of them; a link's own type may have more than numbers."""
    if not isinstance(column[0], (float, int)):
        return column[0]
    array = np.array(column, float)
    return float(array[0]) if (array == array[0]).all() else Lanes(array[:, None])


def _lanes(state: Array, places: Array) -> list[Scalar]:
    return [Lanes(state[:, column].T) for column in places.T]
