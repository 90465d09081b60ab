"""Links in linearised models: how their motion varies with their own joints, and links referred to one point.

Moving a joint by δq along its axis η displaces all that is outboard rigidly by the twist η δq. What is left, once that
rigid displacement is taken off, is the same for every outboard link m (Jain 1993 (2.13), (A.6), for any joint):

    ∂V(m)/∂v = η         ∂α(m)/∂v + V(m)×η = Θ
    ∂V(m)/∂q + V(m)×η = Ψ'        ∂α(m)/∂q + α(m)×η + V(m)×Ψ' = Ψ''

For one hinge Θ = 2Ḣ, Ψ' = Ḣ and Ψ'' = Ḧ of the paper. In general, with p the parent, k the link, S(q) the joint's map,
c = Ṡv, and e = (∂S/∂q) v, e' = (∂S/∂q) v̇ along the axis in question:

    Θ   = (V(p) + V(k))×η + ∂c/∂v
    Ψ'  = V(p)×η + e
    Ψ'' = α(p)×η + V(p)×(V(p)×η) + (V(p) + V(k))×e + e' + ∂c/∂q

DIFFERS FROM PAPER: the paper refers all to one inertially fixed point. Here every link has an inertial frame of its own
that at this instant moves with its origin, so that no linear velocity is needed: V = [ω; 0] and α = [ω'; a], those of
:mod:`linkwise.algorithms.kinematics`. Where the axes of a joint do not commute, that frame moves instead with
the point of the parent there, so that V(p) = [ω(p); 0]; otherwise V(k) may stand for V(p).

Referred to one inertial point (Jain 1993 §2), φ has identities for blocks, and what crosses joints is plain sums. The
point, its velocity and the axes are those of the root link's frame at this instant, so that its joint axes are
coordinate directions, and neither its place nor its speed costs digits. V(k) = V(p) + H*v, α(k) = α(p) + H*v̇ + ½Θv;
and a joint of several freedoms is a chain of axes of one freedom each, which costs nothing.

DIFFERS FROM PAPER: for trees and joints of every type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.kinematics import Placed, combination
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar, is_zero, plus
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, slots=True)
class AxisVariation:
    """η, Θ, Ψ', Ψ'' of one joint axis, and the columns ∂S/∂q along it, in the link's frame."""

    eta: Motion
    theta: Motion
    psi_dot: Motion
    psi_ddot: Motion
    dS: tuple[Motion, ...]


@dataclass(frozen=True, slots=True)
class JointVariation:
    """The axes of one joint, and the velocity of the link's origin in the frame they are meant in."""

    axes: tuple[AxisVariation, ...]
    speed_within: Vec
    """Zero where the frame moves with the link's origin."""
    speed_beyond: Vec
    """Velocity of that frame as seen from the point of the parent at this origin."""


@dataclass(frozen=True, slots=True)
class RelativeVariation:
    """One joint by itself: S, ∂S/∂q, e and the derivatives of c = Ṡv along its axes; motions in one frame."""

    S: tuple[Motion, ...]
    dS: tuple[tuple[Motion, ...], ...]
    e: tuple[Motion, ...]
    dc_dq: tuple[Motion, ...]
    dc_dv: tuple[Motion, ...]
    commuting: bool
    """Whether V(k)×η = V(p)×η for all axes, so that V(k) may take the place of V(p)."""

    def e_dot(self, link: Link, vdot: Flat | None) -> tuple[Motion, ...]:
        """e' of each axis; ``vdot`` None means zero."""
        if vdot is None:
            return (Motion.zero(),) * len(self.S)
        return tuple(combination(row, link.rates(vdot)) for row in self.dS)

    def seen(self, carry: Callable[[Motion], Motion]) -> RelativeVariation:
        """The same in another frame, which ``carry`` takes motions to."""
        S, e, dc_dq, dc_dv = (tuple(map(carry, row)) for row in (self.S, self.e, self.dc_dq, self.dc_dv))
        dS = tuple(tuple(map(carry, row)) for row in self.dS)
        return RelativeVariation(S, dS, e, dc_dq, dc_dv, self.commuting)


