"""Derivatives of constrained accelerations against differences along motions that keep the loops closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linkwise import samples
from tests.closures.mechanisms import Closed, T, at_state, closed_tree

Array = Any


def _closed_near(case: Closed, along: Array, turn: Array) -> tuple[Array, Array]:
    """A state that obeys, near the case's own."""
    q = case.model.assemble(case.model.integrate(case.q, along), t=T, tol=1e-14)
    v = case.v + turn
    for _ in range(3):
        v = case.model.constraints.project_velocity(q, v, t=T)
    return q, v


def _check(case: Closed, seed: int = 0) -> None:
    model, rng = case.model, np.random.default_rng(seed)
    lin = model.linearize_forward(*case.state, t=T)
    J = model.constraints.jacobian(case.q, t=T, v=case.v)
    null = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :].T
    h = 1e-4
    for _ in range(3):
        d, w, u = null @ rng.normal(size=null.shape[1]), rng.normal(size=model.nv), rng.normal(size=model.nv)
        values, moves = [], []
        for s in (h, -h, 2 * h, -2 * h):
            q, v = _closed_near(case, s * d, s * w)
            values.append(model.forward_dynamics(q, v, case.tau + s * u, t=T))
            moves.append(np.concatenate([model.difference(case.q, q), v - case.v]))

        def slope(x: list[Array]) -> Array:
            return (8 * (x[0] - x[1]) - (x[2] - x[3])) / (12 * h)

        n = model.nv
        move = slope(moves)
        expected = slope(values)
        found = lin.dq @ move[:n] + lin.dv @ move[n:] + lin.dtau @ u
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * (1.0 + np.abs(expected).max()))
        along = model.perturb_forward(*case.state, move[:n], move[n:], u, t=T)
        np.testing.assert_allclose(along, found, rtol=0, atol=1e-12 * (1.0 + np.abs(found).max()))


def test_four_bars_with_redundant_pins() -> None:
    model = samples.four_bar(2)
    q = model.assemble(0.4 * np.array([1, -1, 1, -1, 1.0]))
    _check(at_state(model, q, np.random.default_rng(0)))


def test_bricard() -> None:
    model = samples.bricard()
    q = model.assemble(model.integrate(model.neutral(), 0.3 * model.freedoms(model.neutral()).basis[:, 0]))
    _check(at_state(model, q, np.random.default_rng(1)))


@pytest.mark.parametrize(
    "kinds", [["revolute", "gear"], ["rolling_disc"], ["led"], ["skate"]], ids=lambda kinds: kinds[0]
)
def test_random_trees(kinds: list[str]) -> None:
    types = ("revolute", "spherical", "prismatic", "free")
    _check(closed_tree(4, kinds, n=5, compiled=True, types=types, structured=0.3))


def test_batches_and_perturbations_agree() -> None:
    model = samples.four_bar(1)
    rng = np.random.default_rng(0)
    q = model.assemble(np.array([[0.3, -0.2, 0.4], [1.0, -1.0, 1.1]]))
    v = model.constraints.project_velocity(q, rng.normal(size=(2, 3)))
    tau, dq, dv, dtau = rng.normal(size=(4, 2, 3))
    lin = model.linearize_forward(q, v, tau)
    one = model.linearize_forward(q[1], v[1], tau[1])
    for batch, single in zip(lin, one, strict=True):
        np.testing.assert_allclose(batch[1], single, rtol=0, atol=1e-12 * np.abs(single).max())
    along = model.perturb_forward(q, v, tau, dq, dv, dtau)
    expected = [lin.dq[k] @ dq[k] + lin.dv[k] @ dv[k] + lin.dtau[k] @ dtau[k] for k in range(2)]
    np.testing.assert_allclose(along, expected, atol=1e-10)


def test_state_space_of_the_independent_freedom_is_that_of_the_formula() -> None:
    """φ̈ = k sin φ, whatever moves: A = [0, 1; k cos φ, 0]."""
    n = 2
    model = samples.four_bar(n)
    pattern = np.array([1.0, -1.0] * n + [1.0])
    k = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81
    for phi, rate in ((0.0, 0.0), (0.5, 2.0), (2.0, -1.0)):
        q, v = phi * pattern, rate * pattern
        A, B = model.state_space(q, v, np.zeros(5))
        np.testing.assert_allclose(A, [[0.0, 1.0], [k * np.cos(phi), 0.0]], atol=1e-9)
        inertia = model.constraints.mass_matrix(q)[0, 0]
        sign = pattern[model.freedoms(q).independent[0]]
        np.testing.assert_allclose(B, [np.zeros(5), sign * pattern / inertia], atol=1e-9)
    A, B = model.state_space(0.0 * pattern, 0.0 * pattern, np.zeros(5), dt=0.1)
    w = np.sqrt(k)
    np.testing.assert_allclose(A[0], [np.cosh(0.1 * w), np.sinh(0.1 * w) / w], atol=1e-9)


def test_state_space_over_a_time_step_of_a_motion_is_that_of_the_formula() -> None:
    """φ̈ = k sin φ with its variational equations, by SciPy; the bars are over-constrained."""
    from scipy.integrate import solve_ivp

    n, dt = 2, 0.3
    model = samples.four_bar(n)
    pattern = np.array([1.0, -1.0] * n + [1.0])
    k = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81

    def rates(_: float, x: Any) -> Any:
        slope = k * np.cos(x[0])
        return [x[1], k * np.sin(x[0]), x[4], x[5], slope * x[2], slope * x[3]]

    end = solve_ivp(rates, (0.0, dt), [0.5, 2.0, 1.0, 0.0, 0.0, 1.0], rtol=1e-12, atol=1e-12).y[:, -1]
    q, v = 0.5 * pattern, 2.0 * pattern
    A, B = model.state_space(q, v, np.zeros(5), dt=dt)
    np.testing.assert_allclose(A, end[2:].reshape(2, 2), rtol=1e-7)
    # A force that is held adds a constant to φ̈.
    inertia = model.constraints.mass_matrix(q)[0, 0]

    def forced(u: float) -> Any:
        found = solve_ivp(lambda _, x: [x[1], k * np.sin(x[0]) + u], (0.0, dt), [0.5, 2.0], rtol=1e-12, atol=1e-12)
        return found.y[:, -1]

    sign = pattern[model.freedoms(q).independent[0]]
    np.testing.assert_allclose(B, np.outer((forced(1e-4) - forced(-1e-4)) / 2e-4, sign * pattern / inertia), rtol=1e-6)
