"""Meshes from files: STL, OBJ, PLY and GLB through ``trimesh``, COLLADA through ``pycollada``.

Only local files are read: the mesh itself, and of what it names (materials, buffers) only what lies in its own folder
or below. Textures are kept, with their mean colour where they cannot be drawn.

Of COLLADA (``.dae``) the triangles, colours and pictures are taken, where the file's own nodes put them. pycollada
reads it. By hand is what it leaves to its callers: the nodes that are shown, with a bound on their number, since
instances of instances multiply; lengths in the file's ``unit``; and to read on where a material is missing. Of
materials the diffuse colour with its opacity is used, or the diffuse picture, a PNG or JPEG file beside the mesh; one
that cannot be read is left out in silence, as the colours of files are. The motion of skins is left out. Axes stay as
written, whatever ``up_axis`` says: ROS does the same, and robots' files are written for it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np

from linkwise.array_types import Array
from linkwise.errors import InputError, LinkwiseError, MissingExtraError, ModelFileError, require_extra
from linkwise.files.resources import read_bytes
from linkwise.files.xml import parse
from linkwise.viz import textures
from linkwise.viz.solids import Colour, Solid, Texture, joined
from linkwise.viz.textures import for_pages, mean_colour, opened_picture

if TYPE_CHECKING:
    import trimesh
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
            colour, opacity = _effect_colour(material, document.tag)
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


def _effect_colour(material: Any, tag: Callable[[str], str]) -> tuple[Colour | None, float]:
    """Diffuse colour and opacity; pycollada says black also where the file has none, or a texture that is missing."""
    if material is None or material.effect.xmlnode.find(f".//{tag('diffuse')}/{tag('color')}") is None:
        return None, 1.0
    r, g, b, opacity = (float(x) for x in (*material.effect.diffuse, 1.0)[:4])
    red, green, blue = (round(255 * min(max(x, 0.0), 1.0)) for x in (r, g, b))
    return (red, green, blue), opacity if 0.05 < opacity <= 1.0 else 1.0  # some write 0 and mean 1


LARGEST_MESH = 256 * 1024 * 1024
"""Bytes."""
MOST_FACES = 5_000_000
SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".gltf", ".ply", ".off")


def read_mesh(path: Path, bare: bool = False) -> list[Solid]:
    """The surfaces of a mesh file, one for each colour; a ``ModelFileError`` says what is wrong with it.

    Args:
        path: the file.
        bare: whether another picture will be laid on it: its own is left out, its coordinates in a picture are kept.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ModelFileError("this kind of mesh is not known", file=path, got=suffix, allowed=", ".join(SUFFIXES))
    content = read_bytes(path, suffixes=SUFFIXES, largest=LARGEST_MESH)
    try:
        if suffix == ".dae":
            solids = read_collada(content, str(path), _beside(path.parent).get)
        else:
            solids = _through_trimesh(content, suffix, path, bare)
    except (ModelFileError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes a reader do
        raise ModelFileError(
            "this mesh cannot be read", file=path, got=f"{type(error).__name__}: {error}"[:200]
        ) from error
    solids = [solid for solid in solids if len(solid.faces) and np.isfinite(solid.vertices).all()]
    if not solids:
        raise ModelFileError("this mesh has no triangles", file=path)
    count = sum(len(solid.faces) for solid in solids)
    if count > MOST_FACES:
        raise ModelFileError("this mesh has too many triangles", file=path, got=count, allowed=MOST_FACES)
    return solids


def _through_trimesh(content: bytes, suffix: str, path: Path, bare: bool) -> list[Solid]:
    trimesh = require_extra("trimesh", "viz")
    scene = trimesh.load_scene(
        io.BytesIO(content), file_type=suffix[1:], resolver=_beside(path.parent), process=False, skip_materials=False
    )
    found = []
    for name in scene.graph.nodes_geometry:
        X, geometry = scene.graph[name]
        mesh = scene.geometry[geometry]
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            texture = _texture(mesh, bare)
            mesh.merge_vertices(merge_tex=texture is None, merge_norm=True)
            if texture is not None:
                texture = replace(texture, uv=np.asarray(mesh.visual.uv, float))
            colour, opacity = _colour(mesh)
            vertices, faces = np.asarray(mesh.vertices, float), np.asarray(mesh.faces, np.int64)
            solid = Solid(vertices, faces, colour, opacity, texture=texture)
            found.append(solid.placed(X))
    return joined(found)


def _colour(mesh: trimesh.Trimesh) -> tuple[Colour | None, float]:
    """The colour of a mesh, the mean one where it has several; None where it has only a default."""
    visual = mesh.visual
    if visual.kind == "texture":
        rgba = visual.material.main_color
        if (image := _image(mesh)) is not None:
            rgba = [*mean_colour(image), 255]
    elif visual.kind in ("vertex", "face"):
        rgba = np.asarray(visual.vertex_colors, float).mean(axis=0)
    else:
        return None, 1.0
    r, g, b = (round(float(x)) for x in np.asarray(rgba, float)[:3])
    opacity = float(np.asarray(rgba, float)[3]) / 255.0
    return (r, g, b), opacity if opacity > 0.05 else 1.0


def _image(mesh: trimesh.Trimesh) -> Image | None:
    """Picture on a mesh, or None; a huge one is left alone before anything is unpacked."""
    if mesh.visual.kind != "texture":
        return None
    material = mesh.visual.material
    image = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
    return image if image is not None and image.width * image.height <= textures.MOST_PIXELS else None


def _texture(mesh: trimesh.Trimesh, bare: bool) -> Texture | None:
    """Texture of a mesh, at most so large as pages need it; without its picture where that is not wanted."""
    image = None if bare else _image(mesh)
    if getattr(mesh.visual, "uv", None) is None or (image is None and not bare):
        return None
    return Texture(None if image is None else for_pages(image), np.asarray(mesh.visual.uv, float))


def _beside(folder: Path) -> trimesh.resolvers.Resolver:
    """Reader of the files that a mesh file names, from its own folder and those below only."""
    resolvers = require_extra("trimesh.resolvers", "viz")
    inside = folder.resolve()

    class Beside(resolvers.Resolver):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            pass

        def get(self, name: str) -> bytes:
            wanted = (inside / str(name).strip()).resolve()
            if not wanted.is_relative_to(inside) or not wanted.is_file():
                raise InputError("a mesh may name files in its own folder only", got=repr(name)[:80])
            return read_bytes(wanted, suffixes=SUFFIXES, largest=LARGEST_MESH)

        def keys(self) -> list[str]:
            return []

        def write(self, name: str, data: bytes) -> None:
            raise InputError("nothing is written beside a mesh", got=repr(name)[:80])

        def namespaced(self, namespace: str) -> trimesh.resolvers.Resolver:
            return _beside(inside / namespace)

    return Beside()


def placeholder(size: float) -> Solid:
    """Stand-in for a mesh that could not be read: an octahedron in a colour that nobody chooses."""
    corners = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float) * size
    faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    return Solid(corners, np.array(faces), (255, 0, 200))
