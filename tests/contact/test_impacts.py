"""Impacts as events, at their exact times."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import G, ball, placed, shape


def test_a_bounce_by_events_is_exact() -> None:
    """From 1 m with e = 0.8: again 0.64 m high, and at rest after √(2/g)(1 + e)/(1 - e)."""
    law = lw.Material(restitution=0.8, threshold=0.0)
    model = ball().with_contacts(lw.Ground(), material=law)
    fall = np.sqrt(2.0 / G)
    times = [0.0, fall + 0.8 * fall]
    run = lw.simulate(model, placed(1.1), duration=times[1], output_times=times, events=lw.impacts(model))
    assert run.q[-1, 6] - 0.1 == pytest.approx(0.64, abs=1e-9)
    with pytest.warns(lw.errors.IntegrationWarning, match='method="moreau", without these events'):
        run = lw.simulate(model, placed(1.1), duration=5.0, events=lw.impacts(model))
    assert run.status == "zeno"
    exact = fall * (1.0 + 2.0 * np.cumsum(0.8 ** np.arange(1, 41)))
    found = [event.t for event in run.events]
    assert found[1:41] == pytest.approx(exact, abs=1e-9)
    rest = found[40] + (found[40] - found[39]) * 0.8 / (1.0 - 0.8)  # what all further bounces would take
    assert rest == pytest.approx(fall * 9.0, abs=1e-9)
    assert run.t[-1] == pytest.approx(fall * 9.0, abs=1e-7)
    assert fall * 9.0 == pytest.approx(4.0637, abs=1e-4)


def test_an_oblique_impact_with_friction_and_spin() -> None:
    """A ball that slips throughout: the tangential impulse is μ times the normal one, and turns it."""
    mu, e, speed = 0.1, 0.5, np.array([3.0, -2.0])
    model = ball().with_contacts(lw.Ground(), material=lw.Material(friction=mu, restitution=e))
    after = model.contacts.impact(placed(0.1), [0, 0, 0, speed[0], 0, speed[1]])
    normal = (1 + e) * 2.0
    assert after.impulses == pytest.approx([normal, -mu * normal, 0.0], abs=1e-12)
    assert after.v == pytest.approx([0, mu * normal * 0.1 / 0.004, 0, 3.0 - mu * normal, 0, e * 2.0], abs=1e-12)


def test_a_ball_that_grips_leaves_without_slip() -> None:
    model = ball().with_contacts(lw.Ground(), material=lw.Material(friction=5.0, restitution=0.7))
    v = model.contacts.impact(placed(0.1), [0, 0, 0, 1.0, 0, -2.0]).v
    assert v[3] == pytest.approx(5.0 / 7.0, abs=1e-12)
    assert v[3] - 0.1 * v[1] == pytest.approx(0.0, abs=1e-12)


def test_open_surfaces_and_compliant_ones_do_not_strike() -> None:
    down = [0, 0, 0, 0, 0, -1.0]
    rigid = ball().with_contacts(lw.Ground())
    assert rigid.contacts.impact(placed(0.2), down).v == pytest.approx(down, abs=0)
    soft = ball().with_contacts(lw.Ground(), material=lw.Material(stiffness=1e4))
    assert soft.contacts.impact(placed(0.1), down).v == pytest.approx(down, abs=0)


def test_an_impact_of_a_closed_mechanism_keeps_its_loops() -> None:
    from dataclasses import replace

    from linkwise.samples import four_bar

    at = np.eye(4)
    at[2, 3] = 1.0
    bare = four_bar(1)
    bodies = tuple(
        replace(b, collisions=(shape("sphere", (0.01,), at),)) if b.name == "rod1" else b for b in bare.bodies
    )
    ground = np.eye(4)
    ground[2, 3] = np.cos(1.0) - 0.01
    law = lw.Material(friction=0.0, restitution=0.5)
    model = replace(bare, bodies=bodies).with_contacts(lw.Ground(ground), only=["rod1"], material=law)
    q = model.assemble([1.0, -1.0, 1.0])
    v = model.constraints.project_velocity(q, [1.0, -1.0, 1.0])
    after = model.contacts.impact(q, v).v
    assert np.abs(model.constraints.rate(q, after)).max() < 1e-12
    assert after == pytest.approx(-0.5 * np.asarray(v), abs=1e-9)


def test_impacts_as_events_are_those_of_the_parameters_of_a_run() -> None:
    """Friction and mass of each state of a batch; that of the model counted, in silence."""
    law = lw.Material(friction=0.2, restitution=0.5, threshold=0.0)
    model = ball().with_contacts(lw.Ground(), material=law).with_parameters(["friction", "thing.mass"])
    p = np.array([[0.0, 1.0], [0.5, 1.0], [1.0, 1.0], [1.0, 4.0]])
    fall = np.sqrt(2.0 * 0.5 / G)
    given = {"duration": 1.2 * fall, "p": p, "events": lw.impacts(model)}
    run = lw.simulate(model, np.tile(placed(0.6), (4, 1)), np.tile([0, 0, 0, 15.0, 0, 0], (4, 1)), **given)
    slowed = 0.2 * p[:, 0] * 1.5 * G * fall  # it slips throughout
    assert run.q[:, -1, 4] == pytest.approx(15.0 * 1.2 * fall - slowed * 0.2 * fall, abs=1e-9)
    assert run.v[:, -1, 1] == pytest.approx(p[:, 1] * slowed * 0.1 / 0.004, abs=1e-9)  # the inertia stays
