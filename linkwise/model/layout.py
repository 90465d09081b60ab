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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.model.mechanism import IDENTITY, Body, Mechanism
from linkwise.model.parameters import Values
from linkwise.model.placement import inverse_pose
from linkwise.model.terms import NOTHING, Terms, is_exact_split
from linkwise.model.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, cos, sin
from linkwise.spatial.transforms import Factor, Shift, Transform, Turn
from linkwise.spatial.vectors import Vec, coordinate_axis

if TYPE_CHECKING:
    from linkwise.flexible.body import FlexibleBody

_SNAP = 2e-15  # what rounding leaves of an exact zero or one, relative to the largest number beside it
_PARALLEL = 1e-14  # sine of the angle under which two axes are parallel
_ILL_CONDITIONED = 1e-2  # sine under which the common normal of two axes runs too far away to be of use

Array = Any


def lay_out(
    mechanism: Mechanism, p: Sequence[Scalar] | None = None, *, align: bool = True, regroup: bool = True
) -> Tree:
    """The tree of a mechanism; ``p`` holds the run-time parameters, if the mechanism has any."""
    if mechanism.is_flexible:  # whose links stand in the frames of their bodies' roots
        align = regroup = False
    values = Values(mechanism, p)
    frames = _Frames(mechanism, values) if align else _BodyFrames(mechanism)
    links: list[Link] = []
    terms: list[Terms] = []
    for body, joint in zip(mechanism.bodies, mechanism.joints, strict=True):
        k = body.index
        if values.placement_is_free(body):
            placement, lead = _free_placement(values, body, frames), 0.0
        else:
            placement, lead = frames.placement(body)
        inertia, summed = _inertia(values, body, frames.R[k], frames.o[k])
        terms.append(summed)
        link = Link(
            index=k,
            name=body.name,
            parent=body.parent,
            joint=joint.type,
            placement=placement,
            lead=lead,
            tail=frames.tail(body),
            inertia=inertia,
            to_body=_rigid(frames.R[k].T, -frames.R[k].T @ frames.o[k]),
            armature=tuple(values.armature(body, joint.armature)),
            q_start=joint.q_slice.start,
            v_start=joint.v_slice.start,
            multiplier=joint.mimic.multiplier if joint.mimic else 1.0,
            offset=joint.mimic.offset if joint.mimic else 0.0,
            is_mimic=joint.mimic is not None,
            joint_name=joint.name,
            seat=None if body.parent < 0 else links[body.parent].seat_at(body.node),
        )
        links.append(link if body.flexible is None else _deforming(link, body, body.flexible, values))
    base = RigidInertia.zero()
    if regroup:
        links, base = _regrouped(links, terms)
    R, o = frames.R[-1], frames.o[-1]
    gravity = _constant_rotation(R.T) @ Vec.of(list(values.gravity(mechanism.gravity)))
    return Tree(tuple(links), mechanism.nq, mechanism.nv, gravity, _rigid(R, o), base)


def _deforming(link: Link, body: Body, flexible: FlexibleBody, values: Values) -> Link:
    """The link of a flexible body, with what is welded to its nodes."""
    from linkwise.model.flexible_link import Lump, flexible_link

    nodes = sorted({part.node for part in body.parts if part.node})
    lumps = [(k, _inertia(values, body, np.eye(3), np.zeros(3), k)[0]) for k in nodes]
    return flexible_link(link, flexible, [Lump(k, inertia) for k, inertia in lumps], values.elasticity(body))


class _BodyFrames:
    """Every link's frame is its body's; joints keep a tail from the axis's frame back to it."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        n = len(mechanism.bodies)
        self.R: dict[int, Array] = {k: np.eye(3) for k in range(-1, n)}
        self.o: dict[int, Array] = {k: np.zeros(3) for k in range(-1, n)}

    def axis_rotation(self, body: Body) -> Array:
        """Joint frame to the frame whose z is the joint's axis."""
        axis = self.mechanism.joints[body.index].type.axis
        return np.eye(3) if axis is None else turn_z_to(np.array(axis))

    def placement(self, body: Body) -> tuple[Transform, float]:
        """Parent's link frame to the joint's axis frame, and the lead of the joint."""
        X = np.array(body.placement)
        return _shift_and_turns(X[:3, 3], X[:3, :3] @ self.axis_rotation(body)), 0.0

    def after_joint_frame(self, body: Body) -> Array:
        """Rotation from the joint frame the user placed to the axis frame."""
        return self.axis_rotation(body)

    def tail(self, body: Body) -> Transform:
        back = inverse_pose(np.array(body.joint_frame))
        R = self.axis_rotation(body).T
        return _rigid(R @ back[:3, :3], R @ back[:3, 3])


