"""001 algorithm 1: the change δT of the joint forces, for changes δθ, δθ', δθ''. O(n).

δT = Hφ(Mφ*{H*δθ'' + 2Ḣ*δθ' + Ḧ*δθ} + 2M̂φ*{H*δθ' + Ḣ*δθ} + H̃f δθ)  (3.3).

DIFFERS FROM PAPER: (3.3) and (3.5) have lost the 2 before M̂ and the δθ behind H̃f, which lemma 3.1 has.
"""

from __future__ import annotations

from linkwise.classics.linearized_terms import Flat, outboard_forces, referred, tilde_H_f
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion


def delta_torque(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dvdot: Flat | None) -> list[Scalar]:
    """δT, n numbers; ``dvdot`` None means zero."""
    links = referred(tree, q, v, vdot, "linearized_1")
    # (3.4): base to tip
    zeta, theta = Motion.zero(), Motion.zero()
    moved: list[tuple[Motion, Motion]] = []
    for i, k in enumerate(links):
        if dvdot is not None:
            zeta = zeta + k.H * dvdot[i]
        zeta = zeta + k.H_dot * (dv[i] + dv[i]) + k.H_ddot * dq[i]
        theta = theta + k.H * dv[i] + k.H_dot * dq[i]
        moved.append((zeta, theta + theta))
    # (3.5): tip to base
    f = outboard_forces(links)
    lam = Force.zero()
    delta: list[Scalar] = [0.0] * len(links)
    for i in reversed(range(len(links))):
        k, (zeta, twice_theta) = links[i], moved[i]
        lam = lam + k.M @ zeta + k.M_hat @ twice_theta + tilde_H_f(k, f[i]) * dq[i]
        delta[i] = k.H.dot(lam)
    return delta
