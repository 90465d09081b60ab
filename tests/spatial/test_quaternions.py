"""Rotations: the group of unit quaternions, its exponential and logarithm near nothing and near half a turn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.spatial import quaternions
from linkwise.spatial.vectors import Vec

angles = st.one_of(
    st.floats(0, 1e-6), st.floats(1e-6, 0.05), st.floats(0, math.pi - 1e-6), st.floats(math.pi - 1e-6, math.pi)
)
directions = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda d: math.hypot(*d) > 1e-2)
often = settings(deadline=None, max_examples=200, derandomize=True)


def rotation_vector(angle: float, direction: Any) -> np.ndarray:
    return angle * np.array(direction) / math.hypot(*direction)


def exp(r: Any) -> np.ndarray:
    return np.array(quaternions.exponential(Vec.of([float(x) for x in r])))


def log(q: Any) -> np.ndarray:
    return np.array(list(quaternions.logarithm([float(x) for x in q])))


def matrix(q: Any) -> np.ndarray:
    return np.array(quaternions.rotation_matrix([float(x) for x in q]).m)


def product(a: Any, b: Any) -> np.ndarray:
    return np.array(quaternions.multiply(a.tolist(), b.tolist()))


@given(angles, directions)
@often
def test_exponential(angle: float, direction: Any) -> None:
    r = rotation_vector(angle, direction)
    expected = np.roll(Rotation.from_rotvec(r).as_quat(), 1)
    np.testing.assert_allclose(exp(r), expected, rtol=0, atol=3e-16)
    np.testing.assert_allclose(np.linalg.norm(exp(r)), 1.0, atol=3e-16)
    np.testing.assert_allclose(matrix(exp(r)), Rotation.from_rotvec(r).as_matrix(), atol=1e-15)


@given(angles, directions)
@often
def test_logarithm_undoes_the_exponential(angle: float, direction: Any) -> None:
    r = rotation_vector(angle, direction)
    back = log(exp(r))
    if angle < math.pi - 1e-6:
        np.testing.assert_allclose(back, r, rtol=1e-15, atol=1e-15)
    else:  # r and r - 2π r/|r| are the same turn
        assert np.linalg.norm(back) <= math.pi + 1e-15
        np.testing.assert_allclose(matrix(exp(back)), matrix(exp(r)), atol=1e-15)
    np.testing.assert_allclose(log(-exp(r)), back, atol=1e-8 if angle > 3 else 1e-15)  # -q is the same turn


@given(angles, angles, angles, directions, directions)
@often
def test_group(a: float, b: float, c: float, first: Any, second: Any) -> None:
    p, q, r = exp(rotation_vector(a, first)), exp(rotation_vector(b, second)), exp(rotation_vector(c, (1, 2, 3)))
    np.testing.assert_allclose(product(product(p, q), r), product(p, product(q, r)), atol=1e-15)
    np.testing.assert_allclose(matrix(product(p, q)), matrix(p) @ matrix(q), atol=2e-15)
    unit = product(p, np.array(quaternions.conjugate(p.tolist())))
    np.testing.assert_allclose(unit, [1, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(product(np.array([1.0, 0, 0, 0]), p), p)


@given(st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: math.hypot(*q) > 1e-2), st.floats(1e-3, 1e3))
@often
def test_any_length_will_do(q: Any, scale: float) -> None:
    R = matrix(q)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=3e-15)
    assert np.linalg.det(R) == pytest.approx(1.0)
    np.testing.assert_allclose(matrix(np.array(q) * scale), R, atol=1e-15)
    np.testing.assert_allclose(matrix(-np.array(q)), R, atol=1e-15)
    unit = np.array(quaternions.normalized(list(q)))
    assert np.linalg.norm(unit) == pytest.approx(1.0, abs=1e-15)


def test_rate() -> None:
    rng = np.random.default_rng(0)
    for scale in (1.0, 5.0):
        q, omega, h = rng.normal(size=4), rng.normal(size=3), 1e-6
        q *= scale / np.linalg.norm(q)
        rate = np.array(quaternions.rate(q.tolist(), Vec.of(omega.tolist())))
        np.testing.assert_allclose(
            (product(q, exp(h * omega)) - product(q, exp(-h * omega))) / (2 * h), rate, atol=1e-8
        )
        spin = (matrix(q + h * rate) - matrix(q - h * rate)) / (2 * h)
        turning = matrix(q).T @ spin
        np.testing.assert_allclose([turning[2, 1], turning[0, 2], turning[1, 0]], omega, atol=1e-8)


SCALES = {
    np.float64: [1e155, 1e200, 1e300, 1e-155, 1e-160, 1e-300, 1e9, 1e-9, -1e155],
    np.float32: [1e20, 1e37, 1e-20, -1e-37],
}


@pytest.mark.parametrize(("dtype", "scale"), [(dtype, x) for dtype, scales in SCALES.items() for x in scales])
@pytest.mark.parametrize("joint", [lw.Spherical(), lw.Free()], ids=repr)
def test_any_length_at_all_in_compiled_code(joint: lw.Joint, dtype: Any, scale: float) -> None:
    b = lw.ModelBuilder("ball")
    b.add_body("a", joint=joint, mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.diag([1.0, 2.0, 2.5]))
    model, rng = b.build(), np.random.default_rng(0)
    q, other = model.random_configuration(rng), model.random_configuration(rng)
    v, x = rng.normal(size=(2, model.nv))
    factor = np.ones(model.nq)
    factor[:4] = scale
    long, tol = (q * factor).astype(dtype), 2e-6 if dtype is np.float32 else 1e-15
    q, other, v, x = (a.astype(dtype) for a in (q, other, v, x))
    for name, rest in (("gravity_force", ()), ("poses", ()), ("inverse_dynamics", (v, x)), ("forward_dynamics", (v, x)),
                       ("integrate", (v,))):  # fmt: skip
        ours, expected = getattr(model, name)(long, *rest), getattr(model, name)(q, *rest)
        assert ours.dtype == dtype
        if name == "integrate":
            ours[:4] *= np.sign(scale)
        np.testing.assert_allclose(ours, expected, atol=20 * tol, rtol=20 * tol)
    turn = model.difference(q, other)
    np.testing.assert_allclose(model.difference(long, other), turn, atol=20 * tol, rtol=20 * tol)
    np.testing.assert_allclose(
        model.difference(long, (other * factor).astype(dtype)), turn, atol=20 * tol, rtol=20 * tol
    )
    if dtype is np.float32 and abs(scale) < 1e-30:
        return  # a derivative takes the fourth power of the length, for which single precision has no room there
    gradient = model.function("potential_energy").gradient("q")
    np.testing.assert_allclose(gradient.general(long), gradient.general(q), atol=20 * tol, rtol=20 * tol)


@often
@given(angles, directions, directions)
def test_a_rotation_vector_changes_as_its_exponential_turns(angle: float, direction: Any, omega: Any) -> None:
    u, w, h = rotation_vector(angle, direction), np.array(omega), 1e-4
    rate = np.array(list(quaternions.vector_rate(Vec(*u.tolist()), Vec(*w.tolist()))))
    # Both sides differ from the turned one by what is of fifth order in h.
    ahead, behind = (Rotation.from_rotvec(u + s * h * rate) for s in (1.0, -1.0))
    turned = (behind.inv() * ahead).as_rotvec() / (2.0 * h)
    assert np.abs(turned - w).max() < 1e-6 * (1.0 + np.abs(rate).max() ** 3)


def test_a_usual_length_changes_no_digit() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1.0, 1e4):
        q = (rng.normal(size=4) * scale).tolist()
        w, x, y, z = q
        s = 2.0 / (w * w + x * x + y * y + z * z)  # sum() rounds otherwise from Python 3.12 on
        assert matrix(q)[0, 1] == x * (y * s) - w * (z * s)


def test_the_zero_quaternion_has_no_direction() -> None:
    assert np.isnan(matrix([0.0] * 4)).all()
    assert np.isnan(quaternions.normalized([0.0] * 4)).all()
    b = lw.ModelBuilder("ball")
    b.add_body("a", joint=lw.Spherical(), mass=1.0, com=(0.1, 0.2, 0.3))
    model = b.build()
    assert np.isnan(model.gravity_force(np.zeros(4))).any()
    assert np.isnan(model.pose(np.zeros(4), "a")[:3, :3]).all()
    fixed = lw.compile(lambda m, x: m.pose(np.zeros(4), "a")[0, 0] * x, model, {"x": "scalar"})
    assert np.isnan(fixed(1.0))
