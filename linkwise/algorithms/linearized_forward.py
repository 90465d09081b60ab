"""The linearised forward dynamics δv̇ = 𝓜⁻¹ δτ - A_C δv - B_C δq: all three matrices together.

A_C = 𝓜⁻¹A_D and B_C = 𝓜⁻¹B_D (Jain 1993 lemma 4.1), with A_D and B_D of :mod:`linkwise.algorithms.linearized_inverse`
at the v̇ that τ causes. Two ways, the same numbers; the shape of the tree chooses:

* recursions alone: neither 𝓜 nor A_D and B_D. O(n²).
* 𝓜 = LᵀDL, which A_D's composite bodies give at no extra cost, and products with its inverse, or with its factors
  where these have more zeros. O(n² · depth), but with so small a factor that it is the cheaper way up to some nine
  freedoms inboard of each other, or on many short branches (a Panda 30 %, a G1 on a fixed base 20 % fewer operations;
  a free G1 takes 20 % fewer by recursion).

A ``solver`` of one's own, articulated bodies for one, serves where modes or joints that follow others are.

By recursions v̇, 𝓜⁻¹, A_C and B_C come with neither 𝓜 nor its inversion:

𝓜⁻¹ = L - K*ψ*U* - UψK,  A_C = UψY_A + K*ψ*E_A + Qφ*H*,  B_C = UψY_B + K*ψ*E_B + Qφ*Ψ' (Jain 1993 lemma 4.9 and
algorithm 6), about one inertial point (:mod:`linkwise.algorithms.link_variation`), for trees and joints of every type.

DIFFERS FROM PAPER: v̇ is found on the way (PΘ serves the bias as it serves Y_A); each joint axis is a link of its own; Q
walks inward beside the row of K*ψ*, three multiplications a step, and needs no Ĵ; two axes on different branches
meet at their nearest common ancestor c, where the row starts again as -Υ(c)W. Kept are -U, -Q, -E_A and -E_B: signs are
free on paper, here each would be one instruction an entry.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from linkwise.algorithms.inverse_dynamics import Forces, needed_forces
from linkwise.algorithms.linearized_inverse import in_link_frames, linearized_inverse, multiplications, side_by_side
from linkwise.algorithms.link_variation import (
    AxisVariation,
    HeldLink,
    Velocities,
    axis_variations,
    base_acceleration,
    held_link,
    velocities,
)
from linkwise.algorithms.solver import Solver, many_sided_solver
from linkwise.algorithms.sweeps import Field, outward
from linkwise.dataclass import dataclass
from linkwise.mechanism.tree import Link, LinkByLink, Tree
from linkwise.spatial.inertia import ArticulatedInertia
from linkwise.spatial.matrices import zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value, dot
from linkwise.spatial.vectors import Force, Motion, Vec


class LinearizedForward(NamedTuple):
    """v̇ (nv) and its derivatives (nv × nv each): dq = ∂v̇/∂q = -B_C, dv = ∂v̇/∂v = -A_C, dtau = ∂v̇/∂τ = 𝓜⁻¹."""

    vdot: Any
    dq: Any
    dv: Any
    dtau: Any


def linearized_forward(
    tree: Tree,
    q: Flat,
    v: Flat,
    tau: Flat,
    f_ext: Forces = None,
    *,
    solver: Solver | None = None,
) -> LinearizedForward:
    """v̇, ∂v̇/∂q, ∂v̇/∂v and 𝓜⁻¹. ``f_ext``: forces fixed in link frames, one for each link.

    ``solver``: what 𝓜⁻¹ is applied with; None chooses the way by the shape of the tree.
    """
    if solver is None and not (tree.has_mimics or tree.has_modes or factors_are_cheaper(tree, q)):
        return LinearizedForward(*linearize(tree, q, v, tau, f_ext))
    by = many_sided_solver(tree, q) if solver is None else solver
    vdot = by.accelerations(tau, needed_forces(tree, q, v, None, f_ext))
    inverse = linearized_inverse(tree, q, v, vdot, f_ext, way=in_link_frames)  # shares its composite bodies with 𝓜
    dq, dv = (by.columns([[-x for x in row] for row in matrix]) for matrix in (inverse.dq, inverse.dv))
    return LinearizedForward(vdot, dq, dv, by.inverse())


def factors_are_cheaper(tree: Tree, q: Flat) -> bool:
    """Whether the factors of 𝓜 take fewer multiplications than the recursion, by an estimate of both.

    Few freedoms inboard of one speak for the factors, whose additions are fewer, too: hence the 1.11.
    """
    inboard = {link.index: sum(a.joint.nv for a in tree.inboard(link)) for link in tree}
    outboard = dict.fromkeys(inboard, 0)
    root = {link.index: list(tree.ancestors(link))[-1].index for link in tree}
    size, lower = dict.fromkeys(inboard, 0), dict.fromkeys(inboard, 0)
    for link in tree:
        n = link.joint.nv
        size[root[link.index]] += n
        lower[root[link.index]] += n * inboard[link.index] + n * (n - 1) // 2
        for ancestor in tree.inboard(link):
            outboard[ancestor.index] += n
    if max(size.values(), default=0) < 9:
        return True
    factored, recursion = multiplications(tree, q)[0] + 195.0 * tree.nv, 600.0 * tree.nv
    for link in tree:
        n, rows, pairs = link.joint.nv, size[root[link.index]], lower[root[link.index]]
        column = inboard[link.index] + n + outboard[link.index]
        factored += n * (2.0 * min(rows * column, rows + 2 * pairs) + pairs)
        if link.parent < 0:
            recursion += 57.0 * pairs + 48.0 * (rows * (rows - 1) // 2 - pairs) - 1000.0
    return factored <= 1.11 * recursion


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


class _OutboardPart(Value):
    """Outboard part of an axis: P, P̂ by the three of its columns that are not zero, and z."""

    __slots__ = ("P", "P_hat", "z")

    def __init__(self, P: ArticulatedInertia, P_hat: tuple[Force, Force, Force], z: Force) -> None:
        self.P = P
        self.P_hat = P_hat
        self.z = z

    @classmethod
    def of_body(cls, body: HeldLink) -> _OutboardPart:
        x, y, z = (Force(body.A.column(i), Vec.unit(i).cross(body.c)) for i in range(3))
        return cls(body.M.articulated(), (x, y, z), body.b)

    def __add__(self, other: _OutboardPart) -> _OutboardPart:
        x, y, z = (a + b for a, b in zip(self.P_hat, other.P_hat, strict=True))
        return _OutboardPart(self.P + other.P, (x, y, z), self.z + other.z)

    def P_hat_times(self, y: Motion) -> Force:
        """P̂y."""
        a, b, c = self.P_hat
        total: Force = a * y.ang.x + b * y.ang.y + c * y.ang.z
        return total


@dataclass(frozen=True, slots=True)
class _ArticulatedAxis:
    """One axis of the inward sweep: D⁻¹, G, -2Ĝ, ε; P outboard of it; Y_A; of Y_B the part 2P̂Ψ', while P̂ is at hand."""

    d_inverse: Scalar
    G: Force
    less_G_hat: Vec
    eps: Scalar
    P: ArticulatedInertia
    Y_A: Force
    turned: Force


