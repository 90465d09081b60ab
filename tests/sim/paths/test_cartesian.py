"""Paths of a body: straight lines and via points, against the geometry that they must have and SciPy's splines."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.samples import seven_joint_arm

ARM = seven_joint_arm()
HERE = ARM.pose(ARM.start, "tool")
THERE = HERE @ lw.transform(xyz=(0.05, 0.25, 0.1), rpy=(0.3, 0.0, 0.5))
BEYOND = HERE @ lw.transform(xyz=(0.1, -0.1, -0.15))


def test_a_straight_line_is_straight_and_turns_about_one_axis():
    way = lw.path(ARM, [HERE, THERE], duration=2.0, body="tool", tolerance=1e-6)
    t = np.linspace(0.0, 2.0, 157)
    X = ARM.pose(way(t).q, "tool")
    along = (THERE - HERE)[:3, 3]
    off = np.cross(X[:, :3, 3] - HERE[:3, 3], along) / np.linalg.norm(along)
    assert np.linalg.norm(off, axis=1).max() < 2e-6
    turned = Rotation.from_matrix(HERE[:3, :3].T @ X[:, :3, :3]).as_rotvec()
    whole = Rotation.from_matrix(HERE[:3, :3].T @ THERE[:3, :3]).as_rotvec()
    assert np.linalg.norm(np.cross(turned, whole), axis=1).max() < 1e-5
    assert np.allclose(X[[0, -1]], [HERE, THERE], atol=1e-8)


def test_velocities_are_those_of_the_configurations():
    way = lw.path(ARM, [HERE, THERE, BEYOND], duration=3.0, body="tool")
    t, h = np.linspace(0.1, 2.9, 41), 1e-6
    assert np.allclose((way(t + h).q - way(t - h).q) / (2 * h), way(t).v, atol=1e-6)
    assert np.abs(way([0.0, 3.0]).v).max() < 1e-12


def test_it_stops_at_points_or_passes_them_at_their_times():
    times = [0.0, 1.0, 2.5]
    for kind in ("quintic", "spline"):
        way = lw.path(ARM, [HERE, THERE, BEYOND], times=times, body="tool", kind=kind)
        assert np.allclose(ARM.pose(way(times).q, "tool"), [HERE, THERE, BEYOND], atol=1e-7)
        fast = np.abs(way(1.0).v).max()
        assert fast < 1e-9 if kind == "quintic" else fast > 0.1


def test_via_points_of_positions_lie_on_a_spline_in_the_middle():
    """Between the first and the last stretch it is the cubic spline through the points."""
    rng = np.random.default_rng(2)
    points = HERE[:3, 3] + np.cumsum(rng.normal(size=(5, 3)) * 0.05, axis=0)
    times = np.arange(5.0)
    way = lw.path(ARM, points, times=times, body="tool", kind="spline", tolerance=1e-6)
    t = np.linspace(1.0, 3.0, 50)
    assert np.allclose(ARM.pose(way(t).q, "tool")[:, :3, 3], CubicSpline(times, points)(t), atol=2e-6)


def test_the_shortest_keeps_the_limits_of_joints():
    way = lw.path(ARM, [HERE, THERE], body="tool", acceleration=8.0)
    t = np.linspace(0.0, way.duration, 2001)
    _, v, vdot = way(t)
    ratios = np.max(np.abs(v) / ARM.limits.velocity), np.max(np.abs(vdot) / 8.0)
    assert max(ratios) == pytest.approx(1.0, abs=0.02)
    with pytest.raises(lw.InputError, match="too fast"):
        lw.path(ARM, [HERE, THERE], body="tool", duration=0.5 * way.duration, acceleration=8.0)


def test_it_drives_a_control():
    way = lw.path(ARM, [HERE, THERE], duration=1.0, body="tool")
    control = lw.ComputedTorque(ARM, way.q, way.v, way.vdot)
    undamped = lw.JointRules(damping=False)  # of which the control knows nothing
    motion = lw.simulate(ARM, way(0.0).q, duration=1.0, control=control, rtol=1e-8, rules=undamped)
    assert np.allclose(motion.pose("tool")[-1], THERE, atol=1e-5)


def test_a_way_that_joints_cannot_follow_is_refused_with_the_place():
    with pytest.raises(lw.InputError, match=r"cannot go this way[\s\S]*from point 0 to point 1"):
        lw.path(ARM, [HERE, HERE @ lw.transform(xyz=(0, 0, -3.0))], duration=1.0, body="tool")
    with pytest.raises(lw.InputError, match="first point cannot be reached"):
        lw.path(ARM, [[5.0, 0, 0], [6.0, 0, 0]], duration=1.0, body="tool")
    with pytest.raises(lw.InputError, match="are one"):
        lw.path(ARM, [HERE, HERE], duration=1.0, body="tool")
    with pytest.raises(lw.InputError, match="neither poses nor positions"):
        lw.path(ARM, [ARM.start, ARM.start], duration=1.0, body="tool")
    with pytest.raises(lw.InputError, match="another kind"):
        lw.path(ARM, [HERE, THERE], duration=1.0, body="tool", kind="trapezoidal")
