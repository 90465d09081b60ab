"""Piles of free bodies: what each carries, laws that hold, energy, islands, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkwise as lw
from linkwise.sim.piles.islands import frames, projected, projection_slopes
from tests.contact.scenes import shape

EDGE, WEIGHT = 0.1, 9.81  # m, N


def boxes(count: int, ground: lw.Ground | None = None, **scene) -> lw.Model:
    b = lw.ModelBuilder("boxes")
    for k in range(count):
        b.add_body(f"box {k}", joint=lw.Free(), shape=lw.shapes.box((EDGE,) * 3, density=1000))
    scene.setdefault("material", lw.Material(friction=0.5))
    return b.build().with_contacts(ground or lw.Ground(), **scene)


def placed(places, turns=None) -> np.ndarray:
    places = np.asarray(places, float)
    turns = np.tile([1.0, 0, 0, 0], (len(places), 1)) if turns is None else turns
    return np.hstack([turns, places]).ravel()


def test_stack_of_ten_carries_what_is_above():
    q0 = placed([[0, 0, EDGE * (k + 0.5)] for k in range(10)])
    motion = lw.simulate(boxes(10), q0, duration=0.1, dt=0.002, method="moreau")
    found = motion.contacts
    for k in range(10):
        below = "ground" if k == 0 else f"box {k - 1}"
        force = found.force_on(f"box {k}", by=below)[-1]
        assert_allclose(force[2], (10 - k) * WEIGHT, atol=2e-6)
        assert_allclose(force[:2], 0.0, atol=2e-4)
    assert found.residual[-1] < 1e-9
    assert found.residual.max() < 1e-6
    assert np.abs(motion.q[-1] - q0).max() < 1e-7


def test_steps_begin_with_the_impulses_of_the_step_before(monkeypatch):
    """Stacks at rest are solved once."""
    from linkwise.sim.piles.interior import InteriorPoint

    solved, calls = InteriorPoint.impulses, []
    monkeypatch.setattr(InteriorPoint, "impulses", lambda *given: calls.append(1) or solved(*given))
    q0 = placed([[0, 0, EDGE * (k + 0.5)] for k in range(10)])
    lw.simulate(boxes(10), q0, duration=0.04, dt=0.002, method="moreau")
    assert len(calls) == 1


def test_contacts_are_those_of_mechanisms(tmp_path):
    """The same arrays as a mechanism's, which add up to the same forces; saved and loaded with the motion."""
    from linkwise.sim.sensors import FootForce, Touch

    q0 = placed([[0, 0, EDGE * (k + 0.5)] for k in range(10)])
    motion = lw.simulate(boxes(10), q0, duration=0.02, dt=0.002, method="moreau")
    found = motion.contacts
    assert_allclose(found.wrenches[-1, :, 5], WEIGHT, atol=2e-6)  # each is held up
    assert_allclose(found.wrenches[-1, :, 5], FootForce("box 3").read(motion)[-1, 5], atol=4e-6)
    assert_allclose(Touch(["box 0"]).read(motion)[-1], 19 * WEIGHT, rtol=1e-6)  # from below and above
    assert_allclose(found.points[-1][found.bodies[-1, :, 1] == -1][:, 2], 0.0, atol=1e-9)
    assert set(np.unique(found.mode[-1])) <= {0, 2}
    for suffix in (".npz", ".mat"):
        again = lw.Trajectory.load(motion.save(tmp_path / f"pile{suffix}"), motion.model).contacts
        for name in ("force", "gap", "mode", "residual", "points", "overflow", "bodies"):
            assert_array_equal(getattr(again, name), getattr(found, name), name)


def test_forces_between_bodies_of_a_mechanism():
    """Of three boxes on each other: what is above weighs on each, whoever is first of a pair."""
    stack = boxes(3, rules=lw.ContactRules())
    q0 = placed([[0, 0, EDGE * (k + 0.5)] for k in range(3)])
    found = lw.simulate(stack, q0, duration=0.02, dt=0.002, method="moreau").contacts
    assert_allclose(found.force_on("box 1", by="box 0")[-1], [0, 0, 2 * WEIGHT], atol=1e-6)
    assert_allclose(found.force_on("box 0", by="box 1")[-1], [0, 0, -2 * WEIGHT], atol=1e-6)
    assert_allclose(found.force_on("box 0")[-1], [0, 0, WEIGHT], atol=1e-6)
    assert found.count[-1] > 0 and abs(found.deepest[-1]) < 1e-9