class _Frames:
    """Frames aligned with the joints. ``R[k]``, ``o[k]``: link frame k in body k's frame; -1: root in world."""

    def __init__(self, mechanism: Mechanism, values: Values) -> None:
        self.mechanism = mechanism
        self.free = {b.index for b in mechanism.bodies if values.placement_is_free(b)}
        self.children: dict[int, list[Body]] = {k: [] for k in range(-1, len(mechanism.bodies))}
        for body in mechanism.bodies:
            self.children[body.parent].append(body)
        self.X = {body.index: _at_rest(body) for body in mechanism.bodies}
        self.R: dict[int, Array] = {-1: np.eye(3)}
        self.o: dict[int, Array] = {-1: np.zeros(3)}
        for body in mechanism.bodies:
            self._choose_origin(body)
        for body in mechanism.bodies:
            self._choose_x(body)
        self._choose_root()

    def placement(self, body: Body) -> tuple[Transform, float]:
        """Shift, turns, and the lead: a last turn about z, which a hinge absorbs."""
        X = self.X[body.index]
        R_parent, o_parent = self.R[body.parent], self.o[body.parent]
        k = body.index
        R = R_parent.T @ X[:3, :3] @ self.R[k]
        l = R_parent.T @ (X[:3, 3] + X[:3, :3] @ self.o[k] - o_parent)
        gamma, alpha, beta = _zxz(R)
        factors: list[Factor] = []
        l = _snapped(l, np.abs(X[:3, 3]).max() + np.abs(self.o[k]).max() + np.abs(o_parent).max())
        if l.any():
            factors.append(Shift(Vec.of(l.tolist())))
        factors.extend(_turns(((2, gamma), (0, alpha))))
        return Transform(*factors), beta

    def after_joint_frame(self, body: Body) -> Array:
        return np.array(body.joint_frame)[:3, :3].T @ self.R[body.index]

    def tail(self, body: Body) -> Transform:
        return Transform()

    def _symmetry(self, k: int) -> str:
        return "none" if k < 0 else self.mechanism.joints[k].type.symmetry

    def _choose_origin(self, body: Body) -> None:
        """The z axis and the origin of a link; x comes later, from its children."""
        k, joint = body.index, self.mechanism.joints[body.index].type
        X, J = self.X[k], np.array(body.joint_frame)
        self.R[k] = J[:3, :3] @ (turn_z_to(np.array(joint.axis)) if joint.axis is not None else np.eye(3))
        axis = self.R[k][:, 2]
        self.o[k] = J[:3, 3]
        if k in self.free or joint.symmetry == "none":
            return
        parent_origin = X[:3, :3].T @ (self.o[body.parent] - X[:3, 3])  # the parent's origin in this body's frame
        if joint.symmetry == "direction":
            self.o[k] = parent_origin
        elif body.parent >= 0:
            u = X[:3, :3].T @ self.R[body.parent][:, 2] if self._symmetry(body.parent) != "none" else None
            self.o[k] = J[:3, 3] + axis * _foot(parent_origin - J[:3, 3], u, axis)

    def _choose_x(self, body: Body) -> None:
        k = body.index
        if self._symmetry(k) == "none":
            return
        z = self.R[k][:, 2]
        x = self._towards_child(k, z)
        if x is None:
            x = self._towards_mass(body, z)
        if x is not None:
            self.R[k] = np.column_stack((x, _cross(z, x), z))

    def _towards_child(self, k: int, z: Array) -> Array | None:
        for child in self.children[k]:
            if child.index in self.free:
                continue
            X = self.X[child.index]
            frame = X[:3, :3] @ self.R[child.index]
            normal = _cross(z, frame[:, 2])
            if _length(normal) > _PARALLEL:
                return _across(normal / _length(normal), z)
            if self._symmetry(child.index) == "none":
                return _across(frame[:, 0], z)  # parallel to a frame we cannot turn: take its x
            apart = X[:3, 3] + X[:3, :3] @ self.o[child.index] - self.o[k]
            if _length(_cross(z, apart)) > 1e-12:
                return _across(apart, z)
        return None

    def _towards_mass(self, body: Body, z: Array) -> Array | None:
        """Only a leaf may do so: a link with children keeps x for them."""
        if self.children[body.index] or body.mass == 0.0:
            return None
        total = sum(p.mass * (np.array(p.placement)[:3] @ (*p.com, 1.0)) for p in body.parts) / body.mass
        arm = total - self.o[body.index]
        return _across(arm, z) if _length(_cross(z, arm)) > 1e-12 else None

    def _choose_root(self) -> None:
        """The root frame sits where its first child's joint does: that joint then has no placement at all."""
        for child in self.children[-1]:
            if child.index not in self.free:
                X, k = self.X[child.index], child.index
                self.R[-1] = X[:3, :3] @ self.R[k]
                self.o[-1] = X[:3, 3] + X[:3, :3] @ self.o[k]
                return


