"""A deformable body as its link needs it: its moving mass, its elasticity, its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.flexible.body import FlexibleBody
from linkwise.mechanism.moving_mass import MovingMass
from linkwise.mechanism.node_shape import NodeShape
from linkwise.mechanism.sparse import sparse
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Transform

Flat = Sequence[Scalar]


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
