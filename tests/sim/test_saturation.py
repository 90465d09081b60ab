"""Actuators that are asked for more than they can give: which, and how long, is said."""

import re
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import SaturationWarning


def block(effort=2.0, **more):
    """A mass of 1 kg on a slide."""
    b = lw.ModelBuilder("block", gravity=(0, 0, 0))
    b.add_body("mass", joint=lw.Prismatic((1, 0, 0)), joint_name="slide", mass=1.0,
               limits=lw.JointLimits(effort=effort), **more)  # fmt: skip
    return b.build()


def ramp(t, q, v, p):
    """5 N/s: at 2 N from 0.4 s on."""
    return [5.0 * t]


def seconds(note, name):
    return float(re.search(rf"{re.escape(name)} for ([\d.e-]+) s", note)[1])


def test_a_joint_at_its_effort_limit_is_named_with_the_time():
    times = np.linspace(0.0, 1.0, 1001)
    with pytest.warns(SaturationWarning, match="'slide'") as caught:
        motion = lw.simulate(block(), [0.0], duration=1.0, control=ramp, output_times=times)
    assert len(caught) == 1
    assert seconds(motion.note, "'slide' (at 2)") == pytest.approx(0.6, abs=2e-3) and "within 1 s" in motion.note
    assert motion.tau.max() == 2.0


def test_nothing_is_said_where_nothing_is_clipped():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model, rules in ((block(effort=10.0), None), (block(), lw.JointRules(effort=False))):
            assert lw.simulate(model, [0.0], duration=1.0, control=ramp, rules=rules).note == ""
        assert lw.simulate(block(), [0.0], duration=1.0).note == ""


def test_in_a_batch_it_says_in_how_many():
    with pytest.warns(SaturationWarning, match=r"'slide' \(at 2\) for 0\.5 s at most, in 1 of 3 states"):
        lw.simulate(
            block(),
            np.zeros((3, 1)),
            duration=0.5,
            method="rk4",
            dt=1e-3,
            control=lambda t, q, v, p: p,
            p=[[1], [2], [3]],
        )


def test_a_control_in_python_is_watched_too():
    def branching(t, q, v, p):
        return [3.0] if float(t) > 0.05 else [0.0]

    with pytest.warns() as caught:
        motion = lw.simulate(block(), [0.0], duration=0.1, method="rk4", dt=1e-3, control=branching)
    assert {each.category.__name__ for each in caught} == {"SlowControlWarning", "SaturationWarning"}
    assert "'slide' (at 2) for 0.0" in motion.note


@pytest.mark.parametrize(
    ("ranges", "u", "times"),
    [
        ({"force_range": (-1.0, 1.0)}, lambda t, q, v, p: [5.0 * t], 0.8),
        ({"control_range": (-3.0, 3.0)}, lambda t, q, v, p: [5.0 * t], 0.4),
        ({"control_range": (-3.0, 3.0)}, 4.0, 1.0),
        ({"force_range": (-9.0, 9.0)}, 4.0, None),
    ],
)
def test_drives_of_files_are_named(ranges, u, times):
    b = lw.ModelBuilder("block", gravity=(0, 0, 0))
    b.add_body("mass", joint=lw.Prismatic((1, 0, 0)), joint_name="slide", mass=1.0)
    b.add_actuator(lw.equipment.Actuator("motor", lw.equipment.JointTransmission({"slide": 1.0}), **ranges))
    model = b.build()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        motion = lw.simulate(
            model, [0.0], duration=1.0, control=lw.Drives(model, u), output_times=np.linspace(0, 1, 2001)
        )
    assert len(caught) == (times is not None)
    if times is None:
        assert motion.note == ""
    else:
        assert seconds(motion.note, "'motor'") == pytest.approx(times, abs=2e-3)


def test_the_note_is_kept_in_files(tmp_path):
    with pytest.warns(SaturationWarning):
        motion = lw.simulate(block(), [0.0], duration=1.0, control=ramp)
    assert lw.Trajectory.load(motion.save(tmp_path / "m.npz")).note == motion.note
