"""Fields of acceleration act on every link and on modes, in every method and in derivatives."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import approx_fprime

import linkwise as lw
from linkwise.sim.acceleration_fields import FieldsAroundBodies
from linkwise.sim.plans import adaptive_methods, fixed_methods

G = np.array([0.3, -0.2, -9.81])
MU = 3.986004418e14


class Uniform(lw.Element):
    """The same acceleration everywhere."""

    is_actuator = False

    def acceleration(self, t, q, v, x, p):
        return G

    def potential(self, q, x, p):
        return lambda point: -(G @ point)


class Linear(lw.Element):
    """g + T r."""

    is_actuator = False

    def __init__(self, g, T, as_function):
        self.g, self.T, self.as_function = np.array(g, float), np.array(T, float), as_function

    def acceleration(self, t, q, v, x, p):
        return (lambda point: self.g + self.T @ point) if self.as_function else (self.g, self.T)


class Central(lw.Element):
    """Gravity of a point at the world's origin."""

    is_actuator = False

    def acceleration(self, t, q, v, x, p):
        return lambda point: point * (-MU / lw.math.sqrt(point @ point) ** 3)

    def potential(self, q, x, p):
        return lambda point: -MU / lw.math.sqrt(point @ point)


def flexible_arm(gravity, touches=False):
    """A rigid link with a soft beam on it, and a load at the beam's tip."""
    beam = lw.FlexibleBody.beam(
        length=1.0, EA=1e4, EI=3.0, GJ=5.0, mass_per_length=1.0, elements=3, modes=(0, 2), axial_modes=0, damping=0.0
    )
    b = lw.ModelBuilder("arm", gravity=gravity)
    b.add_body("upper", joint=lw.Revolute(axis=(0, 1, 0)), shape=lw.shapes.box((0.4, 0.1, 0.2), density=100.0))
    b.add_body("beam", "upper", lw.Revolute(axis=(0, 1, 0)), lw.transform(xyz=(0.4, 0, 0)), flexible=beam)
    b.add_body("load", "beam", lw.Fixed(), at="tip", mass=0.1, com=(0.05, 0, 0), inertia=1e-3 * np.eye(3))
    model = b.build()
    return model.with_contacts(lw.Ground(lw.transform(xyz=(0, 0, -9))), only=["upper"]) if touches else model


WITH_GRAVITY, WEIGHTLESS = flexible_arm(G), flexible_arm((0, 0, 0))
START = np.array([0.3, 0.01, -0.02, -0.5]), np.array([0.1, 0.0, 0.2, -0.3])


@pytest.mark.parametrize("method", [*fixed_methods(), *adaptive_methods()])
def test_in_every_method_a_uniform_field_is_gravity(method):
    step = {} if method in adaptive_methods() else {"dt": 1e-4}
    heavy, weightless = (flexible_arm(g, touches=method == "moreau") for g in (G, (0, 0, 0)))
    options = {"duration": 2e-3, "method": method, "output_times": [0.0, 2e-3], **step}
    expected = lw.simulate(heavy, *START, **options)
    found = lw.simulate(weightless, *START, control=Uniform(), **options)
    at_rest = lw.simulate(weightless, *START, **options)
    assert np.abs(at_rest.v[-1] - expected.v[-1]).max() > 1e-3  # gravity is felt
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.v, expected.v, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.energy, expected.energy, rtol=0, atol=1e-8)


def test_on_a_model_whose_links_are_looped_over():
    def chain(gravity):
        b, parent = lw.ModelBuilder("chain", gravity=gravity), "world"
        for k in range(100):
            place, mass = lw.transform(xyz=(0, 0, -0.1)), (1.0, (0, 0, -0.05), 1e-2 * np.eye(3))
            b.add_body(f"b{k}", parent, lw.Revolute((0, 1, 0) if k % 2 else (1, 0, 0)), place, *mass)
            parent = f"b{k}"
        return b.build()

    runs = {"duration": 2e-3, "method": "rk4", "dt": 1e-3}
    assert chain(G)._rolls
    expected, found = lw.simulate(chain(G), **runs), lw.simulate(chain((0, 0, 0)), control=Uniform(), **runs)
    assert np.abs(expected.v[-1]).max() > 1e-3
    np.testing.assert_allclose(found.v, expected.v, rtol=0, atol=1e-14)


