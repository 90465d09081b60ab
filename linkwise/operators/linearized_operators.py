"""Operators of the linearised models (Jain 1993): how joint forces and accelerations change with the motion.

Their blocks are M̂ = ½(Ṁ - Q[MV]) with its composite R̂ and articulated P̂, Ḣ, Ĵ, α.

All in the frames of the links, seen from an inertial frame at rest, in which V has its linear part: there
φ(p,k) X φ*(p,k) carries M̂ as it carries M. M̂ = [[A, 0], [-c~, 0]]: three columns, the others are zero.

P̂ = M̂ + E_ψP̂E_φ*, R̂ = M̂ + E_φR̂E_φ*, Ĝ = P̂*H*D⁻¹ (Jain 1993 eq. 4.12, its star mended), Ḣ* = V×H*,
ĴE_φ* = E_ψ*Ĵ + (ĜH)*E_φ* (Jain 1993 eq. 4.22), α = φ*(H*v̇ + Ḣ*v) with the base's -g.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from linkwise.algorithms.articulated import Axis, articulate
from linkwise.algorithms.kinematics import velocities
from linkwise.algorithms.link_variation import HeldLink
from linkwise.algorithms.sweeps import Field, inward
from linkwise.array_types import Array
from linkwise.errors import InputError
from linkwise.mechanism.tree import Link, Tree
from linkwise.memoized import cached_property
from linkwise.operators.atoms import WrittenOut
from linkwise.operators.engine import Engine
from linkwise.operators.letters import TreeOperators, needs
from linkwise.operators.operator import Operator
from linkwise.operators.stacked_vectors import Given, Vector
from linkwise.spatial.matrices import Mat3, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value
from linkwise.spatial.vectors import Force, Motion, Vec

SpatialT = TypeVar("SpatialT", Force, Motion)
OtherT = TypeVar("OtherT", Force, Motion)


class _LeftColumns(Value, Generic[SpatialT]):
    """A 6 × 6 matrix whose last three columns are zero: of forces, or of motions."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: SpatialT, y: SpatialT, z: SpatialT) -> None:
        self.x: SpatialT = x
        self.y: SpatialT = y
        self.z: SpatialT = z

    def __iter__(self) -> Iterator[SpatialT]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: _LeftColumns[SpatialT]) -> _LeftColumns[SpatialT]:
        return _LeftColumns(*(a + b for a, b in zip(self, other, strict=True)))

    def each(self, of: Callable[[SpatialT], OtherT]) -> _LeftColumns[OtherT]:
        """A matrix times this, by what it makes of a column."""
        return _LeftColumns(*map(of, self))

    def turned(self, R: Mat3) -> _LeftColumns[SpatialT]:
        """This times a matrix whose blocks on the diagonal are R."""
        return _LeftColumns(*(self.x * R.m[0][j] + self.y * R.m[1][j] + self.z * R.m[2][j] for j in range(3)))

    def rows(self) -> Matrix:
        """6 × 6."""
        x, y, z = (list(column) for column in self)
        return [[x[i], y[i], z[i], 0.0, 0.0, 0.0] for i in range(6)]


