"""Docking: a spacecraft comes to another one's port, slowly and straight, in orbit (Clohessy and Wiltshire 1960)."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Free
from linkwise.math import exp, sqrt, where
from linkwise.mechanism.shapes import box
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import Flat, Scalar

_MEAN_MOTION = 1.13e-3  # rad/s, of an orbit 400 km above the Earth
_THRUST, _TORQUE, _NEAR, _SLOW, _FAR = 20.0, 2.0, 0.3, 0.2, 60.0  # N, N m; m, m/s of a docking; m of a loss


def mechanism() -> Model:
    """A spacecraft of 100 kg, 1 m wide."""
    b = ModelBuilder("chaser", gravity=(0.0, 0.0, 0.0))
    b.add_body("chaser", joint=Free(), shape=box((1.0, 1.0, 1.0), mass=100.0))
    return b.build()


def docking() -> partial[VectorEnv]:
    """Task of a docking: torques (3) and thrusts (3) in body axes; the port is the origin, x points outward.

    Observed are the attitude, the position / 10 (m) and the velocities. Every step gains up to 0.1, the more the nearer
    and the straighter, and a docking gains twenty: nearer than 0.3 m, slower than 0.2 m/s, at an angle below 0.3 rad.
    Far away, an episode is lost, and with it what could have been gained.
    """

    def squares(now: Moment) -> tuple[Scalar, Scalar, Scalar]:
        """Squares of distance, speed, and of the sine of half the angle."""
        return now.q[4:] @ now.q[4:], now.v[3:] @ now.v[3:], now.q[1:4] @ now.q[1:4]

    def docked(now: Moment) -> Scalar:
        far, fast, tilted = squares(now)
        near = where(far < _NEAR**2, 1.0, 0.0) * where(fast < _SLOW**2, 1.0, 0.0) * where(tilted < 0.0223, 1.0, 0.0)
        return near > 0.5

    def act(now: Moment) -> Flat:
        model, n = now.model, _MEAN_MOTION
        turn = model.pose(now.q, "chaser")[:3, :3]
        x, (vx, vy, _), z = now.q[4], turn @ now.v[3:], now.q[6]
        tide = np.array([3 * n * n * x + 2 * n * vy, -2 * n * vx, -n * n * z], dtype=object)
        thrust = _THRUST * now.action[3:] + 100.0 * (turn.T @ tide)
        return [*(_TORQUE * now.action[:3]), *thrust]

    def reward(now: Moment) -> Scalar:
        far, _, tilted = squares(now)
        return where(docked(now), 20.0, 0.1 * exp(-0.1 * sqrt(far + 1e-9) - 2.0 * tilted))

    def done(now: Moment) -> Scalar:
        return where(docked(now), 1.0, where(squares(now)[0] > _FAR**2, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Beginning:
        place = draws.uniform([5.0, -10.0, -10.0], [20.0, 10.0, 10.0])
        return [1.0, 0.0, 0.0, 0.0, *place], [*draws.normal(3, 0.02), *draws.normal(3, 0.1)]

    return partial(
        VectorEnv,
        model=mechanism(),
        observe=lambda now: [*now.q[:4], *(0.1 * now.q[4:]), *now.v],
        reward=reward,
        done=done,
        act=act,
        reset=reset,
        dt=0.5,
        max_episode_steps=400,
        actions=6,
    )
