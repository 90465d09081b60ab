"""Impulses of islands by an interior-point method, which comes near the solution from far and in any size of island.

With x = (μ λ_n, λ_t) and z = (w_n/μ + |w_t|, w_t) the laws of a contact are x ∈ L, z ∈ L, x·z = 0 for the cone L of all
whose first number is at least as long as the others together. From inside both cones each step asks for less of x·z, by
Newton's method with the scaling of Nesterov and Todd, and stays inside (Acary, Armand, Nguyen and Shpakovych 2023). The
last digits are left to others: matrices are the worse the nearer the solution is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.sim.piles.islands import Island

STEPS = 60
"""At most."""

START = 10.0
"""Distance inside their cones at which contacts begin, in units of what laws are missed by."""

CENTRING, SHORT = 0.3, 0.9
"""The least part of x·z that a step asks for, and that part of the way to the cone's surface that it goes."""

LOWEST = 1e-16
"""J, of x·z, below which matrices have no digits left."""

_FLIPPED = np.array([1.0, -1.0, -1.0])


@dataclass
class InteriorPoint:
    """Islands on their way to the solution.

    Args:
        island: contacts of all of them.
        number: of each contact, that of its island, from zero on.
    """

    island: Island
    number: Array

    def __post_init__(self) -> None:
        rows = self.island.rows
        mu = np.maximum(rows.friction, 1e-6)
        self.scale = np.stack([1.0 / mu, np.ones(len(mu)), np.ones(len(mu))], axis=1)
        self.J = self.island.J * self.scale[:, None, :, None]
        self.count = np.bincount(self.number)
        self.of_body = np.zeros(len(self.island.bodies) + 1, int)
        for side in range(2):
            self.of_body[self.island.body[:, side]] = self.number

    def impulses(self, velocity: Array, impulse: Array, within: Array, misses: Callable[[Array], Array]) -> Array:
        """The best impulses (m, 3) on the way from some velocities of bodies (n, 6) and impulses (m, 3).

        Args:
            velocity: of the bodies of the islands.
            impulse: of contacts.
            within: how far inside the cones contacts begin (m), m/s.
            misses: by how much impulses miss their laws (m), m/s.
        """
        v, best, kept = velocity, self._worst(misses(impulse)), impulse
        x, z = self._inside(v, impulse, self._worst(within)[self.number] + 1e-12)
        for _ in range(STEPS):
            dv, dx, dz, gap = self._step(v, x, z)
            if not np.isfinite(dv).all():
                break
            length = np.where(gap > LOWEST, np.minimum(1.0, SHORT * self._longest(x, dx, z, dz)), 0.0)
            along = length[self.number][:, None]
            v, x, z = v + length[self.of_body[:-1]][:, None] * dv, x + along * dx, z + along * dz
            now = x * self.scale
            reached = self._worst(misses(now))
            kept = np.where((reached < best)[self.number][:, None], now, kept)
            best = np.minimum(best, reached)
            if not length.any():
                break
        return kept

    def _worst(self, missed: Array) -> Array:
        worst = np.zeros(len(self.count))
        np.maximum.at(worst, self.number, missed)
        return worst

    def _velocities(self, v: Array) -> Array:
        known = np.concatenate([v, np.zeros((1, 6))])
        return np.asarray(np.einsum("mski,msi->mk", self.J, known[self.island.body]))

    def _inside(self, v: Array, impulse: Array, within: Array) -> tuple[Array, Array]:
        """The x and z inside their cones, by so many m/s."""
        rows = self.island.rows
        x, z = impulse / self.scale, self._velocities(v) + self.scale * rows.bias
        z[:, 0] += np.hypot(z[:, 1], z[:, 2])
        for one, more in ((x, within / (rows.own[:, 0, 0] * self.scale[:, 0])), (z, within * self.scale[:, 0])):
            one[:, 0] = np.maximum(one[:, 0], np.hypot(one[:, 1], one[:, 2]) + more)
        return x, z

    def _step(self, v: Array, x: Array, z: Array) -> tuple[Array, Array, Array, Array]:
        """The changes of v, x and z, and the mean x·z of each island."""
        island, slip = self.island, np.hypot(z[:, 1], z[:, 2])
        open_ = z - self._velocities(v) - self.scale * island.rows.bias
        open_[:, 0] -= slip
        missing = island.momentum(v) - island.summed(self.J, x)
        gap = np.bincount(self.number, weights=np.sum(x * z, axis=1)) / self.count
        P = _scaling(x, z)
        D = np.tile(np.eye(3), (len(x), 1, 1))
        D[:, 0, 1:] = z[:, 1:] / np.maximum(slip, 1e-300)[:, None]
        solve = island.solver(np.einsum("mij,mi,mj->mij", P @ D, self.scale, self.scale))

        def towards(less: Array) -> tuple[Array, Array, Array]:
            """For x + dx + P dz = less z⁻¹, and dz = D(J dv - open)."""
            r = less[self.number][:, None] * z * _FLIPPED / _determinant(z)[:, None] - x
            dv = solve(island.summed(self.J, r + np.einsum("mij,mj->mi", P @ D, open_)) - missing)
            dz = np.einsum("mij,mj->mi", D, self._velocities(dv) - open_)
            return dv, r - np.einsum("mij,mj->mi", P, dz), dz

        _, dx, dz = towards(np.zeros(len(gap)))
        along = np.minimum(1.0, self._longest(x, dx, z, dz))[self.number][:, None]
        left = np.bincount(self.number, weights=np.sum((x + along * dx) * (z + along * dz), axis=1)) / self.count
        part = np.clip(np.abs(left) / np.maximum(gap, 1e-300), CENTRING ** (1 / 3), 1.0) ** 3
        return (*towards(part * gap), gap)

    def _longest(self, x: Array, dx: Array, z: Array, dz: Array) -> Array:
        """For each island the multiple of a step that leads to the surface of a cone."""
        longest = np.full(len(self.count), np.inf)
        for at, change in ((x, dx), (z, dz)):
            np.minimum.at(longest, self.number, _to_the_surface(at, change))
        return longest