class LinkRates:
    """The blocks of a state, q, v and, where it is given, v̇."""

    def __init__(self, tree: Tree, q: Flat, v: Flat, vdot: Flat | None) -> None:
        self.tree, self.q, self.v, self.vdot = tree, q, v, vdot

    @cached_property
    def V(self) -> Field[Motion]:
        """V of all links."""
        return velocities(self.tree, self.q, self.v)

    def blocks(self, word: str) -> list[Matrix]:
        """The diagonal blocks of M̂, R̂, P̂, Ĵ (6 × 6) or Ḣ (nv_k × 6), base to tip."""
        if word == "H_dot":
            return [[list(self.V[link].cross(s)) for s in link.S(self.q)] for link in self.tree]
        return [columns.rows() for columns in (self._J_hat() if word == "J_hat" else self._gathered(word).values)]

    def alpha(self) -> list[Scalar]:
        """α of all links, gravity in it as an acceleration -g of the base."""
        found: list[Motion] = []
        for link in self.tree:
            above = Motion(Vec.zero(), -self.tree.gravity) if link.parent < 0 else found[link.parent]
            alpha = link.phi(self.q).T @ above
            rates = zip(link.S(self.q), link.rates(self.v), link.rates(self.vdot or ()), strict=True)
            for s, rate, acceleration in rates:
                alpha = alpha + s * acceleration + self.V[link].cross(s) * rate
            found.append(alpha)
        return [x for motion in found for x in motion]

    def _gathered(self, word: str) -> Field[_LeftColumns[Force]]:
        axes = articulate(self.tree, self.q) if word == "P_hat" else None

        def gather(
            link: Link, outboard: _LeftColumns[Force] | None
        ) -> tuple[_LeftColumns[Force] | None, _LeftColumns[Force]]:
            held = HeldLink.moving(link.inertia, self.V[link])
            whole = _LeftColumns(*(Force(held.A.column(i), Vec.unit(i).cross(held.c)) for i in range(3)))
            if outboard is not None and word != "M_hat":
                whole = whole + outboard
            passed = whole if axes is None else whole.each(partial(_without, axes[link]))
            phi = link.phi(self.q)
            return (None if link.parent < 0 else passed.turned(phi.matrix()[0].T).each(phi.__matmul__)), whole

        return inward(self.tree, gather, None)

    def _J_hat(self) -> list[_LeftColumns[Motion]]:
        """Base to tip: Ĵ(k) = τ̄*(k)φ*(p, k) Ĵ(p) φ*⁻¹(p, k) + H*(k)Ĝ*(k)."""
        axes, P_hat = articulate(self.tree, self.q), self._gathered("P_hat")
        found: list[_LeftColumns[Motion]] = []
        for link in self.tree:
            own = P_hat[link].each(partial(_given_way, axes[link]))
            if link.parent >= 0:
                phi = link.phi(self.q)
                above = found[link.parent].turned(phi.matrix()[0]).each(phi.T.__matmul__)
                own = own + above.each(partial(_held, axes[link]))
            found.append(own)
        return found


def _without(axes: Sequence[Axis], force: Force) -> Force:
    """τ̄ f."""
    for axis in axes:
        force = force - axis.g * axis.s.dot(force)
    return force


def _held(axes: Sequence[Axis], motion: Motion) -> Motion:
    """τ̄* y."""
    for axis in reversed(axes):
        motion = motion - axis.s * motion.dot(axis.g)
    return motion


def _given_way(axes: Sequence[Axis], force: Force) -> Motion:
    """H*D⁻¹H f."""
    nu = []
    for axis in axes:
        eps = axis.s.dot(force)
        nu.append(eps * axis.d_inverse)
        force = force - axis.g * eps
    motion = Motion.zero()
    for axis, pushed in zip(reversed(axes), reversed(nu), strict=True):
        motion = motion + axis.s * (pushed - motion.dot(axis.g))
    return motion


def crossed(X: Array, swapped: bool) -> Array:
    """S[X], blocks [[a~, b~], [0, a~]], or (``swapped``) Q[X], blocks [[a~, b~], [b~, 0]], of X (..., 6n).

    Jain 1993 eq. 1.5-1.6; Q[X]Y = -S[Y]X.
    """
    out = np.zeros((*X.shape, X.shape[-1]), X.dtype)
    for k in range(0, X.shape[-1], 6):
        upper, lower = slice(k, k + 3), slice(k + 3, k + 6)
        a, b = (_cross_matrix(X[..., part]) for part in (upper, lower))
        out[..., upper, upper], out[..., upper, lower] = a, b
        if swapped:
            out[..., lower, upper] = b
        else:
            out[..., lower, lower] = a
    return out


def _cross_matrix(x: Array) -> Array:
    """x~, (..., 3, 3)."""
    out = np.zeros((*x.shape, 3), x.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., j, i], out[..., i, j] = x[..., k], -x[..., k]
    return out


def block_diagonal(blocks: Sequence[Matrix]) -> Matrix:
    """One matrix from its diagonal blocks."""
    columns = sum(len(block[0]) for block in blocks if block)
    rows: Matrix = []
    start = 0
    for block in blocks:
        for entries in block:
            row = zeros(1, columns)[0]
            row[start : start + len(entries)] = entries
            rows.append(row)
        start += len(block[0]) if block else 6
    return rows


