"""What is solved beside contacts: joint limits and dry friction, closures, joints that follow, flexible bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import linkwise as lw
from linkwise.samples import four_bar, stewart_platform
from tests.contact.scenes import G, block, contact, shape

BALL = shape("sphere", (0.05,))
FAR = lw.Ground(tuple(map(tuple, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -100.0], [0, 0, 0, 1]])))
"""A ground that nothing reaches."""


def pendulum(**joint: object) -> lw.Model:
    """Of 2 kg at 0.5 m, horizontal at zero, falling for positive angles."""
    b = lw.ModelBuilder("pendulum")
    b.add_body("bob", joint=lw.Revolute(axis=(0, 1, 0)), mass=2.0, com=(0.5, 0, 0), collisions=[BALL], **joint)  # type: ignore[arg-type]
    return b.build().with_contacts(FAR)


def test_an_arm_held_by_friction_does_not_creep() -> None:
    held = pendulum(friction=2.0 * G * 0.5 * 1.001)
    run = lw.simulate(held, [0.0], duration=5.0, dt=0.002, method="moreau")
    assert np.abs(run.q).max() < 1e-15


def test_a_slider_with_dry_friction_slides_as_coulomb_says() -> None:
    b = lw.ModelBuilder("slider")
    b.add_body("block", joint=lw.Prismatic(axis=(1, 0, 0)), mass=2.0, friction=3.0, collisions=[BALL])
    model = b.build().with_contacts(FAR)
    run = lw.simulate(model, [0.0], [3.0], duration=3.0, dt=0.001, method="moreau")
    assert run.q[-1, 0] == pytest.approx(2.0 * 9.0 / (2 * 3.0), abs=1e-6)
    assert np.ptp(run.q[run.t > 2.1]) == 0.0
    pushed = lw.simulate(model, [0.0], duration=1.0, dt=0.001, method="moreau", control=lambda t, q, v, p: [4.0])
    assert pushed.q[-1, 0] == pytest.approx(0.5 * (4.0 - 3.0) / 2.0, rel=1e-9)


def test_friction_is_left_out_where_rules_say_so() -> None:
    model = pendulum(friction=100.0)
    run = lw.simulate(model, [0.0], duration=0.1, dt=0.001, method="moreau", rules=lw.JointRules(friction=False))
    assert run.q[-1, 0] > 0.05


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_rigid_limit_stops_a_joint(side: float) -> None:
    limits = lw.JointLimits(-0.3, 0.3)
    model = pendulum(limits=limits).with_gravity((0.0, 0.0, -side * G))
    run = lw.simulate(model, [0.0], duration=2.0, dt=0.002, method="moreau", limits="rigid")
    assert np.abs(run.q).max() <= 0.3 + 1e-8
    assert run.q[-1, 0] == pytest.approx(0.3 * side, abs=1e-8)
    torque = 2.0 * G * 0.5 * np.cos(0.3)
    assert contact(run, "impulses")[-1, -1] / 0.002 == pytest.approx(-side * torque, rel=1e-9)  # towards the middle


def chain(solver: Any, *, limited: bool) -> lw.Model:
    """Three rods with ranges of a radian."""
    b, rules = lw.ModelBuilder("chain"), lw.ContactRules(joint_limits=limited, solver=solver, passes=1)
    rod: dict[str, Any] = {"mass": 1.0, "com": (0, 0, -0.5), "inertia": np.diag([0.1, 0.1, 0.01]), "collisions": [BALL]}
    hinge: dict[str, Any] = {"joint": lw.Revolute(axis=(0, 1, 0)), "limits": lw.JointLimits(-0.5, 0.5)}
    for k in range(3):
        up = lw.transform(xyz=(0, 0, -1.0 if k else 0.0))
        b.add_body(f"rod {k}", parent=f"rod {k - 1}" if k else "world", placement=up, **rod, **hinge)
    return b.build().with_contacts(FAR, rules=rules, between=[])


@pytest.mark.parametrize("solver", ["dual", "primal"])
@pytest.mark.parametrize(("speed", "part"), [(0.3, 1.0), (30.0, 1.0), (100.0, 0.97)])
def test_joints_thrown_across_their_ranges_stop_at_either_end(solver: Any, speed: float, part: float) -> None:
    """The velocity at the end is the one nearest to that without ends, in the metric of the mass matrix, that leads to
    none beyond them: SciPy's solution."""
    rng, h = np.random.default_rng(0), 0.004
    model, free = (chain(solver, limited=limited) for limited in (True, False))
    q, v, tau = rng.uniform(-0.5, 0.5, (400, 3)), speed * rng.normal(size=(400, 3)), 100.0 * rng.normal(size=(400, 3))
    found, wanted = model.contact_step(q, v, tau, dt=h), free.contact_step(q, v, tau, dt=h)
    solved = np.asarray(found.residuals)[:, 0] < 1e-6
    assert solved.mean() >= part
    assert np.abs(found.q).max() < 0.5 + 1e-7
    factors = np.linalg.cholesky(model.mass_matrix(q + 0.5 * h * v)).swapaxes(-1, -2)
    both_ends = 0
    for k in np.flatnonzero(solved):
        ends = (-0.5 - q[k]) / h, (0.5 - q[k]) / h
        nearest = lsq_linear(factors[k], factors[k] @ wanted.v[k], ends, tol=1e-14, method="bvls")
        np.testing.assert_allclose(found.v[k], nearest.x, rtol=0.0, atol=1e-5 * (1.0 + np.abs(wanted.v[k]).max()))
        both_ends += {-1, 1} <= set(nearest.active_mask.tolist())
    assert speed < 50.0 or both_ends > 10


