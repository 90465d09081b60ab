"""A model in the scene of a page: a node for each body, with its surfaces below it; of a batch of states, ghosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from linkwise.array_types import Array
from linkwise.mechanism.placement import quaternions_of
from linkwise.model.model import Model
from linkwise.viz.bending import Bending
from linkwise.viz.looks import Looks
from linkwise.viz.solids import GREY, Colour, Solid, bounds_of, from_wxyz, merged, simplified
from linkwise.viz.stage import WORLD, PageStage, floor_height, seen_around
from linkwise.viz.textures import TexturedMesh

if TYPE_CHECKING:
    import viser

SurfaceHandle: TypeAlias = "viser.MeshHandle | viser.MeshSkinnedHandle | TexturedMesh"
_SELECTED: Colour = (255, 190, 60)
THROUGH = 0.4
"""Opacity of bodies that show what is inside them."""


def quaternions(poses: ArrayLike) -> Array:
    """(..., 4), w first, of poses (..., 4, 4)."""
    return quaternions_of(np.asarray(poses, float)[..., :3, :3])


def pose_of(wxyz: ArrayLike, position: ArrayLike) -> Array:
    """4×4 from a quaternion, w first, and a place."""
    X = np.eye(4)
    X[:3, :3] = from_wxyz(wxyz).as_matrix()
    X[:3, 3] = position
    return X


class ModelFigure:
    """The nodes of one model; :meth:`show` moves them.

    Args:
        scene: a ``viser`` scene.
        model: what it shows.
        looks: of the model.
        root: the name above all its nodes.
        offset: where the world of the model is in that of the page, m.
        tint: one colour for all, None for their own.
        opacity: times their own.
    """

    def __init__(
        self,
        scene: viser.SceneApi,
        model: Model,
        looks: Looks,
        root: str = f"{WORLD}/model",
        offset: ArrayLike = (0.0, 0.0, 0.0),
        tint: Colour | None = None,
        opacity: float = 1.0,
    ) -> None:
        self.scene, self.model, self.looks, self.root = scene, model, looks, root
        self.tint, self.opacity = tint, opacity
        self.exaggeration = 1.0
        self.poses: Array = np.zeros((len(model.bodies), 4, 4))
        self.offset: Array = np.asarray(offset, float)
        self.base = scene.add_frame(root, show_axes=False, position=self.offset)
        self.base_meshes = [
            self._mesh(f"{root}/world/{k}", solid) for k, solid in enumerate((*looks.base, *looks.ground))
        ]
        self.nodes = [scene.add_frame(self.name_of(k), show_axes=False) for k in range(len(model.bodies))]
        self.meshes: list[list[SurfaceHandle]] = []
        for k, solids in enumerate(looks.bodies):
            self.meshes.append([self._mesh(f"{self.name_of(k)}/{n}", solid) for n, solid in enumerate(solids)])
        self.bent = {
            k: [self._skin(f"{self.name_of(k)}/bent{n}", each) for n, each in enumerate(bendings)]
            for k, bendings in looks.bent.items()
        }
        self._sent: dict[int, tuple[bytes, bytes]] = {}

    def name_of(self, body: int) -> str:
        """The name of a body's node."""
        return f"{self.root}/{body}: {self.model.bodies[body].name.replace('/', '∕')}"

    def add(self, name: str, solid: Solid, **finish: Any) -> viser.MeshHandle:
        """A node with a surface, in the frame of the node that its name has above it."""
        vertices, faces = solid.vertices.astype(np.float32), solid.faces.astype(np.uint32)
        return self.scene.add_mesh_simple(name, vertices, faces, **finish)

    def _mesh(self, name: str, solid: Solid) -> SurfaceHandle:
        plain = self.add(name, solid, **self._finish(solid))
        return plain if solid.texture is None or self.tint else TexturedMesh(self.scene, name, solid, plain)

    def _skin(self, name: str, surface: Bending) -> viser.MeshSkinnedHandle:
        """A surface whose bones are moved: in the same instant as bodies, where new vertices would come later."""
        bones, solid = surface.bones, surface.solid
        upright = np.tile([1.0, 0.0, 0.0, 0.0], (len(bones.position), 1))
        return self.scene.add_mesh_skinned(
            name,
            solid.vertices.astype(np.float32),
            solid.faces.astype(np.uint32),
            bone_wxyzs=upright,
            bone_positions=bones.position,
            skin_weights=surface.weights,
            **self._finish(solid),
        )

    def _finish(self, solid: Solid) -> dict[str, Any]:
        """Colour and the like of a surface."""
        opacity = solid.opacity * self.opacity
        return {
            "color": self.tint or solid.colour or GREY,
            "opacity": opacity if opacity < 1.0 else None,
            "flat_shading": not solid.smooth,
            "side": "double",
        }

    def drawn(self, q: ArrayLike) -> Array:
        """The configuration to draw for q: deformations are exaggerated, and what hangs on them moves along."""
        shown = np.array(q, float)
        if self.exaggeration != 1.0:
            for body in self.model.bodies:
                shown[body.q_slice] *= self.exaggeration
        return shown

    def show(self, q: ArrayLike, p: ArrayLike | None = None) -> None:
        """Move all bodies to where they are at q (nq)."""
        shown = self.drawn(q)
        self.poses = self.model.poses(shown, p=p)
        if not np.isfinite(self.poses).all():
            return
        turns = quaternions(self.poses)
        for k, node in enumerate(self.nodes):
            place = np.asarray(self.poses[k, :3, 3])
            sent = self._sent.get(k, (b"", b""))
            now = (place.tobytes(), turns[k].tobytes())
            if now[0] != sent[0]:
                node.position = place
            if now[1] != sent[1]:
                node.wxyz = turns[k]
            self._sent[k] = now
        for k, handles in self.bent.items():
            eta = shown[self.model.bodies[k].q_slice]
            for handle, each in zip(handles, self.looks.bent[k], strict=True):
                for bone, place, turn in zip(handle.bones, *each.bones.poses(eta), strict=True):
                    bone.position, bone.wxyz = place, turn

    def see_through(self, share: float) -> None:
        """Draw all surfaces but the ground with this share of their own opacity."""
        base = self.base_meshes[: len(self.looks.base)]
        solids = [*self.looks.base, *(solid for k in range(len(self.nodes)) for solid in self.looks.surfaces(k))]
        handles = [*base, *(handle for k in range(len(self.nodes)) for handle in self.surfaces(k))]
        for handle, solid in zip(handles, solids, strict=True):
            opacity = solid.opacity * self.opacity * share
            handle.opacity = opacity if opacity < 1.0 else None

    def surfaces(self, body: int) -> list[SurfaceHandle]:
        """The handles of a body's surfaces."""
        return [*self.meshes[body], *self.bent.get(body, ())]

    def mark(self, body: int | None, previous: int | None = None) -> None:
        """Show one body in another colour, and the one before in its own again."""
        if previous is not None:
            for handle, solid in zip(self.surfaces(previous), self.looks.surfaces(previous), strict=True):
                handle.color = self.tint or solid.colour or GREY
        if body is not None:
            for handle in self.surfaces(body):
                handle.color = _SELECTED

    def on_each(self, attach: Callable[[int, SurfaceHandle], None]) -> None:
        """Call for each body and surface, to attach what happens on a click or a drag."""
        for k in range(len(self.nodes)):
            for handle in self.surfaces(k):
                attach(k, handle)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The least and the greatest corner of what is shown, in the stage's world."""
        moved = [solid.placed(X) for k, X in enumerate(self.poses) for solid in self.looks.surfaces(k)]
        low, high = bounds_of([*self.looks.base, *moved])
        return low + self.offset, high + self.offset


