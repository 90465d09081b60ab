"""Scenes with many pairs of shapes: whole robots, of which the nearest points are kept."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact.scene import meetings_of
from linkwise.targets.llvm import program_kernel
from tests.contact.scenes import G, block, placed, shape

RANGES = lw.JointLimits(0.2, 0.6), lw.JointLimits(-1.1, -0.7)
"""Of its joints, where they have some."""


@cache
def beast(solver: str, limited: bool, tolerance: float = 1e-9, limbs: int = 0, /) -> lw.Model:
    """A trunk on four legs of two links, of boxes, cylinders, capsules and balls that may all touch.

    It may have limbs more: a tail without shapes; beside that a neck without, and a flap with one that follows it.

    One model for all tests that ask for the same: its steps take seconds to compile.
    """
    rules = lw.ContactRules(solver=solver, joint_limits=limited, tolerance=tolerance)
    ranges = RANGES if limited else (None, None)
    b = lw.ModelBuilder("beast")
    b.add_body(
        "trunk",
        joint=lw.Free(),
        mass=6.0,
        inertia=np.diag([0.05, 0.1, 0.12]),
        collisions=[
            shape("box", (0.4, 0.2, 0.1)),
            shape("cylinder", (0.06, 0.12), lw.transform(xyz=(0.24, 0.0, 0.05))),
        ],
    )
    for k, (x, y) in enumerate(((0.18, 0.14), (0.18, -0.14), (-0.18, 0.14), (-0.18, -0.14))):
        b.add_body(
            f"thigh{k}",
            parent="trunk",
            joint=lw.Revolute(axis=(0, 1, 0)),
            limits=ranges[0],
            placement=lw.transform(xyz=(x, y, 0.0)),
            mass=0.8,
            com=(0.0, 0.0, -0.1),
            inertia=np.diag([0.004, 0.004, 0.001]),
            collisions=[shape("capsule", (0.025, 0.12), lw.transform(xyz=(0.0, 0.0, -0.1)))],
        )
        b.add_body(
            f"shank{k}",
            parent=f"thigh{k}",
            joint=lw.Revolute(axis=(0, 1, 0)),
            limits=ranges[1],
            placement=lw.transform(xyz=(0.0, 0.0, -0.2)),
            mass=0.2,
            com=(0.0, 0.0, -0.1),
            inertia=np.diag([0.001, 0.001, 0.0002]),
            collisions=[
                shape("cylinder", (0.015, 0.14), lw.transform(xyz=(0.0, 0.0, -0.09))),
                shape("sphere", (0.022,), lw.transform(xyz=(0.0, 0.0, -0.2))),
            ],
        )
    for name, at, follows in (("tail", -0.2, None), ("neck", 0.2, None), ("flap", 0.0, "neck_joint"))[:limbs]:
        b.add_body(
            name,
            parent="trunk",
            joint=lw.Revolute(axis=(0, 1, 0)),
            limits=lw.JointLimits(-0.3, 0.3) if limited and not follows else None,
            mimic=lw.Mimic(follows, 0.5) if follows else None,
            placement=lw.transform(xyz=(at, 0.0, 0.05)),
            mass=0.7,
            com=(at / 2.0, 0.0, 0.0),
            inertia=np.diag([0.001, 0.004, 0.004]),
            collisions=[shape("sphere", (0.03,), lw.transform(xyz=(0.0, 0.0, 0.1)))] if follows else [],
        )
    return b.build().with_contacts(lw.Ground(), rules=rules, material=lw.Material(friction=0.7))


STANDING = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4 * np.cos(0.5) + 0.022 - 1e-4, *([0.5, -1.0] * 4)])


@pytest.fixture(scope="module")
def crowd() -> lw.Model:
    """It with the rules as they are: of 66 pairs with 126 points the sixteen nearest are kept."""
    return beast("auto", False)


def random_states(model: lw.Model, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Configurations near the ground and velocities."""
    q = np.tile([*STANDING, *[0.0] * (model.nq - len(STANDING))], (count, 1))
    apart = [0.3, 0.3, 0.3, *[0.05] * 3, *[0.7] * (model.nv - 6)]
    q = np.asarray(model.integrate(q, rng.uniform(-1.0, 1.0, (count, model.nv)) * apart))
    return q, rng.normal(size=(count, model.nv)) * 0.5


