"""Actions of crocoddyl: its own finite differences, and its own solver beside ours."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import planar_arm

crocoddyl = pytest.importorskip("crocoddyl")

GOAL = np.array([0.8, -0.6])


def running(model, q, v, u):
    return np.concatenate([0.1 * u, 0.05 * v, 0.02 * lw.math.sin(q)])


def terminal(model, q, v):
    return np.concatenate([10.0 * (q - GOAL), 3.0 * v])


@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_derivatives_are_those_of_finite_differences(method):
    action = lw.control.crocoddyl_action(
        planar_arm(2), lambda m, q, v, u: u @ u + q @ v + v @ v, dt=0.05, method=method
    )
    numbers = crocoddyl.ActionModelNumDiff(action, False)
    data, theirs = action.createData(), numbers.createData()
    x, u = np.array([0.3, -0.4, 0.5, 0.2]), np.array([0.7, -0.1])
    for model, into in ((action, data), (numbers, theirs)):
        model.calc(into, x, u)
        model.calcDiff(into, x, u)
    assert data.cost == theirs.cost
    for name in ("Fx", "Fu", "Lx", "Lu"):
        np.testing.assert_allclose(getattr(data, name), getattr(theirs, name), atol=2e-5)
    np.testing.assert_allclose(data.Luu, 2.0 * np.eye(2), atol=1e-12)


def test_its_solver_finds_what_ours_finds():
    model, N = planar_arm(2), 20
    x0 = np.array([0.1, 0.2, 0.0, 0.0])
    step = lw.control.crocoddyl_action(model, running, dt=0.05)
    end = lw.control.crocoddyl_action(model, terminal, dt=None)
    solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(x0, [step] * N, end))
    hold = model.gravity_force(x0[:2])
    assert solver.solve([x0] * (N + 1), [hold] * N, 200, False)
    plan = lw.control.shoot(model, x0[:2], steps=N, dt=0.05, running=running, terminal=terminal)
    assert solver.cost == pytest.approx(plan.cost, rel=1e-9)
    np.testing.assert_allclose(np.array(solver.us), plan.u, atol=1e-4)


def test_quaternions_are_refused():
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    with pytest.raises(lw.InputError, match="plain numbers"):
        lw.control.crocoddyl_action(b.build(), running, dt=0.1)


def test_costs_and_steps_that_are_none_are_refused_where_the_action_is_made():
    arm = lw.samples.planar_arm(2)
    with pytest.raises(lw.InputError, match="not a function"):
        lw.control.crocoddyl_action(arm, None, dt=0.1)
    with pytest.raises(lw.InputError, match="no such step"):
        lw.control.crocoddyl_action(arm, lambda m, q, v, u: u, dt=0.1, method="heun")
    with pytest.raises(lw.InputError, match="not a model"):
        lw.control.crocoddyl_action("arm", running, dt=0.1)
