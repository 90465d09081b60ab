"""How motions of closed mechanisms depend on their start and on parameters, against differences of motions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import errors, samples
from tests.closures.test_parameters import rodded

Array = Any


def differences(model: lw.Model, q: Array, v: Array, tau: Array, dt: float, p: Array, changes: Array) -> Array:
    """Of the state at the end by changes of the start that keep it closed, and of p; in the tangent space there."""
    n, h = model.nv, 1e-5

    def end(change: Array) -> tuple[Array, Array]:
        values = {"p": p + change[2 * n :]} if len(p) else {}
        start = model.integrate(q, change[:n])
        for _ in range(3):
            start = model.constraints.project_configuration(start, **values)
        speed = model.constraints.project_velocity(start, v + change[n : 2 * n], **values)
        found = model.sensitivity(start, speed, tau, dt, **values)
        return found.q[-1], found.v[-1]

    columns = []
    for own, of_p in zip(changes.T, np.eye(2 * n + len(p))[:, 2 * n :], strict=True):
        along = np.concatenate([own, of_p])
        (q0, v0), (q1, v1) = end(-h * along), end(h * along)
        columns.append(np.concatenate([model.difference(q0, q1), v1 - v0]) / (2.0 * h))
    return np.array(columns).T


@pytest.mark.parametrize(
    ("model", "guess", "speed"),
    [
        (samples.slider_crank().with_parameters(["rod.com", "rod.mass"]), [0.5, -0.6, 0.0], 10.0),
        (samples.bricard(), [0.0] * 5, 1.0),
        (rodded().with_parameters(["rod.length", "gear.coefficients"]), None, 1.0),
    ],
    ids=["slider-crank", "over-constrained", "quaternion, rod and gear"],
)
def test_against_differences(model: lw.Model, guess: Any, speed: float) -> None:
    """To 1e-6 of the largest: the method's own order, and what differences leave."""
    q = model.assemble(model.neutral() if guess is None else guess)
    n, p = model.nv, model.parameters.nominal
    v = model.constraints.project_velocity(q, speed * np.linspace(1.0, 0.5, n))
    tau, dt = np.tile(np.linspace(0.3, 0.5, n), (8, 1)), 2e-3
    found = model.sensitivity(q, v, tau, dt)
    first, last = (np.concatenate([found.dx0[k], found.dp[k]], axis=-1) for k in (0, -1))
    expected = differences(model, q, v, tau, dt, p, first)
    np.testing.assert_allclose(last, expected, atol=1e-6 * np.abs(expected).max())
    rate = model.constraints.jacobian(found.q[-1])[model._place_rows] @ found.dx0[-1, :n]
    assert np.abs(rate).max() < 1e-9
    assert np.abs(model.closure_error(found.q)).max() < 1e-11


def test_the_motion_is_that_of_a_simulation() -> None:
    model = samples.slider_crank()
    q = model.assemble([0.5, -0.6, 0.0])
    v = model.constraints.project_velocity(q, [10.0, 0.0, 0.0])
    found = model.sensitivity(q, v, np.zeros((20, 3)), 2e-3)
    motion = lw.simulate(model, q, v, duration=0.04, output_times=found.t)
    np.testing.assert_allclose(found.q, motion.q, atol=1e-8)


@pytest.mark.slow
def test_a_batch() -> None:
    model = samples.slider_crank().with_parameters(["wrist.xyz_a"])
    q = model.assemble([[0.5, -0.6, 0.0], [0.2, -0.2, 0.0]])
    v = model.constraints.project_velocity(q, np.ones((2, 3)))
    both = model.sensitivity(q, v, np.zeros((3, 2, 3)), 1e-3)
    one = model.sensitivity(q[1], v[1], np.zeros((3, 3)), 1e-3)
    np.testing.assert_allclose(both.dx0[:, 1], one.dx0, atol=1e-12)
    np.testing.assert_allclose(both.dp[:, 1], one.dp, atol=1e-12)


def test_refusals() -> None:
    driven = samples.slider_crank().with_coupling("drive", lw.closures.Prescribed("main", lambda t: 3.0 * t))
    with pytest.raises(errors.InputError, match=r"do not depend on time[\s\S]*'drive'"):
        driven.sensitivity(driven.neutral(), np.zeros(3), np.zeros((1, 3)), 1e-3)
    model = samples.slider_crank()
    with pytest.raises(errors.ClosureError, match="'wrist' is open"):
        model.sensitivity([0.1, 0.0, 0.0], np.zeros(3), np.zeros((1, 3)), 1e-3)
