"""Events, laws of actuators, controls and sampled controls see the states of all elements."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.plans import adaptive_methods, fixed_methods


def craft():
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("craft", joint=lw.Revolute(axis=(0, 0, 1)), mass=10.0, inertia=np.diag([2.0, 2.0, 2.0]))
    return b.build()


CRAFT = craft()


def wheel(law):
    return lw.space.BalancedWheel(CRAFT, "craft", (0, 0, 1), law, inertia=0.1)


@pytest.mark.parametrize("method", [m for m in (*fixed_methods(), *adaptive_methods()) if m != "moreau"])
def test_a_wheel_with_drag_knows_its_own_spin(method):
    """ḣ = 0.5 - 2 h by a law of the wheel's own state; the craft takes the opposite."""
    step = {} if method in adaptive_methods() else {"dt": 1e-3}
    motion = lw.simulate(
        CRAFT, [0.0], duration=1.0, method=method, control=wheel(lambda t, q, v, p, x: 0.5 - 2.0 * x[0]), **step
    )
    h = 0.25 * (1.0 - np.exp(-2.0))
    allowed = 2e-3 if method == "euler" else 1e-6
    assert motion.x[-1, 0] == pytest.approx(h, abs=allowed)
    assert motion.v[-1, 0] == pytest.approx(-h / 2.0, abs=allowed)


def test_controls_see_the_states_of_others():
    """A torque from outside that dumps the wheel's momentum, plain, sampled, and in Python."""

    def dump(t, q, v, p, x):
        return [-1.0 * x[0]]

    spun = wheel(lambda t, q, v, p: 0.5)
    runs = [
        lw.simulate(CRAFT, [0.0], duration=1.0, control=[spun, control], rtol=1e-10)
        for control in (dump, lw.Sampled(CRAFT, dump, 1000.0), lw.Sampled(CRAFT, dump, 1000.0, python=True))
    ]
    expected = -0.5 / 2.0 - 0.5 * 0.5 / 2.0  # h = 0.5 t, and the torque -h
    assert runs[0].v[-1, 0] == pytest.approx(expected, abs=1e-9)
    for sampled in runs[1:]:
        assert sampled.v[-1, 0] == pytest.approx(expected, abs=5e-4)
    assert runs[1].v[-1, 0] == pytest.approx(runs[2].v[-1, 0], abs=1e-12)


def test_events_see_them():
    full = lw.Event(lambda t, q, v, p, x: x[0] - 0.3, direction=1, terminal=True, name="full")
    motion = lw.simulate(CRAFT, [0.0], duration=1.0, control=wheel(lambda t, q, v, p: 0.5), events=full)
    assert motion.status == "event"
    assert motion.t[-1] == pytest.approx(0.6, abs=1e-12)


def test_derivatives_know_it():
    space = CRAFT.state_space([0.0], [0.0], [0.0], control=[wheel(lambda t, q, v, p, x: -2.0 * x[0])])
    np.testing.assert_allclose(space.A, [[0, 1, 0], [0, 0, 2.0 / 2.0], [0, 0, -2.0]], atol=1e-12)


def test_functions_of_time_and_state_alone():
    """Controls, traced, sampled and in Python, and events may leave out p."""

    def drag(t, q, v):
        return [1.0 - 0.5 * v[0]]

    def untraceable(t, q, v):
        return [1.0 - 0.5 * float(v[0])]

    crossing = lw.Event(lambda t, q, v: q[0] - 0.1, name="crossing")
    motion = lw.simulate(CRAFT, [0.0], duration=1.0, control=drag, events=[crossing], rtol=1e-10)
    assert motion.v[-1, 0] == pytest.approx(2.0 * (1.0 - np.exp(-0.25)), abs=1e-9)
    assert motion.events[0].q[0] == pytest.approx(0.1, abs=1e-12)
    for control in (lw.Sampled(CRAFT, drag, 1000.0), lw.Sampled(CRAFT, untraceable, 1000.0, python=True)):
        sampled = lw.simulate(CRAFT, [0.0], duration=1.0, control=control, rtol=1e-10)
        assert sampled.v[-1, 0] == pytest.approx(motion.v[-1, 0], abs=2e-4)
    with pytest.warns(UserWarning):
        hosted = lw.simulate(CRAFT, [0.0], duration=1.0, control=untraceable, rtol=1e-10)
    assert hosted.v[-1, 0] == pytest.approx(motion.v[-1, 0], abs=1e-9)


@pytest.mark.parametrize("control", [lambda: 0.0, lambda t, q: [0.0], lambda a, b, c, d, e, f: [0.0]])
def test_controls_that_take_something_else_are_refused(control):
    with pytest.raises(lw.InputError, match="cannot be called as a control"):
        lw.simulate(CRAFT, [0.0], duration=1.0, control=control)
