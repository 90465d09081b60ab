"""The generalized-α method beside closed forms: amplification, energy, order, closures, and what goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import fsolve

import linkwise as lw
from linkwise import samples
from linkwise.sim.generalized_alpha import _StepTexts
from tests.sim.mechanisms import double_pendulum, mixed, slider

MASS = 2.0


def chung_hulbert(rho, omega_h):
    """[d, h v, h² a] after a step from that before, of an undamped oscillator, from the equations of the paper.

    And the first of these after a start: Newmark's step that continues an a which is ahead of the acceleration.
    """
    m, f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
    beta, gamma = 0.25 * (1.0 - m + f) ** 2, 0.5 - m + f
    square = omega_h**2
    after = np.array([[1.0, 0.0, -beta], [0.0, 1.0, -gamma], [(1.0 - f) * square, 0.0, 1.0 - m]])
    before = np.array([[1.0, 1.0, 0.5 - beta], [0.0, 1.0, 1.0 - gamma], [-f * square, 0.0, -m]])
    ahead = m - f
    place = beta + 0.5 * ahead
    start = np.array([[1.0 + place * square, 0.0], [0.5 * square, 1.0]])
    given = np.array([[1.0 - (0.5 - place) * square, 1.0], [-0.5 * square, 1.0]])
    first = np.linalg.solve(start, given)
    w = -square * np.array([[1.0, 0.0], first[0]])
    return np.linalg.solve(after, before), np.vstack([first, w[0] + (1.0 + ahead) * (w[1] - w[0])])


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 1.0])
def test_an_oscillator_takes_the_steps_of_the_paper(rho):
    for omega_h in (0.1, 2.0, 1e3):
        h = 0.01
        stiffness = MASS * (omega_h / h) ** 2
        model = slider()
        spring = lw.JointSprings(model, stiffness)
        run = lw.simulate(model, [0.3], [1.0], 20 * h, dt=h, method=lw.GeneralizedAlpha(rho), control=spring)
        A, first = chung_hulbert(rho, omega_h)
        start = np.array([0.3, h * 1.0])
        expected = [first @ start]
        for _ in range(19):
            expected.append(A @ expected[-1])
        expected = np.array([start, *(state[:2] for state in expected)])
        scale = np.abs(expected[:, :2]).max(axis=0)
        np.testing.assert_allclose(run.q[:, 0] / scale[0], expected[:, 0] / scale[0], atol=1e-8)
        np.testing.assert_allclose(h * run.v[:, 0] / scale[1], expected[:, 1] / scale[1], atol=1e-8)
    assert np.abs(np.linalg.eigvals(A)).max() == pytest.approx(rho, abs=0.01 if rho else 0.1)


def tower(EA=4e6, damping=0.0):
    """Two flexible links."""
    beam = lw.FlexibleBody.beam(
        1.0, EA, (300.0, 300.0), 230.0, 0.155, elements=6, modes=(2, 0), axial_modes=1, torsion_modes=0, damping=damping
    )
    b = lw.ModelBuilder("two links", gravity=(0.0, -9.81, 0.0))
    b.add_body("a", joint=lw.Revolute(axis=(0, 0, 1)), flexible=beam)
    b.add_body("b", parent="a", at="tip", joint=lw.Revolute(axis=(0, 0, 1)), flexible=beam)
    b.add_body("load", parent="b", at="tip", mass=1.0)
    return b.build()


def tip(run):
    return run.model.pose(run.q[-1], "load")[:3, 3]


def test_stiff_links_with_steps_of_many_periods():
    """A hundred times as stiff along the axis changes nothing but what explicit methods pay for it."""
    soft = tower(EA=4e7)
    exact = tip(lw.simulate(soft, soft.neutral(), duration=0.5, rtol=1e-8))
    errors = []
    for n in (125, 250, 500):
        run = lw.simulate(soft, soft.neutral(), duration=0.5, dt=0.5 / n, method="generalized_alpha")
        errors.append(np.linalg.norm(tip(run) - exact))
    assert errors[-1] < 1e-5
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2.0, atol=0.4)
    stiff = tower(EA=4e9)
    run = lw.simulate(stiff, stiff.neutral(), duration=0.5, dt=1e-3, method="generalized_alpha")
    assert np.linalg.norm(tip(run) - exact) < 2e-5  # what 4e7 N still gives way


def test_energy_of_a_linear_structure_is_kept_or_taken():
    """Under ρ = 1 a swinging beam keeps its energy; under less, fast modes lose theirs and slow ones do not."""
    beam = lw.FlexibleBody.beam(1.0, 4e6, (300.0, 300.0), 230.0, 0.155, elements=8, modes=(0, 4), axial_modes=0)
    b = lw.ModelBuilder("mast", gravity=(0.0, 0.0, 0.0))
    b.add_body("mast", joint=lw.Fixed(), flexible=beam)
    model = b.build()
    omega = 2.0 * np.pi * beam.frequencies
    for mode, loses in ((0, False), (3, True)):
        q0 = np.zeros(model.nq)
        q0[mode] = 1e-6  # where the geometry is linear
        h = 0.1 / omega[0]
        kept = lw.simulate(model, q0, duration=200 * h, dt=h, method=lw.GeneralizedAlpha(1.0))
        np.testing.assert_allclose(kept.energy, kept.energy[0], rtol=1e-6)
        run = lw.simulate(model, q0, duration=200 * h, dt=h, method=lw.GeneralizedAlpha(0.5))
        assert (run.energy[-1] < 1e-6 * run.energy[0]) == loses
        if not loses:
            assert run.energy[-1] > 0.98 * run.energy[0]


def test_states_of_actuators_follow():
    """A motor whose current has a time constant far below the step."""
    model = double_pendulum()
    q0 = np.array([0.4, -0.3])
    motor = lw.PD(model, [0.0, 0.0], kp=40.0, kd=4.0)
    series = lw.SeriesElastic(model, [model.joints[1].name], 0.3, stiffness=2e4)
    control = [motor, series]
    exact = lw.simulate(model, q0, duration=0.5, rtol=1e-10, control=control, output_times=[0.5])
    errors = []
    for dt in (4e-3, 2e-3, 1e-3):
        run = lw.simulate(model, q0, duration=0.5, dt=dt, method="generalized_alpha", control=control)
        errors.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert errors[-1] < 1e-4
    assert np.log2(errors[1] / errors[2]) > 1.5


def bar(length):
    return lw.FlexibleBody.beam(
        length, 2e7, (50.0, 50.0), 40.0, 0.8, elements=8, modes=(0, 2), axial_modes=1, torsion_modes=0
    )


def flexible_four_bar():
    """Closed without strain; the crank at -0.8 rad."""
    hinge = lw.Revolute(axis=(0, 1, 0))
    b = lw.ModelBuilder("flexible four-bar")
    b.add_body("crank", joint=hinge, flexible=bar(0.3))
    b.add_body("coupler", parent="crank", at="tip", joint=hinge, flexible=bar(1.0))
    b.add_body("rocker", joint=hinge, placement=lw.transform(xyz=(1.0, 0.0, 0.0)), flexible=bar(0.7))
    b.add_closure("pin", body_a="coupler", node_a="tip", body_b="rocker", node_b="tip", joint=hinge)
    model = b.build()
    turns = [joint.q_slice.stop - 1 for joint in model.joints]

    def place(angles):
        q = model.neutral()
        q[turns] = [-0.8, *angles]
        return q

    def gap(angles):
        q = place(angles)
        return (model.pose(q, "coupler", node="tip") - model.pose(q, "rocker", node="tip"))[[0, 2], 3]

    return model, place(fsolve(gap, [0.3, -1.45], xtol=1e-13))


def test_a_flexible_four_bar():
    model, q0 = flexible_four_bar()
    exact = lw.simulate(model, q0, duration=0.2, rtol=1e-8, output_times=[0.2])
    errors = []
    for n in (50, 100, 200):
        run = lw.simulate(model, q0, duration=0.2, dt=0.2 / n, method=lw.GeneralizedAlpha(0.6))
        ends = [model.pose(each.q[-1], "coupler", node="tip")[:3, 3] for each in (run, exact)]
        errors.append(np.linalg.norm(ends[0] - ends[1]))
        assert np.abs(run.closure_error).max() < 1e-12
    assert errors[-1] < 1e-5
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.5)


def test_closed_chains_and_singular_configurations():
    model = samples.four_bar(2)
    v0 = model.constraints.project_velocity(model.neutral(), [1.0, *[0.0] * (model.nv - 1)])
    exact = lw.simulate(model, model.neutral(), v0, duration=3.0, rtol=1e-10, output_times=[3.0])
    run = lw.simulate(model, model.neutral(), v0, duration=3.0, dt=2e-3, method="generalized_alpha")
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=2e-4)
    assert np.abs(run.closure_error).max() < 1e-12


def test_the_exact_derivative_steps_in_where_the_matrix_is_poor(monkeypatch):
    model = double_pendulum()
    options = {"duration": 0.3, "dt": 0.01, "method": "generalized_alpha"}
    expected = lw.simulate(model, [1.0, 0.2], [3.0, -2.0], **options)
    good = _StepTexts.stiff_part

    def poor(self, *given):
        return [[0.2 * x for x in row] for row in good(self, *given)]

    monkeypatch.setattr(_StepTexts, "stiff_part", poor)
    run = lw.simulate(double_pendulum(), [1.0, 0.2], [3.0, -2.0], **options)
    assert run.status == "done"
    np.testing.assert_allclose(run.q, expected.q, atol=1e-9)


def test_batches_threads_single_precision_and_sweeps():
    model = mixed()
    rng = np.random.default_rng(3)
    q0 = np.stack([model.random_configuration(rng) for _ in range(11)])
    v0 = rng.normal(size=(11, model.nv))
    options = {"duration": 0.3, "dt": 0.01, "method": "generalized_alpha", "save_every": 30}
    many = lw.simulate(model, q0, v0, **options)
    one = lw.simulate(model, q0[4], v0[4], **options)
    np.testing.assert_allclose(many.q[4, -1], one.q[-1], atol=1e-9)
    single = lw.simulate(model, q0.astype(np.float32), v0.astype(np.float32), **options)
    assert single.q.dtype == np.float32
    np.testing.assert_allclose(single.q[:, -1], many.q[:, -1], atol=2e-4)
    rolled = lw.simulate(model.with_sweeps("rolled"), q0[4], v0[4], **options)
    np.testing.assert_allclose(rolled.q[-1], one.q[-1], atol=1e-9)


def test_a_step_that_finds_no_end_says_so():
    model = double_pendulum()

    def wild(t, q, v, p):
        return [300.0 * lw.math.sin(200.0 * x) for x in q]

    with pytest.warns(lw.errors.IntegrationWarning, match=r"(?s)did not converge.*smaller dt"):
        run = lw.simulate(model, [0.3, 0.1], duration=2.0, dt=0.1, method="generalized_alpha", control=wild)
    assert run.status == "failed"


def test_events_and_samples_begin_anew():
    """After a bounce, the accelerations before it are no guide; nor after a sample."""
    model = slider()

    def bounce(t, q, v):
        return q, -v

    wall = lw.Event(lambda t, q, v, p: q[0] - 1.0, direction=1, action=bounce, name="wall")
    pull = lambda t, q, v, p: [4.0]  # noqa: E731
    options = {"duration": 2.0, "control": pull, "events": wall}
    run = lw.simulate(model, [0.0], [0.5], dt=0.01, method="generalized_alpha", **options)
    exact = lw.simulate(model, [0.0], [0.5], rtol=1e-11, **options)
    assert len(run.events) == len(exact.events) >= 1
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-9)
    held = lw.Sampled(model, lambda t, q, v, p: [-30.0 * q[0] - 4.0 * v[0]], rate=50.0)
    options = {"duration": 0.6, "control": held}
    run = lw.simulate(model, [1.0], dt=0.0033, method="generalized_alpha", **options)
    exact = lw.simulate(model, [1.0], rtol=1e-11, **options)
    np.testing.assert_allclose(run.q[-1], exact.q[-1], atol=1e-9)


def test_a_radius_that_is_none_is_refused():
    for wrong in (1.5, -0.1, "0.5", float("nan")):
        with pytest.raises(lw.errors.InputError, match="0 to 1"):
            lw.GeneralizedAlpha(wrong)


def test_constraints_between_rates():
    """A skate, which cannot slide along its second axis, pushed and turned."""
    builder = lw.ModelBuilder("skate", gravity=(0.0, 0.0, 0.0))
    builder.add_body("skate", "world", lw.Planar(), mass=1.0, inertia=np.eye(3))
    builder.add_coupling("edge", lambda q, v, t: [v[1]], 1)
    skate = builder.build()
    options = {
        "duration": 1.0,
        "control": lambda t, q, v, p: [1.0 + 4.0 * lw.math.sin(3.0 * t), 0.5, lw.math.cos(2.0 * t)],
    }
    exact = lw.simulate(skate, skate.neutral(), rtol=1e-10, output_times=[1.0], **options)
    errors = []
    for dt in (0.02, 0.01):
        run = lw.simulate(skate, skate.neutral(), dt=dt, method="generalized_alpha", **options)
        errors.append(np.abs(run.q[-1] - exact.q[-1]).max())
        assert np.abs(run.v[:, 1]).max() < 1e-12
    assert errors[0] < 1e-3
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.3)


@pytest.mark.parametrize("rho", [1, np.int64(1), np.float32(0.5), np.float64(0.5)])
def test_a_spectral_radius_is_any_number(rho):
    assert type(lw.GeneralizedAlpha(rho).spectral_radius) is float
    assert lw.GeneralizedAlpha(rho) == lw.GeneralizedAlpha(float(rho))


@pytest.mark.parametrize("rho", [True, np.True_, "1", None, np.nan, 1.5, np.ones(1)])
def test_a_spectral_radius_that_is_none(rho):
    with pytest.raises(lw.InputError, match="spectral radius"):
        lw.GeneralizedAlpha(rho)