def relative_variation(link: Link, q: Flat, v: Flat) -> RelativeVariation:
    """Variation of a link's joint by itself, in the link's frame."""
    S = link.S(q)
    dS = tuple(_derivative_of_S(link, q, i) for i in range(len(S)))
    e = tuple(combination(row, link.rates(v)) for row in dS)
    by_q, by_v = [], []
    for i in range(len(S)):
        dc_dq, dc_dv = _derivatives_of_rate(link, q, v, i)
        by_q.append(dc_dq)
        by_v.append(dc_dv)
    return RelativeVariation(S, dS, e, tuple(by_q), tuple(by_v), _commute(S, dS))


def joint_variation(
    link: Link,
    q: Flat,
    v: Flat,
    vdot: Flat | None,
    parent: RigidMotion,
    motion: RigidMotion,
) -> JointVariation:
    """All columns of one joint; ``parent`` and ``motion`` are how the parent and the link move."""
    own = relative_variation(link, q, v)
    v_J = combination(own.S, link.rates(v)).lin
    base = motion if own.commuting else link.phi(q).carry(parent)
    V_base = Motion(base.omega, Vec.zero())
    V_both = V_base + Motion(motion.omega, Vec.zero() if own.commuting else v_J)
    e_dot = own.e_dot(link, vdot)
    axes = []
    for i, eta in enumerate(own.S):
        e = own.e[i]
        psi_ddot = Motion(base.E @ eta.ang, base.a.cross(eta.ang) + base.E @ eta.lin) + V_both.cross(e) + own.dc_dq[i]
        theta = V_both.cross(eta) + own.dc_dv[i]
        axes.append(AxisVariation(eta, theta, V_base.cross(eta) + e, psi_ddot + e_dot[i], own.dS[i]))
    still = Vec.zero()
    return JointVariation(tuple(axes), still if own.commuting else v_J, v_J if own.commuting else still)


def _commute(S: Sequence[Motion], dS: Sequence[Sequence[Motion]]) -> bool:
    """Whether V(k)×η = V(p)×η for all axes, and V(k) may take the place of V(p)."""
    if len(S) <= 1:
        return True
    brackets = [a.cross(b) for i, a in enumerate(S) for b in S[:i]]
    return all(is_zero(x) for motion in (*brackets, *(m for row in dS for m in row)) for x in motion)


def tangent_direction(link: Link, q: Flat, i: int) -> tuple[Scalar, ...]:
    """Change of the joint's coordinates along its i-th axis."""
    unit = [1.0 if i == j else 0.0 for j in range(link.joint.nv)]
    return link.joint.rate(link.coordinates(q), unit)


def _derivative_of_S(link: Link, q: Flat, i: int) -> tuple[Motion, ...]:
    """∂S/∂q along the i-th axis, by columns; zero for all but a few joint types."""
    n = link.joint.nv
    coordinates = link.coordinates(q)
    _, flat = derivative(
        lambda x: [c for s in link.joint.subspace(x) for c in s], coordinates, tangent_direction(link, q, i)
    )
    return tuple(link.tail.T @ Motion.of(flat[6 * j : 6 * j + 6]) for j in range(n))


def _derivatives_of_rate(link: Link, q: Flat, v: Flat, i: int) -> tuple[Motion, Motion]:
    """∂(Ṡv)/∂q and ∂(Ṡv)/∂v along the i-th axis."""
    joint, coordinates, rates = link.joint, link.coordinates(q), link.rates(v)
    unit = [1.0 if i == j else 0.0 for j in range(joint.nv)]
    _, by_q = derivative(lambda x: list(joint.subspace_rate(x, rates)), coordinates, tangent_direction(link, q, i))
    _, by_v = derivative(lambda w: list(joint.subspace_rate(coordinates, w)), rates, unit)
    return link.tail.T @ Motion.of(by_q), link.tail.T @ Motion.of(by_v)


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
