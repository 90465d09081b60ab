"""How one place moves relative to another: pose, twist and acceleration, as a motion in time near this instant.

Whatever is said of two frames (that they coincide, that one turns about the other's axis, that their distance is fixed)
is a function of this relative motion. Followed along it by dual numbers, such a function gives its own rates.
"""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.algorithms.kinematics import Place, Placed, at_rest, next_motion, placed, velocities
from linkwise.algorithms.sweeps import Field, outward
from linkwise.mechanism.tree import Tree
from linkwise.spatial.dual import Dual
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Motion, Vec


@dataclass(frozen=True)
class PlaceMotion:
    """Where a place is and how it moves, in its own axes; accelerations are those of v̇ = 0."""

    frame: Placed
    V: Motion
    motion: RigidMotion


class LinkMotions:
    """Where all links are and how they move; what is not asked for is never computed."""

    def __init__(self, tree: Tree, q: Flat, v: Flat) -> None:
        self.tree, self.q = tree, q
        self.frames: Field[Placed] = placed(tree, q)
        self.V: Field[Motion] = velocities(tree, q, v)
        rest = at_rest(tree.gravity)  # as in the forward dynamics itself; two places feel the same gravity
        self.motion: Field[RigidMotion] = outward(
            tree, lambda link, parent: next_motion(link, parent, q, v, None), rest
        )

    def of(self, place: Place) -> PlaceMotion:
        """The motion of a place on a link, or on the world."""
        frame = place.within(self.frames, self.q)
        if place.link is None:
            a = place.offset.rotate_back(-self.tree.root.rotate(self.tree.gravity))
            return PlaceMotion(frame, Motion.zero(), RigidMotion(Vec.zero(), Vec.zero(), a))
        phi = place.phi(self.q)
        motion: RigidMotion = phi.carry(self.motion[place.link])
        return PlaceMotion(frame, phi.T @ self.V[place.link], motion)


@dataclass(frozen=True)
class RelativeMotion:
    """Frame b seen from frame a: R and p, b's twist V in its own axes, and the rates of R, p and V for v̇ = 0."""

    R: Mat3
    p: Vec
    V: Motion
    R_ddot: Mat3
    p_dot: Vec
    p_ddot: Vec
    V_dot: Motion

    @property
    def phi(self) -> Transform:
        """φ(a, b)."""
        return Transform.rigid(self.R, self.p)

    @property
    def R_dot(self) -> Mat3:
        """R ω~."""
        return self.R.times(Mat3.cross(self.V.ang))

    def displaced(self, twist: int, level: int) -> tuple[Mat3, Vec]:
        """R and p as dual numbers along a unit twist of b, at its origin and in the axes of a."""
        xi = Motion.unit(twist)
        return _dual_matrix(self.R, Mat3.cross(xi.ang).times(self.R), level), _dual_vec(self.p, xi.lin, level)

    def in_time(self, first: int, second: int) -> tuple[Mat3, Vec, Motion, Scalar]:
        """R, p, V and the time elapsed as dual numbers of two levels: two rates come along (one, for V)."""
        s = Dual(Dual(0.0, 1.0, first), 1.0, second)
        half = s * s * 0.5
        R = Mat3.build(lambda i, j: self.R.m[i][j] + s * self.R_dot.m[i][j] + half * self.R_ddot.m[i][j])
        p = Vec.of([x + s * v + half * a for x, v, a in zip(self.p, self.p_dot, self.p_ddot, strict=True)])
        V = Motion.of([x + s * a for x, a in zip(self.V, self.V_dot, strict=True)])
        return R, p, V, s


def relative_motion(a: PlaceMotion, b: PlaceMotion, *, joined: bool = False) -> RelativeMotion:
    """Of b as seen from a.

    ``joined``: the origins are to coincide, and p̈ is the difference of their accelerations in the inertial frame, in
    a's axes. That it vanishes says the same as that the second derivative of p does, without p and ṗ; off the closed
    configurations too, where it speaks of the distance in inertial axes instead of those of a.
    """
    R_a, R_b = a.frame.R, b.frame.R
    R = R_a.T.times(R_b)
    p = Vec.zero() if joined else R_a.transpose_times(b.frame.p - a.frame.p)
    omega_a = R.transpose_times(a.V.ang)  # in b's axes
    omega = b.V.ang - omega_a
    omega_dot = b.motion.omega_dot - R.transpose_times(a.motion.omega_dot) + omega.cross(omega_a)
    p_dot = Vec.zero() if joined else R @ b.V.lin - a.V.lin - a.V.ang.cross(p)
    p_ddot = R @ b.motion.a - a.motion.shifted(p).a - (a.V.ang * 2.0).cross(p_dot)
    lin = R.transpose_times(p_dot)
    V_dot = Motion(omega_dot, R.transpose_times(p_ddot) - omega.cross(lin))
    E = RigidMotion(omega, omega_dot, Vec.zero()).E
    return RelativeMotion(R, p, Motion(omega, lin), R.times(E), p_dot, p_ddot, V_dot)


def _dual_vec(x: Vec, tangent: Vec, level: int) -> Vec:
    return Vec.of([Dual(a, d, level) for a, d in zip(x, tangent, strict=True)])


def _dual_matrix(x: Mat3, tangent: Mat3, level: int) -> Mat3:
    return Mat3.build(lambda i, j: Dual(x.m[i][j], tangent.m[i][j], level))
