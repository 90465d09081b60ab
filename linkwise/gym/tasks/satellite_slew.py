"""Slew: a satellite turns to an attitude that every episode chooses, and its panels must not swing there."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.math import abs, where
from linkwise.model.model import Model
from linkwise.samples import flexible_satellite
from linkwise.spatial.quaternions import conjugate, multiply
from linkwise.spatial.scalar import Flat, Scalar

_TORQUE = 1.0  # N m


def satellite_slew() -> partial[VectorEnv]:
    """Task of ``samples.flexible_satellite(modes=1)``: torques up to 1 N m about the axes of its hub.

    Observed are the turn that is missing (a quaternion in the hub's axes), and q and v of hub and panels; the reward is
    minus the missing turn (the sine of its half) and a tenth of the hub's rate (rad/s).
    """
    model = flexible_satellite(modes=1, damping=0.005)

    def missing(now: Moment) -> Flat:
        """Conjugate of the attitude times the goal: of the two quaternions of that turn, the one below half a turn."""
        turn = multiply(conjugate(list(now.q)), list(now.goal))
        return [where(turn[0] < 0.0, -part, part) for part in turn]

    def reward(now: Moment) -> Scalar:
        off = missing(now)
        rates = now.v[:3]
        return -(abs(off[1]) + abs(off[2]) + abs(off[3])) - 0.1 * (abs(rates[0]) + abs(rates[1]) + abs(rates[2]))

    def reset(model: Model, draws: Draws) -> Beginning:
        q = np.array(model.neutral(), dtype=object)
        return q, np.zeros(model.nv), draws.rotation()

    return partial(
        VectorEnv,
        model=model,
        observe=lambda now: [*missing(now), *now.q[7:], *now.v[:3], *now.v[6:]],
        reward=reward,
        done=None,
        act=lambda now: [*(_TORQUE * now.action), *[0.0] * (now.model.nv - 3)],
        reset=reset,
        dt=0.2,
        substeps=8,
        method="rk4",
        max_episode_steps=300,
        actions=3,
    )
