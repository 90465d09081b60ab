"""The compiled functions of closed models: batches, out, threads, precisions, parameters, time, rolled, symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import linkwise as lw
from linkwise import samples
from linkwise.functions.rolled.rolled_function import ManyLinksFunction
from tests.catalogue_methods import method_of
from tests.closures.mechanisms import EagerModel

Array = Any


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return samples.four_bar(2)


@pytest.fixture(scope="module")
def states(model: lw.Model) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(0)
    pattern = np.array([1, -1, 1, -1, 1.0])
    q = model.assemble(pattern * rng.uniform(0.2, 1.2, size=(21, 1)) + 0.05 * rng.normal(size=(21, 5)))
    v = model.constraints.project_velocity(q, rng.normal(size=(21, 5)))
    return q, v, rng.normal(size=(21, 5)), rng.normal(size=(21, 5, 6))


def _same(x: Any, y: Any) -> bool:
    pairs = zip(x, y, strict=True) if isinstance(x, tuple) else [(x, y)]
    return all(np.array_equal(a, b) for a, b in pairs)


def test_batches_are_bit_equal_to_single_states(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, f_ext = states
    calls = {
        "forward_dynamics": (q, v, tau, f_ext),
        "constraint_forces": (q, v, tau, f_ext),
        "closure_error": (q,),
        "closure_rate": (q, v + 1.0),
        "constraint_jacobian": (q,),
        "constraint_bias": (q, v),
        "project_velocity": (q, v + 1.0),
        "project_configuration": (q + 1e-3,),
        "impulse": (q, v + 1.0),
    }
    for name, arguments in calls.items():
        whole = method_of(model, name)(*arguments)
        split = method_of(model, name)(*arguments, threads=2)
        assert _same(whole, split), name
        for k in (0, 7, 20):
            one = method_of(model, name)(*(a[k] for a in arguments))
            part = tuple(x[k] for x in whole) if isinstance(whole, tuple) else whole[k]
            assert _same(one, part), name
    out = np.empty((21, 5))
    assert model.forward_dynamics(q, v, tau, out=out) is out
    assert _same(out, model.forward_dynamics(q, v, tau))


def test_named_tuples(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, _ = states
    forces = model.constraint_forces(q, v, tau)
    assert forces.multipliers.shape == (21, 10)
    assert forces.wrenches.shape == (21, 2, 6)
    caught = model.constraints.impulse(q, v + 1.0)
    np.testing.assert_allclose(caught.v, model.constraints.project_velocity(q, v + 1.0), atol=1e-13)
    # 𝓜(v⁺ - v) = J_c*P, and the energy that is lost is half of impulse times relative velocity.
    J, M = model.constraints.jacobian(q), model.mass_matrix(q)
    change = np.einsum("kij,kj->ki", M, caught.v - v - 1.0)
    np.testing.assert_allclose(change, np.einsum("kij,ki->kj", J, caught.impulses), atol=1e-11)
    lost = model.kinetic_energy(q, v + 1.0) - model.kinetic_energy(q, caught.v)
    np.testing.assert_allclose(lost, -0.5 * (caught.impulses * model.constraints.rate(q, v + 1.0)).sum(-1), atol=1e-11)
    assert (lost > 0).all()


def test_compiled_is_what_the_text_says_on_floats(model: lw.Model, states: tuple[Array, ...]) -> None:
    eager = EagerModel.of(model)
    q, v, tau, f_ext = (x[3] for x in states)
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, tau, f_ext), eager.forward_dynamics(q, v, tau, f_ext), rtol=1e-11, atol=1e-11
    )


def test_solvers_by_name_agree(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, f_ext = states
    expected = model.forward_dynamics(q, v, tau, f_ext)
    forces = model.constraint_forces(q, v, tau, f_ext)
    caught = model.constraints.impulse(q, v + 1.0)
    for solver in ("multipliers", "kkt", "nullspace"):
        other = model.with_closure_solver(solver)
        atol = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(other.forward_dynamics(q, v, tau, f_ext), expected, rtol=0, atol=atol)
        for x, y in zip(other.constraint_forces(q, v, tau, f_ext), forces, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.abs(y).max())
        for x, y in zip(other.constraints.impulse(q, v + 1.0), caught, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.abs(y).max())
    with pytest.raises(lw.errors.UnknownNameError, match="closure solver"):
        model.with_closure_solver("kkd")


def test_single_precision(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, _ = (x.astype(np.float32) for x in states)
    found = model.forward_dynamics(q, v, tau)
    assert found.dtype == np.float32
    expected = model.forward_dynamics(*(x.astype(float) for x in (q, v, tau)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())


def test_many_digits(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, _ = (x[5] for x in states)
    with mpmath.workdps(40):
        exact = model.forward_dynamics(*(np.array([mpmath.mpf(float(x)) for x in a], object) for a in (q, v, tau)))
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), np.array(exact, float), rtol=1e-11, atol=1e-11)


def test_parameters_move_the_loop(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, _ = states
    own = model.with_parameters(["rod1.mass", "rod1.xyz"])
    np.testing.assert_allclose(own.forward_dynamics(q, v, tau), model.forward_dynamics(q, v, tau), rtol=1e-12)
    p = np.array([2.5, 1.1, 0.0, 0.05])
    moved = own.assemble(q[:3], p=p)
    assert np.abs(own.closure_error(moved, p=p)).max() < 1e-12
    assert np.abs(own.closure_error(moved)).max() > 1e-3
    w = own.constraints.project_velocity(moved, v[:3], p=p)
    builder = lw.ModelBuilder("other")
    for body, joint in zip(model.bodies, model.joints, strict=True):
        place = np.array(body.placement)
        if body.name == "rod1":
            place[:3, 3] = p[1:]
        (part,) = body.parts
        xx, yy, zz, *_ = part.inertia
        parent = "world" if body.parent < 0 else model.bodies[body.parent].name
        mass = p[0] if body.name == "rod1" else part.mass
        builder.add_body(body.name, parent, joint.type, place, mass=mass, com=part.com, inertia=np.diag([xx, yy, zz]))
    other = EagerModel.of(builder.build())
    for c in model.closures:
        a, b = model.bodies[c.body_a].name, model.bodies[c.body_b].name
        other = other.with_closure(c.name, a, np.array(c.placement_a), b, np.array(c.placement_b), joint=c.type)
    found = own.forward_dynamics(moved, w, tau[:3], p=p)
    expected = other.forward_dynamics(moved, w, tau[:3])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_rolled_gives_what_unrolled_gives(model: lw.Model, states: tuple[Array, ...]) -> None:
    q, v, tau, f_ext = states
    rolled = model.with_sweeps("rolled")
    assert isinstance(rolled.function("constraint_forces"), ManyLinksFunction)
    for name, arguments in {
        "forward_dynamics": (q, v, tau, f_ext),
        "constraint_forces": (q, v, tau),
        "constraint_jacobian": (q,),
        "impulse": (q, v + 1.0),
        "project_configuration": (q + 1e-3,),
    }.items():
        ours, other = method_of(rolled, name)(*arguments), method_of(model, name)(*arguments)
        for x, y in zip(ours, other, strict=True) if isinstance(other, tuple) else [(ours, other)]:
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-8 * np.abs(y).max(), err_msg=name)


def test_time() -> None:
    driven = samples.slider_crank().with_coupling(
        "drive", lw.closures.Prescribed("main", lambda t: 2.0 * t + lw.math.sin(t))
    )
    t = np.linspace(0.0, 1.0, 5)
    q = driven.assemble(np.zeros(3), t=t)
    np.testing.assert_allclose(q[:, 0], 2.0 * t + np.sin(t), atol=1e-12)
    v = driven.constraints.project_velocity(q, np.zeros(3), t=t)
    np.testing.assert_allclose(v[:, 0], 2.0 + np.cos(t), atol=1e-12)
    vdot = driven.forward_dynamics(q, v, np.zeros(3), t=t)
    np.testing.assert_allclose(vdot[:, 0], -np.sin(t), atol=1e-11)
    np.testing.assert_allclose(driven.forward_dynamics(q[2], v[2], np.zeros(3), t=0.5), vdot[2], atol=1e-12)
    # The multiplier of the drive is the torque that a motor would need.
    torque = driven.constraint_forces(q, v, np.zeros(3), t=t).multipliers[:, -1]
    free = samples.slider_crank()
    tau = np.zeros((5, 3))
    tau[:, 0] = torque
    np.testing.assert_allclose(free.forward_dynamics(q, v, tau), vdot, atol=1e-9)
    motor = free.inverse_dynamics(q, v, vdot, actuated=["main"])
    np.testing.assert_allclose(motor, tau, atol=1e-9)


def test_time_that_would_not_count_is_refused() -> None:
    driven = samples.slider_crank().with_coupling("drive", lw.closures.Prescribed("main", lambda t: 2.0 * t))
    q = driven.assemble(np.zeros(3), t=0.3)
    v = driven.constraints.project_velocity(q, np.zeros(3), t=0.3)
    vdot = driven.forward_dynamics(q, v, np.zeros(3), t=0.3)
    with pytest.raises(lw.InputError, match="given t") as refused:
        driven.inverse_dynamics(q, v, vdot, t=0.3)
    assert "actuated=[" in str(refused.value)
    motor = driven.inverse_dynamics(q, v, vdot, actuated=["main"], t=0.3)
    assert np.isfinite(motor).all()
    both = driven.inverse_dynamics(q, v, vdot, actuated=["main"], t=np.array([0.3, 0.3]))
    np.testing.assert_allclose(both, np.stack([motor, motor]), atol=1e-12)
    # Closures that do not depend on it: without effect, as in forward_dynamics.
    crank = samples.slider_crank()
    np.testing.assert_array_equal(crank.inverse_dynamics(q, v, vdot, t=0.3), crank.inverse_dynamics(q, v, vdot))


def test_one_step_towards_closure_squares_the_error(model: lw.Model, states: tuple[Array, ...]) -> None:
    q = states[0] + 1e-3 * np.random.default_rng(0).normal(size=(21, 5))
    before = np.abs(model.closure_error(q)).max(-1)
    after = np.abs(model.closure_error(model.constraints.project_configuration(q))).max(-1)
    assert (after < 20.0 * before**2).all()


def test_models_without_closures_answer_too() -> None:
    arm = samples.planar_arm(2)
    x = np.array([0.1, 0.2])
    assert arm.closure_error(x).shape == (0,)
    assert arm.constraints.jacobian(x).shape == (0, 2)
    assert arm.constraint_forces(x, x, x).wrenches.shape == (0, 6)
    np.testing.assert_array_equal(arm.constraints.project_velocity(x, x), x)
    np.testing.assert_array_equal(arm.assemble(x), x)
    assert arm.freedoms(x).count == 2
    np.testing.assert_array_equal(arm.forward_dynamics(x, x, x, t=1.0), arm.forward_dynamics(x, x, x))
    for asked in (arm.assemble, arm.constraints.check, arm.freedoms):
        with pytest.raises(lw.InputError, match="no run-time parameters"):
            asked(x, p=[1.0])


def test_copies_and_pickles_keep_the_solver(model: lw.Model) -> None:
    import pickle

    assert pickle.loads(pickle.dumps(model.with_closure_solver("kkt")))._closure_solver == "kkt"


@pytest.mark.parametrize("sweeps", ["unrolled", "rolled"])
def test_without_closures_time_is_checked_and_has_no_effect(sweeps: Any) -> None:
    arm = samples.planar_arm(2).with_sweeps(sweeps)
    motors = [joint.name for joint in arm.joints]
    x = np.array([0.1, 0.2])
    times = np.array([0.0, 0.3, np.nan])  # part of the batch, as in forward_dynamics
    calls: dict[str, Callable[..., Any]] = {
        "forward_dynamics": lambda **t: arm.forward_dynamics(x, x, x, **t),
        "inverse_dynamics": lambda **t: arm.inverse_dynamics(x, x, x, **t),
        "inverse_dynamics, actuated": lambda **t: arm.inverse_dynamics(x, x, x, actuated=motors, **t),
        "perturb_forward": lambda **t: arm.perturb_forward(x, x, x, x, x, x, **t),
        "linearize_forward": lambda **t: arm.linearize_forward(x, x, x, **t).dq,
        "linearize_forward, second order": lambda **t: arm.linearize_forward(x, x, x, order=2, **t).dqdq,
    }
    for name, call in calls.items():
        with pytest.raises(lw.InputError, match=r"t of .* is not made of real numbers"):
            call(t="abc")
        expected = call()
        np.testing.assert_array_equal(call(t=0.3), expected, err_msg=name)
        np.testing.assert_array_equal(call(t=times), np.stack([expected] * 3), err_msg=name)
