"""Starts exactly on limits, on the surfaces of events and in singular configurations, and events without end."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.sim.simulate import IntegrationWarning
from tests.sim.closed_benchmarks import four_bar_angle, swinging
from tests.sim.mechanisms import slider

G = 9.81
FIXED = ["euler", "rk4", "variational", "generalized_alpha"]
ADAPTIVE = ["dop853", "dopri5", "rk56", "cash_karp", "rodas4"]
SOME = ["rk4", "variational", "dop853", "rodas4"]


@cache
def ball(lower: float = -np.inf) -> lw.Model:
    b = lw.ModelBuilder("ball")
    limits = lw.JointLimits(lower=lower, upper=3.0)
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3), limits=limits)
    return b.build()


def on_floor() -> lw.Model:
    return ball(0.0)


@cache
def ground(keep: float = 0.8, direction: int = -1) -> lw.Event:
    return lw.Event(lambda t, q, v, p: q[0], direction, action=lambda t, q, v: (0 * q, -keep * v), name="ground")


# Limits.
@pytest.mark.parametrize("method", FIXED + ADAPTIVE)
@pytest.mark.parametrize(
    ("q0", "v0", "end"),
    [(0.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 2.0, 4.0 / G), (-5e-10, 0.0, 0.0), (-5e-10, 2.0, 4.0 / G)],
    ids=["at rest", "outwards", "inwards", "beyond by rounding", "back from there"],
)
def test_a_limit_stops_what_starts_on_it(method: str, q0: float, v0: float, end: float) -> None:
    motion = lw.simulate(on_floor(), [q0], [v0], 1.0, method=method, limits="stop")
    assert motion.status == "event"
    assert [event.name for event in motion.events] == ["ball_joint: lower limit"]
    assert motion.t[-1] == pytest.approx(end, abs=2e-3 if method == "euler" else 1e-6)
    assert motion.q.min() > -1e-9


@pytest.mark.parametrize("method", SOME)
def test_resting_on_a_limit_is_not_reaching_it_and_being_released_is(method: str) -> None:
    def hold(t: Any, q: Any, v: Any, p: Any) -> Any:
        return [lw.math.where(t < 0.5, 1.0, 0.0) * G]

    motion = lw.simulate(on_floor(), [0.0], None, 1.0, method=method, limits="stop", control=hold, max_step=1e-2)
    assert motion.status == "event"
    assert motion.t[-1] == pytest.approx(0.5, abs=2e-3)
    held = lw.simulate(on_floor(), [3.0], None, 1.0, method=method, limits="stop", control=lambda t, q, v, p: [G])
    assert held.status == "done"
    assert held.q[-1, 0] == pytest.approx(3.0, abs=1e-12)


@pytest.mark.parametrize("method", SOME)
def test_several_joints_on_limits_in_a_batch(method: str) -> None:
    """Two sliders: each state on other limits; only those that are pushed outwards end."""
    b = lw.ModelBuilder("sliders", gravity=(0, 0, 0))
    for name in "ab":
        limits = lw.JointLimits(lower=-1.0, upper=0.5)
        b.add_body(name, joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=np.eye(3), limits=limits)
    q0 = [[0.5, -1.0], [0.5, -1.0], [0.5, -1.0], [0.0, 0.0]]
    push = np.array([[1.0, -1.0], [-0.1, 0.1], [0.0, -1.0], [1.0, 0.0]])
    motion = lw.simulate(
        b.build(), q0, None, 0.9, method=method, dt=1e-2, limits="stop", control=lambda t, q, v, p: p, p=push
    )
    assert motion.status.tolist() == ["event", "done", "event", "done"]
    names = [{e.name for e in motion.events if e.state == (k,)} for k in range(4)]
    assert names[2] == {"b_joint: lower limit"}
    assert names[0] <= {"a_joint: upper limit", "b_joint: lower limit"}
    np.testing.assert_allclose(motion.q[1, -1], [0.5 - 0.05 * 0.81, -1.0 + 0.05 * 0.81], atol=1e-3)


def test_a_limit_stops_a_follower_and_single_precision_on_it() -> None:
    b = lw.ModelBuilder("gripper", gravity=(0, 0, 0))
    b.add_body("left", joint=lw.Prismatic(axis=(1, 0, 0)), mass=2.0, inertia=np.eye(3), joint_name="leader")
    limits = lw.JointLimits(lower=-0.2, upper=0.8)
    mimic = lw.Mimic("leader", -2.5, 0.3)
    b.add_body("right", joint=lw.Prismatic(axis=(0, 1, 0)), mass=0.4, inertia=np.eye(3), limits=limits, mimic=mimic)
    model = b.build()
    for dtype in (np.float64, np.float32):
        for q0, out in ((0.2, 1.0), (-0.2, -1.0)):
            start, speed = np.array([q0], dtype), np.array([out], dtype)
            if dtype is np.float64:
                assert lw.simulate(model, start, speed, 0.1, method="rk4", limits="stop").t[-1] < 1e-6
            inside = lw.simulate(on_floor(), np.zeros(1, dtype), np.ones(1, dtype), 0.1, method="rk4", limits="stop")
            assert inside.status == "done"
    falls = lw.simulate(on_floor(), np.zeros(1, np.float32), np.zeros(1, np.float32), 0.1, method="rk4", limits="stop")
    assert (falls.status, falls.q.dtype) == ("event", np.float32)
    assert falls.t[-1] < 1e-3


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_limit_stops_a_simulation_in_pieces(method: str) -> None:
    sim = lw.Simulation(on_floor(), [0.0], [1.0], method=method, limits="stop")
    sim.advance(0.1).advance(0.3)
    assert sim.status == "event"
    assert sim.t == pytest.approx(2.0 / G, abs=1e-6)
    sim.set([0.0], [0.0])
    sim.advance(0.1)
    assert sim.status == "event"
    assert sim.q[0] > -1e-9


# Events that begin on their surface.
@pytest.mark.parametrize("method", SOME)
@pytest.mark.parametrize(("speed", "direction"), [(1.0, 1), (1.0, 0), (-1.0, -1), (-1.0, 0), (1.0, -1), (-1.0, 1)])
def test_leaving_zero_counts_in_the_direction_asked_for(method: str, speed: float, direction: int) -> None:
    """A mass on a spring: q = ± sin t."""
    model = slider()
    inertia = float(model.mass_matrix([0.0])[0, 0])
    event = lw.Event(lambda t, q, v, p: q[0], direction)
    spring = lw.JointSprings(model, inertia)
    motion = lw.simulate(model, [0.0], [speed], 10.0, method=method, dt=1e-2, control=spring, events=event, p=[0.0])
    turns = np.pi * np.arange(4)
    up = (turns * 0 + speed) * (-1.0) ** np.arange(4) > 0
    counted = {1: up, -1: ~up, 0: np.full(4, True)}[direction]
    np.testing.assert_allclose([e.t for e in motion.events], turns[counted], atol=2e-4)


@pytest.mark.parametrize("method", SOME)
def test_what_rests_at_zero_has_no_event_until_it_leaves(method: str) -> None:
    def push(t: Any, q: Any, v: Any, p: Any) -> Any:
        return [lw.math.where(t < 0.3, 0.0, 1.0)]

    found = lw.simulate(
        slider(), [0.0], None, 1.0, method=method, dt=1e-2, max_step=0.01, control=push, p=[0.0],
        events=lw.Event(lambda t, q, v, p: q[0], direction=1, name="leaves"),
    )  # fmt: skip
    assert [e.t for e in found.events] == pytest.approx([0.3], abs=1.1e-2)


@pytest.mark.parametrize("method", SOME)
@pytest.mark.parametrize("keep", [0.5, 1.0])
def test_a_kick_on_the_way_through_a_surface_is_one_event(method: str, keep: float) -> None:
    """Where the place is found exactly, and the motion goes on through it, nothing happens twice."""
    kick = lw.Event(lambda t, q, v, p: q[0], action=lambda t, q, v: (q, keep * v), name="kick")
    motion = lw.simulate(slider(), [-1.0], [1.0], 3.0, dt=0.25, method=method, events=kick, p=[0.0])
    assert [e.t for e in motion.events] == pytest.approx([1.0], abs=1e-9)
    assert motion.q[-1, 0] == pytest.approx(2.0 * keep, abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_pieces_find_what_one_run_finds(method: str) -> None:
    """Pieces that end on the surface, or begin there, miss nothing and count nothing twice."""
    event = lw.Event(lambda t, q, v, p: q[0] - p[0], name="pass")
    sim = lw.Simulation(slider(), [-1.0], [1.0], method=method, dt=0.25, events=event, p=[0.0])
    for _ in range(8):
        sim.advance(0.25)
    assert [e.t for e in sim.events] == pytest.approx([1.0], abs=1e-9)
    sim.p = [5.0]  # the surface is elsewhere: that is no event
    sim.advance(1.0)
    assert len(sim.events) == 1


# Events without end.
@pytest.mark.parametrize("method", FIXED + ADAPTIVE)
def test_the_ball_of_the_guide_comes_to_rest_on_the_ground(method: str) -> None:
    """It falls for √(2/g) and then bounces for 2·0.8/(1 - 0.8) times as long, in the limit."""
    with pytest.warns(IntegrationWarning, match=r"(?s)'ground' happens again and again.*times until t = "):
        motion = lw.simulate(ball(), [1.0], None, 8.0, method=method, events=ground())
    assert motion.status == "zeno"
    assert motion.end == pytest.approx(np.sqrt(2.0 / G) * 9.0, abs=0.2 if method == "euler" else 1e-6)
    assert motion.q.min() > -1e-9
    assert f"{len(motion.events)} times" in motion.note
    if method != "euler":
        steps = np.array([e.t for e in motion.events[:30]])
        expected = np.sqrt(2.0 / G) * np.append(1.0, 1.0 + 2.0 * np.cumsum(0.8 ** np.arange(1, 30)))
        np.testing.assert_allclose(steps, expected, atol=1e-6)


@pytest.mark.parametrize("method", SOME)
@pytest.mark.parametrize("direction", [-1, 0])
@pytest.mark.parametrize("keep", [0.0, 0.5])
def test_a_ball_that_starts_at_rest_on_the_ground_stays_there(method: str, direction: int, keep: float) -> None:
    with pytest.warns(IntegrationWarning, match="Zeno"):
        motion = lw.simulate(ball(), [0.0], None, 1.0, method=method, events=ground(keep, direction))
    assert motion.status == "zeno"
    assert motion.end < 1e-9
    assert motion.q.min() > -1e-9


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_in_a_batch_events_without_end_end_one_state(method: str) -> None:
    q0 = [[1.0], [0.01], [1.0]]
    with pytest.warns(IntegrationWarning, match=r"state 1 of the batch \(1 of 3"):
        motion = lw.simulate(ball(), q0, None, 0.5, method=method, dt=1e-2, events=ground())
    assert motion.status.tolist() == ["done", "zeno", "done"]
    assert list(motion.reasons) == [(1,)]
    alone = lw.simulate(ball(), [[1.0]] * 3, None, 0.5, method=method, dt=1e-2, events=ground())
    np.testing.assert_array_equal(motion.q[[0, 2]], alone.q[[0, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntegrationWarning)
        many = lw.ensemble(ball(), {"q0": np.array(q0)}, duration=0.5, method=method, dt=1e-2, events=ground())
    assert many.counts["zeno"] == 1


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_in_pieces_events_without_end_are_an_error_with_their_name(method: str) -> None:
    sim = lw.Simulation(ball(), [0.01], None, method=method, events=ground())
    with pytest.raises(lw.LinkwiseError, match="'ground' happens again"):
        for _ in range(100):
            sim.advance(0.01)
    assert sim.status == "zeno"
    assert sim.t == pytest.approx(np.sqrt(0.02 / G) * 9.0, abs=1e-6)
    assert abs(sim.q[0]) < 1e-9
    batch = lw.Simulation(ball(), [[0.01], [1.0]], None, method=method, events=ground())
    batch.advance(0.3).advance(0.3)
    assert batch.status.tolist() == ["zeno", "running"]
    assert np.isfinite(batch.q).all()


def test_a_ball_that_may_lie_goes_on() -> None:
    """What the message says to do: catch it instead of bouncing for ever."""
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    b.add_closure("floor", "ball", lw.transform(), "world", lw.transform(), joint=lw.Fixed())
    lies = lw.Event(lambda t, q, v, p: q[0], direction=-1, attach="floor", name="lies")
    motion = lw.simulate(b.build(), [1.0], None, 1.0, events=lies, released="floor")
    assert (motion.status, len(motion.events)) == ("done", 1)
    np.testing.assert_allclose(motion.q[-1], 0.0, atol=1e-12)


# Singular configurations.
STEPS = [2e-2, 1e-2, 5e-3, 3e-3, 2.5e-3, 2e-3, 1e-3]


@pytest.mark.parametrize("method", ["variational", "generalized_alpha", "rk4"])
@pytest.mark.parametrize("n", [1, 2])
def test_no_step_size_jumps_where_all_rods_lie_flat(method: str, n: int) -> None:
    """Some six times in 5 s. The angle is that of the one-freedom equation, by SciPy; the energy stays."""
    model = samples.four_bar(n)
    true = four_bar_angle(n, np.array([0.0, 5.0]))[-1]
    for dt in STEPS:
        motion = lw.simulate(model, model.neutral(), swinging(model), 5.0, method=method, dt=dt)
        assert motion.status == "done"
        assert motion.q[-1, 0] == pytest.approx(true, abs=20.0 * dt**2 + 2e-4)
        assert np.ptp(motion.energy) < 200.0 * dt**2 + 1e-3
        assert np.abs(motion.closure_error).max() < 1e-12


@pytest.mark.parametrize("method", ["variational", "generalized_alpha", "rk4", "dop853"])
@pytest.mark.parametrize("speed", [1.0, -4.0])
def test_a_start_in_the_singular_configuration_keeps_its_branch(method: str, speed: float) -> None:
    """Flat, and moving as the parallelogram does: φ(t) from φ = π/2."""
    from scipy.integrate import solve_ivp

    model = samples.four_bar(1)
    sign = np.array([1.0, -1.0, 1.0])
    k = 3 * 4 / (2 * 5) * G
    true = solve_ivp(lambda t, y: [y[1], k * np.sin(y[0])], (0, 1), [np.pi / 2, speed], rtol=1e-12, atol=1e-12).y[0, -1]
    motion = lw.simulate(model, np.pi / 2 * sign, speed * sign, 1.0, method=method, dt=1e-3)
    np.testing.assert_allclose(motion.q[-1], true * sign, atol=1e-4)


# Steps that are too long.
def whip(dt: float, **options: Any) -> lw.Trajectory:
    """A pole on a cart of a gram: the cart is flung to and fro in milliseconds."""
    b = lw.ModelBuilder("cart")
    b.add_body("cart", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1e-3, inertia=1e-3 * np.eye(3))
    b.add_body("pole", "cart", lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0, 0, 0.5), inertia=1e-3 * np.eye(3))
    return lw.simulate(b.build(), options.pop("q0", [0.0, 0.1]), None, 10.0, dt=dt, method="rk4", **options)


def test_a_long_run_that_is_far_from_the_truth_says_so() -> None:
    for options in ({}, {"save_every": 10}, {"q0": [[0.0, 0.1]] * 5}):
        with pytest.warns(IntegrationWarning, match=r"(?s)steps of 0.001 s are too long.*near t = "):
            motion = whip(1e-3, **options)
        assert np.ptp(np.atleast_2d(motion.energy), axis=-1).max() > 1.0  # of 4.9 J
        assert np.all(np.asarray(motion.status) == "done")
        assert "too long" in motion.note


def test_a_run_with_steps_short_enough_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", IntegrationWarning)
        fine = whip(5e-5)
        assert np.ptp(fine.energy) < 1e-3
        assert fine.note == ""
        arm = samples.planar_arm()
        for method in FIXED:
            assert lw.simulate(arm, [0.5, 0.0, 0.0], None, 5.0, method=method, dt=1e-3).note == ""
