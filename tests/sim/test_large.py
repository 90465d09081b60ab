"""Large mechanisms: their sweeps run as loops, the loop over time runs on the host."""

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import double_pendulum, mixed


def chain(n):
    b = lw.ModelBuilder("chain")
    parent = "world"
    for k in range(n):
        axis = (1, 0, 0) if k % 2 else (0, 1, 0)
        at = lw.transform(xyz=(0, 0, -0.05 if k else 0.0))
        b.add_body(
            f"link{k}", parent, lw.Revolute(axis=axis), at, mass=0.1, com=(0, 0, -0.025), inertia=1e-4 * np.eye(3)
        )
        parent = f"link{k}"
    return b.build()


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_chain_of_two_hundred_links_keeps_its_energy(method):
    model = chain(200)
    assert model.rolls
    q0 = 0.05 * np.random.default_rng(0).normal(size=model.nq)
    motion = lw.simulate(model, q0, None, 0.02, method=method, rtol=1e-9, dt=2e-4)
    assert motion.status == "done"
    assert np.abs(motion.q[-1] - q0).max() > 1e-4
    kinetic = 0.5 * np.einsum("ti,ti->t", motion.v, model.function("mass_product")(motion.q, motion.v))
    assert np.ptp(motion.energy) < 1e-7 * kinetic.max()


@pytest.mark.parametrize("method", ["euler", "rk4", "dop853", "dopri5", "rk56", "cash_karp"])
def test_the_same_motion_as_with_sweeps_written_out(method):
    model = mixed()
    q0, v0 = model.random_configuration(3), np.random.default_rng(4).normal(size=model.nv)

    def push(t, q, v, p):
        return [lw.sin(3.0 * t) - 0.1 * x for x in v]

    acts = [push, lw.Thruster(model, "ball", (1, 0, 0), 2.0)]
    options = {"method": method, "control": acts, "rtol": 1e-8, "dt": 1e-2, "output_times": np.linspace(0.0, 0.3, 7)}
    small = lw.simulate(model, q0, v0, 0.3, **options)
    large = lw.simulate(model.with_sweeps("rolled"), q0, v0, 0.3, **options)
    assert large.steps == small.steps
    for name in ("q", "v", "vdot", "tau", "energy"):
        np.testing.assert_allclose(getattr(large, name), getattr(small, name), rtol=1e-10, atol=1e-9)


def test_events_controls_and_batches():
    model = double_pendulum().with_sweeps("rolled")
    q0 = np.array([[0.1, 0.2], [-0.5, 0.3], [0.4, 0.0]])
    swing = lw.Event(lambda t, q, v, p: q[0] + 1.0, name="pass")

    def control(t, q, v, p):
        return -1.0 * v if q[0] < 9.0 else v  # in Python

    options = {"events": swing, "control": [control, lw.JointSprings(model, 2.0)], "rtol": 1e-8}
    with pytest.warns(UserWarning, match="control"):
        rolled = lw.simulate(model, q0, None, 1.0, **options)
        plain = lw.simulate(double_pendulum(), q0, None, 1.0, **options)
    assert [event.state for event in rolled.events] == [event.state for event in plain.events]
    np.testing.assert_allclose([e.t for e in rolled.events], [e.t for e in plain.events], atol=1e-8)
    np.testing.assert_allclose(rolled.q, plain.q, atol=1e-8)
    np.testing.assert_allclose(rolled.energy, plain.energy, atol=1e-8)


def test_methods_that_are_too_heavy_are_refused():
    with pytest.raises(lw.InputError, match="with_sweeps"):
        lw.simulate(chain(70), np.zeros(70), None, 0.1, method="rodas4")
