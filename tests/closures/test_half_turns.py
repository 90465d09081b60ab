"""Closures vanish only where they close: every kind, turned by half a turn, against SciPy's rotations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise import errors
from linkwise.joints import directions
from linkwise.mechanism.closures import RelativePose, closure_of
from linkwise.spatial.scalar import cos, sin

SKEW = tuple(np.array([1.0, 2.0, 3.0]) / math.sqrt(14.0))
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0), "skew": SKEW}

WHOLE = {  # no rotation at all stays free
    "weld": lw.Fixed(),
    "slide": lw.Prismatic(axis=SKEW),
    "frame": lw.closures.PrescribedFrame(lw.Fixed(), lambda t: (0.0, 0.0, 0.0)),
    "turning": lw.closures.PrescribedFrame(
        lw.Fixed(), lambda t: [[cos(t), -sin(t), 0.0, 0.0], [sin(t), cos(t), 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    ),
}
AXIAL = {  # rotations about one axis do
    f"{name} about {letter}": (make(axis), axis)
    for letter, axis in AXES.items()
    for name, make in {
        "hinge": lambda u: lw.Revolute(axis=u),
        "cylinder": lambda u: lw.Cylindrical(axis=u),
        "plane": lambda u: lw.Planar(u),
        "led": lambda u: lw.closures.PrescribedFrame(lw.Revolute(axis=u), lambda t: (0.0, 0.0, 0.0)),
    }.items()
}
EVERY = [*WHOLE.values(), *(joint for joint, _ in AXIAL.values()), lw.Helical(0.1, axis=SKEW)]


def residual(joint: Any, R: Any, p: Any = (0.0, 0.0, 0.0)) -> Any:
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, p
    return np.array(closure_of(joint).residual(RelativePose.from_matrix(X.tolist()), 0.0))


def rotations() -> Any:
    """All angles, many of them at and about half a turn."""
    rng = np.random.default_rng(0)
    axes = [*np.eye(3), SKEW, *rng.normal(size=(40, 3))]
    for axis in axes:
        for angle in (1e-9, 0.3, math.pi / 2, 2.0, math.pi - 1e-3, math.pi - 1e-7, math.pi - 1e-9, math.pi):
            yield angle, Rotation.from_rotvec(angle * np.array(axis) / np.linalg.norm(axis))


@pytest.mark.parametrize("joint", WHOLE.values(), ids=WHOLE)
def test_a_fixed_rotation(joint: Any) -> None:
    """2 sin(θ/2) n; of a half turn, which has two axes n, the length."""
    for angle, R in rotations():
        found = residual(joint, R.as_matrix())[-3:]
        due = 2.0 * math.sin(angle / 2.0)
        assert np.linalg.norm(found) == pytest.approx(due, rel=1e-9, abs=1e-15)
        if angle < math.pi - 1e-8:
            n = R.as_rotvec() / angle
            np.testing.assert_allclose(found, due * n, rtol=0.0, atol=1e-7 * due)


@pytest.mark.parametrize(("joint", "axis"), AXIAL.values(), ids=AXIAL)
def test_a_fixed_axis(joint: Any, axis: tuple[float, float, float]) -> None:
    """Of the turn that leads the axis to where it is; zero for every turn about it."""
    for angle, R in rotations():
        tilted = R.apply(axis)
        due = np.linalg.norm(tilted - np.array(axis))  # a chord of the unit sphere is 2 sin(θ/2)
        assert np.linalg.norm(residual(joint, R.as_matrix())[-2:]) == pytest.approx(due, rel=1e-9, abs=1e-15)
        about = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
        assert np.abs(residual(joint, about)).max() < 1e-15


def test_a_thread() -> None:
    """The chord of the angle by which the turn is ahead of the shift."""
    joint = lw.Helical(0.1, axis=SKEW)
    for angle in np.linspace(-7.0, 7.0, 57):
        R = Rotation.from_rotvec(angle * np.array(SKEW)).as_matrix()
        for ahead in (0.0, 1e-9, -1.0, 2.5, math.pi, 2.0 * math.pi):
            found = residual(joint, R, 0.1 * (angle + ahead) * np.array(SKEW))
            assert abs(found[2]) == pytest.approx(0.2 * abs(math.sin(ahead / 2.0)), rel=1e-6, abs=1e-15)
            assert np.abs(np.delete(found, 2)).max() < 1e-14


def test_a_universal_joint_leaves_its_half_turns() -> None:
    """Every rotation at which it vanishes is a product of turns about its axes."""
    for second in ((0.0, 1.0, 0.0), (1.0, 1.0, 0.0)):
        joint = lw.Universal(axis1=(1, 0, 0), axis2=second)
        u1, u2 = np.array(joint.axis1), np.array(joint.axis2)
        for a in (0.0, 1.0, math.pi):
            for b in (0.0, 2.0, math.pi):
                R = (Rotation.from_rotvec(a * u1) * Rotation.from_rotvec(b * u2)).as_matrix()
                assert np.abs(residual(joint, R)).max() < 1e-15
        normal = np.cross(u1, u2) / np.linalg.norm(np.cross(u1, u2))
        found = residual(joint, Rotation.from_rotvec(math.pi * normal).as_matrix())
        assert abs(found[-1]) == pytest.approx(2.0 * abs(u1 @ u2) / np.linalg.norm(np.cross(u1, u2)), abs=1e-15)


def floating(joint: Any) -> lw.Model:
    b = lw.ModelBuilder("floating")
    b.add_body("body", joint=lw.Free(), mass=1.0, com=(0.1, 0.2, 0.3), inertia=np.diag([0.2, 0.3, 0.4]))
    b.add_closure("loop", body_a="world", body_b="body", joint=joint)
    return b.build()


@pytest.mark.filterwarnings("ignore:.*removes the last freedom")
@pytest.mark.parametrize("joint", EVERY, ids=lambda joint: type(joint).__name__)
def test_models_that_are_turned_over(joint: Any) -> None:
    """Checks and simulations refuse, with the closure's name and the angle; `assemble` turns them back."""
    model = floating(joint)
    inner = joint.closure.joint if isinstance(joint, lw.closures.PrescribedFrame) else joint
    axis = np.array(getattr(inner, "axis", None) or SKEW)
    across = np.cross(axis, (0.3, -0.5, 0.8))
    q = np.array([0.0, *(across / np.linalg.norm(across)), 0.0, 0.0, 0.0])
    with pytest.raises(errors.ClosureError, match=r"'loop' is open[\s\S]*turned by 180°"):
        model.constraints.check(q)
    with pytest.raises(errors.ClosureError, match=r"'loop' is open[\s\S]*turned by 180°"):
        lw.simulate(model, q, duration=0.1, dt=0.01, method="rk4")
    closed = model.assemble(q)
    model.constraints.check(closed, tol=1e-11)
    X = model.pose(closed, "body")
    assert np.abs(residual(joint, X[:3, :3], X[:3, 3])).max() < 1e-11


