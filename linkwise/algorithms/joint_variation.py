"""How the motion of a link varies with its own joint: the columns that every linearised model is made of.

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
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from linkwise.algorithms.kinematics import combination
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link
from linkwise.spatial.dual import derivative
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Scalar, is_zero
from linkwise.spatial.vectors import Motion, Vec


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
    """How the joint's coordinates change along its i-th axis."""
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
