"""Book's recursive Lagrangian dynamics of flexible arms in 4×4 matrices (1984), named in Featherstone 2000 §2. O(n).

A point of link i is h = x + Σ_j δ_j γ_j in the link's frame, four numbers with a one (of γ: a zero) at the end, and
W_i h in the base's. A_i is the joint's transformation, and from one end of the link to the other leads

    E_i = H_i + Σ_j δ_j M_j,    M_j = [[λ_j~, γ_j], [0, 0]] at that end:

small deflections, added up. Deflections are coordinates like joint angles, with U_i = ∂A_i/∂q_i:

    base to tip:  W_i = Ŵ_{i-1}A_i,  Ŵ_i = W_iE_i, with their first and second rates;
    tip to base:  F_i = ∫h p̈* dm + E_iA_{i+1}F_{i+1},   p̈ = Ẅh + 2Ẇḣ + Wḧ,
                  joints:       T_i  = tr(Ŵ_{i-1}U_iF_i),
                  deflections:  T_ij = tr(W_i(∫γ_j p̈* dm + M_jA_{i+1}F_{i+1})) + (Kδ + Dδ̇)_j.

The integrals are of constants: C = ∫xx*, C_j = ∫xγ_j*, C_jk = ∫γ_jγ_k*. Gravity enters as an acceleration of the base.
Serial chains of hinges and slides; rigid links are those without modes, and what is welded to a node moves with its E.

It is exact where the ends of links do not turn with the modes. Where they do, 1 + λ~ is no rotation: forces are right
in the limit of small δ, and wrong in proportion to it, by what loads on a turned end do on its second-order motion.
Shortening of second order, with the stiffening that follows from it, has no place in it either.
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.algorithms.sweeps import Field
from linkwise.classics.requirements import no_mimics, serial, small_deflections
from linkwise.dataclass import dataclass, replace
from linkwise.joints import Prismatic, Revolute
from linkwise.mechanism.flexible_link import FlexibleLink, NodeShape
from linkwise.mechanism.moving_mass import shape_products
from linkwise.mechanism.tree import Link, Tree
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, identity, matrix_plus, product, transposed, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, dot
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True)
class FrameRates:
    """W, Ẇ and Ẅ of a frame; W* and the others are what forces are made with."""

    W: Matrix
    W_dot: Matrix
    W_ddot: Matrix

    def then(self, E: Matrix, E_dot: Matrix, E_ddot: Matrix) -> FrameRates:
        """The frame at E in this one."""
        W, W_dot, W_ddot = self.W, self.W_dot, self.W_ddot
        return FrameRates(
            product(W, E),
            _sum(product(W_dot, E), product(W, E_dot)),
            _sum(product(W_ddot, E), _times(2.0, product(W_dot, E_dot)), product(W, E_ddot)),
        )

    def force(self, G: Matrix, G_dot: Matrix, G_ddot: Matrix) -> Matrix:
        """∫g p̈* dm, from ∫gh*, ∫gḣ* and ∫gḧ*."""
        rates = ((1.0, G, self.W_ddot), (2.0, G_dot, self.W_dot), (1.0, G_ddot, self.W))
        return _sum(*(_times(factor, product(A, transposed(W))) for factor, A, W in rates))


@dataclass(frozen=True)
class End:
    """A node of a link: H and the M_j, and E with its rates at δ."""

    M: list[Matrix]
    E: Matrix
    E_dot: Matrix
    E_ddot: Matrix

    @classmethod
    def of(cls, shape: NodeShape | None, delta: Sequence[Flat]) -> End:
        """A node at δ, δ̇, δ̈; the frame of a rigid link where there is none."""
        if shape is None:
            return cls([], identity(4), zeros(4, 4), zeros(4, 4))
        M = [_corner(Mat3.cross(turn), slope) for turn, slope in zip(shape.Lambda, shape.Gamma, strict=True)]
        H = _sum(identity(4), _corner(Mat3.zero(), shape.position))
        rest, rate, rate_dot = (_sum(zeros(4, 4), *map(_times, x, M)) for x in delta)
        return cls(M, _sum(H, rest), rate, rate_dot)


def inverse_dynamics(tree: Tree, q: Flat, v: Flat, vdot: Flat) -> list[Scalar]:
    """T of joints and deflections, in the trace form of Lagrange's equations (Featherstone 2000 §2)."""
    no_mimics(tree, "book")
    serial(tree, "book")
    small_deflections(tree, "book", [Revolute, Prismatic])
    at = FrameRates(identity(4), zeros(4, 4), _corner(Mat3.zero(), -tree.gravity))
    ends = [End.of(None if link.seat is None else link.seat.shape, _delta(tree.links, link.parent, q, v, vdot))
            for link in tree.links]  # fmt: skip
    links = []
    for link, end in zip(tree.links, ends, strict=True):
        at = inner = at.then(end.E, end.E_dot, end.E_ddot)
        A = _corner(*replace(link, seat=None).phi(q).matrix(), last=1.0)
        axis, rate, rate_dot = link.S(q)[-1], link.rates(v)[-1], link.rates(vdot)[-1]
        U = product(A, s := _corner(Mat3.cross(axis.ang), axis.lin))
        twice = product(U, s)
        at = at.then(A, _times(rate, U), _sum(_times(rate * rate, twice), _times(rate_dot, U)))
        links.append((inner.W, A, U, at))
    T: Matrix = []
    M_next: list[Matrix] = []
    E_next, F_next = identity(4), zeros(4, 4)  # of the next link: E and the M_j that lead to it, and A F
    for link, (W_inner, A, U, at) in zip(reversed(tree.links), reversed(links), strict=True):
        delta, rate, rate_dot = delta_and_rates = _delta(tree.links, link.index, q, v, vdot)
        C, C_j, C_jk = _integrals(link)
        D = [_sum(C_j[j], *map(_times, delta, [row[j] for row in C_jk])) for j in range(len(C_j))]  # ∫hγ_j*
        G = _sum(C, *map(_times, delta, map(transposed, C_j)), *map(_times, delta, D))
        F = _sum(at.force(G, _along(rate, D), _along(rate_dot, D)), product(E_next, F_next))
        beyond = [(M_next, F_next)]
        for shape, P in _welded(link):
            end = End.of(shape, delta_and_rates)
            moved = product(P, transposed(at.then(end.E, end.E_dot, end.E_ddot).W_ddot))
            F = _sum(F, product(end.E, moved))
            beyond.append((end.M, moved))
        forces: list[Scalar] = []
        for j, elastic in enumerate(_elastic(link, delta, rate)):
            own = at.force(transposed(D[j]), _along(rate, C_jk[j]), _along(rate_dot, C_jk[j]))
            whole = _sum(own, *(product(M[j], A_F) for M, A_F in beyond if M))
            forces.append(_trace(at.W, whole) + elastic)
        T.append([*forces, _trace(product(W_inner, U), F) + link.armature[-1] * link.rates(vdot)[-1]])
        M_next, E_next, F_next = ends[link.index].M, ends[link.index].E, product(A, F)
    return tree.generalized(Field(T[::-1]))


