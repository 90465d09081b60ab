"""Markers: arrows, discs and cones that change from picture to picture, such as forces and points of contact.

They are given for the samples of a motion and drawn in pages, saved pages and videos alike.

Those of contact are points that press, their forces, and the cones of friction that forces stay within.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import InputError, UnknownNameError
from linkwise.mechanism.placement import quaternions_of, transform
from linkwise.model.model import Model
from linkwise.sim.setup import usual_method
from linkwise.sim.touched import MotionContacts
from linkwise.viz.overlays import OVERLAYS, Overlay, ShownState, _Arrows
from linkwise.viz.solids import Colour, Solid, arrow, cylinder, revolved, sphere, towards
from linkwise.viz.stage import WORLD, add_arrows

if TYPE_CHECKING:
    import viser


_AWAY = 1e6
"""Place of markers that are not shown, m."""
_FLAT = 0.06
"""Height of a disc, in radii."""


@dataclass(frozen=True)
class Markers:
    """K markers of one kind, at T samples of a motion.

    Args:
        name: of all of them, for the panel.
        kind: an arrow begins at its place and is as long as its vector; a disc lies at its place, across its vector; a
            cone has its tip at its place and opens along its vector, as far as that is long.
        places: in the world (T, k, 3), m; not finite where there is no marker.
        vectors: in the world (T, k, 3); of arrows and cones in m.
        radius: of discs, and of cones where they are open, m.
        colour: red, green, blue, 0 to 255.
        opacity: 0 to 1.

    Example:
        >>> import numpy as np
        >>> from linkwise.viz.markers import Markers
        >>> up = np.broadcast_to([0.0, 0.0, 0.3], (2, 1, 3))
        >>> Markers("push", "arrow", np.zeros((2, 1, 3)), up).shown(0)[0]
        array([[0., 0., 0.]])
    """

    name: str
    kind: Literal["arrow", "disc", "cone"]
    places: Array
    vectors: Array
    radius: float = 0.02
    colour: Colour = (230, 120, 20)
    opacity: float = 1.0

    def __post_init__(self) -> None:
        shapes = np.shape(self.places), np.shape(self.vectors)
        if shapes[0] != shapes[1] or len(shapes[0]) != 3 or shapes[0][2] != 3:
            raise InputError(
                f"the markers {self.name!r} do not fit", got=f"places {shapes[0]}, vectors {shapes[1]}",
                allowed="(T, k, 3) for both: samples, markers, x y z",
            )  # fmt: skip
        if self.kind not in ("arrow", "disc", "cone"):
            raise InputError("no such kind of marker", got=repr(self.kind), allowed="arrow, disc, cone")

    def checked(self, samples: int) -> Markers:
        """The same, where there are as many samples as a motion has."""
        if len(self.places) != samples:
            raise InputError(
                f"the markers {self.name!r} do not fit the motion", got=f"{len(self.places)} samples", allowed=samples
            )
        return self

    def shown(self, sample: int) -> tuple[Array, Array]:
        """Places and vectors (n, 3) of those that are there at a sample."""
        places, vectors = (np.asarray(each, float)[sample] for each in (self.places, self.vectors))
        there = np.isfinite(places).all(axis=-1) & np.isfinite(vectors).all(axis=-1)
        there &= np.linalg.norm(vectors, axis=-1) > 0.0
        return places[there], vectors[there]

    def solids(self, sample: int, size: float) -> list[Solid]:
        """Surfaces at a sample, in the world; arrows are as thick as suits a model of this size, m."""
        found = []
        for place, vector in zip(*self.shown(sample), strict=True):
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = towards(vector), place
            found.append(self._solid(float(np.linalg.norm(vector)), size).placed(X).painted(self.colour, self.opacity))
        return found

    def _solid(self, length: float, size: float) -> Solid:
        """One of them along z."""
        if self.kind == "arrow":
            return arrow(length, 0.006 * size)
        if self.kind == "disc":
            return cylinder(self.radius, _FLAT * self.radius)
        return revolved([(0.0, 0.0), (self.radius, length)])


class MarkerNodes:
    """Markers in the scene of a page.

    Args:
        scene: a ``viser`` scene.
        markers: what they are.
        size: of the model, m.
    """

    def __init__(self, scene: viser.SceneApi, markers: Markers, size: float) -> None:
        self.markers, self.visible = markers, True
        name, count = f"{WORLD}/markers/{markers.name.replace('/', '∕')}", max(np.shape(markers.places)[1], 1)
        self.handle: viser.ArrowsHandle | viser.BatchedMeshHandle
        if markers.kind == "arrow":
            self.handle = add_arrows(scene, name, np.zeros((1, 2, 3), np.float32), markers.colour, size)
            return
        solid = markers._solid(1.0, size)
        self.handle = scene.add_batched_meshes_simple(
            name,
            solid.vertices.astype(np.float32),
            solid.faces.astype(np.uint32),
            batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
            batched_positions=np.full((count, 3), _AWAY),
            batched_scales=np.ones((count, 3)),
            batched_colors=markers.colour,
            opacity=markers.opacity if markers.opacity < 1.0 else None,
            side="double",
            lod="off",
            cast_shadow=False,
        )

    def show(self, sample: int) -> None:
        """Draw them as they are at a sample."""
        if not self.visible:
            return
        places, vectors = self.markers.shown(sample)
        if self.markers.kind == "arrow":
            self.handle.visible = bool(len(places))
            if len(places):
                self.handle.points = np.stack([places, places + vectors], axis=1).astype(np.float32)
            return
        count = len(self.handle.batched_positions)
        at, turns, scales = np.full((count, 3), _AWAY), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)), np.ones((count, 3))
        at[: len(places)] = places
        if len(places):
            turns[: len(places)] = quaternions_of(np.array([towards(vector) for vector in vectors]))
        if self.markers.kind == "cone":
            scales[: len(places), 2] = np.linalg.norm(vectors, axis=-1)
        self.handle.batched_positions, self.handle.batched_wxyzs = at.astype(np.float32), turns.astype(np.float32)
        self.handle.batched_scales = scales.astype(np.float32)

    def switch(self, visible: bool, sample: int) -> None:
        """Show or hide them."""
        self.visible = self.handle.visible = visible
        self.show(sample)


PRESSING: Colour = (200, 40, 120)
FRICTION: Colour = (120, 150, 40)
_SPOKES = 12
"""Lines of a cone."""
_DOT = 0.015
"""Width of a contact point, in sizes of the model."""
_HEIGHT = 0.12
"""Height of a cone, in sizes of the model."""
_LONGEST = 2.0
"""Length at which arrows of contact forces end, in sizes of the model: blows are short, and many times a weight."""


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
        pressing = contacts.presses[k]
        mu = contacts.friction[k].max(axis=-1)
        normals = np.asarray(contacts.places.normal)[k]
        return cls(*(each[pressing] for each in (contacts.points[k], contacts.force[k], normals, mu)))


class OfContact(Overlay):
    """An overlay of models whose bodies touch; those of a file with a floor do, where nothing is said."""

    @classmethod
    def applies(cls, model: Model) -> bool:
        return model._contact_scene is not None or usual_method(model, None, "") == "moreau"

    @classmethod
    @abstractmethod
    def solids(cls, touches: Touches, model: Model, size: float) -> list[Solid]:
        """Surfaces in the world, for pictures of a model of this size, m."""


class ContactPointDots(OfContact):
    """Points where bodies press on each other or on the ground."""

    title = "contact points"
    inside = True

    @classmethod
    def solids(cls, touches: Touches, model: Model, size: float) -> list[Solid]:
        ball = sphere(0.5 * _DOT * size, 8).painted(PRESSING)
        return [ball.placed(transform(xyz=point)) for point in touches.points]

    def made(self) -> list[viser.SceneNodeHandle]:
        nowhere = np.zeros((1, 3), np.float32)
        size = _DOT * self.size
        name = f"{self.figure.root}/{self.title}"
        form: dict[str, Any] = {"point_size": size, "point_shape": "circle", "precision": "float32"}
        return [self.figure.scene.add_point_cloud(name, nowhere, PRESSING, **form)]

    def update(self, moment: ShownState) -> None:
        if self.visible:
            self.redraw(np.zeros((0, 3)) if moment.touches is None else moment.touches.points)


class ContactForceArrows(OfContact, _Arrows):
    """Forces at contact points, on the first of the two bodies."""

    title = "contact forces"
    inside = True
    colour = PRESSING
    weighs = 1.0

    @classmethod
    def solids(cls, touches: Touches, model: Model, size: float) -> list[Solid]:
        ways = shortened(cls.of_newton(model, size) * touches.forces, _LONGEST * size)
        marks = Markers(cls.title, "arrow", touches.points[None], ways[None], colour=cls.colour)
        return marks.solids(0, size)

    def arrows(self, moment: ShownState) -> tuple[Array, Array]:
        if moment.touches is None:
            return np.zeros((0, 3)), np.zeros((0, 3))
        starts = moment.touches.points
        return starts, starts + shortened(self.metres_per_newton * moment.touches.forces, _LONGEST * self.size)


def shortened(ways: Array, most: float) -> Array:
    """Vectors (n, 3) with their directions, none longer than this."""
    lengths = np.linalg.norm(ways, axis=-1, keepdims=True)
    return np.asarray(ways * np.minimum(1.0, most / np.maximum(lengths, 1e-300)))


class FrictionCones(OfContact):
    """Cones that contact forces stay within: a force on the surface of its cone slips."""

    title = "friction cones"

    @classmethod
    def solids(cls, touches: Touches, model: Model, size: float) -> list[Solid]:
        found, height = [], _HEIGHT * size
        for n, point, mu in zip(touches.normals, touches.points, touches.friction, strict=True):
            X = np.eye(4)
            X[:3, :3], X[:3, 3] = towards(n), point
            cone = revolved([(0.0, 0.0), (max(float(mu), _FLAT) * height, height)])
            found.append(cone.placed(X).painted(FRICTION, 0.45))
        return found

    def made(self) -> list[viser.SceneNodeHandle]:
        nowhere = np.zeros((1, 2, 3), np.float32)
        name = f"{self.figure.root}/{self.title}"
        return [self.figure.scene.add_line_segments(name, nowhere, FRICTION, thickness=0.003 * self.size)]

    def update(self, moment: ShownState) -> None:
        if self.visible:
            self.redraw(np.zeros((0, 2, 3)) if moment.touches is None else cones(moment.touches, _HEIGHT * self.size))


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


OF_CONTACT: tuple[type[OfContact], ...] = (ContactPointDots, ContactForceArrows, FrictionCones)
EVERY_OVERLAY: tuple[type[Overlay], ...] = (*OVERLAYS, *OF_CONTACT)
"""All that can be shown."""


Kind = TypeVar("Kind", bound=Overlay)


def overlays_named(titles: Sequence[str], among: Sequence[type[Kind]]) -> list[type[Kind]]:
    """Those of some overlays that have these titles."""
    known = {each.title: each for each in among}
    for title in titles:
        if title not in known:
            raise UnknownNameError("thing to show", title, known)
    return [known[title] for title in titles]
