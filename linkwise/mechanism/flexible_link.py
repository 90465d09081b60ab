"""A link that deforms: S lists its modal axes before those of its joint, and its inertia depends on q.

It asks a deformable body for its moving mass, its elasticity, and its nodes, all over any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from linkwise.dataclass import dataclass, field, replace
from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.joints.modes import Modes
from linkwise.mechanism.bodies_and_joints import Body, Frame
from linkwise.mechanism.moving_mass import MovingMass, QuadraticForm, sparse, sum_of_vectors
from linkwise.mechanism.tree import Link, rigid_only
from linkwise.spatial.dual import derivative
from linkwise.spatial.flattening import flatten
from linkwise.spatial.flexible import (
    FlexibleForce,
    FlexibleInertia,
    FlexibleMotion,
    FlexibleMoving,
    NodeFactor,
    RootFactor,
)
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import AccelerationField, RigidMotion
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.transforms import Rotation, Tilt, Transform, TransformFactor, Turn
from linkwise.spatial.vectors import Force, Motion, Vec


class Deformation:
    """A flexible body as its link needs it: its mass, its elasticity, its nodes."""

    def __init__(self, body: FlexibleBody) -> None:
        self.modes = body.modes
        self.nodes = body.nodes
        self.integrals = body.integrals
        self.mass = MovingMass(body.integrals)
        self.stiffness = sparse(body.stiffness)
        self.damping = sparse(body.damping)
        self._nodes: dict[int, NodeShape] = {}

    def node(self, number: int) -> NodeShape:
        """A node by its place in the body's ``nodes``."""
        if number not in self._nodes:
            self._nodes[number] = NodeShape(self.nodes[number])
        return self._nodes[number]

    def elastic(self, eta: Flat, rate: Flat, stiffness: Scalar, loss: Scalar) -> list[Scalar]:
        """Kη + Dη̇, with factors on K and D."""
        total: list[Scalar] = [0.0] * self.modes
        for entries, x, factor in ((self.stiffness, eta, stiffness), (self.damping, rate, loss)):
            for (i, j), value in entries:
                total[i] = total[i] + (value * x[j]) * factor
        return total

    def energy(self, eta: Flat) -> Scalar:
        """½η*Kη."""
        total: Scalar = 0.0
        for (i, j), value in self.stiffness:
            total = total + value * (eta[i] * eta[j])
        return total * 0.5


class Seat:
    """A node that something sits on, for a mechanism: the node's shape and where its body's η is in q."""

    def __init__(self, shape: NodeShape, q_start: int, modes: int) -> None:
        self.shape = shape
        self.q_start = q_start
        self.modes = modes

    def moved(self, q_start: int) -> Seat:
        """The same node, of a body whose η is elsewhere."""
        return Seat(self.shape, q_start, self.modes)

    def at(self, q: Flat) -> Transform:
        """From the root of the flexible body to the node's frame."""
        return Transform(*self.shape.factors(self.eta(q)))

    def eta(self, q: Flat) -> list[Scalar]:
        """The modal coordinates of the body."""
        return [q[self.q_start + i] for i in range(self.modes)]


