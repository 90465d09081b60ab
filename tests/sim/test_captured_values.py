"""Functions read what changes: every call sees the values of its own time, and nothing is compiled twice.

A mass of 1 kg on a rail has motions in closed form, whatever number a function has captured, and however.
"""

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.studies.member_blocks import Rollouts
from linkwise.studies.study import Batch, Study
from linkwise.targets.llvm import jit
from linkwise.targets.llvm.program_kernel import ProgramKernel
from tests.captures import CAPTURES


def rail(name="rail"):
    b = lw.ModelBuilder(name, gravity=(0, 0, 0))
    b.add_body("cart", joint=lw.Prismatic(axis=(1, 0, 0)), joint_name="rail", mass=1.0, inertia=np.eye(3))
    b.add_actuator(lw.equipment.Actuator("drive", lw.equipment.JointTransmission({"rail": 1.0})))
    return b.build()


MODEL = rail()
VALUES = (0.6, 0.8, 0.6)


# Uses: each takes a capture, and gives what to pass to a simulation, a speed at the start, and q after a second.
class Push(lw.Element):
    def __init__(self, strength):
        self.strength = strength

    def force(self, t, q, v, x, p):
        return [self.strength()]


class Spin(lw.Element):
    """A state that grows at the captured rate, and pushes."""

    nx = 1

    def __init__(self, strength):
        self.strength = strength

    def rate(self, t, q, v, x, p):
        return [self.strength()]

    def force(self, t, q, v, x, p):
        return [x[0]]


def under_force(k):
    return 0.5 * k


def control(capture):
    function, change = capture(lambda k, t, q, v, p: [k])
    return {"control": function}, change, 0.0, under_force


def control_with_others(capture):
    function, change = capture(lambda k, t, q, v, p: k * np.ones(1))
    return {"control": [lw.PD(MODEL, [0.0], kp=0.0, kd=0.0), function]}, change, 0.0, under_force


def control_in_python(capture):
    function, change = capture(lambda k, t, q, v, p: [k if float(t) > -1.0 else 0.0])
    return {"control": function}, change, 0.0, under_force


def element(capture):
    function, change = capture(lambda k: k)
    return {"control": Push(function)}, change, 0.0, under_force


def element_rate(capture):
    function, change = capture(lambda k: k)
    return {"control": Spin(function)}, change, 0.0, lambda k: k / 6.0


def controller(capture):
    function, change = capture(lambda k, t, q, v, x, p: ([k], []))
    return {"control": lw.Controller(MODEL, function)}, change, 0.0, under_force


def sampled_law(capture):
    function, change = capture(lambda k, t, q, v, x, p: ([x[0]], [k]))
    made = lw.Controller(MODEL, function, state=[0.0], rate=2.0)  # nothing acts before the second sample
    return {"control": made}, change, 0.0, lambda k: 0.125 * k


def sampled(capture):
    function, change = capture(lambda k, t, q, v, p: [k])
    return {"control": lw.Sampled(MODEL, function, 100.0)}, change, 0.0, under_force


def sampled_in_python(capture):
    function, change = capture(lambda k, t, q, v, p: [k])
    return {"control": lw.Sampled(MODEL, function, 100.0, python=True)}, change, 0.0, under_force


def torque(capture):
    function, change = capture(lambda k, t, p: [k])
    return {"control": lw.Torque(MODEL, function)}, change, 0.0, under_force


def pid_target(capture):
    function, change = capture(lambda k, t, p: [2.0 * k * t])
    made = lw.PID(MODEL, 0.0, function, kp=0.0, ki=0.0, kd=1.0)
    return {"control": made}, change, 0.0, lambda k: 2.0 * k * (0.5 - np.exp(-1.0))


def thruster(capture):
    function, change = capture(lambda k, t, q, v, p: k / 100.0)
    nozzle = lw.space.Thruster("cart", (1, 0, 0), 100.0, function)
    return {"control": lw.space.Propulsion(MODEL, nozzle)}, change, 0.0, under_force


def actuators(capture):
    function, change = capture(lambda k, t, q, v, p: k)
    return {"control": lw.Drives(MODEL, {"drive": function})}, change, 0.0, under_force


def force_from_outside(capture):
    function, change = capture(lambda k, t, q, v, p: [0, 0, 0, k, 0, 0])
    return {"f_ext": {"cart": function}}, change, 0.0, under_force


def event(capture):
    function, change = capture(lambda k, t, q, v, p: q[0] - k)
    return {"events": lw.Event(function, terminal=True)}, change, 1.0, lambda k: k


