"""The variational integrator with bodies that deform: its order, and what it keeps."""

import numpy as np
import pytest

import linkwise as lw
from tests.flexible.mechanisms import arm, panels, state, tree
from tests.flexible.slider_crank import START, closed, ours, slider_crank

MECHANISMS = {"arm": arm, "tree": tree, "panels": panels}


def satellite(axial_modes=0):
    """A free hub with two booms, one on the other's tip, that nothing pushes."""
    boom = lw.FlexibleBody.beam(1.0, 1e5, (5.0, 8.0), 30.0, 0.5, elements=6, modes=(1, 1), axial_modes=axial_modes)
    b = lw.ModelBuilder("satellite", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=2.0, com=(0.1, 0, 0), inertia=np.diag([0.1, 0.2, 0.25]))
    spring = {"stiffness": 3.0}
    b.add_body("near", parent="hub", joint=lw.Revolute(axis=(0, 0, 1)), flexible=boom, **spring)
    b.add_body("far", parent="near", at="tip", joint=lw.Revolute(axis=(0, 1, 0)), flexible=boom, **spring)
    return b.build()


def moving(model):
    """Bodies at rest in themselves, with rates of which the modes have a share."""
    rng = np.random.default_rng(2)
    q, v = model.integrate(model.neutral(), 0.2 * rng.normal(size=model.nv)), 0.3 * rng.normal(size=model.nv)
    for body in model.bodies:
        q[body.q_slice] = 0.0
        v[body.v_slice] *= 0.2
    return q, v


@pytest.mark.parametrize("name", MECHANISMS)
def test_second_order(name):
    model = MECHANISMS[name]()
    q, v = state(model, 1)
    v = 0.3 * v
    duration = 0.05
    exact = lw.simulate(model, q, v, duration, rtol=1e-12, atol=1e-13, output_times=[duration])
    sizes, errors = np.array([200, 400, 800]), []
    for n in sizes:
        run = lw.simulate(model, q, v, duration, dt=duration / n, method="variational", output_times=[duration])
        errors.append(np.abs(np.concatenate([run.q - exact.q, run.v - exact.v], axis=1)).max())
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)


def test_momenta_in_free_space():
    """Linear and angular momentum, to rounding, also with long steps."""
    model = satellite()
    q, v = moving(model)
    run = lw.simulate(model, q, v, 20.0, dt=5e-3, method="variational", save_every=20)
    h = model.momentum(run.q, run.v)
    np.testing.assert_allclose(h, np.broadcast_to(h[0], h.shape), rtol=0, atol=1e-11)
    assert np.ptp(model.kinetic_energy(run.q, run.v)) > 1e-3  # it does move


@pytest.mark.filterwarnings("ignore::linkwise.errors.IntegrationWarning")  # long steps are what it is about
def test_energy_of_a_pendulum_that_bends():
    """Over a thousand swings the energy error stays where it begins, and falls as h²; Runge and Kutta's grows."""
    boom = lw.FlexibleBody.beam(1.0, 1e5, (5.0, 8.0), 30.0, 0.5, elements=6, modes=(0, 2), axial_modes=0)
    b = lw.ModelBuilder("pendulum")
    b.add_body("boom", joint=lw.Revolute(axis=(0, 1, 0)), flexible=boom)
    model = b.build()
    q, v = np.array([0.0, 0.0, np.pi / 2 - 0.5]), np.array([0.1, 0.02, 0.0])

    def errors(method, dt):
        run = lw.simulate(model, q, v, 1500.0, dt=dt, method=method, save_every=50)
        first, *_, last = np.array_split(np.abs(run.energy - run.energy[0]), 10)
        return first.max(), last.max()

    coarse, fine = errors("variational", 4e-3), errors("variational", 2e-3)
    for first, last in (coarse, fine):
        assert last < 1.2 * first
    assert coarse[0] / fine[0] == pytest.approx(4.0, rel=0.2)
    first, last = errors("rk4", 4e-3)
    assert last > 5.0 * first


def test_modes_faster_than_the_step():
    """The axial mode turns by 7 rad in a step: the iteration ends, and the slow motion is right."""
    model = satellite(axial_modes=1)
    fastest = 2 * np.pi * max(body.flexible.held_frequencies.max() for body in model.bodies if body.modes)
    dt = 7.0 / fastest
    q, v = model.integrate(model.neutral(), 0.0 * np.ones(model.nv)), np.zeros(model.nv)
    v[:6] = 0.05, 0.02, -0.1, 0.1, 0.0, 0.2
    run = lw.simulate(model, q, v, 2.0, dt=dt, method="variational", output_times=[2.0])
    exact = lw.simulate(model, q, v, 2.0, rtol=1e-10, atol=1e-12, output_times=[2.0])
    assert np.isfinite(run.q).all()
    np.testing.assert_allclose(run.q[-1, :7], exact.q[-1, :7], atol=2e-4)


def test_a_closed_loop():
    """The slider-crank let go: closed to rounding, its energy kept over four hundred turns."""
    model = slider_crank(driven=False)
    y = closed(START)
    y[7:] *= 0.1
    q, v = ours(model, y[:7]), ours(model, y[7:])
    run = lw.simulate(model, q, v, 2.0, dt=2e-5, method="variational", save_every=200)
    first, *_, last = np.array_split(np.abs(run.energy - run.energy[0]), 5)
    assert last.max() < 2.0 * first.max() < 1e-3 * run.energy[0]
    assert np.abs(model.closure_error(run.q)).max() < 1e-9