def test_all_distances_are_those_of_each_pair_alone(crowd: lw.Model) -> None:
    """Loops over pairs of the same kinds agree with the functions of pairs, written out one by one."""
    q, _ = random_states(crowd, 20, np.random.default_rng(1))
    alone = beast("dual", False)
    names = ["shank0", "thigh1", "trunk", "shank3"]
    few = lw.Model.with_contacts(alone, lw.Ground(), only=names, between=[("shank0", "shank3"), ("trunk", "shank0")])
    every, some = crowd.distances(q), few.distances(q)
    places = {
        (m.body.name, m.shape, m.other and m.other.name, m.other_shape): k for k, m in enumerate(meetings_of(crowd))
    }
    for k, m in enumerate(meetings_of(few)):
        there = places[m.body.name, m.shape, m.other and m.other.name, m.other_shape]
        assert np.allclose(every[:, there], some[:, k], atol=1e-12)


def test_the_nearest_points_are_kept_in_order(crowd: lw.Model) -> None:
    """They are those of all pairs with the least gaps, and their numbers say of which pair they are."""
    q, _ = random_states(crowd, 30, np.random.default_rng(2))
    points, distances = crowd.contacts.points(q), crowd.distances(q)
    gaps, pairs = np.asarray(points.gap), (np.asarray(points.number, int) - 1) // 8
    assert gaps.shape == (30, 16)
    assert np.all(np.diff(gaps, axis=-1) >= 0.0)
    assert np.allclose(gaps[:, 0], distances.min(axis=-1), atol=1e-9)
    nearest = np.take_along_axis(distances, pairs, axis=-1)
    assert np.all(gaps >= nearest - 1e-9)
    assert len(crowd.contacts.pairs) == distances.shape[-1]


def test_steps_are_those_of_all_points_written_out() -> None:
    """The primal solver on kept points and the dual one on all find the same step where the solution is unique.

    By how much points turn is known there from accelerations, here from both ends of half a step; of several points of
    a link one speaks for all.
    """
    solved, a, b = both_ways(0)
    assert np.allclose(a.v[solved], b.v[solved], atol=1e-3)
    one_each = solved & (pressing(b).sum(axis=-1) <= 1).all(axis=-1)
    assert one_each.mean() > 0.7
    assert np.allclose(a.v[one_each], b.v[one_each], atol=1e-6)
    assert np.allclose(a.q[one_each], b.q[one_each], atol=1e-8)


@pytest.mark.parametrize("limbs", [1, 3])
def test_limbs_that_touch_nothing_move_as_with_all_points_written_out(limbs: int) -> None:
    """But for what turning does to points."""
    solved, a, b = both_ways(limbs)
    assert pressing(b)[solved].any(axis=(-2, -1)).sum() >= 8
    assert np.allclose(a.v[solved], b.v[solved], atol=5e-3)


def test_a_ball_that_stands_while_its_leg_turns_goes_on_as_written_out() -> None:
    """Turning is known from accelerations, or from both ends of half a step: what differs falls with its cube."""
    b = lw.ModelBuilder("hopper")
    b.add_body("trunk", joint=lw.Free(), mass=3.0, inertia=np.diag([0.05, 0.1, 0.12]))
    given = {"mass": 0.5, "com": (0.0, 0.0, -0.1), "inertia": np.diag([2e-3] * 3)}
    foot = shape("sphere", (0.05,), lw.transform(xyz=(0.0, 0.0, -0.2)))
    b.add_body("thigh", parent="trunk", joint=lw.Revolute(axis=(0, 1, 0)), **given)
    b.add_body("shank", parent="thigh", joint=lw.Revolute(axis=(1, 0, 0)), collisions=[foot], **given)
    model, rng = b.build(), np.random.default_rng(5)
    one, other = (model.with_contacts(lw.Ground(), rules=lw.ContactRules(solver=s)) for s in ("primal", "dual"))
    q, v = np.tile(model.neutral(), (100, 1)), 0.75 * rng.normal(size=(100, model.nv))
    q[:, 7:] = rng.uniform(-0.6, 0.6, (100, 2))
    q[:, 6] -= np.asarray(one.distances(q))[:, 0]
    ahead, back = (np.asarray(one.distances(np.asarray(model.integrate(q, x * v))))[:, 0] for x in (1e-6, -1e-6))
    v[:, 5] -= (ahead - back) / 2e-6  # what comes nearer meets, and is stopped
    a, c = (m.contact_step(q, v, 0.0 * v, dt=0.002) for m in (one, other))
    solved = (np.asarray(a.residuals)[:, 0] < 1e-9) & (np.asarray(c.residuals)[:, 0] < 1e-9)
    assert solved.mean() > 0.95
    off = np.abs(np.asarray(a.v) - np.asarray(c.v))[solved].max(axis=-1)
    assert np.quantile(off, 0.9) < 1e-5
    assert off.max() < 1e-4


