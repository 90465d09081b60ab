"""Textures: pictures on surfaces, where mesh files or model files have them.

Pictures come from files that nobody vouches for: Pillow reads PNG and JPEG and nothing else, and how many pixels a
picture has is known before one of them is unpacked.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.errors import ModelFileError, require_extra
from linkwise.files.resources import read_bytes
from linkwise.mechanism.description import Picture
from linkwise.viz.solids import Colour, Solid, Texture

if TYPE_CHECKING:
    import viser
    from PIL.Image import Image

MOST_PIXELS = 8192 * 8192
"""Most pixels of a picture that is unpacked; a small file may hold a huge picture."""
LARGEST_PICTURE = 64 * 1024 * 1024
"""Bytes of a file."""
LARGEST_TEXTURE = 1024
"""Pixels along an edge of a texture in pages."""
FORMATS = ("PNG", "JPEG")
SUFFIXES = (".png", ".jpg", ".jpeg")

Happened = Callable[[Any], Awaitable[None]]
"""Function that is told of an event on a page."""


def read_picture(path: Path) -> Image:
    """The ``PIL.Image`` of a file, as large as pages need it; a ``ModelFileError`` says what is wrong with it."""
    return opened_picture(read_bytes(path, suffixes=SUFFIXES, largest=LARGEST_PICTURE), str(path))


def opened_picture(content: bytes, file: str) -> Image:
    """The same from the bytes of a file; `file` is its name in messages."""
    pillow = require_extra("PIL.Image", "viz")
    try:
        image = pillow.open(io.BytesIO(content), formats=FORMATS)
        if image.width * image.height <= MOST_PIXELS:
            image.draft("RGB", (LARGEST_TEXTURE, LARGEST_TEXTURE))  # a JPEG is unpacked no larger than needed
        shrunk = for_pages(image)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:  # of damaged files
        raise ModelFileError(
            "this picture cannot be read",
            file=file,
            got=f"{type(error).__name__}: {error}"[:200],
            allowed=" or ".join(FORMATS),
        ) from None
    if shrunk is None:
        raise ModelFileError(
            "this picture is too large",
            file=file,
            got=f"{image.width} by {image.height}",
            allowed=f"{MOST_PIXELS} pixels",
        )
    return shrunk


def for_pages(image: Image) -> Image | None:
    """A picture without opacity, as large as pages need it; None for one that is too large to be unpacked."""
    if image.width * image.height > MOST_PIXELS:
        return None
    shrunk = image.convert("RGB")
    shrunk.thumbnail((LARGEST_TEXTURE, LARGEST_TEXTURE), reducing_gap=2.0)
    return shrunk


def mean_colour(image: Image) -> Colour:
    """Of all pixels."""
    counts = np.array(image.convert("RGB").histogram(), float).reshape(3, 256)
    r, g, b = counts @ np.arange(256) / counts.sum(axis=1)
    return round(float(r)), round(float(g)), round(float(b))


def tinted(image: Image, colour: Colour) -> Image:
    """A picture whose white is this colour."""
    if colour == (255, 255, 255):
        return image
    pillow = require_extra("PIL.Image", "viz")
    made: Image = pillow.fromarray((np.asarray(image, float) * np.array(colour) / 255.0).round().astype(np.uint8))
    return made


def papered(solid: Solid, image: Image, picture: Picture) -> Solid:
    """A surface with a picture on it, where its own coordinates say or projected along z (:class:`Picture`)."""
    uv = None if solid.texture is None else solid.texture.uv
    if uv is None:
        low, high = solid.vertices[:, :2].min(axis=0), solid.vertices[:, :2].max(axis=0)
        half = np.ones(2) if picture.uniform else np.maximum((high - low) / 2, 1e-12)
        uv = 0.5 + 0.5 * np.array(picture.repeat) * (solid.vertices[:, :2] - (low + high) / 2) / half
    return replace(solid, colour=mean_colour(image), texture=Texture(image, uv))


class TexturedMesh:
    """A surface with its picture, with the properties of a plain one.

    Browsers get it twice: with the picture, and in one colour for when it is marked or seen through.

    Args:
        scene: a ``viser`` scene.
        name: of the node.
        solid: with a texture.
        plain: the node of the same surface in one colour.
    """

    def __init__(self, scene: viser.SceneApi, name: str, solid: Solid, plain: viser.MeshHandle) -> None:
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

    def on_click(self, action: Happened) -> None:
        """Action on a click."""
        for handle in (self.plain, self.papered):
            handle.on_click(action)

    def on_drag(self, *button: str, **keys: str) -> Callable[[Happened], None]:
        """Action on a drag, as of other nodes."""

        def attach(action: Happened) -> None:
            for handle in (self.plain, self.papered):
                handle.on_drag(*button, **keys)(action)

        return attach
