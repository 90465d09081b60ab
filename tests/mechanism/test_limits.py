"""Limits of joints: which are refused, and that random configurations keep to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.files import loads
from tests.files.test_urdf_reads import two

INF = math.inf
ONE_COORDINATE = [lw.Revolute(), lw.Prismatic(), lw.Helical(0.1)]
SEVERAL = [lw.Cylindrical(), lw.Universal(), lw.Planar()]
RANGES = [
    (2.0, INF), (-INF, -2.0), (2.0, 3.0), (-3.0, -2.0), (4.0, INF), (-INF, -4.0), (-0.5, INF), (-INF, 0.5),
    (0.7, 0.7), (-5.0, -5.0), (1e9, 1e9), (0.1, 0.1 + 1e-12), (-1e308, 1e308), (-INF, INF), (1e6, INF), (0.0, 0.0),
]  # fmt: skip


def _model(joint: lw.Joint, limits: Any) -> lw.Model:
    b = lw.ModelBuilder("limited")
    b.add_body("a", joint=joint, mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.eye(3), limits=limits)
    return b.build()


@pytest.mark.parametrize("joint", ONE_COORDINATE + SEVERAL, ids=repr)
@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_random_configurations_are_within_the_limits(joint: lw.Joint, lower: float, upper: float) -> None:
    model = _model(joint, lw.JointLimits(lower, upper))
    rng = np.random.default_rng(0)
    q = np.array([model.random_configuration(rng) for _ in range(50)])
    assert np.isfinite(q).all()
    assert (q >= lower).all() and (q <= upper).all()
    if upper > lower:
        assert all(len(set(column)) > 1 for column in q.T)


def test_the_usual_range_where_there_are_no_limits() -> None:
    rng = np.random.default_rng(1)
    for joint, most in (
        (lw.Revolute(), [math.pi]), (lw.Prismatic(), [1.0]), (lw.Cylindrical(), [math.pi, 1.0]),
        (lw.Planar(), [math.pi, 1.0, 1.0]), (lw.Universal(), [math.pi] * 2), (lw.Free(), [1.0] * 7),
    ):  # fmt: skip
        q = np.array([_model(joint, None).random_configuration(rng) for _ in range(100)])
        assert (np.abs(q).max(axis=0) <= most).all()
        assert (np.abs(q).max(axis=0) > 0.7 * np.array(most)).all()


@pytest.mark.parametrize("joint", [lw.Spherical(), lw.Free()], ids=repr)
def test_positions_that_no_coordinate_has(joint: lw.Joint) -> None:
    _model(joint, lw.JointLimits(velocity=1.0, effort=2.0))
    with pytest.raises(lw.InputError, match="no coordinate of its own") as error:
        _model(joint, lw.JointLimits(-1.0, 1.0))
    assert "a_joint" in str(error.value)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"effort": -5.0}, ["effort", "negative", "-5.0"]),
        ({"velocity": -1.0}, ["velocity", "negative"]),
        ({"effort": math.nan}, ["effort", "nan"]),
        ({"velocity": math.nan}, ["velocity", "nan"]),
        ({"lower": math.nan}, ["lower", "nan"]),
        ({"upper": math.nan}, ["upper", "nan"]),
        ({"lower": 1.0, "upper": -1.0}, ["lower limit is above the upper limit", "swap"]),
        ({"lower": INF}, ["lower", "inf"]),
        ({"upper": -INF}, ["upper", "inf"]),
        ({"lower": "low"}, ["lower", "'low'"]),
    ],
)
def test_impossible_limits_are_refused(limits: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(lw.InputError) as error:
        lw.JointLimits(**limits)
    assert all(word in str(error.value) for word in words)


def test_limits_are_limits() -> None:
    with pytest.raises(lw.InputError, match="JointLimits"):
        _model(lw.Revolute(), [(-1.0, 1.0)])
    assert lw.JointLimits(0, 1, 2, 3) == lw.JointLimits(0.0, 1.0, 2.0, 3.0)
    assert lw.JointLimits(effort=0.0).effort == 0.0


@pytest.mark.parametrize("limit", ['lower="1" upper="0"', 'lower="inf" upper="inf"', 'lower="-inf" upper="-inf"'])
def test_files_say_which_joint(limit: str) -> None:
    with pytest.raises(lw.ModelError, match=r":\d+: joint 'j'"):
        loads(two(f"<limit {limit}/>"))