@dataclass(frozen=True, slots=True)
class _Varied:
    """One axis once v̇ is known: its variation, the force f over it, and Y_B."""

    at: AxisVariation
    f: Force
    Y_B: Force


@dataclass(frozen=True, slots=True)
class _Admittance:
    """One axis of the outward sweep: Υ, -E_A and -E_B."""

    upsilon: Matrix
    less_E_A: Motion
    less_E_B: Motion


def linearize(
    tree: Tree, q: Flat, v: Flat, tau: Flat, f_ext: Forces = None
) -> tuple[list[Scalar], Matrix, Matrix, Matrix]:
    """v̇ (nv), ∂v̇/∂q = -B_C, ∂v̇/∂v = -A_C and 𝓜⁻¹ (nv × nv each), for rigid links and joints that follow no other."""
    axes = AxisTree(tree)

    def move(link: Link, parent: Velocities | None) -> tuple[Velocities, tuple[Velocities, HeldLink]]:
        here = velocities(link, parent, q, v)
        return here, (here, held_link(link, here, f_ext))

    links = outward(tree, move, None, keeps=True)

    def articulate(axis: SingleAxis, outboard: _OutboardPart | None) -> tuple[_OutboardPart, _ArticulatedAxis]:
        """P, D, G (4.16), and z, ε of forward dynamics."""
        for body in axes.bodies[axis.index]:
            own = _OutboardPart.of_body(links[body][1])
            outboard = own if outboard is None else own + outboard
        assert outboard is not None  # the outermost axis of a joint moves a body
        here = links[axis.link][0]
        eta, theta = here.joint.S[axis.number], here.theta[axis.number]
        P, P_hat = outboard.P, outboard.P_hat
        u, P_theta = P @ eta, P @ theta
        d_inverse = 1.0 / axis.link.checked_inertia(eta.dot(u) + axis.link.armature[axis.number])
        G = u * d_inverse
        H_P_hat = Vec(*(eta.dot(column) for column in P_hat))
        z = outboard.z + P_theta * (v[axis.place] * 0.5)
        eps = tau[axis.place] - eta.dot(z)
        psi_dot = here.psi_dot[axis.number]
        Y_A, turned = P_theta + outboard.P_hat_times(eta + eta), outboard.P_hat_times(psi_dot + psi_dot)
        x, y, w = (column - G * h for column, h in zip(P_hat, H_P_hat, strict=True))  # τ̄P̂
        kept = _ArticulatedAxis(d_inverse, G, H_P_hat * -(d_inverse + d_inverse), eps, P, Y_A, turned)
        return _OutboardPart(P.without(u, G, None), (x, y, w), z + G * eps), kept

    inner: Field[_ArticulatedAxis] = axes.inward(articulate, None)
    vdot: list[Scalar] = [0.0] * tree.nv

    def accelerate(axis: SingleAxis, parent: Motion | None) -> Motion:
        """v̇ = ν - G*α⁺."""
        alpha = base_acceleration(tree, axis.link, q) if parent is None else parent
        here, moving, k, i = inner[axis], links[axis.link][0], axis.number, axis.place
        vdot[i] = here.eps * here.d_inverse - alpha.dot(here.G)
        moved: Motion = alpha + moving.theta[k] * (v[i] * 0.5) + moving.joint.S[k] * vdot[i]
        return moved

    axes.outward(accelerate, None, False)

    def vary(link: Link, parent: Motion | None) -> tuple[Motion, tuple[Motion, tuple[AxisVariation, ...]]]:
        """α, Ψ''."""
        before = base_acceleration(tree, link, q) if parent is None else parent
        varied = axis_variations(link, links[link][0], before, v, vdot)
        return varied[0], varied

    varied = outward(tree, vary, None, keeps=True)

    def gather(axis: SingleAxis, outboard: Force) -> tuple[Force, _Varied]:
        """f, and Y_B = PΨ'' + 2P̂Ψ' + η×f."""
        f = outboard
        for body in axes.bodies[axis.index]:
            held = links[body][1]
            f = f + held.M @ varied[body][0] + held.b
        at, here = varied[axis.link][1][axis.number], inner[axis]
        Y_B = here.P @ at.psi_ddot + here.turned + at.eta.cross_force(f)
        return f, _Varied(at, f, Y_B)

    rows = _InverseRows(axes, inner, axes.inward(gather, Force.zero()), tree.nv)

    def admit(axis: SingleAxis, parent: Matrix | None) -> Matrix:
        """Υ, L, U and E (4.26); then the axis' rows."""
        here, at = inner[axis], rows.varied[axis].at
        upsilon = zeros(6, 6) if parent is None else parent
        Z = _times(upsilon, here.G)
        L = here.d_inverse + Z.dot(here.G)
        less_U = Z - at.eta * L
        upsilon = _updated(upsilon, at.eta, less_U, Z)
        less_E_A = _times(upsilon, here.Y_A) - at.theta
        less_E_B = _times(upsilon, rows.varied[axis].Y_B) - at.psi_ddot
        rows.begin(axis, L, less_U, _Admittance(upsilon, less_E_A, less_E_B))
        return upsilon

    axes.outward(admit, None, False)
    rows.fill()
    rows.mend_joints()
    return vdot, rows.dq, rows.dv, rows.M_inverse