def test_derivatives_know_it():
    q, v = START
    tau = np.zeros(WEIGHTLESS.nv)
    for dt in (None, 1e-3):
        expected = WITH_GRAVITY.state_space(q, v, tau, dt=dt).A
        found = WEIGHTLESS.state_space(q, v, tau, control=Uniform(), dt=dt).A
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        assert np.abs(WEIGHTLESS.state_space(q, v, tau, dt=dt).A - expected).max() > 1e-6


def test_sensitivity_knows_it():
    q, v = START
    tau = np.zeros((3, WEIGHTLESS.nv))
    expected = WITH_GRAVITY.sensitivity(q, v, tau, 1e-3)
    found = WEIGHTLESS.sensitivity(q, v, tau, 1e-3, control=Uniform())
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * max(np.abs(b).max(initial=0.0), 1.0))


@pytest.mark.parametrize("as_function", [True, False])
def test_forces_are_those_on_all_particles_of_a_body_that_deforms(as_function):
    rng = np.random.default_rng(2)
    n = 5
    nodes, masses = rng.normal(size=(n, 3)), rng.uniform(0.5, 1.0, n)
    M = np.diag(np.concatenate([[m, m, m, 1e-10, 1e-10, 1e-10] for m in masses]))
    rigid = np.vstack([np.block([[np.eye(3), np.cross(np.eye(3), r).T], [np.zeros((3, 3)), np.eye(3)]]) for r in nodes])
    A = rng.normal(size=(6 * n, 6 * n))
    apart = np.eye(6 * n) - rigid @ np.linalg.pinv(rigid)
    body = lw.FlexibleBody.from_arrays(nodes, M, apart @ (A @ A.T) @ apart, root=0, keep=range(1, n), modes=3)
    b = lw.ModelBuilder("particles", gravity=(0, 0, 0))
    b.add_body("body", joint=lw.Free(), flexible=body)
    b.add_body("lump", "body", lw.Fixed(), at=4, mass=0.7)
    model = b.build()
    q = model.random_configuration(rng)
    q[:3] = [0.3, -0.2, 0.1]
    field = Linear(rng.normal(size=3), rng.normal(size=(3, 3)), as_function)
    expected = np.zeros(model.nv)
    for k, mass in (*enumerate(masses), (4, 0.7)):
        r = model.pose(q, "body", node=k)[:3, 3]
        J = model.jacobian(q, "body", node=k)[3:]
        expected += J.T @ (mass * (field.g + field.T @ r))
    motion = lw.simulate(model, q, duration=1e-9, control=field, method="rk4", dt=1e-9)
    found = motion.forces().external[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)  # as small as the turning inertia that nodes need


def test_gravity_gradient_turns_a_craft():
    """3μ/r³ c × Jc about the mass centre, and the weight at it."""
    J = np.array([[120.0, 3.0, -2.0], [3.0, 140.0, 5.0], [-2.0, 5.0, 40.0]])
    com = np.array([0.5, -0.3, 0.8])
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("craft", joint=lw.Free(), mass=50.0, com=com, inertia=J)
    craft = b.build()
    q = craft.random_configuration(np.random.default_rng(4))
    q[4:] = [4e6, -5e6, 3e6]
    R = craft.pose(q, "craft")[:3, :3]
    centre = q[4:] + R @ com
    r = np.linalg.norm(centre)
    c = R.T @ centre / r
    motion = lw.simulate(craft, q, duration=1e-9, control=Central(), method="rk4", dt=1e-9)
    moment, force = np.split(motion.f_ext[0, 0], 2)
    weight = -50.0 * MU / r**2 * c
    turning = 3.0 * MU / r**3 * np.cross(c, J @ c)
    np.testing.assert_allclose(force, weight, rtol=1e-13)
    np.testing.assert_allclose(moment - np.cross(com, force), turning, atol=1e-12 * np.abs(np.cross(com, weight)).max())
    reading = lw.IMU("craft").read(motion)[0, 3:]
    assert np.abs(reading).max() < 1e-5  # in free fall: what is left is the tide over half a metre


