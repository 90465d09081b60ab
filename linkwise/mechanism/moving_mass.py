"""The mass of a deformable body over any scalar: its inertia at η, and the force that its motion takes.

The mass moves as x̂(η) = c + F x⁰ + Γη with c = ½η*aη and F = 1 + ½η*Bη (:mod:`linkwise.flexible.integrals`). Such a
field is a sum of few scalar functions of x⁰ with vectors before them,

    x̂ = Σ_k u_k(η) φ_k(x⁰) + Σ_l w_l(η) ψ_l(x⁰),    u_k = u⁰_k + ½η*Q_kη,    w_l = D_lη:

φ_0 = 1 and φ_k, the coordinates of x⁰ from the mass centre along the principal axes of its spread, in such units that
∫φ_k² = 1, are orthogonal over the mass; the ψ_l are an orthonormal basis of the components of all the modes' shapes.
With s_kl = ∫φ_kψ_l the body moves as particles would, in number as the functions: one at u_0 with the mass m of the
body, the others with masses 1, and "masses" s_kl between those at u_k and w_l. For a slender beam that bends alike both
ways there are two and one for each pair of modes. All of it follows from the modal integrals; many nodes do not appear.
(Integrals that are not those of one mass, as consistent mass matrices give them, have no such basis; there the
components themselves are the ψ_l, with the products that they have.)

A particle at u accelerates by E u + 2ω×u' + u'' (that at u_0 by a besides), E = ω'~ + ω~ω~. With A_k and A_l these,
f_k = m_kA_k + Σ_l s_klA_l and f_l = A_l + Σ_k s_klA_k, virtual work gives

    χ_i = Σ_k (Q_kη)_i·f_k + Σ_l D_li·f_l,    N = Σ u_k×f_k + Σ w_l×f_l,    F = f_0.

Nothing is dropped: these are Lagrange's equations of T(η, η̇, V), whatever the size of η and η̇.

A consistent mass matrix of beams and shells has more in it than the mass along their axes: sections that turn. What its
J0, A0 and Me have beyond [S0], ∫x⁰×Γ and ∫Γ*Γ adds T' = ½ω*ΔJ ω + ω·ΔA η̇ + ½η̇*ΔMη̇, and to the force
ΔJω' + ΔAη̈ + ω×(ΔJω + ΔAη̇) and ΔA*ω' + ΔMη̈.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.flexible.integrals import ModalIntegrals, zeroed
from linkwise.spatial.flexible import FlexibleForce, FlexibleInertia
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.moving import AccelerationField, RigidMotion
from linkwise.spatial.scalar import Flat, Matrix, Scalar
from linkwise.spatial.vectors import Force, Vec, weighted_sum

_ROUNDING = 1e-13
"""Share of a function's norm, squared, under which what others leave of it is rounding."""


