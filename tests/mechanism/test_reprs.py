"""One useful line for each thing that people print, and names that complete."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.samples import flexible_arm, quadruped, seven_joint_arm, slider_crank

ARM = seven_joint_arm()


def target(t, p):
    return ARM.start


@pytest.mark.parametrize(
    ("thing", "says"),
    [
        (ARM.bodies["link2"], "<Body 'link2': number 1, on body 0, 3.8 kg>"),
        (ARM.joints["joint2"], "<Joint 'joint2': Revolute(axis=(0.0, 1.0, 0.0)), q[1:2], v[1:2], -2 … 2>"),
        (ARM.frame("tool"), "<Frame 'tool': on body 6, at (0, 0, 0.12)>"),
        (
            lw.PD(ARM, ARM.start, kp=50.0),
            "<PD for 'seven_joint_arm': gravity = False, q = (0, 0.35, 0, 1.65, 0, 1.142, 0), v = 0, kp = 50, kd = 10>",
        ),
        (lw.PD(ARM, target), "<PD for 'seven_joint_arm': gravity = False, q = target, v = 0, kp = 100, kd = 10>"),
        (lw.Torque([0.0, 1.0], np.zeros((2, 7))), "<Torque: tau = <linear table of 2 times, 7 numbers each>>"),
        (lw.shapes.box((1, 2, 3), mass=2.0), "<BodyShape: box; 2 kg>"),
    ],
)
def test_one_line(thing, says):
    assert repr(thing) == says


@pytest.mark.parametrize("model", [quadruped(), flexible_arm(), slider_crank()])
def test_all_parts_are_short(model):
    for part in (*model.bodies, *model.joints, *model.frames, *(part for body in model.bodies for part in body.parts)):
        assert part.name in repr(part) and "\n" not in repr(part) and len(repr(part)) < 120


def test_the_same_in_every_process():
    """No addresses: the word for an element goes into the fingerprints of studies."""

    class Odd(lw.Element):
        def __init__(self):
            self.thing, self.gain, self.rule = object(), 2.0, target

    assert repr(Odd()) == "<Odd: gain = 2, rule = target>"


def test_names_complete_inside_brackets():
    model = quadruped()
    assert model.bodies._ipython_key_completions_() == list(model.bodies.names)
    assert "front_left_knee" in model.joints._ipython_key_completions_()
    assert model.configurations._ipython_key_completions_() == ["stand", "crouch"]
    assert model.configurations.names == ("stand", "crouch")
