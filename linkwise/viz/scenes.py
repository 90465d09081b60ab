"""Motions as animated scenes for other programs: glTF (``.glb``) and USD (``.usd``, ``.usda``, ``.usdc``).

A scene has one node for each body, with its surfaces and colours, and the body's place at every sample. Flexible bodies
move as they are at rest. glTF has y up, so its root turns the world; USD keeps z up, and metres.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from linkwise.array_types import Array
from linkwise.errors import require_extra
from linkwise.sim.trajectory import Trajectory
from linkwise.viz.looks import Looks, looks_of
from linkwise.viz.solids import GREY, Solid

Part = dict[str, Any]
"""An object of glTF's JSON."""


def save_scene(trajectory: Trajectory, target: Path) -> None:
    """Write one motion of one state; the ending says which kind of scene."""
    model = trajectory._with_model("scenes")
    looks, poses = looks_of(model), trajectory.poses
    names = [body.name for body in model.bodies]
    write = _save_gltf if target.suffix == ".glb" else _save_usd
    write(target, names, looks, trajectory.t, poses)


# glTF.
class _Binary:
    """The numbers of a glTF file: one buffer, and what lies where in it."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.views: list[Part] = []
        self.accessors: list[Part] = []

    def add(self, values: Array, kind: str, *, integers: bool = False, target: int | None = None) -> int:
        """Number of an array among the file's; ``kind`` is SCALAR, VEC3 or VEC4."""
        array = np.ascontiguousarray(values, "<u4" if integers else "<f4")
        view = {"buffer": 0, "byteOffset": len(self.bytes), "byteLength": array.nbytes}
        self.views.append(view | ({"target": target} if target else {}))
        self.bytes += array.tobytes()
        rows = array.reshape(len(array), -1)
        self.accessors.append(
            {
                "bufferView": len(self.views) - 1,
                "componentType": 5125 if integers else 5126,
                "count": len(array),
                "type": kind,
                "min": rows.min(axis=0).tolist(),
                "max": rows.max(axis=0).tolist(),
            }
        )
        return len(self.accessors) - 1


def _save_gltf(target: Path, names: Sequence[str], looks: Looks, t: Array, poses: Array) -> None:
    binary = _Binary()
    materials: list[Part] = []
    meshes: list[Part] = []
    nodes: list[Part] = [{"name": "world", "rotation": [-(0.5**0.5), 0.0, 0.0, 0.5**0.5], "children": []}]
    channels: list[Part] = []
    samplers: list[Part] = []

    def node(name: str, solids: Sequence[Solid]) -> int:
        made: Part = {"name": name}
        if solids:
            meshes.append({"name": name, "primitives": [_primitive(binary, materials, each) for each in solids]})
            made["mesh"] = len(meshes) - 1
        nodes.append(made)
        nodes[0]["children"].append(len(nodes) - 1)
        return len(nodes) - 1

    for name, solids in (("base", looks.base), ("ground", looks.ground)):
        if solids:
            node(name, solids)
    times = binary.add(t, "SCALAR")
    for k, name in enumerate(names):
        number = node(name, looks.surfaces(k))
        turns = Rotation.from_matrix(poses[:, k, :3, :3]).as_quat()
        flips = np.cumprod(np.where((turns[1:] * turns[:-1]).sum(axis=1) < 0.0, -1.0, 1.0))  # the short way round
        turns[1:] *= flips[:, None]
        for path, values, kind in (("translation", poses[:, k, :3, 3], "VEC3"), ("rotation", turns, "VEC4")):
            nodes[number][path] = values[0].tolist()
            samplers.append({"input": times, "output": binary.add(values, kind), "interpolation": "LINEAR"})
            channels.append({"sampler": len(samplers) - 1, "target": {"node": number, "path": path}})
    document = {
        "asset": {"version": "2.0", "generator": "linkwise"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": nodes,
        "meshes": meshes,
        "materials": materials,
        "animations": [{"name": "motion", "channels": channels, "samplers": samplers}],
        "buffers": [{"byteLength": len(binary.bytes)}],
        "bufferViews": binary.views,
        "accessors": binary.accessors,
    }
    text = json.dumps({key: value for key, value in document.items() if value != []}).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    chunks += struct.pack("<I4s", len(binary.bytes), b"BIN\0") + bytes(binary.bytes)
    target.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)


