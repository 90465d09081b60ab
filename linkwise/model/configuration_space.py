"""Configurations: a neutral one, random ones, the motions from one to another, and the tangent space of these."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from linkwise.algorithms.configuration import structure_constants
from linkwise.array_types import Array
from linkwise.mechanism.mechanism import Mechanism
from linkwise.memoized import cached_property
from linkwise.model.compiled_methods import Methods


class ConfigurationSpace(Methods):
    """The space of q, which is flat only where all joints are."""

    def neutral(self) -> Array:
        """The zero configuration (nq)."""
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.mimic is None and any(start := joint.type.neutral()):
                q[joint.q_slice] = start
        return q

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | tuple[int, ...] | None = None
    ) -> Array:
        """A random configuration (nq) within the joint limits (±π rad, ±1 m where there are none).

        Flexible bodies are bent a little: each mode moves no node by more than 2 % of the body's size.

        Args:
            rng: a generator, or a seed.
            size: how many, as NumPy's generators take it: ``size=100`` gives (100, nq), ``size=(4, 5)`` (4, 5, nq).
        """
        generator = np.random.default_rng(rng)
        if size is not None:
            shape = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
            many = [self.random_configuration(generator) for _ in range(math.prod(shape))]
            return np.array(many, float).reshape(*shape, self.nq)
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.mimic is None:
                part = joint.q_slice
                q[part] = joint.type.random(
                    generator, self.limits.lower[part].tolist(), self.limits.upper[part].tolist()
                )
        for body in self.bodies:
            if body.flexible is not None:
                q[body.q_slice] = body.flexible.random_deformation(generator)
        return q

    def integrate(self, q: ArrayLike, dv: ArrayLike, *, out: Array | None = None, threads: int | None = None) -> Array:
        """The configuration (..., nq) reached from q by the constant velocity dv (..., nv) in unit time."""
        return self._run("integrate", q, dv, out=out, threads=threads)

    def difference(
        self, q0: ArrayLike, q1: ArrayLike, *, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """The dv (..., nv) for which ``integrate(q0, dv)`` is q1."""
        return self._run("difference", q0, q1, out=out, threads=threads)


def nearest_within(mechanism: Mechanism, q: ArrayLike) -> Array:
    """The configuration nearest to q within the limits, those of joints that follow others included."""
    low, high = np.array(mechanism.limits.lower, float), np.array(mechanism.limits.upper, float)
    for joint in mechanism.joints:
        if joint.mimic is None or not joint.mimic.multiplier:
            continue
        m, offset = joint.mimic.multiplier, joint.mimic.offset
        for k, limit in enumerate(joint.limits):
            ends = sorted(((limit.lower - offset) / m, (limit.upper - offset) / m))
            place = joint.q_slice.start + k
            low[place], high[place] = max(low[place], ends[0]), min(high[place], ends[1])
    return np.asarray(np.minimum(np.maximum(np.asarray(q, float), low), high))


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