def _at_rest(body: Body) -> Array:
    """The body's frame in its parent's with the joint at its zero position."""
    X = np.array(body.placement)
    return X if body.joint_frame == IDENTITY else X @ inverse_pose(np.array(body.joint_frame))


def placed_at(xyz: Sequence[Scalar], rpy: Sequence[Scalar]) -> Transform:
    """A frame at a position, turned by roll, pitch and yaw."""
    roll, pitch, yaw = rpy
    turns = (Turn(axis, cos(angle), sin(angle)) for axis, angle in ((2, yaw), (1, pitch), (0, roll)))
    return Transform(Shift(Vec.of(list(xyz))), *turns)


def _free_placement(values: Values, body: Body, frames: _Frames | _BodyFrames) -> Transform:
    """The parent's frame, undone; then the placement as the parameters give it; then the joint's axis."""
    R_parent, o_parent = frames.R[body.parent], frames.o[body.parent]
    factors: list[Factor] = [
        *_rigid(R_parent.T, -R_parent.T @ o_parent).factors,
        *placed_at(values.xyz(body), values.rpy(body)).factors,
        *_rigid(frames.after_joint_frame(body), np.zeros(3)).factors,
    ]
    return Transform(*factors)


def _cross(a: Array, b: Array) -> Array:
    """The product a × b; NumPy's own takes twenty times as long for one pair, which tells with very many links."""
    ax, ay, az = a.tolist()
    bx, by, bz = b.tolist()
    return np.array((ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx))


def _length(a: Array) -> float:
    return math.sqrt(float(a @ a))


def _foot(point: Array, u: Array | None, axis: Array) -> float:
    """Where on the line ``t axis`` the common normal with the line ``point + s u`` stands.

    The place nearest to ``point`` when the two are too nearly parallel for the normal to be near, or ``u`` is unknown.
    """
    if u is not None:
        c = float(axis @ u)
        sine_squared = float(_length(_cross(axis, u)) ** 2)
        if sine_squared > _ILL_CONDITIONED**2:
            return float(point @ axis - c * (point @ u)) / sine_squared
    return float(point @ axis)


def _across(x: Array, z: Array) -> Array:
    """The direction of ``x`` at right angles to ``z``, to rounding also where ``x`` is nearly along ``z``."""
    for _ in range(2):
        x = x - z * (z @ x)
        x = x / _length(x)
    return x


def turn_z_to(axis: Array) -> Array:
    """A rotation whose z column is the axis; a permutation of axes where the axis is a coordinate axis."""
    k = coordinate_axis(axis)
    if k is not None:
        R = np.zeros((3, 3))
        R[(k + 1) % 3, 0] = 1.0
        R[(k + 2) % 3, 1] = R[k, 2] = np.sign(axis[k])
        return R
    x = _cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    x /= _length(x)
    return np.column_stack((x, _cross(axis, x), axis))