TOGETHER = 12
"""Rows that are filled at once: what they meet at an axis is read once for all of them."""


class _InverseRows:
    """𝓜⁻¹, -A_C and -B_C, filled row by row."""

    def __init__(self, axes: AxisTree, inner: Field[_ArticulatedAxis], varied: Field[_Varied], nv: int) -> None:
        self.axes, self.inner, self.varied = axes, inner, varied
        self.admittances: dict[int, _Admittance] = {}
        self.waiting: list[tuple[SingleAxis, Motion]] = []
        self.M_inverse, self.dv, self.dq = zeros(nv, nv), zeros(nv, nv), zeros(nv, nv)

    def begin(self, axis: SingleAxis, L: Scalar, less_U: Motion, admittance: _Admittance) -> None:
        """One axis' own entries; its rows are filled together with those of its neighbours."""
        self.admittances[axis.index] = admittance
        self.M_inverse[axis.place][axis.place] = L
        self._add_changes(axis.place, axis, less_U)
        self.waiting.append((axis, less_U))
        if len(self.waiting) == TOGETHER:
            self.fill()

    def fill(self) -> None:
        """The rows that wait: all on the way to the base, then all outboard, axis by axis for all rows at once."""
        leaving: dict[int, list[tuple[int, Motion]]] = {}
        inwards: dict[int, list[tuple[int, int, Force, Vec]]] = {}
        for axis, less_U in self.waiting:
            inwards.setdefault(axis.parent, []).append(
                (axis.place, axis.index, self.inner[axis].G, self.inner[axis].less_G_hat)
            )
            for child in self.axes.children[axis.index]:
                leaving.setdefault(child.index, []).append((axis.place, less_U))
        self.waiting.clear()
        for at in reversed(self.axes.links):
            variation, there, admitted = self.varied[at].at, self.inner[at], self.admittances.get(at.index)
            for row, below, W, less_Q in inwards.pop(at.index, ()):
                assert admitted is not None  # the sweep that begins rows has passed here
                by_W_and_Q = (*W, *less_Q)
                self.dv[row][at.place], self.dq[row][at.place] = side_by_side(
                    ((*admitted.less_E_A, *variation.eta.ang), by_W_and_Q),
                    ((*admitted.less_E_B, *variation.psi_dot.ang), by_W_and_Q),
                )
                for child in self.axes.children[at.index]:
                    if child.index != below:
                        leaving.setdefault(child.index, []).append((row, _times(admitted.upsilon, W)))
                along = dot(variation.eta, W)
                nearer = (row, at.index, W - there.G * along, less_Q - there.less_G_hat * along)
                inwards.setdefault(at.parent, []).append(nearer)
        for axis in self.axes.links:  # outwards along the rows of ψ
            for row, less_X in leaving.pop(axis.index, ()):
                entry = dot(less_X, self.inner[axis].G)
                self.M_inverse[row][axis.place] = self.M_inverse[axis.place][row] = entry
                beyond = less_X - self.varied[axis].at.eta * entry
                self._add_changes(row, axis, beyond)
                for child in self.axes.children[axis.index]:
                    leaving.setdefault(child.index, []).append((row, beyond))

    def _add_changes(self, row: int, axis: SingleAxis, less_X: Motion) -> None:
        self.dv[row][axis.place], self.dq[row][axis.place] = side_by_side(
            (less_X, self.inner[axis].Y_A), (less_X, self.varied[axis].Y_B)
        )

    def mend_joints(self) -> None:
        """Effect of turning one axis of a joint on the others: S*f changes by (∂S/∂q)*f, no more.

        The rows filled so far have the whole outboard force turn past the inner axes of the same joint.
        """
        for axis in self.axes.links:
            turned, f = self.varied[axis].at, self.varied[axis].f
            for other in self.axes.links:
                if other.link is not axis.link:
                    continue
                extra = turned.dS[other.number].dot(f)
                if other.number > axis.number:  # inboard of it
                    extra = extra - self.varied[other].at.eta.dot(turned.eta.cross_force(f))
                for row in range(len(self.dq)):
                    change = self.M_inverse[row][other.place] * extra
                    self.dq[row][axis.place] = self.dq[row][axis.place] - change


def _times(upsilon: Matrix, f: Force) -> Motion:
    """Υf."""
    return Motion.of([dot(row, f) for row in upsilon])


def _updated(upsilon: Matrix, eta: Motion, less_U: Motion, Z: Motion) -> Matrix:
    """Υ + ηU* - Zη*, symmetric: each entry computed once."""

    def entry(i: int, j: int) -> Scalar:
        if i == j:
            return upsilon[i][i] - eta[i] * (less_U[i] + Z[i])
        return upsilon[i][j] - eta[i] * less_U[j] - Z[i] * eta[j]

    upper = {(i, j): entry(i, j) for i in range(6) for j in range(i, 6)}
    return [[upper[min(i, j), max(i, j)] for j in range(6)] for i in range(6)]
