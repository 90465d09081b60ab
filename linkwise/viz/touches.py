"""Overlays of contact: points that press, their forces, and the cones of friction that forces stay within."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.model.model import Model
from linkwise.sim.touched import MotionContacts
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.overlays import OVERLAYS, Moment, Overlay, _Arrows
from linkwise.viz.solids import Colour

if TYPE_CHECKING:
    import viser

PRESSING: Colour = (200, 40, 120)
FRICTION: Colour = (120, 150, 40)
_SPOKES = 12
"""Lines of a cone."""


@dataclass
class Touches:
    """Contact points that press at one moment.

    Args:
        points: in the world (n, 3), m.
        forces: on the first body of each (n, 3), N, in the world's axes.
        normals: unit vectors (n, 3).
        friction: the larger coefficient of each (n).
    """

    points: Array
    forces: Array
    normals: Array
    friction: Array

    @classmethod
    def of(cls, contacts: MotionContacts, k: int) -> Touches:
        """Those of a motion of one state, at its k-th sample."""
        pressing = np.asarray(contacts.impulse[k, :, 0]) > 0.0
        mu = contacts.friction[k].max(axis=-1)
        normals = np.asarray(contacts.places.normal)[k]
        return cls(*(each[pressing] for each in (contacts.points[k], contacts.force[k], normals, mu)))


def contacts_of(motion: Trajectory) -> MotionContacts | None:
    """Contacts of a motion of one state; None where it has none."""
    return motion.contacts if "contact_impulses" in motion._values else None


class _OfContact(Overlay):
    """An overlay of models whose bodies touch."""

    @classmethod
    def applies(cls, model: Model) -> bool:
        return model._contact_scene is not None


class ContactPoints(_OfContact):
    """Points where bodies press on each other or on the ground."""

    title = "contact points"
    inside = True

    def made(self) -> list[viser.SceneNodeHandle]:
        nowhere = np.zeros((1, 3), np.float32)
        size = 0.015 * self.size
        name = f"{self.figure.root}/{self.title}"
        return [self.figure.scene.add_point_cloud(name, nowhere, PRESSING, point_size=size, point_shape="circle")]

    def update(self, moment: Moment) -> None:
        if self.visible:
            self.redraw(np.zeros((0, 3)) if moment.touches is None else moment.touches.points)


class ContactForces(_OfContact, _Arrows):
    """Forces at contact points, on the first of the two bodies."""

    title = "contact forces"
    colour = PRESSING

    def arrows(self, moment: Moment) -> tuple[Array, Array]:
        if moment.touches is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        starts = moment.touches.points
        return starts, starts + self.metres_per_newton * moment.touches.forces


class FrictionCones(_OfContact):
    """Cones that contact forces stay within: a force on the surface of its cone slips."""

    title = "friction cones"

    def made(self) -> list[viser.SceneNodeHandle]:
        nowhere = np.zeros((1, 2, 3), np.float32)
        name = f"{self.figure.root}/{self.title}"
        return [self.figure.scene.add_line_segments(name, nowhere, FRICTION, thickness=0.003 * self.size)]

    def update(self, moment: Moment) -> None:
        if self.visible:
            self.redraw(np.zeros((0, 2, 3)) if moment.touches is None else cones(moment.touches, 0.12 * self.size))


def cones(touches: Touches, height: float) -> Array:
    """Lines (n, 2, 3) of the cones of all points: spokes from the point, and the rim."""
    n = touches.normals
    aside = np.eye(3)[np.argmin(np.abs(n), axis=1)]
    t = np.cross(n, aside)
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    s = np.cross(n, t)
    angles = np.arange(_SPOKES) * (2.0 * np.pi / _SPOKES)
    around = np.cos(angles)[:, None, None] * t + np.sin(angles)[:, None, None] * s
    rim = touches.points + height * (n + touches.friction[:, None] * around)
    points = np.broadcast_to(touches.points, rim.shape)
    spokes, edge = np.stack([points, rim], axis=-2), np.stack([rim, np.roll(rim, -1, axis=0)], axis=-2)
    return np.concatenate([spokes, edge]).reshape(-1, 2, 3)


EVERY_OVERLAY: tuple[type[Overlay], ...] = (*OVERLAYS, ContactPoints, ContactForces, FrictionCones)
"""All that can be shown."""
