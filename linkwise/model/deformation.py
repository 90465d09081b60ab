"""A deformable body over any scalar: the inertia of its moving mass, the force its motion takes, its nodes.

The mass moves as x̂(η) = c + F x⁰ + Γη with c = ½η*aη and F = 1 + ½η*Bη (:mod:`linkwise.flexible.integrals`). All that
is needed are integrals of products of such fields, and they follow from the coefficients alone. The force comes from
virtual work, ∫∂x̂/∂η_i · ẍ dm on the modes, ∫ẍ dm and ∫x̂×ẍ dm on the root, with the acceleration of a particle

    ẍ = a + E x̂ + 2ω×x̂' + x̂'' = A_c + A_F x⁰ + EΓη + 2ω~Γη̇ + Γη̈,   E = ω'~ + ω~ω~,
    A_c = a + E c + 2ω×c' + c'',   A_F = E F + 2ω~F' + F''.

Nothing is dropped: these are Lagrange's equations of T(η, η̇, V), whatever the size of η and η̇.

A consistent mass matrix of beams and shells has more in it than the mass along their axes: sections that turn. What its
J0 and A0 have beyond [S0] and ∫x⁰×Γ adds T' = ½ω*ΔJ ω + ω·ΔA η̇, and to the force ΔJω' + ΔAη̈ + ω×(ΔJω + ΔAη̇) and
ΔA*ω'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.flexible.body import FlexibleBody, FlexibleNode
from linkwise.flexible.integrals import ModalIntegrals, zeroed
from linkwise.spatial.dual import derivative
from linkwise.spatial.flexible import FlexibleForce, FlexibleInertia, FlexibleMoving, Node
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.scalar import Scalar, is_zero
from linkwise.spatial.transforms import Factor, Rotation, Transform
from linkwise.spatial.vectors import Force, Motion, Vec

Flat = Sequence[Scalar]
Sparse = list[tuple[tuple[int, ...], float]]
"""The entries of a constant array that are not zero, with their places."""


class MovingMass:
    """The mass of a deformable body."""

    def __init__(self, integrals: ModalIntegrals) -> None:
        self.modes = len(integrals.Me)
        self.mass = float(integrals.mass)
        self.h0 = Vec.of(integrals.h0.tolist())
        self.S0 = Mat3(integrals.S0.tolist())
        self.h1 = [Vec.of(column) for column in integrals.h1.T.tolist()]
        self.X = [Mat3(integrals.X[:, :, i].tolist()) for i in range(self.modes)]
        self.Me = integrals.Me.tolist()
        self.a = _sparse(integrals.a)
        self.B = _sparse(integrals.B)
        products = _products(integrals)
        self.GG = [[_sparse(products[i, j]) for j in range(self.modes)] for i in range(self.modes)]
        J, A = _of_sections(integrals)
        self.dJ = Sym3(J.tolist())
        self.dA = [Vec.of(column) for column in A.T.tolist()]

    def inertia(self, eta: Flat) -> FlexibleInertia:
        """M(η) of T = ½[η̇; V]*M(η)[η̇; V]."""
        m, n = self.mass, self.modes
        a, B = self._a_rate(eta), self._B_rate(eta)
        c, F = _half(_sum_of_vectors(a, eta)), _plus_one(_half_of(_sum_of_matrices(B, eta)))
        h1_eta, X_eta = _sum_of_vectors(self.h1, eta), _sum_of_matrices(self.X, eta)
        h = c * m + F @ self.h0 + h1_eta
        Z = _outer(c, self.h0) + F.times(self.S0) + X_eta.T
        W = [_outer(c, self.h1[i]) + F.times(self.X[i]) + self._products(eta, _unit(i, n)) for i in range(n)]  # ∫x̂Γ_i*
        xx = _outer(h, c) + Z.times(F.T) + _outer(c, h1_eta) + F.times(X_eta) + self._products(eta, eta)
        P = [self.h1[i] + a[i] * m + B[i] @ self.h0 for i in range(n)]
        A = [_axial(_outer(h, a[i]) + Z.times(B[i].T) + W[i]) + self.dA[i] for i in range(n)]

        def between(i: int, j: int) -> Scalar:
            Z_i = _outer(a[i], self.h0) + B[i].times(self.S0) + self.X[i].T
            own = a[i].dot(self.h1[j]) + _trace_of_product(B[i], self.X[j]) + self.Me[i][j]
            return P[i].dot(a[j]) + _inner(Z_i, B[j]) + own

        root = RigidInertia(m, h, _about_origin(xx).plus(self.dJ))
        return FlexibleInertia.symmetric(n, between, [Force(A[i], P[i]) for i in range(n)], root)

    def wrench(self, eta: Flat, moving: FlexibleMoving) -> FlexibleForce:
        """The force [χ; f] that a motion takes."""
        n, rate, rate_dot = self.modes, moving.rate, moving.rate_dot
        E, twice = moving.root.E, Mat3.cross(moving.root.omega * 2.0)
        a, B = self._a_rate(eta), self._B_rate(eta)
        c, F = _half(_sum_of_vectors(a, eta)), _plus_one(_half_of(_sum_of_matrices(B, eta)))
        c_dot, F_dot = _sum_of_vectors(a, rate), _sum_of_matrices(B, rate)
        c_ddot = _sum_of_vectors(a, rate_dot) + _sum_of_vectors(self._a_rate(rate), rate)
        F_ddot = _sum_of_matrices(B, rate_dot) + _sum_of_matrices(self._B_rate(rate), rate)
        A_c = moving.root.a + E @ c + twice @ c_dot + c_ddot
        A_F = E.times(F) + twice.times(F_dot) + F_ddot

        h1 = [_sum_of_vectors(self.h1, x) for x in (eta, rate, rate_dot)]
        X = [_sum_of_matrices(self.X, x) for x in (eta, rate, rate_dot)]
        force = A_c * self.mass + A_F @ self.h0 + E @ h1[0] + twice @ h1[1] + h1[2]  # ∫ẍ
        T = _outer(A_c, self.h0) + A_F.times(self.S0) + E.times(X[0].T) + twice.times(X[1].T) + X[2].T  # ∫ẍx⁰*
        chi = []
        for i in range(n):
            on_mode = self.h1[i].dot(A_c) + _trace_of_product(A_F, self.X[i])
            for j in range(n):  # ∫Γ_i·(EΓ_jη_j + 2ω×Γ_jη̇_j + Γ_jη̈_j)
                on_mode = on_mode + self._felt(E, j, i) * eta[j] + self._felt(twice, j, i) * rate[j]
                on_mode = on_mode + self.Me[i][j] * rate_dot[j]
            chi.append(on_mode + a[i].dot(force) + _inner(B[i], T))
        of_modes = (
            self._products(eta, eta).times(E.T)
            + self._products(eta, rate).times(twice.T)
            + self._products(eta, rate_dot)
        )
        moment = _outer(h1[0], A_c) + X[0].T.times(A_F.T) + of_modes + _outer(c, force) + F.times(T.T)  # ∫x̂ẍ*
        omega, omega_dot = moving.root.omega, moving.root.omega_dot
        chi = [x + column.dot(omega_dot) for x, column in zip(chi, self.dA, strict=True)]
        spin = self.dJ @ omega + _sum_of_vectors(self.dA, rate)
        of_sections = self.dJ @ omega_dot + _sum_of_vectors(self.dA, rate_dot) + omega.cross(spin)
        return FlexibleForce(chi, _axial(moment) + of_sections, force)

    def _a_rate(self, x: Flat) -> list[Vec]:
        """The columns of aη."""
        rows: list[list[Scalar]] = [[0.0] * 3 for _ in range(self.modes)]
        for (k, i, j), value in self.a:
            rows[i][k] = rows[i][k] + value * x[j]
        return [Vec.of(row) for row in rows]

    def _B_rate(self, x: Flat) -> list[Mat3]:
        """(Bη)_i."""
        rows: list[list[list[Scalar]]] = [[[0.0] * 3 for _ in range(3)] for _ in range(self.modes)]
        for (k, l, i, j), value in self.B:
            rows[i][k][l] = rows[i][k][l] + value * x[j]
        return [Mat3(each) for each in rows]

    def _products(self, x: Flat, y: Flat) -> Mat3:
        """∫(Γx)(Γy)*."""
        rows: list[list[Scalar]] = [[0.0] * 3 for _ in range(3)]
        for i, row in enumerate(self.GG):
            for j, entries in enumerate(row):
                if not entries or is_zero(x[i]) or is_zero(y[j]):
                    continue
                both = x[i] * y[j]
                for (k, l), value in entries:
                    rows[k][l] = rows[k][l] + value * both
        return Mat3(rows)

    def _felt(self, A: Mat3, j: int, i: int) -> Scalar:
        """∫Γ_i·AΓ_j."""
        total: Scalar = 0.0
        for (k, l), value in self.GG[j][i]:
            total = total + A.m[l][k] * value
        return total


class NodeShape:
    """What the modes do to a node: r(η) = r⁰ + Γη + ½η*Qη, and the rotation by Λη.

    A rotation is proper at every η: that with Rodrigues' parameters ½Λη (Cayley's), R = 1 + 2(c~ + c~c~)/(1 + c·c) with
    c = ½Λη. To second order in η it is the turn about Λη by its length, and its rate of turn (Λη̇ + c×Λη̇)/(1 + c·c) is
    exact, so that power and momenta balance at every η.
    """

    def __init__(self, node: FlexibleNode) -> None:
        self.name = str(node.key)
        self.position = Vec.of(node.position.tolist())
        self.Gamma = [Vec.of(column) for column in node.Gamma.T.tolist()]
        self.Lambda = [Vec.of(column) for column in node.Lambda.T.tolist()]
        self.Q = _sparse(node.Q)
        self.turns = bool(node.Lambda.any())

    def factors(self, eta: Flat) -> list[Factor]:
        """From the root to the node."""
        node = Node(self._place(eta), self._Pi(eta), lambda rate: self._bias(eta, rate))
        if not self.turns:
            return [node]
        c = _half(_sum_of_vectors(self.Lambda, eta))
        k = Mat3.cross(c)
        scale = 2.0 / (1.0 + c.dot(c))
        turn, square = k.m, k.times(k).m
        R = Mat3.build(lambda i, j: (turn[i][j] + square[i][j]) * scale + (1.0 if i == j else 0.0))
        return [node, Rotation(R)]

    def _place(self, eta: Flat) -> Vec:
        second = _half(_sum_of_vectors(self._Q_rate(eta), eta))
        return self.position + _sum_of_vectors(self.Gamma, eta) + second

    def _Pi(self, eta: Flat) -> list[Motion]:
        second = self._Q_rate(eta)
        lin = [g + s for g, s in zip(self.Gamma, second, strict=True)]
        if not self.turns:
            return [Motion(Vec.zero(), l) for l in lin]
        c = _half(_sum_of_vectors(self.Lambda, eta))
        scale = 1.0 / (1.0 + c.dot(c))
        ang = [(axis + c.cross(axis)) * scale for axis in self.Lambda]
        return [Motion(w, l) for w, l in zip(ang, lin, strict=True)]

    def _bias(self, eta: Flat, rate: Flat) -> Motion:
        """Π̇η̇."""

        def moved(x: Flat) -> list[Scalar]:
            total = Motion.zero()
            for column, each in zip(self._Pi(x), rate, strict=True):
                total = total + column * each
            return list(total)

        return Motion.of(derivative(moved, eta, rate)[1])

    def _Q_rate(self, x: Flat) -> list[Vec]:
        """The columns of Qη."""
        rows: list[list[Scalar]] = [[0.0] * 3 for _ in self.Gamma]
        for (k, i, j), value in self.Q:
            rows[i][k] = rows[i][k] + value * x[j]
        return [Vec.of(row) for row in rows]


class Deformation:
    """A flexible body as its link needs it: its mass, its elasticity, its nodes."""

    def __init__(self, body: FlexibleBody) -> None:
        self.modes = body.modes
        self.nodes = body.nodes
        self.mass = MovingMass(body.integrals)
        self.stiffness = _sparse(body.stiffness)
        self.damping = _sparse(body.damping)
        self._nodes: dict[int, NodeShape] = {}

    def node(self, number: int) -> NodeShape:
        """A node by its place in the body's ``nodes``."""
        if number not in self._nodes:
            self._nodes[number] = NodeShape(self.nodes[number])
        return self._nodes[number]

    def elastic(self, eta: Flat, rate: Flat) -> list[Scalar]:
        """Kη + Dη̇."""
        total: list[Scalar] = [0.0] * self.modes
        for entries, x in ((self.stiffness, eta), (self.damping, rate)):
            for (i, j), value in entries:
                total[i] = total[i] + value * x[j]
        return total

    def energy(self, eta: Flat) -> Scalar:
        """½η*Kη."""
        total: Scalar = 0.0
        for (i, j), value in self.stiffness:
            total = total + value * (eta[i] * eta[j])
        return total * 0.5


