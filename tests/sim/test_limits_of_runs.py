"""Runs that cannot reach their end, and arguments that make no sense: each says what, when and what to do."""

import math
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.simulate import IntegrationWarning, SlowControlWarning
from tests.sim.mechanisms import double_pendulum, pendulum, slider, top


def test_a_diverging_control_ends_soon_and_says_when():
    start = time.perf_counter()
    with pytest.warns(IntegrationWarning, match=r"(?s)t = 1 s of 10 s.*diverge"):
        motion = lw.simulate(slider(), [0.0], [1.0], 10.0, control=lambda t, q, v, p: [v[0] ** 2 * 2.0])  # v̇ = v²
    assert time.perf_counter() - start < 5.0
    assert motion.status == "failed"
    assert motion.t[-1] == pytest.approx(1.0, abs=1e-6)
    assert motion.steps < 5000
    assert "rodas4" in motion.note


def test_the_number_of_steps_is_capped():
    fast = lw.JointSprings(slider(), 1e9)
    with pytest.warns(IntegrationWarning, match=r"(?s)max_steps = 500.*t = 0.*rodas4"):
        motion = lw.simulate(slider(), [1.0], None, 100.0, control=fast, max_steps=500)
    assert motion.status == "max_steps"
    assert motion.steps + motion.rejected == 500
    assert len(motion.t) == motion.steps + 1
    with pytest.warns(IntegrationWarning, match=r"state 1 of the batch \(1 of 3"):
        batch = lw.simulate(slider(), [[0.0], [1.0], [0.0]], None, 1.0, control=fast, max_steps=500)
    assert batch.status.tolist() == ["done", "max_steps", "done"]
    assert np.isnan(batch.q[1, -1, 0])
    assert np.isfinite(batch.q[[0, 2]]).all()


def test_a_floor_for_the_step():
    with pytest.warns(IntegrationWarning, match="1e-03 s"):
        motion = lw.simulate(slider(), [1.0], None, 1.0, control=lw.JointSprings(slider(), 1e9), min_step=1e-3)
    assert motion.status == "failed"


def test_variational_steps_that_find_no_end_fail():
    model = double_pendulum()
    springs = lw.JointSprings(model, 1e4)
    with pytest.warns(IntegrationWarning, match=r"(?s)did not converge.*smaller dt"):
        lost = lw.simulate(model, [0.3, 0.1], None, 1.0, method="variational", dt=0.2, control=springs)
    assert lost.status == "failed"
    assert lw.simulate(model, [0.3, 0.1], None, 1.0, method="variational", dt=1e-4, control=springs).status == "done"


def test_events_without_end_are_capped_too():
    """A ball whose bounces come faster and faster."""
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    ground = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (q * 0.0 + 1e-9, 0.5 * abs(v)))
    with pytest.warns(IntegrationWarning, match="max_steps"):
        motion = lw.simulate(b.build(), [0.1], None, 1e6, events=ground, max_steps=300, limits="ignore")
    assert motion.status == "max_steps"
    assert 10 < len(motion.events) < 300


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_one_bad_state_leaves_the_others_alone(method):
    model = double_pendulum()
    q0 = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    good = lw.simulate(model, q0, None, 0.1, method=method)
    q0[2, 0] = np.nan
    with pytest.warns(IntegrationWarning, match="state 2"):
        motion = lw.simulate(model, q0, None, 0.1, method=method)
    assert motion.status.tolist() == ["done", "done", "failed", "done", "done"]
    others = [0, 1, 3, 4]
    np.testing.assert_array_equal(motion.q[others], good.q[others])
    np.testing.assert_array_equal(motion.energy[others], good.energy[others])


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_memory_is_used_again(method):
    model = double_pendulum()
    q0 = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    first = lw.simulate(model, q0, None, 0.1, method=method)
    fresh = lw.simulate(model, 0.5 * q0, None, 0.1, method=method)
    again = lw.simulate(model, 0.5 * q0, None, 0.1, method=method, out=first)
    assert np.shares_memory(again.q, first.q)
    np.testing.assert_array_equal(again.q, fresh.q)
    np.testing.assert_array_equal(again.energy, fresh.energy)
    with pytest.raises(lw.InputError, match=r"\(4, 101, 4\)"):
        lw.simulate(model, q0[:4], None, 0.1, method=method, out=first)
    with pytest.raises(lw.InputError, match="out"):
        lw.simulate(model, q0[0], None, 0.1, out=first)


