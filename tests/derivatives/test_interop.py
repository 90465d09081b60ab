"""Other libraries' scalars, vectors and automatic differentiation around the same algorithms."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
import sympy as sp

import linkwise as lw
from linkwise.interop import as_jax, as_torch
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(11, 2, ("spherical", "revolute"))


def test_casadi_vectors(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(0))
    Q, V, X = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("x", model.nv)
    tau = model.inverse_dynamics(Q, V, X)
    lin = model.linearize_forward(Q, V, X)
    assert isinstance(tau, ca.SX)
    assert lin.dq.shape == (model.nv, model.nv)
    f = ca.Function("f", [Q, V, X], [tau, lin.dq, ca.jacobian(tau, V), model.kinetic_energy(Q, V)])
    found = [np.array(y) for y in f(q, v, x)]
    assert relative(found[0].ravel(), model.inverse_dynamics(q, v, x)) < 1e-11
    assert relative(found[1], model.linearize_forward(q, v, x).dq) < 1e-10
    assert relative(found[2], model.linearize_inverse(q, v, x).dv) < 1e-11
    assert relative(found[3], model.kinetic_energy(q, v)) < 1e-11
    assert isinstance(model.gravity_force(ca.MX.sym("q", model.nq)), ca.MX)


def test_casadi_differentiates_our_derivatives(model: lw.Model) -> None:
    q, v, x = random_state(model, np.random.default_rng(1))
    V = ca.SX.sym("v", model.nv)
    lin = model.linearize_inverse(q, V, x)
    f = ca.Function("f", [V], [ca.jacobian(ca.vec(lin.dv.T), V)])
    second = model.linearize_inverse(q, v, x, order=2).dvdv
    assert relative(np.array(f(v)).reshape(second.shape), second) < 1e-10


def test_sympy_matrices() -> None:
    b = lw.ModelBuilder("double pendulum")
    rod = {"mass": 1.0, "com": (0.0, 0.0, -0.5), "inertia": np.diag([0.1, 0.1, 0.0])}
    b.add_body("upper", joint=lw.Revolute(axis=(0, 1, 0)), **rod)
    b.add_body(
        "lower", parent="upper", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(0, 0, -1)), **rod
    )
    model = b.build()
    q, v, a = (sp.Matrix(sp.symbols(f"{letter}1:3")) for letter in "qva")
    tau = model.inverse_dynamics(q, v, a)
    lin = model.linearize_inverse(q, v, a)
    assert isinstance(tau, sp.MatrixBase)
    values = dict(zip((*q, *v, *a), np.random.default_rng(2).normal(size=6), strict=True))
    for ours, theirs in ((lin.dq, tau.jacobian(q)), (lin.dv, tau.jacobian(v)), (lin.dvdot, tau.jacobian(a))):
        assert relative(np.array(ours.subs(values), float), np.array(theirs.subs(values), float)) < 1e-10
    program = model.function("inverse_dynamics").jacobian("q")  # a derived program, on symbols
    again = program.general(q, v, a)
    assert relative(np.array(again.subs(values), float), np.array(lin.dq.subs(values), float)) < 1e-10


def test_torch(model: lw.Model) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    rng = np.random.default_rng(3)
    q, v, x = random_state(model, rng, (2,))
    tensors = [torch.tensor(y, requires_grad=True) for y in (q, v, x[0])]  # the last one is broadcast
    f = as_torch(model.function("inverse_dynamics"))
    np.testing.assert_allclose(f(*tensors).detach().numpy(), model.inverse_dynamics(q, v, x[0]))
    assert torch.autograd.gradcheck(f, tensors)
    assert torch.autograd.gradgradcheck(f, tensors)
    lin = as_torch(model.function("linearize_inverse"))
    assert torch.autograd.gradcheck(lambda *y: lin(*y).dv, tensors)
    weights = torch.tensor(rng.normal(size=(2, model.nv)))
    (grad,) = torch.autograd.grad((f(*tensors) * weights).sum(), [tensors[1]])
    expected = np.einsum("bi,bij->bj", weights.numpy(), model.linearize_inverse(q, v, x[0]).dv)
    assert relative(grad.numpy(), expected) < 1e-11


def test_jax(model: lw.Model) -> None:
    jax = pytest.importorskip("jax", reason="needs the extra jax")
    from jax.test_util import check_grads

    q, v, x = random_state(model, np.random.default_rng(4), (2,))
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        f = as_jax(model.function("inverse_dynamics"))
        arrays = [jax.numpy.asarray(y) for y in (q, v, x[0])]
        np.testing.assert_allclose(jax.jit(f)(*arrays), model.inverse_dynamics(q, v, x[0]))
        check_grads(f, arrays, order=2, modes=["rev"])
        assert jax.vmap(f, in_axes=(0, 0, None))(*arrays).shape == (2, model.nv)
        grad = jax.jit(jax.vmap(jax.grad(lambda v, q: f(q, v, arrays[2]).sum())))(arrays[1], arrays[0])
        assert relative(grad, model.linearize_inverse(q, v, x[0]).dv.sum(-2)) < 1e-11
