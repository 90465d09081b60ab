"""Free rigid bodies as arrays: masses, shapes, and states between a model's coordinates and motions of mass centres."""

from __future__ import annotations

import numpy as np

from linkwise.array_types import Array
from linkwise.contact.geometry.supports import radius_about_origin
from linkwise.dataclass import dataclass, replace
from linkwise.mechanism.bodies_and_joints import IDENTITY
from linkwise.mechanism.contacts import Ground
from linkwise.mechanism.description import Geometry
from linkwise.mechanism.materials import Material
from linkwise.model.model import Model
from linkwise.spatial import quaternions
from linkwise.spatial.vectors import Vec

_KEPT_BITS = (1 << 63) - 1
"""As many as an array's whole numbers have: of a file, the first 31 of its pairs."""

LEAST_BODIES = 9
"""Fewer bodies are a mechanism like any other: its contacts stand written out in one kernel."""


def is_pile(model: Model) -> bool:
    """Whether all that moves are free rigid bodies, and many."""
    scene = model._contact_scene
    if scene is None or scene.rules.solver != "auto":  # a solver by name is that of mechanisms
        return False
    if len(model.bodies) < LEAST_BODIES or model.nv != 6 * len(model.bodies):
        return False
    return all(
        joint.type.flies and joint.mimic is None and body.parent == -1 and body.flexible is None
        for joint, body in zip(model.joints, model.bodies, strict=True)
    )


@dataclass(frozen=True)
class Shapes:
    """Shapes for contact, one row each: on a body, or fixed to the world with the number of bodies as its body.

    Args:
        geometry: each shape, with its placement left out.
        body: number of its body (k).
        R: its axes in the body's (k, 3, 3).
        p: its origin from the body's mass centre, in the body's axes (k, 3), m.
        radius: of the ball about its origin that holds it (k), m; infinite for grounds without an end.
        material: of its surface.
        bits: contype and conaffinity (k, 2); see :class:`~linkwise.mechanism.description.Geometry`.
        surface: velocity of a ground's surface, [spin, velocity] about its origin in the world's axes (k, 6).
        names: that each shape answers to.
    """

    geometry: tuple[Geometry, ...]
    body: Array
    R: Array
    p: Array
    radius: Array
    material: tuple[Material | None, ...]
    bits: Array
    surface: Array
    names: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Bodies:
    """Constants of n bodies.

    Args:
        names: of them.
        mass: (n), kg.
        inertia: about the mass centres in the bodies' axes (n, 3, 3), kg m².
        centre: mass centres in the bodies' frames (n, 3), m.
        gravity: (3), m/s².
        shapes: for contact.
    """

    names: tuple[str, ...]
    mass: Array
    inertia: Array
    centre: Array
    gravity: Array
    shapes: Shapes

    @classmethod
    def of(cls, model: Model) -> Bodies:
        """The bodies of a pile."""
        bodies = model.bodies
        centre = np.array([body.com for body in bodies])
        return cls(
            tuple(body.name for body in bodies),
            np.array([body.mass for body in bodies]),
            np.array([body.inertia for body in bodies]),
            centre,
            np.array(model.gravity, float),
            _shapes(model, centre),
        )


def _shapes(model: Model, centre: Array) -> Shapes:
    scene = model._contact_scene
    assert scene is not None
    rows: list[tuple[Geometry, int, Array, Material | None, Array, tuple[str, ...]]] = []
    for number, body in enumerate(model.bodies):
        for shape in body.collisions:
            if scene.touches(body.name, shape):
                X, names = np.array(shape.placement), shape.names_on(body.name)
                X[:3, 3] -= centre[number]
                rows.append((shape, number, X, scene.of_shape(body.name, shape), np.zeros(6), names))
    for ground in scene.grounds:
        X = np.array(ground.placement) @ np.array(ground.shape.placement)
        rows.append((ground.shape, len(model.bodies), X, ground.material, _surface(ground), (ground.name,)))
    for shape in model._base_collisions:
        X, names = np.array(shape.placement), shape.names_on(None)
        rows.append((shape, len(model.bodies), X, scene.of_shape(None, shape), np.zeros(6), names))
    X = np.array([row[2] for row in rows])
    return Shapes(
        tuple(replace(row[0], placement=IDENTITY, name="", source=None) for row in rows),
        np.array([row[1] for row in rows]),
        X[:, :3, :3],
        X[:, :3, 3],
        np.array([_radius(row[0]) for row in rows]),
        tuple(row[3] for row in rows),
        np.array([[bits & _KEPT_BITS for bits in (row[0].contype, row[0].conaffinity)] for row in rows]),
        np.array([row[4] for row in rows]),
        tuple(row[5] for row in rows),
    )


def _surface(ground: Ground) -> Array:
    R = np.array(ground.placement)[:3, :3]
    return np.concatenate([R @ np.array(ground.spin), R @ np.array(ground.velocity)])


def _radius(shape: Geometry) -> float:
    return np.inf if shape.kind in ("plane", "heightfield", "terrain") else float(radius_about_origin(shape))


@dataclass
class BodyStates:
    """Motion of n bodies.

    Args:
        turn: quaternions of the bodies' axes in the world (n, 4), real part first.
        place: mass centres in the world (n, 3), m.
        spin: angular velocities in the bodies' axes (n, 3), rad/s.
        speed: velocities of mass centres in the world's axes (n, 3), m/s.
    """

    turn: Array
    place: Array
    spin: Array
    speed: Array

    @classmethod
    def of(cls, bodies: Bodies, q: Array, v: Array) -> BodyStates:
        """From the coordinates and velocities of a model."""
        q, v = q.reshape(-1, 7), v.reshape(-1, 6)
        R = rotations(q[:, :4])
        place = q[:, 4:] + turned(R, bodies.centre)
        speed = turned(R, v[:, 3:] + np.cross(v[:, :3], bodies.centre))
        return cls(q[:, :4].copy(), place, v[:, :3].copy(), speed)

    def coordinates(self, bodies: Bodies) -> tuple[Array, Array]:
        """Those of the model, (7n) and (6n)."""
        R = rotations(self.turn)
        origin = self.place - turned(R, bodies.centre)
        speed = turned(R.swapaxes(1, 2), self.speed) - np.cross(self.spin, bodies.centre)
        return np.hstack([self.turn, origin]).ravel(), np.hstack([self.spin, speed]).ravel()


def rotations(turn: Array) -> Array:
    """Matrices (n, 3, 3) of unit quaternions (n, 4)."""
    return np.moveaxis(np.array(quaternions.rotation_matrix(tuple(turn.T)).m), 2, 0)


def turned(R: Array, x: Array) -> Array:
    """Vectors (n, 3), each turned by its matrix."""
    return np.asarray(np.einsum("nij,nj->ni", R, x))


def turned_on(turn: Array, angle: Array) -> Array:
    """Quaternions after turns by rotation vectors (n, 3) in the bodies' axes."""
    made = np.stack(quaternions.moved(tuple(turn.T), Vec(*angle.T)), axis=1)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))
