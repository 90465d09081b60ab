"""Ctrl-C: what is returned is the beginning of the whole motion, bit for bit, and nothing writes to it any more."""

import signal
import threading
import time
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.simulate import IntegrationWarning
from tests.sim.mechanisms import double_pendulum, mixed


def interrupted(after, run):
    """Run something that is interrupted some seconds after it began."""
    timer = threading.Timer(after, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        return run()
    finally:
        timer.cancel()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def copies(motion):
    return {name: getattr(motion, name).copy() for name in ("t", "q", "v", "energy")}


def check_beginning(motion, whole):
    """The same samples as the whole run has, and NaN where a state has not come."""
    assert set(np.ravel(motion.status)) <= {"interrupted", "done"}
    assert "interrupted" in np.ravel(motion.status)
    assert 0 < len(motion) <= len(whole)
    np.testing.assert_array_equal(motion.t, whole.t[: len(motion)])
    for name in ("q", "v"):
        found, expected = getattr(motion, name), getattr(whole, name)[..., : len(motion), :]
        known = np.isfinite(found)
        np.testing.assert_array_equal(found[known], expected[known])
        assert known[..., 0, :].all()


@pytest.mark.parametrize("method", ["rk4", "dop853", "variational"])
@pytest.mark.parametrize("delay", [0.11, 0.23])
def test_threads_leave_nothing_that_changes_afterwards(method, delay):
    model = double_pendulum()
    q0 = np.random.default_rng(0).uniform(-1, 1, (256, 2))
    duration = {"rk4": 60.0, "dop853": 300.0, "variational": 15.0}[method]
    options = {"method": method, "dt": 1e-3, "output_times": np.linspace(0.0, duration, 61)}
    whole = lw.simulate(model, q0, None, duration, **options)
    motion = interrupted(delay, lambda: lw.simulate(model, q0, None, duration, threads=8, **options))
    if set(np.ravel(motion.status)) == {"done"}:
        pytest.skip("this machine was done before the interrupt came")
    before = copies(motion)
    time.sleep(0.4)
    for name, value in copies(motion).items():
        np.testing.assert_array_equal(value, before[name])
    check_beginning(motion, whole)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_a_control_in_python_can_be_interrupted_anywhere(method):
    """Also in the middle of a step: then that chunk of the run has not been."""
    model = double_pendulum()

    def make(stop):
        calls = 0

        def control(t, q, v, p):
            nonlocal calls
            if float(t) >= 0.0:  # cannot be traced
                calls += 1
            if calls == stop:
                signal.raise_signal(signal.SIGINT)
            return -q

        return control

    q0 = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    options = {"method": method, "dt": 5e-3, "output_times": np.linspace(0.0, 1.0, 41), "threads": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = lw.simulate(model, q0, None, 1.0, control=make(-1), **options)
        for stop in (5, 433, 434, 437, 700):
            check_beginning(lw.simulate(model, q0, None, 1.0, control=make(stop), **options), whole)


def test_an_action_can_be_interrupted():
    calls = []

    def bounce(t, q, v):
        calls.append(t)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return q, -v

    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    ground = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=bounce)
    for method in ("dop853", "rk4"):
        calls.clear()
        motion = lw.simulate(b.build(), [1.0], None, 10.0, events=ground, method=method, dt=1e-2)
        assert motion.status == "interrupted"
        assert len(motion.events) == 2
        assert motion.end <= calls[2]
        assert motion.q.min() > -1e-9


def test_a_single_state_keeps_all_its_steps():
    model = mixed()
    q0, v0 = model.random_configuration(1), np.ones(model.nv)
    lw.simulate(model, q0, v0, 0.1)  # compiled
    motion = interrupted(0.6, lambda: lw.simulate(model, q0, v0, 1e6))
    assert motion.status == "interrupted"
    assert len(motion) == motion.steps + 1
    with pytest.warns(IntegrationWarning):
        whole = lw.simulate(model, q0, v0, 1e6, max_steps=motion.steps + motion.rejected)
    np.testing.assert_array_equal(whole.q, motion.q)


def test_other_threads_do_not_touch_signals():
    results = []
    work = threading.Thread(target=lambda: results.append(lw.simulate(double_pendulum(), [0.1, 0.2], None, 0.5)))
    work.start()
    work.join()
    assert results[0].status == "done"


def test_what_was_never_recorded_is_not_looked_at(monkeypatch):
    """Memory behind the last sample of an interrupted run may hold anything; here, wild jumps."""
    model = double_pendulum()
    options = {"method": "rk4", "dt": 1e-3}
    earlier = lw.simulate(model, [0.3, 0.2], None, 60.0, **options)
    earlier.storage[0, ::2], earlier.storage[0, 1::2] = 1e3, -1e3
    monkeypatch.setattr("linkwise.sim.run._CHUNK_SECONDS", 1e-3)

    def stop(fraction):
        raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("error", IntegrationWarning)
        motion = lw.simulate(model, [0.3, 0.2], None, 60.0, progress=stop, out=earlier, **options)
    assert motion.status == "interrupted" and len(motion) < 60_000
    assert not motion.note
