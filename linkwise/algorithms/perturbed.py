"""What a small change of the state does to forces and accelerations: δτ and δv̇ as vectors. O(n) each.

δτ = 𝓜 δv̇ + A_D δv + B_D δq is Newton and Euler's recursion with every step varied (001 algorithm 1; Murray and
Johnson). δv̇ = 𝓜⁻¹(δτ - A_D δv - B_D δq) is the innovations' solve with the same D, G as the forward dynamics itself
(001 algorithm 5): no mass matrix.

DIFFERS FROM PAPER: what is carried is the change of components in link frames. A joint that moves by D = S δq changes
the components of what crosses it: those of a motion V by -D×V outwards, those of a force f by D×*f inwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from linkwise.algorithms.articulated import articulate, solve
from linkwise.algorithms.forward_dynamics import forward_dynamics
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.joint_variation import tangent_direction
from linkwise.algorithms.mass_matrix import mass_factor
from linkwise.algorithms.rigid_motion import RigidMotion, at_rest, carried, combination, next_motion, wrench
from linkwise.algorithms.sweeps import each, generalized, inward, outward
from linkwise.model.tree import Link, Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Shift, Transform
from linkwise.spatial.vectors import Force, Motion, Vec

Flat = Sequence[Scalar]


class PerturbedInverse(NamedTuple):
    """τ (nv) and its change δτ (nv)."""

    tau: Any
    dtau: Any


class PerturbedForward(NamedTuple):
    """v̇ (nv) and its change δv̇ (nv)."""

    vdot: Any
    dvdot: Any


@dataclass(frozen=True, slots=True)
class _Varied:
    """How a link moves, and how that motion's components change."""

    motion: RigidMotion
    omega: Vec
    omega_dot: Vec
    a: Vec

    @property
    def E(self) -> Mat3:
        """The change of E = ω'~ + ω~ω~."""
        x, y, z = self.motion.omega
        dx, dy, dz = self.omega
        ax, ay, az = self.omega_dot
        xx, yy, zz = (x + x) * dx, (y + y) * dy, (z + z) * dz
        xy, xz, yz = x * dy + y * dx, x * dz + z * dx, y * dz + z * dy
        return Mat3(
            (
                (-(yy + zz), xy - az, xz + ay),
                (xy + az, -(xx + zz), yz - ax),
                (xz - ay, yz + ax, -(xx + yy)),
            )
        )


@dataclass(frozen=True, slots=True)
class _JointChange:
    """D = S δq, and the changes of S v and of Ṡv + S v̇ that come with it; ``dS`` is the change of each column."""

    D: Motion
    V: Motion
    A: Motion
    dS: tuple[Motion, ...]


def perturbed_inverse(
    tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dvdot: Flat | None, f_ext: Forces = None
) -> PerturbedInverse:
    """τ and δτ, nv numbers each; ``dvdot`` None means zero."""
    rest = at_rest(tree.gravity)
    root = _Varied(rest, Vec.zero(), Vec.zero(), Vec.zero())

    def vary(link: Link, parent: _Varied) -> _Varied:
        motion = next_motion(link, parent.motion, q, v, vdot)
        return _next_change(link, parent, motion, q, v, _joint_change(link, q, v, vdot, dq, dv, dvdot))

    varied = outward(tree, vary, root)

    def balance(link: Link, outboard: _Pair) -> tuple[_Pair, tuple[list[Scalar], list[Scalar]]]:
        own = wrench(link.inertia, varied[link].motion)
        f = outboard.f + (own if f_ext is None else own - f_ext[link])
        df = outboard.df + _linear_wrench(link.inertia, varied[link].E, varied[link].a)
        change = _joint_change(link, q, v, vdot, dq, dv, dvdot)
        S, phi = link.S(q), link.phi(q)
        tau = [s.dot(f) + J * x for s, J, x in zip(S, link.armature, link.rates(vdot), strict=True)]
        dtau = [s.dot(df) + ds.dot(f) for s, ds in zip(S, change.dS, strict=True)]
        if dvdot is not None:
            dtau = [t + J * x for t, J, x in zip(dtau, link.armature, link.rates(dvdot), strict=True)]
        return _Pair(phi @ f, phi @ (df + change.D.cross_force(f))), (tau, dtau)

    forces = inward(tree, balance, _Pair(Force.zero(), Force.zero()))
    return PerturbedInverse(*(generalized(tree, each(tree, lambda link, i=i: forces[link][i])) for i in range(2)))  # type: ignore[misc]


def perturbed_forward(
    tree: Tree, q: Flat, v: Flat, tau: Flat, dq: Flat, dv: Flat, dtau: Flat, f_ext: Forces = None
) -> PerturbedForward:
    """v̇ and δv̇, nv numbers each."""
    vdot = forward_dynamics(tree, q, v, tau, f_ext)
    moved = perturbed_inverse(tree, q, v, vdot, dq, dv, None, f_ext).dtau
    left = [a - b for a, b in zip(dtau, moved, strict=True)]
    if tree.has_mimics:
        return PerturbedForward(vdot, mass_factor(tree, q).solve(left))
    return PerturbedForward(vdot, solve(tree, q, articulate(tree, q), left, None))


