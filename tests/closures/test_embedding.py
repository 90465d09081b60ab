"""The solver in independent freedoms: what it chooses, where it holds, where it cannot."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.algorithms.embedded import pivots
from linkwise.algorithms.factors import BlockTriangular, irreducible_blocks
from tests.closures.mechanisms import EagerModel, closed_tree

Array = Any


def _states(model: lw.Model, seed: int, count: int = 3, spread: float = 0.2) -> tuple[Array, Array, Array]:
    """Closed states around the neutral configuration."""
    rng = np.random.default_rng(seed)
    q = model.assemble(model.integrate(model.neutral(), spread * rng.normal(size=(count, model.nv))))
    v, tau = rng.normal(size=(2, count, model.nv))
    return q, model.constraints.project_velocity(q, v), tau


def _upright(model: lw.Model, seed: int) -> tuple[Array, Array, Array]:
    """States of four-bars, all of whose uprights stay parallel: on other branches the first of them moves nothing."""
    rng = np.random.default_rng(seed)
    pattern = (-1.0) ** np.arange(model.nv)
    return rng.uniform(-1.3, 1.3, (3, 1)) * pattern, rng.normal(size=(3, 1)) * pattern, rng.normal(size=(3, model.nv))


def _independent(model: lw.Model) -> list[str]:
    dependent = {column for _, column in model._trees.pivots()}
    return [name for i, name in enumerate(model.freedom_names) if i not in dependent]


# The parts.
def _with_zeros(rng: np.random.Generator, n: int) -> Array:
    """A matrix with an inverse, blocks of its own, and zeros where an elimination in order would divide."""
    A = rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.4)
    A[range(n), rng.permutation(n)] += 1.0
    while abs(np.linalg.det(A)) < 1e-3:
        A = A + 0.3 * rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.3)
    return A


@pytest.mark.parametrize("n", range(1, 9))
def test_systems_with_zeros_are_solved_by_blocks(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        A, b = _with_zeros(rng, n), rng.normal(size=n)
        factor = BlockTriangular(A.tolist())
        atol = 1e-13 * np.linalg.cond(A)
        np.testing.assert_allclose(factor.solve(b.tolist()), np.linalg.solve(A, b), rtol=0, atol=atol)
        np.testing.assert_allclose(factor.solve_adjoint(b.tolist()), np.linalg.solve(A.T, b), rtol=0, atol=atol)


def test_irreducible_blocks_come_after_what_they_need() -> None:
    A = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0], [1, 1, 0, 1]], float).tolist()
    assert irreducible_blocks(A) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("seed", range(10))
def test_pivots_are_as_many_as_the_rank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 4
    J = rng.normal(size=(6, rank)) @ rng.normal(size=(rank, 9))
    found, left = pivots(J.tolist())
    assert len(found) == rank
    assert left == 0.0
    rows, columns = (list(part) for part in zip(*found, strict=True))
    assert np.linalg.cond(J[np.ix_(rows, columns)]) < 1e4
    found, left = pivots(J.tolist(), independent=range(9 - rank))  # a generic matrix lets any columns be dependent
    assert {column for _, column in found} == set(range(9 - rank, 9))
    assert left < 1e-9
    assert pivots(J.tolist(), independent=range(10 - rank))[1] > 1e-3


# What is chosen.
@pytest.mark.parametrize(
    ("model", "names"),
    [
        (samples.four_bar(1), ["foot0"]),
        (samples.slider_crank(), ["main"]),
        (samples.stewart_platform(), [f"plate_pose[{i}]" for i in range(6)]),
    ],
    ids=["four-bar", "slider-crank", "stewart"],
)
def test_what_is_chosen(model: lw.Model, names: list[str]) -> None:
    """What drives the others, and what they share."""
    assert _independent(model.with_closure_solver("embedding")) == names


def test_stewart_platform_falls_apart_into_its_legs() -> None:
    model = samples.stewart_platform()
    legs = model.with_closure_solver("embedding").function("forward_dynamics").counts
    slides = model.with_closure_solver("embedding", independent=[f"slide{k}" for k in range(1, 7)])
    assert _independent(slides) == [f"slide{k}" for k in range(1, 7)]
    assert legs.mul < 0.6 * model.with_closure_solver("multipliers").function("forward_dynamics").counts.mul
    assert legs.mul < slides.function("forward_dynamics").counts.mul


def test_the_counts_in_the_documentation() -> None:
    """To two per cent: a few operations more or fewer are no news."""
    page = (Path(__file__).parents[2] / "docs" / "api" / "closures.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `samples\.(\w+)\(\)` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) == 5
    for name, cells in rows:
        model = getattr(samples, name)()
        found = model.freedoms(model.assemble(model.neutral()))
        equations = sum(len(closure.equations) for closure in model.closures)
        counted = [model.nv, equations, model.nv - found.count, found.count]
        for solver in ("multipliers", "embedding"):
            counts = model.with_closure_solver(solver).function("forward_dynamics").counts
            counted += [counts.mul + counts.div, counts.add]
        np.testing.assert_allclose([int(x) for x in re.findall(r"\d+", cells)], counted, rtol=0.02, err_msg=name)


# Whether it is right.
MECHANISMS = {
    "four-bar": (samples.four_bar(1), None),
    "four-bars": (samples.four_bar(2, lw.Spherical()), None),
    "slider-crank": (samples.slider_crank(), ["main"]),
    "bricard": (samples.bricard(), None),
    "stewart": (samples.stewart_platform(), None),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_agrees_with_the_others_away_from_where_it_chose(name: str) -> None:
    model, independent = MECHANISMS[name]
    states = _upright(model, 3) if name.startswith("four") else _states(model, 3)
    model = EagerModel.of(model)
    embedded = model.with_closure_solver("embedding", independent=independent)
    for q, v, tau in zip(*states, strict=True):
        expected = model.forward_dynamics(q, v, tau)
        atol = 1e-10 * np.abs(expected).max()
        np.testing.assert_allclose(embedded.forward_dynamics(q, v, tau), expected, rtol=0, atol=atol)
        forces, others = (m.constraint_forces(q, v, tau) for m in (model, embedded))
        for x, y in zip(others, forces, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.abs(y).max())
        caught, others = (m.constraints.impulse(q, v + 1.0) for m in (model, embedded))
        for x, y in zip(others, caught, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.abs(y).max())
        closed = embedded.constraints.project_configuration(model.integrate(q, np.full(model.nv, 1e-4)))
        assert np.abs(embedded.closure_error(closed)).max() < 1e-6


def test_compiled_in_batches() -> None:
    model = samples.bricard()
    q, v, tau = _states(model, 5)
    expected = model.forward_dynamics(q, v, tau)
    found = model.with_closure_solver("embedding").forward_dynamics(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_four_bar_accelerates_as_the_formula_says() -> None:
    """φ̈ = 3(3N + 1)/(2(4N + 1)) g sin φ."""
    n = 2
    model = EagerModel.of(samples.four_bar(n)).with_closure_solver("embedding")
    pattern = np.array([1.0, -1.0] * n + [1.0])
    for phi, rate in ((0.3, 1.0), (1.2, -2.0), (-2.5, 0.5)):
        expected = 3 * (3 * n + 1) / (2 * (4 * n + 1)) * 9.81 * np.sin(phi) * pattern
        found = model.forward_dynamics(phi * pattern, rate * pattern, np.zeros(model.nv))
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-11)


def test_rates_beside_places() -> None:
    """A rolling closure has equations of both kinds: a step towards closure leaves those between rates out."""
    case = closed_tree(2, ["rolling_disc", "distance"])
    embedded = case.model.with_closure_solver("embedding", at=case.q)
    near = case.model.integrate(case.q, np.full(case.model.nv, 1e-5))
    expected = case.model.constraints.project_configuration(near)
    np.testing.assert_allclose(embedded.constraints.project_configuration(near), expected, rtol=0, atol=1e-10)


def test_run_time_parameters() -> None:
    """The freedoms are chosen for the nominal values, the rest follows the parameters."""
    model = samples.slider_crank().with_parameters(["rod.mass", "rod.xyz"])
    embedded = model.with_closure_solver("embedding")
    nominal = model.parameters.nominal
    p = nominal + 0.05 * np.random.default_rng(0).normal(size=(4, len(nominal))) * [1.0, 0.2, 0.0, 0.2]
    q = model.assemble(np.array([0.6, -0.8, -0.02]), p=p)
    v = model.constraints.project_velocity(q, np.ones(3), p=p)
    tau = np.array([0.5, 0.0, -0.3])
    expected = model.forward_dynamics(q, v, tau, p=p)
    assert np.ptp(expected[:, 0]) > 1e-3
    atol = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(embedded.forward_dynamics(q, v, tau, p=p), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("stabilization", ["projection", "baumgarte"])
def test_simulated(stabilization: str) -> None:
    model = samples.slider_crank()
    q = model.assemble([0.5, -0.6, 0.0])
    how = {"duration": 0.3, "rtol": 1e-10, "stabilization": stabilization}
    expected = lw.simulate(model, q, np.zeros(3), **how)
    found = lw.simulate(model.with_closure_solver("embedding", at=q), q, np.zeros(3), **how)
    assert np.abs(expected.q[-1] - q).max() > 0.1
    np.testing.assert_allclose(found.q[-1], expected.q[-1], rtol=0, atol=1e-7)


def test_closures_that_are_released_need_another_solver() -> None:
    model = samples.slider_crank().with_closure_solver("embedding")
    function = model.function("forward_dynamics", "active")
    with pytest.raises(lw.InputError, match="attached and released"):
        function.counts  # noqa: B018


def test_copies_keep_it() -> None:
    model = samples.four_bar(1).with_closure_solver("embedding")
    copy = pickle.loads(pickle.dumps(model))
    assert copy == model
    assert copy._closure_reference == model._closure_reference
    assert model.with_closure_solver("auto")._closure_reference is None


# Where it fails, and says so.
def test_not_finite_where_the_freedoms_chosen_are_not_independent() -> None:
    """A slider does not say which way its crank turns at the dead centres; the crank's angle is enough there."""
    by_slider = EagerModel.of(samples.slider_crank()).with_closure_solver(
        "embedding", independent=["guide"], at=[0.5, -0.6, -0.02]
    )
    model = by_slider.with_closure_solver("auto")
    tau = np.array([1.0, 0.0, 0.0])
    dead = np.zeros(3)
    assert not np.isfinite(by_slider.forward_dynamics(dead, dead, tau)).all()
    expected = model.forward_dynamics(dead, dead, tau)
    by_crank = model.with_closure_solver("embedding", independent=["main"])
    np.testing.assert_allclose(by_crank.forward_dynamics(dead, dead, tau), expected, rtol=0, atol=1e-9)
    q = model.assemble(np.array([1.0, -1.3, -0.05]))
    expected = model.forward_dynamics(q, dead, tau)
    np.testing.assert_allclose(by_slider.forward_dynamics(q, dead, tau), expected, rtol=0, atol=1e-9)


