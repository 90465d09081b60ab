"""Spacecraft: turning one with flexible panels, docking one to a port."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.gym.moment import Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Free
from linkwise.math import abs, exp, sqrt, where
from linkwise.mechanism.shapes import box
from linkwise.model.model import Model, ModelBuilder
from linkwise.samples import flexible_satellite

_SLEW_TORQUE = 1.0  # N m


def satellite_slew(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of ``samples.flexible_satellite(modes=1)``: torques up to 1 N m about the axes of its hub.

    It turns to an attitude that every episode chooses, and its panels must not swing there. Observed are the turn that
    is missing (a quaternion in the hub's axes), and q and v of hub and panels; the reward is minus the missing turn
    (the sine of its half) and a tenth of the hub's rate (rad/s).
    """
    model = flexible_satellite(modes=1, damping=0.005)

    def missing(now: Moment) -> Any:
        """Conjugate of the attitude times the goal: of the two quaternions of that turn, the one below half a turn."""
        w, x, y, z = now.q[0], -now.q[1], -now.q[2], -now.q[3]
        a, b, c, d = now.goal
        turn = [w * a - x * b - y * c - z * d, w * b + x * a + y * d - z * c]
        turn += [w * c - x * d + y * a + z * b, w * d + x * c - y * b + z * a]
        return [where(turn[0] < 0.0, -part, part) for part in turn]

    def reward(now: Moment) -> Any:
        off = missing(now)
        rates = now.v[:3]
        return -(abs(off[1]) + abs(off[2]) + abs(off[3])) - 0.1 * (abs(rates[0]) + abs(rates[1]) + abs(rates[2]))

    def reset(model: Model, draws: Draws) -> Any:
        q = np.array(model.neutral(), dtype=object)
        return q, np.zeros(model.nv), draws.rotation()

    usual: dict[str, Any] = {
        "dt": 0.2,
        "substeps": 8,
        "method": "rk4",
        "max_episode_steps": 300,
        "actions": ([-1.0] * 3, [1.0] * 3),
    }
    return VectorEnv(
        model,
        lambda now: [*missing(now), *now.q[7:], *now.v[:3], *now.v[6:]],
        reward,
        lambda now: False,
        act=lambda now: [*(_SLEW_TORQUE * now.action), *[0.0] * (now.model.nv - 3)],
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


_MEAN_MOTION = 1.13e-3  # rad/s, of an orbit 400 km above the Earth
_THRUST, _DOCKING_TORQUE, _NEAR, _SLOW, _FAR = 20.0, 2.0, 0.3, 0.2, 60.0  # N, N m; m, m/s of a docking; m of a loss


def chaser() -> Model:
    """A spacecraft of 100 kg, 1 m wide."""
    b = ModelBuilder("chaser", gravity=(0.0, 0.0, 0.0))
    b.add_body("chaser", joint=Free(), shape=box((1.0, 1.0, 1.0), mass=100.0))
    return b.build()


def docking(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a docking in orbit (Clohessy and Wiltshire 1960): torques (3) and thrusts (3) in body axes.

    The port is the origin, and x points outward. Observed are the attitude, the position / 10 (m) and the velocities.
    Every step gains up to 0.1, the more the nearer and the straighter, and a docking gains twenty: nearer than 0.3 m,
    slower than 0.2 m/s, at an angle below 0.3 rad. Far away, an episode is lost, and with it what could have been
    gained.
    """

    def squares(now: Moment) -> tuple[Any, Any, Any]:
        """Squares of distance, speed, and of the sine of half the angle."""
        return now.q[4:] @ now.q[4:], now.v[3:] @ now.v[3:], now.q[1:4] @ now.q[1:4]

    def docked(now: Moment) -> Any:
        far, fast, tilted = squares(now)
        near = where(far < _NEAR**2, 1.0, 0.0) * where(fast < _SLOW**2, 1.0, 0.0) * where(tilted < 0.0223, 1.0, 0.0)
        return near > 0.5

    def act(now: Moment) -> Any:
        model, n = now.model, _MEAN_MOTION
        turn = model.pose(now.q, "chaser")[:3, :3]
        x, (vx, vy, _), z = now.q[4], turn @ now.v[3:], now.q[6]
        tide = np.array([3 * n * n * x + 2 * n * vy, -2 * n * vx, -n * n * z], dtype=object)
        thrust = _THRUST * now.action[3:] + 100.0 * (turn.T @ tide)
        return [*(_DOCKING_TORQUE * now.action[:3]), *thrust]

    def reward(now: Moment) -> Any:
        far, _, tilted = squares(now)
        return where(docked(now), 20.0, 0.1 * exp(-0.1 * sqrt(far + 1e-9) - 2.0 * tilted))

    def done(now: Moment) -> Any:
        return where(docked(now), 1.0, where(squares(now)[0] > _FAR**2, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Any:
        place = draws.uniform([5.0, -10.0, -10.0], [20.0, 10.0, 10.0])
        return [1.0, 0.0, 0.0, 0.0, *place], [*draws.normal(3, 0.02), *draws.normal(3, 0.1)]

    usual: dict[str, Any] = {"dt": 0.5, "max_episode_steps": 400, "actions": ([-1.0] * 6, [1.0] * 6)}
    return VectorEnv(
        chaser(),
        lambda now: [*now.q[:4], *(0.1 * now.q[4:]), *now.v],
        reward,
        done,
        act=act,
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )
