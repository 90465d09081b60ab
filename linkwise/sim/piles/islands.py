"""Islands of a pile: contacts as rows of numbers, and Newton's method on velocities with sparse matrices.

A contact of the bodies a and b has three rows along its normal and two tangents, w = J_a v_a - J_b v_b. Signorini's
condition and Coulomb's law together say (De Saxcé and Feng 1998)

    λ = P(λ - ρ(w + μ|w_t| n)),    M(v - v_free) = J*λ,

with the projection P on the cone |λ_t| ≤ μ λ_n and any ρ > 0. Newton's method solves the second equation for v with the
first in it, the λ on the right as they were; each such round brings these nearer to those sought (an augmented
Lagrangian). The matrices have blocks for neighbours alone.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from linkwise.array_types import Array
from linkwise.contact.geometry.points import tangents
from linkwise.dataclass import dataclass, replace
from linkwise.memoized import cached_property
from linkwise.spatial.vectors import Vec

_STIFFNESS = 1e4
"""The ρ of a contact times the trace of its own Delassus matrix: the more, the fewer rounds."""

_NEWTON, _HALVINGS = 20, 12
"""Newton steps in a round at most, and how often one is made shorter."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Contacts as solvers see them; m contacts of n bodies, and the world as the last.

    Args:
        body: numbers of both bodies (m, 2).
        frame: normal and tangents (m, 3, 3).
        arms: moments about both mass centres of unit impulses along them (m, 2, 3, 3), m.
        bias: what velocities are counted from (m, 3), m/s.
        friction: coefficients (m).
        height: against gravity (m): sweeps go up and down.
        mass: (n), kg.
        inertia: in the world's axes (n, 3, 3), kg m².
    """

    body: Array
    frame: Array
    arms: Array
    bias: Array
    friction: Array
    height: Array
    mass: Array
    inertia: Array

    def of(self, some: Array) -> Rows:
        """Some of the contacts."""
        own = ("body", "frame", "arms", "bias", "friction", "height")
        return replace(self, **{name: getattr(self, name)[some] for name in own})

    @cached_property
    def inverse_mass(self) -> Array:
        """(n + 1), 1/kg; zero for the world."""
        return np.append(1.0 / self.mass, 0.0)

    @cached_property
    def inverse_inertia(self) -> Array:
        """(n + 1, 3, 3), likewise."""
        return np.concatenate([np.linalg.inv(self.inertia), np.zeros((1, 3, 3))])

    @cached_property
    def jacobians(self) -> Array:
        """Rows of both bodies, those of the second with their sign (m, 2, 3, 6), for velocities [ω, u]."""
        signs = np.array([1.0, -1.0])[:, None, None]
        lin = np.broadcast_to(self.frame[:, None], self.arms.shape)
        return np.asarray(np.concatenate([self.arms, lin], axis=3) * signs)

    def velocities(self, velocity: Array) -> Array:
        """Velocities of contacts along the rows, counted from their bias (m, 3), from those of bodies (n, 6)."""
        known = np.concatenate([velocity, np.zeros((1, 6))])
        return np.asarray(np.einsum("mski,msi->mk", self.jacobians, known[self.body]) + self.bias)

    @cached_property
    def own(self) -> Array:
        """Each contact's own Delassus matrix (m, 3, 3), 1/kg."""
        turning = np.einsum("mski,msij,mslj->mkl", self.arms, self.inverse_inertia[self.body], self.arms, optimize=True)
        return np.asarray(turning + self.inverse_mass[self.body].sum(axis=1)[:, None, None] * np.eye(3))


def frames(normal: Array) -> Array:
    """Normals with two tangents, as rows (m, 3, 3)."""
    first, second = tangents(Vec(*normal.T))
    return np.stack([normal, np.stack(list(first), axis=1), np.stack(list(second), axis=1)], axis=1)


