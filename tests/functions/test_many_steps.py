"""Rollouts on the CPU: the same as calling the step again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError, UnknownNameError


@pytest.fixture(scope="module")
def model() -> lw.Model:
    builder = lw.ModelBuilder("pendulum")
    builder.add_body(
        "rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01])
    )
    builder.add_body(
        "second", parent="rod", joint=lw.Revolute(axis=(1, 0, 0)), placement=lw.transform(xyz=(0, 0, -1)), mass=1.0,
        com=(0, 0, -0.5), inertia=np.diag([0.1, 0.1, 0.01]),
    )  # fmt: skip
    return builder.build()


@pytest.fixture(scope="module")
def step(model: lw.Model) -> lw.CompiledFunction:
    def euler(m: Any, q: Any, v: Any, tau: Any) -> Any:
        v = v + 0.01 * m.forward_dynamics(q, v, tau)
        return {"q": q + 0.01 * v, "power": v @ tau, "v": v}

    return lw.compile(euler, model, {"q": "q", "v": "v", "tau": "v"})


def by_hand(step: Any, q: Any, v: Any, taus: Any) -> list[Any]:
    history = []
    for tau in taus:
        after = step.general(q, v, tau)
        q, v = after.q, after.v
        history.append(after)
    return history


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1, 2), (0,), (2500,)])
def test_last_and_recorded(step: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, *shape, 2))
    history = by_hand(step, q, v, [tau] * 7)
    got = lw.rollout(step, 7)(q, v, tau)
    for name in ("q", "v", "power"):
        assert np.array_equal(getattr(got, name), getattr(history[-1], name))
    path = lw.rollout(step, 7, record=True)(q, v, tau)
    assert path.power.shape == (7, *shape)
    assert np.array_equal(path.q, np.stack([after.q for after in history]))


def test_sequences(step: Any) -> None:
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, 4, 2))
    taus = rng.normal(size=(6, 4, 2))
    got = lw.rollout(step, 6, sequences=["tau"])(q, v, taus)
    assert np.array_equal(got.q, by_hand(step, q, v, taus)[-1].q)
    common = taus[:, 0]
    got = lw.rollout(step, 6, sequences=["tau"])(q, v, common)
    assert np.array_equal(got.q, by_hand(step, q, v, common)[-1].q)


def test_float32_threads_and_out(step: Any) -> None:
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, 3000, 2)).astype(np.float32)
    one = lw.rollout(step, 5)(q, v, tau)
    assert one.q.dtype == np.float32
    two = lw.rollout(step, 5)(q, v, tau, threads=2)
    assert np.array_equal(one.q, two.q)
    out = (np.empty_like(q), np.empty(3000, np.float32), np.empty_like(v))
    result = lw.rollout(step, 5)(q, v, tau, out=out)
    assert result.q is out[0]
    assert np.array_equal(out[2], one.v)
    with pytest.raises(InputError, match="does not fit"):
        lw.rollout(step, 5)(q, v, tau, out=(out[0], out[1], out[2][:5]))


def test_inputs_are_left_alone(step: Any) -> None:
    q, v, tau = np.ones((3, 4, 2))
    lw.rollout(step, 3)(q, v, tau)
    assert (q == 1).all()
    assert (v == 1).all()


def test_a_single_result_goes_to_the_first_input(model: Any) -> None:
    double = lw.compile(lambda m, q: 2.0 * q, model, {"q": "q"})
    assert np.array_equal(lw.rollout(double, 10)([1.0, -1.0]), [1024.0, -1024.0])


def test_mistakes(model: Any, step: Any) -> None:
    for steps in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="steps is not a positive whole number"):
            lw.rollout(step, steps)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="taus"):
        lw.rollout(step, 3, sequences=["taus"])
    with pytest.raises(InputError, match="both fed back and a sequence"):
        lw.rollout(step, 3, sequences=["q"])
    with pytest.raises(InputError, match="nothing to repeat"):
        lw.rollout(lw.compile(lambda m, q: {"x": q, "y": q}, model, {"q": "q"}), 3)
    with pytest.raises(InputError, match="cannot become input 'q'"):
        lw.rollout(lw.compile(lambda m, q: {"q": q @ q}, model, {"q": "q"}), 3)
    with pytest.raises(InputError, match="one row for each step"):
        lw.rollout(step, 3, sequences=["tau"])(*np.ones((2, 2)), np.ones((4, 2)))


def test_what_is_not_compiled_says_so() -> None:
    with pytest.raises(InputError, match="not a compiled function"):
        lw.rollout(lambda q: q, 3)  # type: ignore[arg-type]  # wrong on purpose


def test_one_sequence_by_name_and_inputs_by_name(step: Any) -> None:
    q, v, taus = np.ones(2), np.zeros(2), np.arange(10.0).reshape(5, 2)
    whole = lw.rollout(step, 5, sequences="tau")
    expected = lw.rollout(step, 5, sequences=["tau"])(q, v, taus)
    for found in (whole(q, v, taus), whole(q, tau=taus, v=v), whole(q=q, v=v, tau=taus)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
    gradient = whole.value_and_gradient("tau", of="power")
    np.testing.assert_array_equal(gradient(q, v, tau=taus).gradient, gradient(q, v, taus).gradient)
    with pytest.raises(InputError, match="was not given tau"):
        whole(q, v=v)
    with pytest.raises(UnknownNameError, match="taus"):
        whole(q, v, taus=taus)


@pytest.mark.parametrize("batch", [(0,), (3, 0)])
@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("sequences", [(), ("tau",)])
@pytest.mark.parametrize("moves", [True, False])
def test_empty_batches_and_models_that_cannot_move(batch, record, sequences, moves):
    b = lw.ModelBuilder("rock")
    b.add_body("rock", joint=lw.Revolute(axis=(0, 1, 0)) if moves else lw.Fixed(), mass=1.0, inertia=np.eye(3))
    model = b.build()

    def euler(model, q, v, tau):
        v = v + 0.001 * model.forward_dynamics(q, v, tau)
        return {"q": q + 0.001 * v, "v": v}

    step = lw.compile(euler, model, inputs={"q": "q", "v": "v", "tau": "v"})
    n = model.nv
    for shape in (batch, (2,), ()):
        tau = np.zeros((*((5,) if sequences else ()), *shape, n))
        out = lw.rollout(step, 5, sequences=sequences, record=record)(np.zeros((*shape, n)), np.zeros((*shape, n)), tau)
        assert out.q.shape == (*((5,) if record else ()), *shape, n)


def test_out_is_checked_before_anything_runs(step: Any) -> None:
    whole, state = lw.rollout(step, 3), np.ones((3, 2))
    fixed = np.zeros(2)
    fixed.flags.writeable = False
    for out, message in (
        (np.zeros(2), "wrong length"),
        ((np.zeros(3), np.zeros(()), np.zeros(2)), "does not fit"),
        ((np.zeros(2), np.zeros(()), fixed), "read-only"),
    ):
        with pytest.raises(InputError, match=message):
            whole(*state, out=out)
