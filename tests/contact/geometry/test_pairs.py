"""Every pair of convex shapes against a search over directions in NumPy and against MuJoCo, on random placements."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.contact.geometry.convex_convex import apart_between_axes, closest, convex_convex
from linkwise.contact.geometry.pairs import PAIRS, contacts, distance, slots
from linkwise.contact.geometry.points import UNUSED_GAP
from tests.contact.geometry.reference import excess, numbers, placed, reach, rotation, shape, signed_distance

_POINTS = np.random.default_rng(3).normal(size=(16, 3)) * (0.2, 0.3, 0.25)
SHAPES = {
    "sphere": shape("sphere", 0.3),
    "capsule": shape("capsule", 0.15, 0.6),
    "box": shape("box", 0.4, 0.6, 0.8),
    "cylinder": shape("cylinder", 0.25, 0.5),
    "ellipsoid": shape("ellipsoid", 0.2, 0.3, 0.45),
    "convex": shape("convex", vertices=tuple(map(tuple, _POINTS.tolist()))),
    "plane": shape("plane"),
}
CONVEX = [pair for pair in PAIRS if set(pair) <= set(SHAPES)]
CURVED = {"cylinder", "ellipsoid"}


def placements(rng, a, b):
    """Apart, deep, and at a gap of a millimetre either way."""
    for size in (1.0, 0.5, 0.5, 0.3, 0.3, 0.1):
        A, B = (rotation(rng), size * rng.normal(size=3)), (rotation(rng), 0.1 * rng.normal(size=3))
        yield A, B
        gap, n = signed_distance(a, A, b, B, starts=1, rounds=12)
        yield (A[0], A[1] + n * (1e-3 * rng.uniform(-1, 1) - gap)), B


def nearest(found):
    return min(found.points, key=lambda point: point.gap)


def tolerance(pair):
    """1e-12 for closed forms and for what halving finds; 1e-8 where curved shapes meet by passes."""
    return 1e-8 if PAIRS[pair].function.__name__ == "convex_convex" and CURVED & set(pair) else 1e-12


@pytest.mark.parametrize("pair", CONVEX, ids="-".join)
def test_gap_normal_and_points(pair):
    a, b = (SHAPES[kind] for kind in pair)
    rng = np.random.default_rng(11)
    checked = 0
    for A, B in placements(rng, a, b):
        found = contacts(a, placed(*A), b, placed(*B))
        assert len(found.points) == slots(a, b) == slots(b, a)
        values = np.array([[p.gap, *p.normal, *p.point] for p in found.points], float)
        assert np.isfinite(values).all()
        np.testing.assert_allclose(np.linalg.norm(values[:, 1:4], axis=1), 1.0, rtol=0, atol=1e-12)
        p = nearest(found)
        n, x = numbers(p.normal), numbers(p.point)
        true, _ = signed_distance(a, A, b, B, starts=3, rounds=50)
        if pair[0] == "capsule" and PAIRS[pair].function.__name__ == "capsule_surface" and true < -0.9 * a.size[0]:
            assert p.gap >= true - 1e-9  # the axis is inside: the depth is that of its deepest point
            continue
        if pair == ("box", "box") and true > 0.0:
            assert p.gap <= true + 1e-9
            assert p.gap >= true / np.sqrt(3.0) - 1e-9
            assert distance(a, placed(*A), b, placed(*B)) >= true - 1e-9
            continue
        checked += 1
        # The gap is the one along the normal, so it is not above the true one; and no direction found has a larger.
        along = -reach(a, *A, -n[None])[0] - (reach(b, *B, n[None])[0] if b.kind != "plane" else n @ B[1])
        assert p.gap == pytest.approx(along, abs=1e-12)
        if set(pair) != {"convex"} or true > -0.1:  # of two meshes deep in each other, a local way out
            assert p.gap >= true - max(tolerance(pair), 1e-9)
        if true < 0.05:  # far apart, passes on curved shapes end sooner
            close = 1e-5 if tolerance(pair) > 1e-12 else 1e-12
            assert abs(excess(a, *A, x + n * p.gap / 2)) < close
            assert abs(excess(b, *B, x - n * p.gap / 2)) < close
    assert checked >= 6


@pytest.mark.parametrize("pair", CONVEX, ids="-".join)
def test_either_order(pair):
    a, b = (SHAPES[kind] for kind in pair)
    rng = np.random.default_rng(5)
    A, B = (placed(rotation(rng), 0.4 * rng.normal(size=3)) for _ in range(2))
    for there, back in zip(contacts(a, A, b, B).points, contacts(b, B, a, A).points, strict=True):
        gap = there.gap if set(pair) != {pair[0]} else nearest(contacts(a, A, b, B)).gap
        other = back.gap if set(pair) != {pair[0]} else nearest(contacts(b, B, a, A)).gap
        assert other == pytest.approx(gap, abs=1e-7)
        if there.gap < UNUSED_GAP and set(pair) != {pair[0]}:
            np.testing.assert_allclose(numbers(back.normal), -numbers(there.normal), atol=1e-12)
            np.testing.assert_allclose(numbers(back.point), numbers(there.point), atol=1e-12)


def _mujoco(a, b):
    mujoco = pytest.importorskip("mujoco")

    def geom(s):
        size = {
            "sphere": lambda: s.size,
            "capsule": lambda: (s.size[0], s.size[1] / 2),
            "cylinder": lambda: (s.size[0], s.size[1] / 2),
            "box": lambda: [x / 2 for x in s.size],
            "ellipsoid": lambda: s.size,
            "plane": lambda: (0, 0, 1),
            "convex": lambda: (),
        }[s.kind]()
        if s.kind == "convex":
            return '<geom type="mesh" mesh="m"/>'
        return f'<geom type="{s.kind}" size="{" ".join(map(repr, map(float, size)))}"/>'

    vertices = " ".join(repr(float(x)) for x in _POINTS.reshape(-1))
    bodies = "".join(f'<body mocap="true">{geom(s)}</body>' for s in (a, b))
    assets = f'<asset><mesh name="m" vertex="{vertices}"/></asset>' if "convex" in (a.kind, b.kind) else ""
    text = f"""<mujoco><option ccd_tolerance="1e-10" ccd_iterations="200"/>{assets}
    <worldbody>{bodies}</worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)

    def measure(A, B):
        for k, (R, p) in enumerate((A, B)):
            data.mocap_pos[k] = p
            mujoco.mju_mat2Quat(data.mocap_quat[k], np.ascontiguousarray(R).reshape(-1))
        mujoco.mj_kinematics(model, data)
        line = np.zeros(6)
        return mujoco.mj_geomDistance(model, data, 0, 1, 10.0, line)

    return measure


