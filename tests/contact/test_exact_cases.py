"""Cases whose answer is known exactly: slopes, balls, bounces, rods, cradles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from tests.contact.scenes import G, ball, block, contact, placed, shape, tilted

MU = 0.5


def on_slope(model: lw.Model, degrees: float, friction: float) -> tuple[lw.Model, np.ndarray]:
    pose = tilted(np.radians(degrees))
    # From no impulse on, a hair's breadth from slipping: a few Newton steps more than usual.
    rules = lw.ContactRules(polish=12)
    return model.with_contacts(lw.Ground(pose), material=lw.Material(friction=friction), rules=rules), pose


@pytest.mark.parametrize(("degrees", "sticks"), [(26.55, True), (26.58, False)])
def test_a_block_on_a_slope_sticks_or_slips_at_the_friction_angle(degrees: float, sticks: bool) -> None:
    model, pose = on_slope(block(), degrees, MU)
    dt = 0.002
    run = lw.simulate(model, placed(0.05, pose), duration=1.0, dt=dt, method="moreau")
    theta = np.radians(degrees)
    normal = contact(run, "impulses")[-1].reshape(-1, 3)[:, 0].sum() / dt
    assert normal / (G * np.cos(theta)) == pytest.approx(1.0, abs=1e-10)
    if sticks:
        assert np.abs(run.v).max() < 1e-8
    else:
        assert run.v[-1, 3] == pytest.approx(G * (np.sin(theta) - MU * np.cos(theta)), rel=1e-6)


def test_a_thrown_block_stops_where_it_should_and_never_creeps() -> None:
    model = block().with_contacts(lw.Ground(), material=lw.Material(friction=MU))
    run = lw.simulate(model, placed(0.05), [0, 0, 0, 2.0, 0, 0], duration=100.0, dt=0.004, method="moreau")
    assert run.q[-1, 4] == pytest.approx(4.0 / (2 * MU * G), abs=1e-5)
    stopped = run.q[run.t > 0.5]
    assert np.ptp(stopped, axis=0).max() < 1e-15


@pytest.mark.parametrize(("friction", "acceleration"), [(0.16, 3.545687), (0.17, 3.503571)])
def test_a_ball_on_a_slope_slides_or_rolls(friction: float, acceleration: float) -> None:
    model, pose = on_slope(ball(), 30.0, friction)
    run = lw.simulate(model, placed(0.1, pose), duration=1.0, dt=0.001, method="moreau")
    rolls = friction >= 2.0 / 7.0 * np.tan(np.pi / 6)
    exact = 5.0 / 7.0 * G / 2 if rolls else G * (0.5 - friction * np.cos(np.pi / 6))
    assert exact == pytest.approx(acceleration, abs=1e-6)
    speed = np.linalg.norm(run.v[:, 3:], axis=1)
    assert np.diff(speed) / np.diff(run.t) == pytest.approx(exact, rel=1e-9)
    if not rolls:
        assert run.v[-1, 1] == pytest.approx(5 * friction * G * np.cos(np.pi / 6) / (2 * 0.1), rel=1e-9)


def test_a_ball_thrown_without_spin_rolls_in_the_end() -> None:
    model = ball().with_contacts(lw.Ground(), material=lw.Material(friction=0.3))
    run = lw.simulate(model, placed(0.1), [0, 0, 0, 2.0, 0, 0], duration=1.0, dt=0.001, method="moreau")
    assert np.linalg.norm(run.v[-1, 3:]) == pytest.approx(5.0 / 7.0 * 2.0, abs=1e-12)


def test_a_ball_on_a_turntable_runs_on_a_circle() -> None:
    spin = 3.0
    table = lw.Ground(spin=(0.0, 0.0, spin))
    model = ball().with_contacts(table, material=lw.Material(friction=1.0))
    v0 = np.array([0.5, 0.0])
    # Rolling: the contact point moves as the table's surface there; at the origin, that stands still.
    start = [0.0, v0[0] / 0.1, 0.0, v0[0], v0[1], 0.0]
    rate = 2.0 / 7.0 * spin
    run = lw.simulate(model, placed(0.1), start, duration=2 * np.pi / rate, dt=0.001, method="moreau")
    x, y = run.q[:, 4], run.q[:, 5]
    speed = np.stack([np.gradient(x, run.t), np.gradient(y, run.t)], axis=1)[5:-5]
    turned = np.unwrap(np.arctan2(speed[:, 1], speed[:, 0]))
    found = (turned[-1] - turned[0]) / (run.t[-6] - run.t[5])
    assert found == pytest.approx(rate, rel=1e-5)


def test_a_ball_bounces_by_steps() -> None:
    model = ball().with_contacts(lw.Ground(), material=lw.Material(restitution=0.8, threshold=0.02))
    run = lw.simulate(model, placed(1.1), duration=4.5, dt=0.0005, method="moreau")
    height = run.q[:, 6] - 0.1
    bounced = (run.t > np.sqrt(2 / G)) & (run.t < 1.1)
    assert height[bounced].max() == pytest.approx(0.64, rel=3e-3)
    moving = run.t[np.abs(run.v[:, 5]) > 1e-6]
    assert moving[-1] == pytest.approx(np.sqrt(2 / G) * 9.0, rel=3e-3)


def test_a_cube_thrown_flat_never_lifts() -> None:
    model = block(0.1, 0.1, 0.1).with_contacts(lw.Ground(), material=lw.Material(friction=MU))
    run = lw.simulate(model, placed(0.05), [0, 0, 0, 6.0, 0, 0], duration=2.0, dt=0.002, method="moreau")
    assert np.abs(run.q[:, 6] - 0.05).max() < 1e-9
    assert np.abs(contact(run, "gaps")).max() < 1e-9


def rod(angle: float, friction: float, rules: lw.ContactRules | None = None) -> tuple[lw.Model, list[float]]:
    """A rod of 1 m and 1 kg whose lower end, a sphere of 1 mm, touches the ground, and q at an angle to that."""
    b = lw.ModelBuilder("rod")
    tip = np.eye(4)
    tip[:3, 3] = (-0.5, 0.0, 0.0)
    inertia = np.diag([1e-4, 1.0 / 12, 1.0 / 12])
    b.add_body("rod", joint=lw.Free(), mass=1.0, inertia=inertia, collisions=[shape("sphere", (1e-3,), tip)])
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=friction), rules=rules)
    return model, [np.cos(-angle / 2), 0, np.sin(-angle / 2), 0, 0.0, 0.0, 0.5 * np.sin(angle) + 1e-3]


def test_a_rod_that_falls_about_its_end_is_of_second_order() -> None:
    """Beside its equation of motion: its end rolls, m(r + l sin θ) and m l cos θ are the lever arms of its centre."""
    r, l, start, T = 1e-3, 0.5, np.radians(60.0), 0.3

    def rate(t: float, y: np.ndarray) -> list[float]:
        inertia = 1.0 / 12 + r * r + 2 * r * l * np.sin(y[0]) + l * l
        return [y[1], -(G * l * np.cos(y[0]) + r * l * np.cos(y[0]) * y[1] ** 2) / inertia]

    exact = solve_ivp(rate, (0.0, T), [start, 0.0], rtol=1e-11, atol=1e-12).y[0, -1]
    model, q0 = rod(start, 5.0)
    off = []
    for dt in (0.002, 0.001):
        run = lw.simulate(model, q0, duration=T, dt=dt, method="moreau")
        off.append(abs(-2.0 * np.arctan2(run.q[-1, 2], run.q[-1, 0]) - exact))
        assert -1e-12 < contact(run, "gaps").min() < contact(run, "gaps").max() < 1e-7
    assert off[0] < 5e-6
    assert 3.5 < off[0] / off[1] < 4.5


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_painleve_rod_goes_through(direction: float) -> None:
    """Friction 1.6 is more than 4/3: where the tip is dragged, no acceleration is consistent."""
    theta = np.radians(45.0)
    world = np.array([direction * 3.0, 0.0, 0.0])
    R = np.array([[np.cos(theta), 0, -np.sin(theta)], [0, 1, 0], [np.sin(theta), 0, np.cos(theta)]])
    v0 = [0, 0, 0, *(R.T @ world)]
    for rules in (None, lw.ContactRules(passive=True)):
        model, q0 = rod(theta, 1.6, rules)
        run = lw.simulate(model, q0, v0, duration=1.0, dt=0.0005, method="moreau", account=False)
        energy = run.energy
        assert np.isfinite(run.q).all()
        assert contact(run, "gaps").min() > -1e-8
        assert np.diff(energy).max() < 1e-12


def test_a_cradle_with_gaps_hands_the_speed_on() -> None:
    b = lw.ModelBuilder("cradle")
    radius, gap, n = 0.05, 0.01, 5
    for k in range(n):
        b.add_body(
            f"ball{k}",
            joint=lw.Prismatic(axis=(1, 0, 0)),
            parent="world",
            placement=tilted(0.0) + np.array([[0, 0, 0, k * (2 * radius + gap)]] + [[0] * 4] * 3),
            mass=0.3,
            collisions=[shape("sphere", (radius,))],
        )
    pairs = [(f"ball{k}", f"ball{k + 1}") for k in range(n - 1)]
    model = b.build().with_contacts(between=pairs, material=lw.Material(friction=0.0, restitution=1.0))
    run = lw.simulate(model, np.zeros(n), [1.0, 0, 0, 0, 0], duration=0.2, dt=0.001, method="moreau")
    assert run.v[-1] == pytest.approx([0, 0, 0, 0, 1.0], abs=1e-12)


@pytest.mark.parametrize(("count", "solver"), [(1, "dual"), (1, "primal"), (9, "auto")], ids=["dual", "primal", "pile"])
def test_a_ball_that_strikes_the_ground_spins_as_its_radius_says(count: int, solver: str) -> None:
    """Whenever within a step it does: its arm was larger or smaller by up to half a step's way."""
    b, r, spin, speed = lw.ModelBuilder("balls"), 0.1, 20.0, -1.0
    for k in range(count):
        b.add_body(f"ball{k}", joint=lw.Free(), shape=lw.shapes.sphere(r, mass=1.0))
    rules = lw.ContactRules(solver=solver) if count == 1 else lw.ContactRules()
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=5.0, restitution=0.5), rules=rules)
    q0 = np.concatenate([[1, 0, 0, 0, 0, 0.5 * k, 0.3 + 0.003 * k] for k in range(count)])
    v0 = np.tile([0, spin, 0, speed, 0, 0], count)
    motion = lw.simulate(model, q0, v0, duration=0.25, dt=0.004, method="moreau")
    turning = motion.v[-1].reshape(count, 6)[:, 1]
    np.testing.assert_allclose(turning, (0.4 * r * r * spin + r * speed) / (1.4 * r * r), atol=1e-9)


