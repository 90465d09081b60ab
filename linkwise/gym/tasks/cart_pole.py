"""Cart-pole: a cart is pushed so that the pole on it stays up (Barto, Sutton and Anderson 1983)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Prismatic, Revolute
from linkwise.math import abs, where
from linkwise.mechanism.shapes import box, capsule
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import Flat, Scalar

_FORCE, _FAR, _TILT = 10.0, 2.4, 12 * np.pi / 180  # N, m, rad


def mechanism() -> Model:
    """A cart of 1 kg on a rail along x, and on it a pole of 0.1 kg and 1 m, upright at zero."""
    b = ModelBuilder("cart_pole", gravity=(0.0, 0.0, -9.8))
    b.add_body("cart", joint=Prismatic((1, 0, 0)), shape=box((0.4, 0.2, 0.2), mass=1.0))
    rod = capsule(0.02, ends=((0, 0, 0), (0, 0, 1.0)), mass=0.1)
    slender: dict[str, Any] = {"mass": 0.1, "com": (0.0, 0.0, 0.5), "inertia": np.diag([0.1 / 12, 0.1 / 12, 1e-5])}
    b.add_body("pole", "cart", Revolute((0, 1, 0)), visuals=rod.named("pole").visuals, **slender)
    return b.build()


def cart_pole() -> partial[VectorEnv]:
    """Task of a cart-pole: push left or right; observe position, velocity, angle, rate; one for every step."""

    def observe(now: Moment) -> Flat:
        return [now.q[0], now.v[0], now.q[1], now.v[1]]

    def done(now: Moment) -> Scalar:
        return where(abs(now.q[0]) > _FAR, 1.0, where(abs(now.q[1]) > _TILT, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Beginning:
        return draws.uniform([-0.05] * 2, [0.05] * 2), draws.uniform([-0.05] * 2, [0.05] * 2)

    edge = np.array([2 * _FAR, np.inf, 2 * _TILT, np.inf])
    return partial(
        VectorEnv,
        model=mechanism(),
        observe=observe,
        reward=lambda now: 1.0,
        done=done,
        act=lambda now: [now.action[0], 0.0],
        choices=[[-_FORCE], [_FORCE]],
        reset=reset,
        dt=0.02,
        max_episode_steps=500,
        bounds=(-edge, edge),
    )
