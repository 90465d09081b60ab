"""Motion of a frame: its rate of turn, and the accelerations that inverse dynamics needs; fields of acceleration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.dataclass import dataclass
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import TransformFactor
from linkwise.spatial.vectors import Vec

if TYPE_CHECKING:
    from linkwise.spatial.flexible import NodeFactor


@dataclass(frozen=True, slots=True)
class RigidMotion:
    """ω, ω' and the acceleration a of the origin, in the frame's axes; rates are those of the inertial frame."""

    omega: Vec
    omega_dot: Vec
    a: Vec

    @property
    def E(self) -> Mat3:
        """ω'~ + ω~ω~: the acceleration of a point at l beyond the origin's is E l."""
        x, y, z = self.omega
        ax, ay, az = self.omega_dot
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        return Mat3(
            (
                (-(yy + zz), xy - az, xz + ay),
                (xy + az, -(xx + zz), yz - ax),
                (xz - ay, yz + ax, -(xx + yy)),
            )
        )

    @property
    def deviations(self) -> Vec:
        """E_yy - E_zz, E_zz - E_xx, E_xx - E_yy."""
        x, y, z = self.omega
        return Vec(y * y - z * z, z * z - x * x, x * x - y * y)

    def shifted(self, l: Vec) -> RigidMotion:
        """Motion at the point l of the same rigid body."""
        if all(is_zero(x) for x in l):
            return self
        return RigidMotion(self.omega, self.omega_dot, self.a + self.E @ l)

    def turned(self, factor: TransformFactor) -> RigidMotion:
        """Motion in the child side's axes."""
        return RigidMotion(*(factor.rotate_back(x) for x in (self.omega, self.omega_dot, self.a)))


@dataclass(frozen=True, slots=True)
class AccelerationField:
    """Accelerations a + E l at the points l around a frame's origin, in the frame's axes.

    The force that such a field exerts on mass is the one that a motion with these accelerations takes, so inertias ask
    it what they ask a motion; nothing in it turns.
    """

    E: Mat3
    a: Vec

    @property
    def omega(self) -> Vec:
        """Zero."""
        return Vec.zero()

    @property
    def omega_dot(self) -> Vec:
        """Zero."""
        return Vec.zero()

    @property
    def deviations(self) -> Vec:
        """E_yy - E_zz, E_zz - E_xx, E_xx - E_yy."""
        (x, _, _), (_, y, _), (_, _, z) = self.E.m
        return Vec(y - z, z - x, x - y)

    def shifted(self, l: Vec) -> AccelerationField:
        """The same field around the point l."""
        return AccelerationField(self.E, self.a + self.E @ l)

    def turned(self, factor: TransformFactor) -> AccelerationField:
        """The same field in the child side's axes: R*a and R*E R."""
        rows = Mat3([list(factor.rotate_back(Vec(*row))) for row in self.E.m])
        turned = [factor.rotate_back(rows.column(j)) for j in range(3)]
        a, E = factor.rotate_back(self.a), self.E.m
        if all(E[i][j] is E[j][i] for i, j in ((0, 1), (0, 2), (1, 2))):
            return AccelerationField(Sym3.build_symmetric(lambda i, j: turned[j][i]), a)
        return AccelerationField(Mat3.build(lambda i, j: turned[j][i]), a)

    def numbers(self) -> list[Scalar]:
        """a (3), then the rows of E (9)."""
        return [*self.a, *(x for row in self.E.m for x in row)]

    def on_node(self, node: NodeFactor) -> AccelerationField:
        """The same field around a node of a link that deforms, in root axes."""
        return self.shifted(node.l)
