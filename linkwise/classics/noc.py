"""The natural orthogonal complement (Angeles and Lee 1988): t = Nθ̇, I = N*MN. Saha 1999 eq. 6-20. O(n³).

The Newton-Euler equations of the separate bodies, Mṫ + Ṁt = w, meet the constraints through N, whose columns are the
twists that unit joint rates give: N*w_constraint = 0. Twists are of the mass centres, in the axes of the root.
Trees, all joints, without mimics.

DIFFERS FROM PAPER: N has a column for each freedom of a joint where Saha 1999 has one for each joint.
"""

from __future__ import annotations

from linkwise.algorithms.sweeps import Field, each, outward
from linkwise.classics.dense import solve_cholesky
from linkwise.classics.requirements import fixed_axes, no_mimics
from linkwise.classics.terms import CentredBody, in_root_axes
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Motion, Vec

Columns = list[dict[int, Motion]]  # for each freedom, the twist of every body it moves


def orthogonal_complement(tree: Tree, bodies: Field[CentredBody]) -> Columns:
    """N by columns: block (i, j) is B(i, k) p_j for the freedom j of the joint k inboard of body i."""
    N: Columns = [{} for _ in range(tree.nv)]
    for link in tree:
        here = bodies[link]
        for inner in tree.ancestors(link):
            for i, p in enumerate(bodies[inner].p, start=inner.v_start):
                N[i][link.index] = p if inner is link else here.twist_from(bodies[inner], p)
    return N


def as_matrix(N: Columns, n_bodies: int) -> Matrix:
    """N, 6n × nv."""
    blocks = [[column.get(i, Motion.zero()) for column in N] for i in range(n_bodies)]
    return [[entry[r] for entry in row] for row in blocks for r in range(6)]


def mass_matrix(tree: Tree, q: Flat) -> Matrix:
    """I = N*MN (Saha 1999 eq. 20)."""
    no_mimics(tree, "NOC")
    bodies = in_root_axes(tree, q, [0.0] * tree.nv, "NOC")
    return _inertia_matrix(tree, orthogonal_complement(tree, bodies), bodies)


def forward_dynamics(tree: Tree, q: Flat, v: Flat, tau: Flat) -> list[Scalar]:
    """θ̈ from I θ̈ = τ - N*(MṄθ̇ + Ṁt) (Saha 1999 eq. 20) by Cholesky's method."""
    no_mimics(tree, "NOC")
    fixed_axes(tree, "NOC")
    bodies = in_root_axes(tree, q, v, "NOC")
    N = orthogonal_complement(tree, bodies)
    convective = _convective(tree, v, bodies)
    rest = []
    for torque, column in zip(tau, N, strict=True):
        for i, t in column.items():
            torque = torque - t.dot(convective.values[i])
        rest.append(torque)
    return solve_cholesky(_inertia_matrix(tree, N, bodies), rest)


def _inertia_matrix(tree: Tree, N: Columns, bodies: Field[CentredBody]) -> Matrix:
    I = zeros(tree.nv, tree.nv)
    for j, column in enumerate(N):
        momenta = {i: bodies.values[i].M @ t for i, t in column.items()}
        for k in range(j + 1):
            for i, momentum in momenta.items():
                if i in N[k]:
                    I[k][j] = I[k][j] + N[k][i].dot(momentum)
            I[j][k] = I[k][j]
    for link in tree:
        for i, J in enumerate(link.armature, start=link.v_start):
            I[i][i] = I[i][i] + J
    return I


def _convective(tree: Tree, v: Flat, bodies: Field[CentredBody]) -> Field[Force]:
    """Mṫ + Ṁt of every body when θ̈ = 0: ṫ = Ṅθ̇, the base accelerating upwards (Saha 1999 eq. 32)."""

    def rate(link: Link, parent: tuple[CentredBody, Motion] | None) -> tuple[CentredBody, Motion]:
        here = bodies[link]
        spin = here.t.ang
        if parent is None:
            t_dot = Motion(Vec.zero(), -tree.gravity)
        else:
            before, t_dot_before = parent
            # ṫ = Bṫ + Ḃt: the lever c turns with the velocities of the two centres
            t_dot = here.twist_from(before, t_dot_before)
            t_dot = Motion(t_dot.ang, t_dot.lin + (before.t.lin - here.t.lin).cross(before.t.ang))
        for p, x in zip(here.p, link.rates(v), strict=True):
            t_dot = t_dot + Motion(spin.cross(p.ang), spin.cross(p.lin)) * x
        return here, t_dot

    rates = outward(tree, rate, None)

    def force(link: Link) -> Force:
        t_dot: Motion = rates[link][1]
        M, w = bodies[link].M, bodies[link].t.ang
        return M @ t_dot + Force(w.cross(M.J @ w), Vec.zero())

    return each(tree, force)
