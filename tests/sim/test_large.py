"""Large mechanisms: the same routines as for small ones, with sweeps that run as loops."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.sim.motion import EquationsOfMotion
from linkwise.sim.plans import adaptive_methods, fixed_methods
from tests.sim.mechanisms import double_pendulum, mixed

METHODS = tuple(name for name in (*fixed_methods(), *adaptive_methods()) if name != "moreau")  # which is for contact


def chain(n):
    b = lw.ModelBuilder("chain")
    parent = "world"
    for k in range(n):
        axis = (1, 0, 0) if k % 2 else (0, 1, 0)
        at = lw.transform(xyz=(0, 0, -0.05 if k else 0.0))
        b.add_body(
            f"link{k}", parent, lw.Revolute(axis=axis), at, mass=0.1, com=(0, 0, -0.025), inertia=1e-4 * np.eye(3)
        )
        parent = f"link{k}"
    return b.build()


def tree():
    """Eight bodies with all that joints can have: limits, damping, friction, rotors, effort limits and a follower."""
    b = lw.ModelBuilder("tree")
    I = np.diag([0.03, 0.02, 0.04])
    parents = ["world", "b0", "b1", "b1", "b3", "b0", "b5", "b6"]
    for k, parent in enumerate(parents):
        joint = lw.Prismatic(axis=(0, 1, 0)) if k == 4 else lw.Revolute(axis=((0, 1, 0), (1, 0, 0), (0, 0, 1))[k % 3])
        b.add_body(
            f"b{k}",
            parent,
            joint,
            lw.transform(xyz=(0.2, 0.05 * k, 0.1), rpy=(0.1 * k, 0.2, 0)),
            mass=1.0 + 0.1 * k,
            com=(0.1, 0, 0.05),
            inertia=I,
            damping=0.1 * (k % 2),
            friction=0.05 * (k % 3),
            armature=0.02,
            limits=lw.JointLimits(-0.4, 0.5, effort=2.0) if k in (2, 5) else None,
            mimic=lw.Mimic("b5_joint", multiplier=-0.5, offset=0.1) if k == 7 else None,
        )
    return b.build()


def agree(large, small, tolerance):
    assert np.array_equal(large.steps, small.steps)
    for name in ("t", "q", "v", "x", "vdot", "tau", "energy"):
        a, b = getattr(large, name), getattr(small, name)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.nanmax(np.abs(b), initial=0.0)))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_motion_as_with_sweeps_written_out(method):
    model = mixed()
    q0, v0 = model.random_configuration(3), np.random.default_rng(4).normal(size=model.nv)

    def push(t, q, v, p):
        return [lw.math.sin(3.0 * t) - 0.1 * x for x in v]

    acts = [push, lw.space.Propulsion(model, lw.space.Thruster("ball", (1, 0, 0), 2.0))]
    options = {"method": method, "control": acts, "rtol": 1e-7, "dt": 1e-2, "output_times": np.linspace(0.0, 0.3, 7)}
    small = lw.simulate(model, q0, v0, 0.3, **options)
    large = lw.simulate(model.with_sweeps("rolled"), q0, v0, 0.3, **options)
    agree(large, small, 1e-10)


@pytest.mark.parametrize(
    "method", ["rk4", "dopri5", "variational", "generalized_alpha", pytest.param("rodas4", marks=pytest.mark.slow)]
)
def test_actuators_limits_followers_parameters_and_batches(method):
    model = tree().with_parameters(["b2.mass", "gravity"])
    rng = np.random.default_rng(5)
    q0, v0 = rng.uniform(-0.3, 0.3, (5, model.nq)), rng.normal(size=(5, model.nv))
    p = np.concatenate([model.parameters.nominal * (1.0 + 0.2 * rng.random((5, 4))), rng.random((5, 1))], axis=1)
    runs = []
    for way in (model.with_sweeps("unrolled"), model.with_sweeps("rolled")):
        acts = [
            lambda t, q, v, p: -p[4] * v + 0.1 * lw.math.sin(q[0] + t),
            lw.PD(way, np.zeros(way.nq), kp=3.0, kd=0.1, gravity=True),
            lw.JointSprings(way, 2.0),
            lw.SeriesElastic(way, [way.joints[3].name], 0.3, stiffness=20.0),
        ]
        if method != "rodas4":  # forces on bodies: long programs, where sweeps are written out
            acts.append(lw.space.BalancedWheel(way, "b3", (0, 0, 1), 0.2, inertia=0.1))
        options = {"method": method, "control": acts, "rtol": 1e-7, "dt": 2e-3, "p": p}
        runs.append(lw.simulate(way, q0, v0, 0.2, **options, output_times=np.linspace(0.0, 0.2, 5)))
    assert (runs[0].status == "done").all()
    agree(runs[1], runs[0], 1e-9)


@pytest.mark.parametrize("method", ["rk4", "dop853"])
def test_events(method):
    model = tree()
    q0 = np.array([np.full(model.nq, 0.1), np.full(model.nq, -0.2)])

    def bounce(t, q, v):
        return q, -0.5 * v

    def height(t, q, v, p, way):
        return way.pose(q, "b4")[2, 3] + 0.1

    runs = []
    for way in (model, model.with_sweeps("rolled")):
        low = lw.Event(lambda t, q, v, p, way=way: height(t, q, v, p, way), action=bounce, direction=-1, name="low")
        runs.append(lw.simulate(way, q0, None, 0.5, method=method, dt=5e-3, rtol=1e-8, events=low))
    small, large = runs
    assert len(small.events) > 1
    assert [event.state for event in large.events] == [event.state for event in small.events]
    np.testing.assert_allclose([e.t for e in large.events], [e.t for e in small.events], atol=1e-10)
    np.testing.assert_allclose(large.q, small.q, atol=1e-9)


def test_single_precision():
    model = tree()
    q0 = np.full(model.nq, 0.1, np.float32)
    runs = [
        lw.simulate(way, q0, np.zeros(model.nv, np.float32), 0.1, method="rk4", dt=1e-3)
        for way in (model, model.with_sweeps("rolled"))
    ]
    assert all(run.q.dtype == np.float32 for run in runs)
    np.testing.assert_allclose(runs[1].q, runs[0].q, atol=2e-5)


def test_controls_that_run_in_python():
    model = double_pendulum().with_sweeps("rolled")
    q0 = np.array([[0.1, 0.2], [-0.5, 0.3], [0.4, 0.0]])
    swing = lw.Event(lambda t, q, v, p: q[0] + 1.0, name="pass")

    def control(t, q, v, p):
        return -1.0 * v if q[0] < 9.0 else v  # in Python

    options = {"events": swing, "control": [control, lw.JointSprings(model, 2.0)], "rtol": 1e-8}
    with pytest.warns(UserWarning, match="control"):
        rolled = lw.simulate(model, q0, None, 1.0, **options)
        plain = lw.simulate(double_pendulum(), q0, None, 1.0, **options)
    assert [event.state for event in rolled.events] == [event.state for event in plain.events]
    np.testing.assert_allclose([e.t for e in rolled.events], [e.t for e in plain.events], atol=1e-8)
    np.testing.assert_allclose(rolled.q, plain.q, atol=1e-8)
    np.testing.assert_allclose(rolled.energy, plain.energy, atol=1e-8)


def start_of(model):
    return 0.05 * np.random.default_rng(0).normal(size=model.nq)


@pytest.mark.parametrize("method", ["dop853", "rk4"])
def test_a_chain_of_two_hundred_links_keeps_its_energy(method):
    model = chain(200)
    assert model._rolls
    q0 = start_of(model)
    motion = lw.simulate(model, q0, None, 0.02, method=method, rtol=1e-9, dt=2e-4)
    assert motion.status == "done"
    assert np.abs(motion.q[-1] - q0).max() > 1e-4
    kinetic = 0.5 * np.einsum("ti,ti->t", motion.v, model.function("mass_product")(motion.q, motion.v))
    assert np.ptp(motion.energy) < 1e-7 * kinetic.max()


def test_variational_steps_of_a_long_chain_are_of_second_order_and_keep_its_energy():
    model = chain(70)
    q0 = start_of(model)
    exact = lw.simulate(model, q0, None, 0.02, rtol=1e-11, output_times=[0.02])
    runs = [lw.simulate(model, q0, None, 0.02, method="variational", dt=dt) for dt in (4e-4, 2e-4, 1e-4)]
    errors = [np.abs(run.q[-1] - exact.q[-1]).max() for run in runs]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 2.0, atol=0.2)
    swings = [np.ptp(run.energy) for run in runs]  # the energy swings, by h², and does not drift
    np.testing.assert_allclose(np.log2(np.array(swings[:-1]) / swings[1:]), 2.0, atol=0.3)


def test_the_implicit_method_follows_a_long_stiff_chain():
    """Dampers with time constants of microseconds, over many of them; what they take is what the energy loses."""
    model = chain(62).with_joint_constants(damping=0.1)
    q0 = start_of(model)
    stiff = lw.simulate(model, q0, None, 0.1, method="rodas4", rtol=1e-6, output_times=np.linspace(0.02, 0.1, 41))
    assert stiff.status == "done" and stiff.steps < 500
    taken = np.trapezoid(0.1 * (stiff.v**2).sum(axis=1), stiff.t)
    assert taken > 1e-4
    np.testing.assert_allclose(stiff.energy[0] - stiff.energy[-1], taken, rtol=1e-3)
    early = lw.simulate(model, q0, None, 1e-3, method="rodas4", rtol=1e-8)
    explicit = lw.simulate(model, q0, None, 1e-3, method="dop853", rtol=1e-9)
    np.testing.assert_allclose(early.q[-1], explicit.q[-1], atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_follows_a_chain_of_a_hundred_links(method):
    model = chain(100)
    q0 = start_of(model)
    exact = lw.simulate(model, q0, None, 0.01, rtol=1e-11, output_times=[0.01])
    end = lw.simulate(model, q0, None, 0.01, method=method, rtol=1e-8, dt=1e-5).q[-1]
    if method == "euler":  # of first order: half the step has half the error
        end = 2.0 * lw.simulate(model, q0, None, 0.01, method=method, dt=5e-6).q[-1] - end
    allowed = {"euler": 1e-5, "variational": 1e-6}.get(method, 1e-7)
    assert np.abs(end - exact.q[-1]).max() < allowed * np.abs(exact.q[-1] - q0).max()


@pytest.mark.slow
def test_a_hundred_links_with_sweeps_written_out():
    model = chain(100)
    q0 = start_of(model)
    runs = [lw.simulate(way, q0, None, 0.01, method="rk4", dt=1e-4) for way in (model, model.with_sweeps("unrolled"))]
    agree(*runs, 1e-8)


@pytest.mark.parametrize("sweeps", ["unrolled", "rolled"])
@pytest.mark.parametrize("method", ["rk4", "variational", "generalized_alpha", "dop853", "dopri5", "rodas4"])
def test_what_comes_after_a_step(method, sweeps, monkeypatch):
    """Every state that is kept, recorded or interpolated has been moved: here, the second joint is held."""

    def hold(self, q, v, t, p):
        return [q[0], 0.25 * t], [v[0], 0.25]

    monkeypatch.setattr(EquationsOfMotion, "after_step", hold)
    model = double_pendulum().with_sweeps(sweeps)
    options = {"output_times": np.linspace(0.1, 1.0, 10)} if method != "rk4" else {}
    run = lw.simulate(model, [0.1, 0.0], [0.0, 0.25], 1.0, method=method, dt=1e-2, rtol=1e-6, **options)
    np.testing.assert_allclose(run.q[:, 1], 0.25 * run.t, atol=1e-13)
    np.testing.assert_allclose(run.v[:, 1], 0.25, atol=1e-15)
    assert np.abs(run.v[:, 0]).max() > 0.1
