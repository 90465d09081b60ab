"""Surfaces against closed forms, and against trimesh's own integrals."""

import numpy as np
import pytest

from linkwise.viz.solids import (
    Solid,
    arrow,
    box,
    capsule,
    cylinder,
    ellipsoid,
    joined,
    merged,
    revolved,
    simplified,
    sphere,
    stick,
    towards,
)


def volume(solid):
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6


@pytest.mark.parametrize(
    ("solid", "exact"),
    [
        (box(1.0, 2.0, 3.0), 6.0),
        (cylinder(0.5, 2.0, 200), np.pi * 0.25 * 2.0),
        (sphere(0.7, 200), 4 / 3 * np.pi * 0.7**3),
        (capsule(0.3, 1.0, 200), np.pi * 0.09 + 4 / 3 * np.pi * 0.027),
        (revolved([(0.0, 0.0), (1.0, 0.0), (0.0, 3.0)], 200), np.pi),
    ],
)
def test_volumes_are_right_and_faces_look_outwards(solid, exact):
    np.testing.assert_allclose(volume(solid), exact, rtol=2e-3)


def test_sticks_and_arrows_go_where_they_should():
    rod = stick((1.0, 0.0, 0.0), (1.0, 2.0, 0.0), 0.01)
    np.testing.assert_allclose([rod.vertices.min(0)[1], rod.vertices.max(0)[1]], [0.0, 2.0], atol=1e-12)
    assert np.abs(rod.vertices[:, 0] - 1.0).max() < 0.0101
    np.testing.assert_allclose(arrow(1.0, 0.02).vertices[:, 2].max(), 1.0)
    for d in ((0, 0, 1), (0, 0, -2), (1, 2, 3), (1e-9, 0, 0), (0, 0, 0)):
        R = towards(d)
        np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-12)
        assert np.linalg.det(R) > 0
        np.testing.assert_allclose(R[:, 2] * np.linalg.norm(d), d, atol=1e-12)


def test_a_mirrored_solid_is_not_inside_out():
    assert volume(box(1, 1, 1).placed(np.eye(4), (1.0, -2.0, 1.0))) == pytest.approx(2.0)


def test_an_ellipsoid_has_the_inertia_it_stands_for():
    trimesh = pytest.importorskip("trimesh")
    R = towards((1.0, 2.0, -0.5))
    inertia = R @ np.diag([0.02, 0.05, 0.06]) @ R.T
    solid = ellipsoid(3.0, (0.1, 0.2, 0.3), inertia)
    mesh = trimesh.Trimesh(*simple(solid), process=True)
    mesh.density = 3.0 / mesh.volume
    np.testing.assert_allclose(mesh.center_mass, [0.1, 0.2, 0.3], atol=1e-9)
    np.testing.assert_allclose(mesh.moment_inertia, inertia, rtol=0.05, atol=1e-3)
    assert ellipsoid(0.0, (0, 0, 0), np.zeros((3, 3))) is None


def simple(solid):
    return solid.vertices, solid.faces


def test_a_rod_keeps_some_thickness():
    flat = ellipsoid(1.0, (0, 0, 0), np.diag([1e-12, 0.1, 0.1]))
    extent = np.ptp(flat.vertices, axis=0)
    assert extent.min() >= 0.0199 * extent.max()


def test_fewer_faces():
    fine = sphere(1.0, 120)
    coarse = simplified(fine, 500)
    assert 100 < len(coarse.faces) <= 500
    np.testing.assert_allclose(volume(coarse), volume(fine), rtol=0.1)
    assert simplified(coarse, 500) is coarse


def test_joining_keeps_colours_apart():
    red, blue = (255, 0, 0), (0, 0, 255)
    parts = [box(1, 1, 1).painted(red), box(1, 1, 1).painted(blue), box(2, 2, 2).painted(red)]
    assert [len(solid.faces) for solid in joined(parts)] == [24, 12]
    one = merged(parts)
    assert isinstance(one, Solid)
    np.testing.assert_allclose(volume(one), 10.0)
