"""Reaching points: with a small arm, with seven joints, with tubes that bend, with six legs under a plate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise import samples
from linkwise.gym.moment import Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Revolute
from linkwise.kinematics.goals import Reach
from linkwise.math import clip, cos, exp, sin, sqrt
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule
from linkwise.model.model import Model, ModelBuilder
from linkwise.samples import seven_joint_arm, stewart_platform

_LENGTHS = (0.1, 0.11)  # m


def reacher_mechanism() -> Model:
    """Two links of 0.1 m and 0.11 m on vertical hinges, with the frame ``tip`` at the end."""
    b = ModelBuilder("reacher", gravity=(0.0, 0.0, 0.0))
    parent, place = "world", transform()
    for name, length in zip(("upper", "lower"), _LENGTHS, strict=True):
        rod = capsule(0.01, ends=((0, 0, 0), (length, 0, 0)), mass=0.035)
        b.add_body(name, parent, Revolute((0, 0, 1)), place, shape=rod, armature=1e-3, damping=2e-3)
        parent, place = name, transform(xyz=(length, 0, 0))
    b.add_frame("tip", "lower", place)
    return b.build()


def reacher(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a reacher: torques up to 0.05 N m; the less the distance of tip and goal (m), the better.

    Observed are cosines and sines of the angles, the goal (x, y), the rates / 10, and the way from tip to goal.
    """

    def way(now: Moment) -> Any:
        return [now.goal[k] - now.model.pose(now.q, "tip")[k, 3] for k in range(2)]

    def observe(now: Moment) -> Any:
        return [*map(cos, now.q), *map(sin, now.q), *now.goal, *(0.1 * now.v), *way(now)]

    def reward(now: Moment) -> Any:
        x, y = way(now)
        return -sqrt(x * x + y * y + 1e-12) - 0.01 * (now.action @ now.action)

    def reset(model: Model, draws: Draws) -> Any:
        far, turn = draws.uniform(0.05, 0.2), draws.uniform(-math.pi, math.pi)
        q = draws.uniform([-math.pi] * 2, [math.pi] * 2)
        return q, np.zeros(2), [far * cos(turn), far * sin(turn)]

    usual: dict[str, Any] = {"dt": 0.02, "substeps": 2, "max_episode_steps": 100, "actions": ([-1.0] * 2, [1.0] * 2)}
    return VectorEnv(
        reacher_mechanism(),
        observe,
        reward,
        lambda now: False,
        act=lambda now: 0.05 * now.action,
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


_SPEED, _GAIN = 1.5, 20.0  # rad/s that an action of one asks for; 1/s at which the difference goes


def arm_reach(num_envs: int = 1, model: Model | None = None, tool: str = "tool", **options: Any) -> VectorEnv:
    """Environments of an arm whose tool is to reach a point; actions are wanted joint speeds between -1 and 1.

    Torques that lead to these speeds are found by inverse dynamics, within the limits of effort.
    Observed are q, v, the goal and the way from the tool to it; the reward is minus that distance (m). Goals are where
    the tool is in configurations within half of the joint limits, so that all can be reached.

    Args:
        num_envs: number of environments.
        model: an arm on a fixed base with limits of position and effort; ``samples.seven_joint_arm()`` if left out.
        tool: body or frame of it.
        options: of :class:`~linkwise.gym.vector_env.VectorEnv`.
    """
    arm = seven_joint_arm() if model is None else model
    middle, half = (arm.limits.upper + arm.limits.lower) / 2, (arm.limits.upper - arm.limits.lower) / 2
    effort = np.asarray(arm.limits.effort, float)

    def way(now: Moment) -> Any:
        return now.goal - now.model.pose(now.q, tool)[:3, 3]

    def reward(now: Moment) -> Any:
        return -sqrt(way(now) @ way(now) + 1e-12) - 0.001 * (now.action @ now.action)

    def act(now: Moment) -> Any:
        wanted = now.model.inverse_dynamics(now.q, now.v, _GAIN * (_SPEED * now.action - now.v))
        return [clip(torque, -limit, limit) for torque, limit in zip(wanted, effort, strict=True)]

    def reset(model: Model, draws: Draws) -> Any:
        goal = model.pose(draws.uniform(middle - 0.5 * half, middle + 0.5 * half), tool)[:3, 3]
        return draws.uniform(middle - 0.3 * half, middle + 0.3 * half), np.zeros(model.nv), goal

    usual: dict[str, Any] = {
        "dt": 0.02,
        "substeps": 4,
        "max_episode_steps": 150,
        "actions": ([-1.0] * arm.nv, [1.0] * arm.nv),
    }
    return VectorEnv(
        arm,
        lambda now: [*now.q, *now.v, *now.goal, *way(now)],
        reward,
        lambda now: False,
        act=act,
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


def kinematic_policy(env: VectorEnv, tool: str = "tool") -> Callable[[Any], Any]:
    """Policy to compare with: towards configurations that inverse kinematics finds for the present goals.

    It takes observations (num_envs, n) and returns actions (num_envs, nv).
    """
    n = env.model.nq
    state = {name: np.asarray(env.state[name], float) for name in ("q", "goal")}
    found = env.model.inverse_kinematics([Reach(tool, position=state["goal"])], q0=state["q"])

    def policy(observations: Any) -> Any:
        return np.clip(4.0 * (found.q - observations[:, :n]) / _SPEED, -1.0, 1.0).astype(env.dtype)

    return policy


_BENDING_TORQUE = 30.0  # N m


def flexible_arm(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of ``samples.flexible_arm(modes=1)``: torques up to 30 N m at shoulder and elbow.

    Observed are q, v, the goal and the way from the load to it, all in metres, radians and seconds; the reward is minus
    the distance (m) and a twentieth of the load's speed (m/s).
    """
    model = samples.flexible_arm(modes=1)
    motors = [model.joints[name].v_slice.stop - 1 for name in ("shoulder", "elbow")]
    hinges = [model.joints[name].q_slice.stop - 1 for name in ("shoulder", "elbow")]

    def act(now: Moment) -> Any:
        forces = [0.0] * now.model.nv
        for motor, torque in zip(motors, now.action, strict=True):
            forces[motor] = _BENDING_TORQUE * torque
        return forces

    def way(now: Moment) -> Any:
        return now.goal - now.model.pose(now.q, "payload")[:3, 3]

    def reward(now: Moment) -> Any:
        speed = now.model.velocity(now.q, now.v, "payload")[3:]
        return -sqrt(way(now) @ way(now) + 1e-12) - 0.05 * sqrt(speed @ speed + 1e-12)

    def reset(model: Model, draws: Draws) -> Any:
        q = np.array(model.neutral(), dtype=object)
        q[hinges] = draws.uniform([0.8, -0.5], [1.6, 0.5])
        turn, bend = draws.uniform(0.3, 1.2), draws.uniform(0.3, 1.2)
        goal = [cos(turn) + cos(turn + bend), 0.0, 0.5 - sin(turn) - sin(turn + bend)]
        return q, np.zeros(model.nv), goal

    usual: dict[str, Any] = {
        "dt": 0.02,
        "substeps": 10,
        "method": "rk4",
        "max_episode_steps": 200,
        "actions": ([-1.0] * 2, [1.0] * 2),
    }
    return VectorEnv(
        model,
        lambda now: [*now.q, *now.v, *now.goal, *way(now)],
        reward,
        lambda now: False,
        act=act,
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


_LEG_FORCE, _NEAR_HOME, _FAR_FROM_HOME = (
    150.0,
    0.1,
    0.4,
)  # N; m that goals are from home; m from home where an episode ends


def stewart(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a Stewart platform: forces along its six legs, up to 150 N beyond what holds it at home.

    Observed are the legs' extensions and rates, the plate's pose and velocity, and the goal. The reward is one where
    the plate is at its goal and level, and falls by the factor e every 5 cm.
    """
    model = stewart_platform()
    slides = [model.joints[f"slide{i}"] for i in range(1, 7)]
    places, rates = [s.q_slice.start for s in slides], [s.v_slice.start for s in slides]
    pose, twist = model.joints["plate_pose"].q_slice, model.joints["plate_pose"].v_slice
    weight = 33.522  # N in each leg: what holds the plate and the legs at home

    def act(now: Moment) -> Any:
        forces = [0.0] * now.model.nv
        for place, push in zip(rates, now.action, strict=True):
            forces[place] = weight + _LEG_FORCE * push
        return forces

    def way(now: Moment) -> Any:
        return now.goal - now.q[pose][4:]

    def reward(now: Moment) -> Any:
        tilt = now.q[pose][1:4]
        return exp(-20.0 * sqrt(way(now) @ way(now) + 1e-12) - 4.0 * (tilt @ tilt))

    def observe(now: Moment) -> Any:
        return [*now.q[places], *now.v[rates], *now.q[pose], *now.v[twist], *now.goal]

    def done(now: Moment) -> Any:
        from_home = now.q[pose][4:]
        return from_home @ from_home > _FAR_FROM_HOME * _FAR_FROM_HOME

    def reset(model: Model, draws: Draws) -> Any:
        return model.neutral(), np.zeros(model.nv), draws.uniform([-_NEAR_HOME] * 3, [_NEAR_HOME] * 3)

    usual: dict[str, Any] = {"dt": 0.02, "substeps": 4, "max_episode_steps": 200, "actions": ([-1.0] * 6, [1.0] * 6)}
    return VectorEnv(model, observe, reward, done, act=act, reset=reset, num_envs=num_envs, **(usual | options))