class NodeShape:
    """Motion of a node by the modes: r(η) = r⁰ + Γη + ½η*Qη, and the rotation by Λη.

    A rotation is proper at every η: that with Rodrigues' parameters c = ½Λη (Cayley's), R = 1 + 2s(c~ + c~c~) with
    s = 1/(1 + c·c). To second order in η it is the turn about Λη by its length, and its rate of turn
    w = s(1 + c~)Λη̇ is exact, so that power and momenta balance at every η. While η̈ = 0 it changes by -2s(c·c')w.
    """

    def __init__(self, node: FlexibleNode) -> None:
        self.name = str(node.key)
        self.position = Vec.of(node.position.tolist())
        self.Gamma = [Vec.of(column) for column in node.Gamma.T.tolist()]
        self.Lambda = [Vec.of(column) for column in node.Lambda.T.tolist()]
        self.half_Lambda = [axis * 0.5 for axis in self.Lambda]
        self.Q = QuadraticForm(node.Q)
        self.turns_about = [k for k in range(3) if node.Lambda[k].any()]

    def factors(self, eta: Flat) -> list[TransformFactor]:
        """From the root to the node: to its place, and the rotation."""
        node = self.node(eta)
        if node.c is None or node.sc is None:
            return [node]
        return [node, _cayley(node.c, node.s, node.sc, self.turns_about)]

    def node(self, eta: Flat) -> Deflected:
        """The node where it is, without its rotation."""
        slope = self.Q.slope(eta)
        place = self.position + sum_of_vectors(self.Gamma, eta) + sum_of_vectors(slope, eta) * 0.5
        lin = [g + d for g, d in zip(self.Gamma, slope, strict=True)]
        if not self.turns_about:
            return Deflected(place, [Motion(Vec.zero(), each) for each in lin], self, lin)
        c = sum_of_vectors(self.half_Lambda, eta)
        s = 1.0 / (1.0 + c.dot(c))
        sc = c * s
        Pi = [Motion(axis * s + sc.cross(axis), each) for axis, each in zip(self.Lambda, lin, strict=True)]
        return Deflected(place, Pi, self, lin, c, s, sc)


class Deflected(NodeFactor):
    """A node where it is at η; c, s and sc as :class:`NodeShape` has them, None where it does not turn."""

    __slots__ = ("_lin", "_shape", "c", "s", "sc")

    def __init__(
        self,
        l: Vec,
        Pi: Sequence[Motion],
        shape: NodeShape,
        lin: Sequence[Vec],
        c: Vec | None = None,
        s: Scalar = 1.0,
        sc: Vec | None = None,
    ) -> None:
        super().__init__(l, Pi)
        self._shape, self._lin, self.c, self.s, self.sc = shape, lin, c, s, sc

    def moved(self, rates: Flat) -> Motion:
        """Πη̇."""
        ang = Vec.zero()
        if self.sc is not None:
            turn = sum_of_vectors(self._shape.Lambda, rates)
            ang = turn * self.s + self.sc.cross(turn)
        return Motion(ang, sum_of_vectors(self._lin, rates))

    def bias(self, rates: Flat) -> Motion:
        """Π̇η̇."""
        ang = Vec.zero()
        if self.sc is not None:
            turn = sum_of_vectors(self._shape.Lambda, rates)  # 2c'
            ang = (turn * self.s + self.sc.cross(turn)) * -self.sc.dot(turn)
        return Motion(ang, self._shape.Q.value(rates))


def _cayley(c: Vec, s: Scalar, sc: Vec, about: Sequence[int]) -> TransformFactor:
    """1 + 2s(c~ + cc* - c·c): a turn about one axis where c keeps to one, a tilt where it keeps to two."""
    k = sc + sc
    if len(about) == 1:
        axis = about[0]
        return Turn(axis, 1.0 - k[axis] * c[axis], k[axis])
    if len(about) == 2:
        return Tilt(3 - sum(about), c, s + s, k)
    xx, yy, zz = k.x * c.x, k.y * c.y, k.z * c.z
    xy, xz, yz = k.x * c.y, k.x * c.z, k.y * c.z
    return Rotation(
        Mat3(
            (
                (1.0 - (yy + zz), xy - k.z, xz + k.y),
                (xy + k.z, 1.0 - (xx + zz), yz - k.x),
                (xz - k.y, yz + k.x, 1.0 - (xx + yy)),
            )
        )
    )


@dataclass(frozen=True, eq=False)
class Lump:
    """Rigid bodies welded to a node: their inertia about its origin, in its axes."""

    node: int
    inertia: RigidInertia

    def seat(self, deformation: Deformation, eta: Flat) -> Transform:
        """From the root to the node; without the node's rotation for a point mass, which does not feel it."""
        factors = deformation.node(self.node).factors(eta)
        is_point = all(is_zero(x) for x in (*self.inertia.h, *self.inertia.J.six()))
        return Transform(*factors[:1] if is_point else factors)


