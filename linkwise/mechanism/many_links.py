"""The links of a tree as arrays: a link is made when somebody looks at it, and all that are alike are one wide link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from linkwise.mechanism.frames import Placements, snapped, times
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.tree import Link
from linkwise.memoized import cached_property
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.transforms import Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Vec

Array = Any


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
    def index(self) -> Array:
        """The links' own numbers (n)."""
        return np.arange(len(self))

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
            tail = _rigid(snapped(self.tails[0][k], 1.0), snapped(self.tails[1][k], 1.0))
        return Link(
            index=k,
            name=body.name,
            parent=body.parent,
            joint=joint.type,
            placement=self.placements.one(k, self.turns),
            lead=float(self.placements.lead[k]),
            tail=tail,
            inertia=RigidInertia(m, Vec(*rest[:3]), Sym3.of(*rest[3:])),
            to_body=_rigid(self.to_body[0][k], self.to_body[1][k]),
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
        turns = [Turn(2, *place.z[which].T)] if _is_turn(place.z[which[:1]])[0] else []
        R, l = (array[which] for array in self.to_body)
        joints = list(self.mechanism.joints)
        joints = joints if len(which) == len(joints) else [joints[k] for k in which.tolist()]
        armature = np.array([joint.armature for joint in joints], float).reshape(len(which), -1)
        multiplier, offset = np.ones(len(which)), np.zeros(len(which))
        if first.is_mimic:
            multiplier = np.array([joint.mimic.multiplier for joint in joints if joint.mimic], float)
            offset = np.array([joint.mimic.offset for joint in joints if joint.mimic], float)
        return Link(
            index=first.index,
            name=first.name,
            parent=first.parent,
            joint=first.joint,
            placement=Transform(Shift(Vec(*place.l[which].T)), *turns, Turn(0, *place.x[which].T)),
            lead=place.lead[which],
            tail=first.tail,
            inertia=RigidInertia(M[0], Vec(*M[1:4]), Sym3.of(*M[4:])),
            to_body=Transform(Shift(Vec(*l.T)), Rotation(Mat3(list(R.transpose(1, 2, 0))))),
            armature=tuple(armature.T),
            q_start=first.q_start,
            v_start=first.v_start,
            multiplier=multiplier,  # type: ignore[arg-type]  # as everywhere here, an array for a number
            offset=offset,  # type: ignore[arg-type]
            is_mimic=first.is_mimic,
            joint_name=first.joint_name,
        )

    @cached_property
    def shapes(self) -> Array | None:
        """A number for each link (n), the same for those whose constants have the same shape; None if it depends.

        It does in frames that are not aligned: their joints have tails, of any shape.
        """
        if self.tails is not None:
            return None
        known: dict[Any, int] = {}
        joints = [known.setdefault(_joint_key(joint.type), len(known)) for joint in self.mechanism.joints]
        heavy = [any(joint.armature) for joint in self.mechanism.joints]
        traits = (_is_turn(self.placements.z), np.array(heavy, bool), self.is_mimic)
        return np.array(joints, int) * 8 + sum(trait.astype(int) << i for i, trait in enumerate(traits))


def _is_turn(numbers: Array) -> Array:
    return (numbers != (1.0, 0.0)).any(axis=1)


def _joint_key(joint: Any) -> Any:
    """The type and the constants of a joint apart from its axis, which is z in a laid-out tree."""
    constants = vars(joint)
    if len(constants) == 1 and "axis" in constants:
        return type(joint)
    return type(joint), tuple((name, value) for name, value in joint._key() if name != "axis")


def _rigid(R: Array, o: Array) -> Transform:
    return Transform.rigid(Mat3(R.tolist()), Vec.of(o.tolist()))


def numbers_of(links: Sequence[Link], name: str) -> Array:
    """An integer of each link by the name of its field, as an array (n)."""
    if isinstance(links, ManyLinks):
        return getattr(links, name)
    return np.array([getattr(link, name) for link in links], int)
