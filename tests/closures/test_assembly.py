"""Assembly, freedoms, statics, and what cannot be: errors and warnings that name the closure and the residual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares

import linkwise as lw
from linkwise import samples
from tests.closures.mechanisms import BETWEEN, Array, EagerModel, T, closed_tree


@pytest.mark.parametrize("kind", BETWEEN)
def test_any_kind_is_found_again(kind: str) -> None:
    case = closed_tree(6, [kind])
    rng = np.random.default_rng(0)
    guess = case.model.integrate(case.q, 0.2 * rng.normal(size=case.model.nv))
    q = case.model.assemble(guess, t=T)
    assert np.abs(case.model.closure_error(q, t=T)).max() <= 1e-12


def test_stewart_platform_from_afar() -> None:
    model = EagerModel.of(samples.stewart_platform())
    rng = np.random.default_rng(0)
    q = model.assemble(model.integrate(model.neutral(), 0.3 * rng.normal(size=model.nv)))
    assert np.abs(model.closure_error(q)).max() <= 1e-12


def test_batches_assemble_as_single_states_do() -> None:
    model = samples.four_bar(2)
    rng = np.random.default_rng(0)
    guesses = 0.4 * np.array([1, -1, 1, -1, 1.0]) + 0.3 * rng.normal(size=(2, 8, 5))
    q = model.assemble(guesses)
    assert q.shape == (2, 8, 5)
    assert np.abs(model.closure_error(q)).max() <= 1e-12
    np.testing.assert_allclose(q[1, 3], model.assemble(guesses[1, 3]), atol=1e-9)


def test_a_guess_without_a_way_out_is_left() -> None:
    """Two equal rods in line, folded back: no first-order step opens the angle that must be opened."""
    b = lw.ModelBuilder("arm")
    for k in (1, 2):
        place = lw.transform(xyz=(1.0 if k == 2 else 0.0, 0.0, 0.0))
        parent = "world" if k == 1 else "rod1"
        b.add_body(f"rod{k}", parent, lw.Revolute((0, 1, 0)), place, mass=1.0, com=(0.5, 0, 0), inertia=0.1 * np.eye(3))
    b.add_closure(
        "hold",
        "rod2",
        lw.transform(xyz=(1, 0, 0)),
        "world",
        lw.transform(xyz=(1.2, 0, 0)),
        joint=lw.closures.PointOnPlane((1, 0, 0)),
    )
    model = EagerModel.of(b.build())
    q = model.assemble([0.0, 0.0])
    assert np.abs(model.closure_error(q)).max() <= 1e-12


# Starts by the hundred, against an independent trust region on the same residuals.
def leg() -> lw.Model:
    """A leg whose knee and ankle are moved by rods from the hip: two loops that share the thigh, after Digit's."""
    hinge = lw.Revolute((0, 1, 0))
    b = lw.ModelBuilder("leg")

    def rod(name: str, parent: str, x: float, z: float, length: float, joint: lw.Joint = hinge) -> None:
        place = lw.transform(xyz=(x, 0, z))
        b.add_body(name, parent, joint, place, mass=1.0, com=(0, 0, -length / 2), inertia=0.1 * np.eye(3))

    rod("thigh", "world", 0.0, 0.0, 0.4)
    rod("shin", "thigh", 0.0, -0.4, 0.4)
    rod("foot", "shin", 0.0, -0.4, 0.1)
    rod("knee_crank", "thigh", 0.0, -0.05, 0.08)
    rod("knee_rod", "knee_crank", -0.08, 0.0, 0.35)
    rod("ankle_crank", "shin", 0.0, -0.05, 0.06)
    rod("ankle_rod", "ankle_crank", 0.06, 0.0, 0.35, lw.Spherical())
    b.add_closure(
        "knee", "knee_rod", lw.transform(xyz=(0, 0, -0.35)), "shin", lw.transform(xyz=(-0.08, 0, 0)), joint=hinge
    )
    end, heel = lw.transform(xyz=(0, 0, -0.35)), lw.transform(xyz=(0.06, 0, 0))
    b.add_closure("ankle", "ankle_rod", end, "foot", heel, joint=lw.Spherical())
    return b.build()


