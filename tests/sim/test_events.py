"""Events: found in either precision, their actions kept on the right side, terminal ones the last sample."""

import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.simulate import IntegrationWarning
from tests.sim.mechanisms import slider


@pytest.mark.parametrize("count", [None, 5])
def test_single_precision_with_parameters_finds_what_double_precision_finds(count):
    model = slider()
    event = lw.Event(lambda t, q, v, p: q[0] - p[0], name="pass")
    q0 = np.zeros(1 if count is None else (count, 1), np.float32)
    p = np.array([0.25], np.float32) if count is None else np.linspace(0.1, 0.5, count, dtype=np.float32)[:, None]
    options = {"duration": 1.0, "dt": 1e-2, "method": "rk4", "events": event}
    narrow = lw.simulate(model, q0, np.float32([1.0]), p=p, **options)
    assert narrow.q.dtype == np.float32
    wide = lw.simulate(model, q0.astype(float), [1.0], p=p.astype(float), **options)
    assert len(wide.events) == len(narrow.events) == (count or 1)
    np.testing.assert_allclose([e.t for e in narrow.events], [e.t for e in wide.events], atol=1e-6)
    np.testing.assert_allclose([e.t for e in wide.events], np.ravel(p), atol=1e-12)


def test_single_precision_does_not_lose_an_event_that_rounding_puts_on_a_step():
    """The place is reached within a rounding error of a step's end, wherever the grid lies."""
    model = slider()
    event = lw.Event(lambda t, q, v, p: q[0] - p[0], name="pass")
    places = np.linspace(0.05, 0.95, 181, dtype=np.float32)[:, None]
    q0 = np.zeros((len(places), 1), np.float32)
    motion = lw.simulate(model, q0, np.float32([1.0]), 1.0, dt=5e-3, method="rk4", events=event, p=places)
    assert sorted(e.state[0] for e in motion.events) == list(range(len(places)))


# Both sides of an event.
FIRST = np.sqrt(2.0 / 9.81)  # when the ball lands


def ball():
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    return b.build()


def bounce(**more):
    return lw.Event(
        lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (0.0 * q, -0.5 * v), name="ground", **more
    )


def height(t):
    """A ball that falls from 1 m and loses half its speed in each bounce; up to the third."""
    t = np.asarray(t, float)
    up = 0.5 * 9.81 * FIRST
    falling, first, second = 1.0 - 0.5 * 9.81 * t**2, t - FIRST, t - 2.0 * FIRST
    flight = np.where(first < FIRST, up * first - 0.5 * 9.81 * first**2, 0.5 * up * second - 0.5 * 9.81 * second**2)
    return np.where(first < 0.0, falling, flight)


def speed(t):
    """The right-sided velocity of the same ball."""
    t = np.asarray(t, float)
    up = 0.5 * 9.81 * FIRST
    flight = np.where(t < 2.0 * FIRST, up - 9.81 * (t - FIRST), 0.5 * up - 9.81 * (t - 2.0 * FIRST))
    return np.where(t < FIRST, -9.81 * t, flight)


METHODS = ["dop853", "rk56", "rodas4", "rk4"]