@dataclass(frozen=True, eq=False)
class FlexibleLink(Link):
    """One flexible body and its inboard joint, in the frame of the body's root.

    ``joint`` is :class:`Modes`; there is no constant ``inertia``: ask for ``M(q)``.
    """

    joint: Modes
    deformation: Deformation = field(kw_only=True)
    lumps: tuple[Lump, ...] = ()
    elasticity: tuple[Scalar, Scalar] = (1.0, 1.0)
    """Factors on K and on D."""
    slack: bool = False
    """Whether elastic forces are left out."""

    @property
    def modes(self) -> int:
        """The number of modal axes."""
        return self.deformation.modes

    @property
    def hinge(self) -> Link:
        """The joint alone."""
        kept = {name: getattr(self, name) for name in Link.__dataclass_fields__}
        m = self.modes
        return Link(
            **kept
            | {
                "joint": self.joint.joint,
                "q_start": self.q_start + m,
                "v_start": self.v_start + m,
                "armature": self.armature[m:],
            }
        )

    @property
    def deforming(self) -> tuple[Any, ...]:
        """The node it sits on, and what it consists of."""
        return (*super().deforming, self.deformation)

    def seat_at(self, node: int) -> Seat:
        """A node that others sit on."""
        return Seat(self.deformation.node(node), self.q_start, self.modes)

    def relaxed(self) -> Link:
        """The same link without elastic forces."""
        return replace(self, slack=True)

    def phi(self, q: Flat) -> Transform:
        """φ(parent, link), from the parent's frame or node to the root, and from six numbers to m + 6."""
        return super().phi(q).then(Transform(RootFactor(self.modes)))

    def S(self, q: Flat) -> tuple[Motion, ...]:
        """The modal axes, then those of the joint."""
        m = self.modes
        modal = [FlexibleMotion([1.0 if i == j else 0.0 for j in range(m)], Vec.zero(), Vec.zero()) for i in range(m)]
        return (*modal, *(FlexibleMotion.with_tail((0.0,) * m, s) for s in super().S(q)[m:]))

    def S_rate(self, q: Flat, v: Flat) -> Motion:
        """Ṡ v; modal axes are what they are."""
        return FlexibleMotion.with_tail((0.0,) * self.modes, super().S_rate(q, v))

    @property
    def rigid_part(self) -> RigidInertia:
        """Rigid part that is welded to the root."""
        return next((lump.inertia for lump in self.lumps if lump.node == 0), RigidInertia.zero())

    def M(self, q: Flat) -> FlexibleInertia:
        """The inertia at η, with what is welded to nodes."""
        return self._inertia(self._eta(q))

    def M_slopes(self, q: Flat, X: Motion) -> list[FlexibleForce]:
        """(∂M/∂η_i) X for each mode, by dual numbers."""
        eta = self._eta(q)
        units = ([1.0 if i == j else 0.0 for j in range(self.modes)] for i in range(self.modes))
        slopes = [derivative(lambda at: list(self._inertia(at) @ X), eta, unit)[1] for unit in units]
        return [FlexibleForce.of(slope) for slope in slopes]

    def _inertia(self, eta: Flat) -> FlexibleInertia:
        M = self.deformation.mass.inertia(eta)
        for lump in self.lumps:
            M = M + lump.seat(self.deformation, eta).congruence(lump.inertia)
        return M

    def wrench(self, q: Flat, motion: FlexibleMoving) -> FlexibleForce:
        """[χ; f] that a motion takes: inertia forces and Kη + Dη̇."""
        eta = self._eta(q)
        f = self.deformation.mass.wrench(eta, motion.root, motion.rate, motion.rate_dot)
        for lump in self.lumps:
            to_node = lump.seat(self.deformation, eta)
            f = f + to_node @ lump.inertia.wrench(to_node.carry(motion))
        if self.slack:
            return f
        return f + FlexibleForce.with_tail(self.deformation.elastic(eta, motion.rate, *self.elasticity), Force.zero())

    def in_field(self, q: Flat, field: AccelerationField) -> FlexibleForce:
        """[χ; f] that a field of acceleration exerts, on what is welded to nodes as well.

        That sections of beams are spread out counts in f; in χ, where it would be of the order of their thickness over
        the length of a wave, squared, it is left out.
        """
        eta, still = self._eta(q), (0.0,) * self.modes
        f = self.deformation.mass.wrench(eta, field, still, still)
        f = f + Force(RigidInertia(0.0, Vec.zero(), self.deformation.mass.dJ).wrench(field).ang, Vec.zero())
        for lump in self.lumps:
            to_node = lump.seat(self.deformation, eta)
            f = f + to_node @ lump.inertia.wrench(to_node.carry(field))
        return f

    def moving(self, root: RigidMotion, V_J: Motion, A_J: Motion) -> FlexibleMoving:
        """The root's motion with the rates of the modes."""
        return FlexibleMoving(root, tuple(V_J)[: self.modes], tuple(A_J)[: self.modes])

    def elastic_energy(self, q: Flat) -> Scalar:
        """½η*Kη."""
        return self.deformation.energy(self._eta(q)) * self.elasticity[0]

    def elastic_forces(self, q: Flat, v: Flat) -> list[Scalar]:
        """Kη + Dη̇."""
        return self.deformation.elastic(self._eta(q), self.rates(v)[: self.modes], *self.elasticity)

    def _eta(self, q: Flat) -> list[Scalar]:
        return self.coordinates(q)[: self.modes]


