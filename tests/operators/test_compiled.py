"""Operator expressions inside lw.compile: one kernel, as cheap as the algorithm that they spell out."""

import numpy as np
import pytest

import linkwise as lw
from tests.operators.checks import largest
from tests.random_trees import random_state, random_tree

INPUTS = {"q": "q", "v": "v", "tau": "v"}


def articulated(model, q, v, tau):
    """[I-HψK]*D⁻¹[T - Hψ(KT + f)]."""
    ops = model.operators(q, v, frames="link")
    T, white = ops.vector(tau), ops.I - ops.H @ ops.psi @ ops.K
    return white.T @ ops.D.inv() @ (T - ops.H @ ops.psi @ (ops.K @ T + ops.f))


def in_body_frames(model, q, v, tau):
    """𝓜⁻¹(T - 𝓒), the inverse by rule."""
    ops = model.operators(q, v)
    return ops.mass_matrix.inv() @ (tau - ops.C.value)


def lemma(model, q, v, tau):
    """Jain 1991 lemma 6.5."""
    ops = model.operators(q, v)
    I, H, psi, K, D, P, a, b = ops.I, ops.H, ops.psi, ops.K, ops.D, ops.P, ops.a, ops.b
    return (I - H @ psi @ K).T @ D.inv() @ (tau - H @ psi @ (K @ tau + b + P @ a)) - K.T @ psi.T @ a


@pytest.mark.parametrize("text", [articulated, in_body_frames, lemma])
@pytest.mark.parametrize("seed", range(3))
def test_forward_dynamics(seed, text):
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 5, armature=0.3)
    q, v, tau = random_state(model, rng, (10,))
    compiled = lw.compile(text, model, inputs=INPUTS)
    expected = model.forward_dynamics(q, v, tau)
    assert largest(compiled(q, v, tau) - expected) < 1e-10 * largest(expected)


def hinged(n):
    return random_tree(1, n, types=("revolute", "prismatic"), armature=0.0, branching=0.2)


def test_nothing_is_computed_twice():
    """The expression is the articulated-body algorithm, operation for operation."""
    model = hinged(8)
    ours = lw.compile(articulated, model, inputs=INPUTS).counts
    theirs = model.function("forward_dynamics").counts
    assert ours.mul <= theirs.mul
    assert ours.div == theirs.div
    assert ours.add <= theirs.add + 2 * model.nv


def test_several_outputs_share_their_sweeps():
    model = hinged(6)

    def fn(model, q, v, tau):
        ops = model.operators(q, v)
        inverse = ops.mass_matrix.inv()
        return {"vdot": inverse @ tau, "momentum": ops.mass_matrix @ v, "tool": ops.J("tool") @ v}

    compiled = lw.compile(fn, model, inputs=INPUTS)
    rng = np.random.default_rng(0)
    q, v, tau = random_state(model, rng)
    result = compiled(q, v, tau)
    assert largest(result.vdot - np.linalg.solve(model.mass_matrix(q), tau)) < 1e-9 * largest(result.vdot)
    assert largest(result.momentum - model.mass_matrix(q) @ v) < 1e-11 * largest(result.momentum)
    turn = np.kron(np.eye(2), model.pose(q, "tool")[:3, :3])
    assert largest(turn @ result.tool - model.velocity(q, v, "tool")) < 1e-11


def test_scaling_by_a_traced_number():
    model = hinged(3)

    def fn(model, q, c, x):
        ops = model.operators(q)
        return (c * ops.mass_matrix + 2.0 * ops.I) @ x

    compiled = lw.compile(fn, model, inputs={"q": "q", "c": "scalar", "x": "v"})
    q, x = np.zeros(model.nq), np.ones(model.nv)
    assert largest(compiled(q, 3.0, x) - (3.0 * model.mass_matrix(q) + 2.0 * np.eye(model.nv)) @ x) < 1e-12


def test_sympy_sees_the_same_text():
    sympy = pytest.importorskip("sympy")
    builder = lw.ModelBuilder("pendulum")
    builder.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=2.0, com=(0, 0, -0.5), inertia=np.zeros((3, 3)))
    model = builder.build()
    q, v = (np.array([sympy.Symbol(name)], object) for name in "qv")
    ops = model.operators(q, v)
    assert float((ops.mass_matrix @ np.ones(1))[0]) == 0.5
    gravity = sympy.simplify(ops.C.value[0] - 9.81 * sympy.sin(sympy.Symbol("q")))
    assert abs(float(gravity.subs("q", 0.3))) < 1e-12
