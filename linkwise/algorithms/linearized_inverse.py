"""The linearised inverse dynamics δτ = 𝓜 δv̇ + A_D δv + B_D δq: all three matrices together. O(n · depth).

𝓜 = HφMφ*H*, A_D = Hφ[2M̂φ*H* + Mφ*Θ], B_D = Hφ[H̃f + 2M̂φ*Ψ' + Mφ*Ψ''] (Jain 1993 lemmas 3.1 and 3.2), for trees and
joints of any type; Θ, Ψ', Ψ'' are those of :mod:`linkwise.algorithms.link_variation`. As in the paper's algorithm 2,
composite bodies R = ΣM and R̂ = ΣM̂ are gathered inwards, and each joint axis walks from its link to the base.

M̂ = ½(Ṁ - Q[MV]) = [[A, 0], [-c~, 0]], c being the linear momentum (Jain 1993, algorithm 1): twelve numbers.

Two ways, the same numbers: about one inertial point as in the paper (:mod:`linkwise.algorithms.link_variation`), where
a column does not change on its walk; or in link frames.

DIFFERS FROM PAPER: link frames. There H* is a coordinate direction, so that products with it cost nothing, and a force
crosses a joint for a dozen multiplications; up to nine links between base and tip that is the cheaper way, and beyond
on robots whose axes are at right angles. Each frame moves with its link's origin: from one to the next, R̂ and R̂*H*
change as a change of inertial frame demands (:meth:`Subtree.seen_faster`), while 𝓜, A_D and B_D do not notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from linkwise.algorithms.differentiated import inverse_derivatives
from linkwise.algorithms.inverse_dynamics import Forces, inverse_dynamics
from linkwise.algorithms.kinematics import at_rest, next_motion
from linkwise.algorithms.link_variation import (
    JointVariation,
    Velocities,
    axis_variations,
    base_acceleration,
    held_link,
    joint_variation,
    velocities,
)
from linkwise.algorithms.mass_matrix import mass_matrix
from linkwise.algorithms.sweeps import Field, add, each, freedom, inward, outward, over_freedoms, own
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia, RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3, zeros
from linkwise.spatial.moving import RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value, is_one, is_zero
from linkwise.spatial.transforms import Shift, TransformFactor
from linkwise.spatial.vectors import Force, Motion, Vec


class LinearizedInverse(NamedTuple):
    """τ (nv) and its derivatives (nv × nv each): dq = ∂τ/∂q, dv = ∂τ/∂v, dvdot = ∂τ/∂v̇ = 𝓜."""

    tau: Any
    dq: Any
    dv: Any
    dvdot: Any


class Subtree(Value):
    """A link with all that hangs outboard: R, the two parts 2A and 2c of 2R̂, and the force f it takes."""

    __slots__ = ("A", "M", "c", "f")

    def __init__(self, M: RigidInertia, A: Mat3, c: Vec, f: Force) -> None:
        self.M = M
        self.A = A
        self.c = c
        self.f = f

    @classmethod
    def of_link(cls, inertia: RigidInertia, motion: RigidMotion, f_ext: Force | None) -> Subtree:
        """One link alone, seen from the inertial frame that moves with its origin: A = ω~(J - ½ tr(J) 1), c = ω×h.

        DIFFERS FROM PAPER: algorithm 1 prints A with the opposite sign; M̂V = ṀV (2.7) decides.
        """
        xx, yy, zz, xy, xz, yz = inertia.J.six()
        sigma = Sym3.of(xx - (yy + zz), yy - (xx + zz), zz - (xx + yy), xy * 2.0, xz * 2.0, yz * 2.0)
        A = Mat3([list(motion.omega.cross(sigma.column(j))) for j in range(3)]).T
        f = inertia.wrench(motion)
        return cls(inertia, A, motion.omega.cross(inertia.h * 2.0), f if f_ext is None else f - f_ext)

    def __add__(self, other: Subtree) -> Subtree:
        return Subtree(self.M + other.M, self.A + other.A, self.c + other.c, self.f + other.f)

    def twice_M_hat(self, y: Motion) -> Force:
        """2R̂ y."""
        return Force(self.A @ y.ang, y.ang.cross(self.c))

    def twice_M_hat_transposed(self, y: Motion) -> Vec:
        """2R̂* y: a pure couple."""
        return self.A.transpose_times(y.ang) + self.c.cross(y.lin)

    def turned(self, factor: TransformFactor) -> Subtree:
        """In the parent side's axes."""
        block = ArticulatedInertia(Sym3.zero(), self.A, Sym3.zero())  # its mixed block turns as any matrix does
        A = factor.articulated_in(block).B
        return Subtree(factor.rigid_in(self.M), A, factor.rotate(self.c), factor.force_in(self.f))

    def shifted(self, l: Vec) -> Subtree:
        """About the parent side's origin."""
        shift = Shift(l)
        return Subtree(shift.rigid_in(self.M), _minus_cross_cross(self.A, l, self.c), self.c, shift.force_in(self.f))

    def seen_faster(self, d: Vec) -> Subtree:
        """From an inertial frame in which all velocities are greater by d."""
        if all(is_zero(x) for x in d):
            return self
        twice = d * 2.0
        return Subtree(self.M, _minus_cross_cross(self.A, self.M.h, twice), self.c + twice * self.M.m, self.f)


