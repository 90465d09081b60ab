"""Every classical algorithm gives what the compiled core gives, on random mechanisms, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms import forward_dynamics, inverse_dynamics, mass_matrix
from linkwise.classics import ALGORITHMS, run
from linkwise.classics.registry import FIXED_AXES, ONE_FREEDOM
from linkwise.mechanism.layout import lay_out
from tests.random_trees import ALL, SINGLE, random_state, random_tree

WITHOUT_MOVING_AXES = ("revolute", "prismatic", "helical", "cylindrical", "planar", "spherical", "free")
TYPES = {
    "all": ALL,
    FIXED_AXES: WITHOUT_MOVING_AXES,
    ONE_FREEDOM: SINGLE,
    "spherical": ("spherical",),
    "revolute": ("revolute",),
    "revolute, prismatic": ("revolute", "prismatic"),
    "revolute, prismatic, helical, cylindrical": (*SINGLE, "cylindrical"),
}


def suitable(name: str, rng: np.random.Generator, n: int) -> lw.Model:
    algorithm = ALGORITHMS[name]
    return random_tree(
        rng,
        n,
        TYPES[algorithm.joints],
        branching=0.0 if algorithm.topology == "chain" else 0.4,
        armature=0.0 if "no armature" in algorithm.needs else 0.5,
        mimic=0.0 if "no mimics" in algorithm.needs or algorithm.joints == "spherical" else 0.3,
    )


def reference(kind: str, model: lw.Model, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The core's own algorithms, eagerly, in their own frames: quicker than compiling a model for one state."""
    tree = lay_out(model)
    flat = [a.tolist() for a in (q, v, x)]
    if kind == "mass matrix":
        return np.array(mass_matrix.mass_matrix(tree, flat[0]), float)
    text = inverse_dynamics.inverse_dynamics if kind == "inverse" else forward_dynamics.forward_dynamics
    return np.array(text(tree, *flat), float)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_agrees_with_the_core(name: str) -> None:
    rng = np.random.default_rng(len(name))
    for n in (1, 2, 4, 7):
        model = suitable(name, rng, n)
        q, v, x = random_state(model, rng)
        expected = reference(ALGORITHMS[name].kind, model, q, v, x)
        scale = np.abs(expected).max()
        # Cholesky, gradients and inverse inertias lose the condition number of the mass matrix, others next to nothing.
        M = reference("mass matrix", model, q, v, x)
        loss = np.linalg.cond(M) if ALGORITHMS[name].kind == "forward" else 1.0
        tolerance = 1e-10 if name == "divide_and_conquer" else 1e-13 + 2e-16 * loss  # it inverts inertias twice
        np.testing.assert_allclose(run(name, model, q, v, x) / scale, expected / scale, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", ["direct", "articulated_body", "newton_euler", "denoc_forward", "vereshchagin"])
def test_any_frames(name: str) -> None:
    """The frames are free: aligned ones give the same."""
    rng = np.random.default_rng(3)
    model = random_tree(rng, 6)
    q, v, x = random_state(model, rng)
    expected = run(name, model, q, v, x)
    np.testing.assert_allclose(
        run(name, lay_out(model, regroup=False), q, v, x), expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max()
    )


def test_agrees_with_the_compiled_model() -> None:
    rng = np.random.default_rng(5)
    model = random_tree(rng, 3, ("revolute", "prismatic"), armature=0.0, branching=0.0)
    q, v, x = random_state(model, rng)
    compiled = {
        "inverse": model.inverse_dynamics(q, v, x),
        "forward": model.forward_dynamics(q, v, x),
        "mass matrix": model.mass_matrix(q),
    }
    for algorithm in ALGORITHMS.values():
        if algorithm.joints not in ("spherical", "revolute"):
            np.testing.assert_allclose(
                run(algorithm.name, model, q, v, x), compiled[algorithm.kind], rtol=1e-10, atol=1e-12
            )


@pytest.mark.parametrize(
    "name", ["newton_euler", "composite_cholesky", "conjugate_gradient", "articulated_body", "noc"]
)
def test_on_symbols(name: str) -> None:
    """The same text on symbols: a pendulum, by hand."""
    sympy = pytest.importorskip("sympy")
    b = lw.ModelBuilder("pendulum", gravity=(0, 0, -10))
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=2.0, com=(0, 0, -0.5), inertia=np.eye(3) * 0.5)
    model = b.build()
    q, v, x = sympy.symbols("q v x")
    result = run(name, model, [q], [v], [x])
    expected = {
        "inverse": x + 10 * sympy.sin(q),
        "forward": x - 10 * sympy.sin(q),
        "mass matrix": sympy.Integer(1),
    }[ALGORITHMS[name].kind]
    assert sympy.simplify(sympy.nsimplify(result.reshape(-1)[0]) - expected) == 0


def test_the_list_is_complete() -> None:
    for algorithm in ALGORITHMS.values():
        assert algorithm.paper in ("Jain 1991", "Saha 1999", "Featherstone 2000")
    assert {a.kind for a in ALGORITHMS.values()} == {"inverse", "forward", "mass matrix"}
    assert ALGORITHMS.of_kind("inverse")[0].name == "newton_euler"