def test_row_slides_as_each_alone_would():
    """Nine boxes apart from each other, thrown over the floor: v²/(2 μ g) each, second order in the step."""
    speed = np.linspace(1.0, 2.0, 9)
    v0 = np.zeros((9, 6))
    v0[:, 3] = speed
    q0 = placed([[0, 0.3 * k, EDGE / 2] for k in range(9)])
    errors = []
    for dt in (0.005, 0.0025):
        motion = lw.simulate(boxes(9), q0, v0.ravel(), duration=0.45, dt=dt, method="moreau")
        way = motion.q[-1].reshape(9, 7)[:, 4]
        errors.append(np.abs(way - speed**2 / (2 * 0.5 * WEIGHT)).max())
    assert errors[1] < 4e-6  # m
    assert errors[0] / errors[1] > 3.5
    assert np.abs(motion.v[-1]).max() < 1e-7
    assert len(np.unique(motion.contacts.bodies[-1, :, 0])) == 9


def test_overlaps_of_rounding_shorten_no_way():
    """With 2 nm each step went on with the velocity at its end: blocks stopped after 4 mm less than they should."""
    q0 = placed([[0, 0.3 * k, EDGE / 2 - 2e-9] for k in range(9)])
    v0 = np.tile([0, 0, 0, 2.0, 0, 0], 9)
    motion = lw.simulate(boxes(9), q0, v0, duration=0.42, dt=0.004, method="moreau")
    assert_allclose(motion.q[-1].reshape(9, 7)[:, 4], 2.0**2 / (2 * 0.5 * WEIGHT), rtol=0, atol=1e-5)


