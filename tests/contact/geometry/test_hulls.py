"""Meshes on the host: hulls, fewer corners, pieces, surfaces with holes."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.contact.geometry.hulls import check_closed, convex, hull, pieces
from linkwise.errors import InputError, ModelError
from linkwise.mechanism.description import Geometry
from tests.contact.geometry.reference import IDENTITY

MESH = Geometry("mesh", (), "part.stl", (2.0, 1.0, 1.0), IDENTITY, "part")
CUBE = np.array([(x, y, z) for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
FACES = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4)]
FACES += [(1, 5, 7), (1, 7, 3)]


def test_a_hull_has_the_corners_alone_and_the_scale():
    inside = np.random.default_rng(0).uniform(0.1, 0.9, size=(50, 3))
    found = convex(MESH, np.concatenate([CUBE, inside, CUBE]))
    assert found.kind == "convex"
    assert sorted(found.vertices) == sorted(map(tuple, (CUBE * (2.0, 1.0, 1.0)).tolist()))


def test_fewer_corners_cut_off_little():
    points = np.random.default_rng(1).normal(size=(2000, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    from scipy.spatial import ConvexHull

    lost = []
    for most in (16, 64):
        kept = hull(points, most)
        assert len(kept) == most
        lost.append((points @ (e := ConvexHull(kept).equations)[:, :3].T + e[:, 3]).max())
    assert lost[1] < 0.1 < lost[0] < 0.5


def test_flat_points_have_no_hull():
    with pytest.raises(InputError, match="no hull with an inside"):
        hull([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)])


def test_a_surface_with_a_hole_is_named():
    check_closed(FACES, "part")
    with pytest.raises(ModelError, match="'part' is not closed") as error:
        pieces(MESH, CUBE, FACES[:-1])
    assert "fill_holes" in str(error.value)
    with pytest.raises(ModelError, match="not closed"):
        check_closed([*FACES[:-1], FACES[-1][::-1]], "part")


def test_a_hollow_shape_becomes_pieces():
    pytest.importorskip("coacd")
    trimesh = pytest.importorskip("trimesh")
    outline = np.array([(0, 0), (1, 0), (1, 0.2), (0.2, 0.2), (0.2, 1), (0, 1)])
    L = _extruded(outline, 0.5)
    found = pieces(MESH, *L)
    assert len(found) >= 2
    volume = sum(trimesh.convex.convex_hull(np.array(p.vertices)).volume for p in found)
    assert volume == pytest.approx(2 * 0.36 * 0.5, rel=0.1)


def _extruded(outline, height):
    """An L as a closed surface: six walls, and two caps of four triangles."""
    n = len(outline)
    points = np.array([(x, y, z) for z in (0.0, height) for x, y in outline])
    cap = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    faces = [(a, c, b) for a, b, c in cap] + [(a + n, b + n, c + n) for a, b, c in cap]
    for k in range(n):
        j = (k + 1) % n
        faces += [(k, j, j + n), (k, j + n, k + n)]
    return points, np.array(faces)
