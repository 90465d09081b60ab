"""The stage of a page: sky, light, a floor and a camera, and what the camera follows.

Everything in a scene hangs on one frame, ``/world``. To follow, that frame moves the other way, and what is followed is
where the camera looks; the mouse turns and moves the camera as ever. Nothing is sent to cameras, so the same holds for
pages that are saved; and what is far from the origin of the world is near the origin of the scene, whose numbers are
single precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.dataclass import dataclass
from linkwise.errors import UnknownNameError
from linkwise.model.model import Model
from linkwise.viz.looks import Looks, is_level, planes_of
from linkwise.viz.solids import Colour

if TYPE_CHECKING:
    import viser

WORLD = "/world"
"""The frame that all nodes of a scene hang on."""
MASS_CENTRE = "mass centre"
NOTHING = "nothing"
SKY = ((92, 124, 166), (224, 232, 241))
"""Colours of the sky, above and at the horizon."""
NIGHT = ((12, 15, 22), (58, 66, 80))
"""The same on a dark page."""
FLOOR = (196, 205, 216)
_FAR = 18.0
"""Distance at which the floor has faded away, in sizes of what is shown."""


@dataclass(frozen=True)
class Followed:
    """Place that the camera follows: the mean of points of bodies.

    Args:
        name: of a body, or ``"mass centre"``.
        weights: of the points (n_bodies), with sum 1.
        points: in the frames of the bodies (n_bodies, 3), m.
    """

    name: str
    weights: Array
    points: Array

    def place(self, poses: ArrayLike) -> Array:
        """Its place in the world (..., 3), m, for poses (..., n_bodies, 4, 4)."""
        X = np.asarray(poses, float)
        at = np.einsum("...kij,kj->...ki", X[..., :3, :3], self.points) + X[..., :3, 3]
        return np.asarray(np.einsum("k,...ki->...i", self.weights, at))


def followed(model: Model, follow: bool | str | None = None) -> Followed | None:
    """Place of a model that the camera follows, or None.

    Args:
        model: the mechanism.
        follow: the name of a body; ``"mass centre"``, or True; ``"nothing"``, or False. None: the mass centre, if the
            model can go anywhere.
    """
    count = len(model.bodies)
    if follow is None:
        follow = floats(model)
    if follow in (False, NOTHING) or not count:
        return None
    if follow in (True, MASS_CENTRE):
        masses = np.array([body.mass for body in model.bodies]) if model.mass > 0.0 else np.ones(count)
        centres = np.nan_to_num([body.com for body in model.bodies])
        return Followed(MASS_CENTRE, masses / masses.sum(), centres)
    if follow not in model.bodies.names:
        raise UnknownNameError("body to follow", follow, (MASS_CENTRE, NOTHING, *model.bodies.names))
    weights = np.zeros(count)
    weights[model.bodies[follow].index] = 1.0
    return Followed(str(follow), weights, np.zeros((count, 3)))


def floats(model: Model) -> bool:
    """Whether nothing holds a model where it is: what stands on the world can slide along two or more axes for ever.

    A platform on legs is held, by its legs; so is an arm beside a crate.
    """
    free: dict[int, int] = {-1: 0}  # of bodies, through which nothing with mass is passed: unlimited slides up to there
    for body in model.bodies:
        before = free.get(body.parent)
        if before is None or before >= 2:
            continue
        joint = model.joints[body.index]
        lower, upper = model.limits.lower[joint.q_slice], model.limits.upper[joint.q_slice]
        unlimited = not np.isfinite([*lower, *upper]).any()
        slides = sum(not any(float(a) for a in column.ang) for column in joint.type.subspace(joint.type.neutral()))
        here = before + (slides if unlimited else 0)
        if here >= 2 or body.mass == 0.0:
            free[body.index] = here
        else:
            return False  # a body with mass that is held
    return any(slides >= 2 for slides in free.values())


def floor_height(model: Model, looks: Looks, start: float, lowest: float) -> float | None:
    """Height of the floor, m: of the ground that bodies touch, of what is fixed to the world, 0, or below the start.

    None where nothing pulls downwards and nothing is fixed: in space; and where there are hills or slopes instead.

    Args:
        model: the mechanism.
        looks: of it.
        start: the lowest point of the model at the start, m.
        lowest: the lowest point that it comes to, m; matters where it hangs on nothing that can be seen.
    """
    level = [float(plane[2, 3]) for plane in planes_of(model) if is_level(plane)]
    if level:
        return max(level)
    if looks.ground:
        return None
    if floats(model):
        return min(0.0, start) if np.any(model.gravity) else None
    fixed = [float(solid.vertices[:, 2].min()) for solid in looks.base]
    return min(0.0, *fixed) if fixed else min(0.0, lowest)


def sky(dark: bool = False, height: int = 256, width: int = 2, horizon: float = 0.6) -> Array:
    """Picture of the sky (height, width, 3), uint8: a gradient down to the horizon, at this share of the height."""
    top, end = (np.array(colour, float) for colour in (NIGHT if dark else SKY))
    share = np.clip(np.linspace(0.0, 1.0 / horizon, height), 0.0, 1.0)[:, None, None]
    return np.broadcast_to((1.0 - share) * top + share * end + 0.5, (height, width, 3)).astype(np.uint8)


def add_arrows(
    scene: viser.SceneApi, name: str, points: Array, colour: Colour | Array, size: float
) -> viser.ArrowsHandle:
    """A node with arrows between points (k, 2, 3), as thick as suits a model of this size, m."""
    shaft, head, length = (share * size for share in (0.006, 0.016, 0.035))
    return scene.add_arrows(name, points, colour, shaft_radius=shaft, head_radius=head, head_length=length)


class PageStage:
    """Surroundings of what a page shows.

    Args:
        server: a ``viser`` server.
        dark: on a dark page.
    """

    def __init__(self, server: viser.ViserServer, dark: bool = False) -> None:
        self.server, self.dark = server, dark
        self.world = server.scene.add_frame(WORLD, show_axes=False)
        self.shift: Array = np.zeros(3)
        """Offset from places in the world to those in the scene, m."""
        self.centre: Array = np.zeros(3)
        self.floor: viser.GridHandle | None = None
        server.scene.set_background_image(sky(dark), format="png")
        self.shade(True)

    def shade(self, shadows: bool) -> None:
        """Draw shadows, or not; each takes everything to be drawn once more."""
        self.server.scene.configure_default_lights(cast_shadow=shadows)

    def furnish(self, low: ArrayLike, high: ArrayLike, floor: float | None, closer: float = 1.0) -> None:
        """A floor, and a camera that sees all between two corners, or is so many times closer.

        Args:
            low: least corner (3), m.
            high: greatest corner (3), m.
            floor: its height, m; None for none.
            closer: how many times closer the camera stands than where it sees everything.
        """
        corner, other = np.asarray(low, float), np.asarray(high, float)
        self.centre = (corner + other) / 2
        size = max(float(np.linalg.norm(other - corner)), 1e-3)
        self.cell = float(10.0 ** np.floor(np.log10(size / 2)))
        if floor is not None:
            self.floor = self._floor(size, floor)
        camera = self.server.initial_camera
        camera.look_at = tuple(self.centre)
        camera.position = tuple(self.centre + 0.85 * size / closer * np.array([0.75, -0.6, 0.38]))
        camera.near = 0.005 * size
        camera.far = 200.0 * size

    def _floor(self, size: float, height: float) -> viser.GridHandle:
        lines = (92, 102, 118) if self.dark else (160, 170, 184)
        return self.server.scene.add_grid(
            f"{WORLD}/floor",
            width=2.2 * _FAR * size,
            height=2.2 * _FAR * size,
            cell_size=self.cell,
            section_size=5 * self.cell,
            position=(*self._below(), height),
            cell_color=lines,
            section_color=lines,
            cell_thickness=0.7,
            section_thickness=1.1,
            plane_color=(44, 50, 60) if self.dark else FLOOR,
            plane_opacity=0.8,
            shadow_opacity=0.45,
            fade_distance=_FAR * size,
            fade_strength=1.5,
        )

    def _below(self) -> tuple[float, float]:
        """Middle of the floor, below where the camera looks; its lines stay where they are in the world."""
        x, y = 5 * self.cell * np.round((self.centre - self.shift)[:2] / (5 * self.cell))
        return float(x), float(y)

    def follow(self, place: ArrayLike | None) -> None:
        """Move the world so that a place in it (3) is where the camera looks; None: leave it where it is."""
        if place is None or not np.isfinite(np.asarray(place, float)).all():
            return
        shift = self.centre - np.asarray(place, float)
        if np.array_equal(shift, self.shift):
            return
        self.shift = shift
        self.world.position = shift
        if self.floor is not None:
            x, y, z = self.floor.position
            if (x, y) != self._below():
                self.floor.position = (*self._below(), z)


def seen_around(lows: ArrayLike, highs: ArrayLike, places: ArrayLike | None) -> tuple[Array, Array]:
    """Corners of a box to look at: around all boxes of a motion, or, of one that is followed, around its start.

    Args:
        lows: least corner at each instant (T, 3), m.
        highs: greatest corner at each instant (T, 3), m.
        places: what is followed at each instant (T, 3), m; it will be in the middle. None for nothing.
    """
    low, high = np.asarray(lows, float), np.asarray(highs, float)
    if places is None:
        return low.min(axis=0), high.max(axis=0)
    at = np.asarray(places, float)
    reach = np.maximum((high - at).max(axis=0), (at - low).max(axis=0))
    return at[0] - reach, at[0] + reach
