"""The Riccati recursion, beside its formulas in NumPy."""

import numpy as np
import pytest

from linkwise.control import riccati
from linkwise.control.riccati import Riccati, padded
from linkwise.targets.llvm import binding


def formulas(F, H_x, H_u, V, damping):
    """The textbook's recursion: gains, the value of the first state, costates, and what the step promises."""
    n, gains, costates, promised = len(V), [], [], 0.0
    V, s = V[:, :n], V[:, n]
    for f, h_x, h_u in zip(F[::-1], H_x[::-1], H_u[::-1], strict=True):
        A, gap, B = f[:, :n], f[:, n], f[:, n + 1 :]
        s = s + V @ gap
        costates.append(s)
        Quu = h_u[:, n + 1 :] + B.T @ V @ B + damping * np.eye(B.shape[1])
        of_u = h_u[:, : n + 1] + B.T @ np.c_[V @ A, s]
        K = -np.linalg.solve(Quu, of_u)
        promised -= of_u[:, n] @ K[:, n]
        V, s = h_x[:, :n] + A.T @ V @ A + of_u[:, :n].T @ K[:, :n], h_x[:, n] + A.T @ s + of_u[:, :n].T @ K[:, n]
        gains.append(K)
    return np.array(gains[::-1]), np.c_[V, s], np.array(costates[::-1]), promised


def horizon(n, m, N):
    rng = np.random.default_rng(n + m)
    F = rng.normal(size=(N, n, n + 1 + m)) / np.sqrt(n)
    half = rng.normal(size=(N, n + m, n + m))
    H, g = half @ half.transpose(0, 2, 1) + np.eye(n + m), rng.normal(size=(N, n + m, 1))
    H_x = np.concatenate([H[:, :n, :n], g[:, :n]], axis=2)
    H_u = np.concatenate([H[:, n:, :n], g[:, n:], H[:, n:, n:]], axis=2)
    return F, H_x, H_u, np.c_[np.eye(n), rng.normal(size=n)]


def rows_of_registers(array):
    return np.concatenate([array, np.zeros((*array.shape[:-1], padded(array.shape[-1]) - array.shape[-1]))], axis=-1)


@pytest.fixture
def registers(monkeypatch):
    """Code as for machines with registers of so many numbers; this one runs it in more of its own, or fewer."""

    def of(lanes):
        monkeypatch.setattr(binding.Machine, "lanes", lambda machine, dtype: lanes)
        monkeypatch.setattr(riccati, "_compiled", riccati._compiled.__wrapped__)

    return of


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize(("n", "m", "N"), [(2, 1, 1), (4, 3, 6), (13, 7, 9), (18, 5, 4), (32, 7, 4), (37, 18, 3)])
def test_recursion_is_that_of_the_formulas(n, m, N, lanes, registers):
    registers(lanes)
    F, H_x, H_u, V = horizon(n, m, N)
    gains, value, costates, promised = formulas(F, H_x, H_u, V, 0.3)
    K, s = np.empty((N, m, n + 1)), np.empty((N, n))
    F, H_x, H_u, V = map(rows_of_registers, (F, H_x, H_u, V))
    assert Riccati(n, m).bound(F, np.empty((N, 0)), H_x, H_u, V, K, s)(0.3) == pytest.approx(promised, rel=1e-11)
    for found, expected in ((K, gains), (V[:, : n + 1], value), (s, costates)):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_costs_that_are_not_convex_are_found_out():
    F, H_x, H_u, V = map(rows_of_registers, horizon(4, 2, 3))
    H_u[1, :, 5:7] = -1e3 * np.eye(2)
    run = Riccati(4, 2).bound(F, np.empty((3, 0)), H_x, H_u, V, np.empty((3, 2, 5)), np.empty((3, 4)))
    end = V.copy()
    assert run(0.0) is None
    V[:] = end
    assert run(1e5) is not None


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize(("half", "m", "N"), [(1, 1, 2), (5, 3, 6), (9, 9, 4), (16, 5, 3), (17, 5, 3)])
def test_positions_that_follow_from_speeds_are_the_same_problem_with_half_the_rows(half, m, N, lanes, registers):
    registers(lanes)
    n, dt = 2 * half, 0.07
    F, H_x, H_u, V = horizon(n, m, N)
    lead, of_speeds = F[:, :half, n].copy(), F[:, half:].copy()
    F[:, :half] = dt * of_speeds
    F[:, range(half), range(half)] += 1.0
    F[:, :half, n] += lead
    gains, value, costates, promised = formulas(F, H_x, H_u, V, 0.3)
    K, s = np.empty((N, m, n + 1)), np.empty((N, n))
    of_speeds, H_x, H_u, V = map(rows_of_registers, (of_speeds, H_x, H_u, V))
    found = Riccati(n, m, dt).bound(of_speeds, lead, H_x, H_u, V, K, s)(0.3)
    assert found == pytest.approx(promised, rel=1e-11)
    for mine, expected in ((K, gains), (V[:, : n + 1], value), (s, costates)):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
