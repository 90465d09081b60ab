"""State space, discrete steps, sensitivities, and regulators that balance what falls over by itself."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree


def _state_difference(model: lw.Model, q0: np.ndarray, v0: np.ndarray, q1: np.ndarray, v1: np.ndarray) -> np.ndarray:
    return np.concatenate([model.difference(q0, q1), v1 - v0])


def test_continuous_is_the_limit_of_discrete() -> None:
    rng = np.random.default_rng(0)
    model = random_tree(rng, 3, ("spherical", "revolute", "planar"))
    q, v, tau = random_state(model, rng)
    A, B = model.state_space(q, v, tau)
    assert A.shape == (2 * model.nv, 2 * model.nv)
    assert B.shape == (2 * model.nv, model.nv)
    h = 1e-6
    ahead, behind = model.state_space(q, v, tau, dt=h), model.state_space(q, v, tau, dt=2 * h)
    eye = np.eye(2 * model.nv)
    assert relative(2 * (ahead.A - eye) / h - (behind.A - eye) / (2 * h), A) < 1e-6
    assert relative(2 * ahead.B / h - behind.B / (2 * h), B) < 1e-6


def test_discrete_is_the_derivative_of_a_step() -> None:
    rng = np.random.default_rng(1)
    model = random_tree(rng, 2, ("free", "revolute"))
    q, v, tau = random_state(model, rng)
    n, dt, h = model.nv, 0.02, 1e-5

    def step(x: np.ndarray) -> np.ndarray:
        moved = model.sensitivity(model.integrate(q, x[:n]), v + x[n : 2 * n], (tau + x[2 * n :])[None], dt)
        return _state_difference(model, end.q[1], end.v[1], moved.q[1], moved.v[1])

    end = model.sensitivity(q, v, tau[None], dt)
    J = np.stack([(step(e) - step(-e)) / (2 * h) for e in np.eye(3 * n) * h], -1)
    assert relative(np.hstack(model.state_space(q, v, tau, dt=dt)), J) < 1e-7


def test_steps_are_of_order_four_on_the_manifold() -> None:
    rng = np.random.default_rng(2)
    model = random_tree(rng, 2, ("free", "spherical"))
    q, v, tau = random_state(model, rng)

    def end(steps: int) -> tuple[np.ndarray, np.ndarray]:
        trajectory = model.sensitivity(q, v, np.tile(0.2 * tau, (steps, 1)), 0.1 / steps)
        return trajectory.q[-1], trajectory.v[-1]

    exact = end(128)
    errors = [np.abs(_state_difference(model, *exact, *end(steps))).max() for steps in (4, 8, 16)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 3.6).all(), orders


def test_sensitivity_to_start_and_parameters() -> None:
    base = random_tree(6, 3, ("revolute", "spherical", "prismatic"), structured=0.0)
    body = base.bodies[-1].name
    model = base.with_parameters([f"{body}.mass", f"{body}.com"])
    rng = np.random.default_rng(3)
    q, v, _ = random_state(model, rng)
    tau, p, dt, h = rng.normal(size=(20, model.nv)), model.nominal_parameters, 0.01, 1e-6
    found = model.sensitivity(q, v, tau, dt, p=p)
    assert found.dx0.shape == (21, 2 * model.nv, 2 * model.nv)
    assert found.dp.shape == (21, 2 * model.nv, len(p))
    for j, e in enumerate(np.eye(len(p)) * h):
        a, b = (model.sensitivity(q, v, tau, dt, p=p + s * e) for s in (1, -1))
        slope = _state_difference(model, b.q[-1], b.v[-1], a.q[-1], a.v[-1]) / (2 * h)
        assert relative(found.dp[-1][:, j], slope) < 1e-6
    n = model.nv
    for j, e in enumerate(np.eye(2 * n) * h):
        a, b = (model.sensitivity(model.integrate(q, s * e[:n]), v + s * e[n:], tau, dt, p=p) for s in (1, -1))
        slope = _state_difference(model, b.q[-1], b.v[-1], a.q[-1], a.v[-1]) / (2 * h)
        assert relative(found.dx0[-1][:, j], slope) < 1e-6


def _acrobot() -> lw.Model:
    b = lw.ModelBuilder("acrobot")
    rod = {"mass": 1.0, "com": (0.0, 0.0, -0.5), "inertia": np.diag([0.1, 0.1, 0.0])}
    b.add_body("upper", joint=lw.Revolute(axis=(0, 1, 0)), **rod)
    b.add_body(
        "lower", parent="upper", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(0, 0, -1)), **rod
    )
    return b.build()


def test_lqr_balances_the_acrobot() -> None:
    control = pytest.importorskip("control", reason="needs python-control")
    model = _acrobot()
    upright, still = np.array([np.pi, 0.0]), np.zeros(2)
    A, B = model.state_space(upright, still, still)
    K, _, poles = control.lqr(A, B[:, 1:], np.eye(4), np.eye(1))  # the elbow alone is driven
    assert np.real(np.linalg.eigvals(A)).max() > 1.0  # falls by itself
    assert np.real(poles).max() < 0.0
    K = np.asarray(K)
    q, v, dt = upright + np.array([0.03, -0.02]), still, 0.01
    for _ in range(1500):
        x = _state_difference(model, upright, still, q, v)
        step = model.sensitivity(q, v, np.array([[0.0, float((-K @ x)[0])]]), dt)
        q, v = step.q[1], step.v[1]
    assert np.abs(_state_difference(model, upright, still, q, v)).max() < 1e-4


def test_discrete_lqr_turns_a_floating_body() -> None:
    """A satellite with one reaction wheel about each axis, driven by the wheels alone, comes to rest pointing home."""
    control = pytest.importorskip("control", reason="needs python-control")
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=10.0, inertia=np.diag([1.0, 1.2, 0.8]))
    for axis in range(3):
        name, direction = f"wheel{axis}", tuple(np.eye(3)[axis])
        inertia = np.diag([0.005] * 3)
        b.add_body(name, parent="hub", joint=lw.Revolute(axis=direction), mass=0.1, inertia=inertia)
    model = b.build()
    home, still, dt = model.neutral(), np.zeros(model.nv), 0.05
    A, B = model.state_space(home, still, still, dt=dt)
    n = model.nv
    kept = [0, 1, 2, n, n + 1, n + 2]  # attitude and its rate: the wheels' angles and the position are free
    K, _, _ = control.dlqr(A[np.ix_(kept, kept)], B[kept][:, 6:], np.eye(6), np.eye(3))
    q, v = model.integrate(home, np.r_[0.4, -0.3, 0.5, np.zeros(n - 3)]), still
    for _ in range(600):
        x = _state_difference(model, home, still, q, v)[kept]
        step = model.sensitivity(q, v, np.r_[np.zeros(6), -np.asarray(K) @ x][None], dt)
        q, v = step.q[1], step.v[1]
    assert np.abs(_state_difference(model, home, still, q, v)[kept]).max() < 1e-4


def test_time_steps_are_checked() -> None:
    model = _acrobot()
    with pytest.raises(lw.InputError, match="time step"):
        model.state_space(np.zeros(2), np.zeros(2), np.zeros(2), dt=-0.1)
    with pytest.raises(lw.InputError, match="steps"):
        model.sensitivity(np.zeros(2), np.zeros(2), np.zeros(2), 0.1)
