"""One useful line for each thing that people print, and names that complete."""

import os
import subprocess
import sys

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
            "<PD for 'seven_joint_arm': q = (0, 0.35, 0, 1.65, 0, 1.142, 0), v = 0, kp = 50, kd = 10, gravity = False>",
        ),
        (lw.PD(ARM, target), "<PD for 'seven_joint_arm': q = target, v = 0, kp = 100, kd = 10, gravity = False>"),
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


COMPLETED = [
    ('arm.pose(q, "link', ["link1", "link2"]),
    ("arm.jacobian(arm.neutral(), body='to", ["tool"]),
    ('x = 2 * arm.joints["joint', ["joint1", "joint2"]),
    ('mine["legs"].arm.pose(q, "li', []),  # not looked up: it would run code
    ('arm.locked(["joint1", "joint', ["joint1", "joint2"]),
    ('arm.pose("link', []),  # a configuration is due
    ('print("link', []),
    ('arm.pose(q, "link1"', []),
]


@pytest.mark.parametrize(("text", "first"), COMPLETED)
def test_names_complete_inside_calls_in_ipython(text, first):
    """By IPython's own completer, as in its terminal and, through ``completions``, in Jupyter."""
    from IPython.core.completer import provisionalcompleter
    from IPython.core.interactiveshell import InteractiveShell

    from linkwise.model.completions import register

    session = InteractiveShell.instance()
    try:
        session.user_ns.update(arm=ARM, q=ARM.start, mine={})
        register()
        register()  # once is enough
        assert len(session.Completer.custom_matchers) == 1
        with provisionalcompleter():
            found = list(session.Completer.completions(text, len(text)))
        names = [each.text for each in found if each.text in {*ARM.bodies.names, *ARM.joints.names, "tool"}]
        assert names[: len(first)] == first and bool(names) == bool(first)
        assert all(
            text[each.start : each.end] == text[max(text.rfind('"'), text.rfind("'")) + 1 :]
            for each in found[: len(first)]
        )
        listed = session.Completer.complete(line_buffer=text, cursor_pos=len(text))[1]
        assert list(listed[: len(first)]) == first
    finally:
        InteractiveShell.clear_instance()


def test_the_matcher_is_there_when_linkwise_is_imported_in_a_session(tmp_path):
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "s = InteractiveShell.instance(); s.run_cell('import linkwise')\n"
        "print(len(s.Completer.custom_matchers))"
    )
    env = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert ran.stdout.split() == ["1"]
