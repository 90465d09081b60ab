"""What simulate promises: batches, kernels, controls, events, limits, interrupts, errors."""

import dataclasses
import signal
import threading
import time

import numpy as np
import pytest

import linkwise as lw
from linkwise.memoized import Memory
from linkwise.sim.run import Run
from linkwise.sim.simulate import IntegrationWarning, SlowControlWarning
from tests.sim.mechanisms import double_pendulum, mixed, pendulum, slider

ADAPTIVE = ["dop853", "dopri5", "rk56", "cash_karp", "rodas4"]


def starts(model, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([model.random_configuration(rng) for _ in range(count)]), rng.uniform(-1, 1, (count, model.nv))


@pytest.mark.parametrize("method", ["euler", "rk4", "variational", *ADAPTIVE])
def test_a_batch_is_a_loop_of_singles(method):
    model = double_pendulum()
    q0, v0 = starts(model, 11)
    options = {"method": method, "output_times": np.linspace(0.0, 0.5, 6), "dt": 5e-3, "rtol": 1e-7}
    batch = lw.simulate(model, q0, v0, 0.5, **options)
    assert batch.q.shape == (11, 6, 2)
    for k in range(11):
        single = lw.simulate(model, q0[k], v0[k], 0.5, **options)
        np.testing.assert_allclose(batch.q[k], single.q, rtol=0, atol=1e-13)
        np.testing.assert_allclose(batch.v[k], single.v, rtol=0, atol=1e-12)
        np.testing.assert_allclose(batch.energy[k], single.energy, rtol=0, atol=1e-12)
        assert batch.steps[k] == single.steps


def test_leading_axes_and_threads():
    model = mixed()
    q0, v0 = starts(model, 24)
    flat = lw.simulate(model, q0, v0, 0.2, method="rk4", dt=1e-2)
    shaped = lw.simulate(model, q0.reshape(2, 3, 4, -1), v0.reshape(2, 3, 4, -1), 0.2, method="rk4", dt=1e-2, threads=2)
    assert shaped.q.shape == (2, 3, 4, 21, model.nq)
    assert shaped.poses.shape == (2, 3, 4, 21, 5, 4, 4)
    np.testing.assert_array_equal(shaped.q.reshape(flat.q.shape), flat.q)
    one = shaped[1, 2, 3]
    np.testing.assert_array_equal(one.q, flat.q[-1])
    np.testing.assert_array_equal(one.vdot, flat.vdot[-1])


@pytest.mark.parametrize("method", ["rk4", "dop853", "rodas4"])
def test_a_bad_state_harms_only_itself(method):
    model = double_pendulum()
    q0, v0 = starts(model, 9)
    options = {"method": method, "dt": 1e-3, "rtol": 1e-8, "output_times": np.linspace(0.0, 0.2, 5)}
    clean = lw.simulate(model, q0, v0, 0.2, **options)
    q0[4, 1] = np.nan
    with pytest.warns(IntegrationWarning, match="1 of 9"):
        hurt = lw.simulate(model, q0, v0, 0.2, **options)
    others = np.arange(9) != 4
    np.testing.assert_array_equal(hurt.q[others], clean.q[others])
    assert hurt.status.tolist() == ["failed" if k == 4 else "done" for k in range(9)]
    assert np.isnan(hurt.q[4, 1:]).any(axis=1).all()


def test_single_precision_in_single_precision_out():
    model = double_pendulum()
    q0, v0 = starts(model, 10)
    options = {"duration": 0.5, "dt": 2e-3, "method": "rk4", "save_every": 50}
    wide = lw.simulate(model, q0, v0, **options)
    narrow = lw.simulate(model, q0.astype(np.float32), v0.astype(np.float32), **options)
    assert narrow.q.dtype == np.float32
    np.testing.assert_allclose(narrow.q, wide.q, atol=2e-4)
    event = lw.Event(lambda t, q, v, p: q[0] - 0.1, name="pass")
    narrow = lw.simulate(model, np.array([0.0, 0.0], np.float32), **options, events=event)
    wide = lw.simulate(model, [0.0, 0.0], **options, events=event)
    assert len(narrow.events) == len(wide.events)
    assert lw.simulate(model, q0.astype(np.float32), duration=0.1).q.dtype == np.float64  # adaptive: always


class Dial(lw.Revolute):
    """A hinge whose angle stays within half a turn of zero: as many numbers in q as in v, and an integrate."""

    quasi_velocities = True

    def integrate(self, q, dv):
        angle = q[0] + dv[0]
        return (lw.math.atan2(lw.math.sin(angle), lw.math.cos(angle)),)

    def difference(self, q0, q1):
        turn = q1[0] - q0[0]
        return (lw.math.atan2(lw.math.sin(turn), lw.math.cos(turn)),)


def test_a_start_is_brought_into_the_range_of_a_joint_of_ones_own(monkeypatch):
    lw.check_joint(Dial(axis=(0, 0, 1)))
    b = lw.ModelBuilder("dial")
    b.add_body("hand", joint=Dial(axis=(0, 1, 0)), mass=1.0, com=(0, 0, -0.5))
    model = b.build()
    q0 = np.array([[7.0], [-4.0], [1.0]])
    motion = lw.simulate(model, q0, duration=0.01)
    np.testing.assert_allclose(motion.q[:, 0], [[7.0 - 2 * np.pi], [2 * np.pi - 4.0], [1.0]], rtol=0, atol=1e-14)
    # Where moving is adding at every joint, an angle stays what it was, and nothing is computed for it.
    plain = pendulum()
    monkeypatch.setattr(type(plain), "integrate", None)
    assert lw.simulate(plain, [7.0], duration=0.01).q[0] == [7.0]


def test_quaternions_keep_length_one():
    model = mixed()
    q0, v0 = starts(model, 3)
    q0[:, :4] *= 2.5  # only the direction counts
    motion = lw.simulate(model, q0, v0, 5.0, method="rk4", dt=1e-2)
    for part in (slice(0, 4), slice(7, 11)):
        np.testing.assert_allclose(np.linalg.norm(motion.q[..., part], axis=-1), 1.0, atol=1e-15)


def test_energy_in_a_chain_of_all_joints():
    model = mixed()
    q0, v0 = starts(model, 1)
    motion = lw.simulate(model, q0[0], v0[0], 2.0, rtol=1e-12)
    assert np.ptp(motion.energy) < 1e-9 * np.abs(motion.energy).max()


# Controls.
def spring(t, q, v, p):
    return -30.0 * np.asarray(q) - 0.5 * np.asarray(v) + np.array([lw.math.sin(t), 0.0])


def branching_spring(t, q, v, p):
    if q[0] > 1e9:  # cannot be traced
        return np.zeros(2)
    return -30.0 * q - 0.5 * v + np.array([np.sin(t), 0.0])


def test_a_python_control_gives_the_same_motion_with_a_note():
    model = double_pendulum()
    options = {"duration": 1.0, "rtol": 1e-8, "output_times": np.linspace(0.0, 1.0, 11)}
    traced = lw.simulate(model, [0.1, 0.2], [0.0, 0.0], control=spring, **options)
    assert not traced.note
    with pytest.warns(SlowControlWarning, match="branching_spring"):
        called = lw.simulate(model, [0.1, 0.2], [0.0, 0.0], control=branching_spring, **options)
    assert "lw.math.where" in called.note
    np.testing.assert_allclose(called.q, traced.q, atol=1e-12)
    np.testing.assert_allclose(called.tau, traced.tau, atol=1e-10)
    assert called.steps == traced.steps


def test_parameters_reach_the_control_one_for_each_state():
    model = pendulum()

    def hold(t, q, v, p):
        return [p[0] * (p[1] - q[0]) - 5.0 * v[0]]

    p = np.array([[200.0, 0.3], [300.0, -0.5], [400.0, 1.0]])
    motion = lw.simulate(model.with_gravity((0, 0, 0)), [0.0], None, 20.0, control=hold, p=p)
    np.testing.assert_allclose(motion.q[:, -1, 0], p[:, 1], atol=1e-6)


def test_parameters_of_the_model_come_first():
    model = pendulum().with_gravity((0, 0, 0)).with_parameters(["mass.mass"])

    def push(t, q, v, p):
        return [p[1]]

    motion = lw.simulate(model, [0.0], None, 1.0, control=push, p=[[2.0, 1.0], [4.0, 8.0]])
    np.testing.assert_allclose(motion.q[:, -1, 0], [0.25, 1.0], rtol=1e-9)


def test_mistakes_in_a_control_are_not_hidden():
    def wrong(t, q, v, p):
        return [q[7]]

    with pytest.warns(SlowControlWarning), pytest.raises(IndexError):
        lw.simulate(pendulum(), [0.0], None, 1.0, control=wrong)
    with pytest.raises(lw.InputError, match="nv = 2"):
        lw.simulate(double_pendulum(), [0.0, 0.0], None, 1.0, control=lambda t, q, v, p: [q[0]])


# What the model says of its joints.
def test_damping_and_friction_and_effort():
    damped = lw.simulate(slider(damping=4.0), [0.0], [1.0], 1.0)
    assert damped.v[-1, 0] == pytest.approx(np.exp(-2.0), rel=1e-8)
    rough = lw.simulate(slider(friction=2.0), [0.0], [1.0], 2.0, method="rodas4", rtol=1e-7)
    assert rough.q[-1, 0] == pytest.approx(0.5, rel=2e-2)  # m v²/2 = f s
    assert abs(rough.v[-1, 0]) < 1e-3
    model = slider(limits=lw.JointLimits(effort=3.0))
    pushed = lw.simulate(model, [0.0], None, 1.0, control=lambda t, q, v, p: [1e3])
    np.testing.assert_allclose(pushed.tau, 3.0)
    assert pushed.q[-1, 0] == pytest.approx(0.75, rel=1e-9)
    rules = lw.JointRules(effort=False)
    assert lw.simulate(model, [0.0], None, 1.0, control=lambda t, q, v, p: [1e3], rules=rules).tau[0, 0] == 1e3


def test_limits_hold_lose_energy_or_stop_or_are_ignored():
    model = slider(limits=lw.JointLimits(lower=-1.0, upper=0.5))
    held = lw.simulate(model, [0.0], [1.0], 5.0)
    assert held.q.max() < 0.53
    assert held.q.min() > -1.03
    assert (np.diff(held.energy) < 1e-9).all()
    stopped = lw.simulate(model, [0.0], [1.0], 5.0, limits="stop")
    assert stopped.status == "event"
    assert stopped.t[-1] == pytest.approx(0.5, abs=1e-12)
    assert stopped.events[0].name == "block_joint: upper limit"
    assert lw.simulate(model, [0.0], [1.0], 5.0, limits="ignore").q[-1, 0] == pytest.approx(5.0)
    with pytest.raises(lw.InputError, match="block_joint"):
        lw.simulate(model, [0.7], [1.0], 5.0)


# Events.
@pytest.mark.parametrize("method", ["dop853", "rk56", "rk4", "rodas4"])
def test_a_ball_bounces_where_it_should(method):
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    ground = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (q * 0.0, -0.5 * v), name="ground")
    times = np.linspace(0.0, 1.1, 12)
    motion = lw.simulate(b.build(), [1.0], [0.0], 1.1, events=ground, method=method, dt=1e-2, output_times=times)
    first = np.sqrt(2.0 / 9.81)
    np.testing.assert_allclose([event.t for event in motion.events], [first, 2.0 * first], atol=1e-9)
    s = times[(times > first) & (times < 2.0 * first)] - first
    expected = 0.5 * 9.81 * first * s - 0.5 * 9.81 * s**2
    np.testing.assert_allclose(motion.q[(times > first) & (times < 2.0 * first), 0], expected, atol=1e-9)
    assert motion.q.min() > -1e-12


