"""Textures: pictures on surfaces, where mesh files have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linkwise.errors import require_extra
from linkwise.viz.solids import Colour, Solid


class TexturedMesh:
    """A surface with its picture, with the properties of a plain one.

    Browsers get it twice: with the picture, and in one colour for when it is marked or seen through.

    Args:
        scene: a ``viser`` scene.
        name: of the node.
        solid: with a texture.
        plain: the node of the same surface in one colour.
    """

    def __init__(self, scene: Any, name: str, solid: Solid, plain: Any) -> None:
        trimesh = require_extra("trimesh", "viz")
        assert solid.texture is not None
        material = trimesh.visual.material.PBRMaterial(
            baseColorTexture=solid.texture.image, metallicFactor=0.0, roughnessFactor=0.8, doubleSided=True
        )
        visual = trimesh.visual.TextureVisuals(uv=solid.texture.uv, material=material)
        mesh = trimesh.Trimesh(np.asarray(solid.vertices), np.asarray(solid.faces), visual=visual, process=False)
        self.papered, self.plain = scene.add_mesh_trimesh(f"{name} texture", mesh), plain
        self._own, self._visible = plain.color, True
        self._choose()

    def _choose(self) -> None:
        """Show one of the two."""
        bare = tuple(self.plain.color) != tuple(self._own) or self.plain.opacity is not None
        self.plain.visible = self._visible and bare
        self.papered.visible = self._visible and not bare

    @property
    def color(self) -> Colour:
        """In which it is marked."""
        colour: Colour = self.plain.color
        return colour

    @color.setter
    def color(self, colour: Colour) -> None:
        self.plain.color = colour
        self._choose()

    @property
    def opacity(self) -> float | None:
        """Of the surface; None where it is opaque."""
        opacity: float | None = self.plain.opacity
        return opacity

    @opacity.setter
    def opacity(self, opacity: float | None) -> None:
        self.plain.opacity = opacity
        self._choose()

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return self._visible

    @visible.setter
    def visible(self, visible: bool) -> None:
        self._visible = visible
        self._choose()

    def on_click(self, action: Callable[[Any], Any]) -> None:
        """Action on a click."""
        for handle in (self.plain, self.papered):
            handle.on_click(action)

    def on_drag(self, *button: Any, **keys: Any) -> Callable[[Callable[[Any], Any]], None]:
        """Action on a drag, as of other nodes."""

        def attach(action: Callable[[Any], Any]) -> None:
            for handle in (self.plain, self.papered):
                handle.on_drag(*button, **keys)(action)

        return attach
