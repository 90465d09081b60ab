"""State space, discrete steps, sensitivities, and regulators that balance what falls over by itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

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


def _pendulums(kind: str) -> lw.Model:
    b = lw.ModelBuilder("pendulums", gravity=(0.0, 0.0, -9.81))
    body = {"mass": 1.5, "com": (0.0, 0.0, -0.6), "inertia": np.diag([0.1, 0.12, 0.05])}
    joint = {"hinge": lw.Revolute(axis=(0, 1, 0)), "ball": lw.Spherical(), "cardan": lw.Universal()}[kind]
    b.add_body("upper", joint=joint, **body)
    b.add_body("lower", "upper", lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0, 0, -1.1)), **body)
    return b.build()


@pytest.mark.parametrize("dt", [1e-6, 1e-3, 0.03, 0.3, 1.0, 3.0, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("kind", ["hinge", "ball", "cardan"])
def test_at_rest_discrete_is_the_exponential(kind: str, dt: float) -> None:
    """Of the hanging pendulums, for steps of 1e-5 to 1e5 radians, and of the standing ones, as far as they grow."""
    model = _pendulums(kind)
    still = np.zeros(model.nv)
    hanging = model.neutral()
    states = [hanging]
    if dt < 5.0:
        standing = np.r_[np.pi, np.zeros(model.nv - 1)]
        states.append(model.integrate(hanging, np.r_[0.0, np.pi, 0.0, 0.0] if kind == "ball" else standing))
    for q in states:
        tau = model.bias_force(q, still)
        A, B = model.state_space(q, still, tau)
        n = model.nv
        whole = scipy.linalg.expm(dt * np.block([[A, B], [np.zeros((n, 3 * n))]]))
        found = model.state_space(q, still, tau, dt=dt)
        tolerance = 1e-13 * max(1.0, np.abs(np.linalg.eigvals(A)).max() * dt)
        assert relative(found.A, whole[: 2 * n, : 2 * n]) < tolerance
        assert relative(found.B, whole[: 2 * n, 2 * n :]) < tolerance
        if q is hanging:
            assert np.linalg.det(found.A) == pytest.approx(1.0, abs=max(1e-12, 1e2 * tolerance))


def test_an_oscillator_far_beyond_its_period() -> None:
    b = lw.ModelBuilder("pendulum")
    b.add_body("a", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -9.81))
    model = b.build()  # ω = 1/s
    for dt in (0.1, 30.0, 1000.0):
        A, B = model.state_space(np.zeros(1), np.zeros(1), np.zeros(1), dt=dt)
        c, s = np.cos(dt), np.sin(dt)
        np.testing.assert_allclose(A, [[c, s], [-s, c]], atol=1e-14 * max(1.0, dt))
        np.testing.assert_allclose(B[:, 0] * 9.81**2, [1 - c, s], atol=1e-14 * max(1.0, dt))


@pytest.mark.parametrize("types", [("free", "revolute"), ("revolute", "prismatic"), ("planar", "universal", "helical")])
@pytest.mark.parametrize("dt", [pytest.param(0.02, marks=pytest.mark.slow), 0.2])
def test_in_motion_discrete_is_the_derivative_of_the_motion(types: tuple[str, ...], dt: float) -> None:
    """Not of a step of some method: of the exact motion, here very many small steps."""
    rng = np.random.default_rng(1)
    model = random_tree(rng, 3, types)
    q, v, tau = random_state(model, rng)
    n, h, steps = model.nv, 1e-4, 100

    def end(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        forces = np.tile(tau + x[2 * n :], (steps, 1))
        moved = model.sensitivity(model.integrate(q, x[:n]), v + x[n : 2 * n], forces, dt / steps)
        return moved.q[-1], moved.v[-1]

    def change(e: np.ndarray) -> np.ndarray:
        near = (_state_difference(model, *here, *end(e)) - _state_difference(model, *here, *end(-e))) / (2 * h)
        far = (_state_difference(model, *here, *end(2 * e)) - _state_difference(model, *here, *end(-2 * e))) / (4 * h)
        return (4 * near - far) / 3

    here = end(np.zeros(3 * n))
    found = model.state_space(q, v, tau, dt=dt)
    exact = model.sensitivity(q, v, np.tile(tau, (steps, 1)), dt / steps).dx0[-1]
    assert relative(found.A, exact) < 1e-7
    column = int(rng.integers(n))
    assert relative(found.B[:, column], change(np.eye(3 * n)[2 * n + column] * h)) < 1e-6


def test_a_batch_is_its_states() -> None:
    model = random_tree(5, 3, ("spherical", "revolute", "planar"))
    q, v, tau = random_state(model, np.random.default_rng(5), (2, 3))
    whole = model.state_space(q, v, tau, dt=0.01)
    assert whole.A.shape == (2, 3, 2 * model.nv, 2 * model.nv)
    for k in np.ndindex(2, 3):
        one = model.state_space(q[k], v[k], tau[k], dt=0.01)
        assert relative(whole.A[k], one.A) < 1e-8  # all states take the steps that the fastest needs
        assert relative(whole.B[k], one.B) < 1e-8
    broadcast = model.state_space(q, np.zeros(model.nv), tau[0, 0], dt=0.01)
    assert broadcast.B.shape == (2, 3, 2 * model.nv, model.nv)


def test_a_state_that_is_no_number_does_not_touch_the_others() -> None:
    model = _pendulums("ball")
    q, v, tau = random_state(model, np.random.default_rng(6), (4,))
    q[3], v[3] = model.neutral(), 0.0
    clean = model.state_space(q, v, tau, dt=0.05)
    q[0, 1], v[1, 2] = np.nan, np.inf
    found = model.state_space(q, v, tau, dt=0.05)
    assert np.isnan(found.A[:2]).all()
    assert relative(found.A[2:], clean.A[2:]) < 1e-8
    assert np.isnan(model.state_space(q[0], v[0], tau[0], dt=0.05).B).all()


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
    tau, p, dt, h = rng.normal(size=(20, model.nv)), model.parameters.nominal, 0.01, 1e-6
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