def _delta(links: Sequence[Link], index: int, *states: Flat) -> tuple[Flat, ...]:
    """δ, δ̇ and δ̈ of a link; of the base and of rigid links there are none."""
    link = links[index] if index >= 0 else None
    if not isinstance(link, FlexibleLink):
        return tuple(() for _ in states)
    return (link.coordinates(states[0])[: link.modes], *(link.rates(x)[: link.modes] for x in states[1:]))


def _elastic(link: Link, delta: Flat, rate: Flat) -> list[Scalar]:
    """Kδ + Dδ̇."""
    return link.deformation.elastic(delta, rate, *link.elasticity) if isinstance(link, FlexibleLink) else []


def _integrals(link: Link) -> tuple[Matrix, list[Matrix], list[list[Matrix]]]:
    """C, the C_j and the C_jk of a link; what is welded to its root counts to it."""
    if not isinstance(link, FlexibleLink):
        return _pseudo_inertia(link.inertia), [], []
    of = link.deformation.integrals
    h, S, modes = of.h0.tolist(), of.S0.tolist(), range(link.modes)
    C = [*([*row, x] for row, x in zip(S, h, strict=True)), [*h, of.mass]]
    C_j = [[[*row, 0.0] for row in (*of.X[:, :, j].tolist(), of.h1[:, j].tolist())] for j in modes]
    products = shape_products(of).tolist()
    C_jk = [[_corner(Mat3(products[j][k]), Vec.zero()) for k in modes] for j in modes]
    return _sum(C, _pseudo_inertia(link.rigid_part)), C_j, C_jk


def _welded(link: Link) -> list[tuple[NodeShape, Matrix]]:
    """Nodes beyond the root that something rigid is welded to, with its pseudo-inertia."""
    if not isinstance(link, FlexibleLink):
        return []
    return [(link.deformation.node(lump.node), _pseudo_inertia(lump.inertia)) for lump in link.lumps if lump.node]


def _pseudo_inertia(M: RigidInertia) -> Matrix:
    """∫xx* of a rigid body."""
    J, half = M.J.m, (M.J.m[0][0] + M.J.m[1][1] + M.J.m[2][2]) * 0.5
    spread = Mat3.build(lambda i, j: half - J[i][j] if i == j else -J[i][j])
    return [*_corner(spread, M.h)[:3], [*M.h, M.m]]


def _corner(R: Mat3, p: Vec, last: Scalar = 0.0) -> Matrix:
    """[[R, p], [0, last]]."""
    return [*([*row, x] for row, x in zip(R.m, p, strict=True)), [0.0, 0.0, 0.0, last]]


def _along(rates: Flat, D: Sequence[Matrix]) -> Matrix:
    return _sum(zeros(4, 4), *map(_times, rates, D))


def _times(factor: Scalar, A: Matrix) -> Matrix:
    return [[x * factor for x in row] for row in A]


def _sum(first: Matrix, *others: Matrix) -> Matrix:
    for each in others:
        first = matrix_plus(first, each)
    return first


def _trace(A: Matrix, B: Matrix) -> Scalar:
    """tr(AB)."""
    total: Scalar = 0.0
    for row, column in zip(A, transposed(B), strict=True):
        total = total + dot(row, column)
    return total
