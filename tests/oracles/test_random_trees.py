"""Mechanisms of every joint type that Pinocchio has, put together in both libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracles.eager import Eager, relative_error
from tests.random_trees import BUILT_IN, random_state, random_tree

pytest.importorskip("pinocchio")

from tests.catalogue_methods import method_of
from tests.oracles.pinocchio_oracle import Oracle, from_model
from tests.seeds import seeds

EXACT, SOLVED = 1e-11, 1e-9


def check(name: str, ours: Any, expected: Any, tolerance: float = EXACT) -> None:
    error = relative_error(ours, expected)
    assert error < tolerance, f"{name}: relative error {error:.2e}"


def compare(ours: Any, oracle: Oracle, bodies: list[str], rng: np.random.Generator) -> None:
    """Every function that both libraries have; ``ours`` answers under the names of the model's methods."""
    model = oracle.model
    q, v, vdot = random_state(model, rng)
    tau, f_ext = rng.normal(size=model.nv), rng.normal(size=(len(model.bodies), 6))
    for name, arguments in {
        "inverse_dynamics": (q, v, vdot),
        "joint_wrenches": (q, v, vdot),
        "bias_force": (q, v),
        "gravity_force": (q,),
        "mass_matrix": (q,),
        "poses": (q,),
        "kinetic_energy": (q, v),
        "potential_energy": (q,),
        "center_of_mass": (q,),
        "momentum": (q, v),
        "centroidal_momentum": (q, v),
        "centroidal_momentum_matrix": (q,),
    }.items():
        check(name, method_of(ours, name)(*arguments), getattr(oracle, name)(*arguments))
    expected = oracle.inverse_dynamics(q, v, vdot, f_ext)
    check("inverse_dynamics, f_ext", ours.inverse_dynamics(q, v, vdot, f_ext=f_ext), expected)
    expected = oracle.joint_wrenches(q, v, vdot, f_ext)
    check("joint_wrenches, f_ext", ours.joint_wrenches(q, v, vdot, f_ext=f_ext), expected)
    check("forward_dynamics", ours.forward_dynamics(q, v, tau), oracle.forward_dynamics(q, v, tau), SOLVED)
    expected = oracle.forward_dynamics(q, v, tau, f_ext)
    check("forward_dynamics, f_ext", ours.forward_dynamics(q, v, tau, f_ext=f_ext), expected, SOLVED)
    check("mass_matrix_inverse", ours.mass_matrix_inverse(q), np.linalg.inv(oracle.mass_matrix(q)), SOLVED)
    for body in bodies:
        check("jacobian", ours.jacobian(q, body=body), oracle.jacobian(q, body))
        check("velocity", ours.velocity(q, v, body=body), oracle.velocity(q, v, body))
        check("pose", ours.pose(q, body=body), oracle.pose(q, body))


@pytest.mark.parametrize("kind", BUILT_IN)
def test_each_type(kind: str) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        model = random_tree(rng, 1 + seed % 4, (kind,))
        compare(Eager(model), from_model(model), [body.name for body in model.bodies], rng)


@pytest.mark.parametrize("seed", seeds(3, of=10))
def test_all_types_together(seed: int) -> None:
    for more in range(8):
        rng = np.random.default_rng(1000 * seed + more)
        model = random_tree(rng, int(rng.integers(2, 10)), (*BUILT_IN, "fixed"), mimic=0.3 * (more % 2), almost=0.3)
        compare(Eager(model), from_model(model), [str(rng.choice([body.name for body in model.bodies]))], rng)


@pytest.mark.parametrize("seed", seeds(2, of=4))
def test_compiled(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_tree(rng, 5, (*BUILT_IN, "fixed"), mimic=0.3 * (seed % 2))
    compare(model, from_model(model), [model.bodies[-1].name], rng)


@pytest.mark.slow
def test_many() -> None:
    for seed in range(3000):
        rng = np.random.default_rng(10**6 + seed)
        model = random_tree(rng, int(rng.integers(1, 14)), (*BUILT_IN, "fixed"), mimic=0.2, almost=0.3)
        compare(Eager(model), from_model(model), [model.bodies[-1].name], rng)
