"""How a link moves, and the force that this motion takes: the outward half of inverse and forward dynamics.

Accelerations are those of 000 §2: α = [ω'; a], rates taken in the inertial frame, a that of the link's origin.
Then f = Mα + b with b = [ω~Jω; ω~ω~h], and no linear velocity is needed anywhere. Everything quadratic in ω goes
through E = ω'~ + ω~ω~, which serves the next origin (a + E l), the force (m a + E h) and the moment alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.model.tree import Link
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, slots=True)
class RigidMotion:
    """ω, ω' and the acceleration a of the origin, in the link's axes."""

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


def at_rest(gravity: Vec) -> RigidMotion:
    """A base at rest in a field of gravity: the same as one accelerating upwards."""
    return RigidMotion(Vec.zero(), Vec.zero(), -gravity)


def carried(phi: Transform, parent: RigidMotion) -> RigidMotion:
    """The parent's motion seen at the child's origin and in its axes, as if the joint did not move."""
    omega, omega_dot, a = parent.omega, parent.omega_dot, parent.a
    for factor in phi.factors:
        if isinstance(factor, Shift):
            if not all(is_zero(x) for x in factor.l):
                a = a + RigidMotion(omega, omega_dot, a).E @ factor.l
        else:
            omega, omega_dot, a = (factor.rotate_back(x) for x in (omega, omega_dot, a))
    return RigidMotion(omega, omega_dot, a)


def next_motion(
    link: Link, parent: RigidMotion, q: Sequence[Scalar], v: Sequence[Scalar], vdot: Sequence[Scalar] | None
) -> RigidMotion:
    """α = φ*α(parent) + H*β' + a (000 eq. 7), the joint's own motion put on top of the parent's.

    With ω_J, v_J the joint's motion in the child's frame, a is [ω × ω_J; (2ω - ω_J) × v_J] + Ṡv.
    ``vdot`` None means zero.
    """
    moved = carried(link.phi(q), parent)
    S = link.S(q)
    V_J = combination(S, link.rates(v))
    A_J = link.S_rate(q, v)
    if vdot is not None:
        A_J = A_J + combination(S, link.rates(vdot))
    omega = moved.omega + V_J.ang
    return RigidMotion(
        omega,
        moved.omega_dot + A_J.ang + omega.cross(V_J.ang),
        moved.a + A_J.lin + (omega + moved.omega).cross(V_J.lin),
    )


def combination(S: Sequence[Motion], rates: Sequence[Scalar]) -> Motion:
    """S v."""
    total = Motion.zero()
    for column, rate in zip(S, rates, strict=True):
        total = total + column * rate
    return total


def wrench(M: RigidInertia, motion: RigidMotion) -> Force:
    """Mα + b = [Jω' + ω~Jω + h~a; m a + E h].

    The moment Jω' + ω~Jω is the axial part of E Σ - (E Σ)*, Σ = ½ tr(J) 1 - J being Euler's tensor.
    """
    E = motion.E.m
    (Jxx, Jxy, Jxz), (_, Jyy, Jyz), (_, _, Jzz) = M.J.m
    Sxx, Syy, Szz = (Jyy + Jzz - Jxx) * 0.5, (Jxx + Jzz - Jyy) * 0.5, (Jxx + Jyy - Jzz) * 0.5
    x, y, z = motion.omega
    N = Vec(
        Syy * E[2][1] - Szz * E[1][2] + Jxz * E[1][0] - Jxy * E[2][0] + Jyz * (y * y - z * z),
        Szz * E[0][2] - Sxx * E[2][0] + Jxy * E[2][1] - Jyz * E[0][1] + Jxz * (z * z - x * x),
        Sxx * E[1][0] - Syy * E[0][1] + Jyz * E[0][2] - Jxz * E[1][2] + Jxy * (x * x - y * y),
    )
    return Force(N + M.h.cross(motion.a), motion.a * M.m + motion.E @ M.h)
