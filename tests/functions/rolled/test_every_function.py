"""Every function of the catalogue rolls and gives what its unrolled text gives: any joints, parameters, mimics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE, INPUTS
from linkwise.functions.rolled.rolled_function import ManyLinksFunction
from tests.random_trees import random_tree

Array = Any


def _inputs(model: lw.Model, name: str, rng: np.random.Generator, count: int) -> list[Array]:
    text = CATALOGUE[name]
    arrays = []
    for n in text.inputs:
        if n in ("q", "q0", "q1"):
            arrays.append(np.array([model.random_configuration(rng) for _ in range(count)]))
        else:
            arrays.append(rng.normal(size=(count, *INPUTS[n].shape(model))))
    return arrays


def _compare(model: lw.Model, name: str, rng: np.random.Generator, optional: tuple[str, ...], states: int) -> None:
    """The loops against the same text run on plain numbers; several states go through the vector kernel too."""
    static = {"body": model.bodies[-1].name} if _takes_body(name) else {}
    arrays = _inputs(model, name, rng, states)
    arrays += [rng.normal(size=(states, *INPUTS[n].shape(model))) for n in optional]
    if model.parameters.names:
        p = model.parameters.nominal
        arrays.append(p * rng.uniform(0.9, 1.1, (states, len(p))))
    function = model.with_sweeps("rolled").function(name, *optional, **static)
    assert isinstance(function, ManyLinksFunction)
    for k, got in enumerate(_states(function(*arrays), states)):
        expected = function.text(*(a[k].reshape(-1).tolist() for a in arrays))
        for x, y in _pairs(got, expected):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-11 * np.abs(np.array(y)).max(), err_msg=name)


def _states(results: Any, count: int) -> list[Any]:
    if isinstance(results, tuple):
        return [tuple(array[k] for array in results) for k in range(count)]
    return [results[k] for k in range(count)]


def _pairs(got: Any, want: Any) -> list[tuple[Array, Array]]:
    return list(zip(got, want, strict=True)) if isinstance(want, tuple) else [(got, want)]


def _takes_body(name: str) -> bool:
    return name in (
        "pose",
        "velocity",
        "jacobian",
        "jacobian_rate",
        "acceleration",
        "force_at",
        "operational_inertia",
        "operational_admittance",
    )


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_rolled_gives_what_unrolled_gives(name: str) -> None:
    for seed, optional in enumerate(dict.fromkeys([CATALOGUE[name].optional, ()])):
        rng = np.random.default_rng(seed)
        model = random_tree(rng, 7, floating=True)  # so that every place can move in every direction
        for states in (1, 5):
            _compare(model, name, rng, optional, states)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_with_mimic_joints(name: str) -> None:
    rng = np.random.default_rng(3)
    model = random_tree(rng, 8, types=("revolute", "prismatic", "spherical"), mimic=0.6, floating=True)
    assert any(joint.mimic for joint in model.joints)
    _compare(model, name, rng, (), states=1)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_with_parameters(name: str) -> None:
    rng = np.random.default_rng(5)
    model = random_tree(rng, 5, floating=True)
    first, last = model.bodies[0].name, model.bodies[-1].name
    names = [f"{first}.mass", f"{last}.com", f"{last}.rpy", f"{last}.inertia", "gravity"]
    _compare(model.with_parameters(names), name, rng, (), states=1)


@pytest.mark.parametrize("name", ["forward_dynamics", "kinetic_energy", "center_of_mass"])
def test_derivatives_are_taken_in_the_tangent_space(name: str) -> None:
    rng = np.random.default_rng(8)
    model = random_tree(rng, 4, types=("free", "spherical", "revolute"), floating=True)
    arrays = _inputs(model, name, rng, 3)
    expected = model.function(name).jacobian("q")(*arrays)
    got = model.with_sweeps("rolled").function(name).jacobian("q")(*arrays)
    assert got.shape[-1] == model.nv
    np.testing.assert_allclose(got, expected, atol=1e-9 * np.abs(expected).max())
