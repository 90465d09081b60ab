"""Points of mesh files, for contact: convex hulls need no faces."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.errors import MissingExtraError, ModelFileError, require_extra
from linkwise.files.opening import read_bytes
from linkwise.files.resources import mesh_file
from linkwise.mechanism.description import Geometry

__all__ = ["points_of_mesh"]

_SUFFIXES = (".stl", ".obj", ".dae", ".glb", ".ply", ".off")
_LARGEST = 256 * 1024 * 1024
"""Bytes."""


def points_of_mesh(shape: Geometry) -> FloatArray:
    """The vertices (n, 3) of a mesh as its file has them, m before its scale.

    Raises:
        ModelFileError: the file is not there, or cannot be read; what to do instead is said.
    """
    way_out = (
        "give the file's folder to lw.load(…, search=[…]); or name the bodies that touch, model.with_contacts(…, "
        "only=[…]); or give the body another shape for contact"
    )
    try:
        path = mesh_file(shape)
    except ModelFileError as error:
        raise ModelFileError(error.what, file=error.file, got=error.got, allowed=error.allowed, do=way_out) from None
    suffix = path.suffix.lower()
    content = read_bytes(path, suffixes=_SUFFIXES, largest=_LARGEST)
    trimesh: Any = require_extra("trimesh", "viz")
    try:
        scene = trimesh.load_scene(io.BytesIO(content), file_type=suffix[1:], process=False, skip_materials=True)
        found: FloatArray = np.asarray(scene.to_geometry().vertices, float).reshape(-1, 3)
    except (MissingExtraError, MemoryError):
        raise
    except Exception as error:  # whatever a damaged file makes a reader do
        told = f"{type(error).__name__}: {error}"[:200]
        raise ModelFileError("this mesh cannot be read for contact", file=path, got=told, do=way_out) from error
    if not len(found) or not np.isfinite(found).all():
        raise ModelFileError("this mesh has no vertices that contact could use", file=path, do=way_out)
    return found