def test_energy_along_an_orbit_and_its_potential():
    b = lw.ModelBuilder("craft", gravity=(0, 0, 0))
    b.add_body("hub", joint=lw.Free(), mass=50.0, com=(0.5, 0, 0), inertia=np.diag([120.0, 140.0, 40.0]))
    b.add_body("boom", "hub", lw.Revolute(axis=(0, 1, 0)), mass=5.0, com=(0, 0, 10.0), inertia=np.diag([50.0, 50, 1]))
    craft = b.build()
    q = np.array([1.0, 0, 0, 0, 7e6, 0, 0, 0.3])
    v = np.array([0.0, 0, 1e-3, 0, 7500.0, 10.0, 1e-3])
    motion = lw.simulate(craft, q, v, duration=600.0, control=Central(), rtol=1e-12)
    assert np.ptp(motion.energy) < 1e-12 * np.abs(motion.energy).max()
    straight = solve_ivp(
        lambda t, y: [*y[3:], *(-MU * y[:3] / np.linalg.norm(y[:3]) ** 3)],
        (0.0, 600.0),
        [*craft.center_of_mass(q), *(craft.momentum(q, v)[3:] / 55.0)],
        method="DOP853",
        rtol=1e-13,
        atol=1e-6,
    )
    # The whole falls like its mass centre, but for (10 m / 7000 km)² of the weight.
    assert np.abs(craft.center_of_mass(motion.q[-1]) - straight.y[:3, -1]).max() < 1e-4


def test_potential_and_field_belong_together():
    """The field's joint forces are the slope of the energy of a quadratic potential, in modes too."""
    T = np.array([[1.0, 0.2, -0.4], [0.2, -0.5, 0.3], [-0.4, 0.3, 0.8]])
    around = FieldsAroundBodies(WEIGHTLESS)

    def energy(q):
        U = around.potential(q, [lambda r: -(r @ (T @ r)) * 0.5], None)
        return float(WEIGHTLESS._run("field_energy", q, np.array(U, float)))

    motion = lw.simulate(
        WEIGHTLESS, START[0], duration=1e-9, control=Linear(np.zeros(3), T, False), method="rk4", dt=1e-9
    )
    expected = -approx_fprime(START[0], energy, 1e-7)
    np.testing.assert_allclose(motion.forces().external[0], expected, atol=2e-6)


def test_a_force_at_a_node_moves_modes():
    """By the Jacobian of the node, at a point beside it, in world axes."""
    wrench, point = np.array([0.1, 0.2, -0.3, 1.0, -2.0, 3.0]), np.array([0.02, 0.01, -0.03])
    push = lw.BodyForce(WEIGHTLESS, "beam", wrench, frame="world", point=point, node="tip")
    motion = lw.simulate(WEIGHTLESS, *START, duration=1e-9, control=push, method="rk4", dt=1e-9)
    expected = WEIGHTLESS.jacobian(START[0], "beam", node="tip", point=point).T @ wrench
    assert np.abs(expected[1:3]).min() > 1e-3
    np.testing.assert_allclose(motion.forces().external[0], expected, atol=1e-12)


def test_a_field_that_is_no_vector_is_refused():
    class Wrong(lw.Element):
        def acceleration(self, t, q, v, x, p):
            return [1.0, 2.0]

    with pytest.raises(lw.InputError, match="3 numbers in world axes"):
        lw.simulate(WEIGHTLESS, *START, duration=0.01, control=Wrong())