@pytest.mark.parametrize("start", [0.6, -2.0])
def test_a_joint_that_begins_beyond_its_range_comes_back_gently(start: float) -> None:
    model = pendulum(limits=lw.JointLimits(-0.5, 0.5)).with_gravity((0.0, 0.0, 0.0))
    model = model.with_contacts(FAR, rules=lw.ContactRules(joint_limits=True))
    q, v = np.array([start]), np.zeros(1)
    for _ in range(100):
        last, (q, v, *_) = q, model.contact_step(q, v, np.zeros(1), dt=0.002)
        assert q[0] - last[0] == pytest.approx(-np.sign(start) * 0.1 * 0.002, rel=1e-9)


@pytest.mark.parametrize("friction", [0.8, 1.0])
def test_an_arm_that_its_own_friction_wedges_presses_with_no_more_than_its_fall_needed(friction: float) -> None:
    """The rest of an overlap after a blow, below a nanometre, asked for 400 and 1300 kN for ever after."""
    b = lw.ModelBuilder("arm")
    tip = np.eye(4)
    tip[0, 3] = 1.0
    given: dict[str, Any] = {
        "mass": 2.0,
        "com": (0.5, 0, 0),
        "inertia": np.diag([0.1] * 3),
        "collisions": [shape("sphere", (0.02,), tip)],
    }
    b.add_body("arm", joint=lw.Revolute(axis=(0, 1, 0)), placement=lw.transform(xyz=(0, 0, 0.8)), **given)
    model = b.build().with_contacts(lw.Ground(), material=lw.Material(friction=friction))
    run = lw.simulate(model, [0.0], duration=2.0, dt=0.002, method="moreau")
    (q,), force = run.q[-1], run.contacts.force[-1, 0]
    assert np.abs(run.v[-1]).max() < 1e-12
    assert np.abs(force).max() < np.abs(run.contacts.force).max() < 1000.0
    from_joint = np.array([np.cos(q), 0.0, -np.sin(q) - 0.02])
    assert np.cross(from_joint, force)[1] == pytest.approx(-2.0 * G * 0.5 * np.cos(q), abs=1e-8)


def test_rigid_limits_are_for_steps_with_contact() -> None:
    with pytest.raises(lw.InputError, match="rigid"):
        lw.simulate(pendulum(limits=lw.JointLimits(-0.3, 0.3)), [0.0], limits="rigid", method="rk4")


