"""Functions for CasADi: values, Jacobians and second derivatives beside CasADi's own of the same symbols."""

import shutil

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm

casadi = pytest.importorskip("casadi")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def by_symbols(model, fn, sizes):
    """The same function, traced by CasADi."""
    x = [casadi.SX.sym(f"x{k}", size) for k, size in enumerate(sizes)]
    arrays = [np.array([s[i] for i in range(size)], object) for s, size in zip(x, sizes, strict=True)]
    return casadi.Function("symbols", x, [casadi.vertcat(*np.ravel(fn(model, *arrays)))])


def test_derivatives_are_casadis_own_and_as_sparse(tmp_path):
    model = planar_arm(3)

    def step(model, q, v, tau):
        v = v + 0.1 * model.forward_dynamics(q, v, tau)
        return np.concatenate([q + 0.1 * v, v])

    f = lw.compile(step, model, inputs={"q": "q", "v": "v", "tau": "v"})
    made = lw.control.emit_casadi(f, tmp_path)
    ours, symbols = casadi.external(made.name, str(made.library)), by_symbols(model, step, (3, 3, 3))
    assert ours.name_in() == ["q", "v", "tau"]
    rng = np.random.default_rng(0)
    x = [rng.normal(size=3) for _ in range(3)]
    np.testing.assert_allclose(np.array(ours(*x)).ravel(), f(*x), rtol=1e-13)
    free = casadi.MX.sym("x", 9)
    parts = (free[:3], free[3:6], free[6:])
    weights = rng.normal(size=6)
    for order in (1, 2):
        values = []
        for function in (ours, symbols):
            if order == 1:
                found = casadi.jacobian(function(*parts), free)
            else:
                found, _ = casadi.hessian(casadi.dot(function(*parts), weights), free)
            values.append(np.array(casadi.DM(casadi.Function("d", [free], [found])(np.concatenate(x)))))
        np.testing.assert_allclose(values[0], values[1], atol=1e-10 * np.abs(values[1]).max())
    pattern = ours.jacobian().sparsity_out(2)  # by the torques: all there; by q: the rows of q have 1 beside the rest
    assert pattern.nnz() == 18


def test_entries_that_are_zero_by_structure_are_left_out(tmp_path):
    f = lw.compile(
        lambda model, q, v: {"a": q * v, "M": np.array([[q[0], 0.0, v[1]], [0.0, q[1], 0.0]])},
        planar_arm(2),
        inputs={"q": "q", "v": "v"},
        name="parts",
    )
    made = lw.control.emit_casadi(f, tmp_path)
    g = casadi.external(made.name, str(made.library))
    assert g.size_out(1) == (2, 3) and g.nnz_out(1) == 3
    a, M = g([2.0, 3.0], [5.0, 7.0])
    assert np.array(a).ravel().tolist() == [10.0, 21.0]
    assert np.array(M).tolist() == [[2.0, 0.0, 7.0], [0.0, 3.0, 0.0]]
    assert g.jacobian().sparsity_out(0).nnz() == 2  # ∂a/∂q is diagonal


def test_ipopt_finds_the_swing_that_symbols_give_with_as_many_iterations(tmp_path):
    """A swing of an arm against gravity, by direct multiple shooting, exact second derivatives."""
    model, N, dt = planar_arm(2), 15, 0.05

    def step(model, q, v, tau):
        v = v + dt * model.forward_dynamics(q, v, tau)
        return np.concatenate([q + dt * v, v])

    f = lw.compile(step, model, inputs={"q": "q", "v": "v", "tau": "v"})
    made = lw.control.emit_casadi(f, tmp_path)
    ends = []
    for function in (casadi.external(made.name, str(made.library)), by_symbols(model, step, (2, 2, 2))):
        ends.append(swing(function, [0.0, 0.0], [1.0, -0.5], N, 2))
    (cost, count), (expected, expected_count) = ends
    assert cost == pytest.approx(expected, rel=1e-9)
    assert count == expected_count <= 30


def swing(step, q0, q1, N, n):
    """Least squares of the torques between two postures at rest: the cost, and IPOPT's iterations."""
    X, U = casadi.MX.sym("X", 2 * n, N + 1), casadi.MX.sym("U", n, N)
    there = step.map(N)(X[:n, :-1], X[n:, :-1], U)
    gaps = casadi.vec(there - X[:, 1:])
    z = casadi.vertcat(casadi.vec(X), casadi.vec(U))
    solver = casadi.nlpsol(
        "swing", "ipopt", {"x": z, "f": casadi.sumsqr(U), "g": gaps}, {"print_time": 0, "ipopt": {"print_level": 0}}
    )
    low, high = np.full((2, 2 * n * (N + 1) + n * N), [[-np.inf], [np.inf]])
    ends = np.concatenate([q0, np.zeros(n)]), np.concatenate([q1, np.zeros(n)])
    low[: 2 * n] = high[: 2 * n] = ends[0]
    low[2 * n * N : 2 * n * (N + 1)] = high[2 * n * N : 2 * n * (N + 1)] = ends[1]
    guess = np.concatenate([np.linspace(*ends, N + 1).ravel(), np.zeros(n * N)])
    found = solver(x0=guess, lbx=low, ubx=high, lbg=0, ubg=0)
    assert solver.stats()["success"]
    return float(found["f"]), solver.stats()["iter_count"]


def test_without_a_compiler_there_is_the_source(tmp_path):
    made = lw.control.emit_casadi(planar_arm(2).function("mass_matrix"), tmp_path, order=1, compiler=None)
    assert made.library is None and "jac_mass_matrix_sparsity_out" in made.source.read_text()
    with pytest.raises(lw.InputError, match="order"):
        lw.control.emit_casadi(planar_arm(2).function("mass_matrix"), tmp_path, order=3)
    with pytest.raises(lw.InputError, match="no folder can be made"):
        lw.control.emit_casadi(planar_arm(2).function("mass_matrix"), made.source)
