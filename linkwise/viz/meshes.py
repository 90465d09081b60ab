"""Meshes from files: STL, OBJ, PLY and GLB through ``trimesh``, COLLADA through ``pycollada``.

Only local files are read: the mesh itself, and of what it names (materials, buffers) only what lies in its own folder
or below. Textures are kept, with their mean colour where they cannot be drawn.
"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linkwise.errors import InputError, MissingExtraError, ModelFileError, require_extra
from linkwise.files.resources import read_bytes
from linkwise.viz import textures
from linkwise.viz.collada import read_collada
from linkwise.viz.solids import Colour, Solid, Texture, joined
from linkwise.viz.textures import for_pages, mean_colour

if TYPE_CHECKING:
    import trimesh
    from PIL.Image import Image

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
