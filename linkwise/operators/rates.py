"""Blocks of the linearised models (Jain 1993): M̂ = ½(Ṁ - Q[MV]) with its composite R̂ and articulated P̂, Ḣ, Ĵ, α.

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
from linkwise.algorithms.fixed_point import HeldLink
from linkwise.algorithms.kinematics import velocities
from linkwise.algorithms.sweeps import Field, inward
from linkwise.array_types import Array
from linkwise.mechanism.tree import Link, Tree
from linkwise.memoized import cached_property
from linkwise.spatial.matrices import Mat3, zeros
from linkwise.spatial.scalar import Flat, Matrix, Scalar, Value
from linkwise.spatial.vectors import Force, Motion, Vec

SpatialT = TypeVar("SpatialT", Force, Motion)
OtherT = TypeVar("OtherT", Force, Motion)


class _Columns(Value, Generic[SpatialT]):
    """A 6 × 6 matrix whose last three columns are zero: of forces, or of motions."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: SpatialT, y: SpatialT, z: SpatialT) -> None:
        self.x: SpatialT = x
        self.y: SpatialT = y
        self.z: SpatialT = z

    def __iter__(self) -> Iterator[SpatialT]:
        return iter((self.x, self.y, self.z))

    def __add__(self, other: _Columns[SpatialT]) -> _Columns[SpatialT]:
        return _Columns(*(a + b for a, b in zip(self, other, strict=True)))

    def each(self, of: Callable[[SpatialT], OtherT]) -> _Columns[OtherT]:
        """A matrix times this, by what it makes of a column."""
        return _Columns(*map(of, self))

    def turned(self, R: Mat3) -> _Columns[SpatialT]:
        """This times a matrix whose blocks on the diagonal are R."""
        return _Columns(*(self.x * R.m[0][j] + self.y * R.m[1][j] + self.z * R.m[2][j] for j in range(3)))

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

    def _gathered(self, word: str) -> Field[_Columns[Force]]:
        axes = articulate(self.tree, self.q) if word == "P_hat" else None

        def gather(link: Link, outboard: _Columns[Force] | None) -> tuple[_Columns[Force] | None, _Columns[Force]]:
            held = HeldLink.moving(link.inertia, self.V[link])
            whole = _Columns(*(Force(held.A.column(i), Vec.unit(i).cross(held.c)) for i in range(3)))
            if outboard is not None and word != "M_hat":
                whole = whole + outboard
            passed = whole if axes is None else whole.each(partial(_without, axes[link]))
            phi = link.phi(self.q)
            return (None if link.parent < 0 else passed.turned(phi.matrix()[0].T).each(phi.__matmul__)), whole

        return inward(self.tree, gather, None)

    def _J_hat(self) -> list[_Columns[Motion]]:
        """Base to tip: Ĵ(k) = τ̄*(k)φ*(p, k) Ĵ(p) φ*⁻¹(p, k) + H*(k)Ĝ*(k)."""
        axes, P_hat = articulate(self.tree, self.q), self._gathered("P_hat")
        found: list[_Columns[Motion]] = []
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
