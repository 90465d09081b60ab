"""Rewriting by rule: inverses, simplifications, and the steps shown with their equations."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputError, UnknownNameError
from linkwise.operators import RULES, explain, inverse, simplify
from linkwise.operators.expressions import Inverse, Zero
from tests.operators.checks import largest, tree_and_operators


def dense(op):
    """The matrix, the factors of a product formed one by one: also where one is an inverse that no rule has opened."""
    return np.linalg.multi_dot([np.eye(op.shape[0]), *(f.dense() for f in getattr(op, "factors", (op,)))])


def same(a, b, tolerance=1e-10):
    a, b = dense(a), dense(b)
    return largest(a - b) < tolerance * max(1.0, largest(a))


@pytest.fixture(scope="module")
def ops():
    return tree_and_operators(3, 7)[1]


@pytest.fixture(scope="module")
def rotors():
    return tree_and_operators(3, 7, armature=1.0)[1]


def test_the_inverse_of_the_mass_matrix(ops):
    I, H, phi, M, psi, K, D = ops.I, ops.H, ops.phi, ops.M, ops.psi, ops.K, ops.D
    result = (H @ phi @ M @ phi.T @ H.T).inv()
    white = I - H @ psi @ K
    assert result == white.T @ D.inv() @ white
    assert repr(result) == "(I − HψK)* D⁻¹ (I − HψK)"
    text = result.explain()
    for lemma in ("(HφMφ*H*)⁻¹", "Jain 1991 lemma 6.2", "(AB)⁻¹ = B⁻¹A⁻¹", "Jain 1991 lemma 6.3", "adjoint"):
        assert lemma in text
    assert text.splitlines()[-2].endswith("(I − HψK)* D⁻¹ (I − HψK)")
    assert result.inv().simplify() == ops.mass_matrix


def test_every_step_of_an_explanation_is_equal(ops):
    result = ops.mass_matrix.inv()
    for step in result.derivation:
        assert same(step.whole, result, 1e-8)


def test_the_inverse_with_rotor_inertias(rotors):
    result = rotors.mass_matrix.inv()
    assert repr(rotors.mass_matrix) == "HφMφ*H* + J_r"
    assert repr(result) == "(I − HψK)* D⁻¹ (I − HψK)"
    bare = (rotors.H @ rotors.phi @ rotors.M @ rotors.phi.T @ rotors.H.T).inv()
    assert isinstance(bare, Inverse)
    with pytest.raises(InputError, match="no rule gives the inverse of HφMφ"):
        bare @ np.ones(bare.shape[1])


def test_inverses_by_rule(ops):
    I, H, phi, psi, K = ops.I, ops.H, ops.phi, ops.psi, ops.K
    assert phi.inv() == I - ops.E_phi
    assert psi.inv() == I - ops.E_psi
    assert (I - ops.E_phi).inv() == phi
    assert phi.T.inv() == (I - ops.E_phi).T
    assert (I + H @ phi @ K).inv() == I - H @ psi @ K
    assert (I - H @ psi @ K).T.inv() == (I + H @ phi @ K).T
    assert ops.D.inv().inv() == ops.D
    assert (2 * phi).inv() == 0.5 * (I - ops.E_phi)
    assert (phi @ ops.M @ phi.T).inv() == (I - ops.E_phi).T @ ops.M.inv() @ (I - ops.E_phi)
    assert (I - ops.E_phi + K @ H).inv() == psi  # lemma 6.1
    assert inverse(inverse(phi @ psi)) == phi @ psi
    assert (phi @ phi.inv()).simplify() == ops.identity("links")


def test_what_has_no_inverse(ops):
    with pytest.raises(InputError, match="not square"):
        ops.H.inv()
    left_alone = ops.Omega.inv()
    assert isinstance(left_alone, Inverse)
    assert left_alone.inv() == ops.Omega
    with pytest.raises(InputError, match="no rule gives the inverse of Ω"):
        left_alone.T @ np.ones(left_alone.shape[0])


def test_the_operational_admittance_simplifies(ops):
    """Λ = J𝓜⁻¹J* becomes B*ΩB (Rodriguez 1989 eq. 3.9, 3.10)."""
    J, B = ops.J(["tool"]), ops.B(["tool"])
    admittance = (J @ ops.mass_matrix.inv() @ J.T).simplify()
    assert admittance == B.T @ ops.Omega @ B
    assert repr(admittance) == "B*ΩB"
    assert "Rodriguez 1989 eq. 3.10" in explain(admittance)
    assert "Jain 1991 eq. 57" in admittance.explain()


def test_forward_dynamics_is_derived(ops):
    """From eq. 56 to lemma 6.5 of Jain 1991: 𝓜⁻¹HφMφ* = [I-HψK]*D⁻¹HψP + K*ψ*."""
    start = ops.mass_matrix.inv() @ ops.H @ ops.phi @ ops.M @ ops.phi.T
    swept = start.rewrite(RULES["whitened_sweep"])
    assert repr(swept) == "(I − HψK)* D⁻¹HψMφ*"
    split = swept.rewrite(RULES["mixed_sweeps"])
    assert repr(split) == "(I − HψK)* D⁻¹H (ψP + Pφ~*)"
    white = ops.I - ops.H @ ops.psi @ ops.K
    left = white.T @ ops.D.inv() @ ops.H
    result = (left @ ops.psi @ ops.P + left @ ops.P @ ops.phi_tilde.T).simplify()
    assert result == left @ ops.psi @ ops.P + ops.K.T @ ops.psi.T
    assert same(result, start, 1e-8)
    assert start.rewrite(RULES["weighted_mass"]) == result
    texts = split.explain()
    assert "Jain 1991 eq. 57" in texts
    assert "Jain 1991 eq. 58" in texts


def test_simplifications(ops):
    I, H, phi, psi, K, P, D, G = ops.I, ops.H, ops.phi, ops.psi, ops.K, ops.P, ops.D, ops.G
    assert (H @ P @ H.T).simplify() == D
    assert (ops.E_phi @ P @ H.T @ D.inv()).simplify() == K
    assert (I - G @ H).simplify() == ops.tau_bar
    assert (ops.E_phi - ops.E_phi @ G @ H).simplify() == ops.E_psi
    assert (3 * phi - 3 * I).simplify() == 3 * ops.phi_tilde
    assert ((I + H @ phi @ K) @ D @ (I + H @ phi @ K).T).simplify() == ops.mass_matrix
    assert (phi @ ops.E_phi + I).simplify() == phi
    assert (H @ ops.tau_bar).simplify() == Zero(ops.engine, H.rows, H.cols)
    assert (psi.T @ H.T @ D.inv() @ H @ psi).simplify() == ops.Omega
    assert simplify(phi) == phi
    assert "no rule applies" in phi.explain()
    assert (ops.M + ops.E_psi @ P @ ops.E_psi.T).simplify() == P


def test_rules_by_name(ops):
    whole = ops.psi @ ops.M @ ops.phi.T
    split = whole.rewrite("mixed_sweeps")
    assert repr(split) == "ψP + Pφ~*"
    assert split == whole.rewrite(RULES["mixed_sweeps"])
    assert split.rewrite("mixed_sweeps", reverse=True) == whole
    with pytest.raises(UnknownNameError, match="no rule of this name") as error:
        whole.rewrite("mixed_sweep")
    assert "mixed_sweeps" in error.value.nearest


def test_the_list_of_rules():
    listed = lw.operators.rules()
    assert tuple(listed) == tuple(RULES.values())
    lines = repr(listed).splitlines()
    assert len(lines) == len(RULES)
    for line, rule in zip(lines, listed, strict=True):
        assert line.startswith(rule.name)
        assert rule.source in line
        assert rule.statement in line
    assert "(no branches)" in repr(listed)
    assert {rule.use for rule in lw.operators.rules("derive")} == {"derive"}


def test_rules_that_do_not_hold_are_not_used(rotors):
    kept = rotors.H @ rotors.tau_bar
    assert kept.simplify() == kept
    with pytest.raises(InputError, match="does not hold"):
        kept.rewrite(RULES["joint_blocks"])


def test_a_rule_both_ways(ops):
    whole = ops.phi @ ops.M @ ops.phi.T
    split = whole.rewrite(RULES["composite_gathered"], reverse=True)
    assert repr(split) == "R + φ~R + Rφ~*"
    assert split.rewrite(RULES["composite_gathered"]) == whole
    assert "from right to left" in split.explain()
    with pytest.raises(InputError, match="fits nowhere"):
        ops.phi.rewrite(RULES["admittance"])


def test_expanding(ops):
    I, H, phi, psi, K = ops.I, ops.H, ops.phi, ops.psi, ops.K
    product = (I - H @ psi @ K) @ (I + H @ phi @ K).T
    wide = product.expand()
    assert len(wide.terms) == 4
    assert same(wide, product)
    assert "A(B + C) = AB + AC" in wide.explain()


@pytest.mark.parametrize("seed", range(3))
def test_simplifying_keeps_the_value(seed):
    """Random words and sums of letters."""
    _, ops, _ = tree_and_operators(seed, 6, armature=0.5 * seed)
    rng = np.random.default_rng(seed)
    letters = [ops.E_phi, ops.phi, ops.M, ops.R, ops.P, ops.tau, ops.tau_bar, ops.E_psi, ops.psi, ops.K @ ops.H]
    letters += [ops.G @ ops.H, ops.phi_tilde, ops.psi_tilde, ops.Upsilon, ops.I - ops.E_phi, ops.I - ops.tau]
    for _ in range(40):
        picks = [letters[i] for i in rng.integers(len(letters), size=4)]
        picks = [op.T if rng.random() < 0.3 else op for op in picks]
        expression = picks[0] @ picks[1] - picks[2] @ picks[3] + 2.0 * picks[1]
        assert same(expression.simplify(), expression, 1e-9)
