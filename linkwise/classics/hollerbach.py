"""Hollerbach's Lagrangian recursion with 3×3 matrices (1980), named in Saha 1999 table 1. O(n).

With W_i the rotation from link i to the base, n_i = m_i times the mass centre, and J_i = ∫ρρ* the pseudo-inertia:

    base to tip:  W_i = W_{i-1}A_i, with Ẇ and Ẅ;  p̈_i = p̈_{i-1} + Ẅ_{i-1}l_i
    tip to base:  e_i = e_{i+1} + m_i p̈_i + Ẅ_i n_i,
                  D_i = A_{i+1}D_{i+1} + l_{i+1}e_{i+1}* + n_i p̈_i* + J_i Ẅ_i*
    T_i = tr(∂W_i/∂q_i D_i).

Gravity enters as an acceleration of the base. Serial chains of hinges. Every quantity stays a matrix, and that is its
price: three to four times the operations of Newton and Euler's recursion.
"""

from __future__ import annotations

from linkwise.classics.requirements import joint_types, no_mimics, serial
from linkwise.joints import Revolute
from linkwise.mechanism.tree import Tree
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.vectors import Vec


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T, from the trace form of Lagrange's equations (Saha 1999 table 1, its first row)."""
    no_mimics(tree, "hollerbach")
    serial(tree, "hollerbach")
    joint_types(tree, "hollerbach", [Revolute])
    W, W_dot, W_ddot = Mat3.identity(), Mat3.zero(), Mat3.zero()
    p_ddot = -tree.gravity
    links = []
    for link in tree:
        A, l = link.phi(q).matrix()
        (s,), (rate,), (acceleration,) = link.S(q), link.rates(v), link.rates(vdot)
        p_ddot = p_ddot + W_ddot @ l
        U = Mat3.cross(s.ang)  # ∂A/∂q = A s~
        along, twice = A.times(U), A.times(U.times(U))
        A_ddot = twice * (rate * rate) + along * acceleration
        W_ddot = W_ddot.times(A) + W_dot.times(along) * (rate + rate) + W.times(A_ddot)
        W_dot = W_dot.times(A) + W.times(along) * rate
        W = W.times(A)
        links.append((A, l, W.times(U), W_ddot, p_ddot))
    e, D = Vec.zero(), Mat3.zero()
    T: list[Scalar] = []
    for link, (A, l, dW, W_ddot, p_ddot) in zip(reversed(tree.links), reversed(links), strict=True):
        m, n, J = link.inertia.m, link.inertia.h, link.inertia.J
        e = e + p_ddot * m + W_ddot @ n
        D = D + _outer(n, p_ddot) + _pseudo_inertia(J).times(W_ddot.T)
        armature = link.armature[0] * link.rates(vdot)[0]
        T.append(_trace_of_product(dW, D) + armature)
        D = A.times(D) + _outer(l, e)
    return T[::-1]


def _pseudo_inertia(J: Mat3) -> Mat3:
    """½ tr(J) 1 - J: the second moments of mass ∫rr* behind a rotational inertia."""
    half = (J.m[0][0] + J.m[1][1] + J.m[2][2]) * 0.5
    return Mat3.build(lambda i, j: half - J.m[i][j] if i == j else -J.m[i][j])


def _outer(a: Vec, b: Vec) -> Mat3:
    return Mat3.build(lambda i, j: a[i] * b[j])


def _trace_of_product(A: Mat3, B: Mat3) -> Scalar:
    total: Scalar = 0.0
    for i in range(3):
        for j in range(3):
            total = total + A.m[i][j] * B.m[j][i]
    return total