def test_terminal_events_end_only_their_state():
    model = pendulum()
    swing = lw.Event(lambda t, q, v, p: v[0], direction=1, terminal=True, name="turn")
    q0 = np.array([[0.1], [-0.5], [-np.pi / 2]]) - np.pi / 2
    motion = lw.simulate(model, q0 + np.pi / 2, None, 3.0, events=swing)
    assert motion.status[:2].tolist() == ["event", "event"]
    single = motion[0]
    assert single.status == "event"
    assert single.t[-1] <= single.events[0].t
    assert np.isnan(motion.q[0, -1]).all()


def test_event_functions_must_be_traceable():
    with pytest.raises(lw.InputError, match="sharp"):
        lw.simulate(
            pendulum(), [0.0], None, 1.0, events=lw.Event(lambda t, q, v, p: 1.0 if q[0] > 0 else -1.0, name="sharp")
        )


# Running.
def test_ctrl_c_returns_what_was_computed_so_far():
    model = double_pendulum()
    lw.simulate(model, [1.0, 2.0], None, 0.1, method="rk4")  # compiled
    threading.Timer(0.7, lambda: signal.raise_signal(signal.SIGINT)).start()
    start = time.perf_counter()
    motion = lw.simulate(model, [1.0, 2.0], None, 1e7, dt=1e-4, method="rk4", save_every=10_000_000)
    assert time.perf_counter() - start < 10.0
    assert motion.status == "interrupted"
    assert 0 < motion.steps < 1e11
    assert np.isfinite(motion.q).all()


