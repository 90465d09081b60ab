"""COLLADA (``.dae``): the triangles, colours and pictures of a file, where its own nodes put them.

pycollada reads the file. By hand is what it leaves to its callers: the nodes that are shown, with a bound on their
number, since instances of instances multiply; lengths in the file's ``unit``; and to read on where a material is
missing. Of materials the diffuse colour with its opacity is used, or the diffuse picture, a PNG or JPEG file beside the
mesh; one that cannot be read is left out in silence, as the colours of files are. The motion of skins is left out. Axes
stay as written, whatever ``up_axis`` says: ROS does the same, and robots' files are written for it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import LinkwiseError, ModelFileError, require_extra
from linkwise.files.xml import parse
from linkwise.viz.solids import Colour, Solid, Texture, joined
from linkwise.viz.textures import mean_colour, opened_picture

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_NODES = 20_000


def read_collada(content: bytes, file: str, beside: Callable[[str], bytes] | None = None) -> list[Solid]:
    """The surfaces of a file, one for each colour and picture.

    Args:
        content: of the file.
        file: its name in messages.
        beside: the content of a file that this one names; None leaves pictures out.
    """
    collada = require_extra("collada", "viz")
    parse(content, file)  # refuses entities, which lxml may follow, and archives, and knows the line of a mistake
    document = _loaded(collada, content)
    meter = document.assetInfo.unitmeter or 1.0
    pictures = _Pictures(beside)
    found = []
    for geometry, X, materials in _shown(document, file):
        for primitive in geometry.primitives:
            if isinstance(primitive, collada.polylist.Polylist):
                primitive = primitive.triangleset()
            if not isinstance(primitive, collada.triangleset.TriangleSet) or not len(primitive.vertex_index):
                continue
            bound = materials.get(primitive.material)
            material = bound.target if bound is not None else document.materials.get(primitive.material)
            colour, opacity = _colour(material, document.tag)
            image = None if material is None or not primitive.texcoordset else pictures.of(material.effect.diffuse)
            if image is None:
                used, faces = np.unique(primitive.vertex_index, return_inverse=True)
                solid = Solid(primitive.vertex[used].astype(float), faces.reshape(-1, 3), colour, opacity)
            else:
                solid = _papered(primitive, image)
            found.append(solid.placed(np.diag([meter, meter, meter, 1.0]) @ X))
    return joined(found)


class _Pictures:
    """Pictures of a file, each read once."""

    def __init__(self, beside: Callable[[str], bytes] | None) -> None:
        self._beside = beside
        self._known: dict[str, Image | None] = {}

    def of(self, diffuse: object) -> Image | None:
        """The picture that a material's diffuse colour is; None where it is none, or cannot be had."""
        path = getattr(
            getattr(getattr(getattr(diffuse, "sampler", None), "surface", None), "image", None), "path", None
        )
        if self._beside is None or not path:
            return None
        if path not in self._known:
            try:
                self._known[path] = opened_picture(self._beside(unquote(path.removeprefix("file://"))), path)
            except LinkwiseError:
                self._known[path] = None
        return self._known[path]


def _papered(primitive: Any, image: Image) -> Solid:
    """Triangles with a picture: corners at one place are one vertex where they are at one place of the picture too."""
    corners = np.stack([primitive.vertex_index.reshape(-1), primitive.texcoord_indexset[0].reshape(-1)], axis=-1)
    used, faces = np.unique(corners, axis=0, return_inverse=True)
    uv = primitive.texcoordset[0][used[:, 1], :2].astype(float)
    vertices = primitive.vertex[used[:, 0]].astype(float)
    return Solid(vertices, faces.reshape(-1, 3), mean_colour(image), texture=Texture(image, uv))


def _loaded(collada: ModuleType, content: bytes) -> Any:
    """The document; without materials that are missing, for which pycollada drops whatever is to have them."""
    document = collada.Collada(io.BytesIO(content), ignore=[collada.DaeError])
    missing = [
        (parent, child)
        for parent in document.xmlnode.getroot().iter()
        for child in parent.findall(document.tag("instance_material"))
        if child.get("target", "")[1:] not in document.materials
    ]
    if not missing:
        return document
    for parent, child in missing:
        parent.remove(child)
    mended = io.BytesIO()
    document.xmlnode.write(mended)
    mended.seek(0)
    return collada.Collada(mended, ignore=[collada.DaeError])


def _shown(document: Any, file: str) -> Iterator[tuple[Any, Array, dict[str, Any]]]:
    """Geometries of the scene (all, where there is none), each with its pose and its materials by their symbol."""
    scene = document.scene or next(iter(document.scenes), None)
    if scene is None:
        yield from ((geometry, np.eye(4), {}) for geometry in document.geometries)
        return
    stack = [(node, np.eye(4)) for node in reversed(scene.nodes)]
    met = 0
    while stack:
        node, X = stack.pop()
        met += 1
        if met > _MOST_NODES:
            raise ModelFileError("this mesh has too many nodes", file=file, allowed=_MOST_NODES)
        if hasattr(node, "children"):
            stack += [(child, X @ node.matrix) for child in reversed(node.children)]
            continue
        skins = (bound.geometry for bound in node.objects("controller", X) if hasattr(bound, "skin"))
        for bound in (*node.objects("geometry", X), *skins):
            yield bound.original, bound.matrix, bound.materialnodebysymbol


def _colour(material: Any, tag: Callable[[str], str]) -> tuple[Colour | None, float]:
    """Diffuse colour and opacity; pycollada says black also where the file has none, or a texture that is missing."""
    if material is None or material.effect.xmlnode.find(f".//{tag('diffuse')}/{tag('color')}") is None:
        return None, 1.0
    r, g, b, opacity = (float(x) for x in (*material.effect.diffuse, 1.0)[:4])
    red, green, blue = (round(255 * min(max(x, 0.0), 1.0)) for x in (r, g, b))
    return (red, green, blue), opacity if 0.05 < opacity <= 1.0 else 1.0  # some write 0 and mean 1
