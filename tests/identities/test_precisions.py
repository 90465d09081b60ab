"""float32 against float64, and compiled code against the texts, over every public function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import CATALOGUE
from linkwise.trace.interpreter import interpret
from linkwise.trace.verifier import verify
from tests.oracles.eager import Eager, relative_error
from tests.random_trees import random_q, random_state, random_tree
from tests.seeds import usual

MODELS = {
    "chain": lambda: random_tree(1, 4, ("revolute", "prismatic"), gravity=(0, 0, -9.81)),
    "mixed": lambda: random_tree(2, 4, ("revolute", "spherical", "planar", "fixed", "universal"), branching=0.8),
    "custom": lambda: random_tree(11, 3, ("arm", "rolling", "helical", "cylindrical"), mimic=0.5),
    "free": lambda: random_tree(4, 3, ("revolute", "fixed"), floating=True),
}
NAMES = [
    "inverse_dynamics", "forward_dynamics", "bias_force", "gravity_force", "mass_matrix", "mass_matrix_inverse",
    "coriolis_matrix", "poses", "pose", "velocity", "jacobian", "jacobian_rate", "configuration_rate", "kinetic_energy",
    "potential_energy", "center_of_mass", "momentum", "centroidal_momentum", "centroidal_momentum_matrix",
    "centroidal_inertia", "operational_inertia", "operational_admittance", "regressor", "integrate", "difference",
]  # fmt: skip
PLACED = {"pose", "velocity", "jacobian", "jacobian_rate", "operational_inertia", "operational_admittance"}
ILL = {"operational_inertia"}  # infinite where a body cannot move in all directions


def arguments(model: lw.Model, name: str, rng: np.random.Generator, batch: tuple[int, ...]) -> list[Any]:
    q, v, vdot = random_state(model, rng, batch)
    values = {"q": q, "q0": q, "q1": random_q(model, rng, batch), "v": v, "vdot": vdot, "tau": vdot, "dv": v}
    return [values[each] for each in CATALOGUE[name].inputs]


def by_turns() -> list[Any]:
    """Every function with two models every time, and with the other two under ``slow``: every model has half of all."""
    first = [(name, which) for k, name in enumerate(NAMES) for i, which in enumerate(MODELS) if i // 2 != k % 2]
    return usual(first, *((name, which) for name in NAMES for which in MODELS if (name, which) not in first))


@pytest.mark.parametrize(("name", "which"), by_turns())
def test_compiled_is_the_text(which: str, name: str) -> None:
    if name in ILL and which != "free":
        return  # some direction cannot be moved
    model, rng = MODELS[which](), np.random.default_rng(0)
    static = {"body": "tool"} if name in PLACED else {}
    arrays, eager, function = arguments(model, name, rng, (9,)), Eager(model), model.function(name, **static)
    expected = np.array([getattr(eager, name)(*state, **static) for state in zip(*arrays, strict=True)])
    scale = 1e-8 if name in ILL else 1e-11

    verify(function.program)
    states = [np.concatenate(interpret(function.program, [a[k].tolist() for a in arrays])) for k in range(9)]
    assert relative_error(np.reshape(states, expected.shape), expected) < scale

    assert relative_error(function.general(*arrays), expected) < scale
    assert relative_error(function(*(a[4] for a in arrays)), expected[4]) < scale

    single = function.general(*(a.astype(np.float32) for a in arrays))
    assert single.dtype == np.float32
    assert relative_error(single, expected) < (1e-1 if name in ILL else 3e-3)


def test_float32_only_where_all_are() -> None:
    model = MODELS["chain"]()
    q, v, vdot = random_state(model, np.random.default_rng(0))
    small = [a.astype(np.float32) for a in (q, v, vdot)]
    assert model.inverse_dynamics(*small).dtype == np.float32
    assert model.inverse_dynamics(small[0], v, small[2]).dtype == np.float64
    assert model.kinetic_energy(*small[:2]).dtype == np.float32
    assert model.inverse_dynamics(q.tolist(), v.tolist(), vdot.tolist()).dtype == np.float64