def _determinant(x: Array) -> Array:
    length = np.hypot(x[:, 1], x[:, 2])
    return np.asarray(np.maximum((x[:, 0] - length) * (x[:, 0] + length), 1e-28 * x[:, 0] ** 2 + 1e-300))


def _scaling(x: Array, z: Array) -> Array:
    """The P of Nesterov and Todd (m, 3, 3), with P z = x."""
    dx, dz = _determinant(x), _determinant(z)
    a, b = x / np.sqrt(dx)[:, None], z / np.sqrt(dz)[:, None]
    middle = (a + _FLIPPED * b) / np.sqrt(2.0 * (1.0 + np.maximum(np.sum(a * b, axis=1), 0.0)))[:, None]
    return np.asarray(
        np.sqrt(dx / dz)[:, None, None] * (2.0 * middle[:, :, None] * middle[:, None, :] - np.diag(_FLIPPED))
    )


def _to_the_surface(x: Array, d: Array) -> Array:
    """The least t > 0 at which x + t d leaves the cone (m); infinite if it never does."""
    a, b, c = np.sum(d * _FLIPPED * d, axis=1), np.sum(x * _FLIPPED * d, axis=1), _determinant(x)
    inside = b * b - a * c
    q = -(b + np.where(b >= 0.0, 1.0, -1.0) * np.sqrt(np.maximum(inside, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.stack([q / a, c / q, -x[:, 0] / d[:, 0]])
    found[:2, inside < 0.0] = np.inf
    found[2, d[:, 0] >= 0.0] = np.inf
    least: Array = np.where(np.isfinite(found) & (found > 0.0), found, np.inf).min(axis=0)
    return least
