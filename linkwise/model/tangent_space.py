"""The tangent space of configurations: brackets of quasi-velocities, and how a step changes with its start."""

from __future__ import annotations

import numpy as np

from linkwise.algorithms.tangent import structure_constants
from linkwise.array_types import Array
from linkwise.memoized import cached_property
from linkwise.model.configuration_space import ConfigurationSpace


class TangentSpace(ConfigurationSpace):
    """The tangent space of a model's configurations, for the methods that need its brackets."""

    def _moved(self, q: Array, d_q: Array, theta: Array, d_theta: Array) -> tuple[Array, Array]:
        """q ⊕ θ and its change: exp(-ad θ) δq + [Σ (-ad θ)^k/(k+1)!] δθ."""
        there = self.integrate(q, theta)
        if not len(self._structure[0]):
            return there, d_q + d_theta
        minus_ad = -self._ad(theta)
        power = np.broadcast_to(np.eye(self.nv), minus_ad.shape)
        turn, chord = power.copy(), power.copy()
        for k in range(1, 30):
            power = power @ minus_ad / k
            turn += power
            chord += power / (k + 1)
            if np.abs(power).max(initial=0.0) < 1e-18:
                break
        return there, turn @ d_q + chord @ d_theta

    def _tangent_rate(self, theta: Array, d_theta: Array, v: Array, d_v: Array) -> tuple[Array, Array]:
        """θ' = v + ½[θ, v] + [θ, [θ, v]]/12, as far as a method of order four can tell, and its change."""
        if not len(self._structure[0]):
            return v, d_v
        ad, ad_v = self._ad(theta), self._ad(v)
        first = np.einsum("...ij,...j->...i", ad, v)
        second = np.einsum("...ij,...j->...i", ad, first)
        by_v = np.eye(self.nv) + ad / 2.0 + ad @ ad / 12.0
        by_theta = -ad_v / 2.0 - (self._ad(first) + ad @ ad_v) / 12.0
        return v + first / 2.0 + second / 12.0, by_v @ d_v + by_theta @ d_theta

    @cached_property
    def _structure(self) -> tuple[Array, Array, Array, Array]:
        """The structure constants of the tangent space: rows i, j, k and the constants."""
        entries = structure_constants(self._trees.fast)
        i, j, k = (np.array([entry[a] for entry in entries], int) for a in range(3))
        return i, j, k, np.array([entry[3] for entry in entries], float)

    def _ad(self, x: Array) -> Array:
        """ad x (..., nv, nv), the matrix of y -> [x, y]; zero unless there are quaternion or planar joints."""
        i, j, k, c = self._structure
        matrix = np.zeros((*x.shape, self.nv))
        for row, a, column, constant in zip(i, j, k, c, strict=True):
            matrix[..., row, column] += constant * x[..., a]
        return matrix
