"""Gait: a quadruped learns to walk at a speed that every episode chooses."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise import samples
from linkwise.array_types import Array
from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.math import clip, exp, where
from linkwise.mechanism.contacts import Ground
from linkwise.mechanism.materials import Material
from linkwise.model.model import Model
from linkwise.spatial.scalar import Flat, Scalar

_STIFF, _DAMPING, _REACH = 40.0, 1.0, 0.5  # N m/rad, N m s/rad; rad that an action of one turns a joint


def quadruped() -> partial[VectorEnv]:
    """Task of ``samples.quadruped()`` on the ground: actions are angles beside those of standing, held by PD.

    Observed are the direction of up and the velocities in the trunk's axes, the angles beside standing and their rates
    / 10, the last action, and the wanted speed (m/s). The reward is near one at that speed, less for tumbling, turning
    and large torques; an episode ends when the trunk tilts by 60° or sinks below 0.15 m.
    """
    model = samples.quadruped().with_contacts(Ground(), between=[], material=Material(friction=0.8))
    stand = np.asarray(model.configurations["stand"], float)
    effort = np.asarray(model.limits.effort, float)[6:]

    def torques(now: Moment) -> list[Scalar]:
        wanted = stand[7:] + _REACH * now.action
        raw = _STIFF * (wanted - now.q[7:]) - _DAMPING * now.v[6:]
        return [clip(x, -limit, limit) for x, limit in zip(raw, effort, strict=True)]

    def up(now: Moment) -> Array:
        """Up in the trunk's axes."""
        return now.model.pose(now.q, "trunk")[2, :3]

    def observe(now: Moment) -> Flat:
        return [*up(now), *now.v[:6], *(now.q[7:] - stand[7:]), *(0.1 * now.v[6:]), *now.action, *now.goal]

    def reward(now: Moment) -> Scalar:
        error, lean = now.v[3] - now.goal[0], up(now)
        spin, aside = now.v[:3] @ now.v[:3], now.v[4] * now.v[4] + now.v[5] * now.v[5]
        push = np.array(torques(now), dtype=object)
        return exp(-4.0 * error * error) - 0.5 * (1.0 - lean[2]) - 0.05 * spin - 0.2 * aside - 2e-4 * (push @ push)

    def done(now: Moment) -> Scalar:
        return where(up(now)[2] < 0.5, 1.0, where(now.q[6] < 0.15, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Beginning:
        q = np.array(stand, dtype=object)
        q[7:] = stand[7:] + draws.uniform([-0.05] * 12, [0.05] * 12)
        q[6] = stand[6] + 0.02
        return q, np.zeros(model.nv), [draws.uniform(0.3, 0.7)]

    return partial(
        VectorEnv,
        model=model,
        observe=observe,
        reward=reward,
        done=done,
        act=lambda now: [0.0] * 6 + torques(now),
        reset=reset,
        dt=0.02,
        substeps=4,
        max_episode_steps=500,
        actions=12,
    )
