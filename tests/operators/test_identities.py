"""Every rule, and every identity of the papers, on random trees of all joint types."""

from functools import cache

import numpy as np
import pytest

from linkwise.operators import RULES
from tests.operators.checks import difference, eagerly, largest, tree_and_operators
from tests.seeds import seeds

TOLERANCE = 1e-10
OF_TREES = {name: rule for name, rule in RULES.items() if rule.needs != "closures"}
QUICK = [(seed, 1 + seed % 8) for seed in range(12)]


def options(seed):
    """Half of the trees have rotor inertias, a third are chains."""
    return {"armature": 0.5 * (seed % 2), "branching": 0.0 if seed % 3 == 0 else 0.4}


def columns(space, rng):
    return rng.normal(size=(space.size, 5))


@cache
def worst_of_rules(seed, n):
    """The largest error of each rule that holds for this tree."""
    _, ops, _ = tree_and_operators(seed, n, **options(seed))
    rng = np.random.default_rng(seed)
    errors = {}
    for rule in RULES.values():
        if rule.holds_for(ops):
            left, right = rule.sides(ops)
            x, y = columns(left.cols, rng), columns(left.rows, rng)
            errors[rule.name] = max(difference(left, right, x), difference(left.T, right.T, y))
    return errors


@pytest.mark.parametrize(("seed", "n"), QUICK)
def test_every_rule_holds(seed, n):
    errors = worst_of_rules(seed, n)
    assert max(errors.values()) < TOLERANCE, max(errors, key=errors.get)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_every_rule_holds_on_200_trees_of_up_to_40_bodies(seed):
    errors = worst_of_rules(seed, 1 + (seed * 7) % 40)
    assert max(errors.values()) < TOLERANCE, max(errors, key=errors.get)


def test_every_rule_is_tried():
    """Those about closures are in tests/operators/test_closed.py."""
    tried = set()
    for seed, n in QUICK:
        tried |= set(worst_of_rules(seed, n))
    assert tried == set(OF_TREES)


def test_rules_say_where_they_come_from():
    for name, rule in RULES.items():
        assert rule.source.startswith(("Jain 1991", "Jain 1993", "Rodriguez 1989")), name
        assert "=" in rule.statement, name
        assert name in repr(rule)


def test_rules_hold_as_matrices():
    """Dense: both sides formed, the inverse by LAPACK."""
    _, ops, _ = tree_and_operators(5, 7, branching=0.0)
    for name, rule in OF_TREES.items():
        left, right = (side.dense() for side in rule.sides(ops))
        assert left.shape == right.shape, name
        assert largest(left - right) < 1e-9 * max(1.0, largest(left)), name


@pytest.mark.parametrize("seed", range(2))
def test_identities_that_need_a_condition_fail_without_it(seed):
    """The rules about projections are about joints without rotors, those about Υ about chains: not for nothing."""
    _, rotors, _ = tree_and_operators(seed, 20, armature=1.0, branching=0.7)
    assert rotors.has_armature
    assert rotors.has_branches
    for rule in OF_TREES.values():
        if {"no rotor inertia", "no branches"} & set((rule.needs or "").split(", ")):
            left, right = rule.sides(rotors)
            x = np.random.default_rng(seed).normal(size=(left.cols.size, 3))
            assert not rule.holds_for(rotors)
            assert difference(left, right, x) > 1e-6, rule.name


@pytest.mark.parametrize(("seed", "n"), [(seed, 3 + 3 * seed) for seed in range(3)])
def test_forward_dynamics_with_velocity_terms(seed, n):
    check_forward_dynamics(seed, n)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_forward_dynamics_on_200_trees_of_up_to_40_bodies(seed):
    check_forward_dynamics(seed, 1 + (seed * 7) % 40)


def check_forward_dynamics(seed, n):
    """β' = [I-HψK]*D⁻¹[T - Hψ(KT + b + Pa)] - K*ψ*a (Jain 1991 lemma 6.5)."""
    model, ops, (q, v, _) = tree_and_operators(seed, n, armature=0.5)
    T = np.random.default_rng(seed).normal(size=model.nv)
    I, H, psi, K, D, P, a, b = ops.I, ops.H, ops.psi, ops.K, ops.D, ops.P, ops.a, ops.b
    white = I - H @ psi @ K
    vdot = np.asarray(white.T @ D.inv() @ (T - H @ psi @ (K @ T + b + P @ a)) - K.T @ psi.T @ a)
    expected = eagerly(model.forward_dynamics, q, v, T)
    assert largest(vdot - expected) < TOLERANCE * largest(expected)
    assert largest(ops.mass_matrix.inv() @ (T - ops.C.value) - expected) < TOLERANCE * largest(expected)


@pytest.mark.parametrize("seed", seeds(2, of=6))
def test_inverse_dynamics_by_composite_bodies(seed):
    """f = Rα + y, y = φ~RH*β' (Jain 1991 lemma 3.2), T = Hf."""
    model, ops, (q, _, vdot) = tree_and_operators(seed, 12)
    H, phi, R = ops.H, ops.phi, ops.R
    alpha = phi.T @ H.T @ vdot
    f = R @ alpha + ops.phi_tilde @ R @ H.T @ vdot
    assert largest(f - phi @ ops.M @ alpha) < TOLERANCE * largest(f)
    assert largest(H @ f - eagerly(model.mass_matrix, q) @ vdot) < TOLERANCE * largest(H @ f)


def inboard_of(k, parents):
    """The link itself, its parent, and so on to the base."""
    return set() if k < 0 else {k} | inboard_of(parents[k], parents)


@pytest.mark.parametrize("seed", seeds(2, of=6))
def test_blocks_of_omega(seed):
    """Ω(i,j) = ψ*(c,i) Υ(c) ψ(c,j): through the common ancestor, not zero between branches."""
    model, ops, _ = tree_and_operators(seed, 12, armature=0.5)
    dense = ops.Omega.dense()
    parents = model.parents
    apart = 0
    for i in range(len(parents)):
        for j in range(len(parents)):
            block = ops.Omega.block(i, j)
            expected = dense[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
            assert largest(block - expected) < TOLERANCE * largest(dense)
            above = [inboard_of(k, parents) for k in (i, j)]
            apart += bool(above[0] & above[1]) and i not in above[1] and j not in above[0] and largest(block) > 0
    assert largest(ops.Upsilon.dense()[:6, :6] - dense[:6, :6]) < TOLERANCE * largest(dense)
    assert apart or not ops.has_branches


@pytest.mark.parametrize("seed", seeds(2, of=4))
def test_operational_admittance(seed):
    """Λ = J𝓜⁻¹J* = B*ΩB (Rodriguez 1989 eq. 3.10), in the frame's own axes."""
    model, ops, (q, _, _) = tree_and_operators(seed, 8, armature=0.5)
    names = ["tool", (model.bodies[-1].name, (0.1, -0.2, 0.3))]
    B, J = ops.B(names), ops.J(names)
    admittance = (J @ ops.mass_matrix.inv() @ J.T).dense()
    assert largest(admittance - (B.T @ ops.Omega @ B).dense()) < TOLERANCE * largest(admittance)
    turn = np.kron(np.eye(2), model.pose(q, "tool")[:3, :3])
    expected = model.operational.admittance(q, "tool")
    assert largest(turn @ admittance[:6, :6] @ turn.T - expected) < TOLERANCE * largest(expected)
