"""Derivatives of rollouts: those of the same steps written out as one function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError, UnknownNameError

STEPS, H = 4, 0.05


@pytest.fixture(scope="module")
def model() -> lw.Model:
    """With a quaternion, so that q̇ is not v."""
    rod = {"mass": 1.0, "com": (0.1, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01])}
    builder = lw.ModelBuilder("ball and hinge")
    builder.add_body("upper", joint=lw.Spherical(), **rod)
    builder.add_body(
        "lower", parent="upper", joint=lw.Revolute((1, 0, 0)), placement=lw.transform(xyz=(0, 0, -1)), **rod
    )
    return builder.build()


def euler(m: Any, q: Any, v: Any, tau: Any) -> tuple[Any, Any]:
    v = v + H * m.forward_dynamics(q, v, tau)
    return m.integrate(q, H * v), v


@pytest.fixture(scope="module")
def step(model: lw.Model) -> lw.CompiledFunction:
    def one(m: Any, q: Any, v: Any, cost: Any, tau: Any) -> Any:
        q, v = euler(m, q, v, tau)
        return {"q": q, "v": v, "cost": cost + v @ v + 0.1 * tau @ tau, "power": v @ tau}

    return lw.compile(one, model, {"q": "q", "v": "v", "cost": "scalar", "tau": "v"})


@pytest.fixture(scope="module")
def written_out(model: lw.Model) -> lw.CompiledFunction:
    """All steps, with a row of forces for each."""

    def all_steps(m: Any, q: Any, v: Any, cost: Any, taus: Any) -> Any:
        for tau in taus:
            q, v = euler(m, q, v, tau)
            cost = cost + v @ v + 0.1 * tau @ tau
        return {"q": q, "v": v, "cost": cost, "power": v @ taus[-1]}

    return lw.compile(all_steps, model, {"q": "q", "v": "v", "cost": "scalar", "taus": (STEPS, model.nv)})


@pytest.fixture(scope="module")
def state(model: lw.Model) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(3)])
    return q, rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(STEPS, 3, 4))


def test_reverse(step: Any, written_out: Any, state: Any) -> None:
    q, v, cost, taus = state
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=s) for s in ((3, 5), (3, 4), (3,), (3,))]
    found = lw.rollout(step, STEPS, sequences=["tau"]).vjp()(q, v, cost, taus, *weights)
    wanted = written_out.vjp()(q, v, cost, np.moveaxis(taus, 0, 1), *weights)
    assert found.q.shape == (3, 4)
    for name in ("q", "v", "cost"):
        assert np.allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-12)
    assert np.allclose(found.tau, np.moveaxis(wanted.taus, 1, 0), rtol=1e-10, atol=1e-12)


def test_forward(step: Any, written_out: Any, state: Any) -> None:
    q, v, cost, taus = state
    rng = np.random.default_rng(2)
    dq, dv, dtaus = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), rng.normal(size=(STEPS, 3, 4))
    found = lw.rollout(step, STEPS, sequences=["tau"]).jvp("q", "v", "tau")(q, v, cost, taus, dq, dv, dtaus)
    wanted = written_out.jvp("q", "v", "taus")(q, v, cost, np.moveaxis(taus, 0, 1), dq, dv, np.moveaxis(dtaus, 0, 1))
    for name in ("q", "v", "cost", "power"):
        assert np.allclose(getattr(found, name), getattr(wanted, name), rtol=1e-10, atol=1e-12)


def test_forces_that_stay(step: Any, state: Any) -> None:
    """Both modes say the same of an input that is neither fed back nor a sequence."""
    q, v, cost, taus = (x[..., 0, :] if x.ndim > 1 else x[0] for x in state)
    tau = taus[0]
    many = lw.rollout(step, 30)
    _, gradient = many.value_and_gradient("tau", of="cost")(q, v, cost, tau)
    for j in range(4):
        assert np.isclose(many.jvp("tau")(q, v, cost, tau, np.eye(4)[j]).cost, gradient[j], rtol=1e-10)


def test_value_and_gradient_by_differences(step: Any, model: lw.Model, state: Any) -> None:
    q, v, cost, taus = state
    many = lw.rollout(step, STEPS, sequences=["tau"])
    found = many.value_and_gradient("q", "tau", of="cost")(q, v, cost, taus)
    assert np.array_equal(found.value, many(q, v, cost, taus).cost)
    h = 1e-6
    for j in range(model.nv):
        d = h * np.eye(model.nv)[j]
        ahead, behind = (many(model.integrate(q, s * d), v, cost, taus).cost for s in (1, -1))
        assert np.allclose((ahead - behind) / (2 * h), found.d_q[:, j], rtol=1e-6, atol=1e-6)
        there, back = taus.copy(), taus.copy()
        there[1, :, j] += h
        back[1, :, j] -= h
        slope = (many(q, v, cost, there).cost - many(q, v, cost, back).cost) / (2 * h)
        assert np.allclose(slope, found.d_tau[1, :, j], rtol=1e-6, atol=1e-6)


def test_recorded_steps_have_weights_each(step: Any, state: Any) -> None:
    q, v, cost, taus = state
    many = lw.rollout(step, STEPS, sequences=["tau"], record=True)
    value, gradient = many.value_and_gradient("v", of="power")(q, v, cost, taus)
    assert np.allclose(value, many(q, v, cost, taus).power.sum(0))
    h = 1e-6
    for j in range(4):
        d = h * np.eye(4)[j]
        ahead, behind = (many(q, v + s * d, cost, taus).power.sum(0) for s in (1, -1))
        assert np.allclose((ahead - behind) / (2 * h), gradient[:, j], rtol=1e-6, atol=1e-6)


def test_single_precision_and_pieces(step: Any, state: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    q, v, cost, taus = state
    many = lw.rollout(step, STEPS, sequences=["tau"]).value_and_gradient("v", of="cost")
    whole = many(q, v, cost, taus)
    monkeypatch.setattr("linkwise.functions.many_steps._KEPT_NUMBERS", 1)
    assert np.array_equal(many(q, v, cost, taus).gradient, whole.gradient)
    single = many(*(x.astype(np.float32) for x in (q, v, cost, taus)))
    assert single.gradient.dtype == np.float32
    assert np.allclose(single.gradient, whole.gradient, rtol=1e-4, atol=1e-4)


def test_one_unnamed_output() -> None:
    builder = lw.ModelBuilder("none")
    builder.add_body("a", joint=lw.Prismatic((1, 0, 0)), mass=1.0)
    f = lw.compile(lambda m, x: x * x, builder.build(), {"x": 1})
    many = lw.rollout(f, 3)  # x⁸
    assert np.allclose(many.jvp()(np.array([1.1]), np.array([1.0])), 8 * 1.1**7)
    assert np.allclose(many.vjp("x")(np.array([1.1]), np.array([1.0])), 8 * 1.1**7)


def test_mistakes(step: Any, state: Any) -> None:
    many = lw.rollout(step, STEPS)
    with pytest.raises(UnknownNameError):
        many.vjp("x")
    for derivative in (many.jvp, many.vjp, many.value_and_gradient, step.jvp, step.vjp, step.gradient):
        with pytest.raises(InputError, match="names first, arrays go into what comes out"):
            derivative(state[0])
    with pytest.raises(InputError, match="one number"):
        many.value_and_gradient("q")  # cost or power?
    with pytest.raises(UnknownNameError):
        many.value_and_gradient("q", of="q")
    with pytest.raises(InputError, match="name of an input"):
        many.value_and_gradient()
    with pytest.raises(InputError, match="takes 8 arrays"):
        many.vjp()(*state)
    with pytest.raises(InputError, match="takes 5 arrays"):
        many.jvp("q")(*state)


def test_value_and_gradient_of_a_function(model: lw.Model) -> None:
    f = lw.compile(lambda m, q, v: m.kinetic_energy(q, v), model, {"q": "q", "v": "v"})
    rng = np.random.default_rng(5)
    q, v = np.array([model.random_configuration(rng) for _ in range(6)]), rng.normal(size=(6, 4))
    found = f.value_and_gradient("q")(q, v)
    assert np.array_equal(found.value, f(q, v))
    assert np.allclose(found.gradient, f.gradient("q")(q, v), atol=1e-13)
    both = f.value_and_gradient("q", "v")(q[0], v[0])
    assert np.allclose(both.d_v, model.mass_matrix(q[0]) @ v[0])
    assert np.allclose(both.d_q, found.gradient[0])
    # Together they cost less than one after the other.
    together, one, other = (g.program.length for g in (f.value_and_gradient("v"), f, f.gradient("v")))
    assert together < one + other
    with pytest.raises(InputError, match="single number"):
        lw.compile(lambda m, q: q, model, {"q": "q"}).value_and_gradient("q").program  # noqa: B018
    with pytest.raises(InputError, match="name of an input"):
        f.value_and_gradient()
