"""A deformable body as its link needs it: its moving mass, its elasticity, and its nodes over any scalar."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.mechanism.moving_mass import MovingMass, QuadraticForm, sparse, sum_of_vectors
from linkwise.spatial.flexible import NodeFactor
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Factor, Rotation, Tilt, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


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

    def factors(self, eta: Flat) -> list[Factor]:
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


def _cayley(c: Vec, s: Scalar, sc: Vec, about: Sequence[int]) -> Factor:
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
