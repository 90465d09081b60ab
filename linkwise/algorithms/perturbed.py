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

from linkwise.algorithms.differentiated import inverse_along_q, inverse_along_v
from linkwise.algorithms.forward_dynamics import forward_dynamics, mass_solve
from linkwise.algorithms.inverse_dynamics import Forces, inverse_dynamics, mass_product
from linkwise.algorithms.joint_variation import tangent_direction
from linkwise.algorithms.rigid_motion import at_rest, combination, next_motion
from linkwise.algorithms.sweeps import each, elementwise, generalized, inward, outward
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Scalar, Value, is_zero
from linkwise.spatial.transforms import Factor
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
        xx, yy, zz = self._squares
        xy, xz, yz = x * dy + y * dx, x * dz + z * dx, y * dz + z * dy
        return Mat3(
            (
                (-(yy + zz), xy - az, xz + ay),
                (xy + az, -(xx + zz), yz - ax),
                (xz - ay, yz + ax, -(xx + yy)),
            )
        )

    @property
    def _squares(self) -> Vec:
        """The changes of x², y², z² of ω."""
        x, y, z = self.motion.omega
        return Vec((x + x) * self.omega.x, (y + y) * self.omega.y, (z + z) * self.omega.z)

    @property
    def deviations(self) -> Vec:
        """E_yy - E_zz, E_zz - E_xx, E_xx - E_yy, of the change of E."""
        xx, yy, zz = self._squares
        return Vec(yy - zz, zz - xx, xx - yy)

    def shifted(self, l: Vec) -> _Varied:
        """At the point l of the same rigid body."""
        a = self.a if all(is_zero(x) for x in l) else self.a + self.E @ l
        return _Varied(self.motion.shifted(l), self.omega, self.omega_dot, a)

    def turned(self, factor: Factor) -> _Varied:
        """In the child side's axes."""
        return _Varied(
            self.motion.turned(factor), *(factor.rotate_back(x) for x in (self.omega, self.omega_dot, self.a))
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
    if tree.has_modes:
        return _through_the_text(tree, q, v, vdot, dq, dv, dvdot, f_ext)
    rest = at_rest(tree.gravity)
    root = _Varied(rest, Vec.zero(), Vec.zero(), Vec.zero())

    def vary(link: Link, parent: _Varied) -> _Varied:
        motion = next_motion(link, parent.motion, q, v, vdot)
        return _next_change(link, parent, motion, q, v, _joint_change(link, q, v, vdot, dq, dv, dvdot))

    varied = outward(tree, vary, root)

    def balance(link: Link, outboard: _Pair) -> tuple[_Pair, tuple[list[Scalar], list[Scalar]]]:
        own = link.inertia.wrench(varied[link].motion)
        f = outboard.f + (own if f_ext is None else own - f_ext[link])
        df = outboard.df + link.inertia.wrench(varied[link])
        change = _joint_change(link, q, v, vdot, dq, dv, dvdot)
        S, phi = link.S(q), link.phi(q)
        tau = [s.dot(f) + J * x for s, J, x in zip(S, link.armature, link.rates(vdot), strict=True)]
        dtau = [s.dot(df) + ds.dot(f) for s, ds in zip(S, change.dS, strict=True)]
        if dvdot is not None:
            dtau = [t + J * x for t, J, x in zip(dtau, link.armature, link.rates(dvdot), strict=True)]
        return _Pair(phi @ f, phi @ (df + change.D.cross_force(f))), (tau, dtau)

    forces = inward(tree, balance, _Pair(Force.zero(), Force.zero()))
    return PerturbedInverse(*(generalized(tree, each(tree, lambda link, i=i: forces[link][i])) for i in range(2)))  # type: ignore[misc]


def _through_the_text(
    tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dvdot: Flat | None, f_ext: Forces
) -> PerturbedInverse:
    """The same for links that deform."""
    parts = [inverse_along_q(tree, q, v, vdot, dq, f_ext), inverse_along_v(tree, q, v, dv)]
    if dvdot is not None:
        parts.append(mass_product(tree, q, dvdot))
    change = elementwise(tree, lambda *numbers: sum(numbers[1:], numbers[0]), *parts)
    return PerturbedInverse(inverse_dynamics(tree, q, v, vdot, f_ext), change)


def perturbed_forward(
    tree: Tree, q: Flat, v: Flat, tau: Flat, dq: Flat, dv: Flat, dtau: Flat, f_ext: Forces = None
) -> PerturbedForward:
    """v̇ and δv̇, nv numbers each."""
    vdot = forward_dynamics(tree, q, v, tau, f_ext)
    return PerturbedForward(vdot, perturbed_accelerations(tree, q, v, vdot, dq, dv, dtau, f_ext))


def perturbed_accelerations(
    tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dtau: Flat, f_ext: Forces = None
) -> list[Scalar]:
    """δv̇ (nv) about a known v̇."""
    moved = perturbed_inverse(tree, q, v, vdot, dq, dv, None, f_ext).dtau
    return mass_solve(tree, q, elementwise(tree, lambda a, b: a - b, dtau, moved))


class _Pair(Value):
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
    beyond: _Varied = link.phi(q).carry(parent)
    moved = beyond.motion
    turn, slide = change.D.ang, change.D.lin
    omega = beyond.omega - turn.cross(moved.omega)
    omega_dot = beyond.omega_dot - turn.cross(moved.omega_dot)
    a = beyond.a - turn.cross(moved.a)
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
