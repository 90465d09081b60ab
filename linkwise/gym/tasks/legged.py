"""Legs: hopping ahead on one, walking at a given speed on four."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise import samples
from linkwise.gym.moment import Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Planar, Revolute
from linkwise.math import abs, clip, exp, where
from linkwise.mechanism.contacts import Ground
from linkwise.mechanism.materials import Material
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule, sphere
from linkwise.model.model import Model, ModelBuilder

_LENGTH, _FOOT, _BEND = 0.3, 0.04, 0.5  # m, m, rad
_TORQUE = 40.0  # N m


def hopper_mechanism() -> Model:
    """A trunk of 4 kg that moves in the plane x, z, with a thigh and a shank of 0.3 m; all in one line at zero."""
    b = ModelBuilder("hopper")
    plane = transform(rpy=(np.pi / 2, 0, 0))  # the joint's y is up, and its z points to the back
    # In the trunk's own frame y is up.
    trunk = capsule(0.06, ends=((0, 0.05, 0), (0, 0.35, 0)), mass=4.0, collides=False)
    b.add_body("trunk", joint=Planar(), placement=plane, joint_name="plane", shape=trunk)
    thigh = capsule(0.03, ends=((0, 0, 0), (0, -_LENGTH, 0)), mass=0.8, collides=False)
    b.add_body("thigh", "trunk", Revolute((0, 0, 1)), joint_name="hip", shape=thigh, armature=0.01, damping=0.2)
    shank = capsule(0.02, ends=((0, 0, 0), (0, -_LENGTH, 0)), mass=0.4, collides=False)
    foot = sphere(_FOOT, mass=0.1, placement=(0, -_LENGTH, 0))
    knee = transform(xyz=(0, -_LENGTH, 0))
    b.add_body(
        "shank", "thigh", Revolute((0, 0, 1)), knee, joint_name="knee", shape=shank + foot, armature=0.01, damping=0.2
    )
    return b.build().with_contacts(Ground(), between=[], material=Material(friction=0.9))


def hopper(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of a hopper: torques up to 40 N m at hip and knee; faster ahead is better, and so is to stay up.

    Observed are the height, all angles, all velocities / 10 and the impulse of the ground; an episode ends when the
    trunk tilts by 0.8 rad or sinks below half of its height.
    """
    height = 2 * _LENGTH * np.cos(_BEND) + _FOOT

    def observe(now: Moment) -> Any:
        return [now.q[2], now.q[0], *now.q[3:], *(0.1 * now.v), *now.impulses[:1]]

    def ahead(now: Moment) -> Any:
        return now.model.velocity(now.q, now.v, "trunk")[3]

    def done(now: Moment) -> Any:
        return where(abs(now.q[0]) > 0.8, 1.0, where(now.q[2] < 0.5 * height, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Any:
        bend = draws.uniform(_BEND - 0.1, _BEND + 0.1)
        return [draws.uniform(-0.05, 0.05), 0.0, height + draws.uniform(0.0, 0.05), bend, -2 * bend], np.zeros(5)

    usual: dict[str, Any] = {"dt": 0.02, "substeps": 4, "max_episode_steps": 500, "actions": ([-1.0] * 2, [1.0] * 2)}
    return VectorEnv(
        hopper_mechanism(),
        observe,
        lambda now: 1.0 + ahead(now) - 0.05 * (now.action @ now.action),
        done,
        act=lambda now: [0.0, 0.0, 0.0, *(_TORQUE * now.action)],
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )


_STIFF, _DAMPING, _REACH = 40.0, 1.0, 0.5  # N m/rad, N m s/rad; rad that an action of one turns a joint


def quadruped(num_envs: int = 1, **options: Any) -> VectorEnv:
    """Environments of ``samples.quadruped()`` on the ground: actions are angles beside those of standing, held by PD.

    Observed are the direction of up and the velocities in the trunk's axes, the angles beside standing and their rates
    / 10, the last action, and the wanted speed (m/s). The reward is near one at that speed, less for tumbling, turning
    and large torques; an episode ends when the trunk tilts by 60° or sinks below 0.15 m.
    """
    model = samples.quadruped().with_contacts(Ground(), between=[], material=Material(friction=0.8))
    stand = np.asarray(model.configurations["stand"], float)
    effort = np.asarray(model.limits.effort, float)[6:]

    def torques(now: Moment) -> Any:
        wanted = stand[7:] + _REACH * now.action
        raw = _STIFF * (wanted - now.q[7:]) - _DAMPING * now.v[6:]
        return [clip(x, -limit, limit) for x, limit in zip(raw, effort, strict=True)]

    def up(now: Moment) -> Any:
        """Up in the trunk's axes."""
        return now.model.pose(now.q, "trunk")[2, :3]

    def observe(now: Moment) -> Any:
        return [*up(now), *now.v[:6], *(now.q[7:] - stand[7:]), *(0.1 * now.v[6:]), *now.action, *now.goal]

    def reward(now: Moment) -> Any:
        error, lean = now.v[3] - now.goal[0], up(now)
        spin, aside = now.v[:3] @ now.v[:3], now.v[4] * now.v[4] + now.v[5] * now.v[5]
        push = np.array(torques(now), dtype=object)
        return exp(-4.0 * error * error) - 0.5 * (1.0 - lean[2]) - 0.05 * spin - 0.2 * aside - 2e-4 * (push @ push)

    def done(now: Moment) -> Any:
        return where(up(now)[2] < 0.5, 1.0, where(now.q[6] < 0.15, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Any:
        q = np.array(stand, dtype=object)
        q[7:] = stand[7:] + draws.uniform([-0.05] * 12, [0.05] * 12)
        q[6] = stand[6] + 0.02
        return q, np.zeros(model.nv), [draws.uniform(0.3, 0.7)]

    usual: dict[str, Any] = {"dt": 0.02, "substeps": 4, "max_episode_steps": 500, "actions": ([-1.0] * 12, [1.0] * 12)}
    return VectorEnv(
        model,
        observe,
        reward,
        done,
        act=lambda now: [0.0] * 6 + torques(now),
        reset=reset,
        num_envs=num_envs,
        **(usual | options),
    )