def _minus_cross_cross(A: Mat3, a: Vec, b: Vec) -> Mat3:
    """A - a~b~ = A + (a·b) 1 - b aᵀ."""
    own = [a[i] * b[i] for i in range(3)]

    def entry(i: int, j: int) -> Scalar:
        if i == j:
            return A.m[i][i] + (own[(i + 1) % 3] + own[(i + 2) % 3])
        return A.m[i][j] - b[i] * a[j]

    return Mat3.build(entry)


class _Column(Value):
    """One joint axis on its walk to the base: X = RH*, X_A and X_B (forces), and X̂ = 2R̂*H* (a couple)."""

    __slots__ = ("X", "X_A", "X_B", "X_hat")

    def __init__(self, X: Force, X_A: Force, X_B: Force, X_hat: Vec) -> None:
        self.X = X
        self.X_A = X_A
        self.X_B = X_B
        self.X_hat = X_hat

    def turned(self, factor: TransformFactor) -> _Column:
        X, X_A, X_B = (factor.force_in(f) for f in (self.X, self.X_A, self.X_B))
        return _Column(X, X_A, X_B, factor.rotate(self.X_hat))

    def shifted(self, l: Vec) -> _Column:
        X, X_A, X_B = (Shift(l).force_in(f) for f in (self.X, self.X_A, self.X_B))
        return _Column(X, X_A, X_B, self.X_hat)

    def seen_faster(self, d: Vec) -> _Column:
        if all(is_zero(x) for x in d):
            return self
        return _Column(self.X, self.X_A, self.X_B, self.X_hat + (d * 2.0).cross(self.X.lin))


def linearized_inverse(
    tree: Tree,
    q: Flat,
    v: Flat,
    vdot: Flat | None,
    f_ext: Forces = None,
    *,
    way: Callable[..., Way] | None = None,
) -> LinearizedInverse:
    """τ, ∂τ/∂q, ∂τ/∂v and 𝓜. ``f_ext``: forces fixed in link frames, one for each link; ``vdot`` None means zero.

    ``way``: :func:`in_link_frames` or :func:`about_a_fixed_point`; None chooses by the shape of the tree.
    """
    if tree.has_modes:
        still = [0.0] * tree.nv if vdot is None else vdot
        tau = inverse_dynamics(tree, q, v, vdot, f_ext)
        return LinearizedInverse(tau, *inverse_derivatives(tree, q, v, still, f_ext), mass_matrix(tree, q))
    if way is None:
        walked, referred = multiplications(tree, q)
        way = in_link_frames if walked <= referred else about_a_fixed_point
    joints, gather, enter, together = way(tree, q, v, vdot, f_ext)
    result = _Matrices(tree)
    waiting: list[_Walking] = []

    def begin(link: Link, outboard: Subtree | None) -> tuple[Subtree | None, None]:
        """The columns of one link, as soon as all that is outboard of it is known."""
        handed, whole = gather(link, outboard)
        for i in range(len(joints[link].axes)):
            waiting.append(_Walking(link, i, link, _within_joint(result, link, joints[link], i, whole, vdot)))
        if len(waiting) >= together or link.index == 0:
            walk()
        return handed, None

    def walk() -> None:
        """All waiting columns, to the base: link by link, so that what they meet there is read once for all."""
        at: dict[int, list[_Walking]] = {}
        for each_one in waiting:
            at.setdefault(each_one.link.parent, []).append(each_one)
        waiting.clear()
        for link in reversed(tree.links):
            for link_far, i, inner, column in at.pop(link.index, ()):
                here = enter(inner, column, link)
                _across(result, link_far, i, link, joints, here)
                at.setdefault(link.parent, []).append(_Walking(link_far, i, link, here))

    inward(tree, begin, None)
    return LinearizedInverse([x for (x,) in result.tau], result.B_D, result.A_D, result.M)


