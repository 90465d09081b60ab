"""Models with closures in the tools of control: horizons and CasADi take them, integrators of others do not."""

import shutil

import numpy as np
import pytest
from scipy.optimize import minimize

import linkwise as lw
from linkwise.samples import four_bar

N, DT = 12, 0.05


@pytest.fixture(scope="module")
def linkage():
    """A parallelogram at rest off its balance, which its first joint drives."""
    return four_bar(), np.array([0.3, -0.3, 0.3])


def rolled(model, q, u):
    """States that Euler steps lead to, each closed again, by hand."""
    v = np.zeros(model.nv)
    states = [(q, v)]
    for each in u:
        v = v + DT * model.forward_dynamics(q, v, [each, *[0.0] * (model.nv - 1)])
        q = model.constraints.project_configuration(model.integrate(q, DT * v))
        v = model.constraints.project_velocity(q, v)
        states.append((q, v))
    return states


def test_horizon_of_a_linkage_is_as_scipy_finds_it(linkage):
    model, q0 = linkage
    problem = lw.control.Shooting(
        model,
        N,
        DT,
        running=lambda m, q, v, u: 0.2 * u,
        terminal=lambda m, q, v: np.concatenate([5.0 * (q[:1] - 0.8), v[:1]]),
        actuated=[model.joints[0].name],
    )
    with pytest.raises(lw.errors.ClosureError, match="is open"):
        problem.solve([0.3, 0.0, 0.0])
    plan = problem.solve(q0)
    assert plan.status == "done"
    assert np.abs(model.closure_error(plan.q)).max() < 1e-10

    def cost(u):
        q, v = rolled(model, q0, u)[-1]
        return 0.5 * (0.04 * u @ u + 25.0 * (q[0] - 0.8) ** 2 + v[0] ** 2)

    assert cost(plan.u[:, 0]) == pytest.approx(plan.cost, rel=1e-9)
    found = minimize(cost, np.zeros(N), tol=1e-10)
    assert plan.cost == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(plan.u[:, 0], found.x, atol=1e-3 * np.abs(found.x).max())


def test_steps_of_a_linkage_are_linearised_all_at_once(linkage):
    model, q0 = linkage
    problem = lw.control.Shooting(
        model, N, DT, running=lambda m, q, v, u: u, actuated=[model.joints[0].name], method="rk4"
    )
    v0 = model.constraints.project_velocity(q0, np.ones(model.nv))
    A, B = problem.linearized(q0, v0, [1.0])

    x, h = np.concatenate([q0, v0, [1.0]]), 1e-5

    def led(x):
        return np.concatenate(problem.steps.next(x[:3], x[3:6], x[6:])).astype(float)

    slopes = [(led(x + h * e) - led(x - h * e)) / (2.0 * h) for e in np.eye(7)]
    np.testing.assert_allclose(np.hstack([A, B]), np.transpose(slopes), atol=1e-7)


def test_dynamics_of_a_linkage_go_to_casadi(linkage, tmp_path):
    casadi = pytest.importorskip("casadi")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    model, q0 = linkage
    f = model.function("forward_dynamics")
    made = lw.control.emit_casadi(f, tmp_path, order=1)
    theirs = casadi.external(made.name, str(made.library))
    v0, tau = model.constraints.project_velocity(q0, np.ones(3)), np.array([1.0, 0.0, 0.0])
    np.testing.assert_allclose(theirs(q0, v0, tau).full()[:, 0], f(q0, v0, tau), rtol=1e-12)
    blocks = theirs.jacobian()(q0, v0, tau, 0.0)
    for name, block in zip(("q", "v", "tau"), blocks, strict=True):
        np.testing.assert_allclose(block.full(), f.jacobian(name)(q0, v0, tau), atol=1e-10)


def test_integrators_of_others_are_refused_what_they_would_let_drift(linkage, tmp_path):
    model, _ = linkage
    with pytest.raises(lw.InputError, match="let closures drift open") as caught:
        lw.control.to_fmu(model, tmp_path / "linkage.fmu")
    assert model.closures[0].name in str(caught.value)


def test_rigid_contacts_are_refused_where_contacts_are_forces(tmp_path):
    b = lw.ModelBuilder("box")
    b.add_body("box", joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), mass=1.0))
    rigid = b.build().with_contacts(lw.Ground())
    soft = b.build().with_contacts(lw.Ground(), material=lw.Material(stiffness=1e4, damping=0.01))
    for use in (
        lambda model: lw.control.to_fmu(model, tmp_path / "box.fmu", compiler=None),
        lambda model: lw.control.Shooting(model, steps=2, dt=0.01, running=lambda model, q, v, u: v),
    ):
        with pytest.raises(lw.InputError, match="rigid surfaces have none"):
            use(rigid)
        use(soft)


def test_what_is_no_compiled_function_is_refused(linkage, tmp_path):
    model, _ = linkage
    for emit in (lw.control.emit_casadi, lw.control.emit_acados):
        with pytest.raises(lw.InputError, match="not a compiled function"):
            emit(model.forward_dynamics, tmp_path)