class Island:
    """Bodies that hang together by contacts, or several such."""

    slip: Array | None = None
    """The μ|w_t| of contacts (m), m/s, where it is held."""

    def __init__(self, rows: Rows, free: Array) -> None:
        self.rows = rows
        self.bodies = np.unique(rows.body[rows.body < len(free)])
        number = np.full(len(free) + 1, len(self.bodies))
        number[self.bodies] = np.arange(len(self.bodies))
        self.body = number[rows.body]
        self.free = free[self.bodies]
        self.J = rows.jacobians
        self.trace = np.trace(rows.own, axis1=1, axis2=2)
        self.rho = _STIFFNESS / self.trace
        self.mass = np.zeros((len(self.bodies), 6, 6))
        self.mass[:, :3, :3] = rows.inertia[self.bodies]
        self.mass[:, 3:, 3:] = np.eye(3) * rows.mass[self.bodies][:, None, None]
        self.inverse = np.linalg.inv(self.mass)
        self._pattern()

    def _pattern(self) -> None:
        """Places of the Hessian's blocks of pairs of bodies; contacts of one pair share theirs."""
        n = len(self.bodies)
        code, self.pair = np.unique(self.body[:, 0] * (n + 1) + self.body[:, 1], return_inverse=True)
        first, second = code // (n + 1), code % (n + 1)
        self.between = np.flatnonzero(second < n)
        self.first, self.second = first, second
        block = np.arange(6)
        diagonal, i, j = np.arange(n), first[self.between], second[self.between]
        rows = np.concatenate([diagonal, i, j])[:, None, None] * 6 + block[None, :, None]
        columns = np.concatenate([diagonal, j, i])[:, None, None] * 6 + block[None, None, :]
        shape = (len(rows), 6, 6)
        self.at = np.broadcast_to(rows, shape).ravel(), np.broadcast_to(columns, shape).ravel()

    def round(self, velocity: Array, impulse: Array, *, slip_changes: bool) -> Array:
        """Impulses (m, 3) after one round from these.

        With μ|w_t| as it is at the start the solution is the minimum of a convex function, which is always found, and
        exact where nothing slips; where that changes on the way, convergence is faster, if it converges.
        """
        v = velocity[self.bodies]
        w = self._velocities(v)
        self.slip = None if slip_changes else self.rows.friction * np.hypot(w[:, 1], w[:, 2])
        for _ in range(_NEWTON):
            reached, rest = self._rest(impulse, v)
            size = np.abs(self.momentum(v)).max() + np.abs(reached).max(initial=0.0) + 1e-300
            if np.abs(rest).max() < 1e-13 * size:
                break
            step = self._newton(impulse, v, rest)
            length = self._length(impulse, v, step, rest)
            v = v + length * step
            if length < 1e-3:
                break
        return self._rest(impulse, v)[0]

    def _velocities(self, v: Array) -> Array:
        """Velocities of contacts, counted from their bias (m, 3)."""
        known = np.concatenate([v, np.zeros((1, 6))])
        return np.asarray(np.einsum("mski,msi->mk", self.J, known[self.body]) + self.rows.bias)

    def _asked(self, impulse: Array, w: Array) -> Array:
        """The λ - ρ(w + μ|w_t| n)."""
        slip = self.rows.friction * np.hypot(w[:, 1], w[:, 2]) if self.slip is None else self.slip
        return np.asarray(impulse - self.rho[:, None] * np.hstack([w[:, :1] + slip[:, None], w[:, 1:]]))

    def _rest(self, impulse: Array, v: Array) -> tuple[Array, Array]:
        """The impulses for some velocities, and the momentum that they do not account for (n, 6)."""
        reached = projected(self._asked(impulse, self._velocities(v)), self.rows.friction)
        return reached, self.momentum(v) - self.summed(self.J, reached)

    def summed(self, J: Array, impulse: Array) -> Array:
        """The momentum (n, 6) that impulses (m, 3) along rows (m, 2, 3, 6) give to bodies."""
        total = np.zeros((len(self.bodies) + 1, 6))
        for side in range(2):
            np.add.at(total, self.body[:, side], np.einsum("mki,mk->mi", J[:, side], impulse))
        return total[:-1]

    def momentum(self, v: Array) -> Array:
        """The momentum (n, 6) of bodies beyond that without impulses."""
        return np.asarray(np.einsum("nij,nj->ni", self.mass, v - self.free))

    def _newton(self, impulse: Array, v: Array, rest: Array) -> Array:
        w = self._velocities(v)
        slopes = self.rho[:, None, None] * projection_slopes(self._asked(impulse, w), self.rows.friction)
        if self.slip is None:
            along = w[:, 1:] / np.maximum(np.hypot(w[:, 1], w[:, 2]), 1e-300)[:, None]
            slopes[:, :, 1:] += slopes[:, :, :1] * (self.rows.friction[:, None] * along)[:, None, :]
        return -self.solver(slopes)(rest)

    def solver(self, slopes: Array) -> Callable[[Array], Array]:
        """Solutions of (M + Σ J* slopes J) v = momentum, (n, 6) from (n, 6)."""
        count, n = len(self.first), len(self.bodies)
        both = np.zeros((2, 2, count, 6, 6))
        for a in range(2):
            pushed = np.einsum("mki,mkl->mil", self.J[:, a], slopes)
            for b in range(2):
                np.add.at(both[a, b], self.pair, pushed @ self.J[:, b])
        diagonal = np.concatenate([self.mass, np.zeros((1, 6, 6))])
        np.add.at(diagonal, self.first, both[0, 0])
        np.add.at(diagonal, self.second, both[1, 1])
        values = np.concatenate([diagonal[:-1], both[0, 1][self.between], both[1, 0][self.between]]).ravel()
        H = csc_matrix((values, self.at), shape=(6 * n, 6 * n))
        try:
            factors = splu(H, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.01, options={"SymmetricMode": True})
        except RuntimeError:  # a matrix without digits left
            return lambda momentum: np.full((n, 6), np.nan)
        return lambda momentum: np.asarray(factors.solve(momentum.ravel())).reshape(n, 6)

    def _length(self, impulse: Array, v: Array, step: Array, rest: Array) -> float:
        """Part of a step to go, so that the function is lower, or less momentum is unaccounted for."""

        def value(at: Array) -> float:
            reached, missing = self._rest(impulse, at)
            if self.slip is None:
                return float(np.sum(missing * np.einsum("nij,nj->ni", self.inverse, missing)))
            own = float(np.sum((at - self.free) * self.momentum(at)))
            return 0.5 * (own + float(np.sum(np.sum(reached * reached, axis=1) / self.rho)))

        start, length = value(v), 1.0
        slope = -2.0 * start if self.slip is None else float(np.sum(rest * step))
        for _ in range(_HALVINGS):
            if value(v + length * step) <= start + 1e-4 * length * slope + 1e-14 * abs(start):
                return length
            length *= 0.5
        return length


