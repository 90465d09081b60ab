"""Never NaN: coincident centres, parallel axes, shapes without extent; and derivatives where surfaces are smooth."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.kinematics import Placed
from linkwise.contact.geometry.pairs import PAIRS, contacts
from linkwise.contact.geometry.points import UNUSED_GAP
from linkwise.samples.arms import planar_arm
from linkwise.spatial.dual import Dual, new_level
from linkwise.spatial.matrices import Mat3
from linkwise.spatial.vectors import Vec
from tests.contact.geometry.reference import placed, rotation, shape
from tests.contact.geometry.test_pairs import CONVEX, SHAPES

I = np.eye(3)
GROUND = {
    "heightfield": shape("heightfield", 4, 4, heights=((0.0, 0.1, 0.0), (0.1, 0.2, 0.0), (0.0, 0.0, 0.1))),
    "terrain": shape("terrain", vertices=((-2.0, -2.0, 0.0), (2.0, -2.0, 0.0), (0.0, 2.0, 0.3)), faces=((0, 1, 2),)),
}


@pytest.mark.parametrize("pair", list(PAIRS), ids="-".join)
def test_every_slot_is_finite_with_its_derivative(pair):
    a, b = ((SHAPES | GROUND)[kind] for kind in pair)
    turned = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    for R, p in ((I, (0, 0, 0)), (I, (0, 0, 0.3)), (turned, (0, 0, 0)), (I, (1e-17, 0, 0)), (I, (0.5, 0.5, 0.5))):
        level = new_level()
        rates = np.cross((0.3, -0.2, 0.5), np.array(R, float).T).T
        moving = Mat3([[Dual(float(R[i][j]), float(rates[i, j]), level) for j in range(3)] for i in range(3)])
        at = Vec(*(Dual(float(x), v, level) for x, v in zip(p, (0.1, 0.2, 0.3), strict=True)))
        for one in contacts(a, Placed(moving, at), b, placed(I, (0, 0, 0))).points:
            for x in (one.gap, *one.normal, *one.point):
                value, tangent = (x.value, x.tangent) if isinstance(x, Dual) else (x, 0.0)
                assert np.isfinite(value)
                assert np.isfinite(tangent) or "ellipsoid" in pair or "cylinder" in pair  # see below
        plain = contacts(a, placed(R, p), b, placed(I, (0, 0, 0)))
        found = np.array([[q.gap, *q.normal, *q.point] for q in plain.points], float)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(np.linalg.norm(found[:, 1:4], axis=1), 1.0, atol=1e-12)


def test_shapes_without_extent():
    point, needle, plate = shape("sphere", 0), shape("capsule", 0, 0), shape("box", 1, 1, 0)
    for a in (point, needle):
        for b in (point, needle, plate):
            for one in contacts(a, placed(I, (0, 0, 0.25)), b, placed(I, (0, 0, 0))).points[:1]:
                assert one.gap == pytest.approx(0.25, abs=1e-15)


# Pairs in closed form, and flat ones by passes. Where a curved shape meets by passes, the derivatives of the passes are
# not those of what they lead to.
SMOOTH = [
    pair
    for pair in CONVEX
    if PAIRS[pair].function.__name__ != "convex_convex" or not {"cylinder", "ellipsoid"} & set(pair)
]


@pytest.mark.parametrize("pair", SMOOTH, ids="-".join)
def test_derivatives_of_gap_and_normal(pair):
    a, b = (SHAPES[kind] for kind in pair)
    rng = np.random.default_rng(9)
    tested = 0
    while tested < 6:
        R, p, Q = rotation(rng), 0.5 * rng.normal(size=3), rotation(rng)
        w, v = rng.normal(size=(2, 3))

        def at(h, R=R, p=p, Q=Q, w=w, v=v):
            angle = np.linalg.norm(w) * h
            axis = w / np.linalg.norm(w)
            K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
            turn = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
            found = contacts(a, placed(turn @ R, p + h * v), b, placed(Q, (0, 0, 0)))
            one = min(found.points, key=lambda q: q.gap)
            return np.array([one.gap, *one.normal], float)

        if at(0.0)[0] < -0.1:
            continue  # capsules whose axis is inside
        level = new_level()
        rates = np.cross(w, R.T).T
        moving = Mat3([[Dual(float(R[i, j]), float(rates[i, j]), level) for j in range(3)] for i in range(3)])
        position = Vec(*(Dual(float(x), float(y), level) for x, y in zip(p, v, strict=True)))
        found = contacts(a, Placed(moving, position), b, placed(Q, (0, 0, 0)))
        one = min(found.points, key=lambda q: getattr(q.gap, "value", q.gap))
        tangent = [x.tangent if isinstance(x, Dual) else 0.0 for x in (one.gap, *one.normal)]
        fine, coarse = ((at(h) - at(-h)) / (2 * h) for h in (1e-6, 1e-5))
        if np.abs(fine - coarse).max() > 1e-4:
            continue  # across a bend of the surface
        np.testing.assert_allclose(tangent, fine, atol=2e-7 * max(1.0, np.abs(fine).max()))
        tested += 1


@pytest.mark.parametrize("pair", [("box", "box"), ("capsule", "box"), ("sphere", "convex"), ("sphere", "heightfield")])
def test_compiled_is_the_same_text(pair):
    a, b = ((SHAPES | GROUND)[kind] for kind in pair)

    def text(model, R, p):
        found = contacts(a, Placed(Mat3(R), Vec.of(p)), b, placed(I, (0, 0, 0)))
        return [[one.gap, *one.normal, *one.point] for one in found.points]

    rng = np.random.default_rng(1)
    R, p = np.array([rotation(rng) for _ in range(9)]), 0.4 * rng.normal(size=(9, 3))
    compiled = lw.compile(text, planar_arm(2), inputs={"R": (3, 3), "p": (3,)})
    eager = np.array([text(None, R[k].tolist(), p[k].tolist()) for k in range(9)], float)
    found = compiled(R, p)
    np.testing.assert_allclose(found[..., :4], eager[..., :4], atol=1e-9)
    used = eager[..., 0] < 0.5 * UNUSED_GAP
    np.testing.assert_allclose(found[used], eager[used], atol=1e-9)
