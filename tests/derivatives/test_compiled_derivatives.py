"""Derivatives of any compiled function."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(7, 4, ("revolute", "spherical", "planar", "prismatic"), name="some")


def test_jacobian_in_both_modes_is_the_linearised_dynamics(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(0), (3,))
    f = model.function("inverse_dynamics")
    expected = model.linearize_inverse(q, v, x)
    for mode in ("forward", "reverse"):
        for name, field in (("q", "dq"), ("v", "dv"), ("vdot", "dvdot")):
            assert relative(f.jacobian(name, mode)(q, v, x), getattr(expected, field)) < 1e-11  # type: ignore[arg-type]


def test_products(model: lw.Model) -> None:
    rng = np.random.default_rng(1)
    q, v, x = random_state(model, rng)
    f = model.function("linearize_forward")  # several outputs
    assert f.result_type is not None
    J = f.jacobian("q")(q, v, x)
    d = rng.normal(size=model.nv)
    along = f.jvp("q")(q, v, x, d)
    for field in J._fields:
        assert relative(getattr(along, field), getattr(J, field) @ d) < 1e-10
    g = model.function("inverse_dynamics")
    w, lin = rng.normal(size=model.nv), model.linearize_inverse(q, v, x)
    back = g.vjp()(q, v, x, w)
    assert back._fields == ("q", "v", "vdot")
    for ours, matrix in zip(back, lin[1:], strict=True):
        assert relative(ours, w @ matrix) < 1e-11
    assert relative(g.vjp("v")(q, v, x, w), w @ lin.dv) < 1e-11
    dv, da = rng.normal(size=(2, model.nv))
    assert relative(g.jvp()(q, v, x, d, dv, da), lin.dq @ d + lin.dv @ dv + lin.dvdot @ da) < 1e-11


def test_gradient_and_hessian_of_energy(model: lw.Model) -> None:
    q, v, _ = random_state(model, np.random.default_rng(2))
    energy = lw.compile(lambda m, q, v: m.kinetic_energy(q, v) + m.potential_energy(q), model, {"q": "q", "v": "v"})
    assert energy.gradient("v")(q, v).shape == (model.nv,)
    assert relative(energy.gradient("v")(q, v), model.mass_matrix(q) @ v) < 1e-11
    assert relative(energy.gradient("q")(q, 0 * v), model.gravity_force(q)) < 1e-11
    assert relative(energy.hessian("v")(q, v), model.mass_matrix(q)) < 1e-11
    mixed = energy.hessian("v", "q")(q, v)
    h = 1e-6
    for j, e in enumerate(np.eye(model.nv) * h):
        ahead, behind = (model.mass_matrix(model.integrate(q, s * e)) @ v for s in (1, -1))
        assert relative(mixed[:, j], (ahead - behind) / (2 * h)) < 1e-7


def test_vector_gradient_is_the_transposed_jacobian(model: lw.Model) -> None:
    q, _, _ = random_state(model, np.random.default_rng(3), (2,))
    f = model.function("center_of_mass")
    np.testing.assert_allclose(f.gradient("q")(q), np.swapaxes(f.jacobian("q")(q), -1, -2))


def test_tangent_only_where_the_input_is_a_configuration(model: lw.Model) -> None:
    q, _, _ = random_state(model, np.random.default_rng(4))
    tangent = lw.compile(lambda m, q: m.center_of_mass(q), model, {"q": "q"})
    plain = lw.compile(lambda m, x: m.center_of_mass(x), model, {"x": model.nq})
    assert tangent.jacobian("q")(q).shape == (3, model.nv)
    assert plain.jacobian("x")(q).shape == (3, model.nq)
    rate = np.stack([model.configuration_rate(q, e) for e in np.eye(model.nv)], -1)
    assert relative(plain.jacobian("x")(q) @ rate, tangent.jacobian("q")(q)) < 1e-11


def test_with_respect_to_parameters() -> None:
    base = random_tree(5, 3, ("revolute", "prismatic"), structured=0.0)
    first, last = base.bodies[0].name, base.bodies[-1].name
    model = base.with_parameters([f"{first}.mass", f"{last}.com", f"{last}.inertia", f"{first}.xyz", "gravity"])
    q, v, x = random_state(model, np.random.default_rng(5))
    p = model.parameters.nominal
    for name in ("inverse_dynamics", "forward_dynamics"):
        f = model.function(name)
        J = f.jacobian("p")(q, v, x, p)
        assert J.shape == (model.nv, len(p))
        for j, e in enumerate(np.eye(len(p)) * 1e-6):
            assert relative(J[:, j], (f(q, v, x, p + e) - f(q, v, x, p - e)) / 2e-6) < 1e-7


def test_matrix_inputs_and_piecewise_functions() -> None:
    model = random_tree(0, 1, ("revolute",))

    def fn(m: lw.Model, x: np.ndarray, a: object) -> object:
        y = x[0, 0] * x[1, 2] + lw.math.where(x[0, 1] < 0.0, x[0, 1] * a, lw.math.sin(x[0, 1]))
        return {"y": y, "z": np.array([abs(x[1, 0]), lw.math.exp(x[1, 1])])}

    f = lw.compile(fn, model, {"x": (2, 3), "a": "scalar"})
    x, a = np.array([[0.5, -1.2, 3.0], [-0.3, 0.7, 2.0]]), 1.7
    J = f.jacobian("x")(x, a)
    assert J.y.shape == (2, 3)
    assert J.z.shape == (2, 2, 3)
    np.testing.assert_allclose(J.y, [[2.0, a, 0.0], [0.0, 0.0, 0.5]])
    np.testing.assert_allclose(J.z[0], [[0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    np.testing.assert_allclose(f.jacobian("a")(x, a).y, -1.2)


def test_unknown_inputs_are_named(model: lw.Model) -> None:
    with pytest.raises(lw.errors.UnknownNameError, match="vdot"):
        model.function("inverse_dynamics").jacobian("vdto")
    with pytest.raises(lw.InputError, match="forward"):
        model.function("inverse_dynamics").jacobian("q", "sideways")  # type: ignore[arg-type]


def test_derivatives_are_made_once(model: lw.Model) -> None:
    f = model.function("inverse_dynamics")
    assert f.jacobian("q") is f.jacobian("q")


def test_products_of_products() -> None:
    """A derivative of a derivative by the same input: two directions, not one taken for both."""
    model = random_tree(3, 2, ("revolute",), mimic=0.0)
    f = model.function("kinetic_energy")
    rng = np.random.default_rng(0)
    q, v, one, other = rng.normal(size=(4, model.nv))
    H = f.hessian("q")(q, v)
    assert np.isclose(f.jvp("q").jvp("q")(q, v, one, other), one @ H @ other, rtol=1e-10)
    assert np.allclose(f.vjp("q").jvp("q")(q, v, 2.0, other), 2.0 * H @ other, rtol=1e-10)
    assert np.allclose(f.vjp("q").vjp("q")(q, v, 2.0, other), 2.0 * H.T @ other, rtol=1e-10)