def action(capture):
    function, change = capture(lambda k, t, q, v: (q, [k]))
    made = lw.Event(lambda t, q, v, p: q[0] - 0.5, action=function)
    return {"events": made}, change, 1.0, lambda k: 0.5 + 0.5 * k


USES = [
    control, control_with_others, control_in_python, element, element_rate, controller, sampled_law, sampled,
    sampled_in_python, torque, pid_target, thruster, actuators, force_from_outside, event, action,
]  # fmt: skip

HOW = {"method": "rk4", "dt": 1.0 / 64}


def by_simulate(v0, given):
    return lw.simulate(MODEL, [0.0], [v0], duration=1.0, **HOW, **given).q[-1, 0]


def by_simulation(v0, given):
    return lw.Simulation(MODEL, [0.0], [v0], **HOW, **given).advance(1.0).q[0]


def by_ensemble(v0, given):
    inputs = {"q0": np.zeros((2, 1)), "v0": np.full((2, 1), v0)}
    return lw.ensemble(MODEL, inputs, duration=1.0, progress=False, threads=1, seed=0, **HOW, **given)["q_final"][1, 0]


@pytest.mark.filterwarnings("ignore::linkwise.errors.SlowControlWarning")
@pytest.mark.parametrize("way", [by_simulate, by_simulation, by_ensemble])
@pytest.mark.parametrize("use", USES)
def test_each_call_sees_the_values_of_its_time(use, way):
    stale = []
    # What is called in Python is compiled around each function: two ways are enough there, and all of them once.
    few = use.__name__.endswith("in_python") or way is not by_simulate
    names = ("by_global", "by_callable_object") if few else CAPTURES
    for name in names:
        capture = CAPTURES[name]
        given, change, v0, expected = use(capture)
        found = []
        for k in VALUES:
            change(k)
            found.append(way(v0, given))
        if found != pytest.approx([expected(k) for k in VALUES], abs=1e-9) or found[0] != found[2]:
            stale.append((name, found))
    assert not stale


@pytest.mark.parametrize("capture", CAPTURES.values(), ids=CAPTURES)
def test_measures_and_rollouts_of_an_ensemble_see_the_values_of_their_time(capture):
    inputs = {"q0": np.zeros((2, 1)), "v0": np.zeros((2, 1))}
    measure, set_measure = capture(lambda k, motion: k * np.ones(len(motion.q)))
    step, set_step = capture(lambda k, model, q, v, p: {"q": q + k, "v": v})
    for k in VALUES:
        set_measure(k)
        kept = lw.ensemble(MODEL, inputs, duration=0.1, progress=False, seed=0, keep={"m": measure}, **HOW)["m"]
        set_step(k)
        moved = lw.ensemble(MODEL, inputs, progress=False, seed=0, run=Rollouts(step, 4, device="cpu"))["q_final"]
        assert (kept[0], moved[1, 0]) == pytest.approx((k, 4.0 * k))


def held_gain(k):
    """A control that reads a cell, and the cell."""
    cell = [k]

    def pull(t, q, v, p):
        return [-cell[0] * q[0]]

    return pull, cell


def test_the_same_formulas_are_compiled_once(monkeypatch, tmp_path):
    compiled, built = [], []
    compile_quickly, build = jit.compile_quickly, ProgramKernel.build

    def counted_text(*given):
        compiled.append(given)
        return compile_quickly(*given)

    def counted_build(routine, *given, **named):
        built.append(routine.name)
        return build(routine, *given, **named)

    monkeypatch.setenv("LINKWISE_CACHE", "1")
    monkeypatch.setenv("LINKWISE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LINKWISE_TIER", "quick")
    monkeypatch.setattr(jit, "compile_quickly", counted_text)
    monkeypatch.setattr(ProgramKernel, "build", counted_build)

    def counts(model, control, event):
        compiled.clear()
        built.clear()
        motions = [lw.simulate(model, [0.3], duration=0.5, control=control, events=event, **HOW) for _ in range(2)]
        assert motions[0].q.tobytes() == motions[1].q.tobytes()
        assert motions[0].tau.tobytes() == motions[1].tau.tobytes()
        return len(compiled), len(built)

    model, far = rail(), lw.Event(lambda t, q, v, p: q[0] - 5.0)
    pull, cell = held_gain(2.0)
    first = counts(model, pull, far)
    assert first[0] >= 1
    assert counts(model, pull, far) == (0, 0)
    assert counts(model, held_gain(2.0)[0], lw.Event(lambda t, q, v, p: q[0] - 5.0)) == (0, 0)  # other functions
    cell[0] = 3.0
    assert counts(model, pull, far) == first  # the loop, and what observes
    cell[0] = 2.0
    assert counts(model, pull, far) == (0, 0)
    cell[0] = 3.0
    again = counts(rail(), pull, far)  # another model of the same kind: from the disk
    assert again[0] == 0
    assert again[1] == first[1]


