"""Heightfields against SciPy's interpolation and MuJoCo's, terrains against planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import linkwise as lw
from linkwise.contact.geometry.ground import ground_under
from linkwise.contact.geometry.pairs import contacts
from linkwise.contact.geometry.points import UNUSED_GAP
from linkwise.errors import InputError
from tests.contact.geometry.reference import numbers, placed, rotation, shape
from tests.contact.geometry.test_pairs import SHAPES

ROWS, COLUMNS = 7, 9
HEIGHTS = 0.1 * np.random.default_rng(2).normal(size=(ROWS, COLUMNS))
FIELD = shape("heightfield", 4, 6, heights=tuple(map(tuple, HEIGHTS.tolist())))
SLOPE = (0.2, -0.1)
BODIES = [kind for kind in SHAPES if kind != "plane"]


def _even(kind):
    """Ground that is the plane z = 0.2 x - 0.1 y."""
    corners = [(x, y) for y in (-3.0, 3.0) for x in (-2.0, 2.0)]
    if kind == "heightfield":
        ys, xs = np.linspace(-3, 3, 4), np.linspace(-2, 2, 5)
        return shape(kind, 4, 6, heights=tuple(tuple(float(SLOPE[0] * x + SLOPE[1] * y) for x in xs) for y in ys))
    vertices = tuple((x, y, SLOPE[0] * x + SLOPE[1] * y) for x, y in corners)
    return shape(kind, vertices=vertices, faces=((0, 1, 3), (0, 3, 2)))


def test_heights_and_slopes_are_those_of_scipy():
    exact = RegularGridInterpolator((np.linspace(-3, 3, ROWS), np.linspace(-2, 2, COLUMNS)), HEIGHTS)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform((-1.99, -2.99), (1.99, 2.99), size=(60, 2)):
        under = ground_under(FIELD, float(x), float(y))
        assert under.height == pytest.approx(float(exact((y, x))), abs=1e-14)
        h = 1e-7
        rates = [(exact((y, x + h)) - exact((y, x - h))) / (2 * h), (exact((y + h, x)) - exact((y - h, x))) / (2 * h)]
        np.testing.assert_allclose((under.along_x, under.along_y), rates, atol=1e-6)
    for x, y in ((-2.0, -3.0), (2.0, 3.0), (0.0, 0.0)):
        assert ground_under(FIELD, x, y).height == pytest.approx(float(exact((y, x))), abs=1e-14)
    assert ground_under(FIELD, 9.0, 0.5).height == ground_under(FIELD, 2.0, 0.5).height


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
@pytest.mark.parametrize("kind", BODIES)
def test_even_ground_is_a_plane(kind, ground):
    """To 1e-12, the lowest of the points; a box stands on the corners of the face that looks down."""
    a, b = SHAPES[kind], _even(ground)
    z = np.array([-SLOPE[0], -SLOPE[1], 1.0]) / np.linalg.norm([*SLOPE, 1.0])
    x = np.cross((0, 1, 0), z)
    x /= np.linalg.norm(x)
    tilted = np.stack([x, np.cross(z, x), z], axis=1)
    rng = np.random.default_rng(4)
    for _ in range(5):
        upright = np.linalg.qr(np.eye(3) + 0.1 * rng.normal(size=(3, 3)))[0]
        A = placed(upright * np.sign(np.diag(upright)), (*rng.uniform(-0.5, 0.5, 2), 0.3))
        Q, p = rotation(rng), rng.normal(size=3)  # the ground itself anywhere
        moved = placed(Q @ np.array(A.R.m), Q @ numbers(A.p) + p)
        ours = min(contacts(a, moved, b, placed(Q, p)).points, key=lambda one: one.gap)
        flat = min(contacts(a, moved, shape("plane"), placed(Q @ tilted, p)).points, key=lambda one: one.gap)
        if kind == "convex":  # its corners along four directions nearby; the ground's own up chooses
            assert ours.gap >= flat.gap - 1e-12
            continue
        if kind in ("ellipsoid", "cylinder"):
            assert ours.gap == pytest.approx(flat.gap, abs=0.02)
            assert ours.gap >= flat.gap - 1e-12
            continue
        assert ours.gap == pytest.approx(flat.gap, abs=1e-12)
        np.testing.assert_allclose(numbers(ours.normal), numbers(flat.normal), atol=1e-12)
        np.testing.assert_allclose(numbers(ours.point), numbers(flat.point), atol=1e-12)


def test_no_terrain_beyond_its_triangles():
    one = contacts(SHAPES["sphere"], placed(np.eye(3), (5, 0, 0.1)), _even("terrain"), placed(np.eye(3), (0, 0, 0)))
    assert one.points[0].gap == UNUSED_GAP


def test_grounds_that_cannot_be_looked_up():
    ball, A = SHAPES["sphere"], placed(np.eye(3), (0, 0, 1))
    with pytest.raises(InputError, match="is no grid"):
        contacts(ball, A, replace(FIELD, heights=((0.0, 1.0), (0.0,))), A)
    with pytest.raises(InputError, match="too many nodes"):
        contacts(ball, A, replace(FIELD, heights=((0.0,) * 513,) * 512), A)


def test_large_fields_are_looked_up_in_compiled_functions():
    """A ball over 80 × 81 nodes, in a batch, beside SciPy: its distance is that from the tangent plane below."""
    ys, xs = np.linspace(-3, 3, 80), np.linspace(-2, 2, 81)
    heights = 0.1 * np.sin(3 * xs) * np.cos(2 * ys)[:, None]
    field = shape("heightfield", 4, 6, heights=tuple(map(tuple, heights.tolist())))
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.01, density=1000))
    model = b.build().with_contacts(lw.Ground(shape=field))
    q = np.tile(model.neutral(), (20, 1))
    q[:, 4:6] = np.random.default_rng(0).uniform((-1.9, -2.9), (1.9, 2.9), size=(20, 2))
    below = RegularGridInterpolator((ys, xs), heights)(q[:, [5, 4]])
    q[:, 6] = below + 0.012
    found = model.contacts.points(q)
    np.testing.assert_allclose(found.gap[:, 0], 0.012 * found.normal[:, 0, 2] - 0.01, atol=2e-5)


def test_large_terrains_are_looked_up_in_compiled_functions():
    """A ball over 9600 triangles, each a plane between its corners, and over a large one beside and below them."""
    ys, xs = np.linspace(-3, 3, 61), np.linspace(-2, 2, 81)
    heights = 0.1 * np.sin(3 * xs) * np.cos(2 * ys)[:, None]
    X, Y = np.meshgrid(xs, ys)
    corners = np.stack([X, Y, heights], axis=-1).reshape(-1, 3)
    first = (np.arange(60)[:, None] * 81 + np.arange(80)).ravel()
    faces = np.concatenate(
        [np.stack([first, first + 1, first + 81], 1), np.stack([first + 1, first + 82, first + 81], 1)]
    )
    plate = [[-9, -9, -1], [9, -9, -1], [0, 9, -1]]
    faces = np.concatenate([faces, [[len(corners), len(corners) + 1, len(corners) + 2]]])
    ground = lw.Ground(shape=lw.shapes.terrain(np.concatenate([corners, plate]), faces))
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.01, density=1000))
    model = b.build().with_contacts(ground)
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (200, 1))
    q[:, 4:6] = rng.uniform((-1.9, -2.9), (1.9, 2.9), size=(200, 2))
    (u, i), (v, j) = np.modf(20 * (q[:, 4] + 2)), np.modf(10 * (q[:, 5] + 3))
    i, j = i.astype(int), j.astype(int)
    a, b, c, d = heights[j, i], heights[j, i + 1], heights[j + 1, i], heights[j + 1, i + 1]
    wanted = np.where(u + v <= 1, a + u * (b - a) + v * (c - a), d + (1 - u) * (c - d) + (1 - v) * (b - d))
    level = lw.compile(lambda _, q: ground_under(ground.shape, q[4], q[5]).height, model, inputs={"q": "q"})
    np.testing.assert_allclose(level(q), wanted, atol=1e-13)
    q[:, 6] = wanted + 0.012
    found = model.contacts.points(q)
    np.testing.assert_allclose(found.gap[:, 0], 0.012 * found.normal[:, 0, 2] - 0.01, atol=4e-4)
    q[:, 4:7] = 3.0, -5.0, 0.0  # beside the hills
    np.testing.assert_allclose(model.contacts.points(q).gap[:, 0], 1.0 - 0.01, atol=1e-12)


def test_grounds_by_hand_are_checked():
    with pytest.raises(InputError, match="heights of a field"):
        lw.shapes.heightfield([0.0, 1.0], (1, 1))
    with pytest.raises(InputError, match="not all of them finite"):
        lw.shapes.heightfield([[0.0, np.nan], [0.0, 1.0]], (1, 1))
    with pytest.raises(InputError, match="triangles of a terrain"):
        lw.shapes.terrain(np.zeros((3, 3)), [[0, 1, 3]])
    with pytest.raises(InputError, match=r"collisions\[0\]"):
        lw.Ground(shape=lw.shapes.box((1, 1, 1)))


def test_shapes_take_arrays():
    """An array is a placement or a row of heights as good as a tuple is."""
    field = lw.Geometry("heightfield", (2.0, 2.0), None, (1, 1, 1), lw.transform(), "hills", heights=np.zeros((3, 3)))
    assert hash(field) == hash(replace(field, placement=np.eye(4), heights=((0.0,) * 3,) * 3))