def _primitive(binary: _Binary, materials: list[Part], solid: Solid) -> Part:
    """One surface; its corners are its own where it is not round, so that edges look sharp."""
    faces = np.asarray(solid.faces, np.int64)
    vertices = np.asarray(solid.vertices, float)
    if not solid.smooth:
        vertices, faces = vertices[faces.reshape(-1)], np.arange(faces.size).reshape(-1, 3)
    colour = [((c / 255.0) ** 2.2) for c in solid.colour or GREY]  # glTF's factors are linear
    material: Part = {
        "pbrMetallicRoughness": {
            "baseColorFactor": [*colour, solid.opacity],
            "metallicFactor": 0.0,
            "roughnessFactor": 0.7,
        }
    }
    if solid.opacity < 1.0:
        material["alphaMode"] = "BLEND"
    materials.append(material)
    return {
        "attributes": {
            "POSITION": binary.add(vertices, "VEC3", target=34962),
            "NORMAL": binary.add(_normals(vertices, faces), "VEC3", target=34962),
        },
        "indices": binary.add(faces.reshape(-1), "SCALAR", integers=True, target=34963),
        "material": len(materials) - 1,
    }


def _normals(vertices: Array, faces: Array) -> Array:
    """Unit normals at the corners (V, 3): means of those of the faces around, by their areas."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    across = np.cross(b - a, c - a)
    found = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(found, faces[:, k], across)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return np.where(length > 0.0, found / np.where(length > 0.0, length, 1.0), [0.0, 0.0, 1.0])


# USD.
_PER_SECOND = 1000.0  # time codes: samples keep their times to a millionth of a second and better


def _save_usd(target: Path, names: Sequence[str], looks: Looks, t: Array, poses: Array) -> None:
    usd: Any = require_extra("pxr.Usd", "usd")
    from pxr import Gf, UsdGeom, Vt

    stage = usd.Stage.CreateNew(str(target)) if not target.exists() else _emptied(usd, target)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(_PER_SECOND)
    stage.SetStartTimeCode(float(t[0]) * _PER_SECOND)
    stage.SetEndTimeCode(float(t[-1]) * _PER_SECOND)
    root = UsdGeom.Xform.Define(stage, "/World")
    stage.SetDefaultPrim(root.GetPrim())

    def surfaces(path: str, solids: Sequence[Solid]) -> None:
        for k, solid in enumerate(solids):
            mesh = UsdGeom.Mesh.Define(stage, f"{path}/surface{k}")
            mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.asarray(solid.vertices, np.float32)))
            mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.asarray(solid.faces, np.int32).reshape(-1)))
            mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(solid.faces), 3, np.int32)))
            mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
            mesh.CreateDisplayColorAttr([Gf.Vec3f(*(c / 255.0 for c in solid.colour or GREY))])
            mesh.CreateDisplayOpacityAttr([float(solid.opacity)])

    for word, solids in (("base", looks.base), ("ground", looks.ground)):
        UsdGeom.Xform.Define(stage, f"/World/{word}")
        surfaces(f"/World/{word}", solids)
    taken: set[str] = {"base", "ground"}
    for k, name in enumerate(names):
        word = _prim_name(name, taken)
        body = UsdGeom.Xform.Define(stage, f"/World/{word}")
        body.GetPrim().SetDisplayName(name)
        place = body.AddTransformOp()
        for time, pose in zip(t.tolist(), poses[:, k], strict=True):
            place.Set(Gf.Matrix4d(pose.T.tolist()), time * _PER_SECOND)  # USD multiplies rows from the left
        surfaces(f"/World/{word}", looks.surfaces(k))
    stage.GetRootLayer().Save()


def _emptied(usd: Any, target: Path) -> Any:
    """A stage in a file that was there."""
    target.unlink()
    return usd.Stage.CreateNew(str(target))


def _prim_name(name: str, taken: set[str]) -> str:
    """An identifier as close to a name as can be, and a new one."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII) or "body"
    word = f"_{word}" if word[0].isdigit() else word
    while word in taken:
        word += "_"
    taken.add(word)
    return word
