"""Geoms to shapes: what MuJoCo shows is drawn, what collides is kept as an outline."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.array_types import FloatArray
from linkwise.files.mjcf.compiled import Compiled, turn
from linkwise.mechanism.bodies_and_joints import rows
from linkwise.mechanism.description import Geometry, Kind, NamedPair, Picture
from linkwise.mechanism.materials import Material
from linkwise.mechanism.placement import inverse_pose, pose

_SHOWN_GROUPS = (0, 1, 2)
"""Those that MuJoCo's viewer shows at first; by convention, the others are outlines for contact."""


_LEAST, _GRAVITY = 1e-4, 9.81
"""The least impedance of MuJoCo, and 1 less the largest; m/s², for depths at rest."""


def shapes_of(source: Compiled, body: int, name: str, snap: float) -> tuple[tuple[Geometry, ...], tuple[Geometry, ...]]:
    """The shapes of a body that are drawn, and those that collide; planes and height fields are not drawn.

    They have the body's name, and their own as a label; those of the world their own, so that floor and walls are told
    apart.
    """
    m = source.model
    first, count = int(m.body_geomadr[body]), int(m.body_geomnum[body])
    visuals: list[Geometry] = []
    collisions: list[Geometry] = []
    for geom in range(first, first + count):
        shape = _shape(source, geom, name if body else m.geom(geom).name or name, snap)
        if shape is None:
            continue
        shape = replace(shape, rgba=_rgba(m, geom), texture=_texture(source, geom))
        if m.geom_group[geom] in _SHOWN_GROUPS and shape.kind not in (
            "plane",
            "heightfield",
            "ellipsoid",
        ):  # not drawn so far
            visuals.append(shape)
        if geom in source.colliding:
            contype, conaffinity = source.colliding[geom]
            shape = replace(shape, contype=contype, conaffinity=conaffinity, texture=None)
            pairs = tuple(_pairs(source, geom))
            shape = replace(shape, material=_material(m, geom), compliance=_compliance(m, geom), pairs=pairs)
            shape = replace(shape, label=m.geom(geom).name)
            collisions.append(shape)
    return tuple(visuals), tuple(collisions)


def _material(m: Any, geom: int) -> Material:
    """Friction of a geom: sliding, and with ``condim`` 4 and 6 torsional and rolling; rigid."""
    sliding, torsion, rolling = (max(float(x), 0.0) for x in m.geom_friction[geom])
    condim, priority = int(m.geom_condim[geom]), int(m.geom_priority[geom])
    return Material(sliding, torsion, rolling, combining="larger", priority=priority, directions=condim)


def _pairs(source: Compiled, geom: int) -> Iterator[NamedPair]:
    """Of the <pair>s that a geom is the first of, their own friction and compliance."""
    m = source.model
    for k in np.flatnonzero(np.asarray(m.pair_geom1) == geom).tolist():
        other = int(m.pair_geom2[k])
        (a, b), (c, d) = source.colliding[geom], source.colliding[other]
        bit = ((a & d) | (b & c)).bit_length() - 1
        along, across, torsion, *rolling = (max(float(x), 0.0) for x in m.pair_friction[k])
        material = Material(math.sqrt(along * across), torsion, max(rolling), directions=int(m.pair_dim[k]))
        w = sum(float(m.body_invweight0[m.geom_bodyid[each], 0]) for each in (geom, other))
        yield NamedPair(bit, material, _spring(m.pair_solref[k], m.pair_solimp[k], w))


def _compliance(m: Any, geom: int) -> tuple[float, float] | None:
    """Stiffness and damping at rest of a geom; None for what is fixed. Of two bodies compliances add up, as w do."""
    w = float(m.body_invweight0[m.geom_bodyid[geom], 0])
    return _spring(m.geom_solref[geom], m.geom_solimp[geom], w)


