"""What a kernel was compiled from cannot change under it."""

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from tests.sim.mechanisms import double_pendulum, satellite, slider

MODEL = double_pendulum()


def elements():
    craft = satellite()
    return {
        "Torque": lw.Torque(MODEL, np.ones(2)),
        "PD": lw.PD(MODEL, np.ones(2)),
        "ComputedTorque": lw.ComputedTorque(MODEL, np.ones(2)),
        "JointSprings": lw.JointSprings(MODEL, 3.0),
        "SeriesElastic": lw.SeriesElastic(MODEL, ["upper_joint"], np.ones(1)),
        "BalancedWheel": lw.space.BalancedWheel(craft, "hub", (0, 0, 1), 1.0),
        "Propulsion": lw.space.Propulsion(craft, lw.space.Thruster("hub", (0, 0, 1), 1.0)),
        "Encoder": lw.Encoder(["upper_joint"]),
        "IMU": lw.IMU("upper"),
        "ForceTorque": lw.ForceTorque("upper_joint"),
        "Event": lw.Event(lambda t, q, v, p: q[0]),
        "JointRules": lw.JointRules(),
    }


@pytest.mark.parametrize("name", elements())
def test_nothing_in_an_element_can_be_changed(name):
    element = elements()[name]
    assert vars(element)
    for attribute, value in vars(element).items():
        with pytest.raises(AttributeError):
            setattr(element, attribute, value)
        with pytest.raises(AttributeError):
            delattr(element, attribute)
        assert not isinstance(value, (list, dict, set)), attribute
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
            assert value.base is None
    if name != "Event":
        assert vars(pickle.loads(pickle.dumps(element))).keys() == vars(element).keys()
    assert copy.copy(element) is not None


def test_a_changed_target_is_not_followed_silently():
    target = np.array([0.4, -0.2])
    gains = np.array([50.0, 60.0])
    hold = lw.PD(MODEL, target, kp=gains)
    before = lw.simulate(MODEL, [0.0, 0.0], None, 0.1, control=hold)
    target[:], gains[:] = 2.0, 0.0
    np.testing.assert_array_equal(lw.simulate(MODEL, [0.0, 0.0], None, 0.1, control=hold).q, before.q)
    with pytest.raises(AttributeError, match=r"PD.*frozen(?s:.)*a new one"):
        hold.kp = 1.0
    with pytest.raises(ValueError, match="read-only"):
        hold.kp[0] = 1.0
    other = lw.PD(MODEL, target, kp=1.0)
    assert np.abs(lw.simulate(MODEL, [0.0, 0.0], None, 0.1, control=other).q - before.q).max() > 1e-3


def test_elements_of_users_are_frozen_too():
    class Push(lw.Element):
        def __init__(self, size):
            self.size = size
            self.table = [size, 2.0 * size]
            self.by_name = {"a": np.array([1.0])}

        def force(self, t, q, v, x, p):
            return [self.size]

    push = Push(2.0)
    assert lw.simulate(slider(), [0.0], None, 1.0, control=push).q[-1, 0] == pytest.approx(0.5)
    with pytest.raises(AttributeError, match="frozen"):
        push.size = 4.0
    assert push.table == (2.0, 4.0)
    with pytest.raises(TypeError):
        push.by_name["b"] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        push.by_name["a"][0] = 2.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lw.PD(MODEL, [0.0, 0.0], kp=np.nan), "kp is not finite"),
        (lambda: lw.PD(MODEL, [0.0, np.inf]), "target q"),
        (lambda: lw.PD(MODEL, [0.0]), "target q"),
        (lambda: lw.PD(MODEL, [0.0, 0.0], kp="stiff"), "kp is not made of numbers"),
        (lambda: lw.Torque(MODEL, [1.0, 2.0, 3.0]), "tau"),
        (lambda: lw.ComputedTorque(MODEL, [0.0, 0.0], vdot=np.nan), "target vdot"),
        (lambda: lw.JointSprings(MODEL, -1.0), "stiffness"),
        (lambda: lw.JointSprings(MODEL, 1.0, rest=[0.0]), "rest"),
        (lambda: lw.SeriesElastic(MODEL, ["upper_joint"], 0.0, inertia=0.0), "inertia"),
        (lambda: lw.SeriesElastic(MODEL, ["upper_joint"], 0.0, stiffness=-1.0), "stiffness"),
        (lambda: lw.SeriesElastic(MODEL, ["upper_joint"], 0.0, start=[0.0, 1.0]), "start"),
        (lambda: lw.space.BalancedWheel(satellite(), "hub", (0, 0, 0), 1.0), "axis"),
        (lambda: lw.space.BalancedWheel(satellite(), "hub", (0, 0, 1), 1.0, inertia=-1.0), "inertia"),
        (lambda: lw.space.BalancedWheel(satellite(), "hub", (0, 0, 1), 1.0, limit=-1.0), "limit"),
        (lambda: lw.space.BalancedWheel(satellite(), "hub", (0, 0, 1), np.nan), "torque"),
        (lambda: lw.space.Thruster("hub", (0, 0, 0), 1.0), "direction"),
        (lambda: lw.space.Thruster("hub", (0, 0, 1), 1.0, place=(0, np.nan, 0)), "place"),
        (lambda: lw.Encoder(counts=-5), "counts"),
        (lambda: lw.Encoder(noise=-0.1), "noise"),
        (lambda: lw.IMU("hub", gyro_noise=np.nan), "gyro_noise"),
        (lambda: lw.ForceTorque("hub", moment_noise=-1.0), "moment_noise"),
        (lambda: lw.JointRules(limit_time=0.0), "limit_time"),
        (lambda: lw.JointRules(friction_speed=-1.0), "friction_speed"),
        (lambda: lw.JointRules(limit_loss=np.nan), "limit_loss"),
        (lambda: lw.JointRules(limits="soft"), "spring"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make, words):
    with pytest.raises(lw.InputError, match=words):
        make()