def test_progress_is_reported_and_drawn(capsys):
    seen = []
    lw.simulate(pendulum(), [1.0], None, 1.0, method="rk4", progress=seen.append)
    assert seen[-1] == 1.0
    lw.simulate(pendulum(), [1.0], None, 60.0, method="rk4", dt=1e-5, save_every=10_000, progress=True)
    assert "%" in capsys.readouterr().err
    lw.simulate(pendulum(), [1.0], None, 1.0, method="rk4")
    assert not capsys.readouterr().err


def test_the_same_control_is_compiled_once():
    model = double_pendulum()
    lw.simulate(model, [0.0, 0.0], None, 0.1, control=spring)
    start = time.perf_counter()
    for _ in range(5):
        lw.simulate(model, [0.0, 0.0], None, 0.1, control=spring)
    assert (time.perf_counter() - start) / 5 < 0.05


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"method": "rk5"}, "dop853"),
        ({"duration": -1.0}, "duration"),
        ({"dt": 0.0, "method": "rk4"}, "dt"),
        ({"q0": [0.0, 1.0]}, r"\(\.\.\., 1\)"),
        ({"v0": [[0.0], [1.0]], "q0": [[0.0]] * 3}, "do not fit"),
        ({"output_times": [0.0, 2.0]}, "output_times"),
        ({"output_times": [0.5, 0.1]}, "output_times"),
        ({"control": 3.0}, "control"),
        ({"events": 3.0}, "events"),
        ({"limits": "soft"}, "spring"),
        ({"threads": 0}, "threads"),
        ({"rtol": 0.0}, "rtol"),
    ],
)
def test_errors_say_what_is_allowed(change, words):
    arguments = {"q0": [0.0], "v0": [0.0], "duration": 1.0} | change
    with pytest.raises(lw.InputError, match=words):
        lw.simulate(pendulum(), **arguments)


