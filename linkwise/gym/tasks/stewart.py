"""Stewart platform: six legs push a plate to a place that every episode chooses. A mechanism with closed loops."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise.array_types import Array
from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.math import exp, sqrt
from linkwise.model.model import Model
from linkwise.samples import stewart_platform
from linkwise.spatial.scalar import Flat, Scalar

_FORCE, _NEAR, _FAR = 150.0, 0.1, 0.4  # N; m that goals are from home; m from home where an episode ends


def stewart() -> partial[VectorEnv]:
    """Task of a Stewart platform: forces along its six legs, up to 150 N beyond what holds it at home.

    Observed are the legs' extensions and rates, the plate's pose and velocity, and the goal. The reward is one where
    the plate is at its goal and level, and falls by the factor e every 5 cm.
    """
    model = stewart_platform()
    slides = [model.joints[f"slide{i}"] for i in range(1, 7)]
    places, rates = [s.q_slice.start for s in slides], [s.v_slice.start for s in slides]
    pose, twist = model.joints["plate_pose"].q_slice, model.joints["plate_pose"].v_slice
    weight = 33.522  # N in each leg: what holds the plate and the legs at home

    def act(now: Moment) -> Flat:
        forces = [0.0] * now.model.nv
        for place, push in zip(rates, now.action, strict=True):
            forces[place] = weight + _FORCE * push
        return forces

    def way(now: Moment) -> Array:
        return now.goal - now.q[pose][4:]

    def reward(now: Moment) -> Scalar:
        tilt = now.q[pose][1:4]
        return exp(-20.0 * sqrt(way(now) @ way(now) + 1e-12) - 4.0 * (tilt @ tilt))

    def observe(now: Moment) -> Flat:
        return [*now.q[places], *now.v[rates], *now.q[pose], *now.v[twist], *now.goal]

    def done(now: Moment) -> Scalar:
        from_home = now.q[pose][4:]
        return from_home @ from_home > _FAR * _FAR

    def reset(model: Model, draws: Draws) -> Beginning:
        return model.neutral(), np.zeros(model.nv), draws.uniform([-_NEAR] * 3, [_NEAR] * 3)

    return partial(
        VectorEnv,
        model=model,
        observe=observe,
        reward=reward,
        done=done,
        act=act,
        reset=reset,
        dt=0.02,
        substeps=4,
        max_episode_steps=200,
        actions=6,
    )
