"""Faces on faces: as many points as it takes, and none that is not there."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.contact.geometry.pairs import contacts
from linkwise.contact.geometry.points import UNUSED_GAP
from tests.contact.geometry.reference import numbers, placed, shape

I = np.eye(3)
BOX, PLANE = shape("box", 1, 1, 1), shape("plane")
CUBE = shape("convex", vertices=tuple((x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)))
CYLINDER, CAPSULE = shape("cylinder", 0.5, 1), shape("capsule", 0.1, 0.8)
LYING_X = np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]])
LYING_Y = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
WORLD = placed(I, (0, 0, 0))


def used(found):
    return {tuple(numbers(p.point).round(9) + 0.0) for p in found.points if p.gap < 0.5 * UNUSED_GAP}


def about_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


@pytest.mark.parametrize(("top", "below"), [(BOX, BOX), (CUBE, BOX), (CUBE, CUBE), (BOX, CUBE)])
def test_a_cube_on_a_cube_stands_on_the_corners_of_what_they_share(top, below):
    found = contacts(top, placed(I, (0.3, 0.2, 0.999)), below, WORLD)
    assert used(found) == {(x, y, 0.4995) for x in (-0.2, 0.5) for y in (-0.3, 0.5)}
    assert found.overflow == 0
    for p in found.points:
        assert p.gap == pytest.approx(-1e-3, abs=1e-12)
        np.testing.assert_allclose(numbers(p.normal), (0, 0, 1), atol=1e-12)


def test_of_eight_corners_four_are_kept_and_four_counted():
    turned = placed(about_z(0.7), (0, 0, 1))
    four, eight = contacts(BOX, turned, BOX, WORLD), contacts(BOX, turned, BOX, WORLD, 8)
    assert len(used(four)) == 4
    assert four.overflow == 4
    assert len(used(eight)) == 8
    assert eight.overflow == 0
    points = np.array(sorted(used(eight)))
    on_edge = np.isclose(np.abs(points[:, :2]).max(axis=1), 0.5)
    other = np.abs(points[:, :2] @ about_z(0.7)[:2, :2]).max(axis=1)
    assert on_edge.all()
    np.testing.assert_allclose(other, 0.5, atol=1e-9)


def test_crossing_edges_meet_in_one_point():
    edge_up = np.array([[1, 0, 0], [0, 1, -1], [0, 1, 1]]) / np.array([[1], [2**0.5], [2**0.5]])
    other = about_z(np.pi / 2) @ edge_up
    found = contacts(BOX, placed(edge_up, (0, 0, 2**0.5 - 1e-3)), BOX, placed(other, (0, 0, 0)))
    first = min(found.points, key=lambda p: p.gap)
    assert first.gap == pytest.approx(-1e-3, abs=1e-12)
    np.testing.assert_allclose(numbers(first.normal), (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(numbers(first.point), (0, 0, 2**-0.5 - 5e-4), atol=1e-9)
    assert sum(p.gap < 0 for p in found.points) == 1


def test_a_cylinder_stands_on_three_points_and_lies_on_two():
    standing = contacts(CYLINDER, placed(I, (0, 0, 0.5)), PLANE, WORLD)
    assert sum(abs(p.gap) < 1e-12 for p in standing.points) == 3
    lying = contacts(CYLINDER, placed(LYING_X, (0, 0, 0.5)), PLANE, WORLD)
    assert {tuple(numbers(p.point).round(12) + 0.0) for p in lying.points if abs(p.gap) < 1e-12} == {
        (-0.5, 0, 0),
        (0.5, 0, 0),
    }
    on_box = contacts(CYLINDER, placed(LYING_Y, (0.2, 0, 0.999)), BOX, WORLD)
    assert used(on_box) == {(0.2, -0.5, 0.4995), (0.2, 0.5, 0.4995)}


def test_a_capsule_lies_on_two_points():
    assert used(contacts(CAPSULE, placed(LYING_X, (0.4, 0, 0.2)), CAPSULE, placed(LYING_X, (0, 0, 0)))) == {
        (0, 0, 0.1),
        (0.4, 0, 0.1),
    }
    for below in (BOX, CUBE):
        found = contacts(CAPSULE, placed(LYING_X, (0.4, 0.1, 0.6)), below, WORLD)
        at = np.array(sorted(used(found)))
        np.testing.assert_allclose(at, [(0, 0.1, 0.5), (0.5, 0.1, 0.5)], atol=3e-4)
        assert max(abs(p.gap) for p in found.points) < 1e-6


def test_a_mesh_on_a_plane_keeps_the_widest_base_and_counts_the_rest():
    ring = [(np.cos(t), np.sin(t), 0.0) for t in np.linspace(0, 2 * np.pi, 12, endpoint=False)]
    foot = shape("convex", vertices=(*ring, (0.0, 0.0, 1.0)))
    found = contacts(foot, placed(I, (0, 0, 0)), PLANE, WORLD)
    assert len(used(found)) == 4
    assert found.overflow == 8
    points = np.array(sorted(used(found)))
    area = 0.5 * np.linalg.norm(np.cross(points[3] - points[0], points[2] - points[1]))
    assert area > 1.7  # the widest of four corners of the ring has 2.0


@pytest.mark.parametrize("tilt", [1e-9, 1e-6, 1e-4, 1e-2])
def test_the_deepest_corner_is_always_kept(tilt):
    c, s = np.cos(tilt), np.sin(tilt)
    R = np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) @ about_z(0.3)
    for top in (BOX, CUBE):
        for below in (PLANE, BOX):
            height = 0.5 if below is PLANE else 1.0
            found = contacts(top, placed(R, (0, 0, height)), below, WORLD)
            corners = R @ np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]).T
            if below is PLANE:
                assert min(p.gap for p in found.points) == pytest.approx(corners[2].min() + height, abs=1e-12)
            assert sum(p.gap < 0.5 * UNUSED_GAP for p in found.points) >= 2