def followers(**options: object) -> lw.Model:
    """A slide, and another that falls twice as far: as if one mass of m₁ + 4 m₂ felt the weight of m₁ + 2 m₂."""
    b = lw.ModelBuilder("followers")
    down = {"joint": lw.Prismatic(axis=(0, 0, -1)), "collisions": [BALL]}
    b.add_body("first", mass=1.0, joint_name="lead", **down)  # type: ignore[arg-type]
    high = np.eye(4)
    high[0, 3] = 1.0
    mimic = lw.Mimic("lead", multiplier=2.0)
    b.add_body("second", mass=3.0, mimic=mimic, placement=high, **down, **options)  # type: ignore[arg-type]
    return b.build()


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_joints_that_follow_others_fall_and_touch(solver: Any) -> None:
    ground = np.eye(4)
    ground[2, 3] = -0.55
    model = followers().with_contacts(lw.Ground(ground), only=["second"], rules=lw.ContactRules(solver=solver))
    dt = 0.001
    run = lw.simulate(model, [0.0], duration=1.0, dt=dt, method="moreau")
    a = (1.0 + 2 * 3.0) * G / (1.0 + 4 * 3.0)
    early = run.t < 0.2
    assert run.v[early, 0] == pytest.approx(a * run.t[early], abs=1e-12)
    assert run.q[-1, 0] == pytest.approx(0.25, abs=1e-8)
    assert contact(run, "impulses")[-1, 0] / dt == pytest.approx((1.0 + 2 * 3.0) * G / 2.0, rel=1e-9)


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_friction_of_a_joint_that_follows_counts_at_its_own_rate(solver: Any) -> None:
    held = followers(friction=(1.0 + 2 * 3.0) * G / 2.0 * 1.001).with_contacts(
        FAR, rules=lw.ContactRules(solver=solver)
    )
    run = lw.simulate(held, [0.0], duration=0.5, dt=0.001, method="moreau")
    assert np.abs(run.q).max() < 1e-14


def ball_on(model: lw.Model, name: str, at: tuple[float, float, float]) -> lw.Model:
    """The model with a ball for contact on one of its bodies."""
    from dataclasses import replace

    placement = np.eye(4)
    placement[:3, 3] = at
    given = shape("sphere", (0.01,), placement)
    bodies = tuple(replace(b, collisions=(given,)) if b.name == name else b for b in model.bodies)
    return replace(model, bodies=bodies)


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_a_closed_mechanism_swings_as_without_contacts(solver: Any) -> None:
    bare = four_bar(1)
    q0 = bare.assemble(bare.neutral())
    v0 = bare.constraints.project_velocity(q0, np.ones(bare.nv))
    model = ball_on(bare, bare.bodies[-1].name, (0, 0, 0)).with_contacts(FAR, rules=lw.ContactRules(solver=solver))
    exact = lw.simulate(bare, q0, v0, duration=1.0, output_times=[0.0, 1.0])
    off = []
    for dt in (0.002, 0.001):
        run = lw.simulate(model, q0, v0, duration=1.0, dt=dt, method="moreau")
        assert np.abs(model.closure_error(run.q)).max() < 1e-13
        off.append(np.abs(run.q[-1] - exact.q[-1]).max())
    assert off[1] < 1e-4
    assert off[0] / off[1] == pytest.approx(4.0, abs=0.5)


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_a_closed_mechanism_falls_on_the_ground_and_stands(solver: Any) -> None:
    """By virtual work a parallelogram of three rods presses with twice a rod's weight where its corner stands."""
    model = ball_on(four_bar(1), "rod1", (0.0, 0.0, 1.0))
    ground = np.eye(4)
    ground[2, 3] = 0.4
    model = model.with_contacts(
        lw.Ground(ground), only=["rod1"], material=lw.Material(friction=0.0), rules=lw.ContactRules(solver=solver)
    )
    q0 = model.assemble([0.1, -0.1, 0.1])
    run = lw.simulate(model, q0, duration=3.0, dt=0.001, method="moreau")
    assert np.abs(model.closure_error(run.q)).max() < 1e-13
    assert np.diff(run.energy).max() < 1e-5
    assert contact(run, "gaps").min() > -1e-6
    assert np.abs(run.v[-1]).max() < 1e-12
    assert run.q[-1, 0] == pytest.approx(np.arccos(0.41), abs=1e-7)
    assert contact(run, "impulses")[-1, 0] / 0.001 == pytest.approx(2 * G, rel=1e-9)


