"""Energy of bodies that are thrown and dropped: none is created where steps are passive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.contact.scenes import block, one_body, placed

SHAPES: dict[str, tuple[float, ...]] = {
    "box": (0.2, 0.15, 0.1),
    "sphere": (0.1,),
    "capsule": (0.05, 0.15),
    "cylinder": (0.06, 0.16),
    "ellipsoid": (0.12, 0.08, 0.06),
}


def largest_rise(kind: Any, passive: bool, count: int, steps: int) -> float:
    """The largest rise of energy in a step, relative, among so many drops with random turns, speeds and inertias."""
    rng = np.random.default_rng(7)
    inertia = [0.004, 0.005, 0.0065]
    rules, material = lw.ContactRules(passive=passive), lw.Material(friction=0.5)
    model = one_body(kind, SHAPES[kind], 1.0, inertia).with_contacts(lw.Ground(), material=material, rules=rules)
    q = np.concatenate([rng.normal(size=(count, 4)), np.zeros((count, 2)), np.full((count, 1), 0.25)], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    v = rng.normal(size=(count, 6)) * [6.0, 6.0, 6.0, 1.0, 1.0, 1.0]
    impulses = np.zeros((count, model.function("contact_step").inputs[3][1][0]))
    energy, worst = model.kinetic_energy(q, v) + model.potential_energy(q), 0.0
    for _ in range(steps):
        end = model.contact_step(q, v, np.zeros_like(v), impulses, 0.002)
        q, v, impulses = end.q, end.v, end.impulses
        after = model.kinetic_energy(q, v) + model.potential_energy(q)
        worst = max(worst, float(((after - energy) / energy).max()))
        energy = after
    return worst


@pytest.mark.parametrize("kind", ["box", "cylinder"])
def test_passive_steps_create_no_energy(kind: str) -> None:
    """Through flight, impacts, tumbling, sliding and rest; steps as they are do, a little."""
    assert largest_rise(kind, True, 40, 250) < 1e-9
    assert 1e-9 < largest_rise(kind, False, 40, 250) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHAPES)
def test_ten_thousand_drops_create_no_energy(kind: str) -> None:
    """Two thousand of each shape."""
    assert largest_rise(kind, True, 2000, 400) < 1e-9


def test_passive_steps_leave_work_alone() -> None:
    """A block that is pulled over the ground is not slowed by the rule: v = (F/m - μg)t; a belt carries one along."""
    rules = lw.ContactRules(passive=True)
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=0.3), rules=rules)
    pull = np.array([0.0, 0.0, 0.0, 5.0, 0.0, 0.0])
    run = lw.simulate(model, placed(0.05), duration=0.5, dt=0.002, method="moreau", control=lambda t, q, v, p: pull)
    assert np.isclose(run.v[-1, 3], (5.0 - 0.3 * 9.81) * 0.5, rtol=1e-9)
    belt = block().with_contacts(lw.Ground(velocity=(1.0, 0.0, 0.0)), material=lw.Material(friction=0.3), rules=rules)
    run = lw.simulate(belt, placed(0.05), duration=0.5, dt=0.002, method="moreau")
    assert np.isclose(run.v[-1, 3], 1.0, atol=1e-9)


def test_passive_steps_are_for_rigid_surfaces() -> None:
    """Springs at points store energy that the rule does not see."""
    soft = lw.Material(stiffness=1e4, damping=0.01)
    model = block().with_contacts(lw.Ground(), material=soft, rules=lw.ContactRules(passive=True))
    with pytest.raises(lw.InputError, match="rigid surfaces"):
        model.contact_step(placed(0.05), np.zeros(6), np.zeros(6))
