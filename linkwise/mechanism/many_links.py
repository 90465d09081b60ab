"""The links of a tree as arrays: a link is made when somebody looks at it, and all that are alike are one wide link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.frames import Placements, snapped, times
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Link
from linkwise.memoized import cached_property
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True, eq=False)
class ManyLinks(Sequence[Link]):
    """The links of a rigid mechanism with constant parameters.

    Args:
        mechanism: whose links they are.
        placements: from each parent's link frame to the joint.
        turns: how many of the placements' turns come before the joint; the third is the lead, if it is not one.
        tails: rotations (n, 3, 3) and shifts (n, 3) after the joint's motion; None where there are none.
        inertias: m, h and J of each link, (n, 10).
        R: link frames in the bodies' (n, 3, 3).
        o: their origins (n, 3).
    """

    mechanism: Mechanism
    placements: Placements
    turns: int
    tails: tuple[Array, Array] | None
    inertias: Array
    R: Array
    o: Array

    deform = False
    """None does."""

    def __len__(self) -> int:
        return len(self.R)

    @overload
    def __getitem__(self, k: int) -> Link: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Link]: ...
    def __getitem__(self, k: int | slice) -> Link | Sequence[Link]:
        """One link, or some."""
        if isinstance(k, slice):
            return tuple(self[i] for i in range(len(self))[k])
        k = range(len(self))[k]
        link = self._made.get(k)
        return self._made.setdefault(k, self._one(k)) if link is None else link

    def __iter__(self) -> Iterator[Link]:
        return (self[k] for k in range(len(self)))

    @cached_property
    def _made(self) -> dict[int, Link]:
        return {}

    @cached_property
    def parent(self) -> Array:
        """The parents' indices (n), -1 for the root."""
        return np.array(self.mechanism.parents, int).reshape(len(self))

    @cached_property
    def q_start(self) -> Array:
        """Where each joint's coordinates begin in q (n)."""
        return np.array([joint.q_slice.start for joint in self.mechanism.joints], int)

    @cached_property
    def v_start(self) -> Array:
        """Where each joint's freedoms begin in v (n)."""
        return np.array([joint.v_slice.start for joint in self.mechanism.joints], int)

    @cached_property
    def is_mimic(self) -> Array:
        """Whether each joint follows another (n)."""
        return np.array([joint.mimic is not None for joint in self.mechanism.joints], bool)

    @cached_property
    def to_body(self) -> tuple[Array, Array]:
        """From each link's frame to its body's: rotations and shifts."""
        back = self.R.transpose(0, 2, 1)
        return snapped(back, 1.0), snapped(-times(back, self.o), 1.0)

    def _one(self, k: int) -> Link:
        body, joint = self.mechanism.bodies[k], self.mechanism.joints[k]
        m, *rest = self.inertias[k].tolist()
        tail = Transform()
        if self.tails is not None:
            tail = rigid(snapped(self.tails[0][k], 1.0), snapped(self.tails[1][k], 1.0))
        return Link(
            index=k,
            name=body.name,
            parent=body.parent,
            joint=joint.type,
            placement=self.placements.one(k, self.turns),
            lead=float(self.placements.lead[k]),
            tail=tail,
            inertia=RigidInertia(m, Vec(*rest[:3]), Sym3.of(*rest[3:])),
            to_body=rigid(self.to_body[0][k], self.to_body[1][k]),
            armature=joint.armature,
            q_start=joint.q_slice.start,
            v_start=joint.v_slice.start,
            multiplier=joint.mimic.multiplier if joint.mimic else 1.0,
            offset=joint.mimic.offset if joint.mimic else 0.0,
            is_mimic=joint.mimic is not None,
            joint_name=joint.name,
        )

    def alike(self, members: Array) -> Link:
        """Links of one shape as one: each of its constants is an array over the members."""
        which = np.asarray(members, int)
        first = self[int(which[0])]
        place, M = self.placements, self.inertias[which].T
        turns = [Turn(2, *place.z[which].T)] if self.has_first_turn[which[0]] else []
        R, l = (array[which] for array in self.to_body)
        joints = list(self.mechanism.joints)
        joints = joints if len(which) == len(joints) else [joints[k] for k in which.tolist()]
        armature = np.array([joint.armature for joint in joints], float).reshape(len(which), -1)
        multiplier: Scalar = np.ones(len(which))  # arrays for numbers
        offset: Scalar = np.zeros(len(which))
        if first.is_mimic:
            multiplier = np.array([joint.mimic.multiplier for joint in joints if joint.mimic], float)
            offset = np.array([joint.mimic.offset for joint in joints if joint.mimic], float)
        return replace(
            first,
            placement=Transform(Shift(Vec(*place.l[which].T)), *turns, Turn(0, *place.x[which].T)),
            lead=place.lead[which],
            inertia=RigidInertia(M[0], Vec(*M[1:4]), Sym3.of(*M[4:])),
            to_body=Transform(Shift(Vec(*l.T)), Rotation(Mat3(list(R.transpose(1, 2, 0))))),
            armature=tuple(armature.T),
            multiplier=multiplier,
            offset=offset,
        )

    @cached_property
    def has_first_turn(self) -> Array:
        """Whether each placement has a turn about z before that about x (n)."""
        turned: Array = (self.placements.z != (1.0, 0.0)).any(axis=1)
        return turned

    @cached_property
    def has_armature(self) -> Array:
        """Whether each joint has rotor inertia (n)."""
        return np.array([any(joint.armature) for joint in self.mechanism.joints], bool)


def rigid(R: Array, o: Array) -> Transform:
    """A constant transform from its rotation (3, 3) and shift (3), identities left out."""
    return Transform.rigid(Mat3(R.tolist()), Vec.of(o.tolist()))


def numbers_of(links: Sequence[Link], name: str) -> Array:
    """An integer of each link of a tree by the name of its field, as an array (n)."""
    if name == "index":
        return np.arange(len(links))
    if isinstance(links, ManyLinks):
        known: Array = getattr(links, name)
        return known
    return np.array([getattr(link, name) for link in links], int)
