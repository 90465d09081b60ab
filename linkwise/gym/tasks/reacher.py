"""Reacher: a small arm in a horizontal plane brings its tip to a point that every episode chooses."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Revolute
from linkwise.math import cos, sin, sqrt
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import Flat, Scalar

_LENGTHS = (0.1, 0.11)  # m


def mechanism() -> Model:
    """Two links of 0.1 m and 0.11 m on vertical hinges, with the frame ``tip`` at the end."""
    b = ModelBuilder("reacher", gravity=(0.0, 0.0, 0.0))
    parent, place = "world", transform()
    for name, length in zip(("upper", "lower"), _LENGTHS, strict=True):
        rod = capsule(0.01, ends=((0, 0, 0), (length, 0, 0)), mass=0.035)
        b.add_body(name, parent, Revolute((0, 0, 1)), place, shape=rod, armature=1e-3, damping=2e-3)
        parent, place = name, transform(xyz=(length, 0, 0))
    b.add_frame("tip", "lower", place)
    return b.build()


def reacher() -> partial[VectorEnv]:
    """Task of a reacher: torques up to 0.05 N m; the less the distance of tip and goal (m), the better.

    Observed are cosines and sines of the angles, the goal (x, y), the rates / 10, and the way from tip to goal.
    """

    def way(now: Moment) -> Flat:
        return [now.goal[k] - now.model.pose(now.q, "tip")[k, 3] for k in range(2)]

    def observe(now: Moment) -> Flat:
        return [*map(cos, now.q), *map(sin, now.q), *now.goal, *(0.1 * now.v), *way(now)]

    def reward(now: Moment) -> Scalar:
        x, y = way(now)
        return -sqrt(x * x + y * y + 1e-12) - 0.01 * (now.action @ now.action)

    def reset(model: Model, draws: Draws) -> Beginning:
        far, turn = draws.uniform(0.05, 0.2), draws.uniform(-math.pi, math.pi)
        q = draws.uniform([-math.pi] * 2, [math.pi] * 2)
        return q, np.zeros(2), [far * cos(turn), far * sin(turn)]

    return partial(
        VectorEnv,
        model=mechanism(),
        observe=observe,
        reward=reward,
        done=None,
        act=lambda now: 0.05 * now.action,
        reset=reset,
        dt=0.02,
        substeps=2,
        max_episode_steps=100,
        actions=2,
    )