class _Walking(NamedTuple):
    """A column, the axis it belongs to, and the link that it has reached."""

    link: Link
    i: int
    at: Link
    column: _Column


Way = tuple[
    Field[JointVariation],
    Callable[[Link, Subtree | None], tuple[Subtree | None, Subtree]],
    Callable[[Link, Any, Link], Any],
    int,
]
"""Variations of joints; a link with all outboard, handed on and kept; a column's next step; how many walk at once."""


def multiplications(tree: Tree, q: Flat) -> tuple[float, float]:
    """Estimates for columns that walk through the links' frames, and for columns about one point.

    Both beyond what every way needs. A step of a walk crosses a joint and costs nine products; about one point a step
    costs 36, and each axis some 200 to be referred there.
    """
    crossing = {link.index: _crossing(link, q) for link in tree}
    walked = referred = 0.0
    for link in tree:
        inboard = [link.index, *(ancestor.index for ancestor in tree.inboard(link))][:-1]
        walked += link.joint.nv * sum(crossing[index] + 9.0 for index in inboard)
        referred += link.joint.nv * (200.0 + 36.0 * len(inboard))
    return walked, referred


def _crossing(link: Link, q: Flat) -> float:
    """Multiplications that take a column, seven vectors of which six are three forces, over a joint."""
    cost = 0.0
    for factor in link.phi(q).factors:
        R, l = factor.matrix()
        entries = [x for row in R.m for x in row]
        known = sum(is_zero(x) or is_one(x) or is_one(-x) for x in entries)
        cost += 7.0 * (len(entries) - known) + 10.0 * sum(not is_zero(x) for x in l)
    return cost


def in_link_frames(tree: Tree, q: Flat, v: Flat, vdot: Flat | None, f_ext: Forces) -> Way:
    """Everything in the frames of the links, which move with their origins."""
    rest = at_rest(tree.gravity)
    motion = outward(tree, lambda link, parent: next_motion(link, parent, q, v, vdot), rest)

    def of_parent(link: Link) -> RigidMotion:
        return rest if link.parent < 0 else motion.values[link.parent]

    joints = each(tree, lambda link: joint_variation(link, q, v, vdot, of_parent(link), motion[link]))

    def leave(link: Link, thing: Any) -> Any:
        """Over the joint, to the parent's origin."""
        return to_parent(link, q, of_parent(link).omega, thing.seen_faster(joints[link].speed_beyond))

    def gather(link: Link, outboard: Subtree | None) -> tuple[Subtree | None, Subtree]:
        own = Subtree.of_link(link.inertia, motion[link], None if f_ext is None else f_ext[link])
        whole = (own if outboard is None else own + outboard).seen_faster(joints[link].speed_within)
        return (None if link.parent < 0 else leave(link, whole)), whole

    def enter(link: Link, column: _Column, parent: Link) -> _Column:
        entered: _Column = leave(link, column).seen_faster(joints[parent].speed_within)
        return entered

    return joints, gather, enter, 1


def about_a_fixed_point(tree: Tree, q: Flat, v: Flat, vdot: Flat | None, f_ext: Forces) -> Way:
    """Everything about one inertial point: composite bodies are sums, and columns stay as they are (Jain 1993)."""

    def move(link: Link, parent: _LinkAboutPoint | None) -> _LinkAboutPoint:
        moving = velocities(link, None if parent is None else parent.moving, q, v)
        before = base_acceleration(tree, link, q) if parent is None else parent.alpha
        alpha, axes = axis_variations(link, moving, before, v, vdot)
        body = held_link(link, moving, f_ext)
        own = Subtree(body.M, body.A + body.A, body.c + body.c, body.M @ alpha + body.b)
        return _LinkAboutPoint(moving, alpha, JointVariation(axes, Vec.zero(), Vec.zero()), own)

    links = outward(tree, move, None)

    def gather(link: Link, outboard: Subtree | None) -> tuple[Subtree, Subtree]:
        whole = links[link].own if outboard is None else links[link].own + outboard
        return whole, whole

    return Field([link.joint for link in links.values]), gather, lambda link, column, parent: column, 4


