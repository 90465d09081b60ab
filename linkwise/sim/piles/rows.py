"""Rows of the contacts of a pile: directions, moments about mass centres, and what an impulse does there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.geometry.points import tangents
from linkwise.memoized import cached_property
from linkwise.spatial.vectors import Vec


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