@pytest.mark.parametrize("pair", CONVEX, ids="-".join)
def test_distances_of_mujoco(pair):
    """Apart, and up to 2 cm inside, where its own answers are exact to its tolerance.

    Of shapes that overlap at a corner there may be several ways out of about the same length. Ours by passes is one
    that no small turn makes shorter, which in one of the placements of a pair may be another than the shortest.
    """
    a, b = (SHAPES[kind] for kind in pair)
    measure = _mujoco(a, b)
    rng = np.random.default_rng(7)
    by_passes = PAIRS[pair].function.__name__ == "convex_convex"
    compared = longer = 0
    for A, B in placements(rng, a, b):
        ours = distance(a, placed(*A), b, placed(*B))
        if ours < -0.02:
            continue
        theirs = measure(A, B)
        compared += 1
        if by_passes and ours < 0.0 and ours < theirs - 2e-6:
            longer += 1
            continue
        assert ours == pytest.approx(theirs, abs=2e-6)
    assert compared >= 6
    assert longer <= 1


def test_box_keeps_all_corners_when_asked():
    box, plane = SHAPES["box"], SHAPES["plane"]
    A, B = placed(rotation(np.random.default_rng(0)), (0, 0, 0.1)), placed(np.eye(3), (0, 0, 0))
    eight, four = contacts(box, A, plane, B, 8), contacts(box, A, plane, B)
    assert len(eight.points) == slots(box, plane, 8) == 8
    below = sum(p.gap < 0 for p in eight.points)
    assert below == sum(p.gap < 0 for p in four.points) + four.overflow
    assert nearest(eight).gap == pytest.approx(nearest(four).gap, abs=1e-15)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (shape("cylinder", 0.05, 0.3), shape("cylinder", 0.12, 0.1)),
        (shape("box", 0.4, 0.06, 0.1), shape("cylinder", 0.1, 0.2)),
        (shape("capsule", 0.04, 0.3), shape("ellipsoid", 0.2, 0.1, 0.05)),
    ],
    ids=["cylinders", "box and cylinder", "capsule and ellipsoid"],
)
def test_beyond_a_distance_a_bound_is_enough(a, b):
    """Passes end there, and say that it is beyond; nearer than that nothing changes."""
    rng, ended = np.random.default_rng(4), 0
    for _ in range(16):
        A, B = ((rotation(rng), scale * rng.normal(size=3)) for scale in (0.0, 0.25))
        exact = closest(a, placed(*A), b, placed(*B))
        for within in (0.0, 0.05):
            found = closest(a, placed(*A), b, placed(*B), within=within)
            if exact.gap < within:
                assert [found.gap, *found.normal, *found.point] == [exact.gap, *exact.normal, *exact.point]
            else:
                assert within <= found.gap <= exact.gap + 1e-12
                ended += found.gap < exact.gap - 1e-6
    assert ended > 4


