"""Instants at which contact points touch, slip, stick and part, beside closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import G, ball, block, placed


def told(motion: lw.Trajectory, before: str, after: str) -> list[float]:
    return [s.t for s in motion.contacts.switches() if (s.before, s.after) == (before, after)]


def test_a_thrown_block_stops() -> None:
    """After v/μg, whatever the step."""
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    for dt in (0.004, 0.0013):
        motion = lw.simulate(model, placed(0.05), [0, 0, 0, 2.0, 0, 0], duration=1.0, dt=dt, method="moreau")
        stops = told(motion, "slips", "sticks")
        assert len(stops) == 4  # corners
        np.testing.assert_allclose(stops, 2.0 / (0.5 * G), atol=1e-9)
    assert {s.name for s in motion.contacts.switches()} == {"thing on ground"}


def pad() -> lw.Model:
    """A foot of one point that slides up and down, and along."""
    b = lw.ModelBuilder("pad")
    b.add_body("lift", joint=lw.Prismatic(axis=(0, 0, 1)), mass=0.5, inertia=np.eye(3))
    foot = lw.shapes.sphere(0.05, mass=0.5)
    b.add_body("foot", parent="lift", joint=lw.Prismatic(axis=(1, 0, 0)), shape=foot)
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))


def pulled(along: float, up: float) -> lw.Trajectory:
    """By forces that grow with time."""

    def pull(t, q, v, p):
        return [up * t, along * t]

    return lw.simulate(pad(), [0.05, 0.0], duration=2.5, dt=0.002, method="moreau", control=pull)


def test_what_is_pulled_ever_harder_slips() -> None:
    """When the pull exceeds μmg."""
    (begins,) = told(pulled(3.0, 0.0), "sticks", "slips")
    assert begins == pytest.approx(0.5 * G / 3.0, abs=1e-9)


def test_what_is_lifted_ever_harder_parts() -> None:
    (parts,) = told(pulled(0.0, 6.0), "sticks", "open")
    assert parts == pytest.approx(G / 6.0, abs=1e-9)


def test_slip_is_that_past_a_belt() -> None:
    belt = lw.Ground(velocity=(0.3, 0.0, 0.0))
    model = block().with_contacts(belt, material=lw.Material(friction=0.5))
    motion = lw.simulate(model, placed(0.05), [0, 0, 0, 1.0, 0, 0], duration=0.5, dt=0.002, method="moreau")
    np.testing.assert_allclose(motion.contacts.slip[0], [[0.7, 0.0, 0.0]] * 4, atol=1e-12)
    np.testing.assert_allclose(motion.contacts.slip[-1], 0.0, atol=1e-9)
    np.testing.assert_allclose(told(motion, "slips", "sticks"), 0.7 / (0.5 * G), atol=1e-9)


def test_a_ball_that_falls_touches() -> None:
    model = ball().with_contacts(lw.Ground())
    motion = lw.simulate(model, [1, 0, 0, 0, 0, 0, 0.6], duration=0.6, dt=0.004, method="moreau")
    (lands,) = told(motion, "open", "sticks")
    assert lands == pytest.approx(np.sqrt(2 * 0.5 / G), abs=1e-9)


def test_batches_are_refused() -> None:
    model = ball().with_contacts(lw.Ground())
    motion = lw.simulate(model, [[1, 0, 0, 0, 0, 0, 0.2]] * 2, duration=0.1, dt=0.002, method="moreau")
    with pytest.raises(lw.InputError, match="of one motion"):
        motion.contacts.switches()
    assert motion[0].contacts.switches() == motion[1].contacts.switches()
