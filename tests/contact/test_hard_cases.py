"""Contacts that sweeps alone do not solve: redundant points, few digits, impacts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.contact import cones as contact_cones
from linkwise.contact.cones import Cone, Response, Row, turns_of
from linkwise.contact.scene import touches_of
from linkwise.contact.step import MiddleOfStep
from linkwise.mechanism.layout import lay_out
from tests.contact.scenes import shape


def walker() -> lw.Model:
    """A trunk on two legs with three joints each and flat feet: four points a foot, redundant."""
    b = lw.ModelBuilder("walker")
    b.add_body("trunk", joint=lw.Free(), mass=10.0, inertia=np.diag([0.3, 0.2, 0.1]))
    for side, y in (("left", 0.1), ("right", -0.1)):
        parent, at = "trunk", (0.0, y, 0.0)
        for part, mass in (("thigh", 2.0), ("shank", 1.0), ("foot", 0.3)):
            pose = np.eye(4)
            pose[:3, 3] = at
            axis = {"thigh": (1, 0, 0), "shank": (0, 1, 0), "foot": (0, 1, 0)}[part]
            corners = []
            if part == "foot":
                for x, z in ((-0.05, 0.03), (-0.05, -0.03), (0.12, 0.03), (0.12, -0.03)):
                    place = np.eye(4)
                    place[:3, 3] = (x, z, -0.03)
                    corners.append(shape("sphere", (0.005,), place))
            inertia = np.diag([0.01, 0.01, 0.005]) * mass
            name = f"{side}_{part}"
            joint: Any = lw.Revolute(axis=axis)
            b.add_body(name, parent=parent, joint=joint, placement=pose, mass=mass, inertia=inertia, collisions=corners)
            parent, at = name, (0.0, 0.0, -0.3)
    return b.build()


def pushed_about(rules: lw.ContactRules, dtype: Any, steps: int = 60, batch: int = 128) -> list[Any]:
    """Steps of walkers that fall on their feet under random torques: what goes in, and what comes out."""
    feet = ["left_foot", "right_foot"]
    model = walker().with_contacts(lw.Ground(), only=feet, material=lw.Material(friction=0.8), rules=rules)
    rng = np.random.default_rng(3)
    q = np.zeros((batch, model.nq))
    q[:, 0] = 1.0
    q[:, 6] = 0.636 + rng.uniform(0.0, 0.1, batch)
    v = rng.normal(size=(batch, model.nv)) * 0.3
    impulses = np.zeros((batch, 24))
    found = []
    for _ in range(steps):
        tau = rng.normal(size=(batch, model.nv)) * 10.0
        tau[:, :6] = 0.0
        tau[:, 6:] -= 60.0 * q[:, 7:] + 2.0 * v[:, 6:]
        given = [np.asarray(x, dtype) for x in (q, v, tau, impulses)]
        end: Any = model.contact_step(*given, np.asarray(0.002, dtype))
        found.append((given, end))
        q, v, impulses = end.q, end.v, end.impulses
    return found


def test_redundant_feet_obey_the_laws() -> None:
    steps = pushed_about(lw.ContactRules(), np.float64)
    residuals = np.concatenate([end.residuals for _, end in steps])
    one_round = pushed_about(lw.ContactRules(rounds=1), np.float64)
    before = np.concatenate([end.residuals for _, end in one_round])
    assert np.quantile(before[:, 0], 0.99) < 1e-12
    assert np.quantile(before[:, 0], 0.999) > 1e-6  # sweeps and Newton steps on the laws themselves miss some
    assert residuals[:, 0].max() < 1e-7
    assert residuals[:, 2].max() < 1e-7


def test_redundant_feet_move_as_thousands_of_sweeps_say() -> None:
    found = pushed_about(lw.ContactRules(), np.float64, steps=20)
    feet = ["left_foot", "right_foot"]
    many = lw.ContactRules(sweeps=4000, polish=0, rounds=1)
    model = walker().with_contacts(lw.Ground(), only=feet, material=lw.Material(friction=0.8), rules=many)
    off = []
    for given, end in found[10::3]:
        slow: Any = model.contact_step(*given, np.asarray(0.002))
        off.append(np.abs(slow.v - end.v).max(axis=1)[slow.residuals[:, 0] < 1e-12])
    close = np.concatenate(off)
    assert close.size > 100
    assert np.quantile(close, 0.99) < 1e-6


def test_few_digits_never_fail() -> None:
    steps = pushed_about(lw.ContactRules(), np.float32)
    for _, end in steps:
        assert np.isfinite(end.q).all()
        assert np.isfinite(end.v).all()
    residuals = np.concatenate([end.residuals for _, end in steps])
    assert np.quantile(residuals[:, 0], 0.999) < 1e-3


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_few_digits_lead_where_many_do(solver: Any) -> None:
    """Feet that overlap with the ground part: nothing is taken for a step without a solution for want of digits."""
    rules = lw.ContactRules(solver=solver)
    feet = ["left_foot", "right_foot"]
    model = walker().with_contacts(lw.Ground(), only=feet, material=lw.Material(friction=0.8), rules=rules)
    rng = np.random.default_rng(7)
    q = np.zeros((100, model.nq))
    q[:, 0], q[:, 6] = 1.0, rng.uniform(0.63, 0.65, 100)
    v, tau = 0.5 * rng.normal(size=(100, model.nv)), 5.0 * rng.normal(size=(100, model.nv))
    many = model.contact_step(q, v, tau)
    few = model.contact_step(*(x.astype(np.float32) for x in (q, v, tau)))
    assert few.v.dtype == np.float32
    assert np.abs(few.v - many.v).max() < 0.01


def test_no_solver_is_taken_that_is_not_there() -> None:
    with pytest.raises(lw.InputError, match="auto, dual, primal"):
        lw.ContactRules(solver="lemke")  # type: ignore[arg-type]


def test_points_of_a_foot_are_allowed_the_slip_of_a_rigid_body() -> None:
    """Else they could not all stand still at once, and would press against each other until they slip."""
    model = walker().with_contacts(lw.Ground(), only=["left_foot", "right_foot"])
    tree, rng = lay_out(model), np.random.default_rng(2)
    largest = 0.0
    for _ in range(20):
        q = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.63, *0.02 * rng.normal(size=6)]
        middle = MiddleOfStep(tree, touches_of(model, tree), q, list(rng.normal(size=model.nv)), 0.002, None)
        cones = middle.cones(0.1)
        for first in (0, 6):
            disks = [cone for cone in cones if cone.kind == "disk" and cone.rows[0].pulls[0] == first]
            rows = np.array([row.factors for cone in disks for row in cone.rows])
            bias = np.array([x for cone in disks for x in cone.bias])
            fitted = rows @ np.linalg.lstsq(rows, bias, rcond=None)[0]
            assert np.abs(bias - fitted).max() < 1e-12
            # Whatever the gaps: along the ground, points of a foot move as a plane does, in three ways.
            assert np.linalg.svd(rows, compute_uv=False)[3] < 1e-14
            largest = max(largest, np.abs(bias).max())
    assert largest > 1e-4


def test_points_of_both_feet_are_passed_over_together() -> None:
    """Of each foot one cone at a time, normals before their friction."""
    model = walker().with_contacts(lw.Ground(), only=["left_foot", "right_foot"])
    tree = lay_out(model)
    q = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.63, *[0.0] * 6]
    cones = MiddleOfStep(tree, touches_of(model, tree), q, [0.0] * model.nv, 0.002, None).cones(0.1)
    turns = turns_of(cones)
    assert sorted(k for turn in turns for k in turn) == list(range(len(cones)))
    assert all(len({cones[k].links for k in turn}) == 2 for turn in turns)
    when = {k: number for number, turn in enumerate(turns) for k in turn}
    assert all(when[cone.follows] < when[k] for k, cone in enumerate(cones) if cone.follows is not None)


def test_no_sweep_leads_away_however_links_are_coupled() -> None:
    """Two links of two points each, all but one rigid body: the energy that solutions have least of never rises."""
    rng = np.random.default_rng(3)
    cones = [Cone((Row((k,), (1.0,)),), (0.0,), "half_line", links=(k // 2,)) for k in range(4)]
    for _ in range(200):
        root = rng.normal(size=(4, 1)) + 0.03 * rng.normal(size=(4, 4))
        W, w = root @ root.T, rng.normal(size=4)
        response, now = Response(cones, W.tolist()), np.zeros(4)
        energy = [0.0]
        for _ in range(50):
            now = np.array(response.sweep(list(W @ now + w), list(now))[1])
            energy.append(0.5 * now @ W @ now + w @ now)
        assert np.diff(energy).max() <= 1e-9 * abs(energy[-1])
    assert all(len(turn) == 2 for turn in response.turns)


def missed_by_jams(count: int) -> np.ndarray:
    """Misses of the laws of two points, N s or m/s, where friction presses them into the ground."""
    rng, friction = np.random.default_rng(1), 0.8

    def solve(_: Any, W: Any, w: Any) -> Any:
        laws: list[Cone] = []
        for k in (0, 3):
            row = [Row((k + i,), (1.0,)) for i in range(3)]
            laws.append(Cone((row[0],), (0.0,), "half_line"))
            laws.append(Cone((row[1], row[2]), (0.0, 0.0), "disk", friction, len(laws) - 1))
        rules = lw.ContactRules(tolerance=1e-12)
        return np.array(Response(laws, [list(x) for x in W]).solved(list(w), [0.0] * 6, rules)[1], object)

    directions = np.linalg.qr(rng.normal(size=(count, 6, 6)))[0]
    W = directions @ (np.exp(rng.uniform(-7.0, 0.0, size=(count, 6, 1))) * directions.swapaxes(-1, -2))
    w = rng.normal(size=(count, 6))
    impulses: Any = lw.compile(solve, walker(), inputs={"W": (6, 6), "w": (6,)})(W, w)
    after, found = (np.einsum("sij,sj->si", W, impulses) + w).reshape(-1, 2, 3), impulses.reshape(-1, 2, 3)
    ahead = found[..., 1:] - after[..., 1:]
    length = np.maximum(np.linalg.norm(ahead, axis=-1), 1e-30)
    near = ahead * np.minimum(friction * np.maximum(found[..., 0], 0.0) / length, 1.0)[..., None]
    slips = np.abs(found[..., 1:] - near).max(axis=(1, 2))
    return np.maximum(slips, np.abs(np.minimum(found[..., 0], after[..., 0])).max(axis=1))


def test_passes_that_leave_the_same_part_each_are_gone_on_with() -> None:
    """Of two normals that feel each other a pass leaves a quarter: the sum of all that follow is the solution."""
    cones = [Cone((Row((k,), (1.0,)),), (-1.0,), "half_line") for k in range(2)]
    response = Response(cones, [[2.0, 1.0], [1.0, 2.0]])
    for begin in ([0.2, 0.1], [0.0, 0.0]):
        swept, ahead = response.swept([2 * begin[0] + begin[1], begin[0] + 2 * begin[1]], begin, 3)
        assert np.abs(np.array(swept[2:]) - 1 / 3).max() > 1e-3
        assert ahead == (pytest.approx([1.0, 1.0, 1 / 3, 1 / 3], abs=1e-15) if any(begin) else swept)


def test_jams_are_solved_by_sweeps_where_newton_steps_miss_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of ten thousand need impulses a thousand times larger than the velocities that they stop."""
    assert missed_by_jams(30_000).max() < 1e-7
    monkeypatch.setattr(contact_cones, "SWEEPS_AGAIN", 0)
    assert missed_by_jams(30_000).max() > 1e-3


