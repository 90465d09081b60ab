"""Calls that the campaign once found to fail, made small; and some that hold what is promised."""

from __future__ import annotations

import math

import pytest

from campaign.mechanisms import Recipe
from campaign.trials.calls import Case, Given, check

ARM = Recipe(seed=0, bodies=3, types=("revolute", "spherical"))
BIG = Recipe(seed=0, bodies=4, types=("free",))


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("shift", [0, 1, 4, 7, 9])
def test_wide_results_at_any_alignment(side: str, shift: int) -> None:
    """Rows of more than 2 kB go by way of scratch memory; whole lines are then copied to the caller."""
    check(Case(BIG, "linearize_forward", batch=(16,), out=f"{side}+{shift}"))


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8", "f2"])
@pytest.mark.parametrize("layout", ["fortran", "reversed", "strided", "read-only", "start+3", "end+5"])
def test_layouts_and_types(dtype: str, layout: str) -> None:
    check(Case(ARM, "gravity_force", batch=(11,), given=(Given(dtype, layout),), out="end+0", threads=2))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e300])
def test_a_bad_state_stays_alone(bad: float) -> None:
    check(Case(ARM, "gravity_force", batch=(19,), bad=bad))


def test_no_states_of_symbols_rolled() -> None:
    rolled = Recipe(seed=0, types=("helical",), sweeps="rolled")
    check(Case(rolled, "linearize_forward", batch=(0,), given=(Given(), Given(), Given("O"))))


def test_no_states_in_steps_of_time() -> None:
    check(Case(Recipe(seed=0, types=("spherical",)), "state_space", batch=(0,), dt=0.1))


@pytest.mark.parametrize("function", ["integrate", "difference"])
def test_single_precision_with_parameters(function: str) -> None:
    with_mass = Recipe(seed=0, parameters=("mass",))
    check(Case(with_mass, function, batch=(3,), given=(Given("f4"), Given("f4"))))


def test_directions_that_cannot_be_moved() -> None:
    check(Case(Recipe(seed=0, types=("prismatic",)), "operational_inertia", batch=(3,)))


def test_threads_that_are_no_number_for_no_states_rolled() -> None:
    rolled = Recipe(seed=0, bodies=2, sweeps="rolled")
    check(Case(rolled, "linearize_forward", batch=(0,), mistake="threads"))