def good(t, q, v, p):
    return [0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "panda.urdf"}, "lw.load"),
        ({"dt": math.nan}, "dt"),
        ({"dt": -1.0}, "dt"),
        ({"t0": math.nan}, "t0"),
        ({"duration": 0.0}, "duration"),
        ({"q0": [math.nan, 0.0]}, "finite"),
        ({"v0": [math.inf, 0.0]}, "finite"),
        ({"p": "x"}, "p is not made of real numbers"),
        ({"q0": np.zeros(2) * 1j}, "q0 is not made of real numbers"),
        ({"p": [math.nan]}, "p = "),
        ({"t0": 1e18}, "stand still"),
        ({"t0": -1e18}, "stand still"),
        ({"t0": 1e18, "dt": 1e-3}, "near zero"),
        ({"t0": 1.5e308, "duration": 1.5e308}, "too large"),
        ({"dt": 1e-320}, "stand still"),
        ({"progress": "yes"}, "progress"),
        ({"duration": 1e300, "dt": 1e285, "save_every": 1, "q0": np.zeros((3, 2)), "method": "rk4"}, "save_every"),
        ({"q0": np.zeros(2, np.float32), "t0": 1e8, "dt": 1e-2, "method": "rk4"}, "float32 numbers are 8 s apart"),
        ({"output_times": "abc"}, "output_times"),
        ({"output_times": []}, "output_times"),
        ({"save_every": "a"}, "save_every"),
        ({"save_every": 2.5}, "save_every"),
        ({"max_steps": 0}, "max_steps"),
        ({"rtol": 1e-20}, "rtol"),
        ({"rtol": "a"}, "rtol"),
        ({"atol": -1.0}, "atol"),
        ({"max_step": 0.0}, "max_step"),
        ({"min_step": -1.0}, "min_step"),
        ({"threads": 1.5}, "threads"),
        ({"rules": {"limits": "stop"}}, "JointRules"),
        ({"control": lambda t, q: [0.0, 0.0]}, r"control\(t, q, v, p\)"),
        ({"control": lambda t, q, v, p: None}, "None"),
        ({"events": lambda t, q, v, p: q}, "2 numbers"),
        ({"duration": 1e9, "q0": np.zeros((4096, 2)), "method": "rk4"}, "save_every"),
        ({"out": 3.0, "output_times": [0.0]}, "out"),
    ],
)
@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_mistakes_are_named(change, words, method):
    arguments = {"model": double_pendulum(), "q0": [0.0, 0.0], "duration": 1.0, "method": method} | change
    with pytest.raises(lw.InputError, match=words):
        lw.simulate(**arguments)


def test_mistakes_in_what_python_returns():
    def short(t, q, v, p):
        return [0.0] if q[0] < 3.0 else [1.0]

    with pytest.warns(SlowControlWarning), pytest.raises(lw.InputError, match="short"):
        lw.simulate(double_pendulum(), [0.0, 0.0], None, 0.1, control=short)
    with pytest.raises(lw.InputError, match="direction"):
        lw.Event(good, direction="up")
    bounce = lw.Event(lambda t, q, v, p: q[0] + 1.0, action=lambda t, q, v: None, name="bounce")
    with pytest.raises(lw.InputError, match="bounce"):
        lw.simulate(pendulum(), [0.0], None, 2.0, events=bounce)
    with pytest.raises(lw.InputError, match="other than zero"):
        lw.simulate(top(), np.zeros(7), None, 0.1)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_what_cannot_move_stands_still(method):
    b = lw.ModelBuilder("rock")
    b.add_body("rock", joint=lw.Fixed(), mass=1.0)
    motion = lw.simulate(b.build(), [], None, 0.1, method=method)
    assert motion.status == "done"
    assert "nothing in this model can move" in motion.note
    assert motion.q.shape == (2, 0)
    np.testing.assert_allclose(motion.t, [0.0, 0.1])
    assert motion.energy.tolist() == [0.0, 0.0]  # the ground's is not counted
    many = lw.simulate(b.build(), np.empty((4, 0)), None, 0.1, method=method, output_times=[0.0, 0.05, 0.1])
    assert many.q.shape == (4, 3, 0)
    assert many.status.tolist() == ["done"] * 4


def test_times_far_from_zero_work_while_steps_can_be_told():
    model = double_pendulum()
    near = lw.simulate(model, [0.3, 0.1], None, 1.0, method="rk4", dt=0.125)
    far = lw.simulate(model, [0.3, 0.1], None, 1.0, method="rk4", dt=0.125, t0=2.0**49)
    np.testing.assert_array_equal(far.q, near.q)
    np.testing.assert_array_equal(np.diff(far.t), 0.125)
    days = lw.simulate(model, [0.3, 0.1], None, 1.0, t0=1.7e9)
    np.testing.assert_allclose(days.q[-1], lw.simulate(model, [0.3, 0.1], None, 1.0).q[-1], atol=1e-6)


@pytest.mark.parametrize("method", ["euler", "rk4", "variational", "dop853", "rk56", "rodas4"])
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_an_empty_batch_has_everything_in_its_shape(method, shape, tmp_path):
    model = double_pendulum()
    hit = lw.Event(lambda t, q, v, p: q[0], action=lambda t, q, v: (q, -v))
    motion = lw.simulate(model, np.zeros((*shape, 2)), None, 0.1, method=method, events=hit, control=lw.PD(model, 0.0))
    count = len(motion.t)
    assert motion.q.shape == (*shape, count, 2)
    assert motion.energy.shape == (*shape, count)
    assert motion.poses.shape == (*shape, count, 2, 4, 4)
    assert motion.at([0.03, 0.05]).q.shape == (*shape, 2, 2)
    assert lw.IMU("lower").read(motion).shape == (*shape, count, 6)
    assert lw.ForceTorque("lower_joint").read(motion, 0).shape == (*shape, count, 6)
    assert lw.Trajectory.load(motion.save(tmp_path / "motion.npz"), model).q.shape == motion.q.shape
    assert motion.status.shape == shape
    assert not motion.events
    single = lw.simulate(model, np.zeros((*shape, 2), np.float32), None, 0.1, method=method)
    assert single.q.shape[: len(shape)] == shape