class LinearizedOperators(TreeOperators):
    """The operators that need velocities, or accelerations too: M̂, Ḣ, Ḧ, A_D and B_D among them."""

    def __init__(self, engine: Engine, has_velocity: bool, rates: LinkRates | None) -> None:
        super().__init__(engine, has_velocity)
        self._rates = rates

    @cached_property
    def alpha(self) -> Vector:
        """α = φ*(H*v̇ + Ḣ*v), 6n, about an inertial point at rest, with gravity as in :attr:`a` (Jain 1993 eq. 2.19)."""
        if self._rates is None or self._rates.vdot is None:
            raise needs("alpha", "velocity" if self._rates is None else "acceleration")
        column = self.engine.blocks.written([[x] for x in self._rates.alpha()])[..., 0]
        return Given(self.engine, self.engine.links, column, "α")

    @cached_property
    def M_hat(self) -> Operator:
        """M̂ = ½(Ṁ - Q[MV]), 6n × 6n, block diagonal, M̂V = ṀV (Jain 1993 eq. 2.7)."""
        return self._rate("M_hat")

    @cached_property
    def R_hat(self) -> Operator:
        """R̂ = M̂ + E_φR̂E_φ*, 6n × 6n, block diagonal (Jain 1993 lemma 3.2)."""
        return self._rate("R_hat")

    @cached_property
    def P_hat(self) -> Operator:
        """P̂ = M̂ + E_ψP̂E_φ*, 6n × 6n, block diagonal (Jain 1993 eq. 4.11)."""
        return self._rate("P_hat")

    @cached_property
    def H_dot(self) -> Operator:
        """Ḣ, N × 6n, with Ḣ* = V×H* for axes that are fixed in their links (Jain 1993 eq. 2.13)."""
        return self._rate("H_dot")

    @cached_property
    def J_hat(self) -> Operator:
        """Ĵ with ĴE_φ* = E_ψ*Ĵ + τ̂*E_φ*, 6n × 6n, block diagonal, base to tip (Jain 1993 eq. 4.22)."""
        return self._rate("J_hat")

    def S(self, X: Vector) -> Operator:
        """S[X], 6n × 6n, blocks [[a~, b~], [0, a~]] for X = [a; b] on each link (Jain 1993 eq. 1.5): -S[X]* is X×."""
        return self._crossed("S", X)

    def Q(self, X: Vector) -> Operator:
        """Q[X], 6n × 6n, blocks [[a~, b~], [b~, 0]] for X = [a; b] on each link: Q[X]Y = -S[Y]X (Jain 1993 eq. 1.6)."""
        return self._crossed("Q", X)

    @cached_property
    def S_V(self) -> Operator:
        """S[V], 6n × 6n: Ṁ = S[V]M + MS[V]*, Ḣ* = -S[V]*H* (Jain 1993 eq. 2.6, 2.13)."""
        return self.S(self.V)

    @cached_property
    def S_joints(self) -> Operator:
        """S[H*β], 6n × 6n, of the relative velocities H*β = V - E_φ*V across the joints."""
        return self.S(self.V - self.E_phi.T @ self.V)

    @cached_property
    def Q_momenta(self) -> Operator:
        """Q[MV], 6n × 6n (Jain 1993 eq. 2.7)."""
        return self.Q(self.M @ self.V)

    @cached_property
    def Q_own_forces(self) -> Operator:
        """Q[x], 6n × 6n, of the force x = Mα + M̂V that each link by itself needs (Jain 1993 eq. 2.19)."""
        return self.Q(self.M @ self.alpha + self.M_hat @ self.V)

    @cached_property
    def Q_forces(self) -> Operator:
        """Q[f], 6n × 6n, of the forces f = φ(Mα + M̂V) across the joints (Jain 1993 eq. 2.19)."""
        return self.Q(self.phi @ (self.M @ self.alpha + self.M_hat @ self.V))

    @cached_property
    def H_tilde_f(self) -> Operator:
        """H̃f = -Q[f]H*, 6n × N: columns S[H*(k)]f(k), f the forces across the joints (Jain 1993 eq. 3.2, A.13)."""
        return -(self.Q_forces @ self.H.T)

    @cached_property
    def H_ddot(self) -> Operator:
        """Ḧ, N × 6n, with Ḧ* = α×H* + V×Ḣ* (Jain 1993 eq. 2.14)."""
        return -(self.H @ self.S(self.alpha) + self.H_dot @ self.S_V)

    @cached_property
    def A_D(self) -> Operator:
        """A_D = ∂T/∂θ' = 2Hφ[M̂φ*H* + Mφ*Ḣ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("A_D")
        swept = self.M_hat @ self.phi.T @ self.H.T + self.M @ self.phi.T @ self.H_dot.T
        return 2.0 * (self.H @ self.phi @ swept)

    @cached_property
    def B_D(self) -> Operator:
        """B_D = ∂T/∂θ = Hφ[H̃f + 2M̂φ*Ḣ* + Mφ*Ḧ*], N × N, for joints of one freedom (Jain 1993 lemma 3.1)."""
        self._one_freedom("B_D")
        moved = 2.0 * (self.M_hat @ self.phi.T @ self.H_dot.T) + self.M @ self.phi.T @ self.H_ddot.T
        return self.H @ self.phi @ (self.H_tilde_f + moved)

    @cached_property
    def G_hat(self) -> Operator:
        """Ĝ = P̂*H*D⁻¹, 6n × N (Jain 1993 eq. 4.12, its star mended)."""
        return self.P_hat.T @ self.H.T @ self.D.inv()

    @cached_property
    def K_hat(self) -> Operator:
        """K̂ = E_φĜ, 6n × N (Jain 1993 eq. 4.12)."""
        return self.E_phi @ self.G_hat

    @cached_property
    def tau_hat(self) -> Operator:
        """τ̂ = ĜH, 6n × 6n (Jain 1993 eq. 4.22)."""
        return self.G_hat @ self.H

    @cached_property
    def Y_A(self) -> Operator:
        """Y_A = 2[P̂H* + PḢ*], 6n × N (Jain 1993 eq. 4.14)."""
        return 2.0 * (self.P_hat @ self.H.T + self.P @ self.H_dot.T)

    @cached_property
    def Y_B(self) -> Operator:
        """Y_B = 2P̂Ḣ* + PḦ* + H̃f, 6n × N (Jain 1993 eq. 4.14)."""
        return 2.0 * (self.P_hat @ self.H_dot.T) + self.P @ self.H_ddot.T + self.H_tilde_f

    @cached_property
    def L(self) -> Operator:
        """L = D⁻¹ + K*ΥK, N × N, without branches the diagonal blocks of 𝓜⁻¹ (Jain 1993 eq. 4.22)."""
        return self.D.inv() + self.K.T @ self.Upsilon @ self.K

    @cached_property
    def W(self) -> Operator:
        """W = D⁻¹H - K*ΥE_ψ, N × 6n: the U of Jain 1993 eq. 4.22, whose letter the closures have here."""
        return self.D.inv() @ self.H - self.K.T @ self.Upsilon @ self.E_psi

    @cached_property
    def Q_K(self) -> Operator:
        """Q_K = 2[K̂ - Ĵ*K], 6n × N: the Q of Jain 1993 eq. 4.22."""
        return 2.0 * (self.K_hat - self.J_hat.T @ self.K)

    @cached_property
    def E_A(self) -> Operator:
        """E_A = 2Ḣ* - ΥY_A + 2ĴH*, 6n × N (Jain 1993 eq. 4.22)."""
        return 2.0 * self.H_dot.T - self.Upsilon @ self.Y_A + 2.0 * (self.J_hat @ self.H.T)

    @cached_property
    def E_B(self) -> Operator:
        """E_B = Ḧ* - ΥY_B + 2ĴḢ*, 6n × N (Jain 1993 eq. 4.22)."""
        return self.H_ddot.T - self.Upsilon @ self.Y_B + 2.0 * (self.J_hat @ self.H_dot.T)

    @property
    def has_rates(self) -> bool:
        """Whether M̂ and its kin are there: for rigid links, where the velocity is given."""
        return self._rates is not None

    @property
    def has_accelerations(self) -> bool:
        """Whether Ḧ and H̃f are there: where the acceleration is given, too."""
        return self._rates is not None and self._rates.vdot is not None

    def _rate(self, word: str) -> Operator:
        if self._rates is None:
            raise needs(word, "velocity")
        matrix = self.engine.blocks.written(block_diagonal(self._rates.blocks(word)))
        rows = self.engine.joints if word == "H_dot" else self.engine.links
        return WrittenOut(self.engine, word, matrix, rows, self.engine.links)

    def _crossed(self, word: str, X: Vector) -> Operator:
        links = self.engine.links
        if X.space != links or set(links.sizes) > {6}:
            raise InputError(
                f"{word}[{X.name}] is made of spatial vectors, six numbers on each link",
                got=f"a vector of {X.space.size} {X.space.name}",
                allowed=f"one over {len(links.sizes)} rigid links, e.g. ops.V",
            )
        return WrittenOut(self.engine, word, crossed(X.value, word == "Q"), links, links, X)

    def _one_freedom(self, word: str) -> None:
        if max(self.engine.joints.sizes, default=0) > 1:
            raise InputError(
                f"ops.{word} is the derivative for joints of one freedom, as in the paper",
                got=f"a joint of {max(self.engine.joints.sizes)} freedoms",
                do="use model.linearize_inverse(q, v, vdot), which takes every joint",
            )
