"""What regrouping costs in digits: extreme inertias on every joint type, against the same text with fifty digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.algorithms.catalogue import Trees
from tests.oracles.eager import Eager
from tests.random_trees import BUILT_IN, random_joint, random_placement

mpmath = pytest.importorskip("mpmath")

SLENDER = [1e-3, 1e-9, 1e-12, 1e-15, 1e-18, 1e-30]


@pytest.fixture(autouse=True)
def _many_digits() -> Any:
    with mpmath.workdps(50):
        yield


def _exact(model: lw.Model, name: str, *arrays: np.ndarray) -> np.ndarray:
    numbers = [np.array([mpmath.mpf(float(x)) for x in a], object) for a in arrays]
    return np.vectorize(float, otypes=[float])(getattr(model, name)(*numbers))


def _single(joint: lw.Joint, **body: Any) -> lw.Model:
    b = lw.ModelBuilder("one")
    b.add_body("a", joint=joint, check_inertia=False, **body)
    return b.build()


@pytest.mark.parametrize("moment", SLENDER)
@pytest.mark.parametrize("axis", [(0, 0, 1), (1, 0, 0), (0, -1, 0)])
@pytest.mark.parametrize("kind", [lw.Revolute, lw.Cylindrical, lambda axis: lw.Helical(0.0, axis), lw.Planar])
def test_a_rod_that_spins_about_itself(kind: Any, axis: tuple[float, ...], moment: float) -> None:
    moments = np.where(np.abs(axis) > 0, moment, 1.0)
    model = _single(kind(axis), mass=1.0, inertia=np.diag(moments))
    assert model.mass_matrix(model.neutral())[0, 0] == pytest.approx(moment, rel=1e-14)


@pytest.mark.parametrize("height", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("kind", [lw.Revolute, lw.Cylindrical])
def test_a_mass_centre_far_along_the_axis(kind: Any, height: float) -> None:
    inertia = np.array([[0.4, 0.02, 0.01], [0.02, 0.3, -0.03], [0.01, -0.03, 0.2]])
    model = _single(kind(), mass=2.0, com=(0.03, -0.02, height), inertia=inertia)
    about_axis = 0.2 + 2.0 * (0.03**2 + 0.02**2)
    assert model.mass_matrix(model.neutral())[0, 0] == pytest.approx(about_axis, rel=1e-14)


@pytest.mark.parametrize("offset", [1e-6, 1e-12, 1e-17])
def test_a_mass_centre_hardly_off_the_axis(offset: float) -> None:
    model = _single(lw.Revolute((0, 0, 1)), mass=2.0, com=(offset, 0, 1e6)).with_gravity((0, 9.81, 0))
    assert model.gravity_force(np.zeros(1))[0] == pytest.approx(-2.0 * 9.81 * offset, rel=1e-14)
    assert model.mass_matrix(np.zeros(1))[0, 0] == pytest.approx(2.0 * offset**2, rel=1e-13)


def _extreme_body(rng: np.random.Generator, case: str) -> dict[str, Any]:
    """Bodies that could exist: moments of a rod or a plate of widely different sizes, along body axes or turned."""
    a, b = 10.0 ** rng.uniform(-14, 0, size=2)
    squares = np.array([1.0, a, b])[rng.permutation(3)]  # ∫x² dm along the principal axes
    inertia = np.diag(squares.sum() - squares)
    if case == "turned":
        R = random_placement(rng, 0.0)[:3, :3]
        inertia = R @ inertia @ R.T
        inertia = (inertia + inertia.T) / 2
    far = 10.0 ** rng.uniform(-8, 5, size=3)
    return {"mass": float(10.0 ** rng.uniform(-6, 3)), "com": far.tolist(), "inertia": inertia}


@pytest.mark.parametrize("case", ["straight", "turned"])
@pytest.mark.parametrize("kind", BUILT_IN)
def test_extreme_bodies_on_every_joint(kind: str, case: str) -> None:
    """In every entry of 𝓜 as many digits as the entry's own two freedoms carry, and as good as the bodies' frames."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        b = lw.ModelBuilder("extreme")
        b.add_body("a", joint=random_joint(rng, kind, 1.0), placement=random_placement(rng, 1.0), check_inertia=False,
                   **_extreme_body(rng, case))  # fmt: skip
        b.add_body("b", "a", joint=random_joint(rng, kind, 1.0), placement=random_placement(rng, 1.0),
                   check_inertia=False, **_extreme_body(rng, case))  # fmt: skip
        model = b.build()
        for q in (model.neutral(), model.random_configuration(rng)):
            exact, ours = _exact(model, "mass_matrix", q), model.mass_matrix(q)
            plain = np.array(_in_body_frames(model).mass_matrix(q))
            scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
            error, yardstick = np.abs(ours - exact) / scale, np.abs(plain - exact) / scale
            assert (error < 1e-14 + 20.0 * yardstick.max()).all(), (seed, error.max(), yardstick.max())


def _in_body_frames(model: lw.Model) -> Any:
    trees = Trees(model)
    trees.__dict__["fast"] = trees.in_body_frames
    return Eager(model, trees=trees)


def test_what_cannot_be_regrouped_exactly_stays() -> None:
    """No body has these moments; the numbers are used as they are, to the last digit."""
    model = _single(lw.Revolute(), mass=1.0, inertia=np.diag([1.0, 0.25, 1e-20]))
    assert model.mass_matrix(np.zeros(1))[0, 0] == 1e-20


def test_regrouping_leaves_the_usual_counts() -> None:
    from linkwise.functions.counting import count

    counts = count("linkwise_inverse", 6, "regrouped"), count("linkwise_forward", 6, "regrouped")
    assert [(c.M, c.A) for c in counts] == [(382, 323), (854, 766)]


@pytest.mark.parametrize("moment", SLENDER)
def test_a_rod_across_its_hinge_spins_with_its_parent(moment: float) -> None:
    """What the child hands to its parent and what it keeps cancel about the rod, and must leave its own moment."""
    b = lw.ModelBuilder("two")
    b.add_body("a", joint=lw.Revolute((1, 0, 0)), check_inertia=False)
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.diag([moment, 1.0, 1.0])}
    b.add_body("b", "a", joint=lw.Revolute((0, 0, 1)), check_inertia=False, **rod)
    M = b.build().mass_matrix(np.zeros(2))
    assert M[0, 0] == pytest.approx(moment, rel=1e-14)
    assert M[1, 1] == pytest.approx(1.25, rel=1e-15)


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "universal"])
def test_a_long_chain_is_handed_inboard_without_loss(kind: str) -> None:
    """Sixty links hand on to each other what their joints do not move, and none of it is taken for rounding."""
    rng = np.random.default_rng(7)
    b = lw.ModelBuilder("long")
    for k in range(60):
        points = rng.normal(size=(4, 3)) * 0.2
        inertia = sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points)
        parent = f"link{k - 1}" if k else "world"
        b.add_body(f"link{k}", parent, random_joint(rng, kind, 0.0), random_placement(rng, 0.0), mass=1.0,
                   com=rng.normal(size=3) * 0.1, inertia=inertia)  # fmt: skip
    model = b.build()
    q = rng.normal(size=model.nq)
    v, x = rng.normal(size=(2, model.nv))
    ours, plain = Eager(model).inverse_dynamics(q, v, x), _in_body_frames(model).inverse_dynamics(q, v, x)
    np.testing.assert_allclose(ours, plain, rtol=0, atol=1e-12 * np.abs(plain).max())
