"""Laying out the links: which internal frames make the recursions cheapest, and the inertias in them.

The dynamics do not care where a link's frame sits, so we choose: z along the joint axis, x along the common normal
to the next axis (Denavit and Hartenberg, whatever angles the file was written with), the origin at the foot of the
normal from the previous axis. A joint's constant placement then is a shift (a, 0, b) and one turn about x. A leaf,
with no next axis, turns its x towards its mass centre, which zeroes one more first moment. Then each link hands to
its parent the part of its inertia that its joint does not move (base parameters): for a hinge the mass, one first
moment and one second moment become structural zeros. Both steps are exact; where a body is so slender, or so far from
its axis, that the second would cost digits, that link keeps its inertia.

``align=False`` keeps the frames of the bodies, ``regroup=False`` keeps the inertias: needed where a result is about
each body, and handy for tests, since the answers must not change.

Links are kept as arrays: a link is made when somebody looks at it, and all that are alike are one wide link.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.bodies_and_joints import Body
from linkwise.mechanism.frames import AlignedFrames, BodyFrames, Placements, snapped, times
from linkwise.mechanism.mechanism import Mechanism
from linkwise.mechanism.parameters import Values
from linkwise.mechanism.regroup import NOTHING, AbsoluteSums, Parts, regrouped, regrouped_rows
from linkwise.mechanism.tree import Link, Tree
from linkwise.memoized import cached_property, no_search_for_cycles
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Scalar, cos, sin
from linkwise.spatial.transforms import Rotation, Shift, Transform, TransformFactor, Turn
from linkwise.spatial.vectors import Vec

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody


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
        """The first place in q of each joint's coordinates (n)."""
        return np.array([joint.q_slice.start for joint in self.mechanism.joints], int)

    @cached_property
    def v_start(self) -> Array:
        """The first place in v of each joint's freedoms (n)."""
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


MANY = 60
"""Links above which they are made from arrays when looked at, and not all beforehand."""


def lay_out(mechanism: Mechanism, p: Flat | None = None, *, align: bool = True, regroup: bool = True) -> Tree:
    """The tree of a mechanism; ``p`` holds the run-time parameters, if the mechanism has any."""
    if mechanism._is_flexible:  # whose links stand in the frames of their bodies' roots
        align = regroup = False
    if regroup and not align:
        raise ValueError("inertias are regrouped in aligned frames only")
    with no_search_for_cycles():
        return _laid_out(mechanism, Values(mechanism, p), align, regroup)


def _laid_out(mechanism: Mechanism, values: Values, align: bool, regroup: bool) -> Tree:
    parts = Parts(mechanism)
    frames = _frames(mechanism, values, parts) if align else BodyFrames(mechanism)
    gravity = _rigid(frames.R[-1].T, np.zeros(3)).rotate(Vec.of(list(values.gravity(mechanism.gravity))))
    is_constant = not (mechanism._is_flexible or values.any_given)
    placements, (R, o), base = frames.placements(), (frames.R[:-1], frames.o[:-1]), RigidInertia.zero()
    M, terms = parts.inertias(R, o)
    if regroup and is_constant:
        types = [joint.type for joint in mechanism.joints]
        M, base = regrouped_rows(types, frames.parents, placements, M, terms)
    constant = ManyLinks(mechanism, placements, 2 if align else 3, frames.tails(), M, R, o)
    links: Sequence[Link] = constant if len(constant) > MANY else tuple(constant)
    if not is_constant:
        links, base = _one_by_one(mechanism, values, frames, constant, regroup)
    return Tree(links, mechanism.nq, mechanism.nv, gravity, _rigid(frames.R[-1], frames.o[-1]), base)


def _frames(mechanism: Mechanism, values: Values, parts: Parts) -> AlignedFrames:
    free = np.zeros(len(mechanism.bodies), bool)
    if values.any_given:
        free[[body.index for body in mechanism.bodies if values.placement_is_free(body)]] = True
    return AlignedFrames(mechanism, free, parts.centres())


def _one_by_one(
    mechanism: Mechanism,
    values: Values,
    frames: AlignedFrames | BodyFrames,
    constant: ManyLinks,
    regroup: bool,
) -> tuple[Sequence[Link], RigidInertia]:
    """Links that deform, or whose constants may be any scalar: those of constants, with what differs put in."""
    links: list[Link] = []
    terms: list[AbsoluteSums] = []
    for body, link in zip(mechanism.bodies, constant, strict=True):
        inertia, summed = _inertia(values, body, frames.R[body.index], frames.o[body.index])
        own: dict[str, Any] = {"inertia": inertia, "armature": tuple(values.armature(body, link.armature))}
        if values.placement_is_free(body):
            own |= {"placement": _free_placement(values, body, frames), "lead": 0.0}
        own["seat"] = None if body.parent < 0 else links[body.parent].seat_at(body.node)
        link = replace(link, **own)
        links.append(link if body.flexible is None else _deforming(link, body, body.flexible, values))
        terms.append(summed)
    base = RigidInertia.zero()
    if regroup:
        links, base = regrouped(links, terms)
    return tuple(links), base


def _deforming(link: Link, body: Body, flexible: FlexibleBody, values: Values) -> Link:
    """The link of a flexible body, with what is welded to its nodes."""
    from linkwise.mechanism.flexible_link import Lump, flexible_link

    nodes = sorted({part.node for part in body.parts if part.node})
    lumps = [(k, _inertia(values, body, np.eye(3), np.zeros(3), k)[0]) for k in nodes]
    return flexible_link(link, flexible, [Lump(k, inertia) for k, inertia in lumps], values.elasticity(body))


def placed_at(xyz: Flat, rpy: Flat) -> Transform:
    """A frame at a position, turned by roll, pitch and yaw."""
    roll, pitch, yaw = rpy
    turns = (Turn(axis, cos(angle), sin(angle)) for axis, angle in ((2, yaw), (1, pitch), (0, roll)))
    return Transform(Shift(Vec.of(list(xyz))), *turns)


def _free_placement(values: Values, body: Body, frames: AlignedFrames | BodyFrames) -> Transform:
    """The parent's frame, undone; then the placement as the parameters give it; then the joint's axis."""
    R_parent, o_parent = frames.R[body.parent], frames.o[body.parent]
    factors: list[TransformFactor] = [
        *_rigid(R_parent.T, -R_parent.T @ o_parent).factors,
        *placed_at(values.xyz(body), values.rpy(body)).factors,
        *_rigid(frames.after_joint_frame(body.index), np.zeros(3)).factors,
    ]
    return Transform(*factors)


def _rigid(R: Array, o: Array) -> Transform:
    return rigid(snapped(R, 1.0), snapped(o, 1.0))


def _inertia(values: Values, body: Body, R: Array, o: Array, node: int = 0) -> tuple[RigidInertia, AbsoluteSums]:
    """All parts of a body in its link's frame (on one node, if it deforms), and what they were summed from."""
    total, terms = RigidInertia.zero(), NOTHING
    for part in body.parts:
        if part.node != node:
            continue
        X = np.array(part.placement)
        to_link = _rigid(R.T @ X[:3, :3], R.T @ (X[:3, 3] - o))
        (m,), com, six = values.part(part, "mass"), values.part(part, "com"), values.part(part, "inertia")
        about_com = AbsoluteSums.of(RigidInertia(m, Vec.zero(), Sym3.of(*six)))
        terms = terms + about_com.through(Transform(Shift(Vec.of(list(com))))).through(to_link)
        total = total + to_link.congruence(RigidInertia.from_com(m, Vec.of(list(com)), Sym3.of(*six)))
    return terms.snapped(total), terms
