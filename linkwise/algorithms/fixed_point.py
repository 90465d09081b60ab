"""Links referred to one inertial point: there φ has identities for blocks, and what crosses joints is plain sums.

Jain 1993 §2. The point, its velocity and the axes are those of the root link's frame at this instant, so that its joint
axes are coordinate directions, and neither its place nor its speed costs digits. V(k) = V(p) + H*v,
α(k) = α(p) + H*v̇ + ½Θv; and a joint of several freedoms is a chain of axes of one freedom each, which costs nothing.

DIFFERS FROM PAPER: for trees and joints of every type; see :mod:`linkwise.algorithms.joint_variation` for Θ, Ψ', Ψ''.
"""

from __future__ import annotations

from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.joint_variation import AxisVariation, RelativeVariation, relative_variation
from linkwise.algorithms.kinematics import Placed, combination
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Flat, Scalar, plus
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, slots=True)
class Velocities:
    """One link about the point: where it is, how fast it moves, and the parts of its axes that no v̇ enters."""

    frame: Placed
    V: Motion
    V_parent: Motion
    joint: RelativeVariation
    turning: tuple[Motion, ...]
    """V×η of each axis, V the link's own, or the parent's where the axes do not commute."""
    theta: tuple[Motion, ...]

    @property
    def psi_dot(self) -> list[Motion]:
        """Ψ' of each axis."""
        return plus(self.turning, self.joint.e)

    def bias(self, rates: Flat) -> Motion:
        """a = ½Θv: what the joint adds to the acceleration while v̇ is zero."""
        return combination(self.theta, [rate * 0.5 for rate in rates])


@dataclass(frozen=True, slots=True)
class HeldLink:
    """One link about the point: M, M̂ = [[A, 0], [-c~, 0]] by its two parts, and the force b = M̂V = ṀV."""

    M: RigidInertia
    A: Mat3
    c: Vec
    b: Force

    @classmethod
    def moving(cls, M: RigidInertia, V: Motion) -> HeldLink:
        """A = ω~(J - ½ tr(J) 1) - h~u~ and c = m u + ω×h (Jain 1993 algorithm 1, its sign mended), V = (ω, u)."""
        h, u = M.h, V.lin
        half = (M.J.m[0][0] + M.J.m[1][1] + M.J.m[2][2]) * 0.5
        less = Sym3.build_symmetric(lambda i, j: M.J.m[i][j] - half if i == j else M.J.m[i][j])
        turning = [V.ang.cross(less.column(j)) for j in range(3)]
        along = [u[i] * h[i] for i in range(3)]

        def entry(i: int, j: int) -> Scalar:
            rest = along[(i + 1) % 3] + along[(i + 2) % 3] if i == j else -(u[i] * h[j])
            return turning[j][i] + rest

        A = Mat3.build(entry)
        c = u * M.m + V.ang.cross(h)
        return cls(M, A, c, Force(A @ V.ang, V.ang.cross(c)))


def velocities(link: Link, parent: Velocities | None, q: Flat, v: Flat) -> Velocities:
    """Frame, V, V×η and Θ = (V(p) + V(k))×η + ∂c/∂v of a link; ``parent`` None is the base."""
    frame = _ORIGIN if parent is None else link.phi(q).carry(parent.frame)
    joint = relative_variation(link, q, v).seen(lambda motion: _carried(motion, frame))
    V_J = combination(joint.S, link.rates(v))
    V_parent = Motion(Vec.zero(), -V_J.lin) if parent is None else parent.V
    V = Motion(V_J.ang, Vec.zero()) if parent is None else parent.V + V_J
    turning = tuple((V if joint.commuting else V_parent).cross(eta) for eta in joint.S)
    beyond = turning if joint.commuting else tuple(V.cross(eta) for eta in joint.S)
    theta = tuple(a + b + dc for a, b, dc in zip(turning, beyond, joint.dc_dv, strict=True))
    return Velocities(frame, V, V_parent, joint, turning, theta)


_ORIGIN = Placed(Mat3.identity(), Vec.zero())


def _carried(motion: Motion, frame: Placed) -> Motion:
    """A motion of a link's frame as one about the point."""
    ang = frame.R @ motion.ang
    return Motion(ang, frame.R @ motion.lin + frame.p.cross(ang))


def held_link(link: Link, here: Velocities, f_ext: Forces = None) -> HeldLink:
    """M, M̂ and b of a link; an external force is taken off b."""
    phi = Transform.rigid(here.frame.R, here.frame.p)
    body = HeldLink.moving(phi.congruence(link.inertia), here.V)
    return body if f_ext is None else replace(body, b=body.b - phi @ f_ext[link])


def base_acceleration(tree: Tree, link: Link, q: Flat) -> Motion:
    """α of the base, -g, seen from the frame of a link that sits on it."""
    seen: Motion = link.phi(q).T @ Motion(Vec.zero(), -tree.gravity)
    return seen


def axis_variations(
    link: Link, here: Velocities, parent: Motion, v: Flat, vdot: Flat | None
) -> tuple[Motion, tuple[AxisVariation, ...]]:
    """α of a link, from its parent's; and η, Θ, Ψ', Ψ'' = α×η + V×(V×η) + (V(p) + V(k))×e + e' + ∂c/∂q of its axes."""
    joint = here.joint
    alpha = parent + here.bias(link.rates(v))
    if vdot is not None:
        alpha = alpha + combination(joint.S, link.rates(vdot))
    V, before = (here.V, alpha) if joint.commuting else (here.V_parent, parent)
    axes = []
    e_dot = joint.e_dot(link, vdot)
    for i, (eta, psi_dot) in enumerate(zip(joint.S, here.psi_dot, strict=True)):
        psi_ddot = before.cross(eta) + V.cross(here.turning[i])
        psi_ddot = psi_ddot + (V + here.V).cross(joint.e[i]) + e_dot[i] + joint.dc_dq[i]
        axes.append(AxisVariation(eta, here.theta[i], psi_dot, psi_ddot, joint.dS[i]))
    return alpha, tuple(axes)
