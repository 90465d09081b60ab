"""Heightfields and terrains beside a search over all of their triangles, and beside planes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.geometry.pairs import contacts
from linkwise.contact.geometry.points import UNUSED_GAP
from linkwise.errors import InputError
from tests.contact.geometry.reference import numbers, placed, rotation, shape, to_triangles, triangles_of_field
from tests.contact.geometry.test_pairs import SHAPES

ROWS, COLUMNS = 7, 9
HEIGHTS = 0.1 * np.random.default_rng(2).normal(size=(ROWS, COLUMNS))
I = placed(np.eye(3), (0, 0, 0))
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


def _hills(ground, heights, edges):
    """Hills as a shape, and their triangles; a heightfield with the ground that goes on beyond its edges."""
    points, faces = triangles_of_field(np.asarray(heights), edges)
    if ground == "terrain":
        return shape(ground, vertices=tuple(map(tuple, points)), faces=tuple(map(tuple, faces))), points[faces]
    field = shape(ground, *edges, heights=tuple(map(tuple, np.asarray(heights).tolist())))
    rows, columns = np.shape(heights)
    wide = np.pad(heights, 3, mode="edge")
    points, faces = triangles_of_field(
        wide, (edges[0] * (columns + 5) / (columns - 1), edges[1] * (rows + 5) / (rows - 1))
    )
    return field, points[faces]


def _above(rng, distance, triangles, most, spread):
    """A place beside or over triangles, so far from the nearest as is said at most, and not under them."""
    p = np.array([*rng.uniform(-spread, spread, 2), 1.5])
    while (left := distance(p, triangles) - most) > 0.0:
        p = p - [0.0, 0.0, left + 1e-4]  # the first that it could touch is still ``most`` away
    return p


def _of_segment(p, low, high, triangles, count):
    """Points of a segment, and how far each is from the nearest triangle."""
    at = np.linspace(low, high, count)
    return at, np.array([to_triangles(p + a, triangles)[0].min() for a in at])


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
@pytest.mark.parametrize("steep", [0.02, 0.3])
def test_balls_are_as_far_from_hills_as_from_the_nearest_of_all_triangles(ground, steep):
    rng = np.random.default_rng(3)
    hills, triangles = _hills(ground, steep * rng.normal(size=(9, 7)), (3.0, 4.0))
    several = 0
    for _ in range(60):
        r = rng.uniform(0.05, 0.6)
        spread = 2.0 if ground == "heightfield" else 1.2  # a heightfield goes on beyond its edges
        p = _above(rng, lambda p, t: to_triangles(p, t)[0].min(), triangles, r * rng.uniform(0.95, 1.2), spread)
        Q, off = rotation(rng), rng.normal(size=3)
        found = contacts(shape("sphere", r), placed(Q, Q @ p + off), hills, placed(Q, off))
        distances, nearest = to_triangles(p, triangles)
        used = [one for one in found.points if one.gap < UNUSED_GAP]
        assert used[0].gap == pytest.approx(distances.min() - r, abs=1e-12)
        several += len(used) > 1
        normals = np.array([Q.T @ numbers(one.normal) for one in used])
        for one, n in zip(used, normals, strict=True):  # each is the nearest point of some triangle
            q = p - n * (one.gap + r)
            near = np.abs(nearest - q).max(axis=1) < 1e-9
            assert near.any()
            np.testing.assert_allclose(distances[near], one.gap + r, atol=1e-12)
            np.testing.assert_allclose(Q.T @ (numbers(one.point) - off), q + n * (0.5 * one.gap), atol=1e-12)
        # What the ball touches if it is a little larger is not above the planes of all points, or it is one of them.
        for q in nearest[distances < r + 0.02 * r]:
            beyond = [n @ (q - p) + one.gap + r for one, n in zip(used, normals, strict=True)]
            assert (
                min(beyond) < 1e-6 * r
                or len(used) == 3
                or min(np.linalg.norm(normals - (p - q) / np.linalg.norm(p - q), axis=1)) < 1e-6
            )
    assert several > 5


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
def test_capsules_are_as_far_from_hills_as_their_axes_from_all_triangles(ground):
    """By a search along the axis; ridges between the ends are among what is nearest."""
    rng = np.random.default_rng(5)
    hills, triangles = _hills(ground, 0.2 * rng.normal(size=(9, 7)), (3.0, 4.0))
    r, long, between = 0.08, 0.7, 0
    for _ in range(30):
        axis = np.array([*rng.normal(size=2), rng.uniform(-0.3, 0.3)])
        R = np.linalg.qr(np.stack([axis, *rng.normal(size=(2, 3))], axis=1))[0][:, [1, 2, 0]]
        R[:, 0] *= np.linalg.det(R)
        half = 0.5 * long * R[:, 2]

        def distance(p, triangles, half=half):
            return _of_segment(p, -half, half, triangles, 21)[1].min()

        p = _above(rng, distance, triangles, r * rng.uniform(1.0, 1.2), 1.0)
        at, each = _of_segment(p, -half, half, triangles, 71)
        between += 0 < int(np.argmin(each)) < 70
        for _ in range(4):  # between the neighbours of the nearest, again and again
            k = int(np.argmin(each))
            at, each = _of_segment(p, at[max(k - 1, 0)], at[min(k + 1, len(at) - 1)], triangles, 11)
        wanted = each.min() - r
        found = contacts(shape("capsule", r, long), placed(R, p), hills, I)
        gaps = [one.gap for one in found.points]
        assert wanted - 1e-6 < min(gaps) < wanted + 1e-12
    assert between > 5


def test_ridges_under_boxes():
    """A box across a ridge comes to it where it runs under the face; beside a corner, to the flank."""
    slope = 0.3
    tent, _ = _hills("heightfield", -slope * np.abs(np.linspace(-2, 2, 9))[None] * np.ones((9, 1)), (4, 4))
    found = contacts(shape("box", 0.4, 0.6, 0.1), placed(np.eye(3), (0.05, 0.1, 0.06)), tent, I)
    on_ridge = [one for one in found.points if one.gap < 0.02]
    assert len(on_ridge) == 3  # a node is between
    for one in on_ridge:
        assert one.gap == pytest.approx(0.01, abs=1e-14)
        np.testing.assert_allclose(numbers(one.normal), (0, 0, 1), atol=1e-14)
    np.testing.assert_allclose(sorted(one.point.y for one in on_ridge), (-0.2, 0.0, 0.4), atol=1e-12)
    corner = min(one.gap for one in found.points[:4])
    assert corner == pytest.approx((0.01 + 0.15 * slope) / np.hypot(1, slope), abs=1e-12)


def test_pits_with_more_flanks_than_slots_are_counted():
    corners = [(-1, -1, 1), (1, -1, 1), (1, 1, 1), (-1, 1, 1), (0, 0, 0)]
    pit = shape("terrain", vertices=tuple(corners), faces=tuple((4, k, (k + 1) % 4) for k in range(4)))
    found = contacts(shape("sphere", 0.2), placed(np.eye(3), (0, 0, 0.2 * np.sqrt(2))), pit, I)
    np.testing.assert_allclose([one.gap for one in found.points], 0.0, atol=1e-12)
    assert found.overflow == 1.0
    off = contacts(shape("sphere", 0.2), placed(np.eye(3), (0.01, 0.02, 0.5)), pit, I)
    assert off.overflow == 0.0


def test_walls_of_terrains_bear():
    """A step of a stair: a ball in front of it, one over its edge, and one on it."""
    stair = shape(
        "terrain",
        vertices=((-1, -1, 0), (0, -1, 0), (0, 1, 0), (-1, 1, 0), (0, -1, 0.5), (0, 1, 0.5), (1, -1, 0.5), (1, 1, 0.5)),
        faces=((0, 1, 2), (0, 2, 3), (1, 5, 2), (1, 4, 5), (4, 6, 7), (4, 7, 5)),
    )
    ball = shape("sphere", 0.1)
    front = contacts(ball, placed(np.eye(3), (-0.1, 0, 0.1)), stair, I).points
    np.testing.assert_allclose(sorted(one.normal.x for one in front[:2]), (-1, 0), atol=1e-12)
    np.testing.assert_allclose([one.gap for one in front[:2]], 0.0, atol=1e-12)
    over = contacts(ball, placed(np.eye(3), (-0.06, 0, 0.58)), stair, I).points[0]
    assert over.gap == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(numbers(over.normal), (-0.6, 0, 0.8), atol=1e-12)


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
@pytest.mark.parametrize("kind", BODIES)
def test_even_ground_is_a_plane(kind, ground):
    """To 1e-12, all points in their order, and no others."""
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
        ours = contacts(a, moved, b, placed(Q, p)).points
        flat = contacts(a, moved, shape("plane"), placed(Q @ tilted, p)).points
        if kind in ("sphere", "capsule"):  # of each ball the first is on the plane
            every = 2 if kind == "capsule" else 3
            assert all(one.gap == UNUSED_GAP for k, one in enumerate(ours[:4]) if k % every)
            assert all(one.gap > min(one.gap for one in flat) + 0.1 for one in ours[4:])  # the end of a terrain
            ours = ours[: 2 * every : every]
        for one, other in zip(ours, flat, strict=False):
            assert one.gap == pytest.approx(other.gap, abs=1e-12)
            if other.gap < UNUSED_GAP:
                np.testing.assert_allclose(numbers(one.normal), numbers(other.normal), atol=1e-12)
                np.testing.assert_allclose(numbers(one.point), numbers(other.point), atol=1e-12)
        more = [one.gap for one in ours[len(flat) :]]
        assert all(gap > min(one.gap for one in flat) - 1e-12 for gap in more)


def test_terrains_end_with_their_triangles():
    """Beside it a ball is as far as its nearest edge."""
    one = contacts(SHAPES["sphere"], placed(np.eye(3), (5, 0, 0.4)), _even("terrain"), I).points[0]
    assert one.gap == pytest.approx(3.0 - SHAPES["sphere"].size[0], abs=1e-12)
    none = contacts(SHAPES["box"], placed(np.eye(3), (5, 0, 0.1)), _even("terrain"), I)
    assert all(one.gap == UNUSED_GAP for one in none.points)


def test_grounds_that_cannot_be_looked_up():
    ball, A = SHAPES["sphere"], placed(np.eye(3), (0, 0, 1))
    with pytest.raises(InputError, match="is no grid"):
        contacts(ball, A, replace(FIELD, heights=((0.0, 1.0), (0.0,))), A)
    with pytest.raises(InputError, match="too many nodes"):
        contacts(ball, A, replace(FIELD, heights=((0.0,) * 513,) * 512), A)


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
def test_large_hills_are_looked_up_in_compiled_functions(ground):
    """Balls over 80 × 81 nodes, in a batch."""
    ys, xs = np.linspace(-3, 3, 80), np.linspace(-2, 2, 81)
    hills, triangles = _hills(ground, 0.1 * np.sin(3 * xs) * np.cos(2 * ys)[:, None], (4, 6))
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.1, density=1000))
    model = b.build().with_contacts(lw.Ground(shape=hills))
    rng = np.random.default_rng(0)
    q = np.tile(model.neutral(), (20, 1))
    q[:, 4:6] = rng.uniform((-1.8, -2.8), (1.8, 2.8), size=(20, 2))
    near = [triangles[np.abs(triangles[..., :2].mean(axis=1) - p).max(axis=1) < 0.4] for p in q[:, 4:6]]
    q[:, 6] = 0.25
    for _ in range(60):
        wanted = np.array([to_triangles(p, own)[0].min() - 0.1 for p, own in zip(q[:, 4:7], near, strict=True)])
        q[:, 6] -= np.maximum(wanted - 0.005, 0.0)
    found = model.contacts.points(q)
    np.testing.assert_allclose(found.gap.min(axis=1), wanted, atol=1e-12)


def _thrown(body, ground, q, v, friction, duration=0.8):
    b = lw.ModelBuilder("thrown")
    b.add_body("body", joint=lw.Free(), shape=body)
    model = b.build().with_contacts(ground, material=lw.Material(friction=friction))
    motion = lw.simulate(model, q, v, duration=duration, dt=0.002, method="moreau")
    pairs = zip(motion.q, motion.v, strict=True)
    return motion, np.array([model.kinetic_energy(q, v) + model.potential_energy(q) for q, v in pairs])


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
def test_a_ball_lies_in_a_groove(ground):
    """On both flanks at once, mg / (2 cos θ) from each."""
    slope = np.radians(30.0)
    hills, _ = _hills(ground, np.tile(np.abs(np.linspace(-2, 2, 9)) * np.tan(slope), (9, 1)), (4, 4))
    ball = lw.shapes.sphere(0.1, mass=1.0)
    q = [1, 0, 0, 0, 0, 0.3, 0.1 / np.cos(slope)]
    motion, _ = _thrown(ball, lw.Ground(shape=hills), q, [0] * 6, 0.0, 0.1)
    forces = motion.contacts.force[-1]
    weight = forces.sum(axis=0)[2]
    np.testing.assert_allclose(np.linalg.norm(forces[:2], axis=1), weight / (2 * np.cos(slope)), rtol=1e-9)
    np.testing.assert_allclose(motion.contacts.gap[-1][:2], 0.0, atol=1e-12)
    np.testing.assert_allclose(motion.q[-1], q, atol=1e-12)


@pytest.mark.parametrize("kind", ["sphere", "capsule", "box", "cylinder"])
def test_no_energy_is_created_on_hills(kind):
    bodies = {
        "sphere": lw.shapes.sphere(0.1, mass=1.0),
        "capsule": lw.shapes.capsule(0.05, 0.3, mass=1.0),
        "box": lw.shapes.box((0.2, 0.3, 0.1), mass=1.0),
        "cylinder": lw.shapes.cylinder(0.1, 0.2, mass=1.0),
    }
    x = np.linspace(-2, 2, 9)
    heights = 0.15 * np.sin(3 * x) * np.cos(2.5 * x)[:, None] + 0.02 * np.random.default_rng(1).normal(size=(9, 9))
    hills, triangles = _hills("heightfield", heights, (4, 4))
    start = [1, 0, 0, 0, 0.1, 0.2, 0.45], [1, 0.5, 0.3, 1.0, 0.5, 0]
    motion, energy = _thrown(bodies[kind], lw.Ground(shape=hills), *start, 0.5)
    assert np.diff(energy).max() < 1e-9 * np.abs(energy).max()
    assert motion.contacts.deepest.min() > -1e-11
    if kind == "sphere":
        assert min(to_triangles(p, triangles)[0].min() for p in motion.q[:, 4:7]) > 0.1 - 1e-11


@pytest.mark.parametrize("ground", ["heightfield", "terrain"])
@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_motions_on_even_hills_are_those_on_a_plane(kind, ground):
    """No edge inside of even ground is felt."""
    body = lw.shapes.sphere(0.1, mass=1.0) if kind == "sphere" else lw.shapes.box((0.2, 0.3, 0.1), mass=1.0)
    even, _ = _hills(ground, np.zeros((9, 9)), (4, 4))
    turned = np.array([0.9, 0.2, 0.3, 0.1]) / np.linalg.norm([0.9, 0.2, 0.3, 0.1])
    start = [*turned, 0.03, 0.02, 0.2], [1, 2, 0.5, 1.2, 0.7, 0]
    ours, plane = (_thrown(body, it, *start, 0.4, 0.4)[0] for it in (lw.Ground(shape=even), lw.Ground()))
    np.testing.assert_allclose(ours.q, plane.q, atol=1e-12 if kind == "sphere" else 1e-9)


def test_a_box_lies_on_a_ridge():
    tent, _ = _hills("heightfield", -0.3 * np.abs(np.linspace(-2, 2, 9))[None] * np.ones((9, 1)), (4, 4))
    box = lw.shapes.box((0.4, 0.6, 0.1), mass=1.0)
    q = [1, 0, 0, 0, 0.0, 0.1, 0.05]
    motion, _ = _thrown(box, lw.Ground(shape=tent), q, [0] * 6, 0.5, 0.1)
    np.testing.assert_allclose(motion.q[-1], q, atol=1e-9)


def test_derivatives_of_steps_in_a_groove():
    """Of a ball that slides along it: those between two planes."""
    slope = np.radians(30.0)
    hills, _ = _hills("heightfield", np.tile(np.abs(np.linspace(-2, 2, 9)) * np.tan(slope), (9, 1)), (4, 4))
    planes = [lw.Ground(lw.transform(rpy=(0, angle, 0)), name=f"{angle}") for angle in (slope, -slope)]
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.1, mass=1.0))
    q, v = np.array([1, 0, 0, 0, 0, 0.3, 0.1 / np.cos(slope) - 1e-6]), np.array([0, 0, 0, 0.1, 1.0, -0.3])
    found, wanted = (
        np.concatenate(
            b.build()
            .with_contacts(*grounds, material=lw.Material(friction=0.1))
            .contacts.linearize_step(q, v, np.zeros(6), None, 0.002),
            axis=1,
        )
        for grounds in ([lw.Ground(shape=hills)], planes)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-8)


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
