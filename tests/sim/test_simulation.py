"""A simulation in pieces: the same motion as in one go, whatever remembers; and what can be decided in between."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from tests.sim.mechanisms import double_pendulum, mixed, pendulum, slider
from tests.sim.test_attach import CATCH, wagons


def pieces(sim, n, duration):
    for _ in range(n):
        sim.advance(duration)
    return sim


@pytest.mark.parametrize(
    ("method", "tol"), [("rk4", 1e-12), ("generalized_alpha", 1e-9), ("dop853", 1e-7), ("rodas4", 1e-5)]
)
def test_pieces_make_the_whole(method, tol):
    model = double_pendulum()
    q0, v0 = [0.4, -0.2], [1.0, 0.5]
    options = {"method": method, "dt": 1e-3, "rtol": 1e-8}
    sim = pieces(lw.Simulation(model, q0, v0, **options), 50, 0.01)
    whole = lw.simulate(model, q0, v0, 0.5, output_times=[0.5], **options)
    np.testing.assert_allclose(sim.q, whole.q[-1], atol=tol)
    np.testing.assert_allclose(sim.v, whole.v[-1], atol=10.0 * tol)
    assert sim.t == pytest.approx(0.5) and sim.status == "running"
    assert sim.energy == pytest.approx(float(whole.energy[-1]), abs=100.0 * tol)
    np.testing.assert_allclose(sim.vdot, model.forward_dynamics(sim.q, sim.v, np.zeros(2)), atol=1e-12)


def law(t, q, v, p):
    return [-30.0 * q[0] - 4.0 * v[0]]


@pytest.mark.parametrize("method", ["rk4", "dop853"])
@pytest.mark.parametrize("python", [False, True])
def test_samples_delays_and_tables_go_on(method, python):
    """Pieces that end between samples, and on them."""
    model = slider()

    def controls():
        table = lw.Torque([0.0, 0.17, 0.4], [[1.0], [-2.0], [0.5]])
        return [lw.Sampled(model, law, rate=50.0, delay=0.013, python=python), table]

    for piece, n in ((0.01, 60), (0.0073, 82)):
        options = {"method": method, "dt": 1e-3, "rtol": 1e-10}
        sim = pieces(lw.Simulation(model, [1.0], control=controls(), **options), n, piece)
        whole = lw.simulate(model, [1.0], None, n * piece, output_times=[n * piece], control=controls(), **options)
        np.testing.assert_allclose([*sim.q, *sim.v], [*whole.q[-1], *whole.v[-1]], atol=1e-8)
        np.testing.assert_allclose(sim.x, whole.x[-1], atol=1e-7)


@pytest.mark.parametrize("kind", ["held", "linear", "cubic"])
def test_tables_go_on_in_quick_pieces(kind):
    model = slider()
    table = lw.Torque([0.0, 0.17, 0.4], [[1.0], [-2.0], [0.5]], kind)
    sim = pieces(lw.Simulation(model, [1.0], control=table), 82, 0.0073)
    whole = lw.simulate(model, [1.0], None, 82 * 0.0073, method="rk4", dt=1e-3, control=table)
    np.testing.assert_allclose([*sim.q, *sim.v], [*whole.q[-1], *whole.v[-1]], atol=1e-9)
    assert sim._pieces is not None


def test_commands_from_outside():
    """A law in Python, once for each piece, is one that is sampled at their rate."""
    model = samples.planar_arm()
    goal = np.array([0.6, -0.4, 0.2])
    sim = lw.Simulation(model, np.zeros(3), control=lambda t, q, v, p: p, p=np.zeros(3))

    def hold(t, q, v, p):
        return model.gravity_force(q) + 8.0 * (goal - q) - 0.5 * v

    for _ in range(100):
        sim.advance(0.01, p=hold(sim.t, sim.q, sim.v, sim.p))
        np.testing.assert_array_equal(sim.tau, sim.p)
    sampled = lw.simulate(
        model, np.zeros(3), None, 1.0, dt=1e-3, method="rk4", control=lw.Sampled(model, hold, rate=100.0)
    )
    np.testing.assert_allclose(sim.q, sampled.q[-1], atol=1e-10)
    assert sim.tau.shape == (3,)


def test_a_batch_and_a_state_in_it_that_is_lost():
    model = double_pendulum()
    rng = np.random.default_rng(1)
    q0, v0 = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3, 2))
    v0[1, 2] = 1e200
    sim = lw.Simulation(model, q0, v0, control=lambda t, q, v, p: p, p=np.zeros((2, 3, 2)))
    for _ in range(5):
        sim.advance(0.02, p=np.full((2, 3, 2), 0.3))
    whole = lw.simulate(
        model, q0[0, 1], v0[0, 1], 0.1, dt=1e-3, method="rk4", control=lambda t, q, v, p: p, p=np.full(2, 0.3)
    )
    np.testing.assert_allclose(sim.q[0, 1], whole.q[-1], atol=1e-11)
    assert sim.q.shape == (2, 3, 2) and sim.energy.shape == (2, 3)
    assert (sim.status == "failed").tolist() == [[False, False, False], [False, False, True]]
    fresh = np.where((sim.status == "failed")[..., None], 0.1, sim.q)
    sim.set(q=fresh, v=np.nan_to_num(sim.v))
    sim.advance(0.02)
    assert (sim.status == "running").all()
    with pytest.raises(lw.errors.InputError, match="batch"):
        sim.set(q=np.zeros((4, 1, 1, 2)))


def test_closed_mechanisms_stay_closed():
    model = samples.four_bar(2)
    v0 = model.constraints.project_velocity(model.neutral(), [1.0, *[0.0] * (model.nv - 1)])
    sim = pieces(lw.Simulation(model, model.neutral(), v0), 20, 0.05)
    whole = lw.simulate(model, model.neutral(), v0, 1.0, dt=1e-3, method="rk4")
    np.testing.assert_allclose(sim.q, whole.q[-1], atol=1e-9)
    assert np.abs(model.closure_error(sim.q)).max() < 1e-12


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_events_happen_and_end_it(method):
    model = slider()

    def bounce(t, q, v):
        return q, -v

    wall = lw.Event(lambda t, q, v, p: q[0] - 1.0, direction=1, action=bounce, name="wall")
    back = lw.Event(lambda t, q, v, p: q[0], direction=-1, terminal=True, name="back")
    sim = lw.Simulation(model, [0.5], [1.0], events=[wall, back], method=method, dt=0.01)
    while sim.status == "running":
        sim.advance(0.07)
    assert [event.name for event in sim.events] == ["wall", "back"]
    assert sim.t == pytest.approx(1.5) and sim.q[0] == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(lw.LinkwiseError, match="is over"):
        sim.advance(0.01)
    sim.set(q=[0.5], v=[0.0])
    assert sim.advance(0.1).status == "running"
    assert len(sim.events) == 2


def test_another_method_goes_on_from_the_state():
    model = mixed()
    q0, v0 = model.random_configuration(2), np.random.default_rng(2).normal(size=model.nv)
    sim = lw.Simulation(model, q0, v0).advance(0.1)
    sim.method = "dopri5"
    sim.advance(0.1)
    sim.method = lw.GeneralizedAlpha(0.8)
    sim.dt = 1e-4
    sim.advance(0.1)
    whole = lw.simulate(model, q0, v0, 0.3, rtol=1e-9, output_times=[0.3])
    np.testing.assert_allclose(sim.q, whole.q[-1], atol=1e-6)


def test_what_cannot_go_on_says_so():
    sim = lw.Simulation(pendulum(), [0.3])
    for wrong in (0.0, -1.0, float("nan"), "soon"):
        with pytest.raises(lw.errors.InputError, match="duration"):
            sim.advance(wrong)
    for wrong in (np.zeros(3), "none"):
        with pytest.raises(lw.errors.InputError):
            sim.p = wrong
    assert sim.advance(0.01).t == pytest.approx(0.01)
    fast = lw.Simulation(double_pendulum(), [0.3, 0.1], [1e200, 0.0]).advance
    with pytest.raises(lw.LinkwiseError, match="diverged"):
        for _ in range(3):
            fast(0.01)
    with pytest.raises(lw.errors.InputError, match="no such method"):
        sim.method = "magic"
    assert lw.Simulation(pendulum(), np.float32([0.3]), np.float32([0.0])).advance(0.01).q.dtype == np.float32


def test_generalized_alpha_keeps_its_order_where_parameters_change():
    model = double_pendulum()

    def end(method, dt):
        sim = lw.Simulation(model, [0.4, -0.2], method=method, dt=dt, control=lambda t, q, v, p: p, p=np.zeros(2))
        for k in range(10):
            sim.advance(0.04, p=[3.0 * (-1.0) ** k, 1.0])
        return np.concatenate([sim.q, sim.v])

    exact = end("rk4", 1e-4)
    coarse, fine = (np.abs(end("generalized_alpha", dt) - exact).max() for dt in (4e-3, 2e-3))
    assert coarse > 3.0 * fine  # the second order; half of the steps' error is left by a method of the first


def test_parameters_that_are_no_real_numbers_are_refused():
    sim = lw.Simulation(double_pendulum(), [0.4, -0.2], control=lambda t, q, v, p: p, p=np.ones(2))
    for wrong in ([np.nan, 0.0], [0.0, np.inf], np.array([1j, 0.0]), [1j, 0.0]):
        with pytest.raises(lw.errors.InputError, match="p is not made of"):
            sim.advance(0.01, p=wrong)
        np.testing.assert_array_equal(sim.p, 1.0)
        assert sim.t == 0.0


def bouncing(action, **options):
    wall = lw.Event(lambda t, q, v, p: q[0] - 1.0, direction=1, action=action, name="wall")
    return lw.Simulation(slider(), [0.5], [1.0], events=wall, **options)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_after_an_exception_the_piece_has_not_been(method, error):
    calls = []

    def action(t, q, v):
        calls.append(t)
        if len(calls) == 1:
            raise error
        return q, -v

    sim = bouncing(action, method=method).advance(0.2)
    q = sim.q
    with pytest.raises(error):
        sim.advance(0.7)
    assert sim.t == 0.2 and not sim.events
    np.testing.assert_array_equal(sim.q, q)
    sim.advance(0.7)
    assert sim.t == pytest.approx(0.9) and sim.q[0] == pytest.approx(0.6) and len(sim.events) == 1


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_states_of_a_batch_stand_at_one_time_after_an_interrupt(method):
    raised = []

    def action(t, q, v):
        if not raised:
            raised.append(t)
            raise KeyboardInterrupt
        return q, -v

    wall = lw.Event(lambda t, q, v, p: q[0] - 1.0, direction=1, action=action)
    sim = lw.Simulation(slider(), [[0.5], [-0.5], [0.0]], [[1.0], [0.5], [0.2]], events=wall, method=method)
    sim.advance(0.1)
    with pytest.raises(KeyboardInterrupt):
        sim.advance(0.6)
    np.testing.assert_allclose(sim.q[:, 0], np.array([0.5, -0.5, 0.0]) + sim.t * np.array([1.0, 0.5, 0.2]))
    sim.advance(0.6)
    np.testing.assert_allclose(sim.q[:, 0], [0.8, -0.15, 0.14])


def test_a_method_that_is_refused_changes_nothing():
    model = samples.four_bar(2)
    sim = lw.Simulation(model, model.neutral(), stabilization=lw.Baumgarte(10.0))
    sim.advance(0.01)
    with pytest.raises(lw.LinkwiseError):
        sim.method = "variational"
    assert sim.method == "rk4" and sim.advance(0.01).t == pytest.approx(0.02)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_what_has_ended_stays_so_until_it_is_set(method):
    back = lw.Event(lambda t, q, v, p: q[0] - 1.0, direction=1, terminal=True)
    sampled = lw.Sampled(slider(), lambda t, q, v, p: [0.0 * t], rate=50.0)
    sim = lw.Simulation(slider(), [[0.9], [0.0]], [[1.0], [1.0]], events=back, method=method, control=sampled)
    sim.advance(0.2)
    x = sim.x
    assert sim.status.tolist() == ["event", "running"]
    sim.dt = 2e-3
    sim.advance(0.2)
    sim.method = "dopri5"
    assert sim.status.tolist() == ["event", "running"]
    sim.advance(0.2)
    assert sim.status.tolist() == ["event", "running"] and len(sim.events) == 1
    np.testing.assert_allclose(sim.q[:, 0], [1.0, 0.6])
    np.testing.assert_array_equal(sim.x[0], x[0])
    sim.set(q=[[0.0], [0.0]], v=[[1.0], [1.0]])
    sim.advance(0.2)
    assert (sim.status == "running").all()
    np.testing.assert_allclose(sim.q, 0.2)


def test_the_time_of_a_failure():
    sim = lw.Simulation(double_pendulum(), [0.4, -0.2], [1.0, 0.5], method="dop853", max_steps=3)
    with pytest.raises(lw.LinkwiseError, match="max_steps") as told:
        sim.advance(5.0)
    assert 0.0 < sim.t < 1.0 and f"t = {sim.t:.9g} s" in str(told.value)


def test_an_empty_batch():
    sim = lw.Simulation(double_pendulum(), np.zeros((0, 2)))
    for _ in range(3):
        sim.advance(0.01)
    assert sim.t == pytest.approx(0.03) and sim.q.shape == (0, 2) and sim.status.shape == (0,)


def test_what_rests_on_a_limit_can_be_pushed():
    b = lw.ModelBuilder("limited")
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=0.1 * np.eye(3),
               limits=lw.JointLimits(-1.0, 0.1))  # fmt: skip
    model = b.build()
    sim = lw.Simulation(model, [0.0]).advance(1.5)
    assert sim.q[0] > 0.1  # a little inside the spring
    q = sim.q
    sim.set(v=[-1.0])
    np.testing.assert_array_equal(sim.q, q)
    assert sim.advance(0.1).q[0] < q[0]
    for wrong in (sim.set, lambda q: lw.Simulation(model, q)):
        with pytest.raises(lw.errors.InputError, match="limits"):
            wrong(q)
    shown = lw.Simulation(model, q, as_is=True)
    np.testing.assert_array_equal(shown.q, q)
    shown.set(q=q + 0.01)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_closures_hold_as_events_left_them(method):
    start = {"released": "coupler", "events": [CATCH], "method": method, "dt": 0.01}
    sim = lw.Simulation(wagons(), [0.0, 0.0], [1.0, 0.0], **start).advance(1.2)
    np.testing.assert_allclose(sim.v, 0.4)
    sim.set(v=[1.0, 1.0])
    sim.advance(0.5)
    np.testing.assert_allclose(sim.v, 1.0)
    with pytest.warns(lw.errors.ModelWarning, match="coupler"):
        sim.set(v=[1.0, 0.5])
    assert sim.v[0] == pytest.approx(sim.v[1]) == pytest.approx(0.7)


@pytest.mark.parametrize("wrong", ["a", None, np.array([0.01]), True, -1.0])
def test_durations_are_checked_in_quick_pieces(wrong):
    sim = lw.Simulation(double_pendulum(), [0.4, -0.2]).advance(0.01)
    with pytest.raises(lw.errors.InputError, match="duration"):
        sim.advance(wrong)
    assert sim.advance(np.float32(0.25)).t == 0.26 and type(sim.t) is float


def test_an_interrupt_loses_no_time():
    """Ctrl-C at any moment: the state is the one at sim.t."""
    model = double_pendulum()
    options = {"dt": 1e-3, "control": lambda t, q, v, p: [1.0, lw.math.cos(t)], "threads": 1}
    sim = lw.Simulation(model, [0.4, -0.2], **options).advance(0.01)

    def tick(frame, event, arg):
        """Raises at the n-th line that is run, as Ctrl-C may."""
        nonlocal left
        if "linkwise/sim" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return tick

    interrupts = 0
    for moment in range(1, 200):
        left = moment
        sys.settrace(tick)
        try:
            sim.advance(0.01)
        except KeyboardInterrupt:
            interrupts += 1
        else:
            break
        finally:
            sys.settrace(None)
    assert interrupts > 10
    whole = lw.simulate(model, [0.4, -0.2], None, sim.t, method="rk4", **options)
    np.testing.assert_allclose(sim.q, whole.q[-1], atol=1e-10)


def test_what_is_said_of_a_failure_in_a_quick_piece():
    sim = lw.Simulation(double_pendulum(), [0.4, -0.2], control=lambda t, q, v, p: p, p=np.zeros(2), t0=5.0)
    sim.advance(0.01).advance(0.01)
    with pytest.raises(lw.LinkwiseError, match=r"from t = 5\.03 s"):
        sim.advance(0.01, p=[1e300, 0.0])
    assert sim.t == pytest.approx(5.03)


def test_time_does_not_stand_still_in_quick_pieces():
    q0, v0 = np.float32([0.4, -0.2]), np.float32([0.0, 0.0])
    sim = lw.Simulation(double_pendulum(), q0, v0, t0=16383.9, dt=1e-3).advance(0.05)
    with pytest.raises(lw.errors.InputError, match="stand still"):
        for _ in range(3):
            sim.advance(0.05)
    assert sim.t < 16384.0


def constant(t, q, v, p):
    return [p[0], 0.5]


@pytest.mark.parametrize("method", ["rk4", "dop853"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_copies_go_on_by_themselves(method, copied):
    sim = lw.Simulation(double_pendulum(), [0.4, -0.2], control=constant, p=[1.0], method=method).advance(0.1)
    other = copied(sim)
    assert other.t == sim.t and repr(other) == repr(sim) and method in repr(sim)
    sim.advance(0.1)
    np.testing.assert_allclose(other.advance(0.1).q, sim.q, atol=1e-9)
    other.advance(0.1, p=[-1.0])
    assert sim.t == pytest.approx(0.2) and sim.p[0] == 1.0
