"""Systems of python-control: gains, responses and equilibria beside SciPy and our own simulations."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are, solve_discrete_are

import linkwise as lw
from linkwise.samples import planar_arm

control = pytest.importorskip("control")


def cart_and_pole():
    b = lw.ModelBuilder("cart and pole")
    b.add_body("cart", joint=lw.Prismatic((1, 0, 0)), joint_name="rail", mass=1.0, damping=0.5)
    b.add_body("pole", "cart", lw.Revolute((0, 1, 0)), joint_name="hinge", mass=0.3, com=(0, 0, 0.5), damping=0.01)
    return b.build()


def test_lqr_of_a_state_space_is_that_of_riccatis_equation():
    model = cart_and_pole()
    system = lw.control.as_state_space(model, [0.0, 0.0], actuated=["rail"])
    assert system.input_labels == ["tau:rail"]
    assert system.state_labels == ["q:rail", "q:hinge", "v:rail", "v:hinge"]
    Q, R = np.diag([1.0, 10.0, 1.0, 1.0]), np.array([[0.1]])
    K, _, poles = control.lqr(system, Q, R)
    A, B = model.state_space([0, 0], [0, 0], [0, 0], actuated=["rail"])
    np.testing.assert_allclose(K, np.linalg.solve(R, B.T @ solve_continuous_are(A, B, Q, R)), rtol=1e-8)
    assert np.real(poles).max() < 0
    sampled = lw.control.as_state_space(model, [0.0, 0.0], actuated=["rail"], dt=0.01)
    A, B = model.state_space([0, 0], [0, 0], [0, 0], actuated=["rail"], dt=0.01)
    P = solve_discrete_are(A, B, Q, R)
    K, _, _ = control.dlqr(sampled, Q, R)
    np.testing.assert_allclose(K, np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A), rtol=1e-6)
    assert sampled.dt == 0.01


def test_nonlinear_system_responds_as_simulate_and_linearises_to_the_state_space():
    model = cart_and_pole()
    system = lw.control.as_nlsys(model, actuated=["rail"])
    times = np.linspace(0.0, 1.0, 21)
    response = control.input_output_response(
        system, times, np.full(len(times), 0.3), [0.0, 0.2, 0.0, 0.0], solve_ivp_kwargs={"rtol": 1e-10, "atol": 1e-12}
    )
    held = lw.Torque([0.0, 1.0], [[0.3, 0.0], [0.3, 0.0]])
    ours = lw.simulate(model, [0.0, 0.2], duration=1.0, control=held, rtol=1e-11, output_times=times)
    np.testing.assert_allclose(response.states, np.concatenate([ours.q, ours.v], axis=1).T, atol=1e-7)
    linear = system.linearize([0.0, 0.0, 0.0, 0.0], [0.0])
    exact = lw.control.as_state_space(model, [0.0, 0.0], actuated=["rail"])
    np.testing.assert_allclose(linear.A, exact.A, atol=1e-4)
    np.testing.assert_allclose(linear.B, exact.B, atol=1e-4)


def test_forces_that_hold_are_the_point_of_linearisation():
    arm = planar_arm(2)
    q = [0.3, -0.2]
    system = lw.control.as_state_space(arm, q)
    A, _ = arm.state_space(q, [0, 0], arm.statics.force(q))
    np.testing.assert_array_equal(system.A, A)