def test_stiff_springs_take_few_implicit_steps():
    model = double_pendulum()
    stiff = lw.JointSprings(model, 1e6, 1e5, rest=[0.3, -0.2])
    options = {"control": stiff, "rtol": 1e-6, "output_times": [0.0, 1.0]}
    implicit = lw.simulate(model, [0.3, -0.2], [0.5, 0.0], 1.0, method="rodas4", **options)
    assert implicit.steps < 200
    explicit = lw.simulate(model, [0.3, -0.2], [0.5, 0.0], 1.0, method="dopri5", **options)
    assert explicit.steps > 20 * implicit.steps
    np.testing.assert_allclose(implicit.q[-1], explicit.q[-1], atol=1e-8)


def test_rules_are_plain_data():
    assert dataclasses.replace(lw.JointRules(), limits="ignore").limits == "ignore"


def test_edges():
    model = double_pendulum()
    for method in ("rk4", "dop853"):
        assert lw.simulate(model, np.zeros((0, 2)), None, 0.1, method=method).q.shape[0] == 0
        assert lw.simulate(model, [0.0, 0.0], None, 0.1, method=method, output_times=[0.0]).q.shape == (1, 2)
    uneven = lw.simulate(model, [0.0, 0.0], None, 0.1, method="rk4", dt=0.003, output_times=[0.0, 0.05, 0.1])
    even = lw.simulate(model, [0.0, 0.0], None, 0.1, method="rk4", dt=0.001, output_times=[0.0, 0.05, 0.1])
    np.testing.assert_allclose(uneven.q, even.q, atol=1e-8)
    shifted = lw.simulate(model, [0.0, 0.0], None, 1.0, t0=5.0, control=lambda t, q, v, p: [t, 0.0])
    np.testing.assert_allclose(shifted.tau[:, 0], shifted.t)
    with pytest.warns(IntegrationWarning):
        stuck = lw.simulate(model, [0.1, 0.0], None, 1.0, control=lambda t, q, v, p: [lw.math.sqrt(0.5 - t), 0.0])
    assert stuck.status == "failed"
    assert stuck.t[-1] == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("method", [*ADAPTIVE, "rk4", "variational", "generalized_alpha"])
