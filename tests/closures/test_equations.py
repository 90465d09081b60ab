"""Residuals, rates, Jacobians and bias terms: against poses by NumPy, and against differences in forty digits."""

from __future__ import annotations

from dataclasses import fields

import mpmath
import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.mechanism.closures import ClosureInstance, RelativePose
from tests.closures.mechanisms import BETWEEN, RELATIONS, T, closed_tree


@pytest.mark.parametrize("kind", BETWEEN)
def test_errors_are_those_of_the_poses(kind: str) -> None:
    case = closed_tree(1, [kind, "spherical"])
    model, rng = case.model, np.random.default_rng(0)
    q = model.random_configuration(rng)  # not closed
    poses = model.poses(q)
    expected: list[float] = []
    for c in model.closures:
        assert isinstance(c, ClosureInstance)
        A, B = (
            (np.eye(4) if body < 0 else poses[body]) @ np.array(placement)
            for body, placement in ((c.body_a, c.placement_a), (c.body_b, c.placement_b))
        )
        expected += c.type.residual(RelativePose.from_matrix((np.linalg.inv(A) @ B).tolist()), T)
    np.testing.assert_allclose(model.closure_error(q, t=T), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [*BETWEEN, *RELATIONS])
def test_rates_against_differences_in_many_digits(kind: str) -> None:
    case = closed_tree(2, [kind], n=4, structured=0.3, types=("revolute", "spherical", "free", "prismatic", "planar"))
    model, rng = case.model, np.random.default_rng(1)
    v = rng.normal(size=model.nv)
    J = model.constraints.jacobian(case.q, t=T, v=v)
    rate, bias = model.constraints.rate(case.q, v, t=T), model.constraints.bias(case.q, v, t=T)
    places = model._place_rows
    model = lw.Model(**{f.name: getattr(model, f.name) for f in fields(model)})  # which takes symbols
    others = [r for r in range(len(J)) if r not in places]
    with mpmath.workdps(40):
        h = mpmath.mpf(10) ** -10

        def number(x: object) -> np.ndarray:
            return np.array([mpmath.mpf(float(y)) for y in np.ravel(x)], object)

        q, w, t = number(case.q), number(v), mpmath.mpf(T)

        def error(s: object, direction: np.ndarray, moves_time: bool) -> np.ndarray:
            time = np.array(t + s if moves_time else t, object)
            return np.asarray(model.closure_error(model.integrate(q, direction * s), t=time), object)

        def rates(s: object, change: np.ndarray) -> np.ndarray:
            at = model.integrate(q, w * s)
            return np.asarray(model.constraints.rate(at, w + change, t=np.array(t + s, object)), object)

        zero = mpmath.mpf(0)
        if places:
            here, ahead, behind = (error(s, w, True) for s in (zero, h, -h))
            first = np.array((ahead - behind) / (2 * h), float)
            second = np.array((ahead - 2 * here + behind) / h**2, float)
            np.testing.assert_allclose(rate[places], first, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(bias[places], second, rtol=1e-10, atol=1e-10)
        for k in range(model.nv):
            unit = number(np.eye(model.nv)[k])
            if places:
                slope = np.array((error(h, unit, False) - error(-h, unit, False)) / (2 * h), float)
                np.testing.assert_allclose(J[places, k], slope, rtol=1e-11, atol=1e-11)
            if others:
                slope = np.array((rates(zero, unit * h) - rates(zero, unit * -h)) / (2 * h), float)[others]
                np.testing.assert_allclose(J[others, k], slope, rtol=1e-11, atol=1e-11)
        if others:
            along = np.array((rates(h, 0 * w) - rates(-h, 0 * w)) / (2 * h), float)[others]
            np.testing.assert_allclose(bias[others], along, rtol=1e-11, atol=1e-11)


def test_a_relation_may_name_a_joint_twice() -> None:
    arm = samples.planar_arm(3)
    first, last = arm.joints[0].name, arm.joints[2].name
    twice = arm.with_coupling("twice", lambda q: [q[0] + 3.0 * q[1] * q[2]], 1, joints=[first, last, first])
    q, v = np.array([0.4, -0.3, 0.7]), np.array([0.2, 0.5, -0.6])
    J = twice.constraints.jacobian(q)
    np.testing.assert_allclose(J, [[1.0 + 3.0 * 0.7, 0.0, 3.0 * 0.4]], atol=1e-14)
    np.testing.assert_allclose(twice.constraints.rate(q, v), J @ v, atol=1e-14)
    vdot = twice.forward_dynamics(q, v, np.zeros(3))
    np.testing.assert_allclose(J @ vdot + twice.constraints.bias(q, v), 0.0, atol=1e-12)
