"""Flexible arm: two tubes that bend bring their load to a point, and it must not swing there."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise import samples
from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.math import cos, sin, sqrt
from linkwise.model.model import Model
from linkwise.spatial.scalar import Flat, Scalar

_TORQUE = 30.0  # N m


def flexible_arm() -> partial[VectorEnv]:
    """Task of ``samples.flexible_arm(modes=1)``: torques up to 30 N m at shoulder and elbow.

    Observed are q, v, the goal and the way from the load to it, all in metres, radians and seconds; the reward is minus
    the distance (m) and a twentieth of the load's speed (m/s).
    """
    model = samples.flexible_arm(modes=1)
    motors = [model.joints[name].v_slice.stop - 1 for name in ("shoulder", "elbow")]
    hinges = [model.joints[name].q_slice.stop - 1 for name in ("shoulder", "elbow")]

    def act(now: Moment) -> Flat:
        forces = [0.0] * now.model.nv
        for motor, torque in zip(motors, now.action, strict=True):
            forces[motor] = _TORQUE * torque
        return forces

    def reward(now: Moment) -> Scalar:
        way, speed = now.way("payload"), now.model.velocity(now.q, now.v, "payload")[3:]
        return -sqrt(way @ way + 1e-12) - 0.05 * sqrt(speed @ speed + 1e-12)

    def reset(model: Model, draws: Draws) -> Beginning:
        q = np.array(model.neutral(), dtype=object)
        q[hinges] = draws.uniform([0.8, -0.5], [1.6, 0.5])
        turn, bend = draws.uniform(0.3, 1.2), draws.uniform(0.3, 1.2)
        goal = [cos(turn) + cos(turn + bend), 0.0, 0.5 - sin(turn) - sin(turn + bend)]
        return q, np.zeros(model.nv), goal

    return partial(
        VectorEnv,
        model=model,
        observe=lambda now: [*now.q, *now.v, *now.goal, *now.way("payload")],
        reward=reward,
        done=None,
        act=act,
        reset=reset,
        dt=0.02,
        substeps=10,
        method="rk4",
        max_episode_steps=200,
        actions=2,
    )