def test_random_boxes_fall_without_gaining_energy_or_sinking():
    rng = np.random.default_rng(4)
    count = 16
    places = [[0.16 * (k % 3), 0.16 * (k // 3 % 3), 0.12 + 0.17 * (k // 9)] for k in range(count)]
    turns = rng.normal(size=(count, 4))
    q0 = placed(places, turns / np.linalg.norm(turns, axis=1, keepdims=True))
    motion = lw.simulate(boxes(count), q0, duration=0.3, dt=0.003, method="moreau")
    assert motion.status == "done"
    assert np.diff(motion.energy).max() < 1e-6 * motion.energy[0]
    assert motion.contacts.deepest.min() > -0.05 * EDGE
    assert motion.contacts.residual.max() < 1e-7
    assert motion.contacts.count[-1] > count


def test_balls_bounce_by_newtons_law():
    b = lw.ModelBuilder("balls")
    for k in range(9):
        b.add_body(f"ball {k}", joint=lw.Free(), shape=lw.shapes.sphere(0.05, density=1000))
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(restitution=0.8))
    q0 = placed([[0.3 * k, 0, 0.05 + 0.1] for k in range(9)])
    motion = lw.simulate(model, q0, duration=0.3, dt=0.0005, method="moreau")
    up = motion.v[:, 5]
    down = up.min()
    assert_allclose(up.max() / -down, 0.8, rtol=0.01)


def test_bodies_on_a_belt_are_taken_along():
    belt = lw.Ground(velocity=(0.5, 0, 0))
    q0 = placed([[0, 0.3 * k, EDGE / 2] for k in range(9)])
    motion = lw.simulate(boxes(9, belt), q0, duration=0.3, dt=0.002, method="moreau")
    assert_allclose(motion.v[-1].reshape(9, 6)[:, 3], 0.5, atol=1e-9)


def test_bits_and_excludes_keep_bodies_apart():
    """Two towers of boxes whose bits fit the floor alone, or that are excluded: upper ones fall through lower ones."""
    b = lw.ModelBuilder("boxes")
    cube = lw.Geometry("box", (EDGE,) * 3, None, (1, 1, 1), lw.transform(), "", contype=2, conaffinity=1)
    for k in range(9):
        b.add_body(f"box {k}", joint=lw.Free(), mass=1.0, inertia=np.eye(3) / 600, collisions=[cube])
    model = b.build().with_contacts(lw.Ground(), exclude=[("box 0", "box 1")])
    q0 = placed([[0, 0.3 * k, EDGE / 2] for k in range(8)] + [[0, 0, 1.6 * EDGE]])
    motion = lw.simulate(model, q0, duration=0.2, dt=0.002, method="moreau")
    assert_allclose(motion.q[-1].reshape(9, 7)[:, 6], EDGE / 2, atol=1e-6)  # the last fell into the first
    model = boxes(9, exclude=[("box 0", "box 8")])
    motion = lw.simulate(model, q0, duration=0.2, dt=0.002, method="moreau")
    assert_allclose(motion.q[-1].reshape(9, 7)[:, 6], EDGE / 2, atol=1e-6)


def test_a_body_that_is_kept_off_the_ground_falls_through():
    places = [[0.3 * k, 0.0, 0.05] for k in range(10)]
    run = lw.simulate(boxes(10, exclude=[("box 3", "ground")]), placed(places), duration=0.1, dt=0.01)
    fallen = run.q[-1].reshape(-1, 7)[:, 6] < 0.04
    assert fallen.tolist() == [k == 3 for k in range(10)]


def test_projection_on_the_cone():
    rng = np.random.default_rng(0)
    x, mu = rng.normal(size=(200, 3)), rng.uniform(0.05, 1.5, 200)
    p = projected(x, mu)
    assert (np.hypot(p[:, 1], p[:, 2]) <= mu * p[:, 0] + 1e-12).all()
    # Nearest: what is left is in the polar cone, and at right angles to it.
    rest = x - p
    assert_allclose(np.sum(rest * p, axis=1), 0.0, atol=1e-12)
    slopes, step = projection_slopes(x, mu), 1e-6
    for k in range(3):
        more = x.copy()
        more[:, k] += step
        assert_allclose(slopes[:, :, k], (projected(more, mu) - p) / step, atol=1e-4)
    n = x / np.linalg.norm(x, axis=1, keepdims=True)
    F = frames(n)
    assert_allclose(F @ F.swapaxes(1, 2), np.broadcast_to(np.eye(3), F.shape), atol=1e-12)


def test_refused():
    q0 = placed([[0, 0, EDGE / 2]] * 9)
    with pytest.raises(lw.InputError, match="overlap at the start"):
        lw.simulate(boxes(9), q0, duration=0.1, dt=0.002, method="moreau")
    apart = placed([[0, 0.3 * k, EDGE / 2] for k in range(9)])
    with pytest.raises(lw.InputError, match="rolling"):
        lw.simulate(boxes(9, material=lw.Material(rolling=0.01)), apart, duration=0.1, dt=0.002, method="moreau")
    motion = lw.simulate(boxes(9), apart, duration=0.01, dt=0.002, method="moreau")
    with pytest.raises(lw.errors.UnknownNameError, match="box 0"):
        motion.contacts.force_on("bxo 0")


def test_large_island_obeys_all_laws():
    """A pyramid of 36 boxes whose lowest are kicked: one island, of which sweeps alone miss the laws by 7e-4 m/s."""
    places = [[1.05 * EDGE * (k + 0.5 * row), 0, EDGE * (row + 0.5)] for row in range(8) for k in range(8 - row)]
    v0 = np.zeros((len(places), 6))
    v0[:8, 3] = 2.0
    motion = lw.simulate(boxes(len(places)), placed(places), v0.ravel(), duration=0.012, dt=0.004, method="moreau")
    assert motion.contacts.residual.max() < 1e-6
    assert motion.contacts.deepest.min() > -0.01 * EDGE
    assert np.diff(motion.energy).max() < 1e-6 * motion.energy[0]


def test_shapes_of_all_kinds_fall_in_a_heap():
    """Of most two kinds the points come from loops; on hills too. Energy is lost, and nothing sinks."""
    sizes = {"box": (0.2, 0.15, 0.1), "sphere": (0.08,), "capsule": (0.05, 0.15)}
    sizes |= {"cylinder": (0.08, 0.1), "ellipsoid": (0.1, 0.07, 0.06)}
    wedge = lw.Geometry(
        "convex", (), None, (1, 1, 1), lw.transform(), "", vertices=((0, 0, 0), (0.2, 0, 0), (0, 0.2, 0), (0, 0, 0.2))
    )
    rng = np.random.default_rng(2)
    b = lw.ModelBuilder("heap")
    start = []
    for k in range(10):
        kind = ["box", "sphere", "capsule", "cylinder", "ellipsoid", "convex"][k % 6]
        outline = wedge if kind == "convex" else shape(kind, sizes[kind])
        b.add_body(f"body {k}", joint=lw.Free(), mass=1.0, inertia=np.eye(3) * 0.004, collisions=[outline])
        turn = rng.normal(size=4)
        start += [*(turn / np.linalg.norm(turn)), 0.02 * k, 0.03 * (k % 3), 0.3 + 0.25 * k]
    hills = lw.shapes.heightfield(0.02 * rng.normal(size=(5, 5)), (4, 4))
    model = b.build().with_contacts(lw.Ground(shape=hills), material=lw.Material(friction=0.6))
    run = lw.simulate(model, start, duration=0.5, dt=0.004, method="moreau")
    met = {frozenset(two) for two in run.contacts.bodies[run.contacts.pair >= 0].tolist()}
    assert any(-1 not in two for two in met)
    assert np.diff(run.energy).max() < 1e-3 * run.energy[0]
    assert run.contacts.deepest.min() > -0.01
    assert run.contacts.residual.max() < 1e-6
