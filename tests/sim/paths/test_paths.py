"""Paths: through their points, derivatives that fit, limits kept, on joints with quaternions too."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, Slerp

import linkwise as lw
from bench.robots import ROBOTS
from linkwise.errors import InputError
from linkwise.samples import planar_arm

KINDS = ("quintic", "trapezoidal", "spline")


@pytest.fixture(scope="module")
def flyer() -> lw.Model:
    """A free body, a ball joint and a hinge."""
    builder = lw.ModelBuilder("flyer")
    solid = {"mass": 1.0, "inertia": np.diag([0.2, 0.3, 0.4])}
    builder.add_body("hull", joint=lw.Free(), **solid)
    builder.add_body("arm", parent="hull", joint=lw.Spherical(), **solid)
    builder.add_body("hand", parent="arm", joint=lw.Revolute((0, 1, 0)), placement=lw.transform(xyz=(1, 0, 0)), **solid)
    return builder.build()


@pytest.fixture(scope="module")
def panda() -> lw.Model:
    return lw.load(ROBOTS["panda"].path, locked=list(ROBOTS["panda"].locked))


@pytest.mark.parametrize("kind", KINDS)
def test_points_and_derivatives(flyer: lw.Model, kind: str) -> None:
    points = flyer.random_configuration(0, size=4)
    way = lw.path(flyer, points, duration=3.0, kind=kind)
    assert way.duration == pytest.approx(3.0)
    there = way(way.times)
    assert np.abs(flyer.difference(there.q, points)).max() < 1e-9
    assert np.abs(there.v[[0, -1]]).max() < 1e-9
    if kind != "spline":
        assert np.abs(there.v).max() < 1e-9
    t = np.linspace(0.011, 2.989, 40)
    h = 1e-5
    q, v, vdot = way(t)
    ahead, behind = way(t + h), way(t - h)
    slope = (flyer.difference(q, ahead.q) - flyer.difference(q, behind.q)) / (2 * h)
    assert np.abs(slope - v).max() < 1e-6 * max(1.0, np.abs(vdot).max())
    smooth = np.abs((ahead.v - behind.v) / (2 * h) - vdot).max(axis=1)
    assert np.quantile(smooth, 0.9) < 1e-4 * max(1.0, np.abs(vdot).max())  # but for jumps of the acceleration


def test_the_straightest_way_of_a_ball_joint() -> None:
    """Beside SciPy's spherical interpolation."""
    builder = lw.ModelBuilder("ball")
    builder.add_body("ball", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    model = builder.build()
    points = model.random_configuration(1, size=2)
    way = lw.path(model, points, duration=1.0, kind="trapezoidal")
    ends = Rotation.from_quat(np.roll(points, -1, axis=-1))
    halfway = Slerp([0, 1], ends)(0.5)
    assert (Rotation.from_quat(np.roll(way(0.5).q, -1)) * halfway.inv()).magnitude() < 1e-9


def test_a_spline_of_hinges_is_the_clamped_cubic(panda: lw.Model) -> None:
    points = 0.5 * panda.random_configuration(2, size=5) + 0.25 * (panda.limits.lower + panda.limits.upper)
    times = np.array([0.0, 1.0, 1.5, 3.0, 4.0]) * 3
    way = lw.path(panda, points, kind="spline", times=times)
    t = np.linspace(0, 12, 57)
    cubic = CubicSpline(times, points, bc_type="clamped")
    q, v, vdot = way(t)
    assert np.allclose(q, cubic(t), atol=1e-12)
    assert np.allclose(v, cubic(t, 1), atol=1e-11)
    assert np.allclose(vdot, cubic(t, 2), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_as_fast_as_the_limits_allow(panda: lw.Model, kind: str) -> None:
    low, high = panda.limits.lower, panda.limits.upper
    points = low + (high - low) * np.random.default_rng(3).uniform(0.3, 0.7, (4, 7))
    fast, strong = panda.limits.velocity, np.full(7, 5.0)
    way = lw.path(panda, points, kind=kind, acceleration=strong)
    _, v, vdot = way(np.linspace(0.0, way.duration, 20_001))
    use = max((np.abs(v) / fast).max(), (np.abs(vdot) / strong).max())
    assert 0.97 < use < 1.001
    with pytest.raises(InputError, match="too fast"):
        lw.path(panda, points, 0.8 * way.duration, kind=kind, acceleration=strong)
    slow = lw.path(panda, points, 2.0 * way.duration, kind=kind, acceleration=strong)
    assert slow.duration == pytest.approx(2.0 * way.duration)


def test_trapezoids_in_closed_form() -> None:
    arm = planar_arm(1)
    way = lw.path(arm, [[0.0], [2.0]], kind="trapezoidal", velocity=1.0, acceleration=2.0)
    assert way.duration == pytest.approx(2.0 / 1.0 + 1.0 / 2.0)
    assert way(0.25).v[0] == pytest.approx(0.5)
    assert way(0.25).q[0] == pytest.approx(0.5 * 2.0 * 0.25**2)
    assert way(1.0).v[0] == pytest.approx(1.0)
    never = lw.path(arm, [[0.0], [2.0]], kind="trapezoidal", velocity=10.0, acceleration=2.0)
    assert never.duration == pytest.approx(2.0)  # 2 √(2 / 2)
    only_velocity = lw.path(arm, [[0.0], [2.0]], kind="trapezoidal", velocity=1.0)
    assert only_velocity(0.5 * only_velocity.duration).v[0] == pytest.approx(1.0)


def test_outside_it_rests(panda: lw.Model) -> None:
    points = np.array([panda.random_configuration(k) for k in (5, 6)])
    way = lw.path(panda, points, 10.0)
    q, v, vdot = way([-1.0, 11.0])
    assert np.array_equal(q, points)
    assert not v.any()
    assert not vdot.any()


@pytest.mark.parametrize("kind", KINDS)
def test_as_the_target_of_a_controller(kind: str) -> None:
    """A simulation under computed torque stays on the path; the path is traced into its code."""
    arm = planar_arm(2)
    way = lw.path(arm, [[0.0, 0.0], [0.6, -0.4], [0.2, 0.5]], 1.5, kind=kind)
    control = lw.ComputedTorque(arm, way.q, way.v, way.vdot, kp=400.0, kd=40.0)
    dt = 0.002
    traj = lw.simulate(arm, way(0.0).q, duration=1.7, dt=dt, method="rk4", control=control)
    assert not traj.note
    # A step that the acceleration jumps in leaves up to jump · dt of velocity, which the error ë + 40 ė + 400 e = 0
    # turns into 1/(20 e) of it, at most. There are no jumps in a quintic.
    jump = 2.0 * np.abs(way(traj.t).vdot).max()
    assert np.abs(traj.q - way(traj.t).q).max() < (1e-6 if kind == "quintic" else jump * dt / (20.0 * np.e))
    for t in (-0.1, 0.3, 1.6):
        assert np.allclose(way.q(t), way(t).q)


def test_trajectory(panda: lw.Model) -> None:
    way = lw.path(panda, panda.random_configuration(7, size=3))
    traj = way.trajectory(dt=0.02)
    assert traj.t[-1] == way.duration
    assert np.allclose(traj.tau, panda.inverse_dynamics(*way(traj.t)))
    assert "quintic" in repr(way)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kind": "linear"}, "kind of path"),
        ({"duration": -1.0}, "duration"),
        ({"duration": 1.0, "times": [0, 1]}, "not both"),
        ({"times": [0, 1, 2]}, "times"),
        ({"times": [1, 0]}, "times"),
        ({}, "how long"),
        ({"kind": "spline"}, "how long"),
        ({"velocity": 0.0}, "positive"),
        ({"velocity": [1.0] * 7}, "wrong shape"),
        ({"duration": 1.0, "limits": "soft"}, "limits"),
    ],
)
def test_mistakes(given: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        lw.path(planar_arm(2), [[0.0, 0.0], [1.0, 1.0]], **given)


def test_points_that_cannot_be(panda: lw.Model) -> None:
    with pytest.raises(InputError, match="not configurations"):
        lw.path(panda, [[0.0]], 1.0)
    with pytest.raises(InputError, match="panda_joint4"):
        lw.path(panda, np.zeros((2, 7)), 1.0)
    inside = 0.5 * (panda.limits.lower + panda.limits.upper)
    top = inside.copy()
    top[0] = panda.limits.upper[0]
    with pytest.raises(InputError, match="spline between"):
        lw.path(panda, [inside, top, top - 0.01, inside], kind="spline", duration=60.0)
    assert (
        lw.path(panda, [inside, top, top - 0.01, inside], kind="spline", duration=60.0, limits="ignore").duration == 60
    )
    with pytest.raises(InputError, match="dt"):
        lw.path(panda, [inside, top], 10.0).trajectory(dt=0.0)
    still = lw.path(panda, [inside, inside, top], 10.0)
    assert np.array_equal(still(still.times[1]).q, inside)