class MovingMass:
    """The mass of a deformable body."""

    def __init__(self, integrals: ModalIntegrals) -> None:
        self.modes = len(integrals.Me)
        self.Me = integrals.Me.tolist()
        self.mass = integrals.mass
        directions, centre = _affine_functions(integrals)
        self.u0 = [Vec.of(x) for x in (centre, *directions)]
        affine = [integrals.a + np.einsum("abij,b->aij", integrals.B, centre)]
        affine += [np.einsum("abij,b->aij", integrals.B, e) for e in directions]
        self.Q = [QuadraticForm(Q) for Q in affine]
        D, gram, s = _shape_functions(integrals, directions, centre)
        self.D = [[Vec.of(column) for column in of_one.T.tolist()] for of_one in D]
        self.gram, self.s = gram.tolist(), s.tolist()
        ways = np.flatnonzero(np.abs(D).max(axis=(0, 2), initial=0.0))
        self.one_way = Vec.unit(int(ways[0])) if len(ways) == 1 else None
        """The direction of all shapes, where they have one: those of a beam that bends in one plane."""
        J, A, self.dM = _of_sections(integrals)
        self.dJ = Sym3(J.tolist())
        self.dA = [Vec.of(column) for column in A.T.tolist()]

    def inertia(self, eta: Flat) -> FlexibleInertia:
        """M(η) of T = ½[η̇; V]*M(η)[η̇; V]."""
        slopes = [Q.slope(eta) for Q in self.Q]
        u, w = self._places(eta, slopes)
        p, r = self._mixed(u, w)  # ∫φ_k x̂ and ∫ψ_l x̂
        n = range(self.modes)
        dp = [self._mixed([d[i] for d in slopes], [d[i] for d in self.D])[0] for i in n]  # ∫φ_k ∂x̂/∂η_i
        A = []
        for i in n:
            moment = self.dA[i]
            for at, d in (*zip(p, slopes, strict=True), *zip(r, self.D, strict=True)):
                moment = moment + at.cross(d[i])
            A.append(moment)

        def between(i: int, j: int) -> Scalar:
            total = self.Me[i][j]
            for k, d in enumerate(slopes):
                total = total + d[i].dot(dp[j][k])
                for of_mode, d_l in zip(self.s[k], self.D, strict=True):
                    total = total + (d_l[i] * of_mode).dot(d[j])
            return total

        places = (*zip(p, u, strict=True), *zip(r, w, strict=True))
        spread = Sym3.build_symmetric(lambda i, j: _sum(a[i] * b[j] for a, b in places))
        root = RigidInertia(self.mass, p[0], _about_origin(spread).plus(self.dJ))
        return FlexibleInertia.symmetric(self.modes, between, [Force(A[i], dp[i][0]) for i in n], root)

    def wrench(self, eta: Flat, root: RigidMotion | AccelerationField, rate: Flat, rate_dot: Flat) -> FlexibleForce:
        """The force [χ; f] that a motion of the root, η̇ and η̈ take; or that a field around it exerts."""
        omega, omega_dot = root.omega, root.omega_dot
        E, twice = root.E, omega + omega
        slopes = [Q.slope(eta) for Q in self.Q]
        u, w = self._places(eta, slopes)

        def accelerated(at: Vec, velocity: Vec, own: Vec) -> Vec:
            return E @ at + twice.cross(velocity) + own

        A_u = [
            accelerated(at, sum_of_vectors(d, rate), Q.value(rate) + sum_of_vectors(d, rate_dot))
            for at, d, Q in zip(u, slopes, self.Q, strict=True)
        ]
        A_u[0] = A_u[0] + root.a
        w_rate, w_own = ([sum_of_vectors(d, x) for d in self.D] for x in (rate, rate_dot))
        A_w = [accelerated(*each) for each in zip(w, w_rate, w_own, strict=True)]
        f_u, f_w = self._mixed(A_u, A_w)
        N = self.dJ @ omega_dot + sum_of_vectors(self.dA, rate_dot)
        if self.one_way is None:
            for at, f in zip(w, f_w, strict=True):
                N = N + at.cross(f)
        else:  # Σ over the shapes first, while they are numbers along one direction e
            e, lever, lever_rate = (
                self.one_way,
                *(_sum(a.dot(b) for a, b in zip(w, self._weighed(x), strict=True)) for x in (w, w_rate)),
            )
            N = N + e.cross(E @ e) * lever + e.cross(twice.cross(e)) * lever_rate
            sums = zip(*([sum_of_vectors(x, row) for row in self.s] for x in (w, w_rate, w_own)), strict=True)
            for k, (at, velocity, own) in enumerate(sums):
                f_u[k] = A_u[k] * (1.0 if k else self.mass) + accelerated(at, velocity, own)
                N = N + at.cross(A_u[k])
        shares = (*zip(slopes, f_u, strict=True), *zip(self.D, f_w, strict=True))
        chi = [_sum(d[i].dot(f) for d, f in shares) + self.dA[i].dot(omega_dot) for i in range(self.modes)]
        for (i, j), value in self.dM:
            chi[i] = chi[i] + value * rate_dot[j]
        spin = self.dJ @ omega + sum_of_vectors(self.dA, rate)
        N = N + omega.cross(spin)
        for at, f in zip(u, f_u, strict=True):
            N = N + at.cross(f)
        return FlexibleForce(chi, N, f_u[0])

    def _places(self, eta: Flat, slopes: Sequence[Sequence[Vec]]) -> tuple[list[Vec], list[Vec]]:
        """u_k and w_l."""
        u = [u0 + sum_of_vectors(d, eta) * 0.5 for u0, d in zip(self.u0, slopes, strict=True)]
        return u, [sum_of_vectors(d, eta) for d in self.D]

    def _mixed(self, x: Sequence[Vec], y: Sequence[Vec]) -> tuple[list[Vec], list[Vec]]:
        """m_k x_k + Σ_l s_kl y_l and y_l + Σ_k s_kl x_k: a field's products with the functions, from its vectors.

        Where the ψ_l are not orthonormal, Σ_l' ∫ψ_lψ_l' y_l' stands for y_l.
        """
        on_affine = [
            each + sum_of_vectors(y, row) for each, row in zip((x[0] * self.mass, *x[1:]), self.s, strict=True)
        ]
        across = zip(*self.s, strict=True)
        on_shapes = [own + sum_of_vectors(x, s) for own, s in zip(self._weighed(y), across, strict=True)]
        return on_affine, on_shapes

    def _weighed(self, y: Sequence[Vec]) -> list[Vec]:
        """Σ_l' ∫ψ_lψ_l' y_l'."""
        return [sum_of_vectors(y, row) for row in self.gram]


