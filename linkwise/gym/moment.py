"""Arguments of an environment's functions: a moment of it, and random numbers over any scalar for its resets.

The generator is that of Wichmann and Hill (1982): three sequences x ← a x mod m with m ≈ 30 000, whose sum's fraction
is uniform, with a period of 7e12. Every product is a whole number below 2²⁴, so it is the same number in float32 and
float64, on a processor and on a GPU; remainders are found by comparing and subtracting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.math import cos, log, sin, sqrt, where
from linkwise.model.model import Model
from linkwise.spatial.scalar import Flat, Scalar

Beginning = Sequence[Flat | Array]
"""Of an episode: q, v and, if there is a goal, its numbers."""


@dataclass(frozen=True)
class Moment:
    """Moment of one environment: arrays of numbers that are traced, so that functions of them become machine code.

    Attributes:
        model: the mechanism.
        q: its configuration (nq).
        v: its velocity (nv).
        action: action in force (size of an action); zeros right after a reset.
        goal: numbers that a reset has chosen for the whole episode.
        p: run-time parameters of the model, for ``model.pose(q, body, p=moment.p)`` and others; None if it has none.
        time: since the beginning of the episode, s.
        impulses: those of the contacts in the last step, N s; empty without contacts.
    """

    model: Model
    q: Array
    v: Array
    action: Array
    goal: Array
    p: Array | None
    time: Scalar
    impulses: Array

    def way(self, body: str) -> Array:
        """From a body or frame to the goal, a point of the world (3), m."""
        return self.goal - self.model.pose(self.q, body)[:3, 3]


_FACTORS = (171.0, 172.0, 170.0)
_PRIMES = (30269.0, 30307.0, 30323.0)

SEED_SIZE = len(_PRIMES)
"""Numbers of a seed."""


def seeds(generator: np.random.Generator, count: int) -> Array:
    """Seeds of independent sequences (count, 3): whole numbers from 1 to below each prime."""
    return generator.integers(1, np.array(_PRIMES), size=(count, SEED_SIZE)).astype(float)


class Draws:
    """Sequence of random numbers.

    Args:
        seed: whole numbers (3), traced or not; see :func:`seeds`.
    """

    def __init__(self, seed: Flat | Array) -> None:
        self.seed = list(seed)

    def _next(self) -> Scalar:
        """Uniform between 0 and 1."""
        self.seed = [
            _remainder(factor * x, prime) for factor, prime, x in zip(_FACTORS, _PRIMES, self.seed, strict=True)
        ]
        total = sum(x * (1.0 / prime) for x, prime in zip(self.seed, _PRIMES, strict=True))
        return total - where(total >= 2.0, 2.0, where(total >= 1.0, 1.0, 0.0))

    def uniform(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> Scalar | Array:
        """Number between two others, or an array of such: bounds are numbers or arrays of one shape."""
        low, high = np.broadcast_arrays(low, high)
        if low.ndim == 0:
            return low[()] + (high[()] - low[()]) * self._next()
        found = [a + (b - a) * self._next() for a, b in zip(low.ravel(), high.ravel(), strict=True)]
        return np.array(found, dtype=object).reshape(low.shape)

    def normal(self, count: int, scale: float = 1.0) -> Array:
        """Array (count) of normally distributed numbers with this standard deviation, by Box and Muller."""
        found: list[Scalar] = []
        while len(found) < count:
            radius = sqrt(-2.0 * log(self._next() + 1e-9)) * scale
            angle = 2.0 * math.pi * self._next()
            found += [radius * cos(angle), radius * sin(angle)]
        return np.array(found[:count], dtype=object)

    def rotation(self) -> Array:
        """Quaternion [w, x, y, z] of an orientation, all orientations being equally likely (Shoemake 1992)."""
        part, first, second = self._next(), 2.0 * math.pi * self._next(), 2.0 * math.pi * self._next()
        a, b = sqrt(1.0 - part), sqrt(part)
        return np.array([b * cos(second), a * sin(first), a * cos(first), b * sin(second)], dtype=object)


def _remainder(x: Scalar, prime: float) -> Scalar:
    """Remainder of a whole number below 256 primes: what is too much goes in halves."""
    for power in range(7, -1, -1):
        much = prime * 2.0**power
        x = where(x >= much, x - much, x)
    return x