class Seat:
    """A node that something sits on, for a mechanism: the node's shape and where its body's η is in q."""

    def __init__(self, shape: NodeShape, q_start: int, modes: int) -> None:
        self.shape = shape
        self.q_start = q_start
        self.modes = modes

    def moved(self, q_start: int) -> Seat:
        """The same node, of a body whose η is elsewhere."""
        return Seat(self.shape, q_start, self.modes)

    def at(self, q: Flat) -> Transform:
        """From the root of the flexible body to the node's frame."""
        return Transform(*self.shape.factors([q[self.q_start + i] for i in range(self.modes)]))


def _sparse(array: np.ndarray) -> Sparse:
    return [(tuple(place), float(array[tuple(place)])) for place in np.argwhere(array).tolist()]


def _products(integrals: ModalIntegrals) -> np.ndarray:
    """∫Γ_iΓ_j* as (m, m, 3, 3): its symmetric part from J2, the other from A1."""
    trace = np.einsum("aaij->ij", integrals.J2) * 0.5
    symmetric = (np.multiply.outer(np.eye(3), trace) - integrals.J2).transpose(2, 3, 0, 1) * 0.5
    A = integrals.A1.transpose(1, 2, 0) * 0.5  # ½∫Γ_j×Γ_i
    skew = np.zeros_like(symmetric)
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        skew[:, :, i, j], skew[:, :, j, i] = -A[:, :, k], A[:, :, k]
    size = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    return zeroed((symmetric + skew).transpose(2, 3, 0, 1), np.outer(size, size)).transpose(2, 3, 0, 1)