def test_it_does_not_matter_how_many_steps_a_call_of_the_kernel_makes(method, monkeypatch):
    """Bit for bit: a slower machine makes fewer of them."""
    model = mixed()
    q0, v0 = starts(model, 3)
    options = {"method": method, "rtol": 1e-7, "output_times": np.linspace(0.0, 0.5, 6)}
    options |= {} if method in ADAPTIVE else {"dt": 0.01}
    whole = lw.simulate(model, q0, v0, 0.5, **options)
    made = Run.__init__

    def short(run, *arguments):
        made(run, *arguments)
        run.budget = 1

    monkeypatch.setattr(Run, "__init__", short)
    monkeypatch.setattr(Run, "adapt", lambda run, seconds: None)
    pieces = lw.simulate(model, q0, v0, 0.5, **options)
    np.testing.assert_array_equal(pieces.q, whole.q)
    np.testing.assert_array_equal(pieces.steps, whole.steps)


def test_stopping_at_limits_is_compiled_once():
    model = slider(limits=lw.JointLimits(lower=-1.0, upper=0.5))
    for _ in range(3):
        lw.simulate(model, [0.0], [1.0], 5.0, limits="stop")
    assert len(Memory.of(model).table("simulation plans")) == 1


@pytest.mark.parametrize("steps", [{}, {"method": "rk4", "dt": 0.01}])
def test_a_run_that_ends_says_which_element_has_no_value(steps):
    model = double_pendulum()
    fine = lw.PD(model, [0.0] * model.nq, kp=1.0, kd=1.0)
    with pytest.warns(IntegrationWarning, match="the control rooted is not a number"):

        def rooted(t, q, v, p):
            return [lw.math.sqrt(0.5 - t), 0.0]

        motion = lw.simulate(model, duration=1.0, control=[fine, rooted], **steps)
    assert motion.status == "failed" and motion.t[np.isfinite(motion.q).all(axis=-1)][-1] < 0.51


def test_choices_that_are_kept_tell_calls_apart():
    b = lw.ModelBuilder("swing")
    rod = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.eye(3) * 0.1, "damping": 0.3}
    b.add_body("rod", joint=lw.Revolute(axis=(0, 1, 0)), limits=lw.JointLimits(-0.5, 0.5), **rod)
    model = b.build()
    start = {"q0": [0.4], "v0": [3.0], "duration": 1.0}
    choices = [{}, {"limits": "ignore"}, {"rules": lw.JointRules(damping=False)}, {"limits": "stop"}, {"released": []}]
    first, again = ([lw.simulate(model, **start, **chosen) for chosen in choices] for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a.q, b.q)
    ends = [motion.q[-1, 0] for motion in first[:4]]
    assert len(set(ends)) == 4
    assert first[3].status == "event"
    assert np.array_equal(first[4].q, first[0].q)
    fresh = lw.simulate(dataclasses.replace(model, name="another"), **start, limits="ignore")
    assert np.array_equal(fresh.q, first[1].q)
