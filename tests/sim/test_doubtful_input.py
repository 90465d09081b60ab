"""Input that is certainly not what was meant: degrees, long quaternions; one warning, to whoever called."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import InputWarning
from linkwise.samples import four_bar, planar_arm, quadruped


def told(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function()
    assert all(each.filename == __file__ for each in caught)  # shown where it was written
    return result, [str(each.message) for each in caught if issubclass(each.category, InputWarning)]


@pytest.mark.parametrize(("rpy", "count"), [((0, 90, 0), 1), ((0, 0, -45), 1), ((0, np.pi, 7.5), 0), ((10.0, 0, 0), 0)])
def test_angles_of_a_placement(rpy, count):
    _, said = told(lambda: lw.transform(rpy=rpy))
    assert len(said) == count and all("rpy looks like degrees" in line for line in said)


@pytest.mark.parametrize(
    ("joint", "limits", "count"),
    [
        (lw.Revolute((0, 0, 1)), lw.JointLimits(-170, 170), 1),
        (lw.Revolute((0, 0, 1)), lw.JointLimits(-2.9, 2.9), 0),
        (lw.Revolute((0, 0, 1)), lw.JointLimits(-100, 100), 0),
        (lw.Prismatic((0, 0, 1)), lw.JointLimits(-170, 170), 0),
    ],
)
def test_ranges_of_joints(joint, limits, count):
    b = lw.ModelBuilder("arm")
    _, said = told(lambda: b.add_body("a", joint=joint, joint_name="pin", mass=1.0, com=(1, 0, 0), limits=limits))
    assert len(said) == count and all("'pin' looks like degrees" in line for line in said)


def test_a_start_in_degrees():
    _, said = told(lambda: lw.simulate(planar_arm(2), [45.0, 0.3], duration=0.01))
    assert len(said) == 1 and "'joint1' looks like degrees" in said[0]
    assert not told(lambda: lw.simulate(planar_arm(2), [45.1, 0.3], duration=0.01))[1]
    assert len(told(lambda: lw.Simulation(planar_arm(2), [0.0, 90.0]))[1]) == 1
    assert len(told(lambda: lw.simulate(planar_arm(3), [45.0, 90.0, -30.0], duration=0.01))[1]) == 1  # one for all
    for law in (lw.PD, lw.ComputedTorque):
        _, said = told(lambda law=law: law(planar_arm(2), [0.3, 90.0]))
        assert len(said) == 1 and "the target q of joint 'joint2' looks like degrees" in said[0]


def test_a_quaternion_of_another_length_is_normalised():
    model = quadruped()
    q = np.array(model.start)
    q[:4] = [0.7, 0.0, 0.0, 0.7]
    motion, said = told(lambda: lw.simulate(model, q, duration=0.01))
    assert len(said) == 1 and "'root_joint' has a quaternion that is not of length one" in said[0]
    assert np.allclose(np.linalg.norm(motion.q[:, :4], axis=1), 1.0)
    q[:4] /= np.linalg.norm(q[:4]) * (1.0 + 1e-7)
    assert not told(lambda: lw.simulate(model, q, duration=0.01))[1]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: lw.simulate(m, [np.nan, 0.0], duration=0.01),
        lambda m: lw.simulate(m, [0.0, 0.0], [0.0, np.nan], duration=0.01),
        lambda m: lw.PD(m, [np.nan, 0.0]),
        lambda m: lw.PD(m, [0.0, 0.0], kp=np.nan),
        lambda m: lw.Torque(m, [np.nan, 0.0]),
        lambda m: lw.Table([0.0, 1.0], [[np.nan], [0.0]]),
        lambda m: m.with_configuration("a", [np.nan, 0.0]),
        lambda m: m.with_gravity((0, 0, np.nan)),
        lambda m: lw.path(m, [[0.0, np.nan], [1.0, 1.0]], duration=1.0),
        lambda m: lw.simulate(m, [0.0, 0.0], duration=0.01, f_ext={"link1": [np.nan] * 6}),
        lambda m: four_bar(1).assemble([0.3, np.nan, 0.0]),
    ],
)
def test_what_is_not_a_number_is_refused(make):
    """Wherever it would be kept or go into a run; functions of a state give NaN for NaN, as NumPy's do."""
    with pytest.raises(lw.LinkwiseError):
        make(planar_arm(2))


@pytest.mark.parametrize("run", [lw.simulate, lw.Simulation])
def test_arguments_that_people_look_for_say_where_things_are(run):
    """Contact is the model's; a misspelt argument is answered with the nearest, as Python's own kind of error."""
    with pytest.raises(TypeError, match=r"no argument 'contact'(?s:.*)do: +model\.with_contacts\(lw\.Ground\("):
        run(planar_arm(2), contact=True)
    with pytest.raises(TypeError, match=r"no argument 'metod'(?s:.*)did you mean method"):
        run(planar_arm(2), metod="rk4")
    with pytest.raises(AttributeError, match=r"instead: lw\.Ground, lw\.Material and model\.with_contacts"):
        lw.Contact  # noqa: B018  # asking is what is tested


@pytest.mark.parametrize(
    "make",
    [
        lambda given: lw.PD(given, [0.0, 0.0]),
        lambda given: lw.PID(given, [0.0, 0.0]),
        lambda given: lw.ComputedTorque(given, [0.0, 0.0]),
        lambda given: lw.Drives(given),
        lambda given: lw.BodyForce(given, "link2", [0.0] * 6),
        lambda given: lw.Bushing(given, "link1", "link2", 1.0),
        lambda given: lw.JointSprings(given, 1.0),
        lambda given: lw.SeriesElastic(given, ["joint1"], 0.0),
    ],
    ids=["PD", "PID", "ComputedTorque", "Drives", "BodyForce", "Bushing", "JointSprings", "SeriesElastic"],
)
def test_elements_want_the_model_first(make):
    with pytest.raises(lw.InputError, match="this is not a model"):
        make([0.3, 0.1])
