"""Linearised dynamics of real robots against Pinocchio's analytical derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest

import linkwise as lw
from bench.robots import ROBOTS
from tests.derivatives.differences import eager, relative
from tests.oracles.pinocchio_oracle import Oracle, from_urdf

CASES = [("panda", False), ("g1", False), ("g1", True), ("talos", False), ("talos", True)]
TOLERANCE = 1e-8


def _loaded(name: str, floating: bool) -> tuple[lw.Model, Oracle]:
    robot = ROBOTS[name]
    model = lw.load(robot.path, floating=floating, locked=list(robot.locked))
    return model, from_urdf(model, robot.path, floating=floating)


def _states(model: lw.Model, count: int) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(3)
    return [(model.random_configuration(rng), *rng.normal(size=(2, model.nv))) for _ in range(count)]


def _theirs_inverse(oracle: Oracle, q: Any, v: Any, vdot: Any, f_ext: Any) -> tuple[np.ndarray, ...]:
    A, data = oracle.A, oracle.data
    extra = () if f_ext is None else (oracle._forces(f_ext),)
    pin.computeRNEADerivatives(oracle.theirs, data, oracle.q(q), A @ v, A @ vdot, *extra)
    M = np.triu(data.M)
    return A.T @ data.tau, A.T @ data.dtau_dq @ A, A.T @ data.dtau_dv @ A, A.T @ (M + np.triu(M, 1).T) @ A


def _theirs_forward(oracle: Oracle, q: Any, v: Any, tau: Any) -> tuple[np.ndarray, ...]:
    A, data = oracle.A, oracle.data
    inverse = np.linalg.inv(A)
    pin.computeABADerivatives(oracle.theirs, data, oracle.q(q), A @ v, inverse.T @ tau)
    M = np.triu(data.Minv)
    M = inverse @ (M + np.triu(M, 1).T) @ inverse.T
    return inverse @ data.ddq, inverse @ data.ddq_dq @ A, inverse @ data.ddq_dv @ A, M


@pytest.mark.parametrize(("name", "floating"), CASES)
def test_inverse(name: str, floating: bool) -> None:
    model, oracle = _loaded(name, floating)
    rng = np.random.default_rng(5)
    for k, (q, v, vdot) in enumerate(_states(model, 2)):
        f_ext = rng.normal(size=(len(model.bodies), 6)) if k else None
        ours = eager(model, "linearize_inverse", q, v, vdot, f_ext=f_ext)
        for mine, theirs in zip(ours, _theirs_inverse(oracle, q, v, vdot, f_ext), strict=True):
            assert relative(mine, theirs) < TOLERANCE


@pytest.mark.parametrize(("name", "floating"), CASES)
def test_forward(name: str, floating: bool) -> None:
    model, oracle = _loaded(name, floating)
    for q, v, tau in _states(model, 2):
        ours = eager(model, "linearize_forward", q, v, tau)
        for mine, theirs in zip(ours, _theirs_forward(oracle, q, v, tau), strict=True):
            assert relative(mine, theirs) < TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "floating"), CASES)
def test_compiled(name: str, floating: bool) -> None:
    model, _ = _loaded(name, floating)
    states = _states(model, 9)
    batch = [np.stack(x) for x in zip(*states, strict=True)]
    for method in ("linearize_inverse", "linearize_forward"):
        whole = getattr(model, method)(*batch)
        for k, state in enumerate(states):
            expected = eager(model, method, *state)
            single = getattr(model, method)(*state)
            for field in expected._fields:
                assert relative(getattr(whole, field)[k], getattr(expected, field)) < 1e-10
                assert relative(getattr(single, field), getattr(expected, field)) < 1e-10
