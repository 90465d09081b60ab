"""Moving about in configuration space: integrate and difference, near nothing and near half a turn."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
from tests.identities.relations import SEEDS, close, models
from tests.oracles.eager import Eager
from tests.random_trees import ALL, random_q, random_state, random_tree

TYPES = ("planar", "spherical", "free")
SIZES = [0.0, 1e-12, 1e-7, 1e-4, 0.0099, 0.0101, 0.0199, 0.0201, 0.0316, 0.0317, 0.5, 3.0, math.pi - 1e-7]


def one_joint(kind: str) -> lw.Model:
    return random_tree(0, 1, (kind,), structured=1.0)


@SEEDS
def test_difference_undoes_integrate(seed: int) -> None:
    for model, eager, rng in models(seed):
        q, v, _ = random_state(model, rng)
        v = np.clip(v, -1, 1)  # less than half a turn
        for scale in (1.0, 1e-3, 1e-7):
            close(eager.difference(q, eager.integrate(q, scale * v)) / scale, v, 1e-7 if scale < 1e-5 else 1e-10)
        other = random_q(model, rng)
        back = eager.integrate(q, eager.difference(q, other))
        close(eager.poses(back), eager.poses(other), 1e-12)
        np.testing.assert_allclose(eager.difference(q, q), 0.0, atol=1e-15)
        close(eager.poses(eager.integrate(q, 0 * v)), eager.poses(q), 1e-14)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_of_every_size(kind: str, size: float) -> None:
    """A turn of any size comes back to full precision, also where series and closed forms meet."""
    model = one_joint(kind)
    eager = Eager(model)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        q, dv = random_q(model, rng), rng.normal(size=model.nv)
        if kind == "planar":
            dv[0] = size * np.sign(dv[0])
        else:
            dv[:3] *= size / np.linalg.norm(dv[:3])
        back = eager.difference(q, eager.integrate(q, dv))
        np.testing.assert_allclose(back, dv, rtol=0, atol=1e-14 if size < 3 else 3e-9)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [s for s in SIZES if s > 0])
def test_against_many_digits(kind: str, size: float) -> None:
    """Floats against the same text with 60 digits: every branch and series is right on its own side."""
    model, rng = one_joint(kind), np.random.default_rng(1)
    q, dv = random_q(model, rng), rng.normal(size=model.nv)
    if kind == "planar":
        dv[0] = size
    else:
        dv[:3] *= size / np.linalg.norm(dv[:3])
    with mpmath.workdps(60):
        precise = model.integrate(many_digits(q), many_digits(dv))
        ours = Eager(model).integrate(q, dv)
        assert max(abs(a - b) for a, b in zip(precise, ours, strict=True)) < 1e-15
        exact = screw(model, q, dv)
        assert max(abs(x) for x in (model.poses(precise)[0] - exact).reshape(-1)) < 1e-17  # the series end there


def screw(model: lw.Model, q: Any, dv: Any) -> Any:
    """The pose after moving with the constant body velocity dv, by the matrix exponential."""
    start = model.poses(many_digits(q))[0]
    J = model.jacobian(many_digits(q), model.bodies[0].name)
    V = J @ many_digits(dv)
    R = start[:3, :3]
    omega, v = R.T @ V[:3], R.T @ V[3:]
    zero = mpmath.mpf(0)
    twist = mpmath.matrix(
        [
            [zero, -omega[2], omega[1], v[0]],
            [omega[2], zero, -omega[0], v[1]],
            [-omega[1], omega[0], zero, v[2]],
            [zero] * 4,
        ]
    )
    moved = mpmath.matrix(start.tolist()) * mpmath.expm(twist, method="taylor")
    return np.array(moved.tolist(), dtype=object)


def many_digits(x: Any) -> Any:
    return np.array([mpmath.mpf(float(a)) for a in x], dtype=object)


@pytest.mark.parametrize("kind", ["spherical", "free"])
def test_half_turns(kind: str) -> None:
    """The rotation vector has at most length π, and the two ways round meet there."""
    model = one_joint(kind)
    eager = Eager(model)
    q0 = model.neutral()
    for axis in np.eye(3):
        for angle in (math.pi, math.pi + 0.1, -math.pi + 1e-9, 2 * math.pi - 1e-7, 3 * math.pi - 0.2):
            dv = np.zeros(model.nv)
            dv[:3] = axis * angle
            back = eager.difference(q0, eager.integrate(q0, dv))
            assert np.linalg.norm(back[:3]) <= math.pi + 1e-15
            turned = Eager(model).poses(eager.integrate(q0, back))
            close(turned, eager.poses(eager.integrate(q0, dv)), 1e-13)


@pytest.mark.parametrize("kind", TYPES)
def test_quaternions_stay_of_length_one(kind: str) -> None:
    model, rng = one_joint(kind), np.random.default_rng(2)
    q = random_q(model, rng)
    if kind != "planar":
        q[:4] *= 17.0
        q1 = Eager(model).integrate(q, rng.normal(size=model.nv))
        assert np.linalg.norm(q1[:4]) == pytest.approx(1.0, abs=4e-16)


def test_neutral_and_random_configurations() -> None:
    model = random_tree(5, 12, ALL, mimic=0.3)
    q = model.neutral()
    assert q.shape == (model.nq,)
    np.testing.assert_allclose(model.difference(q, q), 0.0)
    rng = np.random.default_rng(0)
    first, second = model.random_configuration(rng), model.random_configuration(rng)
    assert not np.allclose(first, second)
    np.testing.assert_array_equal(model.random_configuration(7), model.random_configuration(7))


def test_random_configurations_keep_to_the_limits() -> None:
    b = lw.ModelBuilder("limited")
    limits = lw.JointLimits(lower=-0.1, upper=0.3)
    b.add_body("a", joint=lw.Revolute(), mass=1.0, com=(1, 0, 0), limits=limits)
    b.add_body("b", "a", joint=lw.Planar(), mass=1.0, limits=limits)
    b.add_body("c", "b", joint=lw.Prismatic(), mass=1.0)
    model = b.build()
    samples = np.array([model.random_configuration(s) for s in range(200)])
    assert (samples[:, :4] >= -0.1).all()
    assert (samples[:, :4] <= 0.3).all()
    assert samples[:, :4].min() < -0.05
    assert samples[:, :4].max() > 0.25
    assert np.abs(samples[:, 4]).max() <= 1.0
