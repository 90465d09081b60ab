"""A Coriolis matrix with 𝓜̇ - 2C skew, so that v*(𝓜̇ - 2C)v vanishes also for other factors than v.

C = Σ over bodies of J*(M J̇ + B J) with B = ½[crf(V)M + (MV)×̄ - M crm(V)], where (h×̄)m = crf(m)h
(Echeandia and Wensing 2021). Gathered like composite bodies, all in world axes about the world's origin, where
sums need no transforms (Jain 1993 §2). O(n · depth).

A link that deforms has motions X = [x; X_r] with a modal tail and an inertia M(η), and to B X comes what the change of
M with η gives, ½[(D_V M)X + (D_X M)V - ∂_η(V*MX)]: together the Levi-Civita connection of its kinetic energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.algorithms.kinematics import combination, placed, velocities
from linkwise.algorithms.sweeps import add, freedom, generalized, inward, outward, over_freedoms
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.dual import derivative
from linkwise.spatial.flexible import FlexibleForce
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Matrix, Scalar, plus
from linkwise.spatial.transforms import Transform
from linkwise.spatial.vectors import Force, Motion

if TYPE_CHECKING:
    from linkwise.mechanism.flexible_link import Seat


class _UnitForces:
    """A 6×6 matrix by its columns, each the force that a unit motion gives."""

    def __init__(self, columns: list[Force]) -> None:
        self.columns = columns

    def __add__(self, other: _UnitForces) -> _UnitForces:
        return _UnitForces(plus(self.columns, other.columns))

    def __matmul__(self, V: Motion) -> Force:
        total = Force.zero()
        for column, x in zip(self.columns, V, strict=True):
            total = total + column * x
        return total

    def transpose_times(self, V: Motion) -> Force:
        return Force.of([V.dot(column) for column in self.columns])


class _Gathered:
    """Composite M and B of a subtree."""

    def __init__(self, M: RigidInertia, B: _UnitForces) -> None:
        self.M = M
        self.B = B

    def __add__(self, other: _Gathered) -> _Gathered:
        return _Gathered(self.M + other.M, self.B + other.B)


def coriolis_matrix(tree: Tree, q: Flat, v: Flat) -> Matrix:
    """C(q, v), nv × nv, with C v the velocity-dependent part of the bias force."""
    if tree.has_modes:
        units = [[1.0 if i == j else 0.0 for i in range(tree.nv)] for j in range(tree.nv)]
        return [list(row) for row in zip(*(coriolis_product(tree, q, v, x) for x in units), strict=True)]
    frames = placed(tree, q)
    local = velocities(tree, q, v)
    to_world = [Transform.rigid(frames[link].R, frames[link].p) for link in tree]
    V = [X.motion_to_parent(local[link]) for X, link in zip(to_world, tree, strict=True)]
    S = [[X.motion_to_parent(s) for s in link.S(q)] for X, link in zip(to_world, tree, strict=True)]
    # Ṡ in the world: what the link carries around, and what changes within it.
    S_rate = [
        [V[k.index].cross(s) + X.motion_to_parent(own) for s, own in zip(S[k.index], _own_rates(k, q, v), strict=True)]
        for X, k in zip(to_world, tree, strict=True)
    ]
    C = over_freedoms(tree)

    def gather(link: Link, outboard: _Gathered | None) -> tuple[_Gathered, None]:
        M = to_world[link.index].congruence(link.inertia)
        own = _Gathered(M, _body_factor(M, V[link.index]))
        whole = own if outboard is None else own + outboard
        for j, (s, s_rate) in enumerate(zip(S[link.index], S_rate[link.index], strict=True)):
            f1 = whole.M @ s_rate + whole.B @ s
            f2, f3 = whole.M @ s, whole.B.transpose_times(s)
            here = freedom(link, j)
            for ancestor in tree.ancestors(link):
                pairs = zip(S[ancestor.index], S_rate[ancestor.index], strict=True)
                for i, (t, t_rate) in enumerate(pairs):
                    there = freedom(ancestor, i)
                    add(C, there, here, t.dot(f1))
                    if ancestor is not link:
                        add(C, here, there, t_rate.dot(f2) + t.dot(f3))
        return whole, None

    inward(tree, gather, None)
    return C


def coriolis_product(tree: Tree, q: Flat, v: Flat, x: Flat) -> list[Scalar]:
    """C(q, v) x without the matrix. O(n).

    Σ over bodies of J*(M J̇ + B J) x, by one outward and one inward sweep in link frames: J x and its rate along the
    motion go outwards, forces come back.
    """

    def move(link: Link, parent: tuple[Motion, Motion, Motion]) -> tuple[Any, tuple[Motion, Motion, Motion]]:
        phi = link.phi(q)
        V, X, X_rate = (phi.T @ motion for motion in parent)
        if link.seat is not None:
            X_rate = X_rate + Transform(*phi.factors[1:]).T @ _of_node(link.seat, q, *parent[:2])
        S, x_own = link.S(q), link.rates(x)
        V = V + combination(S, link.rates(v))
        own = combination(S, x_own)
        X = X + own
        # Components in a link's moving axes; the rate is that of the spatial vector.
        X_rate = X_rate + V.cross(own) + combination(_own_rates(link, q, v), x_own)
        return (V, X, X_rate), (V, X, X_rate)

    still = Motion.zero()
    moving = outward(tree, move, (still, still, still), keeps=True)

    def gather(link: Link, outboard: Force) -> tuple[Force, list[Scalar]]:
        V, X, X_rate = moving[link]
        f = outboard + link.M(q) @ X_rate + _factor_times(link, q, V, X)
        return link.phi(q) @ f, [s.dot(f) for s in link.S(q)]

    return generalized(tree, inward(tree, gather, Force.zero()))


def _own_rates(link: Link, q: Flat, v: Flat) -> list[Motion]:
    """The rate of each column of S in the link's own axes; zero for all but a few joint types.

    By differentiation of S(q) along q̇: a joint gives Ṡv only as a sum.
    """
    n = link.joint.nv
    coordinates, rates = link.coordinates(q), link.rates(v)
    q_dot = link.joint.rate(coordinates, rates)
    if n == 0:
        return []
    _, flat = derivative(lambda x: [c for s in link.joint.subspace(x) for c in s], coordinates, q_dot)
    return [link.tail.T @ Motion.of(flat[6 * j : 6 * j + 6]) for j in range(n)]


def _of_node(seat: Seat, q: Flat, V: Motion, X: Motion) -> Motion:
    """The rate of Πx, x being the modal part of X: Π̇x in root axes, and what the root carries around."""
    eta, (rate, x) = seat.eta(q), (motion.tail for motion in (V, X))  # type: ignore[attr-defined]
    moved, rate_of_it = derivative(lambda at: list(seat.shape.node(at).moved(x)), eta, rate)
    at_node = seat.shape.node(eta).motion_out(V)
    return Motion.of(rate_of_it) + Motion(V.ang, at_node.lin).cross(Motion.of(moved))


def _factor_times(link: Link, q: Flat, V: Motion, X: Motion) -> Force:
    """B X."""
    M = link.M(q)
    twice: Force = V.cross_force(M @ X) + X.cross_force(M @ V) - M @ V.cross(X)
    for i, (by_X, by_V) in enumerate(zip(link.M_slopes(q, X), link.M_slopes(q, V), strict=True)):
        on_mode = FlexibleForce.of([V.dot(by_X) if i == j else 0.0 for j in range(link.modes + 6)])
        twice = twice + by_X * V[i] + by_V * X[i] - on_mode
    return twice * 0.5


def _body_factor(M: RigidInertia, V: Motion) -> _UnitForces:
    h = M @ V
    columns = []
    for i in range(6):
        e = Motion.unit(i)
        columns.append((V.cross_force(M @ e) + e.cross_force(h) - M @ V.cross(e)) * 0.5)
    return _UnitForces(columns)