def test_bodies_that_strike_each_other_part_in_the_same_way_in_either_order() -> None:
    found = []
    bodies = {
        "ball": (lw.shapes.sphere(0.1, mass=12.0), [1, 0, 0, 0, 0, 0, 2.0], [3, 5, -2, 3, 0, 0]),
        "box": (lw.shapes.box((0.3, 0.2, 0.25), mass=10.0), [1, 0, 0, 0, 0.9, 0.05, 2.05], [0, 0, 1, 0, 0, 0]),
    }
    for names in (["ball", "box"], ["box", "ball"]):
        b = lw.ModelBuilder("two")
        for name in names:
            b.add_body(name, joint=lw.Free(), shape=bodies[name][0])
        model = b.build().with_contacts(material=lw.Material(friction=0.5, restitution=0.3))
        q0, v0 = (np.concatenate([bodies[name][k] for name in names]) for k in (1, 2))
        motion = lw.simulate(model, q0, v0, duration=0.4, dt=0.002, method="moreau")
        assert motion.contacts.count.max() == 1
        found.append([motion.v[-1][model.joints[f"{name}_joint"].v_slice] for name in bodies])
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


@pytest.mark.parametrize("fixed", [False, True], ids=["two jaws", "a jaw and a wall"])
def test_what_slips_between_flat_jaws_slides_straight_on(fixed: bool) -> None:
    """Any corners may bear what jaws that do not turn press with; where some bore all, the box turned as it slipped."""
    b, push, mu, t = lw.ModelBuilder("grip"), 20.0, 0.2, 0.2
    jaw, names = lw.shapes.box((0.02, 0.3, 0.4), mass=0.3), ["left"] if fixed else ["left", "right"]
    for name, side in zip(names, (-1.0, 1.0), strict=False):
        pose = lw.transform(xyz=(side * 0.06, 0, 0))
        b.add_body(name, joint=lw.Prismatic(axis=(-side, 0, 0)), placement=pose, shape=jaw)
    b.add_body("box", joint=lw.Free(), shape=lw.shapes.box((0.1, 0.1, 0.1), mass=1.0))
    wall = [lw.Ground(lw.transform(xyz=(0.05, 0, 0), rpy=(0, -np.pi / 2, 0)))] if fixed else []
    model = b.build().with_contacts(*wall, material=lw.Material(friction=mu))
    q0 = [*[0.0] * len(names), 1, 0, 0, 0, 0, 0, 0.1]
    force = [*[push] * len(names), *[0.0] * 6]
    options = {"dt": 0.004, "method": "moreau", "control": lambda t, q, v, p: force}
    motion = lw.simulate(model, q0, duration=t, **options)
    fallen = 0.5 * (G - 2.0 * mu * push) * t * t
    np.testing.assert_allclose(motion.q[-1], [*q0[:-1], 0.1 - fallen], atol=1e-10)
    apart = [-0.03 - 0.01 * k for k in range(len(names))]
    closing = lw.simulate(model, [*apart, *q0[len(apart) :]], duration=2 * t, **options)
    np.testing.assert_allclose(closing.q[-1, len(names) :][:4], [1, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_what_flies_with_rotors_flies_as_by_other_methods(solver: Any) -> None:
    """Velocities of a step are carried along, and rotors with them: their momentum was left where it pointed."""
    b = lw.ModelBuilder("rotors")
    given: dict[str, Any] = {
        "mass": 2.0,
        "inertia": np.diag([0.02, 0.03, 0.04]),
        "collisions": [shape("sphere", (0.1,))],
    }
    b.add_body("body", joint=lw.Free(), armature=[0.1, 0.2, 0.05, 0.5, 0.1, 0.3], **given)
    bare = b.build()
    model = bare.with_contacts(lw.Ground(), rules=lw.ContactRules(solver=solver))
    q0, v0 = [1.0, 0, 0, 0, 0, 0, 9.0], [1.0, -2.0, 3.0, 0.5, 1.0, -0.7]
    exact = lw.simulate(bare, q0, v0, duration=0.5, method="dop853", rtol=1e-11)
    motion = lw.simulate(model, q0, v0, duration=0.5, dt=1e-3, method="moreau")
    np.testing.assert_allclose(motion.q[-1], exact.q[-1], atol=1e-5)
    np.testing.assert_allclose(motion.v[-1], exact.v[-1], atol=1e-5)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-4
