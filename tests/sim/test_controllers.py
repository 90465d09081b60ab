"""Controllers with memory: sampled and held, delayed, with states of their own; and what is refused."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from scipy.linalg import expm

import linkwise as lw
from linkwise import samples
from tests.sim.mechanisms import double_pendulum, mixed, pendulum, slider
from tests.sim.test_tables import pairs

METHODS = ["dop853", "dopri5", "rodas4", "rk4", "euler", "variational", "generalized_alpha"]
FIXED = ("rk4", "variational", "euler", "generalized_alpha")
MASS = 2.0


def law(t, q, v, p):
    return [-30.0 * q[0] - 4.0 * v[0]]


def recursion(period, samples, delay=0.0, x=1.0, v=0.0):
    """A mass under a law that is sampled, held and delayed: exact, from switch to switch."""
    commands = [(k * period + delay, None) for k in range(samples + 1)]
    acting, pending, states, t = 0.0, [], [], 0.0
    switches = sorted({round(s, 9) for s in (*(k * period for k in range(samples + 1)), *(c for c, _ in commands))})
    for s in switches:
        h = s - t
        x, v, t = x + v * h + 0.5 * acting / MASS * h * h, v + acting / MASS * h, s
        k = round(s / period)
        if abs(s - k * period) < 1e-12:
            states.append((x, v))
            pending.append((s + delay, -30.0 * x - 4.0 * v))
        while pending and pending[0][0] <= s + 1e-12:
            acting = pending.pop(0)[1]
    return np.array(states[: samples + 1])


QUICK = [("dop853", 0.0), ("dop853", 0.047), ("rk4", 0.013), ("rk4", 0.02)]


@pytest.mark.parametrize(("method", "delay"), pairs(METHODS, [0.0, 0.02, 0.05, 0.013, 0.047], QUICK))
def test_sampled_held_and_delayed_as_the_recursion_says(method, delay):
    control = lw.Sampled(slider(), law, rate=50.0, delay=delay)
    options = {"dt": 0.0033} if method in FIXED else {"rtol": 1e-10}
    times = np.arange(31) * 0.02
    traj = lw.simulate(slider(), [1.0], duration=0.6, method=method, output_times=times, control=control, **options)
    expected = recursion(0.02, 30, delay)
    tol = 0.05 if method == "euler" else 1e-9  # which moves by the velocity at the end of each step
    if method not in FIXED:
        np.testing.assert_allclose(traj.q[:, 0], expected[:, 0], atol=tol)
        np.testing.assert_allclose(traj.v[:, 0], expected[:, 1], atol=tol)
    else:  # between its steps a fixed-step method interpolates
        np.testing.assert_allclose(traj.v[-1, 0], expected[-1, 1], atol=tol)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
@pytest.mark.parametrize("delay", [0.0, 0.013])
def test_python_is_called_once_for_each_sample(method, delay):
    calls = []

    def counted(t, q, v, p):
        calls.append(t)
        assert isinstance(q, np.ndarray) and q.dtype == float
        return -30.0 * q - 4.0 * v if float(q[0]) < 1e9 else q

    options = {"duration": 0.5, "method": method, "dt": 0.004, "output_times": np.arange(26) * 0.02}
    python = lw.simulate(
        slider(), [1.0], control=lw.Sampled(slider(), counted, 50.0, delay=delay, python=True), **options
    )
    traced = lw.simulate(slider(), [1.0], control=lw.Sampled(slider(), law, 50.0, delay=delay), **options)
    np.testing.assert_allclose(calls, np.arange(25) * 0.02, atol=1e-12)
    np.testing.assert_allclose(python.q, traced.q, atol=1e-13)
    np.testing.assert_allclose(python.tau, traced.tau, atol=1e-10)
    assert not python.note
    calls.clear()
    every = lw.simulate(
        slider(), [1.0], duration=0.5, method=method, dt=0.004,
        control=lw.Sampled(slider(), counted, 50.0, delay=delay, python=True),
    )  # fmt: skip
    held = every.tau[:, 0]
    assert len(np.unique(held)) <= 27


def test_a_batch_of_python_and_branches():
    """What cannot be traced is called in Python at its rate, each state for itself."""

    def branching(t, q, v, p):
        return [-5.0 if float(q[0]) > 0.0 else 5.0]

    control = lw.Sampled(slider(), branching, 100.0)
    assert control.in_python
    q0 = np.array([[0.5], [-0.5], [0.1], [1.0]])
    options = {"duration": 0.3, "output_times": np.linspace(0.0, 0.3, 4)}
    batch = lw.simulate(slider(), q0, control=control, **options)
    for k in range(4):
        single = lw.simulate(slider(), q0[k], control=control, **options)
        np.testing.assert_allclose(batch.q[k], single.q, atol=1e-12)
    with pytest.raises(lw.InputError, match="cannot be traced"):
        lw.Sampled(slider(), branching, 100.0, python=False)
    with pytest.raises(lw.InputError, match="cannot be traced"):
        lw.Controller(slider(), lambda t, q, v, x, p: (branching(t, q, v, p), []))


def linear_pid(kp, ki, kd, t):
    """The mass on its PID towards 0 from rest at 1: [∫e, x, v] by the exponential."""
    A = np.array([[0, -1, 0], [0, 0, 1], [ki / MASS, -kp / MASS, -kd / MASS]])
    return np.array([expm(A * s) @ [0.0, 1.0, 0.0] for s in t])


@pytest.mark.parametrize(
    "method", ["rk4", *(pytest.param(name, marks=pytest.mark.slow) for name in ("dop853", "rodas4", "variational"))]
)
def test_pid_in_continuous_time(method):
    control = lw.PID(slider(), [0.0], kp=30.0, ki=20.0, kd=8.0)
    times = np.linspace(0.0, 2.0, 11)
    options = {"dt": 1e-3} if method in FIXED else {"rtol": 1e-10}
    traj = lw.simulate(slider(), [1.0], duration=2.0, method=method, output_times=times, control=control, **options)
    tol = 1e-5 if method == "variational" else 1e-8
    np.testing.assert_allclose(np.column_stack([traj.x, traj.q, traj.v]), linear_pid(30.0, 20.0, 8.0, times), atol=tol)


def test_pid_sampled_tends_to_the_continuous_one_and_does_not_wind_up():
    times = np.linspace(0.0, 2.0, 11)
    errors = []
    for rate in (200.0, 400.0):
        control = lw.PID(slider(), [0.0], kp=30.0, ki=20.0, kd=8.0, rate=rate)
        traj = lw.simulate(slider(), [1.0], duration=2.0, output_times=times, control=control)
        errors.append(np.abs(traj.q[:, 0] - linear_pid(30.0, 20.0, 8.0, times)[:, 1]).max())
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    stuck = lw.ModelBuilder("stuck", gravity=(0, 0, 0))
    stuck.add_body("a", joint=lw.Prismatic((1, 0, 0)), mass=1.0, damping=1e6)
    model = stuck.build()
    for rate in (None, 100.0):
        control = lw.PID(model, [1.0], kp=1.0, ki=10.0, kd=0.0, limit=2.0, rate=rate)
        traj = lw.simulate(model, [0.0], duration=2.0, method="rodas4", control=control)
        assert np.abs(traj.tau).max() == pytest.approx(3.0, abs=1e-2)


def test_states_of_a_law_may_flow_or_be_sampled():
    """A filter of first order in continuous time, and its exact sampled form."""

    def flowing(t, q, v, x, p):
        return [0.0], [(1.0 - x[0]) * 5.0]

    def sampled(t, q, v, x, p):
        return [x[0]], [1.0 - (1.0 - x[0]) * np.exp(-5.0 * 0.01)]

    times = np.linspace(0.0, 1.0, 11)
    traj = lw.simulate(
        slider(), [0.0], duration=1.0, output_times=times, control=lw.Controller(slider(), flowing, state=[0.0])
    )
    np.testing.assert_allclose(traj.x[:, 0], 1.0 - np.exp(-5.0 * times), atol=1e-9)
    control = lw.Controller(slider(), sampled, state=[0.0], rate=100.0)
    held = lw.simulate(slider(), [0.0], duration=1.0, output_times=times, control=control)
    np.testing.assert_allclose(held.tau[:-1, 0], 1.0 - np.exp(-5.0 * times[:-1]), atol=1e-12)  # none at the end


def test_a_run_goes_on_where_another_ended():
    model = double_pendulum()
    control = [lw.Sampled(model, lw.PD(model, [0.3, 0.1]), 30.0, delay=0.01), lw.PID(model, [0.0, 0.2])]
    whole = lw.simulate(model, [0.1, 0.2], duration=1.0, control=control, rtol=1e-11)
    first = lw.simulate(model, [0.1, 0.2], duration=0.4321, control=control, rtol=1e-11)
    rest = lw.simulate(
        model, first.q[-1], first.v[-1], duration=1.0 - 0.4321, t0=0.4321, x0=first.x[-1], control=control, rtol=1e-11
    )
    np.testing.assert_allclose(rest.q[-1], whole.q[-1], atol=1e-9)


@pytest.mark.parametrize("method", ["dop853", "rk4", pytest.param("rodas4", marks=pytest.mark.slow)])
def test_events_between_samples(method):
    """A ball that bounces while a sampled force and a table push it: the same as by the exact parabolas."""
    b = lw.ModelBuilder("ball", gravity=(0, 0, -10.0))
    b.add_body("ball", joint=lw.Prismatic((0, 0, 1)), mass=1.0)
    model = b.build()
    bounce = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (q * 0.0, -0.8 * v))
    times, values = [0.0, 0.35, 0.61], [1.0, -2.0, 0.5]
    control = [lw.Torque(times, values, "held"), lw.Sampled(model, lambda t, q, v, p: [2.0 * t], 11.0)]
    traj = lw.simulate(model, [1.0], duration=1.2, method=method, dt=0.01, events=bounce, control=control, rtol=1e-10)
    x, v, t, hits = 1.0, 0.0, 0.0, []
    stops = sorted({*times[1:], *(k / 11.0 for k in range(1, 14)), 1.2})
    for stop in (s for s in stops if s <= 1.2):
        while t < stop:
            force = values[np.searchsorted(times, t + 1e-12, "right") - 1] + 2.0 * np.floor(t * 11.0 + 1e-9) / 11.0
            a, h = force - 10.0, stop - t
            roots = [r.real for r in np.roots([0.5 * a, v, x]) if abs(r.imag) < 1e-12 and 1e-9 < r.real <= h]
            h = min([h, *roots])
            x, v, t = x + v * h + 0.5 * a * h * h, v + a * h, t + h
            if roots:
                x, v = 0.0, -0.8 * v
                hits.append(t)
    assert [event.t for event in traj.events] == pytest.approx(hits, abs=1e-8)
    assert (traj.q[-1, 0], traj.v[-1, 0]) == (pytest.approx(x, abs=1e-7), pytest.approx(v, abs=1e-7))


@pytest.mark.slow
def test_closed_flexible_and_quaternion_models_can_be_sampled():
    for model in (samples.flexible_arm(), mixed()):
        q0 = model.neutral()

        def damped(t, q, v, p):
            return -0.1 * v

        control = lw.Sampled(model, damped, 200.0)
        options = {"duration": 0.05, "output_times": [0.0, 0.05], "f_ext": None}
        fine = lw.simulate(model, q0, np.full(model.nv, 0.1), control=control, rtol=1e-9, **options)
        steps = lw.simulate(model, q0, np.full(model.nv, 0.1), control=control, method="rk4", dt=1e-4, **options)
        np.testing.assert_allclose(fine.q[-1], steps.q[-1], atol=1e-6)


COUNT = 0
LOG: list = []
TABLE = [[1.0], [2.0], [3.0]]


def counting(t, q, v, p):
    global COUNT
    COUNT += 1
    return TABLE[COUNT % 3]


def logging(t, q, v, p):
    LOG.append(t)
    return -1.0 * q


def noisy(t, q, v, p):
    return [np.random.normal()]  # noqa: NPY002


def noisy_too(t, q, v, p):
    return [random.random()]


def clocked(t, q, v, p):
    return [time.perf_counter() * q[0]]


class Integrator:
    def __init__(self):
        self.total = 0.0

    def __call__(self, t, q, v, p):
        self.total = self.total + q[0]
        return [-self.total]


def with_generator():
    rng = np.random.default_rng(0)
    return lambda t, q, v, p: [rng.normal()]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: counting, "'COUNT'"),
        (lambda: logging, "'LOG'"),
        (lambda: noisy, "numpy.random"),
        (lambda: noisy_too, "random"),
        (lambda: clocked, "two calls give two results"),
        (Integrator, "its own attributes"),
        (with_generator, "'rng'"),
    ],
)
def test_functions_that_do_more_than_compute_are_refused(make, words):
    control = make()
    with pytest.raises(lw.InputError, match="does more than compute") as error:
        lw.simulate(slider(), [1.0], duration=0.1, control=control)
    assert words in str(error.value)
    assert all(name in str(error.value) for name in ("lw.Controller", "lw.Table.noise", "python=True"))
    with pytest.raises(lw.InputError, match="does more than compute"):
        lw.Sampled(slider(), control, 100.0)
    traj = lw.simulate(slider(), [1.0], duration=0.1, control=lw.Sampled(slider(), make(), 100.0, python=True))
    assert traj.status == "done"


def test_what_only_reads_its_surroundings_is_not():
    gains, model = {"kp": 10.0}, pendulum()
    target = np.zeros(1)

    def control(t, q, v, p):
        return model.gravity_force(q) - gains["kp"] * (q - target) - v

    assert not lw.simulate(model, [0.3], duration=0.1, control=control).note


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lw.Sampled(slider(), law, rate=0.0), "rate"),
        (lambda: lw.Sampled(slider(), law, rate=10.0, delay=-1.0), "delay"),
        (lambda: lw.Controller(slider(), law, delay=0.1), "only sampled"),
        (lambda: lw.Controller(slider(), 3.0), "cannot be called"),
        (lambda: lw.Controller(slider(), lambda t, q, v, x, p: [0.0]), "does not return a pair"),
        (lambda: lw.Controller(slider(), lambda t, q, v, x, p: ([0.0], [1.0])), "wrong length"),
        (lambda: lw.Sampled(slider(), lw.PID(slider(), [0.0]), 10.0), "without states"),
        (lambda: lw.PID(slider(), [0.0], limit=-1.0), "limit"),
    ],
)
def test_mistakes(make, words):
    with pytest.raises(lw.InputError, match=words):
        make()


def test_interrupts_reach_python_functions():
    """Ctrl-C inside a sampled function ends the run with what there is."""

    def stops_here(t, q, v, p):
        if t > 0.25:
            raise KeyboardInterrupt
        return -q

    for method in ("dop853", "rk4"):
        control = lw.Sampled(slider(), stops_here, 100.0, python=True)
        traj = lw.simulate(slider(), [1.0], duration=1.0, method=method, dt=0.01, control=control)
        assert traj.status == "interrupted"
        assert 0.2 < traj.t[-1] < 0.3


def test_an_element_that_never_moves_on_does_not_hold_up_the_run():
    class Stuck(lw.Element):
        nh = 1

        def next_sample(self, x):
            return x[0]

        def sample(self, t, q, v, x, p):
            return [t]

    for method in ("dop853", "rk4"):
        assert lw.simulate(slider(), [1.0], duration=0.1, method=method, dt=0.01, control=Stuck()).status == "done"


def test_many_samples_of_python():
    traj = lw.simulate(
        slider(), [1.0], duration=2.0, method="rk4", dt=1e-3,
        control=lw.Sampled(slider(), lambda t, q, v, p: -q, 1000.0, python=True),
    )  # fmt: skip
    assert traj.status == "done"
