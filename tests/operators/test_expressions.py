"""How expressions are written, compared and refused."""

import numpy as np
import pytest

from linkwise.errors import InputError
from tests.operators.checks import largest, tree_and_operators


@pytest.fixture(scope="module")
def ops():
    return tree_and_operators(3, 5)[1]


def test_notation(ops):
    I, H, phi, psi, M, K, D = ops.I, ops.H, ops.phi, ops.psi, ops.M, ops.K, ops.D
    assert repr(H @ phi @ M @ phi.T @ H.T) == "HφMφ*H*"
    assert repr(I - H @ psi @ K) == "I − HψK"
    assert repr((I - H @ psi @ K).T @ D.inv() @ (I - H @ psi @ K)) == "(I − HψK)* D⁻¹ (I − HψK)"
    assert repr(-phi) == "−φ"
    assert repr(2 * phi - 0.5 * (ops.E_phi @ psi)) == "2 φ − 0.5 E_φ ψ"
    assert repr(ops.J("tool")) == "B*φ*H*"
    assert repr(ops.tau + ops.tau_bar) == "τ + τ̄"
    assert repr(ops.Omega.inv()) == "Ω⁻¹"
    assert repr(ops.vector(np.ones(H.shape[0])) - H @ psi @ (ops.b + ops.P @ ops.a)) == "T − Hψ (b + P a)"


def test_normal_forms(ops):
    I, H, phi, M = ops.I, ops.H, ops.phi, ops.M
    assert I @ phi @ I == phi
    assert phi - phi + M == M
    assert (phi + phi) == 2 * phi
    assert (2 * phi) @ (3 * M) == 6 * (phi @ M)
    assert phi == phi.T.T
    assert (H @ phi).T == phi.T @ H.T
    assert (phi + M).T == phi.T + M
    assert M.T is M
    assert (phi + M) == (M + phi)
    assert phi != ops.psi
    assert (phi - phi).name == "0"
    assert not ((phi - phi) @ np.ones(phi.shape[1])).any()
    assert hash(phi + M) == hash(M + phi)


def test_arithmetic_is_that_of_matrices(ops):
    I, H, phi, M, psi, K = ops.I, ops.H, ops.phi, ops.M, ops.psi, ops.K
    expression = 2 * (I - H @ psi @ K).T @ (3 * I + H @ phi @ M @ phi.T @ H.T) - ops.D * 0.5
    h, p, m, s, k = (op.dense() for op in (H, phi, M, psi, K))
    one = np.eye(len(h))
    expected = 2 * (one - h @ s @ k).T @ (3 * one + h @ p @ m @ p.T @ h.T) - ops.D.dense() * 0.5
    assert largest(expression.dense() - expected) < 1e-11 * largest(expected)
    assert largest(expression.T.dense() - expected.T) < 1e-11 * largest(expected)


def test_the_identity_fits_where_it_stands(ops):
    x = np.ones(3)
    assert ops.I @ x is x
    assert (ops.I - ops.E_phi).shape == ops.phi.shape
    assert ops.identity("joints").shape == ops.D.shape
    assert largest(ops.identity("links").dense() - np.eye(ops.phi.shape[0])) == 0.0
    with pytest.raises(InputError, match="takes its size"):
        ops.I.dense()
    with pytest.raises(InputError, match="square"):
        ops.I - ops.H


def test_shapes_that_do_not_compose_name_both(ops):
    rows, columns = ops.H.shape
    with pytest.raises(InputError, match="H and H do not compose") as error:
        ops.H @ ops.H
    assert f"H ({rows} joints × {columns} links) @ H ({rows} joints × {columns} links)" in str(error.value)
    assert "did you mean H @ (H).T?" in str(error.value)
    with pytest.raises(InputError, match="φ and D do not compose"):
        ops.H @ ops.phi @ ops.D
    with pytest.raises(InputError, match="φ and D cannot be added") as error:
        ops.phi + ops.D
    assert str(ops.phi.shape[0]) in str(error.value)
    with pytest.raises(InputError, match="use @"):
        ops.phi * ops.psi
    with pytest.raises(InputError, match="one number"):
        ops.phi * np.ones(3)


def test_operators_of_two_states_do_not_mix(ops):
    other = tree_and_operators(3, 5)[1]
    with pytest.raises(InputError, match="different states"):
        ops.H @ other.phi


def test_vectors(ops):
    a, b = ops.a, ops.b
    both = (2 * a - b) * 0.5 + np.ones(a.shape)
    assert both.shape == a.shape == (ops.phi.shape[0],)
    assert largest(both.value - (a.value - 0.5 * b.value + 1.0)) < 1e-12
    assert largest((1.0 - a.value) - np.asarray(np.ones(a.shape) - a)) < 1e-15
    assert a[0] == a.value[0]
    assert len(a) == len(a.value)
    assert (-a).value[1] == -a.value[1]
    assert largest((ops.I @ a).value - a.value) == 0.0
    assert a.blocks().shape == (len(a) // 6, 6)
    with pytest.raises(InputError, match="cannot be added"):
        a + ops.C
    with pytest.raises(InputError, match="cannot be applied"):
        ops.D @ a
    with pytest.raises(InputError, match="different sizes"):
        ops.C.blocks()
    with pytest.raises(InputError, match="neither"):
        ops.vector(np.ones(3))
    with pytest.raises(InputError, match="wrong shape"):
        a + np.ones(3)


def test_numpy_sees_plain_arrays(ops):
    C, T = ops.C, np.arange(float(ops.D.shape[0]))
    for made in (np.abs(C), np.sin(C), C * T, T * C, np.stack([C, C]), np.concatenate([C, T]), T @ C, np.maximum(C, T)):
        assert type(made) in (np.ndarray, np.float64)
    assert np.linalg.norm(C) == np.linalg.norm(C.value)
    assert np.array_equal(C, C.value)
    total = np.zeros_like(T)
    total += C
    assert np.array_equal(total, C.value)


def test_arrays_are_shown_by_name(ops):
    T = np.arange(float(ops.D.shape[0]))
    assert repr(ops.vector(T) - ops.C) == "T − Hφ (Mφ*a + b)"
    assert repr(ops.K @ ops.vector(T, "u") + ops.b) == "K u + b"
    assert repr(T - ops.C) == "x − Hφ (Mφ*a + b)"
    assert repr(np.float64(2.0) * ops.C) == "2 Hφ (Mφ*a + b)"


def test_blocks_that_do_not_exist(ops):
    with pytest.raises(InputError, match="no such block"):
        ops.phi.block(0, 99)
    with pytest.raises(InputError, match="no such block"):
        ops.Omega.block(-1, 0)
