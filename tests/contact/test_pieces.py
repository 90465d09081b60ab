"""Contact by other ways than one simulation: in pieces, in C, as a rollout with a gradient, in ensembles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import ball, block, placed
from tests.targets.c.test_emit import needs_compiler
from tests.targets.c.test_programs import InC


@pytest.fixture(scope="module")
def model() -> lw.Model:
    """A ball that slides, then rolls."""
    return ball().with_contacts(lw.Ground(), material=lw.Material(friction=0.3, torsion=0.01))


START, SPEED = [1, 0, 0, 0, 0, 0, 0.15], [0, 0, 3.0, 1.0, 0, 0]


def test_pieces_are_one_simulation(model: lw.Model) -> None:
    whole = lw.simulate(model, START, SPEED, duration=0.4, dt=0.002, method="moreau")
    sim = lw.Simulation(model, START, SPEED, dt=0.002, method="moreau")
    for _ in range(20):
        sim.advance(0.02)
    np.testing.assert_allclose(sim.q, whole.q[-1], atol=1e-13)
    np.testing.assert_allclose(sim.contacts.force[0], whole.contacts.force[-1], atol=1e-10)
    assert sim.x.shape == (0,)
    sim.set(q=START)
    assert (sim.contacts.impulse == 0.0).all()
    sim.advance(0.1)
    assert sim.q[6] > 0.1 - 1e-9


def test_methods_change_on_the_way(model: lw.Model) -> None:
    """Steps with contact begin where another method was, and the other way round; rigid surfaces are refused there."""
    soft = model.with_contacts(lw.Ground(), material=lw.Material(stiffness=1e4, damping=0.01))
    sim = lw.Simulation(soft, START, dt=0.001, method="rk4").advance(0.05)
    fallen = sim.q[6]
    sim.method = "moreau"
    sim.advance(1.0)
    assert fallen < 0.15
    assert np.isclose(0.1 - sim.q[6], 9.81 / 1e4, rtol=1e-4)
    sim.method = "rk4"
    sim.advance(0.1)
    assert np.isclose(0.1 - sim.q[6], 9.81 / 1e4, rtol=1e-4)
    rigid = lw.Simulation(model, START, method="moreau")
    with pytest.raises(lw.InputError, match="rigid surfaces"):
        rigid.method = "rk4"


@needs_compiler
def test_in_c(model: lw.Model, tmp_path: Path) -> None:
    here = lw.Simulation(model, START, SPEED, dt=0.002, method="moreau")
    there = InC(here, tmp_path)
    for duration in (0.1, 0.05, 0.2):
        here.advance(duration)
        assert there.advance(duration) == 0
        for name in ("q", "v"):
            np.testing.assert_allclose(np.array(getattr(there.now, name)), getattr(here, name), atol=1e-12)
    impulses = here._observed["contact_impulses"]
    assert np.abs(impulses).max() > 0.01
    np.testing.assert_allclose(np.array(there.now.contacts)[: len(impulses)], impulses, atol=1e-12)


def test_rollouts(model: lw.Model) -> None:
    """A step of contact, repeated: the same as a simulation."""

    def step(m, q, v, impulses):
        done = m.contact_step(q, v, np.zeros(6), impulses, 0.002)
        return {"q": done.q, "v": done.v, "impulses": done.impulses}

    rows = model.function("contact_step").inputs[3][1]
    one = lw.compile(step, model, inputs={"q": "q", "v": "v", "impulses": rows})
    q, _, _ = lw.rollout(one, 200)(np.array(START, float), np.array(SPEED), np.zeros(rows))
    whole = lw.simulate(model, START, SPEED, duration=0.4, dt=0.002, method="moreau")
    np.testing.assert_allclose(q, whole.q[-1], atol=1e-11)


def test_ensembles() -> None:
    """How far blocks slide: each stops after v²/2μg."""
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    speeds = np.zeros((16, 6))
    speeds[:, 3] = np.linspace(1.0, 2.0, 16)

    def way(motion):
        return np.stack([motion.v[:, 0, 3], motion.q[:, -1, 4]], axis=-1)

    found = lw.ensemble(
        model, {"q0": placed(0.05), "v0": speeds}, members=16, duration=1.0, dt=0.004, method="moreau",
        keep=[{"way": way}],
    )  # fmt: skip
    v, x = np.asarray(found["way"]).T
    assert np.ptp(v) > 0.5
    np.testing.assert_allclose(x, v * v / (2 * 0.5 * 9.81), atol=3e-5)
