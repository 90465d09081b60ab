"""Inverse dynamics: the joint forces that a motion takes.

τ = H φ (M φ*(H*v̇ + a) + b), the recursive Newton–Euler algorithm (Jain 1991 eq. 12; Luh, Walker and Paul). O(n).
"""

from __future__ import annotations

from linkwise.algorithms.kinematics import at_rest, next_motion
from linkwise.algorithms.sweeps import Field, generalized, inward, outward, per_body
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import NO_FORCE, Force

Forces = Field[Force] | None


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat | None, f_ext: Forces = None) -> list[Scalar]:
    """τ, nv numbers. ``f_ext``: external forces in link frames. ``vdot`` None means zero."""
    needed = needed_forces(tree, q, v, vdot, f_ext)

    def balance(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        f = outboard + needed[link]
        tau = [column.dot(f) for column in link.S(q)]
        if vdot is not None:  # rotors turn with the joint and feel nothing else
            tau = [t + J * x for t, J, x in zip(tau, link.armature, link.rates(vdot), strict=True)]
        return link.phi(q) @ f, tau

    return generalized(tree, inward(tree, balance, Force.zero()))


def needed_forces(
    tree: Tree,
    q: Flat,
    v: Flat,
    vdot: Flat | None,
    f_ext: Forces = None,
    base: RigidMotion | None = None,
) -> Field[Force]:
    """Mα + b - f_ext for every link: the force its own motion takes. ``base``: how the base moves, if not at rest."""

    def move(link: Link, parent: RigidMotion) -> tuple[RigidMotion, Force]:
        motion = next_motion(link, parent, q, v, vdot)
        f = link.wrench(q, motion)
        return motion, f if f_ext is None else f - f_ext[link]

    return outward(tree, move, at_rest(tree.gravity) if base is None else base, keeps=True)


def bias_force(tree: Tree, q: Flat, v: Flat, f_ext: Forces = None) -> list[Scalar]:
    """C(q, v) v + gravity - J*f_ext: the inverse dynamics of v̇ = 0."""
    return inverse_dynamics(tree, q, v, None, f_ext)


def gravity_force(tree: Tree, q: Flat) -> list[Scalar]:
    """∂U/∂q: the joint forces that hold the mechanism still."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, None)


def external_force(tree: Tree, q: Flat, f_ext: Field[Force]) -> list[Scalar]:
    """J*f: the joint forces that external forces amount to, Hφf (nv)."""

    def gather(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        f = outboard + f_ext[link]
        if f is NO_FORCE:
            return f, [0.0] * link.joint.nv
        return link.phi(q) @ f, [column.dot(f) for column in link.S(q)]

    return generalized(tree, inward(tree, gather, Force.zero()))


def mass_product(tree: Tree, q: Flat, x: Flat) -> list[Scalar]:
    """𝓜(q) x without the matrix: the inverse dynamics of the acceleration x, at rest and without gravity. O(n)."""
    return inverse_dynamics(tree.without_gravity(), q, [0.0] * tree.nv, x)


def joint_wrenches(tree: Tree, q: Flat, v: Flat, vdot: Flat, f_ext: Forces = None) -> Matrix:
    """[moment, force] exerted on each body through its joint, at the body's origin and in its axes. O(n).

    f = φ(Mα + b - f_ext), what the inward sweep hands on before it is projected; τ = Hf is what the joint's own axes
    feel (Jain 1991 eq. 12). Needs each body's own inertia: regrouped ones give the same τ, but not the same f.
    """
    needed = needed_forces(tree, q, v, vdot, f_ext)

    def gather(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        f = outboard + needed[link]
        _, l = link.to_body.matrix()
        moment = f.ang - l.cross(f.lin)
        return link.phi(q) @ f, [*link.to_body.rotate_back(moment), *link.to_body.rotate_back(f.lin)]

    return per_body(tree, inward(tree, gather, Force.zero()), (6,))