@pytest.mark.parametrize("other", [shape("cylinder", 0.046, 0.04), shape("box", 0.213, 0.0245, 0.034)])
def test_deep_overlaps_of_cylinders_are_left_by_a_short_way(other):
    """Where several ways out are about as long it may be another one than the shortest, and seldom much longer."""
    rng, cylinder, longer = np.random.default_rng(3), shape("cylinder", 0.05, 0.09), []
    for _ in range(30):
        A, B = ((rotation(rng), scale * rng.normal(size=3)) for scale in (0.0, 0.02))
        gap, normal, _ = closest(cylinder, placed(*A), other, placed(*B))
        n = numbers(normal)[None]
        assert np.isclose(gap, -reach(cylinder, *A, -n)[0] - reach(other, *B, n)[0], atol=1e-14)
        true, _ = signed_distance(cylinder, A, other, B, starts=3, rounds=40)
        longer.append(gap / true - 1.0 if true < -1e-3 else 0.0)
    assert np.quantile(longer, 0.9) < 0.01
    assert max(longer) < 0.2


@pytest.mark.parametrize("pair", [pair for pair in CONVEX if PAIRS[pair].function is convex_convex], ids="-".join)
def test_between_axes_shapes_are_no_nearer_than_the_bound_says(pair):
    a, b = (SHAPES[kind] for kind in pair)
    rng = np.random.default_rng(5)
    for A, B in placements(rng, a, b):
        bound = float(apart_between_axes(a, placed(*A), b, placed(*B)))
        assert bound <= signed_distance(a, A, b, B, starts=1, rounds=12)[0] + 1e-9


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, np.pi / 2])
def test_between_axes_cylinders_side_by_side_are_as_far_apart_as_they_are(angle):
    a, b = shape("cylinder", 0.1, 2.0), shape("cylinder", 0.2, 3.0)
    turned = [[np.cos(angle), 0.0, np.sin(angle)], [0.0, 1.0, 0.0], [-np.sin(angle), 0.0, np.cos(angle)]]
    for place in ([0.0, 0.7, 0.0], [0.0, 0.7, -0.2]):
        bound = apart_between_axes(a, placed(np.eye(3), place), b, placed(turned, [0.0, 0.0, 0.0]))
        assert float(bound) == pytest.approx(0.4, abs=1e-9)
