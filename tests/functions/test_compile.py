"""lw.compile: any function of a model and vectors, its kinds of inputs and results, and what it refuses."""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.random_trees import random_state, random_tree


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return random_tree(3, 3, ("revolute", "spherical"), branching=0.0)


@pytest.fixture
def states(model: lw.Model) -> Any:
    return random_state(model, np.random.default_rng(0), (5,))


def test_methods_inside(model: lw.Model, states: Any) -> None:
    q, v, vdot = states

    def power(m: lw.Model, q: Any, v: Any, tau: Any) -> Any:
        return v @ m.mass_matrix(q) @ m.forward_dynamics(q, v, tau)

    f = lw.compile(power, model, {"q": "q", "v": "v", "tau": "v"})
    expected = np.einsum("bi,bij,bj->b", v, model.mass_matrix(q), model.forward_dynamics(q, v, vdot))
    np.testing.assert_allclose(f(q, v, vdot), expected, rtol=1e-10)
    assert f(q[0], v[0], vdot[0]) == pytest.approx(expected[0], rel=1e-10)
    assert f.name == "power"
    assert repr(f) == f"<compiled power(q[{model.nq}], v[{model.nv}], tau[{model.nv}])>"
    assert f.counts.M > 0
    assert f.source("program").startswith("program power(q[")
    assert "define" in f.source("llvm")


def test_energy_shares_work(model: lw.Model) -> None:
    """What two quantities have in common is computed once."""
    both = lw.compile(lambda m, q, v: (m.poses(q), m.center_of_mass(q)), model, {"q": "q", "v": "v"})
    poses = model.function("poses").counts
    assert poses.trig == model.function("center_of_mass").counts.trig == both.counts.trig


Result = namedtuple("Result", "energy momentum")


def test_kinds_of_results(model: lw.Model, states: Any) -> None:
    q, v, _ = states
    kinds = {"q": "q", "v": "v"}
    tuples = lw.compile(lambda m, q, v: (m.kinetic_energy(q, v), m.momentum(q, v)), model, kinds)
    named = lw.compile(lambda m, q, v: Result(m.kinetic_energy(q, v), m.momentum(q, v)), model, kinds)
    mapping = lw.compile(lambda m, q, v: {"T": m.kinetic_energy(q, v), "U": 1.0}, model, kinds)
    for arrays in ((q, v), (q[0], v[0])):
        energy, momentum = model.kinetic_energy(*arrays), model.momentum(*arrays)
        np.testing.assert_allclose(tuples(*arrays)[0], energy)
        assert isinstance(named(*arrays), Result)
        np.testing.assert_allclose(named(*arrays).momentum, momentum)
        np.testing.assert_allclose(mapping(*arrays).T, energy)
        np.testing.assert_array_equal(mapping(*arrays).U, np.ones(np.shape(energy)))
    out = np.empty(5), np.empty((5, 6))
    assert named(q, v, out=out).momentum is out[1]
    with refused("has the wrong length\n  got:     1\n  allowed: 2 arrays"):
        tuples(q, v, out=out[:1])


def test_kinds_of_inputs(model: lw.Model) -> None:
    with_mass = model.with_parameters(["body0.mass"])

    def function(m: lw.Model, x: Any, n: Any, A: Any, p: Any, f: Any) -> Any:
        return x * n.sum() + A[0, 1] + p[0] + f[1, 5]

    kinds = {"x": "scalar", "n": 3, "A": (2, 2), "p": "p", "f": "f_ext"}
    f = lw.compile(function, with_mass, kinds)
    n, A, forces = np.array([1.0, 2.0, 3.0]), np.arange(4.0).reshape(2, 2), np.arange(18.0).reshape(3, 6)
    assert f(2.0, n, A, [5.0], forces) == 2 * 6 + 1 + 5 + 11
    np.testing.assert_array_equal(f([1.0, 2.0], n, A, [5.0], forces), [6 + 1 + 5 + 11, 12 + 1 + 5 + 11])


def test_branches(model: lw.Model) -> None:
    f = lw.compile(lambda m, x: lw.math.where(x > 0, lw.math.sqrt(x), -x), model, {"x": "scalar"})
    np.testing.assert_allclose(f(np.array([4.0, -3.0, 0.0])), [2.0, 3.0, 0.0])


def refused(message: str) -> Any:
    return pytest.raises(lw.InputError, match=re.escape(message))


def test_mistakes(model: lw.Model) -> None:
    with refused("input 'x' has an unknown kind\n  got:     'position'"):
        lw.compile(lambda m, x: x, model, {"x": "position"})
    with refused("the output 'out' of a compiled function holds something that is not a number\n  got:     'word'"):
        lw.compile(lambda m, q: "word", model, {"q": "q"})
    with refused("holds something that is not a number"):
        lw.compile(lambda m, q: None, model, {"q": "q"})
    with refused("no such target\n  got:     'fortran'"):
        lw.compile(lambda m, q: q, model, {"q": "q"}).source("fortran")
    with pytest.raises(lw.InputError, match=r"use lw\.math\.where\(condition, a, b\) instead of `if`"):
        lw.compile(lambda m, q: q if q[0] > 0 else -q, model, {"q": "q"})


def test_other_models_by_closure(model: lw.Model) -> None:
    """A function may use several models; each keeps its own."""
    other = model.with_gravity((0, 0, 0))
    f = lw.compile(lambda m, q: m.gravity_force(q) - other.gravity_force(q), model, {"q": "q"})
    q = model.random_configuration(0)
    np.testing.assert_allclose(f(q), model.gravity_force(q), atol=1e-13)