def test_a_simulation_and_its_motion_keep_the_formulas_that_they_began_with():
    pull, cell = held_gain(2.0)
    whole = lw.Simulation(MODEL, [0.3], control=pull, **HOW).advance(1.0).q
    motion = lw.simulate(MODEL, [0.3], duration=1.0, control=pull, **HOW)
    going = lw.Simulation(MODEL, [0.3], control=pull, **HOW)
    cell[0] = 50.0
    np.testing.assert_allclose(motion.tau, -2.0 * motion.q)  # made when it is first looked at
    going.advance(0.25)
    for each in (going, copy.deepcopy(going), pickle.loads(pickle.dumps(going))):
        each.method = "euler"
        each.method = "rk4"
        np.testing.assert_array_equal(each.advance(0.75).q, whole)


def test_a_study_keeps_its_formulas_wherever_it_goes():
    pull, cell = held_gain(2.0)
    inputs = {"q0": np.full((2, 1), 0.3)}

    def study():
        return Study(MODEL, inputs, seed=1, duration=1.0, control=pull, events=lambda t, q, v, p: q[0] - cell[0], **HOW)

    made, same = study(), study()
    sent = pickle.dumps(made)
    expected = made.replay(0).q
    cell[0] = 4.0
    other = study()
    np.testing.assert_array_equal(made.replay(0).q, expected)
    here = made.batch(0, 1)
    there = Batch(pickle.loads(sent), here.members, here.inputs)
    np.testing.assert_array_equal(there.simulate().q[0], expected)
    assert not np.allclose(other.replay(0).q, expected)
    assert made.hash == same.hash != other.hash


def test_controls_that_call_functions_of_a_large_model_are_traced_again_too():
    model = samples.planar_arm(3).with_sweeps("rolled")
    plain = samples.planar_arm(3)
    q0 = np.array([0.3, -0.2, 0.4])
    cell = [1.0]

    def lift(of):
        return lambda t, q, v, p: cell[0] * np.asarray(of.gravity_force(q)) - 0.1 * v

    function = lift(model)
    tilt = lw.Event(lambda t, q, v, p: model.gravity_force(q)[0] - 0.5 * cell[0], name="tilt")
    for k in (1.0, 0.5):
        cell[0] = k
        motion = lw.simulate(model, q0, duration=0.2, control=function, events=tilt, **HOW)
        expected = lw.simulate(plain, q0, duration=0.2, control=lift(plain), **HOW)
        cell[0] = 7.0
        np.testing.assert_allclose(motion.q, expected.q, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(motion.tau, expected.tau, rtol=1e-9, atol=1e-9)


def test_a_method_that_an_element_has_of_its_own_is_asked():
    class Given(lw.Element):
        def __init__(self, force):
            self.force = force

    motion = lw.simulate(MODEL, [0.0], duration=1.0, control=Given(lambda t, q, v, x, p: [0.6]), **HOW)
    assert motion.q[-1, 0] == pytest.approx(0.3)


def test_effects_are_refused_where_the_formulas_are_known():
    log = []

    def recorded(t, q, v, p):
        log.append(1)
        return [-q[0]]

    lw.simulate(MODEL, [0.3], duration=0.1, control=lambda t, q, v, p: [-q[0]], **HOW)
    with pytest.raises(lw.InputError, match=r"does more than compute(?s:.)*log"):
        lw.simulate(MODEL, [0.3], duration=0.1, control=recorded, **HOW)
    with pytest.raises(lw.InputError, match=r"event(?s:.)*does more than compute"):
        lw.simulate(MODEL, [0.3], duration=0.1, events=lambda t, q, v, p: (log.append(1), q[0])[1], **HOW)


def test_a_compiled_function_is_what_it_was_when_it_was_compiled():
    cell = [2.0]
    inputs = {"q": "q", "v": "v"}
    f = lw.compile(lambda m, q, v: {"a": cell[0] * q, "b": m.kinetic_energy(q, v) * cell[0]}, MODEL, inputs)
    q, v = np.array([0.5]), np.array([2.0])
    cell[0] = 5.0
    within = lw.compile(lambda m, q, v: f(q, v).a + f(q, v).b, MODEL, inputs)
    assert f(q, v).a == 1.0
    assert f(q, v).b == pytest.approx(4.0)
    assert within(q, v) == pytest.approx([5.0])
    assert f.jacobian("q")(q, v).a == pytest.approx(2.0)
    assert f(np.full((3, 1), 0.5), np.full((3, 1), 2.0)).b == pytest.approx([4.0] * 3)
