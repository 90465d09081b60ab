"""The force that goes through each joint: what the inward sweep of inverse dynamics hands on, before it is projected.

f = φ(Mα + b - f_ext), of which τ = Hf is what the joint's own axes feel (Jain 1991 eq. 12). O(n). Needs each body's own
inertia: regrouped ones give the same τ, but not the same f.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.sweeps import inward, per_body
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force


def joint_wrenches(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], vdot: Sequence[Scalar], f_ext: Forces = None
) -> list[list[Scalar]]:
    """[moment, force] exerted on each body through its joint, at the body's origin and in its axes."""
    needed = needed_forces(tree, q, v, vdot, f_ext)

    def gather(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        f = outboard + needed[link]
        _, l = link.to_body.matrix()
        moment = f.ang - l.cross(f.lin)
        return link.phi(q) @ f, [*link.to_body.rotate_back(moment), *link.to_body.rotate_back(f.lin)]

    return per_body(tree, inward(tree, gather, Force.zero()), (6,))
