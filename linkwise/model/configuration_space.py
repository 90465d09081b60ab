"""Configurations: a neutral one, random ones, and the motions from one to another."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.mechanism.mechanism import Mechanism
from linkwise.model.base import Methods


class ConfigurationSpace(Methods):
    """The space of q, which is flat only where all joints are."""

    def neutral(self) -> Array:
        """The zero configuration (nq)."""
        q = np.zeros(self.nq)
        for joint in self.joints:
            if joint.mimic is None:
                q[joint.q_slice] = joint.type.neutral()
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