def by_scipy(model: lw.Model, start: Array) -> Array:
    """What SciPy's trust region leaves open, from a start, in the tangent space there."""
    found = least_squares(
        lambda d: model.closure_error(model.integrate(start, d)), np.zeros(model.nv), xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    return np.asarray(found.fun)


@pytest.mark.parametrize("make", [lambda: samples.four_bar(3), samples.stewart_platform, leg, samples.bricard])
def test_all_starts_near_and_far_are_closed(make: Any) -> None:
    """SciPy, on the same residuals, agrees that those nearby can be."""
    model = make()
    rng = np.random.default_rng(2)
    near = model.integrate(model.neutral(), rng.uniform(-0.25, 0.25, (200, model.nv)))
    q = model.assemble(near)
    assert np.abs(model.closure_error(q)).max() <= 1e-12
    frames_meet(model, q)
    for start in near[:5]:
        assert np.abs(by_scipy(model, start)).max() < 1e-7
    far = model.integrate(model.neutral(), rng.uniform(-1.5, 1.5, (40, model.nv)))
    assert np.abs(model.closure_error(model.assemble(far))).max() <= 1e-12  # or it raises


def frames_meet(model: lw.Model, q: Array) -> None:
    """By poses alone: the origins that closures hold together are at one place, and so is what else hinges share."""
    for closure in model.closures:
        ends = []
        for body, placement in ((closure.body_a, closure.placement_a), (closure.body_b, closure.placement_b)):
            on = np.eye(4) if body < 0 else model.poses(q)[..., body, :, :]
            ends.append(np.broadcast_to(on @ np.array(placement), (*q.shape[:-1], 4, 4)))
        np.testing.assert_allclose(ends[0][..., :3, 3], ends[1][..., :3, 3], atol=1e-11)
        axis = getattr(closure.type.joint, "axis", None)
        if axis is not None:
            axes = [end[..., :3, :3] @ np.array(axis) for end in ends]
            np.testing.assert_allclose(*axes, atol=1e-11)


@pytest.mark.filterwarnings("ignore:closure .* removes the last freedom")
def test_limits_are_bounds_and_a_way_out_is_told() -> None:
    b = lw.ModelBuilder("two ways to bend")
    for k, limits in ((1, None), (2, lw.JointLimits(0.0, 2.5))):
        place, parent = lw.transform(xyz=(1.0 if k == 2 else 0.0, 0.0, 0.0)), "world" if k == 1 else "rod1"
        b.add_body(f"rod{k}", parent, lw.Revolute((0, 1, 0)), place, joint_name=f"j{k}", mass=1.0, limits=limits)
    b.add_closure(
        "tip", "rod2", lw.transform(xyz=(1, 0, 0)), "world", lw.transform(xyz=(1.2, 0, 0.3)), joint=lw.Spherical()
    )
    model = b.build()
    bent = model.assemble([0.4, -1.5], limits="ignore")  # the nearer of the two
    assert bent[1] < -0.5
    q = model.assemble([0.4, -1.5])
    np.testing.assert_allclose(q[1], -bent[1], atol=1e-12)
    narrow = lw.ModelBuilder("too narrow")
    for k, limits in ((1, None), (2, lw.JointLimits(0.0, 0.5))):
        place, parent = lw.transform(xyz=(1.0 if k == 2 else 0.0, 0.0, 0.0)), "world" if k == 1 else "rod1"
        narrow.add_body(f"rod{k}", parent, lw.Revolute((0, 1, 0)), place, joint_name=f"j{k}", mass=1.0, limits=limits)
    end = lw.transform(xyz=(1.2, 0, 0.3))
    narrow.add_closure("tip", "rod2", lw.transform(xyz=(1, 0, 0)), "world", end, joint=lw.Spherical())
    with pytest.raises(lw.errors.ClosureError, match=r"'tip' cannot be closed within the joint limits[\s\S]*'j2' at"):
        narrow.build().assemble([0.0, 0.2])


def test_locked_and_prescribed_joints_stay() -> None:
    model = EagerModel.of(samples.four_bar(1))
    first = model.joints[0].name
    q = model.assemble([0.7, 0.2, -0.1], locked=[first])
    assert q[0] == 0.7
    assert np.abs(model.closure_error(q)).max() <= 1e-12
    driven = model.with_coupling("drive", lw.closures.Prescribed(first, lambda t: 0.5 + t))
    for t in (0.0, 0.4):
        q = driven.assemble([0.0, 0.3, 0.0], t=t)
        np.testing.assert_allclose(q[0], 0.5 + t, rtol=1e-15)
    with pytest.raises(lw.errors.UnknownNameError, match="no_joint"):
        model.assemble(model.neutral(), locked=["no_joint"])
    with pytest.raises(lw.InputError, match="limits cannot be treated so"):
        model.assemble(model.neutral(), limits="perhaps")


def test_the_message_tells_a_loop_that_never_closes_from_loops_that_do_not_go_together() -> None:
    """Two hinges of one body at places further apart than the body is long: each closes, both do not."""
    b = lw.ModelBuilder("rods")
    b.add_body("slide", "world", lw.Prismatic((1, 0, 0)), mass=1.0)
    b.add_body("rod", "slide", lw.Revolute((0, 1, 0)), mass=1.0, com=(0.5, 0, 0), inertia=np.eye(3))
    for name, x in (("near", 1.0), ("far", 1.5)):
        end = lw.transform(xyz=(x, 0, 0.4))
        b.add_closure(name, "rod", lw.transform(xyz=(0.5 * x, 0, 0)), "world", end, joint=lw.Spherical())
    model = b.build()
    with pytest.raises(
        lw.errors.ClosureError, match=r"'(near|far)' cannot be closed from this guess together with the others"
    ):
        model.assemble(model.neutral())
    aside = model.with_closure("aside", "rod", None, "world", lw.transform(xyz=(0, 0.02, 0)), joint=lw.Spherical())
    with pytest.raises(lw.errors.ClosureError, match="'aside' cannot be closed, even by itself") as caught:
        aside.assemble(model.neutral())
    np.testing.assert_allclose(caught.value.residual, 0.02, rtol=1e-9)


def test_what_cannot_close_is_named_with_its_residual() -> None:
    model = EagerModel.of(samples.four_bar(1)).with_closure(
        "leash", "rod1", None, "world", lw.transform(xyz=(5, 0, 0)), joint=lw.Spherical()
    )
    with pytest.raises(lw.errors.ClosureError, match="'leash' cannot be closed") as caught:
        model.assemble(model.neutral())
    assert caught.value.closure == "leash"
    assert 2.0 < caught.value.residual <= 4.0  # 4 m in all, along axes that may turn
    assert "x:" in str(caught.value)


def test_the_state_of_a_batch_is_named() -> None:
    model = samples.slider_crank().with_coupling("drive", lw.closures.Prescribed("guide", lambda t: t))
    with pytest.raises(lw.errors.ClosureError, match=r"in state \(1,\)"):
        model.assemble(np.zeros(3), t=np.array([0.0, 7.0, -0.05]))


def test_contradictory_motions_are_named_at_every_level() -> None:
    model = EagerModel.of(samples.slider_crank()).with_coupling("drive", lw.closures.Prescribed("main", lambda t: t))
    still = np.zeros(3)
    late = model.with_coupling("other", lw.closures.Prescribed("main", lambda t: 1.0 + t))
    with pytest.raises(lw.errors.ClosureError, match=r"'(drive|other)' cannot be closed"):
        late.assemble(still, t=0.0)
    faster = model.with_coupling("other", lw.closures.Prescribed("main", lambda t: 2.0 * t))
    v = faster.constraints.project_velocity(still, still, t=0.0)
    with pytest.raises(lw.errors.ClosureError, match=r"'(drive|other)' is being opened"):
        faster.constraints.check(still, v, t=0.0)
    curved = model.with_coupling("other", lw.closures.Prescribed("main", lambda t: t + t * t))
    v = curved.constraints.project_velocity(still, still, t=0.0)
    with pytest.raises(lw.errors.ClosureError, match=r"'(drive|other)' contradicts another"):
        curved.constraints.check(still, v, t=0.0)
    model.constraints.check(still, model.constraints.project_velocity(still, still, t=0.0), t=0.0)


def test_an_open_state_is_refused_where_ranks_are_counted() -> None:
    model = EagerModel.of(samples.bricard())
    with pytest.raises(lw.errors.ClosureError, match="'hinge6' is open"):
        model.freedoms(model.neutral() + 0.1)
    with pytest.raises(lw.InputError, match="one configuration"):
        model.freedoms(np.zeros((2, 5)))


def test_the_closure_that_removes_the_last_freedom_is_named() -> None:
    braced = EagerModel.of(samples.four_bar(1)).with_closure(
        "brace", "rod1", lw.transform(xyz=(0, 0, 0.5)), "world", None, joint=lw.closures.Distance(1.0)
    )
    with pytest.warns(lw.errors.ModelWarning, match="'brace' removes the last freedom"):
        q = braced.assemble(braced.neutral())
    with pytest.warns(lw.errors.ModelWarning, match="'brace' removes the last freedom"):
        assert braced.freedoms(q).count == 0
    # A motion that is prescribed is meant to.
    driven = EagerModel.of(samples.slider_crank()).with_coupling("drive", lw.closures.Prescribed("main", lambda t: t))
    assert driven.freedoms(driven.assemble(np.zeros(3), t=0.3), t=0.3).count == 0


def test_the_wrong_way_round_is_not_taken() -> None:
    """A hinge's equations hold for the axis turned by half a turn as well."""
    b = lw.ModelBuilder("ball")
    b.add_body("ball", "world", lw.Spherical(), mass=1.0, inertia=np.eye(3))
    b.add_closure("hinge", "world", None, "ball", None, joint=lw.Revolute((0, 1, 0)))
    model = EagerModel.of(b.build())
    turned = np.array([0.05, 1.0, 0.0, 0.02])  # nearly half a turn about x
    q = model.assemble(turned / np.linalg.norm(turned))
    assert model.poses(q)[0, 1, 1] > 0.99


# Statics and forces at chosen joints.
def test_equilibrium_of_a_four_bar_is_upright_or_hanging() -> None:
    model = samples.four_bar(2)
    pattern = np.array([1, -1, 1, -1, 1.0])
    for phi, rest in ((0.2, 0.0), (2.9, np.pi)):
        found = model.statics.equilibrium(phi * pattern)
        np.testing.assert_allclose(found.q, rest * pattern, atol=1e-8)
        J = model.constraints.jacobian(found.q)
        np.testing.assert_allclose(model.gravity_force(found.q), J.T @ found.multipliers, atol=1e-8)
    pushed = model.statics.equilibrium(0.2 * pattern, tau=np.array([1.0, 0, 0, 0, 0]))
    still = np.zeros(5)
    np.testing.assert_allclose(model.forward_dynamics(pushed.q, still, [1.0, 0, 0, 0, 0]), 0.0, atol=1e-8)


def test_redundant_motors_share_with_least_norm() -> None:
    model = EagerModel.of(samples.four_bar(1))
    pattern = np.array([1.0, -1.0, 1.0])
    q, v = 0.4 * pattern, 0.7 * pattern
    vdot = model.forward_dynamics(q, v, np.array([2.0, 0.0, 0.0]))
    one = model.inverse_dynamics(q, v, vdot, actuated=["foot0"])
    np.testing.assert_allclose(one, [2.0, 0.0, 0.0], atol=1e-10)
    two = model.inverse_dynamics(q, v, vdot, actuated=["foot0", "foot1"])
    np.testing.assert_allclose(two, [1.0, 0.0, 1.0], atol=1e-10)
    np.testing.assert_allclose(model.forward_dynamics(q, v, two), vdot, atol=1e-10)


def test_what_cannot_be_balanced_is_named() -> None:
    arm = EagerModel.of(samples.planar_arm(2))
    zero = np.zeros(2)
    with pytest.raises(lw.InputError, match="cannot balance what is needed at joint 'joint2'"):
        arm.inverse_dynamics(zero, zero, zero, actuated=["joint1"])
    with pytest.raises(lw.errors.UnknownNameError, match="joint3"):
        arm.inverse_dynamics(zero, zero, zero, actuated=["joint3"])
    model = EagerModel.of(samples.four_bar(1))
    with pytest.raises(lw.errors.ClosureError, match="'pin1' would be opened"):
        model.inverse_dynamics(np.zeros(3), np.zeros(3), np.ones(3), actuated=["foot0"])


def test_independent_inertia_is_that_of_the_motion() -> None:
    model = EagerModel.of(samples.stewart_platform())
    q = model.neutral()
    found = model.freedoms(q)
    u = np.random.default_rng(0).normal(size=6)
    energy = model.kinetic_energy(q, found.basis @ u)
    np.testing.assert_allclose(0.5 * u @ model.constraints.mass_matrix(q) @ u, energy, rtol=1e-12)
    np.testing.assert_array_equal(found.basis[list(found.independent)], np.eye(6))


# What is refused when a closure is added.
@pytest.mark.parametrize(("a", "b"), [("arm", "arm"), ("arm", "plate"), ("plate", "tool"), ("world", "base")])
def test_a_closure_within_one_rigid_cluster_is_refused(a: str, b: str) -> None:
    """A body and itself, or two that are welded to each other, or to the world."""
    builder = lw.ModelBuilder("welded")
    builder.add_body("base", "world", lw.Fixed(), mass=1.0)
    builder.add_body("arm", "base", lw.Revolute((0, 1, 0)), mass=1.0, inertia=np.eye(3))
    builder.add_body("plate", "arm", lw.Fixed(), lw.transform(xyz=(0, 0, 1)), mass=1.0)
    builder.add_body("tool", "plate", lw.Fixed(), lw.transform(xyz=(0, 1, 0)), mass=1.0)
    builder.add_closure("loop", a, None, b, None, joint=lw.Spherical())
    with pytest.raises(lw.ModelError, match=r"'loop' is between two places of one rigid body"):
        builder.build()


def test_unknown_bodies_of_a_closure_are_named() -> None:
    with pytest.raises(lw.errors.UnknownNameError, match=r"body_b of closure 'loop'[\s\S]*did you mean 'slider'"):
        samples.slider_crank().with_closure("loop", "rod", None, "slidr", None, joint=lw.Spherical())


def test_loops_that_contradict_each_other_in_their_last_digits():
    """A parallel linkage closed twice, by pins whose places disagree by 4e-8 m, as a file's few digits make them."""
    hinge = lw.Revolute(axis=(0, 1, 0))
    rod = {"mass": 1.0, "inertia": np.diag([1 / 12, 1 / 12, 1e-3])}
    b = lw.ModelBuilder("twice closed")
    b.add_body("left", joint=hinge, com=(0, 0, 0.5), **rod)
    b.add_body("top", parent="left", joint=hinge, placement=lw.transform(xyz=(0, 0, 1)), com=(0.5, 0, 0), **rod)
    b.add_body("right", joint=hinge, placement=lw.transform(xyz=(1, 0, 0)), com=(0, 0, 0.5), **rod)
    for k, off in enumerate((0.0, 4e-8)):
        end, tip = lw.transform(xyz=(1 + off, 0, 0)), lw.transform(xyz=(0, 0, 1))
        b.add_closure(f"pin{k}", body_a="top", placement_a=end, body_b="right", placement_b=tip, joint=hinge)
    model = b.build()
    with pytest.raises(lw.errors.ClosureError, match=r"tol=.* takes it as it is"):
        model.assemble(model.neutral())
    assert 1e-9 < np.abs(model.closure_error(model.start)).max() < 1e-7
    motion = lw.simulate(model, duration=0.5)
    assert motion.status == "done"
    assert np.abs(motion.closure_error).max() < 1e-6