@pytest.mark.parametrize("solver", ["dual", "primal"])
def test_a_stewart_platform_comes_down_on_a_foot(solver: Any) -> None:
    """Six legs, closed by 18 equations, that carry nothing: the foot under the plate takes what they leave to it."""
    bare = stewart_platform()
    ground = np.eye(4)
    ground[2, 3] = 1.2 - 0.02 - 0.1
    model = ball_on(bare, "plate", (0.0, 0.0, -0.01)).with_contacts(
        lw.Ground(ground), only=["plate"], rules=lw.ContactRules(solver=solver)
    )
    q0 = model.assemble(model.neutral())
    run = lw.simulate(model, q0, duration=0.5, dt=0.001, method="moreau")
    assert np.abs(model.closure_error(run.q)).max() < 1e-13
    assert np.abs(model.constraints.rate(run.q, run.v)).max() < 1e-12
    assert abs(contact(run, "gaps")[-1, 0]) < 1e-9
    assert np.abs(run.v[-1]).max() < 1e-5
    q, dt = run.q[-1], 0.001
    normal = contact(run, "impulses")[-1, 0] / dt
    # What gravity does along the plate's way down is what the foot does against it, whatever the legs carry.
    down = model.constraints.project_velocity(q, -model.jacobian(q, "plate")[5])
    rate = (model.jacobian(q, "plate", point=[0.0, 0.0, -0.02]) @ down)[5]
    assert model.gravity_force(q) @ down == pytest.approx(normal * rate, rel=1e-4)


def test_a_flexible_beam_rests_on_its_tip() -> None:
    beam = lw.FlexibleBody.beam(
        length=1.0, EA=4e6, EI=(300.0, 300.0), GJ=230.0, mass_per_length=0.5, modes=(2, 2), axial_modes=0, damping=0.1
    )
    b = lw.ModelBuilder("cantilever")
    b.add_body("arm", joint=lw.Revolute(axis=(0, 1, 0)), flexible=beam)
    b.add_body("foot", parent="arm", at="tip", mass=0.2, collisions=[shape("sphere", (0.02,))])
    ground = np.eye(4)
    ground[2, 3] = -0.3
    bare = b.build()
    model = bare.with_contacts(lw.Ground(ground), material=lw.Material(friction=0.0))
    q0 = np.zeros(model.nq)
    run = lw.simulate(model, q0, duration=4.0, dt=0.0005, method="moreau")
    q = run.q[-1]
    assert np.abs(run.v[-1]).max() < 1e-6
    at = model.pose(q, "arm", node="tip")
    assert at[2, 3] - 0.02 == pytest.approx(-0.3, abs=1e-7)
    normal = contact(run, "impulses")[-1, 0] / 0.0005
    assert normal > 1.0
    J = model.jacobian(q, "arm", node="tip")
    assert model.gravity_force(q) == pytest.approx(J[5] * normal, abs=1e-4)
    soft = bare.with_contacts(lw.Ground(ground), material=lw.Material(friction=0.0, stiffness=1e4))
    q[-1] += 1e-3
    depth = -0.3 - (model.pose(q, "arm", node="tip")[2, 3] - 0.02)
    assert depth > 5e-4
    push = 1e4 * depth * model.jacobian(q, "arm", node="tip")[5]
    assert soft.contacts.force(q, np.zeros(model.nv)) == pytest.approx(push, rel=1e-9)


def test_linearised_motion_where_rigid_surfaces_touch_is_refused() -> None:
    """A block that lies does not move as one that falls; above the ground, or on a soft one, its motion is known."""
    lying, n = block().with_contacts(lw.Ground()), 6
    q, still = lying.neutral(), np.zeros(n)
    q[6] += lying.distances(lying.neutral()).min() * -1.0
    for call in (
        lambda: lying.state_space(q, still, still),
        lambda: lying.state_space(q, still, still, dt=0.01),
        lambda: lying.sensitivity(q, still, np.zeros((3, n)), 0.01),
    ):
        with pytest.raises(lw.InputError, match="rigid surfaces touch"):
            call()
    q[6] += 0.5
    assert lying.state_space(q, still, still).A.shape == (12, 12)
    lying.sensitivity(q, still, np.zeros((3, n)), 0.01)
    soft = block().with_contacts(lw.Ground(), material=lw.Material(stiffness=1e4))
    q[6] -= 0.5 + 1e-3
    assert soft.state_space(q, still, still).A[11, 5] < 0.0