def _affine_functions(integrals: ModalIntegrals) -> tuple[FloatArray, FloatArray]:
    """The vectors before φ_1, … at rest (k - 1, 3): along the principal axes that have mass; and the mass centre."""
    centre = integrals.h0 / integrals.mass
    spread = integrals.S0 - integrals.mass * np.outer(centre, centre)
    size = max(np.trace(integrals.S0), np.finfo(float).tiny)
    aligned = np.abs(spread - np.diag(np.diag(spread))).max() <= _ROUNDING * size
    moments, axes = (np.diag(spread), np.eye(3)) if aligned else np.linalg.eigh(spread)
    there = moments > _ROUNDING * size
    return axes.T[there] * np.sqrt(moments[there])[:, None], centre


def _shape_functions(
    integrals: ModalIntegrals, directions: FloatArray, centre: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """D (l, 3, m), the ∫ψ_lψ_l' and the s_kl."""
    m, h1, X = len(integrals.Me), integrals.h1, integrals.X
    gram = shape_products(integrals).transpose(0, 2, 1, 3).reshape(3 * m, 3 * m)
    along = [(np.einsum("a,abi->bi", e, X) - (e @ centre) * h1) / (e @ e) for e in directions]
    moments = np.array([x.T.ravel() for x in (h1, *along)])  # ∫φ_kΓ, for each mode its components
    size = np.concatenate([[np.sqrt(integrals.mass)], np.ones(len(directions))])[:, None]
    L = _factor(gram)
    s = zeroed(np.linalg.lstsq(L, moments.T, rcond=None)[0].T, size) if L.size else np.zeros((len(size), 0))
    if np.abs(s @ L.T - moments).max(initial=0.0) <= 1e-11 * np.abs(moments).max(initial=0.0):
        return _by_component(L.T, m), np.eye(len(L.T)), s
    used = np.flatnonzero(np.abs(gram).any(axis=0) | np.abs(moments).any(axis=0))
    return _by_component(np.eye(3 * m)[used], m), gram[np.ix_(used, used)], moments[:, used]


def _factor(gram: FloatArray) -> FloatArray:
    """L of LL* = gram, with as many columns as it has rank, and zeros where rounding would stand."""
    left, columns = gram.copy(), [np.zeros((len(gram), 0))]
    scale = np.sqrt(np.maximum(np.diag(gram), 0.0))
    for row in range(len(gram)):
        if left[row, row] <= _ROUNDING * gram[row, row]:
            continue
        column = left[:, row] / np.sqrt(left[row, row])
        column = np.where((np.abs(column) <= 1e-12 * scale) | (np.arange(len(gram)) < row), 0.0, column)
        column = np.where(np.abs(np.abs(column) - 1.0) <= 1e-14, np.sign(column), column)  # modes of modal mass 1
        left = left - np.outer(column, column)
        columns.append(column[:, None])
    return np.hstack(columns)


def _by_component(rows: FloatArray, m: int) -> FloatArray:
    """Rows over the modes' components as (l, 3, m)."""
    return rows.reshape(-1, m, 3).transpose(0, 2, 1)


def shape_products(integrals: ModalIntegrals) -> FloatArray:
    """∫Γ_iΓ_j* as (m, m, 3, 3): its symmetric part from J2, the other from A1."""
    trace = np.einsum("aaij->ij", integrals.J2) * 0.5
    symmetric = (np.multiply.outer(np.eye(3), trace) - integrals.J2).transpose(2, 3, 0, 1) * 0.5
    A = integrals.A1.transpose(1, 2, 0) * 0.5  # ½∫Γ_j×Γ_i
    skew = np.zeros_like(symmetric)
    for k, (i, j) in enumerate(((1, 2), (2, 0), (0, 1))):
        skew[:, :, i, j], skew[:, :, j, i] = -A[:, :, k], A[:, :, k]
    size = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    return zeroed((symmetric + skew).transpose(2, 3, 0, 1), np.outer(size, size)).transpose(2, 3, 0, 1)


def _of_sections(integrals: ModalIntegrals) -> tuple[FloatArray, FloatArray, Sparse]:
    """ΔJ, ΔA and ΔM: what J0, A0 and Me have beyond the mass along the axes."""
    S0, X = integrals.S0, integrals.X
    arm = np.sqrt(np.trace(integrals.J0) / 2)
    size = np.sqrt(np.maximum(np.diag(integrals.Me), 0.0))
    along = np.stack([X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0]])
    J = integrals.J0 - (np.trace(S0) * np.eye(3) - S0)
    M = integrals.Me - np.einsum("ijaa->ij", shape_products(integrals))
    dM = sparse(zeroed(0.5 * (M + M.T), np.outer(size, size)))
    return zeroed(0.5 * (J + J.T), arm**2), zeroed(integrals.A0 - along, arm * size), dM


