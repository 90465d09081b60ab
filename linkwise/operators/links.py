"""What the operators ask of links: all that they know of rigid bodies.

A link of another sort (one that bends, whose motions are [η̇; V] and forces [χ; f]) brings a class of its own in
``link.blocks``, with the members of :class:`RigidLinks`. The widths of all spaces and blocks follow from its vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.algorithms.rigid_motion import next_motion
from linkwise.model.tree import Link
from linkwise.once import cached_property
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


class RigidLinks:
    """The blocks of one link, or of several that differ in their numbers only.

    Args:
        indices: the links' numbers in the tree.
        link: the link, or one that stands for all of them: its numbers are then lanes. It reads q and v from index 0.
        q: the coordinates that :meth:`reads` lists.
        v: the rates that it lists, where velocity terms are asked for.
    """

    def __init__(self, indices: Sequence[int], link: Link, q: Sequence[Scalar], v: Sequence[Scalar] | None) -> None:
        self.indices = indices
        self.index = indices[0]
        self.parent = link.parent
        self.link = link
        self.q = q
        self.v = v
        self.vectors = self.vectors_of(link)

    @staticmethod
    def vectors_of(link: Link) -> Any:
        """The type of a link's stacked vectors: ``of(numbers)``, ``zero()``, ``+ - *``, ``dot``, iteration."""
        return Motion

    @staticmethod
    def freedoms(link: Link) -> int:
        """The number of axes in S."""
        return link.joint.nv

    @staticmethod
    def reads(link: Link) -> tuple[range | list[int], range | list[int]]:
        """Which numbers of q and of v the link's blocks are made of."""
        q, v = link.q_start, link.v_start
        return range(q, q + link.joint.nq), range(v, v + link.joint.nv)

    @cached_property
    def phi(self) -> Transform:
        """φ(parent, link): ``@`` on forces, ``.T @`` on motions, ``congruence`` of inertias."""
        return self.link.phi(self.q)

    @cached_property
    def S(self) -> tuple[Motion, ...]:
        """H*, one column for each axis of the joint."""
        return self.link.S(self.q)

    @property
    def inertia(self) -> RigidInertia:
        """M."""
        return self.link.inertia

    @property
    def articulated(self) -> ArticulatedInertia:
        """M as an articulated inertia, whose ``without`` takes the joint's axes out."""
        return self.link.inertia.articulated()

    @property
    def armature(self) -> tuple[Scalar, ...]:
        """J_r, the rotor inertia of each axis."""
        return self.link.armature

    def coriolis(self, V_parent: Sequence[Scalar]) -> Motion:
        """The acceleration a(k) that the velocities cause, from the parent's V: [ω; v], and zeros (000 eq. 14)."""
        moved = next_motion(self.link, _turning(V_parent), self.q, self.v or (), None)
        return Motion(moved.omega_dot, moved.a)

    def gyroscopic(self, V: Sequence[Scalar]) -> Force:
        """The force b(k) = [ω~Jω; ω~ω~h] (000 eq. 16)."""
        return self.inertia.wrench(_turning(V))


def _turning(V: Sequence[Scalar]) -> RigidMotion:
    return RigidMotion(Vec.of(V[:3]), Vec.zero(), Vec.zero())


def blocks_of(link: Link) -> type[RigidLinks]:
    """The class that knows a link's blocks."""
    found: type[RigidLinks] = getattr(link, "blocks", RigidLinks)
    return found


def width(link: Link) -> int:
    """Numbers in a motion of a link."""
    return len(list(blocks_of(link).vectors_of(link).zero()))
