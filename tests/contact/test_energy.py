"""Energy of bodies that are thrown and dropped: none is created, nor by mechanisms whose steps are passive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import four_bar
from tests.contact.scenes import ball, block, one_body, placed, shape
from tests.contact.test_beside_contacts import ball_on

SHAPES: dict[str, tuple[float, ...]] = {
    "box": (0.2, 0.15, 0.1),
    "sphere": (0.1,),
    "capsule": (0.05, 0.15),
    "cylinder": (0.06, 0.16),
    "ellipsoid": (0.12, 0.08, 0.06),
}


def drops(kind: Any, count: int, steps: int) -> tuple[np.ndarray, float]:
    """Rises of energy in steps, relative, of so many drops with random turns and speeds, and the largest overlap."""
    rng = np.random.default_rng(7)
    inertia = [0.004, 0.005, 0.0065]
    model = one_body(kind, SHAPES[kind], 1.0, inertia).with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    q = np.concatenate([rng.normal(size=(count, 4)), np.zeros((count, 2)), np.full((count, 1), 0.25)], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    v = rng.normal(size=(count, 6)) * [6.0, 6.0, 6.0, 1.0, 1.0, 1.0]
    return rises_of_steps(model, q, v, steps, 0.002)


def rises_of_steps(model: lw.Model, q: Any, v: Any, steps: int, dt: float) -> tuple[np.ndarray, float]:
    """Rises of energy in steps, beside the kinetic and the first energy, and the largest overlap."""
    impulses = np.zeros((len(q), model.function("contact_step").inputs[3][1][0]))
    energy, found, overlap = model.kinetic_energy(q, v) + model.potential_energy(q), [], 0.0
    first = np.abs(energy)
    for _ in range(steps):
        end = model.contact_step(q, v, np.zeros_like(v), impulses, dt)
        q, v, impulses = end.q, end.v, end.impulses
        moving = model.kinetic_energy(q, v)
        after = moving + model.potential_energy(q)
        found.append((after - energy) / np.maximum(first, moving))
        energy, overlap = after, max(overlap, -model.contacts.points(q).gap.min())
    return np.array(found), overlap


@pytest.mark.parametrize("kind", SHAPES)
def test_bodies_that_move_alone_create_no_energy(kind: str) -> None:
    """Through flight, impacts, tumbling, sliding and rest; and no step leaves an overlap."""
    rises, overlap = drops(kind, 40, 250)
    assert rises.max() < 1e-10
    assert overlap < 2e-12


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHAPES)
def test_ten_thousand_drops_create_no_energy(kind: str) -> None:
    """Two thousand of each shape."""
    rises, overlap = drops(kind, 2000, 400)
    assert rises.max() < 1e-10
    assert overlap < 2e-12


def test_two_bodies_that_strike_each_other_create_no_energy() -> None:
    """A ball and a box on it, above the ground."""
    b, rng, count = lw.ModelBuilder("two"), np.random.default_rng(1), 40
    inertia = np.diag([0.004, 0.005, 0.0065])
    for name, kind in (("below", "box"), ("above", "sphere")):
        b.add_body(
            name, joint=lw.Free(), parent="world", mass=1.0, inertia=inertia, collisions=[shape(kind, SHAPES[kind])]
        )
    model = b.build().with_contacts(
        lw.Ground(), material=lw.Material(friction=0.5), rules=lw.ContactRules(solver="dual")
    )
    q = np.concatenate(
        [
            [*rng.normal(size=(count, 4)).T, *0.02 * rng.normal(size=(count, 2)).T, np.full(count, z)]
            for z in (0.25, 0.55)
        ]
    ).T
    for k in (0, 7):
        q[:, k : k + 4] /= np.linalg.norm(q[:, k : k + 4], axis=1, keepdims=True)
    v = rng.normal(size=(count, 12)) * ([6.0, 6.0, 6.0, 0.3, 0.3, 1.0] * 2)
    rises, overlap = rises_of_steps(model, q, v, 250, 0.002)
    assert rises.max() < 1e-10
    assert overlap < 1e-6


def chain(rules: lw.ContactRules) -> lw.Model:
    """Four rods with hinges between them, that fly and touch the ground."""
    b, along = lw.ModelBuilder("chain"), np.array([[0, 0, 1, 0.15], [0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 0, 1.0]])
    rod: dict[str, Any] = {"mass": 1.0, "com": (0.15, 0, 0), "inertia": np.diag([0.002, 0.0085, 0.0085])}
    for k in range(4):
        joint = lw.Revolute(axis=(0, k % 2, 1 - k % 2)) if k else lw.Free()
        at = {"parent": f"rod{k - 1}", "placement": lw.transform(xyz=(0.3, 0, 0))} if k else {}
        b.add_body(f"rod{k}", joint=joint, collisions=[shape("capsule", (0.03, 0.24), along)], **at, **rod)
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5), rules=rules, between=[])


def thrown_chains(model: lw.Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    q = np.concatenate([rng.normal(size=(count, 4)), np.zeros((count, 3)), rng.normal(size=(count, 3))], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 6] = 0.05 - model.contacts.points(q).gap.min(axis=1)
    return q, 2.0 * rng.normal(size=(count, model.nv))


def test_a_mechanism_that_falls_creates_no_energy_where_steps_are_passive() -> None:
    """Others gain some: seventy times as much, if impulses of a blow counted in the step after it.

    No step of either leaves an overlap.
    """
    found = []
    for passive in (False, True):
        model = chain(lw.ContactRules(passive=passive))
        found.append(rises_of_steps(model, *thrown_chains(model, 40), 200, 0.002))
    assert found[1][0].max() < 1e-12 < 1e-5 < found[0][0].max() < 1e-3
    assert max(overlap for _, overlap in found) < 2e-12


def thin_rods(masses: tuple[float, ...], solver: Any) -> lw.Model:
    """Rods with skew hinges between them, hardly any inertia about their own axes, and nothing else that turns."""
    b, length = lw.ModelBuilder("thin rods"), 0.3
    axes = ((0.6, 0, 0.8), (0, 0.8, 0.6))
    for k, mass in enumerate(masses):
        along, inertia = lw.transform(xyz=(0, 0, -0.5 * length)), mass * length**2 / 12.0
        rod: dict[str, Any] = {
            "mass": mass,
            "com": (0, 0, -0.5 * length),
            "collisions": [shape("capsule", (0.02, 0.26), along)],
        }
        rod["inertia"] = np.diag([inertia, inertia, inertia / 300.0])
        at: dict[str, Any] = {"parent": f"rod{k - 1}", "placement": lw.transform(xyz=(0, 0, -length))} if k else {}
        b.add_body(f"rod{k}", joint=lw.Revolute(axis=axes[k - 1]) if k else lw.Free(), **at, **rod)
    rules = lw.ContactRules(solver=solver)
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5), between=[], rules=rules)


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize("masses", [(1.0, 1.0, 1.0), (1.0, 0.1, 1.0), (2.0, 0.2)])
@pytest.mark.parametrize("dt", [0.002, 0.004])
def test_links_that_whirl_after_blows_gain_no_energy(masses: tuple[float, ...], solver: Any, dt: float) -> None:
    """Bias forces of steps in which something turns far are those of no motion: energies would grow to 1e200 J."""
    model, rng, count = thin_rods(masses, solver), np.random.default_rng(5), 40
    q = rng.normal(size=(count, model.nq))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:7] = 0.0, 0.0, 1.2
    run = lw.simulate(model, q, 3.0 * rng.normal(size=(count, model.nv)), duration=0.8, dt=dt, method="moreau")
    energy = np.asarray(model.kinetic_energy(run.q, run.v)) + np.asarray(model.potential_energy(run.q))
    assert (np.abs(run.v).max(axis=(1, 2)) * dt > 0.12).sum() > 2
    assert (energy < 1.01 * energy[:, :1]).all()


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_states_beside_one_that_whirls_are_the_same_to_the_bit(solver: Any) -> None:
    model, rng = thin_rods((1.0, 0.1, 1.0), solver), np.random.default_rng(1)
    step, q = model.function("contact_step"), rng.normal(size=(16, model.nq))
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    q[:, 4:7] = 0.0, 0.0, 0.3
    v = 3.0 * rng.normal(size=(16, model.nv))
    v[::5] *= 20.0
    rest = np.zeros(model.nv), np.zeros(step.inputs[3][1]), 0.002
    together = step(q, v, *rest)
    for k in range(16):
        alone = step(q[k], v[k], *rest)
        np.testing.assert_array_equal(together.q[k], alone.q)
        np.testing.assert_array_equal(together.v[k], alone.v)


def test_passive_steps_of_a_mechanism_that_flies_leave_its_momentum_alone() -> None:
    """In flight and through blows: what is scaled is how its parts move against their mass centre."""
    usual, passive = (chain(lw.ContactRules(passive=x)) for x in (False, True))
    q, v = thrown_chains(usual, 40)
    impulses = np.zeros((40, usual.function("contact_step").inputs[3][1][0]))
    struck, scaled = 0, 0.0
    for _ in range(100):
        ends = [model.contact_step(q, v, np.zeros_like(v), impulses, 0.002) for model in (usual, passive)]
        a, b = (model.momentum(*end[:2])[:, 3:] for model, end in zip((usual, passive), ends, strict=True))
        assert np.abs(a - b).max() < 1e-12 * np.abs(a).max()
        struck += int((ends[0].impulses[:, ::3].sum(axis=1) > 0.1).sum())
        scaled = max(scaled, float(np.abs(ends[1].v - ends[0].v).max()))
        q, v, impulses = ends[1][:3]
    assert struck > 50
    assert scaled > 1e-5


def test_gaps_of_a_step_are_those_at_its_end() -> None:
    """Of a cylinder that lands flat: its lowest point comes to another side of its rim within the step, 0.2 mm deep."""
    model = one_body("cylinder", SHAPES["cylinder"], 1.0, [0.003, 0.003, 0.0018]).with_contacts(lw.Ground())
    tilt, spin = 0.004, -8.0  # rad, rad/s: turned by four times as much in the step, if nothing were there
    q = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0, 0, 0, 0.08 + 0.06 * np.sin(tilt)])
    end = model.contact_step(q, [spin, 0, 1.0, 0, 0, -1.0], np.zeros(6), np.zeros(12), 0.002)
    np.testing.assert_allclose(end.gaps, model.contacts.points(end.q).gap, atol=1e-15)
    assert -2e-12 < end.gaps.min() < 1e-12
    assert end.impulses.max() > 0.5


def test_what_is_dropped_comes_to_rest() -> None:
    """Boxes, within six seconds: nothing keeps them moving, however little."""
    rng = np.random.default_rng(5)
    model = one_body("box", SHAPES["box"], 1.0, [0.004, 0.005, 0.0065]).with_contacts(lw.Ground())
    q = np.concatenate([rng.normal(size=(40, 4)), np.zeros((40, 2)), np.full((40, 1), 0.2)], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    v, impulses = rng.normal(size=(40, 6)) * 3.0, np.zeros((40, 12))
    for _ in range(3000):
        q, v, impulses = model.contact_step(q, v, np.zeros_like(v), impulses, 0.002)[:3]
    assert np.abs(v).max() < 1e-11


def test_impulses_explain_the_motion_of_what_is_dropped() -> None:
    """Vertical momentum changes by weight and normal impulses to rounding, also where energy decides what happens."""
    rng = np.random.default_rng(2)
    model = one_body("box", SHAPES["box"], 1.0, [0.004, 0.005, 0.0065]).with_contacts(lw.Ground())
    q = np.concatenate([rng.normal(size=(100, 4)), np.zeros((100, 2)), np.full((100, 1), 0.2)], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    v, impulses = rng.normal(size=(100, 6)) * 3.0, np.zeros((100, 12))
    struck = 0
    for _ in range(200):
        end = model.contact_step(q, v, np.zeros_like(v), impulses, 0.002)
        fall, after = (
            np.einsum("sij,sj->si", model.pose(x, "thing")[:, :3, :3], y[:, 3:])[:, 2] for x, y in ((q, v), end[:2])
        )
        assert np.abs(after - fall + 9.81 * 0.002 - end.impulses[:, ::3].sum(axis=1)).max() < 1e-13
        struck += int((end.impulses.max(axis=1) > 0.1).sum())
        q, v, impulses = end.q, end.v, end.impulses
    assert struck > 100


def test_a_slow_ball_that_rises_gains_nothing_by_being_caught() -> None:
    """It would come back within the step. The ground stops it, and it must not rise on the way: that was m(gh)²/8."""
    model = ball().with_contacts(lw.Ground())
    q, v = np.array(placed(0.1)), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.5 * 9.81 * 0.002])
    end = model.contact_step(q, v, np.zeros(6), np.zeros(3), 0.002)
    before, after = (model.kinetic_energy(*x) + model.potential_energy(x[0]) for x in ((q, v), end[:2]))
    assert after - before < 1e-12


@pytest.mark.parametrize("overlap", [5e-3, 8e-4, 2e-4, 1e-5, 1e-7])
def test_a_block_that_overlaps_parts_and_stands_still(overlap: float) -> None:
    model = block().with_contacts(lw.Ground())
    run = lw.simulate(model, placed(0.05 - overlap), duration=0.3, dt=0.002, method="moreau", account=False)
    assert run.q[-1, 6] == pytest.approx(0.05, abs=1e-12)
    assert np.abs(run.v[-1]).max() < 1e-9
    assert run.q[:, 6].max() < 0.0506  # with ContactRules.recovery, 0.1 m/s, things fly 0.5 mm high


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


def rises(run: lw.Trajectory) -> float:
    """The largest rise of energy in a step, relative to the largest energy."""
    return float(np.diff(run.energy).max() / np.abs(run.energy).max())


def test_passive_steps_of_a_closed_mechanism() -> None:
    """Three rods fall on a corner, which is put back on its closures after each step."""
    ground = lw.Ground(lw.transform(xyz=(0, 0, 0.4)))
    material = lw.Material(friction=0.0)
    found = []
    for rules in (lw.ContactRules(solver="dual", passive=passive) for passive in (False, True)):
        model = ball_on(four_bar(1), "rod1", (0.0, 0.0, 1.0))
        model = model.with_contacts(ground, only=["rod1"], material=material, rules=rules)
        q0 = model.assemble([0.1, -0.1, 0.1])
        found.append(lw.simulate(model, q0, duration=2.0, dt=0.001, method="moreau", account=False))
    assert rises(found[1]) < 1e-9 < rises(found[0])
    assert np.abs(found[1].q[-1] - found[0].q[-1]).max() < 1e-7


def test_passive_steps_leave_springs_alone() -> None:
    """Energy that soft surfaces or a body that deforms have stored comes back: steps are nearly the same."""
    soft = lw.Material(stiffness=1e4, friction=0.0)
    heights = []
    for passive in (False, True):
        model = ball().with_contacts(lw.Ground(), material=soft, rules=lw.ContactRules(passive=passive))
        run = lw.simulate(model, placed(0.2), duration=0.4, dt=0.0005, method="moreau", account=False)
        heights.append(run.q[:, 6])
    assert heights[0][200:].max() > 0.15
    assert np.abs(heights[1] - heights[0]).max() < 1e-4


def test_surfaces_that_overlap_deeply_part_also_where_steps_are_passive() -> None:
    model = block().with_contacts(lw.Ground(), rules=lw.ContactRules(passive=True))
    run = lw.simulate(model, placed(0.045), duration=0.5, dt=0.002, method="moreau")
    assert 0.0499 < run.q[-1, 6] < 0.0501
    assert run.q[:, 6].max() < 0.0506  # with ContactRules.recovery, 0.1 m/s, things fly 0.5 mm high
