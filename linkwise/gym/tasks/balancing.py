"""Balancing and swinging up: a cart with a pole, two links with one motor."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.gym.moment import Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Prismatic, Revolute
from linkwise.math import abs, cos, sin, where
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import box, capsule
from linkwise.model.model import Model, ModelBuilder

_FORCE, _FAR, _TILT = 10.0, 2.4, 12 * np.pi / 180  # N, m, rad


def cart_pole_mechanism() -> Model:
    """A cart of 1 kg on a rail along x, and on it a pole of 0.1 kg and 1 m, upright at zero."""
    b = ModelBuilder("cart_pole", gravity=(0.0, 0.0, -9.8))
    b.add_body("cart", joint=Prismatic((1, 0, 0)), shape=box((0.4, 0.2, 0.2), mass=1.0))
    rod = capsule(0.02, ends=((0, 0, 0), (0, 0, 1.0)), mass=0.1)
    slender: dict[str, Any] = {"mass": 0.1, "com": (0.0, 0.0, 0.5), "inertia": np.diag([0.1 / 12, 0.1 / 12, 1e-5])}
    b.add_body("pole", "cart", Revolute((0, 1, 0)), visuals=rod.named("pole").visuals, **slender)
    return b.build()


def cart_pole(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a cart that is pushed so that the pole on it stays up (Barto, Sutton and Anderson 1983).

    Push left or right; observe position, velocity, angle, rate; one for every step.
    """

    def observe(now: Moment) -> Any:
        return [now.q[0], now.v[0], now.q[1], now.v[1]]

    def done(now: Moment) -> Any:
        return where(abs(now.q[0]) > _FAR, 1.0, where(abs(now.q[1]) > _TILT, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Any:
        return draws.uniform([-0.05] * 2, [0.05] * 2), draws.uniform([-0.05] * 2, [0.05] * 2)

    edge = np.array([2 * _FAR, np.inf, 2 * _TILT, np.inf])
    usual: dict[str, Any] = {"dt": 0.02, "max_episode_steps": 500, "bounds": (-edge, edge)}
    return VectorEnv(
        cart_pole_mechanism(),
        observe,
        lambda now: 1.0,
        done,
        act=lambda now: [now.action[0], 0.0],
        choices=[[-_FORCE], [_FORCE]],
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


def acrobot_mechanism() -> Model:
    """Two links of 1 m and 1 kg, with inertias of 1 kg m² about their middles, hanging down at zero."""
    b = ModelBuilder("acrobot", gravity=(0.0, 0.0, -9.8))
    looks = capsule(0.05, ends=((0, 0, 0), (0, 0, -1.0)), mass=1.0).named("link").visuals
    link: dict[str, Any] = {"mass": 1.0, "com": (0.0, 0.0, -0.5), "inertia": np.eye(3), "visuals": looks}
    b.add_body("upper", joint=Revolute((0, 1, 0)), joint_name="shoulder", **link)
    b.add_body("lower", "upper", Revolute((0, 1, 0)), transform(xyz=(0, 0, -1.0)), joint_name="elbow", **link)
    return b.build()


def acrobot(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of an acrobot: two links hang from a pivot, and the motor between them swings up (Sutton 1996).

    Torques are -1, 0 or 1 N m at the elbow; the reward is -1 for every step until the end is up. Observed are cosine
    and sine of both angles, and their rates.
    """

    def observe(now: Moment) -> Any:
        (a, b), v = now.q, now.v
        return [cos(a), sin(a), cos(b), sin(b), v[0], v[1]]

    def done(now: Moment) -> Any:
        return -cos(now.q[0]) - cos(now.q[0] + now.q[1]) > 1.0

    def reset(model: Model, draws: Draws) -> Any:
        return draws.uniform([-0.1] * 2, [0.1] * 2), draws.uniform([-0.1] * 2, [0.1] * 2)

    usual: dict[str, Any] = {"dt": 0.2, "method": "rk4", "max_episode_steps": 500}
    return VectorEnv(
        acrobot_mechanism(),
        observe,
        lambda now: where(done(now), 0.0, -1.0),
        done,
        act=lambda now: [0.0, now.action[0]],
        choices=[[-1.0], [0.0], [1.0]],
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )
