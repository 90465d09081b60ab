"""Inverse dynamics: the joint forces that a motion takes.

τ = H φ (M φ*(H*v̇ + a) + b), the recursive Newton–Euler algorithm (000 eq. 12; Luh, Walker and Paul). O(n).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.rigid_motion import RigidMotion, at_rest, next_motion, wrench
from linkwise.algorithms.sweeps import inward, outward
from linkwise.model.tree import Link, Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force

Forces = Sequence[Force] | None


def inverse_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], vdot: Sequence[Scalar] | None, f_ext: Forces = None
) -> list[Scalar]:
    """τ, nv numbers. ``f_ext``: external forces in link frames, one for each link."""
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, vdot), at_rest(tree.gravity))

    def balance(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        f = outboard + _inertial(link, motion[link], f_ext)
        return link.phi(q) @ f, [column.dot(f) for column in link.S(q)]

    tau = tree.generalized(inward(tree, balance, Force.zero()).values)
    return tau if vdot is None else _with_armature(tree, tau, vdot)


def _inertial(link: Link, motion: RigidMotion, f_ext: Forces) -> Force:
    f = wrench(link.inertia, motion)
    return f if f_ext is None else f - f_ext[link.index]


def _with_armature(tree: Tree, tau: list[Scalar], vdot: Sequence[Scalar]) -> list[Scalar]:
    """Rotors turn with the joint speed and feel nothing else."""
    rotor = [[J * x for J, x in zip(link.armature, link.rates(vdot), strict=True)] for link in tree]
    return [t + r for t, r in zip(tau, tree.generalized(rotor), strict=True)]


def bias_force(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], f_ext: Forces = None) -> list[Scalar]:
    """C(q, v) v + gravity - J*f_ext: the inverse dynamics of v̇ = 0."""
    return inverse_dynamics(tree, q, v, None, f_ext)


def gravity_force(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """∂U/∂q: the joint forces that hold the mechanism still."""
    return inverse_dynamics(tree, q, [0.0] * tree.nv, None)