class _LinkAboutPoint(NamedTuple):
    """One link about the point."""

    moving: Velocities
    alpha: Motion
    joint: JointVariation
    own: Subtree


def to_parent(link: Link, q: Flat, omega: Vec, thing: Any) -> Any:
    """Take something from a link's frame to its parent's, whose origin moves by ω×l slower."""
    factors = link.phi(q).factors
    omegas = []
    for factor in factors:
        omegas.append(omega)
        omega = factor.rotate_back(omega)
    for factor, turning in zip(reversed(factors), reversed(omegas), strict=True):
        thing = factor.carry(thing).seen_faster(factor.origin_velocity(turning))
    return thing


class _Matrices:
    """τ, 𝓜, A_D and B_D, filled link by link."""

    def __init__(self, tree: Tree) -> None:
        self.tau: Matrix = zeros(tree.nv, 1)
        self.M, self.A_D, self.B_D = (over_freedoms(tree) for _ in range(3))


def _within_joint(
    result: _Matrices, link: Link, joint: JointVariation, i: int, whole: Subtree, vdot: Flat | None
) -> _Column:
    """The block of one joint with itself, and its column ready to walk."""
    axis = joint.axes[i]
    X = whole.M @ axis.eta
    X_A = whole.M @ axis.theta + whole.twice_M_hat(axis.eta)
    X_B = whole.M @ axis.psi_ddot + whole.twice_M_hat(axis.psi_dot)
    for j, row in enumerate(joint.axes):
        add(result.M, freedom(link, j), freedom(link, i), row.eta.dot(X))
        add(result.A_D, freedom(link, j), freedom(link, i), row.eta.dot(X_A))
        add(result.B_D, freedom(link, j), freedom(link, i), row.eta.dot(X_B) + axis.dS[j].dot(whole.f))
    add(result.M, freedom(link, i), freedom(link, i), link.armature[i])
    tau = axis.eta.dot(whole.f)
    if vdot is not None:
        tau = tau + link.armature[i] * link.rates(vdot)[i]
    add(result.tau, freedom(link, i), own(0), tau)
    return _Column(X, X_A, X_B + axis.eta.cross_force(whole.f), whole.twice_M_hat_transposed(axis.eta))


def _across(
    result: _Matrices, link: Link, i: int, ancestor: Link, joints: Field[JointVariation], column: _Column
) -> None:
    """The entries of one axis with every axis of an ancestor, both ways."""
    here = freedom(link, i)
    for j, axis in enumerate(joints[ancestor].axes):
        there = freedom(ancestor, j)
        mass, A_there, B_there = side_by_side((axis.eta, column.X), (axis.eta, column.X_A), (axis.eta, column.X_B))
        X, A_axis, B_axis = (
            (*a, *b)
            for a, b in zip(
                (column.X, axis.theta, axis.psi_ddot), (column.X_hat, axis.eta.ang, axis.psi_dot.ang), strict=True
            )
        )
        A_here, B_here = side_by_side((A_axis, X), (B_axis, X))
        add(result.M, there, here, mass)
        add(result.M, here, there, mass)
        add(result.A_D, there, here, A_there)
        add(result.B_D, there, here, B_there)
        add(result.A_D, here, there, A_here)
        add(result.B_D, here, there, B_here)


def side_by_side(*pairs: tuple[Iterable[Scalar], Iterable[Scalar]]) -> list[Scalar]:
    """Inner products, term by term all at once: what they share is read once."""
    totals: list[Scalar] = [0.0] * len(pairs)
    for terms in zip(*(zip(x, y, strict=True) for x, y in pairs), strict=True):
        totals = [total + x * y for total, (x, y) in zip(totals, terms, strict=True)]
    return totals
