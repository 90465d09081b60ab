"""Articulated bodies in absolute and in link coordinates, Featherstone 2000 eq. 3, 4, 11-14. O(n).

Spatial accelerations, articulated inertias I^A and bias forces p^A. In absolute coordinates every quantity is about
one fixed point in fixed axes, so nothing is transformed but the links' own h and I; in link coordinates it is faster.

DIFFERS FROM PAPER: eq. 12 prints τ_i in the sum over the children j; it is τ_j. Trees, all joints.
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import Placed, combination
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.classics.requirements import no_mimics
from linkwise.classics.terms import Eliminated, base_acceleration, eliminate, spatial_terms
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar, minus
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion, Vec


@dataclass(frozen=True, slots=True)
class Absolute:
    """A link in the axes of the root, about its origin: h, I, velocity, c = ḣq̇ and p = v ×* Iv."""

    h: tuple[Motion, ...]
    I: RigidInertia
    v: Motion
    c: Motion
    p: Force


@dataclass(frozen=True)
class _ArticulatedBody:
    """I^A and p^A, or what a joint lets through of them."""

    I: ArticulatedInertia
    p: Force

    def __add__(self, other: _ArticulatedBody) -> _ArticulatedBody:
        return _ArticulatedBody(self.I + other.I, self.p + other.p)


_NOTHING = _ArticulatedBody(ArticulatedInertia.zero(), Force.zero())


def forward_dynamics_link_coordinates(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈ with every quantity in the coordinates of its link."""
    no_mimics(tree, "Featherstone")
    terms = spatial_terms(tree, q, v)

    def step(link: Link, outboard: _ArticulatedBody) -> tuple[_ArticulatedBody, _ArticulatedHandle]:
        own = _ArticulatedBody(link.inertia.articulated() + outboard.I, terms[link].p + outboard.p)
        handle = _handle(own, link, link.S(q), terms[link].c, tau)
        phi = link.phi(q)
        return _ArticulatedBody(phi.congruence(handle.through.I), phi @ handle.through.p), handle

    handles = inward(tree, step, _NOTHING)

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        return handles[link].accelerate(link.phi(q).T @ parent[0], terms[link].c)

    return tree.generalized(Field([x for _, x in outward(tree, accelerate, (base_acceleration(tree), [])).values]))


def forward_dynamics_absolute(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """q̈ with every quantity in absolute coordinates."""
    no_mimics(tree, "Featherstone")
    bodies = absolute(tree, q, v)

    def step(link: Link, outboard: _ArticulatedBody) -> tuple[_ArticulatedBody, _ArticulatedHandle]:
        body = bodies[link]
        own = _ArticulatedBody(body.I.articulated() + outboard.I, body.p + outboard.p)
        handle = _handle(own, link, body.h, body.c, tau)
        return handle.through, handle

    handles = inward(tree, step, _NOTHING)

    def accelerate(link: Link, parent: tuple[Motion, list[Scalar]]) -> tuple[Motion, list[Scalar]]:
        return handles[link].accelerate(parent[0], bodies[link].c)

    return tree.generalized(Field([x for _, x in outward(tree, accelerate, (base_acceleration(tree), [])).values]))


@dataclass(frozen=True, slots=True)
class _ArticulatedHandle:
    """A link as the handle of its articulated body: the joint eliminated, and (h*I^Ah)⁻¹(τ - h*p^α)."""

    joint: Eliminated
    nu: list[Scalar]
    through: _ArticulatedBody

    def accelerate(self, a_parent: Motion, c: Motion) -> tuple[Motion, list[Scalar]]:
        """q̈ (eq. 14) and a (eq. 4)."""
        qddot = minus(self.nu, self.joint.apply_G_star(a_parent))
        return a_parent + c + self.joint.H_star(qddot), qddot


def _handle(own: _ArticulatedBody, link: Link, h: tuple[Motion, ...], c: Motion, tau: Flat) -> _ArticulatedHandle:
    """One term of the sums in eq. 12, and p^α of eq. 13."""
    joint = eliminate(own.I, h, link.armature)
    p_alpha = own.p + own.I @ c
    u = minus(link.rates(tau), joint.H(p_alpha))
    through = _ArticulatedBody(joint.P_plus, p_alpha + joint.apply_G(u))
    return _ArticulatedHandle(joint, joint.apply_D_inverse(u), through)


def absolute(tree: Tree, q: Flat, v: Flat) -> Field[Absolute]:
    """Every link in absolute coordinates."""
    frames = outward(tree, lambda link, parent: link.phi(q).carry(parent), Placed(Mat3.identity(), Vec.zero()))

    def step(link: Link, parent: Absolute) -> Absolute:
        X = Transform.rigid(frames[link].R, frames[link].p)
        h = tuple(X.motion_to_parent(s) for s in link.S(q))
        joint = combination(h, link.rates(v))
        V = parent.v + joint
        c = V.cross(joint) + X.motion_to_parent(link.S_rate(q, v))
        inertia = X.congruence(link.inertia)
        return Absolute(h, inertia, V, c, V.cross_force(inertia @ V))

    nothing = Absolute((), RigidInertia.zero(), Motion.zero(), Motion.zero(), Force.zero())
    return outward(tree, step, replace(nothing))