@pytest.mark.parametrize(
    "joint",
    [lw.Revolute(axis=SKEW), lw.Prismatic(axis=SKEW), lw.Helical(0.1, axis=SKEW)],
    ids=lambda joint: type(joint).__name__,
)
def test_accelerations_obey_what_is_checked(joint: Any) -> None:
    """The dynamics tell turns by their sines; where all is closed J_c and the bias are the same."""
    model = floating(joint)
    rng = np.random.default_rng(1)
    q = model.assemble(np.array([model.random_configuration(rng) for _ in range(20)]))
    v = model.constraints.project_velocity(q, rng.normal(size=(20, 6)))
    tau = rng.normal(size=(20, 6))
    vdot = model.forward_dynamics(q, v, tau)
    J_c, bias = model.constraints.jacobian(q), model.constraints.bias(q, v)
    np.testing.assert_allclose(np.einsum("kij,kj->ki", J_c, vdot), -bias, atol=1e-9)
    multipliers = model.constraint_forces(q, v, tau).multipliers
    forces = model.inverse_dynamics(q, v, vdot)
    np.testing.assert_allclose(forces, tau + np.einsum("kij,ki->kj", J_c, multipliers), atol=1e-9)


def test_accelerations_pay_nothing_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed state is near itself: the programs of the dynamics have the sines alone."""

    def refused(*_: Any) -> Any:
        raise AssertionError("half an angle")

    model = floating(lw.Revolute(axis=SKEW))
    monkeypatch.setattr(directions, "half_angle", refused)
    assert model.function("forward_dynamics").program.nodes
    assert model.function("constraint_forces").program.nodes
    with pytest.raises(AssertionError, match="half an angle"):
        _ = model.function("closure_error").program
