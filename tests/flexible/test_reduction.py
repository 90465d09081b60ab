"""Which modes are kept, and the account of what was dropped."""

import numpy as np
import pytest
from scipy import linalg, sparse

from linkwise.flexible import FlexibleBody
from linkwise.flexible.solving import lowest_modes, modes_below
from tests.flexible import textbook


def cantilever(**options):
    nodes, M, K = textbook.beam(10)
    return FlexibleBody.from_arrays(nodes, M, K, root=0, keep={"tip": 10, "middle": 5}, **options)


NODES, M, K = textbook.beam(10)
HELD = np.arange(6, 66)
SQUARED, SHAPES = linalg.eigh(K[np.ix_(HELD, HELD)], M[np.ix_(HELD, HELD)])
HERTZ = np.sqrt(SQUARED) / (2 * np.pi)


def test_modes_by_number_and_what_is_dropped():
    body = cantilever(modes=4)
    np.testing.assert_allclose(body.reduction.kept_hz, HERTZ[:4], rtol=1e-7)
    np.testing.assert_allclose(body.reduction.dropped_hz, HERTZ[4:10], rtol=1e-7)
    assert body.reduction.dofs == 60
    text = body.reduction.report()
    assert "4 modes of 60 dofs" in text
    assert f"{HERTZ[4]:.4g}" in text
    assert "'tip'" in text


def test_modes_by_frequency_misses_none():
    body = cantilever(up_to_hz=40.0)
    assert len(body.frequencies) == (HERTZ < 40.0).sum()
    np.testing.assert_allclose(body.frequencies, HERTZ[HERTZ < 40.0], rtol=1e-6)
    assert all(each > 40.0 for each in body.reduction.dropped_hz)


def test_default_number_of_modes():
    assert cantilever().modes == 10


def test_static_error_is_that_of_the_truncated_sum():
    body = cantilever(modes=4)
    tip = SHAPES[54:57]
    exact = tip @ np.diag(1 / SQUARED) @ tip.T
    kept = tip[:, :4] @ np.diag(1 / SQUARED[:4]) @ tip[:, :4].T
    assert dict(body.reduction.static_error)["tip"] == pytest.approx(
        np.linalg.norm(exact - kept) / np.linalg.norm(exact), rel=1e-6
    )


def test_effective_mass():
    # The first two bending modes of a cantilever carry 61.3 % and 18.8 % of its mass across.
    few = np.array(cantilever(modes=4).reduction.effective_mass)
    np.testing.assert_allclose(few[4:], 0.613 + 0.188, atol=1e-3)
    assert few[3] < 1e-9
    everything = np.array(cantilever(modes=60).reduction.effective_mass)
    assert (everything <= 1 + 1e-9).all()
    assert (everything[3:] > 0.95).all()  # the rest sits at the root's own node


def test_modes_by_contribution():
    signals = {"inputs": [(10, "tz")], "outputs": [(10, "tz"), (5, "tz")]}
    body = cantilever(modes=3, **signals)
    in_z = np.flatnonzero(np.abs(SHAPES[56]) > 1e-6)  # modes with a deflection along z
    np.testing.assert_allclose(body.frequencies, HERTZ[in_z[:3]], rtol=1e-7)
    gain = np.abs(SHAPES[56]) * np.hypot(SHAPES[56], SHAPES[26]) / SQUARED
    told = body.reduction.contributions
    assert [kept for _, _, kept in told].count(True) == 3
    np.testing.assert_allclose([share for _, share, _ in told[:3]], np.sort(gain)[::-1][:3] / gain.max(), rtol=1e-6)
    assert 0 < body.reduction.gain_error < 0.01
    assert "static gain from inputs to outputs" in body.reduction.report()
    residual = cantilever(modes=3, residuals=("tip",), **signals)
    assert residual.reduction.gain_error < 1e-8


def test_modes_by_peak_with_damping():
    body = cantilever(modes=2, inputs=[("tip", "ty")], outputs=[("tip", "ty")], rank_by="peak", damping=0.01)
    in_y = np.flatnonzero(np.abs(SHAPES[55]) > 1e-6)
    np.testing.assert_allclose(body.frequencies, HERTZ[in_y[:2]], rtol=1e-7)


def test_craig_bampton_against_its_textbook_matrices():
    """Constraint and fixed-interface modes assembled here by their definition; the spans are the same."""
    body = cantilever(boundary="craig-bampton", interfaces={"end": 10}, modes=4)
    inner, boundary = np.arange(54), np.arange(54, 60)
    k, m = K[np.ix_(HELD, HELD)], M[np.ix_(HELD, HELD)]
    fixed = linalg.eigh(k[np.ix_(inner, inner)], m[np.ix_(inner, inner)], subset_by_index=[0, 3])[1]
    basis = np.zeros((60, 10))
    basis[np.ix_(boundary, np.arange(6))] = np.eye(6)
    basis[np.ix_(inner, np.arange(6))] = -np.linalg.solve(k[np.ix_(inner, inner)], k[np.ix_(inner, boundary)])
    basis[np.ix_(inner, np.arange(6, 10))] = fixed
    squared = linalg.eigh(basis.T @ k @ basis, basis.T @ m @ basis, eigvals_only=True)
    np.testing.assert_allclose(body.frequencies, np.sqrt(squared) / (2 * np.pi), rtol=1e-7)
    np.testing.assert_allclose(body.integrals.Me, np.eye(10), atol=1e-7)
    np.testing.assert_allclose(body.stiffness, np.diag(np.diag(body.stiffness)), atol=0)
    assert dict(body.reduction.static_error)["end"] < 1e-9


def test_free_modes_with_residuals_keep_the_free_spectrum():
    plain = cantilever(boundary="free", modes=6)
    richer = cantilever(boundary="free", modes=6, residuals=("tip",))
    squared = linalg.eigh(K, M, eigvals_only=True)
    np.testing.assert_allclose(plain.frequencies, np.sqrt(squared[6:12]) / (2 * np.pi), rtol=1e-6)
    np.testing.assert_allclose(richer.frequencies[:6], plain.frequencies, rtol=1e-6)
    assert richer.modes > 6
    assert dict(richer.reduction.static_error)["tip"] < 1e-8


@pytest.mark.parametrize("free", [False, True])
def test_large_models_are_solved_sparsely(free):
    """A chain of 2000 equal masses and springs has its frequencies in closed form; below a limit none is missed."""
    n = 2000
    diagonal = np.full(n, 2.0)
    diagonal[-1] = 1.0
    if free:
        diagonal[0] = 1.0
    K = sparse.diags_array([-np.ones(n - 1), diagonal, -np.ones(n - 1)], offsets=(-1, 0, 1), format="csr")
    M = sparse.eye_array(n, format="csr")
    k = np.arange(8)
    exact = 2 * np.sin(k * np.pi / (2 * n)) if free else 2 * np.sin((2 * k + 1) * np.pi / (2 * (2 * n + 1)))
    found = lowest_modes(K, M, 8, free=free)
    np.testing.assert_allclose(found.squared, exact**2, rtol=1e-8, atol=1e-10 * exact[1] ** 2)
    np.testing.assert_allclose(found.shapes.T @ found.shapes, np.eye(8), atol=1e-9)
    limit = 0.5 * (exact[4] + exact[5]) / (2 * np.pi)
    below = modes_below(K, M, limit, free=free)
    assert (below.hertz < limit).sum() == 5
