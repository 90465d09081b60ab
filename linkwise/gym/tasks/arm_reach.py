"""Reach with an arm of seven joints, such as a Panda; a policy by inverse kinematics shows what can be had."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from linkwise.array_types import Array
from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.kinematics.goals import Reach
from linkwise.math import clip, sqrt
from linkwise.model.model import Model
from linkwise.samples import seven_joint_arm
from linkwise.spatial.scalar import Flat, Scalar

_SPEED, _GAIN = 1.5, 20.0  # rad/s that an action of one asks for; 1/s at which the difference goes


def arm_reach(model: Model | None = None, tool: str = "tool") -> partial[VectorEnv]:
    """Task of an arm whose tool is to reach a point; actions are wanted joint speeds between -1 and 1.

    Torques that lead to these speeds are found by inverse dynamics, within the limits of effort.
    Observed are q, v, the goal and the way from the tool to it; the reward is minus that distance (m). Goals are where
    the tool is in configurations within half of the joint limits, so that all can be reached.

    Args:
        model: an arm on a fixed base with limits of position and effort; ``samples.seven_joint_arm()`` if left out.
        tool: body or frame of it.
    """
    arm = seven_joint_arm() if model is None else model
    middle, half = (arm.limits.upper + arm.limits.lower) / 2, (arm.limits.upper - arm.limits.lower) / 2
    effort = np.asarray(arm.limits.effort, float)

    def reward(now: Moment) -> Scalar:
        return -sqrt(now.way(tool) @ now.way(tool) + 1e-12) - 0.001 * (now.action @ now.action)

    def act(now: Moment) -> Flat:
        wanted = now.model.inverse_dynamics(now.q, now.v, _GAIN * (_SPEED * now.action - now.v))
        return [clip(torque, -limit, limit) for torque, limit in zip(wanted, effort, strict=True)]

    def reset(model: Model, draws: Draws) -> Beginning:
        goal = model.pose(draws.uniform(middle - 0.5 * half, middle + 0.5 * half), tool)[:3, 3]
        return draws.uniform(middle - 0.3 * half, middle + 0.3 * half), np.zeros(model.nv), goal

    return partial(
        VectorEnv,
        model=arm,
        observe=lambda now: [*now.q, *now.v, *now.goal, *now.way(tool)],
        reward=reward,
        done=None,
        act=act,
        reset=reset,
        dt=0.02,
        substeps=4,
        max_episode_steps=150,
        actions=arm.nv,
    )


def kinematic_policy(env: VectorEnv, tool: str = "tool") -> Callable[[Array], Array]:
    """Policy to compare with: towards configurations that inverse kinematics finds for the present goals.

    It takes observations (num_envs, n) and returns actions (num_envs, nv).
    """
    n = env.model.nq
    state = {name: np.asarray(env.state[name], float) for name in ("q", "goal")}
    found = env.model.inverse_kinematics([Reach(tool, position=state["goal"])], q0=state["q"])

    def policy(observations: Array) -> Array:
        return np.clip(4.0 * (found.q - observations[:, :n]) / _SPEED, -1.0, 1.0).astype(env.dtype)

    return policy
