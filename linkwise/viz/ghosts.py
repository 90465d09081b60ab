"""A batch of states as ghosts: of each body one mesh, drawn at many places at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linkwise.model.model import Model
from linkwise.viz.figure import quaternions
from linkwise.viz.looks import Looks
from linkwise.viz.solids import Colour, merged, simplified
from linkwise.viz.stage import WORLD

PALE: Colour = (96, 150, 214)
MOST_FACES = 400_000
"""Triangles of all ghosts together: surfaces are simplified to stay below it."""
_FEWEST = 60
"""Triangles of one body, at least."""


class Ghosts:
    """Many states of one model; a draw call for each body, whatever their number.

    Flexible bodies are drawn without their deformation.

    Args:
        scene: a ``viser`` scene.
        model: of the states.
        looks: of the model.
        count: how many.
        root: the name above all nodes.
        opacity: of each.
    """

    def __init__(
        self, scene: Any, model: Model, looks: Looks, count: int, root: str = f"{WORLD}/ghosts", opacity: float = 0.35
    ) -> None:
        self.model, self.count = model, count
        solids = {k: merged(looks.surfaces(k)) for k in range(len(model.bodies)) if looks.surfaces(k)}
        each = max(_FEWEST, MOST_FACES // max(count * len(solids), 1))
        one = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        self.handles = {}
        for k, solid in solids.items():
            small = simplified(solid, each)
            self.handles[k] = scene.add_batched_meshes_simple(
                f"{root}/{k}",
                small.vertices.astype(np.float32),
                small.faces.astype(np.uint32),
                batched_wxyzs=one,
                batched_positions=np.zeros((count, 3)),
                batched_colors=PALE,
                opacity=opacity,
                flat_shading=not small.smooth,
                side="front",  # both sides of what is seen through would be two draw calls,
                lod="off",  # and each level of detail another
                cast_shadow=False,
                receive_shadow=False,
            )

    def show(self, q: ArrayLike, p: ArrayLike | None = None) -> None:
        """Move all of them to q (count, nq); those that are not finite are moved out of sight."""
        poses = np.asarray(self.model.poses(q, p=p))
        lost = ~np.isfinite(poses).all(axis=(1, 2, 3))
        poses[lost] = np.eye(4)
        turns, places = quaternions(poses).astype(np.float32), poses[..., :3, 3].astype(np.float32)
        places[lost] = 1e6
        for k, handle in self.handles.items():
            handle.batched_wxyzs, handle.batched_positions = turns[:, k], places[:, k]

    @property
    def bytes_per_picture(self) -> int:
        """Number of bytes that are sent for each picture."""
        return 28 * self.count * len(self.handles)