def projected(x: Array, mu: Array) -> Array:
    """The nearest to x (m, 3) in the cones |x_t| ≤ μ x_n."""
    length = np.hypot(x[:, 1], x[:, 2])
    inside, nothing = length <= mu * x[:, 0], mu * length <= -x[:, 0]
    normal = (x[:, 0] + mu * length) / (1.0 + mu * mu)
    along = x[:, 1:] * (mu * normal / np.where(length > 0.0, length, 1.0))[:, None]
    found = np.where(inside[:, None], x, np.hstack([normal[:, None], along]))
    found[nothing] = 0.0
    return np.asarray(found)


def projection_slopes(x: Array, mu: Array) -> Array:
    """Derivatives of :func:`projected` (m, 3, 3)."""
    length = np.hypot(x[:, 1], x[:, 2])
    inside, nothing = length <= mu * x[:, 0], mu * length <= -x[:, 0]
    safe = np.where(length > 0.0, length, 1.0)
    t = x[:, 1:] / safe[:, None]
    # On the cone's surface: along the generator, and around the axis as far as the radius there.
    generator = np.hstack([np.ones((len(x), 1)), mu[:, None] * t])
    around = mu * (x[:, 0] + mu * length) / ((1.0 + mu * mu) * safe)
    slopes = generator[:, :, None] * generator[:, None, :] / (1.0 + mu * mu)[:, None, None]
    across = np.stack([-t[:, 1], t[:, 0]], axis=1)
    slopes[:, 1:, 1:] += around[:, None, None] * across[:, :, None] * across[:, None, :]
    slopes[inside] = np.eye(3)
    slopes[nothing] = 0.0
    return np.asarray(slopes)
