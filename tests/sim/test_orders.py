"""The order of each integrator, measured: halve the step, watch the error."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.elements import as_elements
from linkwise.sim.explicit import runge_kutta, semi_implicit_euler
from linkwise.sim.generalized_alpha import generalized_alpha
from linkwise.sim.joint_rules import JointRules
from linkwise.sim.loop import loop
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.records import OnGrid
from linkwise.sim.rosenbrock import rosenbrock
from linkwise.sim.step_size import EqualSteps
from linkwise.sim.tableaux import RODAS4, TABLEAUX, GeneralizedAlpha
from linkwise.sim.variational import variational
from linkwise.sim.work import Clock, Span, Work
from linkwise.targets.llvm.program_kernel import ProgramKernel
from tests.sim.mechanisms import double_pendulum, mixed


def push(t, q, v, p):
    return [0.3 * lw.math.sin(3.0 * t) - 0.1 * x for x in v]


def stepper(model, make):
    """Run equal steps of any step: adaptive methods without their control."""
    work = Work(EquationsOfMotion(model, as_elements(push), JointRules(limits="ignore"), 0))
    step = make(work)
    kernel = ProgramKernel.build(loop(work, step, EqualSteps, OnGrid))

    def run(steps, duration, q0, v0):
        count = len(q0)
        rows = {
            "y": np.concatenate([q0, v0], axis=1),
            "p": np.zeros((count, 0)),
            "span": np.zeros((count, Span.SIZE)),
            "clock": np.zeros((count, Clock.SIZE)),
            **({"memory": np.zeros((count, step.memory))} if step.memory else {}),
        }
        rows["span"][:, [Span.END, Span.EVERY]] = duration, steps + 1
        rows["clock"][:, [Clock.H, Clock.LEFT, Clock.COUNTDOWN]] = duration / steps, steps, steps + 1
        kernel.run(rows, {}, {"saved": np.empty((count, 1, rows["y"].shape[1]))}, count)
        return rows["y"]

    return run


METHODS = {name: (lambda work, t=t: runge_kutta(work, t), t.order) for name, t in TABLEAUX.items()}
METHODS |= {
    "euler": (semi_implicit_euler, 1),
    "rodas4": (rosenbrock, RODAS4.order),
    "variational": (variational, 2),
    "generalized_alpha": (lambda work: generalized_alpha(work, GeneralizedAlpha(0.8)), 2),
}
STEPS = {("dop853", "hinges"): (6, 9, 12), ("dop853", "quaternions"): (2, 3, 5), ("rk56", "quaternions"): (8, 16, 24)}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["hinges", "quaternions"])
def test_order(name, kind):
    make, order = METHODS[name]
    rng = np.random.default_rng(4)
    if kind == "hinges":
        model, duration = double_pendulum(), 0.3
        q0, v0 = rng.uniform(-1, 1, (16, 2)), rng.uniform(-1, 1, (16, 2))
    else:
        model, duration = mixed(), 0.5
        q0 = np.stack([model.random_configuration(rng) for _ in range(16)])
        v0 = rng.uniform(-1, 1, (16, model.nv))
    exact = stepper(model, METHODS["dop853"][0])(100, duration, q0, v0)
    run = stepper(model, make)
    sizes = STEPS.get((name, kind), (16, 32, 64))
    errors = [np.sqrt(np.mean((run(n, duration, q0, v0) - exact) ** 2)) for n in sizes]
    assert errors[-1] > 1e-14, "at rounding: no order to measure"
    measured = -np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert measured == pytest.approx(order, abs=0.35 if order < 8 else 0.8)


@pytest.mark.parametrize("tableau", TABLEAUX.values(), ids=lambda t: t.name)
def test_tableaux_are_consistent(tableau):
    for node, row in zip(tableau.nodes, tableau.rows, strict=True):
        assert sum(row.values()) == pytest.approx(node, abs=1e-13)
    for power in range(tableau.order):
        total = sum(weight * tableau.nodes[stage] ** power for stage, weight in tableau.weights.items())
        assert total == pytest.approx(1.0 / (power + 1.0), abs=1e-13)
    for row in tableau.error:
        assert sum(row.values()) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk56", "cash_karp", "rodas4"])
def test_errors_follow_the_tolerance(method):
    model = double_pendulum()
    exact = lw.simulate(model, [0.2, 0.5], None, 2.0, rtol=1e-13, atol=1e-14).q[-1]
    errors = [
        np.abs(lw.simulate(model, [0.2, 0.5], None, 2.0, rtol=tol, method=method).q[-1] - exact).max()
        for tol in (1e-5, 1e-8)
    ]
    assert errors[0] < 1e-2
    assert errors[1] < 1e-5
    assert errors[1] < 0.05 * errors[0]


@pytest.mark.parametrize("method", ["dop853", "dopri5", "rk56"])
@pytest.mark.parametrize("make", [double_pendulum, mixed])
def test_samples_inside_steps_are_as_good_as_steps(method, make):
    model = make()
    q0, v0 = model.random_configuration(3), np.random.default_rng(4).normal(size=model.nv)
    times = np.linspace(0.0, 1.0, 40)
    motion = lw.simulate(model, q0, v0, 1.0, rtol=1e-9, method=method, output_times=times)
    exact = lw.simulate(model, q0, v0, 1.0, rtol=1e-13, atol=1e-14, method="rk56", output_times=times)
    np.testing.assert_allclose(motion.v, exact.v, atol=2e-6)
    np.testing.assert_allclose(motion.q, exact.q, atol=2e-6)
