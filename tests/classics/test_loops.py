"""Divide and conquer, and the constraint-force algorithm, on mechanisms with closed loops."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.algorithms.catalogue import Trees
from linkwise.classics import constraint_force, divide_and_conquer
from linkwise.mechanism.layout import lay_out
from tests.closures.mechanisms import Closed, EagerModel, at_state, closed_tree, dense_accelerations
from tests.random_trees import SINGLE

ALGORITHMS = {"divide and conquer": divide_and_conquer, "constraint force": constraint_force}
KINDS = [["revolute"], ["spherical", "weld"], ["universal", "prismatic", "distance"], ["spherical"] * 3]


def error(name: str, case: Closed) -> float:
    """Against the dense system, solved by singular values: relative."""
    model = case.model
    tree = lay_out(model, align=False, regroup=False)
    state = (x.tolist() for x in (case.q, case.v, case.tau))
    found = np.array(ALGORITHMS[name].forward_dynamics(tree, *state, Trees(model, None).constraints(tree)))
    expected, _, _ = dense_accelerations(case)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_random_trees_with_closures(name: str, seed: int) -> None:
    assert error(name, closed_tree(seed, KINDS[seed], 8, types=(*SINGLE, "spherical"), armature=0.0)) < 1e-9


@pytest.mark.parametrize("name", ALGORITHMS)
def test_six_loops_in_one_another(name: str) -> None:
    model = EagerModel.of(samples.stewart_platform())
    assert error(name, at_state(model, model.neutral(), np.random.default_rng(1))) < 1e-9


@pytest.mark.parametrize("name", ALGORITHMS)
def test_more_equations_than_needed(name: str) -> None:
    """A planar four-bar with hinges: five equations of rank two."""
    b = lw.ModelBuilder("four_bar")
    y, up, over = (0.0, 1.0, 0.0), lw.transform((0.0, 0.0, 1.0)), lw.transform((1.0, 0.0, 0.0))
    solid = {"mass": 1.0, "com": (0.1, 0.0, 0.4), "inertia": np.diag([0.1, 0.2, 0.15])}
    b.add_body("left", "world", lw.Revolute(y), **solid)
    b.add_body("coupler", "left", lw.Revolute(y), up, **solid)
    b.add_body("right", "world", lw.Revolute(y), over, **solid)
    b.add_closure("pin", "coupler", over, "right", up, joint=lw.Revolute(y))
    model = EagerModel.of(b.build())
    turned = np.array([0.4, -0.4, 0.4])
    assert error(name, at_state(model, turned, np.random.default_rng(2))) < 1e-9


def test_relations_between_joints_are_refused() -> None:
    case = closed_tree(3, ["gear"], 9, types=SINGLE, armature=0.0)
    with pytest.raises(lw.InputError, match="between bodies"):
        error("divide and conquer", case)
