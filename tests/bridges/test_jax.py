"""Compiled functions under JAX's transformations: values, both modes, first and second order, batches, jit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree

jax = pytest.importorskip("jax", reason="needs the extra jax")
jnp = jax.numpy


@pytest.fixture(autouse=True)
def _in_double_precision() -> Iterator[None]:
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(11, 2, ("spherical", "revolute"))


@pytest.fixture(scope="module")
def state(model: lw.Model) -> tuple[np.ndarray, ...]:
    return random_state(model, np.random.default_rng(4))


@pytest.fixture(scope="module")
def arm() -> lw.Model:
    """Without quaternions, so that number by number is the tangent space."""
    return random_tree(3, 2, ("revolute",), mimic=0.0)


def energy(model: lw.Model) -> Any:
    return lw.as_jax(model.function("kinetic_energy"))


def test_all_ways_of_a_first_derivative(model: lw.Model, state: Any) -> None:
    q, v, x = state
    f = lw.as_jax(model.function("inverse_dynamics"))
    expected = model.linearize_inverse(q, v, x).dv
    for way in (jax.jacfwd, jax.jacrev):
        assert relative(way(f, argnums=1)(q, v, x), expected) < 1e-11
        assert relative(jax.jit(way(f, argnums=1))(q, v, x), expected) < 1e-11
    direction = np.arange(1.0, model.nv + 1)
    value, along = jax.jvp(lambda v: f(q, v, x), (jnp.asarray(v),), (jnp.asarray(direction),))
    assert relative(value, model.inverse_dynamics(q, v, x)) < 1e-12
    assert relative(along, expected @ direction) < 1e-11
    _, pull = jax.vjp(lambda v: f(q, v, x), jnp.asarray(v))
    assert relative(pull(jnp.asarray(direction))[0], expected.T @ direction) < 1e-11
    _, linear = jax.linearize(lambda v: f(q, v, x), jnp.asarray(v))
    assert relative(linear(jnp.asarray(direction)), expected @ direction) < 1e-11


@pytest.mark.parametrize("modes", ["fwd", "rev"])
def test_derivatives_by_differences_to_second_order(model: lw.Model, state: Any, modes: str) -> None:
    from jax.test_util import check_grads

    f = lw.as_jax(model.function("inverse_dynamics"))
    check_grads(f, [jnp.asarray(y) for y in state], order=2, modes=[modes])


def test_hessians(arm: lw.Model) -> None:
    q, v, _ = random_state(arm, np.random.default_rng(0))
    f = energy(arm)
    expected = arm.function("kinetic_energy").hessian("q")(q, v)
    ways = {
        "hessian": jax.hessian(f),
        "forward over forward": jax.jacfwd(jax.jacfwd(f)),
        "reverse over forward": jax.jacrev(jax.jacfwd(f)),
        "reverse over reverse": jax.jacrev(jax.jacrev(f)),
        "jit": jax.jit(jax.hessian(f)),
    }
    for name, way in ways.items():
        assert relative(way(q, v), expected) < 1e-10, name
    assert relative(jax.hessian(f, argnums=1)(q, v), arm.mass_matrix(q)) < 1e-11
    mixed = jax.jacfwd(jax.grad(f, argnums=1), argnums=0)(q, v)
    assert relative(mixed, arm.function("kinetic_energy").hessian("v", "q")(q, v)) < 1e-10


def test_third_order(arm: lw.Model) -> None:
    q, v, _ = random_state(arm, np.random.default_rng(0))
    f = energy(arm)
    third = jax.jacfwd(jax.hessian(f))(q, v)
    h = 1e-5
    hessian = jax.hessian(f)
    for j in range(arm.nv):
        d = h * np.eye(arm.nv)[j]
        assert relative((hessian(q + d, v) - hessian(q - d, v)) / (2 * h), third[..., j]) < 1e-6


def test_batches_and_maps(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(5), (3,))
    f = lw.as_jax(model.function("inverse_dynamics"))
    expected = model.inverse_dynamics(q, v, x[0])
    assert relative(f(q, v, x[0]), expected) < 1e-12
    assert relative(jax.vmap(f, in_axes=(0, 0, None))(q, v, x[0]), expected) < 1e-12
    assert relative(jax.vmap(f, in_axes=(1, 0, None), out_axes=1)(q.T, v, x[0]), expected.T) < 1e-12
    lin = model.linearize_inverse(q, v, x[0])
    for way in (jax.jacfwd, jax.jacrev):
        mapped = jax.jit(jax.vmap(way(f, argnums=1), in_axes=(0, 0, None)))
        assert relative(mapped(q, v, x[0]), lin.dv) < 1e-11
    # What was broadcast gets the sum of all derivatives.
    summed = jax.grad(lambda x: f(q, v, x).sum())(jnp.asarray(x[0]))
    assert relative(summed, lin.dvdot.sum(axis=(0, 1))) < 1e-11
    per_state = jax.vmap(jax.hessian(lambda q, v: energy(model)(q, v)))(q, v)
    assert per_state.shape == (3, model.nq, model.nq)


def test_several_outputs(model: lw.Model, state: Any) -> None:
    q, v, x = state
    lin = lw.as_jax(model.function("linearize_inverse"))
    found = lin(q, v, x)
    assert relative(found.dv, model.linearize_inverse(q, v, x).dv) < 1e-12
    first = jax.jacfwd(lambda v: lin(q, v, x).tau)(jnp.asarray(v))  # the other outputs have no weight
    assert relative(first, found.dv) < 1e-11
    assert relative(jax.jacrev(lambda v: lin(q, v, x).tau)(jnp.asarray(v)), found.dv) < 1e-11


def test_single_precision_and_whole_numbers(arm: lw.Model) -> None:
    f = energy(arm)
    q, v = jnp.zeros(arm.nq, jnp.float32), jnp.ones(arm.nv, jnp.float32)
    assert f(q, v).dtype == jnp.float32
    assert jax.grad(f)(q, v).dtype == jnp.float32
    assert f(jnp.zeros(arm.nq, int), jnp.ones(arm.nv, int)).dtype == jnp.float64


def test_inside_a_loop(arm: lw.Model) -> None:
    """A rollout as ``lax.scan`` writes it, and its gradient, beside ours."""
    f = lw.as_jax(arm.function("forward_dynamics"))
    tau = np.ones(arm.nv)

    def one(m: Any, q: Any, v: Any) -> Any:
        v = v + 0.01 * m.forward_dynamics(q, v, tau)
        return {"q": q + 0.01 * v, "v": v}

    def last(q: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            q, v = carry
            v = v + 0.01 * f(q, v, tau)
            return (q + 0.01 * v, v), None

        (q, _v), _ = jax.lax.scan(body, (q, jnp.zeros(arm.nv)), None, length=5)
        return (q * q).sum()

    q0 = np.full(arm.nq, 0.3)
    ours = lw.rollout(lw.compile(one, arm, {"q": "q", "v": "v"}), 5)
    end = ours(q0, np.zeros(arm.nv))
    back = ours.vjp("q")(q0, np.zeros(arm.nv), 2 * end.q, np.zeros(arm.nv))
    assert relative(jax.jit(jax.grad(last))(q0), back) < 1e-10


def test_mistakes_are_ours_to_tell(arm: lw.Model) -> None:
    with pytest.raises(InputError, match="takes 2 arrays"):
        energy(arm)(np.zeros(arm.nq))
    with pytest.raises(InputError, match="q has the wrong shape"):
        jax.jit(energy(arm))(np.zeros(arm.nq + 1), np.zeros(arm.nv))
    with pytest.raises(InputError, match="do not fit together"):
        energy(arm)(np.zeros((4, arm.nq)), np.zeros((5, arm.nv)))
    with pytest.raises(InputError, match="not a compiled function"):
        lw.as_jax(arm.kinetic_energy)


def test_arguments_by_name(arm: lw.Model) -> None:
    q, v, _ = random_state(arm, np.random.default_rng(4))
    assert float(jax.jit(energy(arm))(v=v, q=q)) == pytest.approx(float(arm.kinetic_energy(q, v)), rel=1e-14)


def test_steps_with_contact_in_reverse() -> None:
    """They have first derivatives alone, of which neither the transpose of a product nor a scan asks for more."""
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Free(), shape=lw.shapes.sphere(0.1, density=500))
    ball = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.3))
    step = ball.function("contact_step")
    f, dt = lw.as_jax(step), 0.002

    def speeds(v: Any) -> Any:
        def once(state: Any, _: Any) -> Any:
            q, v, impulses = state
            after = f(q, v, np.zeros(6), impulses, dt)
            return (after.q, after.v, after.impulses), after.v

        start = jnp.array([1.0, 0, 0, 0, 0, 0, 0.1]), v, jnp.zeros(3)
        return jax.lax.scan(once, start, None, length=3)[1][-1]

    v = jnp.array([0, 0, 0, 2.0, 0, -1.0])  # it slides
    forward, reverse = jax.jacfwd(speeds)(v), jax.jit(jax.jacrev(speeds))(v)
    assert relative(reverse, forward) < 1e-12
    assert abs(reverse[3, 5] - 0.3) < 0.01  # what falls faster is slowed down more, in axes that turn a little