class _VaryingInertia:
    """Stands where a rigid link has its constant inertia: a text that asks for it is for rigid links only."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise rigid_only(self._name)

    def __matmul__(self, V: Motion) -> NoReturn:
        raise rigid_only(self._name)

    def __add__(self, other: object) -> NoReturn:
        raise rigid_only(self._name)


def flexible_link(
    link: Link, body: FlexibleBody, lumps: Sequence[Lump], elasticity: tuple[Scalar, Scalar]
) -> FlexibleLink:
    """The link of a flexible body, from that of its root: η comes right before the joint's own coordinates."""
    m = body.modes
    own = {name: getattr(link, name) for name in Link.__dataclass_fields__}
    changed = {
        "joint": Modes(m, link.joint),
        "q_start": link.q_start - m,
        "v_start": link.v_start - m,
        "armature": ((0.0,) * m + tuple(link.armature)),
        "inertia": _VaryingInertia(link.name),
    }
    if any(not is_zero(x) for x in flatten(link.inertia)[0]):
        lumps = [Lump(0, link.inertia), *lumps]
    return FlexibleLink(**own | changed, deformation=_deformation(body), lumps=tuple(lumps), elasticity=elasticity)


def force_on_body(body: Body, frame: Frame, q: Flat, f: Flat) -> tuple[list[Scalar], list[Scalar]]:
    """A force [N; F] at a frame of a body, in its axes: as one at the body's origin, and what the modes feel."""
    pose = frame.placement
    force = Transform.rigid(Mat3([row[:3] for row in pose[:3]]), Vec(*(row[3] for row in pose[:3]))) @ Force.of(f)
    if body.flexible is None or not frame.node:
        return list(force), []
    own = q[body.q_slice]
    on_root = Transform(*_deformation(body.flexible).node(frame.node).factors(own)) @ force
    return [*on_root.ang, *on_root.lin], list(on_root.tail)  # type: ignore[attr-defined]  # a node's force has one


def internal_damping(body: FlexibleBody, rates: Flat, loss: Scalar) -> list[Scalar]:
    """-Dη̇ on the modes of a flexible body, with a factor on D."""
    return [-f for f in _deformation(body).elastic([0.0] * body.modes, rates, 0.0, loss)]


def _deformation(body: FlexibleBody) -> Deformation:
    found = _known.get(body)
    if found is None:
        found = _known[body] = Deformation(body)
    return found


# A body is written out once, for all layouts of all models that it is part of.
_known: WeakKeyDictionary[FlexibleBody, Deformation] = WeakKeyDictionary()
