"""Operators of the linearised models (Jain 1993): proofs step by step; A_D, B_D, A_C, B_C against the derivatives."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.operators import RULES
from linkwise.operators.rules import sides
from tests.operators.checks import largest
from tests.random_trees import random_state, random_tree

TOLERANCE = 1e-10
PROVED = {name: rule for name, rule in RULES.items() if rule.proof}


HINGES = ("revolute", "prismatic", "helical")


def moving(seed, **how):
    """A random tree of joints of one freedom, its motion, and the operators of that."""
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 6, HINGES, **how)
    q, v, vdot = random_state(model, rng)
    return model, q, v, vdot, model.operators(q, v, vdot)


@pytest.fixture(scope="module")
def tree():
    return moving(9, branching=0.8)  # with cousins


@pytest.fixture(scope="module")
def chain():
    return moving(5, branching=0.0)


@pytest.mark.parametrize("name", PROVED)
def test_proofs_hold_step_by_step(tree, chain, name):
    rule = PROVED[name]
    left, right = rule.statement.split("=")
    tried = 0
    for ops in (tree[-1], chain[-1]):
        if rule.holds_for(ops):
            for a, b in zip((left, *rule.proof), (*rule.proof, right), strict=True):
                x, y = (side.dense() for side in sides(f"{a} = {b}", ops))
                assert largest(x - y) < TOLERANCE * largest(x), (a, b)
            tried += 1
    assert tried == (1 if "no branches" in (rule.needs or "") else 2)


def test_lemmas_of_chains_fail_on_branches(tree):
    """Lemmas 4.8 and 4.9 split Ω, which has blocks between branches: as printed they are about chains."""
    assert tree[-1].has_branches
    for name in ("mobility_by_blocks", "rates_by_blocks", "axes_by_blocks"):
        left, right = (side.dense() for side in sides(RULES[name].statement, tree[-1]))
        assert largest(left - right) > 1e-6 * largest(left)


def test_M_hat_times_V_is_the_change_of_momentum(tree):
    """M̂V = b of a link about a point at rest: with V×* MV, by NumPy."""
    ops = tree[-1]
    V, M = np.asarray(ops.V), ops.M.dense()
    found = np.asarray(ops.M_hat @ V)
    for k in range(len(V) // 6):
        own = slice(6 * k, 6 * k + 6)
        w, u = V[own][:3], V[own][3:]
        L, p = np.split(M[own, own] @ V[own], 2)
        expected = np.r_[np.cross(w, L) + np.cross(u, p), np.cross(w, p)]
        assert largest(found[own] - expected) < TOLERANCE * (1 + largest(expected))


@pytest.mark.parametrize("which", ["tree", "chain"])
def test_derivatives_as_operators(which, request):
    """Jain 1993 lemmas 3.1 and 4.1: A_D, B_D, A_C and B_C against the compiled derivatives."""
    model, q, v, vdot, ops = request.getfixturevalue(which)
    changes = model.linearize_inverse(q, v, vdot)
    for found, expected in ((ops.A_D, changes.dv), (ops.B_D, changes.dq)):
        assert largest(found.dense() - expected) < TOLERANCE * largest(expected)
    forward = model.linearize_forward(q, v, model.inverse_dynamics(q, v, vdot))
    mobility = ops.mass_matrix.inv()
    for found, expected in ((ops.A_D, -forward.dv), (ops.B_D, -forward.dq)):
        assert largest((mobility @ found).dense() - expected) < 1e-8 * largest(expected)


def test_S_and_Q(tree):
    """Q[X]Y = -S[Y]X, and -S[X]* is the cross product of motions, by NumPy."""
    ops, rng = tree[-1], np.random.default_rng(0)
    X, Y = (ops.vector(rng.normal(size=36), name) for name in "XY")
    assert largest(np.asarray(ops.Q(X) @ Y) + np.asarray(ops.S(Y) @ X)) < 1e-14
    turned = np.asarray(ops.S(X).T @ Y)
    for k in range(6):
        (w, u), (a, b) = (np.split(np.asarray(Z)[6 * k : 6 * k + 6], 2) for Z in (X, Y))
        assert largest(turned[6 * k : 6 * k + 6] + np.r_[np.cross(w, a), np.cross(u, a) + np.cross(w, b)]) < 1e-14
    assert repr(ops.S(X)).startswith("S[X]")
    assert ops.S(X) != ops.S(Y)
    with pytest.raises(lw.InputError, match="six numbers"):
        ops.S(ops.vector(np.zeros(6)))


def about_the_origin(model, q):
    """φ(0, k) of every link as one block-diagonal matrix: forces on the links, seen about the origin of the world."""
    whole = np.zeros((6 * len(model.bodies), 6 * len(model.bodies)))
    for k, body in enumerate(model.bodies):
        pose = model.pose(q, body.name)
        R, p = np.asarray(pose)[:3, :3], np.asarray(pose)[:3, 3]
        cross = np.array([[0, -p[2], p[1]], [p[2], 0, -p[0]], [-p[1], p[0], 0]])
        whole[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = np.block([[R, cross @ R], [np.zeros((3, 3)), R]])
    return whole


def sensitivities(model, q, v, X):
    """H*v, HX, MX and MV about the origin, for X that is constant there: the left sides of (A.6) to (A.9)."""
    T, ops = about_the_origin(model, q), model.operators(q, v)
    H, M = ops.H.dense(), ops.M.dense()
    back = np.linalg.inv(T)
    return back.T @ H.T @ v, H @ back @ X, T @ M @ T.T @ X, T @ M @ np.asarray(ops.V)


def test_sensitivities_of_lemma_A_2(tree):
    """Jain 1993 (A.6) to (A.9): operators on the right, central differences over the angles on the left."""
    model, q, v, _, ops = tree
    X, h = np.random.default_rng(1).normal(size=36), 1e-5
    steps = [[sensitivities(model, q + s * h * e, v, X) for s in (1, -1)] for e in np.eye(model.nv)]
    T = about_the_origin(model, q)
    back, H, M, phi = np.linalg.inv(T), ops.H, ops.M, ops.phi
    force, motion = ops.vector(back @ X, "X"), ops.vector(T.T @ X, "X")
    of_H_star = back.T @ (ops.S_joints.T @ phi.T @ H.T).dense()
    of_H = (H @ ops.Q(force) @ phi.T @ H.T).dense()
    of_M = -T @ ((ops.Q(M @ motion) + M @ ops.S(motion).T) @ phi.T @ H.T).dense()
    of_MV = T @ (M @ phi.T @ ops.H_dot.T - ops.Q_momenta @ phi.T @ H.T).dense()
    for i, right in enumerate((of_H_star, of_H, of_M, of_MV)):
        left = np.stack([(ahead[i] - behind[i]) / (2 * h) for ahead, behind in steps], -1)
        assert largest(left - right) < 1e-8 * largest(right), i


def test_batches(tree):
    model, q, v, vdot, ops = tree
    many = model.operators(np.stack([q, 2 * q]), np.stack([v, -v]), np.stack([vdot, vdot]))
    for word in ("J_hat", "H_ddot", "H_tilde_f", "B_D", "E_B"):
        assert largest(getattr(many, word).dense()[0] - getattr(ops, word).dense()) < 1e-12, word


def test_what_is_needed(tree):
    model, q, v, vdot, _ = tree
    with pytest.raises(lw.InputError, match="velocity"):
        model.operators(q).M_hat  # noqa: B018
    with pytest.raises(lw.InputError, match="acceleration"):
        model.operators(q, v).H_ddot  # noqa: B018
    with pytest.raises(lw.InputError, match="need the velocity"):
        model.operators(q, vdot=vdot)
    balls = random_tree(np.random.default_rng(0), 2, ("spherical",))
    q, v, vdot = random_state(balls, np.random.default_rng(0))
    with pytest.raises(lw.InputError, match="one freedom"):
        balls.operators(q, v, vdot).B_D  # noqa: B018