def _sum(terms: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for term in terms:
        total = total + term
    return total


def _about_origin(S: Sym3) -> Sym3:
    """tr(S) 1 - S."""
    s = S.m
    return Sym3.of(s[1][1] + s[2][2], s[0][0] + s[2][2], s[0][0] + s[1][1], -s[0][1], -s[0][2], -s[1][2])


Sparse = list[tuple[tuple[int, ...], float]]
"""The entries of a constant array that are not zero, with their places."""


def sparse(array: FloatArray) -> Sparse:
    """Of an array."""
    return [(tuple(place), float(array[tuple(place)])) for place in np.argwhere(array).tolist()]


def columns_of(entries: Sparse, x: Flat, count: int) -> list[Vec]:
    """For an array (3, m, n): the m vectors of its product with x."""
    rows: Matrix = [[0.0] * 3 for _ in range(count)]
    for (k, i, j), value in entries:
        rows[i][k] = rows[i][k] + value * x[j]
    return [Vec.of(row) for row in rows]


def sum_of_vectors(columns: Sequence[Vec], x: Flat) -> Vec:
    """Σ columns_i x_i."""
    return weighted_sum(columns, x, Vec.zero())


class QuadraticForm:
    """x*Qx and its slope for a constant Q (3, m, m), symmetric in the last two."""

    def __init__(self, Q: FloatArray) -> None:
        self.modes = Q.shape[-1]
        self.entries = sparse(Q)
        self.pairs = [_by_coefficient(Q[k]) for k in range(3)]

    def slope(self, x: Flat) -> list[Vec]:
        """Qx: a vector for each mode."""
        return columns_of(self.entries, x, self.modes)

    def value(self, x: Flat) -> Vec:
        """x*Qx. Products x_ix_j with the same coefficient are added first: a beam bends alike in two planes."""
        total: list[Scalar] = [0.0] * 3
        for k, groups in enumerate(self.pairs):
            for coefficient, places in groups:
                products: Scalar = 0.0
                for i, j in places:
                    products = products + x[i] * x[j]
                total[k] = total[k] + products * coefficient
        return Vec.of(total)


def _by_coefficient(Q: FloatArray) -> list[tuple[float, list[tuple[int, int]]]]:
    """The entries i <= j of a symmetric matrix, those that are equal to rounding together."""
    groups: list[tuple[float, list[tuple[int, int]]]] = []
    largest = np.abs(Q).max(initial=0.0)
    for i, j in zip(*np.triu_indices(len(Q)), strict=True):
        coefficient = float(Q[i, j]) if i == j else float(Q[i, j] + Q[j, i])
        if coefficient == 0.0:
            continue
        near = next((places for known, places in groups if abs(known - coefficient) <= 1e-14 * largest), None)
        if near is None:
            groups.append((coefficient, near := []))
        near.append((int(i), int(j)))
    return groups