def both_ways(limbs: int) -> tuple[np.ndarray, Any, Any]:
    """Steps of a beast on two feet, by the primal and by the dual solver, and which of them both solve."""
    feet, model = ["shank0", "shank3"], beast("auto", False, 1e-9, limbs)
    one, other = (
        model.with_contacts(lw.Ground(), only=feet, material=lw.Material(friction=0.7), rules=lw.ContactRules(solver=s))
        for s in ("primal", "dual")
    )
    q, v = random_states(model, 40, np.random.default_rng(3))
    tau = np.random.default_rng(4).normal(size=v.shape)
    a, b = (m.contact_step(q, v, tau, dt=0.002) for m in (one, other))
    solved = (np.asarray(a.residuals)[:, 0] < 1e-9) & (np.asarray(b.residuals)[:, 0] < 1e-9)
    assert solved.mean() > 0.95
    return solved, a, b


def pressing(end: Any) -> np.ndarray:
    """Of each foot the points that press."""
    pressing: np.ndarray = np.asarray(end.impulses).reshape(len(end.impulses), 2, -1, 3)[..., 0] > 0.0
    return pressing


@pytest.mark.parametrize(("limited", "limbs"), [(False, 0), (True, 0), (True, 1), (True, 3)])
def test_points_along_their_rows_and_all_along_freedoms_find_the_same_step(limited: bool, limbs: int) -> None:
    """Newton's method on rows, and that on velocities of all freedoms, which has another matrix."""
    model, rng = beast("auto", limited, 1e-9, limbs), np.random.default_rng(11)
    q, v = random_states(model, 64, rng)
    if limited:
        ends = np.array([*([0.2, 0.6], [-1.1, -0.7]) * 4, *[[-0.3, 0.3]] * (model.nq - 15)]).T
        q[:, 7:] = np.clip(q[:, 7:], *ends)
        q[:, 6] -= np.minimum(model.distances(q).min(axis=1) + 0.01, 0.0)  # legs that bend have gone into the ground
    tau = rng.normal(size=v.shape)
    few = model.contact_step(q, 6.0 * v, tau, dt=0.002)
    all_freedoms = beast("primal", limited, 1e-9, limbs).contact_step(q, 6.0 * v, tau, dt=0.002)
    if limited:
        assert (np.asarray(few.impulses)[:, 48:56] > 1e-6).sum() > 64
    if limbs:
        assert (np.abs(np.asarray(few.impulses)[:, 56 : 56 + model.nq - 15]) > 1e-6).sum() > 8
    both = [np.asarray(x.residuals)[:, 0] for x in (few, all_freedoms)]
    solved = (both[0] < 1e-7) & (both[1] < 1e-7)
    assert solved.mean() > 0.9
    # Deep overlaps part by 0.2 mm; where the second finds no solution, they need not, and do not.
    eased = np.asarray(few.gaps).min(axis=-1) > np.asarray(all_freedoms.gaps).min(axis=-1) + 1e-4
    assert eased.mean() < 0.1
    solved &= ~eased
    same = np.abs(np.asarray(few.v) - np.asarray(all_freedoms.v)).max(axis=-1) < 2e-6
    assert same[solved].mean() > 0.97  # Coulomb's law may have several solutions


