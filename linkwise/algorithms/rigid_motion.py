"""How a link moves: the outward half of inverse and forward dynamics.

Accelerations are those of Jain 1991 §2: α = [ω'; a], rates taken in the inertial frame, a that of the link's origin.
Then f = Mα + b with b = [ω~Jω; ω~ω~h], and no linear velocity is needed anywhere. Everything quadratic in ω goes
through E = ω'~ + ω~ω~, which serves the next origin (a + E l), the force (m a + E h) and the moment alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linkwise.mechanism.tree import Link
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat
from linkwise.spatial.vectors import Motion, Vec, weighted_sum


def at_rest(gravity: Vec) -> RigidMotion:
    """A base at rest in a field of gravity: the same as one accelerating upwards."""
    return RigidMotion(Vec.zero(), Vec.zero(), -gravity)


def next_motion(link: Link, parent: Any, q: Flat, v: Flat, vdot: Flat | None) -> Any:
    """α = φ*α(parent) + H*β' + a (Jain 1991 eq. 7), the joint's own motion put on top of the parent's.

    With ω_J, v_J the joint's motion in the child's frame, a is [ω × ω_J; (2ω - ω_J) × v_J] + Ṡv.
    ``vdot`` None means zero.
    """
    moved = link.phi(q).carry(parent)
    S = link.S(q)
    V_J = combination(S, link.rates(v))
    A_J = link.S_rate(q, v)
    if vdot is not None:
        A_J = A_J + combination(S, link.rates(vdot))
    omega = moved.omega + V_J.ang
    root = RigidMotion(
        omega,
        moved.omega_dot + A_J.ang + omega.cross(V_J.ang),
        moved.a + A_J.lin + (omega + moved.omega).cross(V_J.lin),
    )
    return link.moving(root, V_J, A_J)


def combination(S: Sequence[Motion], rates: Flat) -> Motion:
    """S v."""
    return weighted_sum(S, rates, Motion.zero())