class _Pair:
    """A force and its change."""

    __slots__ = ("df", "f")

    def __init__(self, f: Force, df: Force) -> None:
        self.f = f
        self.df = df

    def __add__(self, other: _Pair) -> _Pair:
        return _Pair(self.f + other.f, self.df + other.df)


def _joint_change(link: Link, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dvdot: Flat | None) -> _JointChange:
    """How the joint's own motion changes; for most types S is constant and most of this is zero."""
    joint, coordinates, rates = link.joint, link.coordinates(q), link.rates(v)
    S = link.S(q)
    direction: list[Scalar] = [0.0] * joint.nq
    for i, step in enumerate(link.rates(dq)):
        direction = [d + r * step for d, r in zip(direction, tangent_direction(link, q, i), strict=True)]
    _, flat = derivative(lambda x: [c for s in joint.subspace(x) for c in s], coordinates, direction)
    dS = tuple(link.tail.T @ Motion.of(flat[6 * j : 6 * j + 6]) for j in range(joint.nv))
    _, by_q = derivative(lambda x: list(joint.subspace_rate(x, rates)), coordinates, direction)
    _, by_v = derivative(lambda w: list(joint.subspace_rate(coordinates, w)), rates, link.rates(dv))
    rate_change = link.tail.T @ (Motion.of(by_q) + Motion.of(by_v))
    A = rate_change + combination(dS, link.rates(vdot))
    if dvdot is not None:
        A = A + combination(S, link.rates(dvdot))
    V = combination(S, link.rates(dv)) + combination(dS, rates)
    return _JointChange(combination(S, link.rates(dq)), V, A, dS)


def _next_change(link: Link, parent: _Varied, motion: RigidMotion, q: Flat, v: Flat, change: _JointChange) -> _Varied:
    """:func:`linkwise.algorithms.rigid_motion.next_motion`, varied."""
    phi = link.phi(q)
    moved = carried(phi, parent.motion)
    turn, slide = change.D.ang, change.D.lin
    omega, omega_dot, a = _carried_change(phi, parent)
    omega = omega - turn.cross(moved.omega)
    omega_dot = omega_dot - turn.cross(moved.omega_dot)
    a = a - turn.cross(moved.a)
    if not all(is_zero(x) for x in slide):
        a = a + moved.E @ slide
    V_J = combination(link.S(q), link.rates(v))
    whole = omega + change.V.ang
    return _Varied(
        motion,
        whole,
        omega_dot + change.A.ang + whole.cross(V_J.ang) + motion.omega.cross(change.V.ang),
        a + change.A.lin + (whole + omega).cross(V_J.lin) + (motion.omega + moved.omega).cross(change.V.lin),
    )


def _carried_change(phi: Transform, parent: _Varied) -> tuple[Vec, Vec, Vec]:
    """The change of the parent's motion, seen at the child's origin and in its axes."""
    motion, omega, omega_dot, a = parent.motion, parent.omega, parent.omega_dot, parent.a
    for factor in phi.factors:
        if isinstance(factor, Shift):
            if not all(is_zero(x) for x in factor.l):
                a = a + _Varied(motion, omega, omega_dot, a).E @ factor.l
        else:
            omega, omega_dot, a = (factor.rotate_back(x) for x in (omega, omega_dot, a))
        motion = carried(Transform(factor), motion)
    return omega, omega_dot, a


def _linear_wrench(M: RigidInertia, E: Mat3, a: Vec) -> Force:
    """:func:`linkwise.algorithms.rigid_motion.wrench`, which is linear in E and a."""
    e = E.m
    (Jxx, Jxy, Jxz), (_, Jyy, Jyz), (_, _, Jzz) = M.J.m
    Sxx, Syy, Szz = (Jyy + Jzz - Jxx) * 0.5, (Jxx + Jzz - Jyy) * 0.5, (Jxx + Jyy - Jzz) * 0.5
    N = Vec(
        Syy * e[2][1] - Szz * e[1][2] + Jxz * e[1][0] - Jxy * e[2][0] + Jyz * (e[1][1] - e[2][2]),
        Szz * e[0][2] - Sxx * e[2][0] + Jxy * e[2][1] - Jyz * e[0][1] + Jxz * (e[2][2] - e[0][0]),
        Sxx * e[1][0] - Syy * e[0][1] + Jyz * e[0][2] - Jxz * e[1][2] + Jxy * (e[0][0] - e[1][1]),
    )
    return Force(N + M.h.cross(a), a * M.m + E @ M.h)