def test_ends_of_ranges_that_no_joint_was_near_are_kept_once_they_are_reached() -> None:
    """Forces throw joints from rest against their ends within a step, and these throw others against theirs."""
    low, rng = np.array([0.2, -1.1] * 4), np.random.default_rng(13)
    q, dt = np.tile(STANDING, (64, 1)), 0.004
    q[:, 6] = 2.0
    q[:, 7:] = low + rng.uniform(0.01, 0.1, (64, 8))
    tau = np.concatenate([np.zeros((64, 6)), rng.normal(size=(64, 8)) * ([80.0, 20.0] * 4)], axis=-1)
    found = [beast(solver, True).contact_step(q, 0.0 * tau, tau, dt=dt) for solver in ("auto", "primal")]
    reached = np.asarray(found[0].impulses)[:, 48:56] > 1e-6
    assert 100 < reached.sum() < 400
    assert (np.asarray(found[0].q)[:, 7:] > low - 1e-9).all()
    assert np.asarray(found[0].residuals)[:, 0].max() < 1e-6
    assert np.allclose(found[0].v, found[1].v, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("solver", ["auto", "primal"])
def test_steps_do_not_hang_on_what_memory_held_before(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """States that use few points beside others that use many: what is passed over is never read."""
    model = beast(solver, True)
    step, rng = model.function("contact_step"), np.random.default_rng(12)
    q, v = random_states(model, 96, rng)
    q[:, 7:] = np.clip(q[:, 7:], [0.2, -1.1] * 4, [0.6, -0.7] * 4)
    given = (q, 2.0 * v, rng.normal(size=v.shape), np.zeros((96, *step.inputs[3][1])), np.full(96, 0.002))
    scratch, outcomes = program_kernel._scratch, []
    for byte in (0x00, 0xFF):  # zeros, and numbers that are none

        def filled(size: int, byte: int = byte) -> tuple[int, np.ndarray]:
            address, memory = scratch(size)
            memory[:] = byte
            return address, memory

        monkeypatch.setattr(program_kernel, "_scratch", filled)
        outcomes.append(step(*given))
    for one, other in zip(*outcomes, strict=True):
        assert np.array_equal(one, other)
        assert not np.isnan(one).any()


def test_a_whole_robot_stands_without_creep(crowd: lw.Model) -> None:
    """On four balls, held by springs at its joints: no slip, and the ground carries its weight."""
    hold = lw.PD(crowd, STANDING, kp=[0.0] * 6 + [200.0] * 8, kd=[0.0] * 6 + [20.0] * 8)
    run = lw.simulate(crowd, STANDING, duration=1.5, dt=0.002, method="moreau", control=hold)
    touched = run.contacts
    late = run.t > 1.0
    assert np.asarray(touched.residual)[late].max() < 1e-9
    assert np.asarray(touched.overflow).max() == 0.0
    pairs = {crowd.contacts.pairs[k] for k in np.unique(touched.pair[late][touched.impulse[late][..., 0] > 0.0])}
    assert pairs == {f"shank{k} on ground" for k in range(4)}
    pressing = sum(touched.pressing(f"shank{k}") for k in range(4))
    assert np.allclose(pressing[late], touched.force[late, :, 2].sum(axis=-1), rtol=1e-9)
    rise = np.diff(crowd.momentum(run.q[[250, -1]], run.v[[250, -1]])[:, 5])[0]
    weight = sum(body.mass for body in crowd.bodies) * G
    assert np.isclose(pressing[251:].sum() * 0.002 - weight * (run.t[-1] - run.t[250]), rise, atol=1e-4)
    feet = [run.model.pose(run.q[i], "shank0")[:3, 3] for i in (-200, -1)]
    assert np.linalg.norm(feet[1] - feet[0]) < 1e-6


def test_robots_that_fall_all_over_lose_energy(crowd: lw.Model) -> None:
    """Without forces at their joints they fold up and lie down; steps after impacts do not speed them up."""
    q, v = random_states(crowd, 16, np.random.default_rng(5))
    impulses = np.zeros((16, crowd.function("contact_step").inputs[3][1][0]))
    energy = [crowd.kinetic_energy(q, v) + crowd.potential_energy(q)]
    missed = []
    for _ in range(150):
        end = crowd.contact_step(q, v, np.zeros_like(v), impulses, 0.002)
        q, v, impulses = end.q, end.v, end.impulses
        energy.append(crowd.kinetic_energy(q, v) + crowd.potential_energy(q))
        missed.append(end.residuals[:, 0])
    assert np.max(np.diff(energy, axis=0)) < 0.05  # J, of 36
    assert np.mean(energy[-1]) < 0.5 * np.mean(energy[0])
    assert np.quantile(missed, 0.99) < 1e-7


def test_an_arm_on_the_world_comes_down_on_a_table() -> None:
    """Its hinge alone bears it, and the table: m g l / 2 about the hinge is the contact's force times its lever."""
    b = lw.ModelBuilder("arm")
    b.add_body(
        "arm", joint=lw.Revolute((0, 1, 0)), com=(0.5, 0, 0), mass=2.0, inertia=np.eye(3) * 0.05, collisions=[tip()]
    )
    table = lw.Ground(lw.transform(xyz=(0, 0, -0.5)))
    model = b.build().with_contacts(table, material=lw.Material(friction=0.0), rules=lw.ContactRules(solver="primal"))
    motion = lw.simulate(model, [0.0], duration=1.0, dt=0.002)
    assert abs(np.sin(motion.q[-1, 0]) - 0.45) < 1e-9
    force = motion.contacts.force[-1].sum(axis=0)
    assert abs(force[2] - 2.0 * 9.81 * 0.5) < 1e-6


def test_too_many_points_beside_what_crowds_do_not_have_are_refused_at_once() -> None:
    def boxes(z: float) -> list[lw.Geometry]:
        return [
            lw.Geometry("box", (0.1, 0.1, 0.1), None, (1, 1, 1), lw.transform(xyz=(0.2 * k, 0, z)), f"{k}")
            for k in range(11)
        ]

    b = lw.ModelBuilder("combs")
    b.add_body("first", joint=lw.Prismatic((0, 0, 1)), joint_name="lead", mass=1.0, collisions=boxes(0.0))
    b.add_body("second", joint=lw.Prismatic((0, 0, 1)), mimic=lw.Mimic("lead"), mass=1.0, collisions=boxes(0.5))
    model = b.build().with_contacts(material=lw.Material(friction=(0.3, 0.5)))
    with pytest.raises(lw.InputError, match=r"(?s)too many points .*friction \(0.3, 0.5\).*121 pairs.*only="):
        lw.simulate(model, [0.0], duration=0.01, method="moreau")
    distances = model.distances([0.0])
    assert distances.shape == (121,)
    assert np.diag(distances.reshape(11, 11)) == pytest.approx(np.full(11, 0.4), abs=1e-12)


def tip() -> lw.Geometry:
    return lw.Geometry("sphere", (0.05,), None, (1, 1, 1), lw.transform(xyz=(1, 0, 0)), "tip")


def box_on_four_corners(rules: lw.ContactRules, material: lw.Material | None = None) -> lw.Model:
    """A block on the ground, by the primal solver."""
    return block().with_contacts(lw.Ground(), rules=rules, material=material)


def test_points_without_room_are_counted_and_said() -> None:
    """With two places a block has two corners left over."""
    model = box_on_four_corners(lw.ContactRules(solver="primal", points=2))
    end = model.contact_step(placed(0.05), np.zeros(6), np.zeros(6), dt=0.002)
    assert end.gaps.shape == (2,)
    assert end.overflow == 2.0
    with pytest.warns(UserWarning, match="no room"):
        lw.simulate(model, placed(0.05), duration=0.01, dt=0.002, method="moreau")


@pytest.mark.parametrize("mass", [1.0, 1e-4])
def test_a_leg_that_a_rod_closes_stands_on_many_points(mass: float) -> None:
    """A trunk on a slide, a rod that a closure holds up on the ground's side: it stands, however light its rod is.

    A light rod moves so easily across that its equations are all but one, seen one by one.
    """
    b = lw.ModelBuilder("leg")
    feet = [
        shape("sphere", (0.02,), lw.transform(xyz=(0.3 + 0.1 * k, y, -0.02))) for k in range(4) for y in (-0.1, 0.1)
    ]
    b.add_body("arm", joint=lw.Revolute((0, 1, 0)), mass=2.0, com=(0.3, 0, 0), inertia=np.eye(3) * 0.1, collisions=feet)
    b.add_body(
        "rod",
        parent="arm",
        joint=lw.Spherical(),
        placement=lw.transform(xyz=(0.2, 0.05, 0.0)),
        mass=mass,
        com=(0, 0, 0.2),
        inertia=np.eye(3) * (0.02 * mass),
    )
    b.add_body("weight", joint=lw.Prismatic((0, 0, 1)), mass=3.0)
    top = lw.transform(xyz=(0.2, 0.05, 0.4))
    b.add_closure("pin", "weight", top, "rod", lw.transform(xyz=(0, 0, 0.4)), joint=lw.Spherical())
    rules = lw.ContactRules(solver="primal")
    ground, smooth = lw.Ground(lw.transform(xyz=(0, 0, -0.0401))), lw.Material(friction=0.0)
    model = b.build().with_contacts(ground, only=["arm"], material=smooth, rules=rules)
    motion = lw.simulate(model, model.start, duration=0.3, dt=0.002, method="moreau")
    assert motion.contacts.residual.max() < 1e-9
    assert np.abs(model.closure_error(motion.q)).max() < 1e-12
    assert np.abs(motion.v[-1]).max() < 1e-6
    levers = motion.contacts.points[-1, :, 0]
    moment = (motion.contacts.force[-1, :, 2] * levers).sum()
    assert moment == pytest.approx(2.0 * G * 0.3 + (3.0 + mass) * G * 0.2, rel=1e-3)


def test_what_crowds_do_not_have_is_refused_by_name() -> None:
    """Friction that differs by direction."""
    rules = lw.ContactRules(solver="primal")
    with pytest.raises(lw.InputError, match="primal contact solver"):
        box_on_four_corners(rules, lw.Material(friction=(0.5, 0.7))).contact_step(
            placed(0.05), np.zeros(6), np.zeros(6)
        )


def standing_on_three(model: lw.Model) -> tuple[np.ndarray, ...]:
    """State, joint forces and impulses of the beast while it lands: some feet stick, and none is about to part."""
    step = model.function("contact_step")
    q, v, impulses = STANDING, np.zeros(model.nv), np.zeros(step.inputs[3][1])
    for _ in range(40):
        tau = np.concatenate([np.zeros(6), 40.0 * (STANDING[7:] - q[7:]) - 0.5 * v[6:]])
        end = step(q, v, tau, impulses, 0.002)
        q, v, impulses = end.q, end.v, end.impulses
    return q, v, np.random.default_rng(0).normal(size=model.nv) * 0.3, impulses


def test_derivatives_are_those_of_differences() -> None:
    """Along random directions of q, v and tau, of a whole robot, whose points are found in loops."""
    model = beast("auto", False, 1e-12)
    step, at = model.function("contact_step"), standing_on_three(model)
    ways = 0.1 * np.random.default_rng(1).normal(size=(3, model.nv))
    found = step.jvp("q", "v", "tau")(*at, 0.002, *ways)
    q, v, tau, impulses = at
    small = 1e-6
    ends = [
        step(model.integrate(q, s * ways[0]), v + s * ways[1], tau + s * ways[2], impulses, 0.002)
        for s in (small, -small)
    ]
    assert np.count_nonzero(np.asarray(ends[0].impulses)[:48:3]) >= 3
    for name in ("q", "v"):  # impulses change their places: the nearest comes first
        a, b = (np.asarray(getattr(end, name)) for end in ends)
        assert np.allclose(getattr(found, name), (a - b) / (2.0 * small), atol=1e-7 * np.abs(a - b).max() / small), name


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_derivatives_in_reverse_are_those_forward(solver: str) -> None:
    """Weights times the Jacobian times directions, of a block that slides and turns."""
    v = np.array([0.0, 0.0, 0.1, 0.5, 0.1, 0.0])
    model = box_on_four_corners(lw.ContactRules(solver=solver), lw.Material(friction=0.5))
    step, rng = model.function("contact_step"), np.random.default_rng(0)
    at = [placed(0.05), v, np.zeros(6), np.zeros(step.inputs[3][1]), 0.002]
    at[3] = step(*at).impulses
    weights, ways = [rng.normal(size=np.shape(x)) for x in step(*at)], rng.normal(size=(3, 6))
    along = sum(np.sum(x * y) for x, y in zip(weights, step.jvp("q", "v", "tau")(*at, *ways), strict=True))
    back = sum(np.sum(x * y) for x, y in zip(step.vjp("q", "v", "tau")(*at, *weights), ways, strict=True))
    assert np.isclose(along, back, rtol=1e-6)


def test_derivatives_of_few_points_are_those_of_the_dual_solver() -> None:
    """A block that slides, by both; but for its turning, since corners may carry it in many ways."""
    v = np.array([0.0, 0.0, 0.0, 0.5, 0.1, 0.0])
    found = []
    for solver in ("primal", "dual"):
        model = box_on_four_corners(lw.ContactRules(solver=solver, tolerance=1e-12), lw.Material(friction=0.5))
        step = model.function("contact_step")
        begin = step(placed(0.05), v, np.zeros(6), np.zeros(step.inputs[3][1]), 0.002).impulses
        found.append([step.jacobian(x)(placed(0.05), v, np.zeros(6), begin, 0.002).v for x in ("v", "tau")])
    for one, other in zip(*found, strict=True):
        assert np.allclose(np.delete(one, 2, axis=0), np.delete(other, 2, axis=0), atol=1e-5)


@pytest.mark.slow
def test_a_stack_of_ten_stands_for_ten_seconds() -> None:
    """The contact under each box carries all above it, and nothing moves."""
    b = lw.ModelBuilder("stack")
    for k in range(10):
        inertia = np.diag([0.05 / 12.0, 0.05 / 12.0, 0.08 / 12.0])
        b.add_body(f"box{k}", joint=lw.Free(), mass=1.0, inertia=inertia, collisions=[shape("box", (0.2, 0.2, 0.1))])
    above = [(f"box{k + 1}", f"box{k}") for k in range(9)]
    rules = lw.ContactRules(solver="primal", points=40)
    model = b.build().with_contacts(lw.Ground(), only=["box0"], between=above, rules=rules)
    start = np.concatenate([placed(0.05 + 0.1 * k) for k in range(10)])
    run = lw.simulate(model, start, duration=10.0, dt=0.002, method="moreau")
    touched = run.contacts
    for k, name in enumerate(model.contacts.pairs):
        carried = 10 if name == "box0 on ground" else 9 - int(name.split()[0].removeprefix("box"))
        normal = touched.impulse[-1, touched.pair[-1] == k, 0].sum() / 0.002
        assert np.isclose(normal, carried * G, rtol=1e-6), name
    assert np.abs(run.q[-1] - start).max() < 1e-8


@pytest.mark.parametrize("solver", ["auto", "primal"])
def test_states_of_a_batch_are_as_by_themselves(solver: str) -> None:
    """Those that take long go on beside states of other blocks, which have points that their own block has not."""
    model, rng = beast(solver, True), np.random.default_rng(11)
    q, v = random_states(model, 320, rng)
    q[:, 7:] = np.clip(q[:, 7:], [0.2, -1.1] * 4, [0.6, -0.7] * 4)
    tau = rng.normal(size=v.shape)
    together = np.asarray(model.contact_step(q, 6.0 * v, tau, dt=0.002).v)
    blocks = [slice(k, k + 8) for k in range(0, len(q), 8)]
    alone = [np.asarray(model.contact_step(q[own], 6.0 * v[own], tau[own], dt=0.002).v) for own in blocks]
    assert np.array_equal(together, np.concatenate(alone))


def test_a_stack_of_six_has_room_for_its_points() -> None:
    """Twenty-four points press, and no more are kept of a robot: bodies that move freely have eight each."""
    b = lw.ModelBuilder("stack")
    masses = [5.0, 0.5, 3.0, 1.0, 0.2, 2.0]
    for k, mass in enumerate(masses):
        b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), density=1000 * mass))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.4))
    start = np.concatenate([[1, 0, 0, 0, 0, 0, 0.1 * k + 0.05] for k in range(6)])
    run = lw.simulate(model, start, duration=0.2, dt=0.002, method="moreau")
    assert run.contacts.overflow.max() == 0  # nor are any left out where faces are tilted by rounding
    assert run.contacts.force_on("box 0", by="ground")[-1, 2] == pytest.approx(sum(masses) * 9.81, rel=1e-6)
    assert np.abs(run.q[-1] - start).max() < 1e-8
