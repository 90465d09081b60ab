"""Operators of the linearised models (Jain 1993): proofs step by step, and A_D against the library's derivatives."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.operators import RULES
from linkwise.operators.reading import sides
from tests.operators.checks import largest
from tests.random_trees import random_state, random_tree

TOLERANCE = 1e-10
PROVED = {name: rule for name, rule in RULES.items() if rule.proof}


@pytest.fixture(scope="module")
def hinges():
    rng = np.random.default_rng(4)
    model = random_tree(rng, 6, ("revolute", "prismatic", "helical"))
    q, v, _ = random_state(model, rng)
    return model, q, v, model.operators(q, v)


@pytest.mark.parametrize("name", PROVED)
def test_proofs_hold_step_by_step(hinges, name):
    ops, rule = hinges[3], PROVED[name]
    left, right = rule.statement.split("=")
    for a, b in zip((left, *rule.proof), (*rule.proof, right), strict=True):
        x, y = (side.dense() for side in sides(f"{a} = {b}", ops))
        assert largest(x - y) < TOLERANCE * largest(x), (a, b)


def test_M_hat_times_V_is_the_change_of_momentum(hinges):
    """M̂V = b of a link about a point at rest: with V×* MV, by NumPy."""
    ops = hinges[3]
    V, M = np.asarray(ops.V), ops.M.dense()
    found = np.asarray(ops.M_hat @ V)
    for k in range(len(V) // 6):
        own = slice(6 * k, 6 * k + 6)
        w, u = V[own][:3], V[own][3:]
        L, p = np.split(M[own, own] @ V[own], 2)
        expected = np.r_[np.cross(w, L) + np.cross(u, p), np.cross(w, p)]
        assert largest(found[own] - expected) < TOLERANCE * (1 + largest(expected))


def test_A_D_as_an_operator(hinges):
    """Jain 1993 lemma 3.1: A_D = 2Hφ[M̂φ*H* + Mφ*Ḣ*], against the compiled derivatives and against A_C."""
    model, q, v, ops = hinges
    H, phi, M, M_hat, H_dot = ops.H, ops.phi, ops.M, ops.M_hat, ops.H_dot
    half = H @ phi @ (M_hat @ phi.T @ H.T + M @ phi.T @ H_dot.T)
    A_D = 2 * half.dense()
    expected = model.linearize_inverse(q, v, np.zeros(model.nv)).dv
    assert largest(A_D - expected) < TOLERANCE * largest(expected)
    A_C = 2 * (ops.mass_matrix.inv() @ half).dense()
    expected = -model.linearize_forward(q, v, np.zeros(model.nv)).dv
    assert largest(A_C - expected) < 1e-8 * largest(expected)


def test_velocity_is_needed(hinges):
    model, q, _, _ = hinges
    with pytest.raises(lw.InputError, match="velocity"):
        model.operators(q).M_hat  # noqa: B018