def pinched(friction: float) -> lw.Model:
    """A box between two pads that slide along x."""
    b = lw.ModelBuilder("gripper")
    for name, side in (("left", -1), ("right", 1)):
        seat = lw.transform(xyz=(0.03 * side, 0, 0))
        pad = [shape("box", (0.02, 0.06, 0.08))]
        b.add_body(name, joint=lw.Prismatic(axis=(1, 0, 0)), placement=seat, mass=0.2, collisions=pad)
    held = [shape("box", (0.04, 0.04, 0.06))]
    b.add_body("box", joint=lw.Free(), mass=0.1, inertia=np.eye(3) * 2e-5, collisions=held)
    pairs = [("left", "box"), ("right", "box")]
    return b.build().with_contacts(material=lw.Material(friction=friction), between=pairs)


def test_points_of_a_pinched_box_keep_their_places() -> None:
    """Four corners of each face are equally deep: rounding must not say in which order they stand, step by step."""
    model = pinched(0.4)

    def squeeze(t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
        return [5.0 - 20.0 * v[0], -5.0 - 20.0 * v[1], *[0.0] * 6]

    start = [0, 0, 1, 0, 0, 0, 0, 0, 0]
    run = lw.simulate(model, start, duration=1.0, dt=0.002, method="moreau", control=squeeze)
    assert np.abs(np.diff(run.contacts.points, axis=0)).max() < 1e-9
    assert np.abs(run.q - start).max() < 1e-9


def test_forces_on_a_pinched_box_stay_as_they_are() -> None:
    """Level normals: tangents must not turn with the sign of a z that is nothing but rounding."""
    model = pinched(0.6)

    def squeeze(t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
        return [2.0 - 20.0 * v[0], -2.0 - 20.0 * v[1], *[0.0] * 6]

    start = [0, 0, np.cos(0.05), np.sin(0.05), 0, 0, 0, -0.005, 0.005]
    run = lw.simulate(model, start, duration=3.0, dt=0.005, method="moreau", control=squeeze)
    impulses = run.contacts.impulse[2:]
    assert impulses[..., 0].sum(axis=1) == pytest.approx(0.02)
    assert np.ptp(impulses, axis=0).max() < 1e-12  # they wandered by as much as they are
    assert np.abs(run.q - start).max() < 1e-12  # and the box slid by centimetres in a minute


@pytest.mark.parametrize("seconds", [60.0, pytest.param(600.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("edge", [0.09, 0.05])
def test_a_pinched_capsule_stays_where_it_is(edge: float, seconds: float) -> None:
    """Also between pads that are shorter than it is, where it lies on their edges."""
    b = lw.ModelBuilder("gripper")
    for name, side in (("left", -1), ("right", 1)):
        seat = lw.transform(xyz=(0.03 * side, 0, 0))
        pad = [shape("box", (0.02, edge, 0.03))]
        b.add_body(name, joint=lw.Prismatic(axis=(-side, 0, 0)), placement=seat, mass=0.1, collisions=pad)
    along_y = np.array(lw.transform(rpy=(np.pi / 2, 0, 0)))
    held = [shape("capsule", (0.02, 0.06), along_y)]
    b.add_body("capsule", joint=lw.Free(), mass=0.045, inertia=np.diag([4e-5, 9e-6, 4e-5]), collisions=held)
    pairs = [("left", "capsule"), ("right", "capsule")]
    model = b.build().with_contacts(material=lw.Material(friction=0.5), between=pairs)

    def squeeze(t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
        return [2.0 - 10.0 * v[0], 2.0 - 10.0 * v[1], *[0.0] * 6]

    start = [-1e-4, -1e-4, np.cos(1e-3), 0, 0, np.sin(1e-3), 0, 0.002, 0]
    run = lw.simulate(
        model,
        start,
        duration=seconds,
        dt=0.002,
        method="moreau",
        control=squeeze,
        output_times=np.linspace(0.0, seconds, 61),
    )
    assert np.ptp(run.q[10:], axis=0).max() < 1e-10  # on the edges of short pads it crept by 8 µm a second


def test_links_that_fold_on_each_other_stay_finite() -> None:
    """Ends of links meet where hinges are at dead centres: nothing moves along normals, and impulses had no bounds."""
    b, parent = lw.ModelBuilder("chain"), "world"
    across = np.array([[0.0, 0.0, 1.0, 0.15], [0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    for k in range(4):
        joint = lw.Revolute(axis=(0, 1, 0) if k % 2 else (0, 0, 1)) if k else lw.Free()
        b.add_body(
            f"link {k}",
            parent=parent,
            joint=joint,
            placement=lw.transform(xyz=(0.3 if k else 0.0, 0, 0)),
            mass=1.0,
            com=(0.15, 0, 0),
            inertia=np.diag([0.002, 0.0085, 0.0085]),
            collisions=[shape("capsule", (0.03, 0.24), across)],
        )
        parent = f"link {k}"
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
    rng = np.random.default_rng(5)
    q = np.concatenate([rng.normal(size=(200, 4)), np.full((200, 3), 1.2), rng.normal(size=(200, 3))], axis=1)
    q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
    v = 2.0 * rng.normal(size=(200, model.nv))
    apart = model.distances(q).min(axis=1) > 0.0
    q, v = q[apart], v[apart]
    energy = model.kinetic_energy(q, v) + model.potential_energy(q)
    end: Any = model.contact_step(q, v, np.zeros_like(v), dt=0.002)
    for _ in range(400):
        end = model.contact_step(end.q, end.v, np.zeros_like(v), end.impulses, 0.002)
    assert np.isfinite(end.v).all()
    after = model.kinetic_energy(end.q, end.v) + model.potential_energy(end.q)
    assert (after < 1.001 * energy).all()  # those that fly on gain up to 4e-5 in 400 steps


def test_a_humanoid_falls_with_its_joints_at_the_ends_of_their_ranges() -> None:
    """Blows drive light links into the springs there; steps of 2 ms take these implicitly."""
    from linkwise import samples

    robot = samples.humanoid("all")
    touching = [body.name for body in robot.bodies if body.collisions]
    robot = robot.with_contacts(lw.Ground(), only=touching, material=lw.Material(friction=0.8))
    robot = robot.with_joint_constants(damping=0.5)
    push = np.zeros(robot.nv)
    push[3] = 0.4
    motion = lw.simulate(robot, robot.configurations["stand"], push, duration=1.2, dt=0.002, account=True)
    assert np.abs(motion.v).max() < 50.0
    assert motion.pose("head")[-1, 2, 3] < 0.3
    assert motion.energy_account().work["limits"].min() < -1.0  # J: they stop what turns


def held(shape_of_base: lw.Geometry, joint: Any, height: float, solver: Any) -> lw.Model:
    """A base whose joint holds it to the world at a height above the ground, and an arm on it that swings."""
    b = lw.ModelBuilder("held")
    common = {"inertia": np.diag([0.01, 0.01, 0.01])}
    at = lw.transform(xyz=(0.0, 0.0, height))
    b.add_body("base", joint=joint, placement=at, mass=2.0, com=(0.02, 0, 0), collisions=[shape_of_base], **common)
    swings: Any = {"joint": lw.Revolute(axis=(0, 1, 0)), "placement": lw.transform(xyz=(0, 0, 0.8))}
    b.add_body("arm", parent="base", mass=1.0, com=(0.1, 0, 0), **swings, **common)
    rules = lw.ContactRules(solver=solver)
    return b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5), rules=rules)


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize("overlap", [0.0, 1e-9, 1e-6, 1e-3])
def test_what_a_joint_holds_against_the_ground_is_not_asked_to_part(solver: Any, overlap: float) -> None:
    """A turntable on the floor, a wheel and a ball on their hubs: nothing moves along the normal, whatever presses.

    Overlaps of a nanometre asked for 1e19 N, and ended in numbers that are none; they braked the joint.
    """
    upright = lw.transform(rpy=(np.pi / 2.0, 0.0, 0.0))
    cases: list[tuple[lw.Geometry, Any, float]] = [
        (shape("cylinder", (0.1, 0.2)), lw.Revolute(axis=(0, 0, 1)), 0.1),
        (shape("cylinder", (0.1, 0.05), upright), lw.Revolute(axis=(0, 1, 0)), 0.1),
        (shape("sphere", (0.1,)), lw.Revolute(axis=(0, 1, 0)), 0.1),
    ]
    for base, joint, height in cases:
        model = held(base, joint, height - overlap, solver)
        apart = held(base, joint, height + 1.0, solver)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lw.errors.IntegrationWarning)  # that the overlap lasts
            motion, free = (
                lw.simulate(m, m.neutral(), [0.5, 1.0], duration=0.1, dt=0.002, method="moreau") for m in (model, apart)
            )
        assert np.abs(motion.contacts.residual).max() < 1e-9
        assert np.abs(motion.contacts.force).max() < 1e-6
        assert np.allclose(motion.v[-1], free.v[-1], atol=1e-9)


def rods(count: int, solver: Any, **material: Any) -> lw.Model:
    """Rods on hinges, 1 m long in all, 0.8 m above a ground that their tip touches."""
    b = lw.ModelBuilder("rods")
    length, parent = 1.0 / count, "world"
    mass = 2.0 * length
    given = {"mass": mass, "com": (0.5 * length, 0, 0), "inertia": np.diag([1e-3, *[mass * length**2 / 12.0] * 2])}
    for k in range(count):
        tip = [shape("sphere", (0.02,), lw.transform(xyz=(length, 0.0, 0.0)))] if k == count - 1 else []
        at = lw.transform(xyz=(0.0, 0.0, 0.8) if k == 0 else (length, 0.0, 0.0))
        b.add_body(f"rod{k}", parent=parent, joint=lw.Revolute(axis=(0, 1, 0)), placement=at, collisions=tip, **given)
        parent = f"rod{k}"
    rules = lw.ContactRules(solver=solver)
    return b.build().with_contacts(lw.Ground(), material=lw.Material(**material), rules=rules)


def thrown(model: lw.Model, count: int) -> tuple[lw.Trajectory, np.ndarray]:
    """Rods thrown on the ground at random, and their energies as parts of the kinetic energy at the start and 10 J."""
    rng = np.random.default_rng(1)
    q = rng.uniform(-0.6, 0.6, (count, model.nq))
    q[:, 0], v = rng.uniform(0.0, 0.5, count), 3.0 * rng.normal(size=q.shape)
    apart = np.asarray(model.distances(q)).min(axis=-1) > 0.0
    motion = lw.simulate(model, q[apart], v[apart], duration=0.6, dt=0.002, method="moreau")
    scale = np.asarray(model.kinetic_energy(q[apart], v[apart])) + 10.0
    return motion, np.asarray(motion.energy) / scale[:, None]


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize(("friction", "restitution"), [(0.8, 0.9), (1.5, 0.5)])
def test_bounces_with_friction_create_no_energy(solver: Any, friction: float, restitution: float) -> None:
    """Newton's law alone does (Kane and Levinson 1985): two rods had up to eighteen times their energy."""
    motion, energy = thrown(rods(2, solver, friction=friction, restitution=restitution), 64)
    assert np.abs(motion.contacts.residual[..., 0]).max() < 1e-6
    assert (energy.max(axis=1) - energy[:, 0]).max() < 1e-3
    assert np.diff(energy, axis=1).max() < 3e-3


@pytest.mark.parametrize("restitution", [0.0, 0.9])
@pytest.mark.parametrize("friction", [0.8, 1.5, 2.5])
def test_rods_that_friction_wedges_obey_all_laws(friction: float, restitution: float) -> None:
    """The rest of an overlap, or a bounce, asked for up to 1e14 N; other laws were missed by metres a second."""
    motion, energy = thrown(rods(1, "dual", friction=friction, restitution=restitution), 64)
    assert np.abs(motion.contacts.residual[..., 0]).max() < 1e-8
    assert np.abs(motion.contacts.force).max() < 2e4
    assert np.diff(energy, axis=1).max() < 1e-9


@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_what_tumbles_does_so_at_any_size(scale: float) -> None:
    """Lengths and the squares of times ten times as large: after 400 steps they differed by 4e-3 of the size."""

    def thrown(s: float) -> np.ndarray:
        b, root, turn = lw.ModelBuilder("tin"), np.sqrt(s), np.array([0.9, 0.3, 0.2, 0.1])
        b.add_body("tin", joint=lw.Free(), shape=lw.shapes.cylinder(0.1 * s, 0.1 * s, density=500.0))
        model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=0.5))
        q0 = [*(turn / np.linalg.norm(turn)), 0.0, 0.0, 0.25 * s]
        v0 = [1.0 / root, 2.0 / root, 1.0 / root, 0.5 * root, 0.0, 0.0]
        motion = lw.simulate(model, q0, v0, duration=0.8 * root, dt=2e-3 * root, method="moreau")
        return motion.q[-1] / [1, 1, 1, 1, s, s, s]

    np.testing.assert_allclose(thrown(scale), thrown(1.0), atol=1e-4)
