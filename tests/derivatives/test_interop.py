"""Other libraries' scalars, vectors and automatic differentiation around the same algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp

import linkwise as lw
from tests.derivatives.differences import relative
from tests.random_trees import random_state, random_tree


@pytest.fixture(scope="module")
def ca() -> Any:
    return pytest.importorskip("casadi")


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(11, 2, ("spherical", "revolute"))


def test_casadi_vectors(model: lw.Model, ca: Any) -> None:
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


def test_casadi_differentiates_our_derivatives(model: lw.Model, ca: Any) -> None:
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
