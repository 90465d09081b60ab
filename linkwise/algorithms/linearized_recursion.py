"""The linearised forward dynamics by recursions alone: v̇, 𝓜⁻¹, A_C and B_C with neither 𝓜 nor its inversion. O(n²).

𝓜⁻¹ = L - K*ψ*U* - UψK,  A_C = UψY_A + K*ψ*E_A + Qφ*H*,  B_C = UψY_B + K*ψ*E_B + Qφ*Ψ' (Jain 1993 lemma 4.9 and
algorithm 6), about one inertial point (:mod:`linkwise.algorithms.fixed_point`), for trees and joints of every type.

DIFFERS FROM PAPER: v̇ is found on the way (PΘ serves the bias as it serves Y_A); each joint axis is a link of its own; Q
walks inward beside the row of K*ψ*, three multiplications a step, and needs no Ĵ; two axes on different branches
meet at their nearest common ancestor c, where the row starts again as -Υ(c)W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.algorithms.fixed_point import HeldLink, axis_variations, base_acceleration, held_links, velocities
from linkwise.algorithms.freedoms import Matrix, zeros
from linkwise.algorithms.inverse_dynamics import Forces
from linkwise.algorithms.joint_variation import AxisVariation
from linkwise.algorithms.sweeps import Field, inward, outward
from linkwise.mechanism.sweeper import LinkByLink
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.scalar import Scalar, Value
from linkwise.spatial.vectors import Force, Motion, Vec

Flat = Sequence[Scalar]


@dataclass(frozen=True, slots=True)
class SingleAxis:
    """One joint axis as a link of its own; ``parent`` is the axis inboard of it, -1 the base."""

    index: int
    parent: int
    link: Link
    number: int
    """Of the axis in its joint; the first one is the outermost, and moves the body."""

    @property
    def place(self) -> int:
        """Of its freedom."""
        return self.link.v_start + self.number


class AxisTree(LinkByLink):
    """The axes of a tree, parents first, with the bodies that each moves and no further axis does."""

    def __init__(self, tree: Tree) -> None:
        self.links: list[SingleAxis] = []
        self.bodies: list[list[Link]] = []
        self.children: list[list[SingleAxis]] = []
        outermost: dict[int, int] = {-1: -1}
        for link in tree:
            parent = outermost[link.parent]
            for i in reversed(range(link.joint.nv)):
                axis = SingleAxis(len(self.links), parent, link, i)
                self.links.append(axis)
                self.bodies.append([])
                self.children.append([])
                if parent >= 0:
                    self.children[parent].append(axis)
                parent = axis.index
            outermost[link.index] = parent
            if parent >= 0:
                self.bodies[parent].append(link)


class _Outboard(Value):
    """What hangs on an axis: P, P̂ by the three of its columns that are not zero, and z."""

    __slots__ = ("P", "P_hat", "z")

    def __init__(self, P: ArticulatedInertia, P_hat: tuple[Force, Force, Force], z: Force) -> None:
        self.P = P
        self.P_hat = P_hat
        self.z = z

    @classmethod
    def of_body(cls, body: HeldLink) -> _Outboard:
        x, y, z = (Force(body.A.column(i), Vec.unit(i).cross(body.c)) for i in range(3))
        return cls(body.M.articulated(), (x, y, z), body.b)

    def __add__(self, other: _Outboard) -> _Outboard:
        x, y, z = (a + b for a, b in zip(self.P_hat, other.P_hat, strict=True))
        return _Outboard(self.P + other.P, (x, y, z), self.z + other.z)

    def P_hat_times(self, y: Motion) -> Force:
        """P̂y."""
        a, b, c = self.P_hat
        total: Force = a * y.ang.x + b * y.ang.y + c * y.ang.z
        return total


@dataclass(frozen=True, slots=True)
class _Articulated:
    """One axis of the inward sweep: D⁻¹, G, 2Ĝ, ε; P and P̂ outboard of it; Y_A."""

    d_inverse: Scalar
    G: Force
    G_hat: Vec
    eps: Scalar
    outboard: _Outboard
    Y_A: Force


@dataclass(frozen=True, slots=True)
class _Admittance:
    """One axis of the outward sweep: Υ, L and U; E_A, E_B, Y_B."""

    upsilon: Matrix
    L: Scalar
    U: Motion
    E_A: Motion
    E_B: Motion
    Y_B: Force


def linearize(
    tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces = None
) -> tuple[list[Scalar], Matrix, Matrix, Matrix]:
    """v̇ (nv), ∂v̇/∂q = -B_C, ∂v̇/∂v = -A_C and 𝓜⁻¹ (nv × nv each), for rigid links and joints that follow no other."""
    axes = AxisTree(tree)
    moving = velocities(tree, q, v)
    bodies = held_links(tree, moving, f_ext)

    def articulate(axis: SingleAxis, outboard: _Outboard | None) -> tuple[_Outboard, _Articulated]:
        """P, D, G (4.16), and z, ε of forward dynamics."""
        for body in axes.bodies[axis.index]:
            own = _Outboard.of_body(bodies[body])
            outboard = own if outboard is None else own + outboard
        assert outboard is not None  # the outermost axis of a joint moves a body
        here = moving[axis.link]
        eta, theta = here.joint.S[axis.number], here.theta[axis.number]
        P, P_hat = outboard.P, outboard.P_hat
        u, P_theta = P @ eta, P @ theta
        d_inverse = 1.0 / axis.link.felt(eta.dot(u) + axis.link.armature[axis.number])
        G = u * d_inverse
        H_P_hat = Vec(*(eta.dot(column) for column in P_hat))
        z = outboard.z + P_theta * (v[axis.place] * 0.5)
        eps = tau[axis.place] - eta.dot(z)
        x, y, w = (column - G * h for column, h in zip(P_hat, H_P_hat, strict=True))  # τ̄P̂
        kept = _Articulated(d_inverse, G, H_P_hat * (d_inverse + d_inverse), eps, outboard, P_theta + outboard.P_hat_times(eta + eta))
        return _Outboard(P.without(u, G, None), (x, y, w), z + G * eps), kept

    inner = inward(axes, articulate, None)
    vdot: list[Scalar] = [0.0] * tree.nv

    def accelerate(axis: SingleAxis, parent: Motion | None) -> Motion:
        """v̇ = ν - G*α⁺."""
        alpha = base_acceleration(tree, axis.link, q) if parent is None else parent
        here, k, i = inner[axis], axis.number, axis.place
        vdot[i] = here.eps * here.d_inverse - alpha.dot(here.G)
        return alpha + moving[axis.link].theta[k] * (v[i] * 0.5) + moving[axis.link].joint.S[k] * vdot[i]

    outward(axes, accelerate, None)
    alpha, joints = axis_variations(tree, q, v, vdot, moving)

    def gather(axis: SingleAxis, outboard: Force) -> tuple[Force, Force]:
        """f."""
        for body in axes.bodies[axis.index]:
            outboard = outboard + bodies[body].M @ alpha[body] + bodies[body].b
        return outboard, outboard

    f = inward(axes, gather, Force.zero())

    def variation(axis: SingleAxis) -> AxisVariation:
        return joints[axis.link].axes[axis.number]

    def admit(axis: SingleAxis, parent: _Admittance | None) -> _Admittance:
        """Υ, L, U and E (4.26)."""
        here, at = inner[axis], variation(axis)
        Y_B = here.outboard.P @ at.psi_ddot + here.outboard.P_hat_times(at.psi_dot + at.psi_dot) + at.eta.cross_force(f[axis])
        upsilon = zeros(6, 6) if parent is None else parent.upsilon
        Z = _times(upsilon, here.G)
        L = here.d_inverse + Z.dot(here.G)
        U = at.eta * L - Z
        upsilon = _updated(upsilon, at.eta, U, Z)
        E_A, E_B = at.theta - _times(upsilon, here.Y_A), at.psi_ddot - _times(upsilon, Y_B)
        return _Admittance(upsilon, L, U, E_A, E_B, Y_B)

    outer = outward(axes, admit, None)
    rows = _Rows(axes, inner, outer, {axis.index: variation(axis) for axis in axes.links}, tree.nv)
    for axis in axes.links:
        rows.fill(axis)
    rows.mend_joints(f)
    return vdot, rows.dq, rows.dv, rows.M_inverse


class _Rows:
    """𝓜⁻¹, -A_C and -B_C, filled row by row."""

    def __init__(
        self,
        axes: AxisTree,
        inner: Field[_Articulated],
        outer: Field[_Admittance],
        variations: dict[int, AxisVariation],
        nv: int,
    ) -> None:
        self.axes, self.inner, self.outer, self.variations = axes, inner, outer, variations
        self.M_inverse, self.dv, self.dq = zeros(nv, nv), zeros(nv, nv), zeros(nv, nv)

    def fill(self, axis: SingleAxis) -> None:
        """The row of one axis: its own entry, those of all outboard, those on the way to the base."""
        row, own = axis.place, self.outer[axis]
        self.M_inverse[row][row] = own.L
        self._felt_by(row, axis, own.U)
        self._spread(row, self.axes.children[axis.index], own.U)
        W, Q = self.inner[axis].G, self.inner[axis].G_hat
        below = axis
        while below.parent >= 0:
            at = self.axes.links[below.parent]
            variation, there, admittance = self.variations[at.index], self.inner[at], self.outer[at]
            self.dv[row][at.place] = -(admittance.E_A.dot(W) + variation.eta.ang.dot(Q))
            self.dq[row][at.place] = -(admittance.E_B.dot(W) + variation.psi_dot.ang.dot(Q))
            others = [child for child in self.axes.children[at.index] if child is not below]
            if others:
                self._spread(row, others, -_times(admittance.upsilon, W))
            along = variation.eta.dot(W)
            W, Q = W - there.G * along, Q - there.G_hat * along
            below = at

    def _spread(self, row: int, axes: Sequence[SingleAxis], X: Motion) -> None:
        """Outwards along the row of ψ."""
        for axis in axes:
            entry = -X.dot(self.inner[axis].G)
            self.M_inverse[row][axis.place] = self.M_inverse[axis.place][row] = entry
            beyond = X + self.variations[axis.index].eta * entry
            self._felt_by(row, axis, beyond)
            self._spread(row, self.axes.children[axis.index], beyond)

    def _felt_by(self, row: int, axis: SingleAxis, X: Motion) -> None:
        self.dv[row][axis.place] = -X.dot(self.inner[axis].Y_A)
        self.dq[row][axis.place] = -X.dot(self.outer[axis].Y_B)

    def mend_joints(self, f: Field[Force]) -> None:
        """What turning one axis of a joint does to the others: S*f changes by (∂S/∂q)*f, no more.

        The rows filled so far have the whole outboard force turn past the inner axes of the same joint.
        """
        for axis in self.axes.links:
            turned = self.variations[axis.index]
            for other in self.axes.links:
                if other.link is not axis.link:
                    continue
                extra = turned.dS[other.number].dot(f[axis])
                if other.number > axis.number:  # inboard of it
                    extra = extra - self.variations[other.index].eta.dot(turned.eta.cross_force(f[axis]))
                for row in range(len(self.dq)):
                    change = self.M_inverse[row][other.place] * extra
                    self.dq[row][axis.place] = self.dq[row][axis.place] - change


def _times(upsilon: Matrix, f: Force) -> Motion:
    """Υf."""
    return Motion.of([_dot(row, f) for row in upsilon])


def _dot(row: Sequence[Scalar], f: Force) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(row, f, strict=True):
        total = total + x * y
    return total


def _updated(upsilon: Matrix, eta: Motion, U: Motion, Z: Motion) -> Matrix:
    """Υ + ηU* - Zη*, symmetric: each entry computed once."""

    def entry(i: int, j: int) -> Scalar:
        change = eta[i] * (U[i] - Z[i]) if i == j else eta[i] * U[j] - Z[i] * eta[j]
        return upsilon[i][j] + change

    upper = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
    return [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]
