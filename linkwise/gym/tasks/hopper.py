"""Hopper: a leg with a trunk on it hops ahead, in a plane; it touches the ground with its foot alone."""

from __future__ import annotations

from functools import partial

import numpy as np

from linkwise.gym.environment_step import Beginning, Draws, Moment
from linkwise.gym.vector_env import VectorEnv
from linkwise.joints import Planar, Revolute
from linkwise.math import abs, where
from linkwise.mechanism.contacts import Ground
from linkwise.mechanism.materials import Material
from linkwise.mechanism.placement import transform
from linkwise.mechanism.shapes import capsule, sphere
from linkwise.model.model import Model, ModelBuilder
from linkwise.spatial.scalar import Flat, Scalar

_LENGTH, _FOOT, _BEND = 0.3, 0.04, 0.5  # m, m, rad
_TORQUE = 40.0  # N m


def mechanism() -> Model:
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


def hopper() -> partial[VectorEnv]:
    """Task of a hopper: torques up to 40 N m at hip and knee; faster ahead is better, and so is to stay up.

    Observed are the height, all angles, all velocities / 10 and the impulse of the ground; an episode ends when the
    trunk tilts by 0.8 rad or sinks below half of its height.
    """
    height = 2 * _LENGTH * np.cos(_BEND) + _FOOT

    def observe(now: Moment) -> Flat:
        return [now.q[2], now.q[0], *now.q[3:], *(0.1 * now.v), *now.impulses[:1]]

    def ahead(now: Moment) -> Scalar:
        return now.model.velocity(now.q, now.v, "trunk")[3]

    def done(now: Moment) -> Scalar:
        return where(abs(now.q[0]) > 0.8, 1.0, where(now.q[2] < 0.5 * height, 1.0, 0.0)) > 0.5

    def reset(model: Model, draws: Draws) -> Beginning:
        bend = draws.uniform(_BEND - 0.1, _BEND + 0.1)
        return [draws.uniform(-0.05, 0.05), 0.0, height + draws.uniform(0.0, 0.05), bend, -2 * bend], np.zeros(5)

    return partial(
        VectorEnv,
        model=mechanism(),
        observe=observe,
        reward=lambda now: 1.0 + ahead(now) - 0.05 * (now.action @ now.action),
        done=done,
        act=lambda now: [0.0, 0.0, 0.0, *(_TORQUE * now.action)],
        reset=reset,
        dt=0.02,
        substeps=4,
        max_episode_steps=500,
        actions=2,
    )
