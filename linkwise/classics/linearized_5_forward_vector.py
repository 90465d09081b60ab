"""001 algorithm 5: the change δθ'' of the accelerations, without a mass matrix. O(n).

δθ'' = [I - HψK]*(D⁻¹{δT - Hψ[KδT + Y_A δθ' + Y_B δθ]} - 2K̂*φ*(H*δθ' + Ḣ*δθ)) - K*ψ*[2Ḣ*δθ' + Ḧ*δθ]  (4.15).
"""

from __future__ import annotations

from linkwise.classics.linearized_articulated import articulated
from linkwise.classics.linearized_terms import Flat, referred
from linkwise.mechanism.tree import Tree
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Force, Motion


def delta_acceleration(tree: Tree, q: Flat, v: Flat, vdot: Flat, dq: Flat, dv: Flat, dtau: Flat) -> list[Scalar]:
    """δθ'', n numbers, about the motion whose acceleration is ``vdot``."""
    links = referred(tree, q, v, vdot, "linearized_5")
    bodies = articulated(links)
    n = len(links)
    eps: list[Scalar] = [0.0] * n
    z_plus = Force.zero()
    for i in reversed(range(n)):  # (4.17)
        k, b = links[i], bodies[i]
        z = z_plus + b.Y_A * dv[i] + b.Y_B * dq[i]
        eps[i] = dtau[i] - k.H.dot(z)
        z_plus = z + b.G * eps[i]
    delta: list[Scalar] = []
    theta, alpha = Motion.zero(), Motion.zero()
    for i in range(n):  # (4.18)
        k, b = links[i], bodies[i]
        nu = eps[i] * b.d_inverse - (theta + theta).dot(b.G_hat)
        delta.append(nu - alpha.dot(b.G))
        alpha = alpha + k.H * delta[i] + k.H_dot * (dv[i] + dv[i]) + k.H_ddot * dq[i]
        theta = theta + k.H * dv[i] + k.H_dot * dq[i]
    return delta
