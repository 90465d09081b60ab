"""Forces and energy of a motion by their causes, and what holds its closures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.derivatives.test_passive_forces import HINGE, ROD, four_bar, pendulum, tendon_arm

METHODS: list[tuple[str, float, dict[str, Any]]] = [
    ("dop853", 1e-8, {"rtol": 1e-10}),
    ("dopri5", 1e-7, {"rtol": 1e-10}),
    ("rodas4", 1e-6, {"rtol": 1e-9}),
    ("rk4", 1e-6, {"dt": 1e-3}),
    ("variational", 1e-4, {"dt": 1e-3}),
    ("generalized_alpha", 1e-3, {"dt": 1e-3}),
]


def busy_motion(**given: Any) -> tuple[lw.Model, lw.Trajectory]:
    """Everything at once: a servo, springs, tendons, dampers, friction, a limit that is hit, a push from outside."""
    b = lw.ModelBuilder("busy")
    springy: dict[str, Any] = {"stiffness": 7.0, "damping": 0.4, "rest": 0.2}
    stop = lw.JointLimits(-0.5, 0.45)
    b.add_body("upper", joint=HINGE, com=(0, 0, -0.5), joint_name="a", limits=stop, **springy, **ROD)
    below = lw.transform(xyz=(0, 0, -1))
    b.add_body("lower", "upper", HINGE, below, com=(0, 0, -0.5), joint_name="b", friction=0.6, **ROD)
    b.add_frame("hook", "world", lw.transform(xyz=(0.8, 0.1, 0.2)))
    way = lw.equipment.PathTransmission(((("hook", "lower"), 1.0),))
    b.add_spring(lw.equipment.Spring("tendon", way, stiffness=20.0, damping=0.5, rest=(0.4, 0.4)))
    model = b.build()
    control = [
        lw.PD(model, [0.8, 0.1], kp=10.0, kd=0.2),
        lw.space.Propulsion(model, lw.space.Thruster("lower", (1, 0, 0), 2.0)),
        lw.JointSprings(model, stiffness=[0.0, 3.0], damping=[0.0, 0.1]),
    ]
    push = {"lower": [0.0, 0.5, 0.0, 1.0, 0.0, -1.0]}
    return model, lw.simulate(model, [0.2, -0.3], [1.0, 2.0], duration=1.5, control=control, f_ext=push, **given)


def test_the_causes_add_up_to_the_motion() -> None:
    model, motion = busy_motion()
    forces = motion.forces()
    needed = model.inverse_dynamics(motion.q, motion.v, motion.vdot)
    np.testing.assert_allclose(forces.total, needed, rtol=1e-9, atol=1e-9)
    for cause in ("control", "springs", "damping", "friction", "limits", "external"):
        assert np.abs(getattr(forces, cause)).max() > 1e-2, cause
    assert not forces.closures.any()
    # Each against its own law.
    np.testing.assert_allclose(forces.friction[:, 1], -0.6 * np.tanh(motion.v[:, 1] / 1e-2), atol=1e-12)
    beyond = (motion.q[:, 0] > 0.45) | (motion.q[:, 0] < -0.5)
    assert beyond.any()
    assert not forces.limits[~beyond].any()
    passive = model.passive_force(motion.q, motion.v)
    elements = np.zeros_like(passive)
    elements[:, 1] = -3.0 * motion.q[:, 1] - 0.1 * motion.v[:, 1]
    np.testing.assert_allclose(forces.springs + forces.damping + forces.friction, passive + elements, atol=1e-9)
    outside = np.zeros((len(motion), 2, 6))
    outside[:, 1] = [0.0, 0.5, 0.0, 1.0, 0.0, -1.0]
    np.testing.assert_allclose(forces.external, model.external_force(motion.q, outside), atol=1e-12)
    outside[:, 1] = [0, 0, 0, 2.0, 0, 0]
    np.testing.assert_allclose(forces.control, motion.tau + model.external_force(motion.q, outside), atol=1e-12)


@pytest.mark.parametrize(("method", "tolerance", "steps"), METHODS)
def test_the_account_closes(method: str, tolerance: float, steps: dict[str, Any]) -> None:
    """To the accuracy of the integration, with all causes at work; what springs did is what they hold no longer."""
    model, motion = busy_motion(method=method, account=True, **steps)
    account = motion.energy_account()
    size = max(np.abs(work).max() for work in account.work.values())
    assert size > 1.0
    assert np.abs(account.unexplained).max() < tolerance * size
    assert account.work["damping"][-1] < 0.0
    assert account.work["friction"][-1] < 0.0
    assert motion.x.shape[-1] == 0
    if method == "dop853":
        stored = motion.energy - model.kinetic_energy(motion.q, motion.v) - model.potential_energy(motion.q)
        inside = (motion.q[:, 0] < 0.45) & (motion.q[:, 0] > -0.5)  # where the springs of limits hold nothing
        change = -(stored - stored[0])[inside]
        np.testing.assert_allclose(account.work["springs"][inside], change, atol=1e-8 * size)


def test_it_is_the_same_motion_with_an_account() -> None:
    _, plain = busy_motion(method="rk4", dt=1e-3)
    _, told = busy_motion(method="rk4", dt=1e-3, account=True)
    np.testing.assert_allclose(plain.q, told.q, rtol=1e-12, atol=1e-13)
    with pytest.raises(lw.LinkwiseError, match="account=True"):
        plain.energy_account()


def test_a_damper_in_closed_form() -> None:
    """m v̇ = -c v: of ½mv², 1 - exp(-2ct/m) has gone into the damper."""
    b = lw.ModelBuilder("sledge", gravity=(0, 0, 0))
    b.add_body("a", joint=lw.Prismatic((1, 0, 0)), mass=2.0, damping=0.8)
    motion = lw.simulate(b.build(), [0.0], [3.0], duration=2.0, account=True, rtol=1e-11)
    account = motion.energy_account()
    np.testing.assert_allclose(account.work["damping"], -9.0 * (1 - np.exp(-0.8 * motion.t)), atol=1e-8)
    np.testing.assert_allclose(account.kinetic, account.work["damping"], atol=1e-8)
    assert "work of damping -7.18 J" in str(account)


def test_what_a_spring_does_to_the_forces_in_a_four_bar() -> None:
    """λ of the motion with the spring's force: against Newton's law for the right rod, which no spring touches."""
    model = four_bar(stiffness=60.0, damping=2.0, friction=0.5, rest=1.2)
    motion = lw.simulate(model, model.assemble([0.3, -0.3, 0.3]), duration=0.5, account=True)
    found = motion.constraint_forces()
    zero = np.zeros_like(motion.v)
    wrong = model.constraint_forces(motion.q, motion.v, zero)
    assert np.abs(found.wrenches - wrong.wrenches).max() > 10.0
    # Moments about the hinge of the right rod: I θ̈ = m g l sin θ + the pin's force on it.
    angle = motion.q[:, 2]
    pin = found.wrenches[:, 0, 3:]  # on the right rod, in its axes, one metre above its hinge
    moment = pin[:, 0] * 1.0 + 9.81 * 0.5 * np.sin(angle)
    np.testing.assert_allclose((1 / 12 + 0.25) * motion.vdot[:, 2], moment, rtol=1e-7, atol=1e-7)
    J = model.constraints.jacobian(motion.q)
    efforts = np.einsum("tij,ti->tj", J, found.multipliers)
    np.testing.assert_allclose(efforts, motion.forces().closures, atol=1e-8)
    account = motion.energy_account()
    assert np.abs(account.unexplained).max() < 1e-8
    assert np.abs(account.work["closures"]).max() < 1e-9


def test_a_prescribed_motion_does_work() -> None:
    """A crank that is kept at its speed against a damper and a spring: the drive pays for it all."""
    b = lw.ModelBuilder("crank")
    b.add_body("crank", joint=HINGE, joint_name="main", com=(0, 0, -0.5), damping=0.3, **ROD)
    model = b.build().with_coupling("drive", lw.closures.Prescribed("main", lambda t: 4.0 * t))
    motion = lw.simulate(model, [0.0], [4.0], duration=0.7, account=True)
    lost = 0.3 * 16.0 * motion.t
    account = motion.energy_account()
    np.testing.assert_allclose(account.work["closures"], lost + 9.81 * 0.5 * (1 - np.cos(4.0 * motion.t)), atol=1e-8)
    torque = 0.3 * 4.0 + 9.81 * 0.5 * np.sin(4.0 * motion.t)
    np.testing.assert_allclose(motion.constraint_forces().multipliers[:, 0], torque, atol=1e-7)


def test_released_closures_hold_nothing() -> None:
    model = four_bar(stiffness=60.0)
    q = model.assemble([0.3, -0.3, 0.3])
    motion = lw.simulate(model, q, duration=0.2, released="pin")
    assert not motion.forces().closures.round(9).any()
    assert not motion.constraint_forces().wrenches.any()


def test_events_and_flexible_bodies_are_in_the_account() -> None:
    b = lw.ModelBuilder("ball")
    b.add_body("ball", joint=lw.Prismatic((0, 0, 1)), mass=1.0, damping=0.1)
    bounce = lw.Event(lambda t, q, v, p: q[0], direction=-1, action=lambda t, q, v: (q, -0.8 * v))
    motion = lw.simulate(b.build(), [1.0], duration=1.5, events=bounce, account=True)
    account = motion.energy_account()
    assert account.events[-1] < -1.0
    assert np.abs(account.unexplained).max() < 1e-8

    stiff: dict[str, Any] = {"EA": 1e4, "EI": (10.0, 10.0), "GJ": 10.0, "damping": 0.02}
    beam = lw.FlexibleBody.beam(length=1.0, mass_per_length=1.0, elements=4, modes=3, **stiff)
    b = lw.ModelBuilder("arm")
    b.add_body("arm", joint=HINGE, flexible=beam, damping=0.05)
    motion = lw.simulate(b.build(), b.build().neutral(), duration=0.5, account=True, rtol=1e-10)
    account = motion.energy_account()
    assert account.work["damping"][-1] < -1e-6
    assert np.abs(account.unexplained).max() < 1e-7


def test_batches_files_and_samples_between(tmp_path: Path) -> None:
    model = tendon_arm()
    rng = np.random.default_rng(0)
    q = model.integrate(model.neutral(), 0.2 * rng.normal(size=(3, model.nv)))
    motion = lw.simulate(model, q, duration=0.3, account=True)
    assert motion.forces().springs.shape == motion.v.shape
    np.testing.assert_array_equal(motion[1].forces().damping, motion.forces().damping[1])
    assert np.abs(motion.energy_account().unexplained).max() < 1e-7
    again = lw.Trajectory.load(motion.save(tmp_path / "motion.npz"), model=model)
    np.testing.assert_array_equal(again.forces().total, motion.forces().total)
    np.testing.assert_allclose(again.energy_account().unexplained, motion.energy_account().unexplained)
    between = motion.at(0.5 * (motion.t[:-1] + motion.t[1:]))
    needed = model.inverse_dynamics(between.q, between.v, between.vdot)
    np.testing.assert_allclose(between.forces().total, needed, atol=1e-2)


def test_a_motion_from_elsewhere_has_no_causes() -> None:
    model = pendulum()
    with pytest.raises(lw.LinkwiseError, match="force:control"):
        lw.Trajectory([0.0], [[0.0]], [[0.0]], model=model).forces()