def _of_sections(integrals: ModalIntegrals) -> tuple[np.ndarray, np.ndarray]:
    """ΔJ and ΔA: what J0 and A0 have beyond the mass along the axes."""
    S0, X = integrals.S0, integrals.X
    arm = np.sqrt(np.trace(integrals.J0) / 2)
    size = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    along = np.stack([X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0]])
    J = integrals.J0 - (np.trace(S0) * np.eye(3) - S0)
    return zeroed(0.5 * (J + J.T), arm**2), zeroed(integrals.A0 - along, arm * size)


def _unit(i: int, n: int) -> list[float]:
    return [1.0 if i == j else 0.0 for j in range(n)]


def _sum_of_vectors(columns: Sequence[Vec], x: Flat) -> Vec:
    total = Vec.zero()
    for column, factor in zip(columns, x, strict=True):
        total = total + column * factor
    return total


def _sum_of_matrices(matrices: Sequence[Mat3], x: Flat) -> Mat3:
    total = Mat3.zero()
    for matrix, factor in zip(matrices, x, strict=True):
        total = Mat3.build(lambda i, j, M=matrix.m, T=total.m, f=factor: T[i][j] + M[i][j] * f)  # type: ignore[misc]
    return total


def _half(x: Vec) -> Vec:
    return x * 0.5