def _zxz(R: Array) -> tuple[float, float, float]:
    """Angles of R = Rz(γ) Rx(α) Rz(β); γ = 0 where only γ ± β is defined."""
    R = _snapped(R, 1.0)
    sine = math.hypot(R[0, 2], R[1, 2])
    alpha = math.atan2(sine, R[2, 2])
    if sine < _PARALLEL:
        alpha = 0.0 if R[2, 2] > 0 else math.pi
        return 0.0, alpha, _nice(math.atan2(-R[0, 1], R[0, 0]))
    gamma = math.atan2(R[0, 2], -R[1, 2])
    # β not from R's last row but from Rz(-γ) R: where α is small only γ + β is well defined, and must come out right.
    first = math.cos(gamma) * R[0] + math.sin(gamma) * R[1]
    beta = math.atan2(-first[1], first[0])
    if abs(abs(gamma) - math.pi) < 1e-14:  # Rz(π) Rx(α) Rz(β) = Rx(-α) Rz(β + π): one turn less
        gamma, alpha, beta = 0.0, -alpha, beta + math.pi
    return _nice(gamma), alpha, _nice(beta)


def _nice(angle: float) -> float:
    """A multiple of a quarter turn made exact."""
    quarters = round(angle / (math.pi / 2))
    return quarters * (math.pi / 2) if abs(angle - quarters * (math.pi / 2)) < 4e-15 else angle


def _turns(turns: Sequence[tuple[int, float]]) -> list[Factor]:
    factors: list[Factor] = []
    for axis, angle in turns:
        c, s = _snapped(np.array([math.cos(angle), math.sin(angle)]), 1.0).tolist()
        if (c, s) != (1.0, 0.0):
            factors.append(Turn(axis, c, s))
    return factors


def _shift_and_turns(l: Array, R: Array) -> Transform:
    gamma, alpha, beta = _zxz(R)
    shift: list[Factor] = [Shift(Vec.of(l.tolist()))] if l.any() else []
    return Transform(*shift, *_turns(((2, gamma), (0, alpha), (2, beta))))


def _constant_rotation(R: Array) -> Mat3:
    return Mat3(_snapped(R, 1.0).tolist())


def _rigid(R: Array, o: Array) -> Transform:
    return Transform.rigid(_constant_rotation(R), Vec.of(_snapped(o, 1.0).tolist()))


def _snapped(x: Array, scale: float) -> Array:
    small = np.abs(x) < _SNAP * scale
    if small.any():
        x = np.where(small, 0.0, x)
    if scale == 1.0:
        ones = np.abs(np.abs(x) - 1.0) < _SNAP
        if ones.any():
            x = np.where(ones, np.sign(x), x)
    return x


def _inertia(values: Values, body: Body, R: Array, o: Array, node: int = 0) -> tuple[RigidInertia, Terms]:
    """All parts of a body in its link's frame (on one node, if it deforms), and what they were summed from."""
    total, terms = RigidInertia.zero(), NOTHING
    for part in body.parts:
        if part.node != node:
            continue
        X = np.array(part.placement)
        to_link = _rigid(R.T @ X[:3, :3], R.T @ (X[:3, 3] - o))
        (m,), com, six = values.part(part, "mass"), values.part(part, "com"), values.part(part, "inertia")
        about_com = Terms.of(RigidInertia(m, Vec.zero(), Sym3.of(*six)))
        terms = terms + about_com.through(Transform(Shift(Vec.of(list(com))))).through(to_link)
        total = total + to_link.congruence(RigidInertia.from_com(m, Vec.of(list(com)), Sym3.of(*six)))
    return terms.snapped(total), terms


def _regrouped(links: list[Link], terms: list[Terms]) -> tuple[list[Link], RigidInertia]:
    """Hand inboard what each joint does not move, from the leaves to the root, where that loses no digits."""
    inertias = [link.inertia for link in links]
    base = RigidInertia.zero()
    for link in reversed(links):
        if link.tail.factors:
            raise ValueError("inertias are regrouped in aligned frames only")
        k = link.index
        whole = terms[k].snapped(inertias[k])
        kept, shed = link.joint.split(whole)
        if not is_exact_split(whole, kept, shed):
            kept, shed = whole, RigidInertia.zero()
        inertias[k] = kept
        still = link.placement.then(link.joint.transform(link.joint.neutral()).after_turn(2, link.lead))
        if link.parent < 0:
            base = base + still.congruence(shed)
        else:
            inertias[link.parent] = inertias[link.parent] + still.congruence(shed)
            terms[link.parent] = terms[link.parent] + terms[k].of_part(shed, whole).through(still)
    return [replace(link, inertia=inertias[link.index]) for link in links], base
