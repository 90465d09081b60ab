"""Motion of a frame: its rate of turn, and the accelerations that inverse dynamics needs."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import is_zero
from linkwise.spatial.transforms import Factor
from linkwise.spatial.vectors import Vec


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

    def turned(self, factor: Factor) -> RigidMotion:
        """Motion in the child side's axes."""
        return RigidMotion(*(factor.rotate_back(x) for x in (self.omega, self.omega_dot, self.a)))
