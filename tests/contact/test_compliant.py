"""Compliant contacts as forces: in adaptive methods, in linearisations, in the account of energy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.sensors import FootForce, Touch
from tests.contact.scenes import G, ball, block, contact, placed, shape, tilted

STIFF = 2e4


def soft(model: lw.Model, **material: object) -> lw.Model:
    given = {"stiffness": STIFF, "friction": 0.5, **material}
    return model.with_contacts(lw.Ground(), material=lw.Material(**given))  # type: ignore[arg-type]


def test_a_ball_on_a_spring_bounces_as_a_spring_does() -> None:
    """Without damping: in contact for half a period of a spring under a weight, energy kept."""
    model = soft(ball(), friction=0.0)
    omega, drop = np.sqrt(STIFF), 0.1
    run = lw.simulate(model, placed(0.1 + drop), account=True, output_times=np.linspace(0.0, 0.6, 6001))
    deepest = G / omega**2 + np.sqrt((G / omega**2) ** 2 + 2 * G * drop / omega**2)
    assert (0.1 - run.q[:, 6]).max() == pytest.approx(deepest, rel=1e-4)
    assert np.ptp(run.energy) < 1e-6
    touching = run.q[:, 6] < 0.1
    assert np.array_equal(run.forces().contact[:, 5] > 0.0, touching)


def test_a_damped_ball_comes_to_rest_at_its_depth() -> None:
    model = soft(ball(), damping=0.01)
    run = lw.simulate(model, placed(0.1), duration=3.0, method="rodas4", rtol=1e-8)
    assert 0.1 - run.q[-1, 6] == pytest.approx(G / STIFF, rel=1e-6)


@pytest.mark.parametrize("method", ["dop853", "moreau"])
def test_hunt_and_crossley_lose_what_their_damping_says(method: str) -> None:
    """For small losses e = 1 - (2/3) d v (Hunt and Crossley 1975, with a linear spring)."""
    d, speed = 0.05, 1.0
    model = soft(ball(), friction=0.0, law="hunt_crossley", damping=d).with_gravity((0, 0, 0))
    steps = {"dt": 2e-6, "save_every": 50} if method == "moreau" else {}
    run = lw.simulate(model, placed(0.101), [0, 0, 0, 0, 0, -speed], duration=0.05, method=method, **steps)  # type: ignore[arg-type]
    assert run.v[-1, 5] / speed == pytest.approx(1 - 2.0 / 3.0 * d * speed, abs=1.5e-3)


def test_linear_damping_agrees_between_steps_and_forces() -> None:
    given = lw.Material(friction=0.3, stiffness=STIFF, damping=0.002)
    model = ball().with_contacts(lw.Ground(), material=given, rules=lw.ContactRules(friction_speed=1e-4))
    q0, v0 = placed(0.101), [0, 0, 0, 1.0, 0.0, -1.0]
    exact = lw.simulate(model, q0, v0, duration=0.06, rtol=1e-10)
    run = lw.simulate(model, q0, v0, duration=0.06, dt=2e-6, save_every=1000, method="moreau")
    assert run.q[-1] == pytest.approx(exact.q[-1], abs=2e-5)
    assert run.v[-1] == pytest.approx(exact.v[-1], abs=2e-2)


def test_regularised_friction_creeps_no_faster_than_it_says() -> None:
    theta, mu = np.radians(20.0), 0.5
    rules = lw.ContactRules(friction_speed=1e-3)
    given = lw.Material(friction=mu, stiffness=STIFF, damping=0.02)
    model = block().with_contacts(lw.Ground(tilted(theta)), material=given, rules=rules)
    run = lw.simulate(model, placed(0.05, tilted(theta)), duration=1.0, method="rodas4", rtol=1e-6)
    share = np.tan(theta) / mu
    creep = 1e-3 * share / np.sqrt(1 - share**2)
    assert np.linalg.norm(run.v[-1, 3:]) == pytest.approx(creep, rel=1e-3)


def test_forces_follow_from_the_energy_and_linearise() -> None:
    model = soft(ball(), friction=0.0)
    q, v = placed(0.098), np.zeros(6)
    force = model.contacts.force(q, v)
    assert force == pytest.approx([0, 0, 0, 0, 0, STIFF * 0.002], abs=1e-9)
    assert model.passive_force(q, v) == pytest.approx(force)
    h = 1e-7
    slope = (model.contacts.energy(placed(0.098 + h)) - model.contacts.energy(placed(0.098 - h))) / (2 * h)
    assert force[5] == pytest.approx(-slope, rel=1e-6)
    A = model.state_space(q, v, model.gravity_force(q) - force).A
    assert A[11, 5] == pytest.approx(-STIFF, rel=1e-9)


def test_work_of_contacts_is_in_the_account() -> None:
    model = soft(ball(), damping=0.005)
    run = lw.simulate(model, placed(0.15), [0, 0, 0, 1.0, 0, 0], duration=0.5, account=True, rtol=1e-10)
    account = run.energy_account()
    assert np.abs(account.unexplained).max() < 1e-7
    assert account.work["contact"][-1] < -0.1


def test_contacts_of_a_motion_push_as_its_forces_say() -> None:
    """Wrenches on bodies amount to the joint forces, with friction of all kinds, on a hill and on each other."""
    b = lw.ModelBuilder("two")
    kinds: tuple[tuple[str, Any, tuple[float, ...]], ...] = (
        ("low", "box", (0.3, 0.2, 0.1)),
        ("high", "sphere", (0.08,)),
    )
    for name, kind, size in kinds:
        b.add_body(name, joint=lw.Free(), mass=1.0, inertia=np.eye(3) * 0.004, collisions=[shape(kind, size)])
    rubber = lw.Material(friction=(0.2, 0.5), torsion=0.01, rolling=0.005, stiffness=STIFF, damping=0.005)
    model = b.build().with_contacts(lw.Ground(tilted(0.2)), material=rubber)
    q0 = np.concatenate([placed(0.06, tilted(0.2)), placed(0.25, tilted(0.2))])
    v0 = [0.5, 0, 0.3, 0.4, 0.2, 0, 0, 2.0, 3.0, 0.3, 0, -1.0]
    run = lw.simulate(model, q0, v0, duration=0.4, method="rodas4", output_times=np.linspace(0, 0.4, 21))
    found, still = run.contacts, np.zeros_like(run.v)
    without = model.inverse_dynamics(run.q, run.v, still)
    felt = without - model.inverse_dynamics(run.q, run.v, still, f_ext=found.wrenches)
    assert np.abs(felt).max() > 5.0
    np.testing.assert_allclose(felt, model.contacts.force(run.q, run.v), atol=1e-9)
    np.testing.assert_allclose(found.force_on("high", by="low"), -found.force_on("low", by="high"), atol=1e-12)
    assert (found.force_on("high", by="low") != 0.0).any()
    assert np.array_equal(found.count, (found.mode > 0).sum(axis=-1)) and found.count.max() == 5
    assert (found.mode[found.gap >= 0.0] == 0).all() and (found.mode == 1).any()
    assert found.overflow.max() == 0.0


def test_sensors_feel_surfaces_that_give_way() -> None:
    """A post on a foot on the ground: what the foot stands on bears both, and the joint between them the post."""
    b = lw.ModelBuilder("post")
    b.add_body("foot", joint=lw.Prismatic((0, 0, 1)), mass=2.0, collisions=[shape("sphere", (0.1,))])
    b.add_body("post", parent="foot", joint=lw.Prismatic((0, 0, 1)), joint_name="slide", mass=3.0, stiffness=1e4)
    model = soft(b.build(), damping=0.02)
    run = lw.simulate(model, [0.1, -3.0 * G / 1e4], duration=2.0, method="rodas4", rtol=1e-9)
    assert Touch(["foot"]).read(run)[-1, 0] == pytest.approx(5.0 * G, rel=1e-6)
    assert FootForce("foot").read(run)[-1] == pytest.approx([0, 0, 0, 0, 0, 5.0 * G], rel=1e-6)
    assert lw.ForceTorque("slide").read(run)[-1, 5] == pytest.approx(3.0 * G, rel=1e-6)
    assert run.contacts.mode[-1] == [2]
    foot = next(joint.name for joint in model.joints if joint.name != "slide")
    assert lw.ForceTorque(foot).read(run)[-1] == pytest.approx(np.zeros(6), abs=1e-4)  # the ground bears all
    sim = lw.Simulation(model, run.q[-1], method="rodas4")
    sim.advance(0.01)
    assert sim.contacts.force[0, 0, 2] == pytest.approx(5.0 * G, rel=1e-6)


def test_contacts_are_those_of_a_motion_that_is_loaded(tmp_path: Path) -> None:
    run = lw.simulate(soft(ball()), placed(0.1), duration=0.1, method="rodas4")
    again = lw.Trajectory.load(run.save(tmp_path / "soft.npz"), model=run.model)
    assert np.array_equal(again.contacts.force, run.contacts.force)
    with pytest.raises(lw.LinkwiseError, match="contacts needs the model"):
        _ = lw.Trajectory.load(tmp_path / "soft.npz").contacts


def test_what_steps_alone_have_is_refused() -> None:
    found = lw.simulate(soft(ball()), placed(0.1), duration=0.1, method="rodas4").contacts
    for ask in (lambda: found.impulse, lambda: found.residual, found.switches):
        with pytest.raises(lw.InputError, match=r"(?s)steps with method=.moreau.*rodas4.*force"):
            ask()
    bouncing = ball().with_contacts(lw.Ground())
    run = lw.simulate(bouncing, placed(0.2), duration=0.1, events=lw.impacts(bouncing))
    with pytest.raises(lw.InputError, match="no contacts"):
        _ = run.contacts


def test_rigid_surfaces_are_refused_by_methods_that_integrate_forces() -> None:
    model = ball().with_contacts(lw.Ground())
    with pytest.raises(lw.InputError, match='method="moreau"'):
        lw.simulate(model, placed(0.1), duration=0.1, method="dop853")
    with pytest.raises(lw.InputError, match="friction_speed"):
        lw.ContactRules(friction_speed=0.0)
    assert model.contacts.force(placed(0.05), np.zeros(6)) == pytest.approx(np.zeros(6))
    assert contact(lw.simulate(model, placed(0.1), duration=0.1, method="moreau"), "gaps").max() < 1e-12
