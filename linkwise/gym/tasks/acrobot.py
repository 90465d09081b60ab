"""Acrobot: two links hang from a pivot, and the motor between them swings their end up (Sutton 1996)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Revolute
from linkwise.math import cos, sin, where
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import Flat, Scalar


def mechanism() -> Model:
    """Two links of 1 m and 1 kg, with inertias of 1 kg m² about their middles, hanging down at zero."""
    b = ModelBuilder("acrobot", gravity=(0.0, 0.0, -9.8))
    looks = capsule(0.05, ends=((0, 0, 0), (0, 0, -1.0)), mass=1.0).named("link").visuals
    link: dict[str, Any] = {"mass": 1.0, "com": (0.0, 0.0, -0.5), "inertia": np.eye(3), "visuals": looks}
    b.add_body("upper", joint=Revolute((0, 1, 0)), joint_name="shoulder", **link)
    b.add_body("lower", "upper", Revolute((0, 1, 0)), transform(xyz=(0, 0, -1.0)), joint_name="elbow", **link)
    return b.build()


def acrobot() -> partial[VectorEnv]:
    """Task of an acrobot: torque of -1, 0 or 1 N m at the elbow; -1 for every step until the end is up.

    Observed are cosine and sine of both angles, and their rates.
    """

    def observe(now: Moment) -> Flat:
        (a, b), v = now.q, now.v
        return [cos(a), sin(a), cos(b), sin(b), v[0], v[1]]

    def done(now: Moment) -> Scalar:
        return -cos(now.q[0]) - cos(now.q[0] + now.q[1]) > 1.0

    def reset(model: Model, draws: Draws) -> Beginning:
        return draws.uniform([-0.1] * 2, [0.1] * 2), draws.uniform([-0.1] * 2, [0.1] * 2)

    return partial(
        VectorEnv,
        model=mechanism(),
        observe=observe,
        reward=lambda now: where(done(now), 0.0, -1.0),
        done=done,
        act=lambda now: [0.0, now.action[0]],
        choices=[[-1.0], [0.0], [1.0]],
        reset=reset,
        dt=0.2,
        method="rk4",
        max_episode_steps=500,
    )