def test_mistakes_are_named() -> None:
    model = EagerModel.of(samples.slider_crank())
    with pytest.raises(lw.InputError, match="another number of freedoms") as error:
        model.with_closure_solver("embedding", independent=["main", "pin"])
    assert "allowed: 1" in str(error.value)
    with pytest.raises(lw.errors.UnknownNameError, match="gudie"):
        model.with_closure_solver("embedding", independent=["gudie"])
    with pytest.raises(lw.InputError, match="independent of each other") as error:
        model.with_closure_solver("embedding", independent=["guide"], at=np.zeros(3))
    assert "'guide'" in str(error.value)
    with pytest.raises(lw.InputError, match="'kkt' chooses no freedoms"):
        model.with_closure_solver("kkt", at=np.zeros(3))
    with pytest.raises(lw.InputError, match="without closures"):
        samples.stanford_arm().with_closure_solver("embedding")
    with pytest.raises(lw.InputError, match="no rolled form"):
        rolled = samples.slider_crank().with_closure_solver("embedding").with_sweeps("rolled")
        rolled.forward_dynamics(*np.zeros((3, 3)))


def test_closures_that_change_afterwards() -> None:
    """One less, and what it held is free; one more that is open where the choice was made is an error."""
    model = EagerModel.of(samples.four_bar(2)).with_closure_solver("embedding")
    fewer = model.without("pin2")
    q = fewer.assemble(0.4 * np.array([1, -1, 1, 0.5, 0.2]))
    v = fewer.constraints.project_velocity(q, np.ones(5))
    expected = fewer.with_closure_solver("nullspace").forward_dynamics(q, v, np.zeros(5))
    np.testing.assert_allclose(fewer.forward_dynamics(q, v, np.zeros(5)), expected, rtol=0, atol=1e-9)
    more = model.with_closure(
        "rope", "rod0", None, "world", lw.transform(xyz=(0, 0, 3)), joint=lw.closures.Distance(2.5)
    )
    with pytest.raises(lw.InputError, match="does not close any more"):
        more.forward_dynamics(q, v, np.zeros(5))
    start = float(model._closure_reference.q[0])
    assert _independent(model.with_coupling("brake", lw.closures.Prescribed("foot0", lambda t: start + 0.0 * t))) == []