def furnish(
    stage: PageStage, figures: Sequence[ModelFigure], places: Array, middle: Array | None = None, closer: float = 1.0
) -> None:
    """A floor and a camera for figures that are shown as they are at the start.

    Args:
        stage: where they are.
        figures: of which the first stands on the floor.
        places: where all is that moves, at T instants (T, k, 3), m.
        middle: what is followed at these instants (T, 3), m; None for nothing.
        closer: how many times closer the camera stands than where it sees everything.
    """
    lows, highs = places.min(axis=1, initial=np.inf), places.max(axis=1, initial=-np.inf)
    for figure in figures:
        low, high = figure.bounds
        lows[0], highs[0] = np.minimum(lows[0], low), np.maximum(highs[0], high)
    first = figures[0]
    floor = floor_height(first.model, first.looks, float(first.bounds[0][2]), float(lows[:, 2].min()))
    stage.furnish(*seen_around(lows, highs, middle), floor, closer)


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
    """

    def __init__(self, scene: viser.SceneApi, model: Model, looks: Looks, count: int) -> None:
        self.model, self.count = model, count
        solids = {k: merged(looks.surfaces(k)) for k in range(len(model.bodies)) if looks.surfaces(k)}
        each = max(_FEWEST, MOST_FACES // max(count * len(solids), 1))
        one = np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))
        self.handles = {}
        for k, solid in solids.items():
            small = simplified(solid, each)
            self.handles[k] = scene.add_batched_meshes_simple(
                f"{WORLD}/ghosts/{k}",
                small.vertices.astype(np.float32),
                small.faces.astype(np.uint32),
                batched_wxyzs=one,
                batched_positions=np.zeros((count, 3)),
                batched_colors=PALE,
                opacity=0.35,
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
