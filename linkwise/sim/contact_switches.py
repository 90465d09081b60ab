"""Instants at which contact points touch, slip, stick or part, found between the steps of a motion.

A step knows of each point what it did in its course. When it began to do so is told by what went before: surfaces meet
when their gap is used up at the speed of their approach, a slip ends when its speed is used up, one begins when
friction reaches its bound, and points part when nothing presses any more, if both go on as they changed in the steps
before. Where these change evenly the instants are exact, else to the second order of the step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.scene import meetings_of
from linkwise.errors import InputError

if TYPE_CHECKING:
    from linkwise.sim.touched import MotionContacts

MODES = ("open", "slips", "sticks")


class ContactSwitch(NamedTuple):
    """A contact point that goes over to something else.

    Args:
        t: when, s.
        name: what touches what.
        point: its place among the points.
        before: ``"open"``, ``"slips"`` or ``"sticks"``.
        after: likewise.
    """

    t: float
    name: str
    point: int
    before: str
    after: str


def slip_velocities(contacts: MotionContacts) -> Array:
    """Velocities of first surfaces past second ones at the contact points (..., T, n, 3), m/s, in the world's axes."""
    motion, model = contacts.motion, contacts.model
    q, v, p = np.asarray(motion.q, float), np.asarray(motion.v, float), motion.model_parameters
    points, sides = contacts.points, contacts._sides
    found = np.zeros(points.shape)
    for body in model.bodies:
        at, moves = model.pose(q, body.name, p=p)[..., None, :3, 3], model.velocity(q, v, body.name, p=p)[..., None, :]
        own = moves[..., 3:] + np.cross(moves[..., :3], points - at)
        for side, sign in ((0, 1.0), (1, -1.0)):
            found += sign * np.where((sides[..., side] == body.index)[..., None], own, 0.0)
    for k, pair in enumerate(meetings_of(model)):
        ground = pair.ground
        if ground is not None and any((*ground.velocity, *ground.spin)):
            X = np.array(ground.placement)
            spin, speed = X[:3, :3] @ ground.spin, X[:3, :3] @ ground.velocity
            moved = speed + np.cross(spin, points - X[:3, 3])
            found -= np.where((contacts.pair == k)[..., None], moved, 0.0)
    return found


def switches(contacts: MotionContacts) -> list[ContactSwitch]:
    """All of a motion of one state, in their order.

    Raises:
        InputError: a batch of motions.
    """
    mode = contacts.mode
    if mode.ndim != 2:
        raise InputError(
            "switches are told of one motion",
            got=f"a batch {mode.shape[:-2]}",
            do="choose one: motion[0].contacts.switches()",
        )
    return sorted(_found(contacts, mode))


def _found(contacts: MotionContacts, mode: Array) -> Iterator[ContactSwitch]:
    t, h = np.asarray(contacts.motion.t, float), float(contacts.step.max())
    normals, numbers = np.asarray(contacts.places.normal), contacts.pair
    slip = contacts.slip
    approach = -(slip * normals).sum(axis=-1)
    speed = np.linalg.norm(slip + approach[..., None] * normals, axis=-1)
    gap = np.asarray(contacts.places.gap)
    press, pull = contacts.impulse[..., 0], contacts.impulse[..., 1:]
    reach = contacts.friction * press[..., None]
    used = np.linalg.norm(np.divide(pull, reach, out=np.zeros_like(pull), where=reach > 0.0), axis=-1)
    for k, point in zip(*np.nonzero((mode[1:] != mode[:-1]) & (numbers[1:] == numbers[:-1])), strict=True):
        last, first, began = k, max(k - 1, 0), float(t[k])
        after = mode[k + 1, point]
        if mode[k, point] == 0:  # surfaces meet
            faster = (approach[last, point] - approach[first, point]) / h
            late = _used_up(gap[last, point], approach[last, point], faster)
        elif after == 0:  # they part
            late = _used_up(press[last, point], (press[first, point] - press[last, point]) / h) - 0.5 * h
        elif after == 2:  # a slip ends
            late = _used_up(speed[last, point], (speed[first, point] - speed[last, point]) / h)
        else:  # one begins
            late = _used_up(1.0 - used[last, point], (used[last, point] - used[first, point]) / h) - 0.5 * h
        when = min(max(began + late, began - 0.5 * h), float(t[k + 1]))
        yield ContactSwitch(when, contacts.name_of(k + 1, point), int(point), MODES[mode[k, point]], MODES[after])


def _used_up(left: float, rate: float, growth: float = 0.0) -> float:
    """The time after which something is used up at a rate, which grows; 0 where it does not get less."""
    left, root = max(float(left), 0.0), float(rate * rate + 2.0 * growth * max(float(left), 0.0))
    return 2.0 * left / (float(rate) + math.sqrt(root)) if rate > 0.0 and root >= 0.0 else 0.0
