"""Constants of a model that elements change during a run: masses, inertias, placements."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.sim.plans import adaptive_methods, fixed_methods
from linkwise.sim.varying import flow_wrench


class Bucket(lw.Element):
    """A bucket on a spring that loses water at a constant rate: its mass is a state of its own."""

    is_actuator = False
    nx = 1

    def __init__(self, start, flow, stiffness):
        self.start, self.flow, self.stiffness = start, flow, stiffness

    def initial(self):
        return [self.start]

    def rate(self, t, q, v, x, p):
        return [-self.flow]

    def parameters(self, t, q, v, x, p):
        return {"bucket.mass": x[0], "bucket.inertia": np.ones(6) * (0.1 * x[0])}

    def force(self, t, q, v, x, p):
        return [-self.stiffness * q[0]]  # a number and a vector, in elements of every method: 2.0 * v would do as well


def bucket(touches=False):
    b = lw.ModelBuilder("bucket", gravity=(0, 0, 0))
    b.add_body("bucket", joint=lw.Prismatic(axis=(0, 0, 1)), shape=lw.shapes.sphere(0.1, mass=1.0))
    return b.build().with_contacts(lw.Ground(lw.transform(xyz=(0, 0, -9)))) if touches else b.build()


def expected(duration):
    found = solve_ivp(
        lambda t, y: [y[1], -30.0 * y[0] / (2.0 - 0.8 * t)], (0.0, duration), [0.1, 0.2], rtol=1e-12, atol=1e-14
    )
    return found.y[:, -1]


@pytest.mark.parametrize("method", [*fixed_methods(), *adaptive_methods()])
def test_mass_changes_in_every_method(method):
    step = {"rtol": 1e-9} if method in adaptive_methods() else {"dt": 1e-3}
    element = Bucket(2.0, 0.8, 30.0)
    motion = lw.simulate(bucket(method == "moreau"), [0.1], [0.2], 1.0, method=method, control=element, **step)
    allowed = 1e-8 if method in (*adaptive_methods(), "rk4") else 5e-6 if method != "euler" else 5e-3
    np.testing.assert_allclose([motion.q[-1, 0], motion.v[-1, 0]], expected(1.0), rtol=0, atol=allowed)
    mass = motion.x[-1, 0]
    assert mass == pytest.approx(1.2, abs=1e-9)
    assert motion.energy[-1] == pytest.approx(0.5 * mass * motion.v[-1, 0] ** 2, abs=1e-9)  # the spring is a force


def test_derivatives_know_it():
    """At a state with all that acts, by differences of the accelerations of a simulation."""
    model, element = bucket(), Bucket(2.0, 0.8, 30.0)

    def rates(y):
        motion = lw.simulate(model, y[:1], y[1:2], 1e-9, method="rk4", dt=1e-9, control=element, x0=y[2:])
        return np.array([y[1], motion.vdot[0, 0], -0.8])

    at, e = np.array([0.1, 0.2, 2.0]), 1e-5
    columns = [(rates(at + e * unit) - rates(at - e * unit)) / (2 * e) for unit in np.eye(3)]
    found = model.state_space([0.1], [0.2], [0.0], control=element).A
    np.testing.assert_allclose(found, np.transpose(columns), atol=1e-8)
    assert abs(found[1, 2] - 30.0 * 0.1 / 2.0**2) < 1e-12


class Rocket(lw.Element):
    """A tank that empties through a nozzle along x, with the flow's own forces."""

    is_actuator = False

    def __init__(self, flow, J, outlet, speed=0.0):
        self.flow, self.J, self.outlet, self.speed = flow, J, outlet, speed

    def parameters(self, t, q, v, x, p):
        J0, rate = self.J
        return {"craft.mass": 500.0 - self.flow * t, "craft.inertia": [J0, J0, J0 + rate * t, 0, 0, 0]}

    def wrench(self, t, q, v, x, p):
        J_rate = np.diag([0.0, 0.0, self.J[1]])
        flowing = flow_wrench(v[:3], self.flow, self.outlet, np.zeros(3), J_rate)
        flowing[3] = flowing[3] + self.flow * self.speed
        return {"craft": flowing}


def craft():
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("craft", joint=lw.Free(), mass=500.0, inertia=np.diag([800.0, 800.0, 800.0]))
    return b.build()


def test_rocket_equation():
    exhaust = 230.0 * 9.80665
    rocket = Rocket(22.0 / exhaust, (800.0, 0.0), (0.0, 0.0, 0.0), exhaust)
    motion = lw.simulate(craft(), duration=600.0, control=rocket, rtol=1e-12)
    assert motion.v[-1, 3] == pytest.approx(26.555716563, abs=1e-9)
    assert motion.q[-1, 4] == pytest.approx(7951.082177, abs=1e-6)


def test_jet_damping():
    """I 800 to 700 kg m² in 200 s, 0.25 kg/s leave at 2 m from the axis: ω goes with I."""
    rocket = Rocket(0.25, (800.0, -0.5), (2.0, 0.0, 0.0))
    motion = lw.simulate(craft(), v0=[0, 0, 0.1, 0, 0, 0], duration=200.0, control=rocket, rtol=1e-12)
    assert motion.v[-1, 2] == pytest.approx(0.0875, abs=1e-12)


def test_a_joint_is_moved():
    """Placements change too: the angle at which a rail stands."""

    class Tilt(lw.Element):
        is_actuator = False

        def parameters(self, t, q, v, x, p):
            return {"load.rpy": [0.0, 0.3 * t, 0.0], "load.mass": 2.0 + t}

    b = lw.ModelBuilder("rail")
    b.add_body("load", joint=lw.Prismatic(axis=(1, 0, 0)), mass=1.0, inertia=np.eye(3))
    motion = lw.simulate(b.build(), [0.0], duration=1.0, control=Tilt(), rtol=1e-10)
    assert motion.v[-1, 0] == pytest.approx(9.81 * (1.0 - np.cos(0.3)) / 0.3, abs=1e-9)


def test_closures_are_refused():
    class Winch(lw.Element):
        def parameters(self, t, q, v, x, p):
            return {"rope.length": 1.0 - 0.1 * t}

    b = lw.ModelBuilder("winch")
    b.add_body("load", joint=lw.Prismatic(axis=(0, 0, 1)), mass=1.0, inertia=np.eye(3))
    b.add_closure("rope", body_a="load", body_b="world", joint=lw.closures.Distance(1.0))
    with pytest.raises(lw.InputError, match=r"rope\.length"):
        lw.simulate(b.build(), [-1.0], duration=0.5, control=Winch())


def test_two_that_change_the_same_are_refused():
    with pytest.raises(lw.InputError, match="two elements change"):
        lw.simulate(bucket(), [0.1], duration=0.1, control=[Bucket(2.0, 0.8, 1.0), Bucket(1.0, 0.8, 1.0)])