@pytest.mark.parametrize("method", METHODS)
def test_a_bounce_has_two_samples(method):
    motion = lw.simulate(ball(), [1.0], None, 1.1, events=bounce(), method=method, dt=1e-2)
    assert (np.diff(motion.t) >= 0.0).all()
    twice = np.flatnonzero(np.diff(motion.t) == 0.0)
    np.testing.assert_allclose(motion.t[twice], [FIRST, 2.0 * FIRST], atol=1e-9)
    np.testing.assert_allclose(motion.v[twice + 1], -0.5 * motion.v[twice], atol=1e-12)
    for k, event in zip(twice, motion.events, strict=True):
        assert event.t == motion.t[k]
        np.testing.assert_array_equal(event.v, motion.v[k])
        np.testing.assert_array_equal(event.v_after, motion.v[k + 1])
    np.testing.assert_allclose(motion.energy[twice + 1] / motion.energy[twice], 0.25, atol=1e-6)
    smooth = np.diff(motion.t) > 0.0
    np.testing.assert_allclose(np.diff(motion.energy)[smooth], 0.0, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("samples", ["steps", "given", "coarse", "batch"])
def test_between_the_samples_nothing_goes_across_a_bounce(method, samples, tmp_path):
    options = {"method": method, "dt": 1e-2, "events": bounce()}
    q0 = [1.0] if samples != "batch" else [[1.0], [3.0], [1.0]]
    if samples in ("given", "coarse"):
        options["output_times"] = np.linspace(0.0, 1.1, 56 if samples == "given" else 12)
    motion = lw.simulate(ball(), q0, None, 1.1, **options)
    times = np.sort(np.append(np.linspace(0.0, 1.1, 301), [FIRST - 1e-6, FIRST + 1e-6, 2.0 * FIRST - 1e-6]))
    motions = [motion, lw.Trajectory.load(motion.save(tmp_path / "motion.npz"), motion.model)]
    if samples == "batch":
        motions = [motion[0], motion[2], motions[1][2], motion[1:][1]]
    for each in motions:
        found = each.at(times)
        np.testing.assert_allclose(found.q[:, 0], height(times), atol=1e-7)
        np.testing.assert_allclose(found.v[:, 0], speed(times), atol=1e-6)
        np.testing.assert_allclose(found.at(times).q, found.q, atol=1e-12)
        falls = found.t < FIRST
        np.testing.assert_allclose(found.energy[falls], 9.81, atol=1e-6)
        np.testing.assert_allclose(found.energy[~falls & (found.t < 2 * FIRST)], 9.81 / 4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_at_the_very_time_of_an_event_the_state_is_the_one_after(method):
    options = {"events": bounce(), "method": method, "dt": 1e-2}
    motion = lw.simulate(ball(), [1.0], None, 1.1, **options)
    when = motion.events[0].t
    for each in (motion, lw.simulate(ball(), [1.0], None, 1.1, output_times=[0.0, 1.0], **options)):
        assert each.at(each.events[0].t).v[0, 0] == pytest.approx(0.5 * 9.81 * FIRST, abs=1e-9)
    asked = lw.simulate(ball(), [1.0], None, 1.1, output_times=[0.0, when, 1.0], **options)
    assert asked.v[1, 0] == pytest.approx(0.5 * 9.81 * FIRST, abs=1e-6)
    before = asked.at(np.nextafter(when, 0.0)).v[0, 0]
    assert before == pytest.approx(-9.81 * FIRST, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_ends_at_its_terminal_event(method):
    for event in (bounce(terminal=True), lw.Event(lambda t, q, v, p: q[0], terminal=True)):
        motion = lw.simulate(ball(), [1.0], None, 1.1, method=method, dt=1e-2, events=event)
        assert motion.status == "event"
        assert motion.t[-1] == motion.events[0].t == pytest.approx(FIRST, abs=1e-9)
        np.testing.assert_allclose(motion.q[-1], 0.0, atol=1e-9)
        np.testing.assert_array_equal(motion.v[-1], motion.events[0].v_after)
        assert motion.at(motion.t[-1]).v[0, 0] == motion.v[-1, 0]
    given = lw.simulate(ball(), [1.0], None, 1.1, method=method, dt=1e-2, events=event, output_times=[0.0, 0.4, 0.8])
    np.testing.assert_array_equal(given.t, [0.0, 0.4])
    assert given.end == given.events[0].t
    assert given.at(0.45).q[0, 0] == pytest.approx(1.0 - 0.5 * 9.81 * 0.45**2, abs=1e-9)
    with pytest.raises(lw.InputError, match="outside"):
        given.at(0.46)
    late = lw.simulate(ball(), [1.0], None, 1.1, method=method, dt=1e-2, events=event, output_times=[0.7, 0.8])
    assert late.q.shape == (0, 1)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_in_a_batch_only_one_state_ends(method):
    stop = lw.Event(lambda t, q, v, p: q[0], terminal=True)
    motion = lw.simulate(ball(), [[1.0], [9.0]], None, 1.1, method=method, dt=1e-2, events=stop)
    assert motion.status.tolist() == ["event", "done"]
    when = motion.events[0].t
    found = motion.at([0.1, when, 0.5])
    np.testing.assert_allclose(found.q[0, :, 0], [height(0.1), 0.0, np.nan], atol=1e-9)
    np.testing.assert_allclose(found.q[1, :, 0], 9.0 - 0.5 * 9.81 * np.array([0.1, when, 0.5]) ** 2, atol=1e-9)
    one = motion[0]
    assert one.end == when
    np.testing.assert_allclose(one.at(when).q, 0.0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:a CSV file cannot hold events")
@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_trajectories_with_two_samples_at_one_time_can_be_used(method, tmp_path):
    motion = lw.simulate(ball(), [1.0], None, 1.1, method=method, dt=1e-2, events=bounce())
    for suffix in (".csv", ".npz"):
        again = lw.Trajectory.load(motion.save(tmp_path / f"motion{suffix}"), motion.model)
        for name in ("t", "q", "v", "energy", "vdot"):
            np.testing.assert_array_equal(getattr(again, name), getattr(motion, name))
        np.testing.assert_allclose(again.at([0.44, 0.46]).q[:, 0], height([0.44, 0.46]), atol=1e-8)
    again = pickle.loads(pickle.dumps(motion))
    np.testing.assert_array_equal(again.at([0.44, 0.46]).q, motion.at([0.44, 0.46]).q)
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert len(motion.plot().axes) == 4
    matplotlib.pyplot.close("all")
    assert lw.IMU("ball").read(motion).shape == (len(motion), 6)


@pytest.mark.parametrize(
    ("method", "dtype"), [("rk4", float), ("rk4", np.float32), ("dopri5", float), ("dop853", float)]
)
@pytest.mark.parametrize("keep", [1.0, 0.9])
def test_a_bounce_in_any_direction_is_one_event(method, dtype, keep):
    """Just beyond the ground, going up again: leaving zero is not an event."""
    q0 = np.linspace(0.5, 1.5, 5).astype(dtype)[:, None]
    found = []
    for direction in (-1, 0):
        event = lw.Event(lambda t, q, v, p: q[0], direction, action=lambda t, q, v: (q, -keep * v), name="ground")
        motion = lw.simulate(ball(), q0, np.zeros_like(q0), 2.0, dt=0.01, method=method, events=event)
        found.append([(e.state[0], e.t) for e in motion.events])
        assert set(motion.status.ravel()) == {"done"}
    np.testing.assert_allclose(sorted(found[1]), sorted(found[0]), atol=1e-6 if dtype is np.float32 else 1e-12)
    first = dict(sorted(found[1], reverse=True))
    expected = np.sqrt(2.0 * q0[:, 0].astype(float) / 9.81)
    np.testing.assert_allclose([first[k] for k in range(5)], expected, atol=1e-6)


def test_a_bounce_at_the_end_of_a_step_is_one_event():
    event = lw.Event(lambda t, q, v, p: q[0], action=lambda t, q, v: (q, -v), name="wall")
    motion = lw.simulate(slider(), [1.0], [-1.0], 3.0, dt=0.25, method="rk4", events=event, p=[0.0])
    assert [e.t for e in motion.events] == pytest.approx([1.0], abs=1e-12)
    np.testing.assert_allclose(motion.q[-1], [2.0])


def test_events_that_let_no_time_pass_end_a_run_of_equal_steps():
    again = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (0.0 * q + 1e-18, v))
    with pytest.warns(IntegrationWarning, match="without time passing"):
        motion = lw.simulate(ball(), [1.0], None, 3.0, method="rk4", dt=1e-2, events=again)
    assert motion.status == "zeno"
    assert motion.end == pytest.approx(FIRST, abs=1e-9)


def test_an_action_may_return_quaternions_of_any_length():
    b = lw.ModelBuilder("top", gravity=(0, 0, 0))
    b.add_body("top", joint=lw.Spherical(), mass=1.0, inertia=np.eye(3))
    turn = lw.Event(lambda t, q, v, p: t - 0.5, action=lambda t, q, v: (3.0 * q, v))
    motion = lw.simulate(b.build(), [1.0, 0.0, 0.0, 0.0], [0.1, 0.0, 0.0], 1.0, events=turn)
    np.testing.assert_allclose(np.linalg.norm(motion.q, axis=1), 1.0, atol=1e-14)