def _half_of(A: Mat3) -> Mat3:
    return Mat3.build(lambda i, j: A.m[i][j] * 0.5)


def _plus_one(A: Mat3) -> Mat3:
    return Mat3.build(lambda i, j: A.m[i][j] + (1.0 if i == j else 0.0))


def _outer(x: Vec, y: Vec) -> Mat3:
    return Mat3.build(lambda i, j: x[i] * y[j])


def _axial(W: Mat3) -> Vec:
    """ε_cab W_ab: ∫f×g from ∫fg*."""
    w = W.m
    return Vec(w[1][2] - w[2][1], w[2][0] - w[0][2], w[0][1] - w[1][0])


def _inner(A: Mat3, B: Mat3) -> Scalar:
    """Σ A_ij B_ij."""
    total: Scalar = 0.0
    for row, other in zip(A.m, B.m, strict=True):
        for x, y in zip(row, other, strict=True):
            total = total + x * y
    return total


def _trace_of_product(A: Mat3, B: Mat3) -> Scalar:
    return _inner(A, B.T)


def _about_origin(S: Mat3) -> Sym3:
    """tr(S) 1 - S, for a matrix that is symmetric."""
    s = S.m
    return Sym3.of(s[1][1] + s[2][2], s[0][0] + s[2][2], s[0][0] + s[1][1], -s[0][1], -s[0][2], -s[1][2])