def _spring(solref: Any, solimp: Any, w: float) -> tuple[float, float] | None:
    """Stiffness and damping at rest of what ``solref`` and ``solimp`` say; None without an inverse mass w.

    MuJoCo's contact of impedance d has the force (b δ̇ + k δ - a)/R at depth δ, with a the acceleration that it leaves,
    and R = w (1 - d)/d, w the inverse mass that its compiler gives the body. Where nothing accelerates this is a spring
    k/R with the damping b/k; d, which grows with depth, is that of a body that lies on one point.
    """
    if not w > 0.0:
        return None
    first, second = (float(x) for x in solref)
    low, high, width, middle, power = (float(x) for x in solimp)
    low, high = (min(max(x, _LEAST), 1.0 - _LEAST) for x in (low, high))
    if first > 0.0:  # a time constant and a damping ratio
        k, b = 1.0 / (high * first * second) ** 2, 2.0 / (high * first)
    else:
        k, b = -first / (high * high), -second / high
    if not k > 0.0:
        return None
    depth = 0.0
    for _ in range(50):  # to the depth at which it bears the body's weight
        x = min(depth / max(width, 1e-12), 1.0)
        y = (
            x**power / middle ** (power - 1.0)
            if x <= middle
            else 1.0 - (1.0 - x) ** power / (1.0 - middle) ** (power - 1.0)
        )
        d = low + y * (high - low)
        depth = 0.5 * depth + 0.5 * _GRAVITY * (1.0 - d) / (d * d * k)
    return k * d * d / ((1.0 - d) * w), b / (k * d)


def _rgba(m: Any, geom: int) -> tuple[float, float, float, float]:
    """The geom's own colour, or that of its material where it has none but the default."""
    own, material = m.geom_rgba[geom], int(m.geom_matid[geom])
    if material >= 0 and np.allclose(own, (0.5, 0.5, 0.5, 1.0)):
        own = m.mat_rgba[material]
    r, g, b, a = (min(max(float(x), 0.0), 1.0) for x in own)
    return r, g, b, a


def _texture(source: Compiled, geom: int) -> Picture | None:
    """The picture that the material of a geom has in a file."""
    m = source.model
    material = int(m.geom_matid[geom])
    file = None if material < 0 else source.picture(material)
    if file is None:
        return None
    along, across = (float(x) for x in m.mat_texrepeat[material])
    return Picture(file, (along, across), bool(m.mat_texuniform[material]))


def _shape(source: Compiled, geom: int, name: str, snap: float) -> Geometry | None:
    m = source.model
    kind = source.word("mjtGeom", m.geom_type[geom])
    X = pose(m.geom_pos[geom], turn(m.geom_quat[geom], snap))
    size = m.geom_size[geom].tolist()
    if kind == "box":
        return _geometry("box", tuple(2.0 * x for x in size), X, name)
    if kind == "sphere":
        return _geometry("sphere", (size[0],), X, name)
    if kind in ("cylinder", "capsule"):
        return _geometry("cylinder" if kind == "cylinder" else "capsule", (size[0], 2.0 * size[1]), X, name)
    if kind == "ellipsoid":
        return _geometry("ellipsoid", tuple(size), X, name)
    if kind == "plane":
        return _geometry("plane", (), X, name)
    if kind == "hfield":
        return _heightfield(m, int(m.geom_dataid[geom]), X, name)
    if kind != "mesh":
        return None
    mesh = int(m.geom_dataid[geom])
    path = source.mesh_path(mesh)
    if path is None:
        return None
    # The compiler moves a mesh into its principal axes; this undoes it.
    moved = pose(m.mesh_pos[mesh], turn(m.mesh_quat[mesh], 0.0))
    sx, sy, sz = (float(x) for x in m.mesh_scale[mesh])
    return _geometry("mesh", (), X @ inverse_pose(moved), name, path, (sx, sy, sz))


def _heightfield(m: Any, field: int, X: FloatArray, name: str) -> Geometry:
    """Heights over the plane of the shape's frame, which MuJoCo keeps from 0 to 1."""
    first, rows_, columns = (int(x[field]) for x in (m.hfield_adr, m.hfield_nrow, m.hfield_ncol))
    x, y, top, _ = m.hfield_size[field].tolist()
    heights = top * m.hfield_data[first : first + rows_ * columns].reshape(rows_, columns)
    shape = _geometry("heightfield", (2.0 * x, 2.0 * y), X, name)
    return replace(shape, heights=tuple(map(tuple, heights.astype(float).tolist())))


def _geometry(
    kind: Kind,
    size: tuple[float, ...],
    X: FloatArray,
    name: str,
    mesh: str | None = None,
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0),
) -> Geometry:
    return Geometry(kind, tuple(float(x) for x in size), mesh, scale, rows(X), name)
