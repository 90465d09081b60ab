"""Building mechanisms: what comes out, and every mistake with its message."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pytest

import linkwise as lw

I = np.eye(3) * 0.1


def builder() -> lw.ModelBuilder:
    b = lw.ModelBuilder("arm")
    b.add_body("upper", joint=lw.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -0.5), inertia=I)
    b.add_body("fore", "upper", lw.Revolute((0, 1, 0)), lw.transform((0, 0, -1)), 1.0, (0, 0, -0.5), I)
    return b


def refused(message: str, error: type[Exception] = lw.ModelError) -> Any:
    return pytest.raises(error, match=re.escape(message))


# What comes out.
def test_a_model_and_its_names() -> None:
    b = builder()
    b.add_body("camera", "fore", placement=lw.transform((0.1, 0, 0)), mass=0.2)
    b.add_frame("eye", "camera", lw.transform((0, 0, 0.05)))
    b.add_body("floor", mass=10.0)
    model = b.build()
    assert (model.name, model.nq, model.nv, model.gravity) == ("arm", 2, 2, (0.0, 0.0, -9.81))
    assert [body.name for body in model.bodies] == ["upper", "fore"]
    assert [joint.name for joint in model.joints] == ["upper_joint", "fore_joint"]
    assert model.parents == (-1, 0)
    assert model.mass == pytest.approx(2.2)
    assert model.bodies["fore"] is model.bodies[1]
    assert model.joints["fore_joint"].q_slice == slice(1, 2)
    assert model.joints["fore_joint"].nv == 1
    assert model.frame("eye").body == 1
    np.testing.assert_allclose(np.array(model.frame("eye").placement)[:3, 3], [0.1, 0, 0.05])
    assert model.frame("floor").body == model.frame("world").body == -1
    assert "2 bodies" in repr(model)
    np.testing.assert_array_equal(model.pose(np.zeros(2), "world"), np.eye(4))


def test_slices_of_all_joint_types() -> None:
    b = lw.ModelBuilder()
    joints: list[lw.Joint] = [
        lw.Free(), lw.Revolute(), lw.Spherical(), lw.Planar(), lw.Universal(), lw.Cylindrical(), lw.Helical(0.1),
        lw.Prismatic(),
    ]  # fmt: skip
    for k, joint in enumerate(joints):
        b.add_body(f"b{k}", f"b{k - 1}" if k else "world", joint, mass=1.0, inertia=I)
    model = b.build()
    assert (model.nq, model.nv) == (7 + 1 + 4 + 3 + 2 + 2 + 1 + 1, 6 + 1 + 3 + 3 + 2 + 2 + 1 + 1)
    q = v = 0
    for joint, own in zip(joints, model.joints, strict=True):
        assert own.q_slice == slice(q, q + joint.nq)
        assert own.v_slice == slice(v, v + joint.nv)
        q, v = q + joint.nq, v + joint.nv
    assert model.neutral()[[0, 8]].tolist() == [1.0, 1.0]


def test_limits_and_the_rest() -> None:
    b = lw.ModelBuilder()
    limits = lw.JointLimits(-1.0, 2.0, velocity=3.0, effort=4.0)
    b.add_body("a", joint=lw.Revolute(), mass=1.0, inertia=I, limits=limits, damping=0.5, friction=0.25, armature=0.1)
    b.add_body("b", "a", joint=lw.Spherical(), mass=1.0, inertia=I, armature=(1.0, 2.0, 3.0))
    model = b.build()
    assert model.limits.lower.tolist() == [-1.0] + [-math.inf] * 4
    assert model.limits.upper.tolist() == [2.0] + [math.inf] * 4
    assert model.limits.velocity.tolist() == [3.0] + [math.inf] * 3
    assert model.limits.effort.tolist() == [4.0] + [math.inf] * 3
    assert model.joint_constants.damping.tolist() == [0.5, 0.0, 0.0, 0.0]
    assert model.joint_constants.friction.tolist() == [0.25, 0.0, 0.0, 0.0]
    assert model.joint_constants.armature.tolist() == [0.1, 1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="read-only"):
        model.limits.lower[0] = 0.0


def test_frozen() -> None:
    model = builder().build()
    with pytest.raises(AttributeError):
        model.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        model.bodies[0].parts = ()
    with pytest.raises(TypeError):
        model.bodies[0] = None  # type: ignore[index]


def test_joints_are_values() -> None:
    assert lw.Revolute((0, 0, 2)) == lw.Revolute()
    assert lw.Revolute() != lw.Prismatic()
    assert len({lw.Helical(0.1), lw.Helical(0.1), lw.Helical(0.2)}) == 2
    assert repr(lw.Helical(0.5, (1, 0, 0))) == "Helical(axis=(1.0, 0.0, 0.0), pitch=0.5)"


# Names.
def test_names_that_are_taken() -> None:
    b = builder()
    for name in ("upper", "world"):
        with refused(f"the name {name!r} is taken"):
            b.add_body(name, mass=1.0)
        with refused(f"the name {name!r} is taken"):
            b.add_frame(name, "upper")
    b.add_frame("tip", "fore")
    with refused("the name 'tip' is taken\n  allowed: a name unlike any other body or frame"):
        b.add_body("tip", mass=1.0)
    with refused("the joint name 'upper_joint' is taken"):
        b.add_body("third", joint=lw.Revolute(), joint_name="upper_joint", mass=1.0, inertia=I)


def test_what_was_refused_leaves_no_trace() -> None:
    """A body that was refused can be added again, corrected, under the same names."""
    b = builder()
    with refused("the placement of body 'more' is not a 4x4 transform", lw.InputError):
        b.add_body("more", "upper", placement=(1, 2, 3))
    b.add_body("more", "upper", mass=1.0)


def test_names_that_are_unknown() -> None:
    b = builder()
    message = "there is no parent body of this name\n  got:     'uper'\n  allowed: world, upper, fore"
    with refused(message, lw.errors.UnknownNameError):
        b.add_body("hand", "uper", mass=1.0)
    with refused("there is no body of this name", lw.errors.UnknownNameError):
        b.add_frame("tip", "for")
    with refused("did you mean 'fore'", lw.errors.UnknownNameError):
        b.add_frame("tip", "for")


# Masses and inertias.
@pytest.mark.parametrize("mass", [-1.0, math.nan, math.inf, -1e-9])
def test_impossible_masses(mass: float) -> None:
    with refused("the mass of body 'hand' is not possible"):
        builder().add_body("hand", "fore", mass=mass)


@pytest.mark.parametrize("mass", ["1 kg", None, [1, 2], 1j])
def test_masses_that_are_no_numbers(mass: Any) -> None:
    with refused("the mass of body 'hand' is not a number", lw.InputError):
        builder().add_body("hand", "fore", mass=mass)


@pytest.mark.parametrize(
    ("inertia", "message"),
    [
        (np.diag([-0.1, 0.1, 0.1]), "has a negative principal moment"),
        ([[0.1, 0.3, 0], [0.3, 0.1, 0], [0, 0, 0.1]], "has a negative principal moment"),
        (np.diag([math.nan, 1, 1]), "is not finite"),
        (np.diag([math.inf, 1, 1]), "is not finite"),
        ([[0.1, 0.05, 0], [0.0, 0.1, 0], [0, 0, 0.1]], "is not symmetric"),
    ],
)
def test_impossible_inertias(inertia: Any, message: str) -> None:
    with refused(f"the inertia of body 'hand' {message}"):
        builder().add_body("hand", "fore", mass=1.0, inertia=inertia)


@pytest.mark.parametrize("inertia", [0.1, [0.1, 0.1, 0.1], "I", np.zeros((3, 4)), None])
def test_inertias_of_the_wrong_shape(inertia: Any) -> None:
    with refused("the inertia of body 'hand' is not 3x3", lw.InputError):
        builder().add_body("hand", "fore", mass=1.0, inertia=inertia)


def test_triangle_inequality_is_a_warning() -> None:
    b = builder()
    with pytest.warns(lw.errors.ModelWarning, match="the inertia of body 'hand' breaks the triangle inequality"):
        b.add_body("hand", "fore", joint=lw.Revolute(), mass=1.0, inertia=np.diag([0.1, 0.1, 0.3]))
    model = b.build()
    assert model.mass_matrix(np.zeros(3))[2, 2] == pytest.approx(0.3)  # used as it is
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder().add_body("lamina", "fore", mass=1.0, inertia=np.diag([0.1, 0.2, 0.3]))
        builder().add_body("rod", "fore", mass=1.0, inertia=np.diag([0.1, 0.1, 0.0]))
        builder().add_body("odd", "fore", mass=1.0, inertia=np.diag([0.1, 0.1, 0.3]), check_inertia=False)


def test_nothing_that_moves_is_without_mass() -> None:
    b = builder()
    b.add_body("hand", "fore", joint=lw.Revolute((1, 0, 0)))
    message = "body 'hand' can move but nothing in it or beyond it has mass: its acceleration is not defined"
    with refused(message):
        b.build()
    with refused("give 'hand' a mass, weld it with lw.Fixed(), or lock joint 'hand_joint'"):
        b.build()
    b.add_body("tool", "hand", mass=0.1, com=(0, 0.1, 0))  # welded to it
    assert np.isfinite(b.build().forward_dynamics(np.zeros(3), np.zeros(3), np.ones(3))).all()
    for give in ({"armature": 0.1}, {"inertia": I}, {"mass": 1.0, "com": (0, 0.1, 0)}):
        b = builder()
        b.add_body("hand", "fore", joint=lw.Revolute((1, 0, 0)), **give)
        assert np.isfinite(b.build().forward_dynamics(np.zeros(3), np.zeros(3), np.ones(3))).all()


def test_massless_between_is_allowed() -> None:
    b = lw.ModelBuilder()
    b.add_body("cross", joint=lw.Revolute((1, 0, 0)))
    b.add_body("ball", "cross", lw.Revolute((0, 1, 0)), mass=1.0, com=(0, 0, -1), inertia=I)
    assert np.isfinite(b.build().forward_dynamics(np.zeros(2), np.ones(2), np.ones(2))).all()


# Placements and vectors.
@pytest.mark.parametrize(
    ("placement", "message", "error"),
    [
        (np.eye(3), "is not a 4x4 transform", lw.InputError),
        ("here", "is not a 4x4 transform", lw.InputError),
        (np.full((4, 4), math.nan), "is not a 4x4 transform", lw.InputError),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "is not a rotation and a shift", lw.ModelError),
        (np.diag([2.0, 1.0, 1.0, 1.0]), "is not a rotation and a shift", lw.ModelError),
        (np.ones((4, 4)), "is not a rotation and a shift", lw.ModelError),
        (np.eye(4) + np.outer([0, 0, 0, 1], [0, 0, 0, 1]), "is not a rotation and a shift", lw.ModelError),
    ],
)
def test_impossible_placements(placement: Any, message: str, error: type[Exception]) -> None:
    with refused(f"the placement of body 'hand' {message}", error):
        builder().add_body("hand", "fore", placement=placement, mass=1.0)
    with refused(f"the placement of frame 'tip' {message}", error):
        builder().add_frame("tip", "fore", placement)


def test_placements_are_made_orthonormal() -> None:
    X = np.eye(4)
    X[:3, :3] = np.round(lw.transform(rpy=(0.3, 0.2, 0.1))[:3, :3], 7)  # as files write them
    b = builder()
    b.add_frame("tip", "fore", X)
    R = np.array(b.build().frame("tip").placement)[:3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(R, X[:3, :3], atol=1e-7)


def test_vectors() -> None:
    with refused("the mass centre of 'hand' is not three numbers", lw.InputError):
        builder().add_body("hand", "fore", mass=1.0, com=(0, 0))
    with refused("the mass centre of 'hand' is not finite"):
        builder().add_body("hand", "fore", mass=1.0, com=(0, 0, math.nan))
    with refused("gravity is not three numbers", lw.InputError):
        lw.ModelBuilder(gravity=9.81)  # type: ignore[arg-type]
    with refused("rpy is not three numbers", lw.InputError):
        lw.transform(rpy=(1, 2))
    with refused("xyz is not finite"):
        lw.transform(xyz=(1, 2, math.inf))


# Joints.
def test_axes() -> None:
    for make in (lw.Revolute, lw.Prismatic, lw.Cylindrical, lw.Planar, lambda axis: lw.Helical(0.1, axis)):
        with refused("has no direction", lw.InputError):
            make((0, 0, 0))
        with refused("has no direction", lw.InputError):
            make((0, 0, math.nan))
        with refused("is not three numbers", lw.InputError):
            make((0, 1))
        with refused("is not three numbers", lw.InputError):
            make("z")
    with refused("the two axes of Universal are parallel", lw.InputError):
        lw.Universal((1, 0, 0), (-2, 0, 0))
    assert lw.Revolute((3, 0, 4)).axis == pytest.approx((0.6, 0, 0.8))


@pytest.mark.parametrize("pitch", [math.nan, math.inf])
def test_pitch(pitch: float) -> None:
    with refused("the pitch of Helical is not finite", lw.InputError):
        lw.Helical(pitch)


def test_not_a_joint() -> None:
    for joint in ("revolute", lw.Revolute):
        with refused("the joint of body 'hand' is not a joint", lw.InputError):
            builder().add_body("hand", "fore", joint=joint, mass=1.0)  # type: ignore[arg-type]


def test_custom_joints() -> None:
    def stretched(q: Any) -> Any:
        return [[2, 0, 0, q[0]], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    with refused("the transform of the joint 'stretch' is not a rotation and a shift", lw.InputError):
        lw.CustomJoint(stretched, n=1, name="stretch")
    for bad in (lambda q: 1.0, lambda q: [[1, 0], [0, 1]], lambda q: q[5], lambda q: math.sin(q)):
        with refused("the transform of the joint 'bad' failed or is not 4x4", lw.InputError):
            lw.CustomJoint(bad, n=1, name="bad")

    for n in (0, -1, 1.5, "1"):
        with refused("the joint 'custom' has no number of coordinates", lw.InputError):
            lw.CustomJoint(lambda q: np.eye(4), n=n)  # type: ignore[arg-type]

    def with_math(q: Any) -> Any:
        c, s = math.cos(q[0]), math.sin(q[0])
        return [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    b = lw.ModelBuilder()
    b.add_body("a", joint=lw.CustomJoint(with_math, n=1, name="mathy"), mass=1.0, inertia=I)
    with refused("use lw.math.sin, lw.math.cos, … instead of math or numpy functions", lw.InputError):
        b.build().gravity_force([0.1])


def test_freedoms() -> None:
    for what in ("armature", "damping", "friction"):
        with refused(f"the {what} of joint 'hand_joint' has the wrong length", lw.InputError):
            builder().add_body("hand", "fore", lw.Spherical(), mass=1.0, **{what: (1.0, 2.0)})
        with refused(f"the {what} of joint 'hand_joint' must be finite and not negative"):
            builder().add_body("hand", "fore", lw.Spherical(), mass=1.0, **{what: -0.1})
    with refused("joint 'hand_joint' has 3 freedoms", lw.InputError):
        builder().add_body("hand", "fore", lw.Spherical(), mass=1.0, limits=[lw.JointLimits()] * 2)


# Mimics.
def test_mimics() -> None:
    b = builder()
    b.add_body("f1", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("f2_joint", -1.0, 0.5))
    b.add_body("f2", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("fore_joint", 2.0))
    model = b.build()
    assert (model.nq, model.nv, len(model.joints)) == (2, 2, 4)
    assert model.joints["f1_joint"].mimic == lw.Mimic("fore_joint", -2.0, 0.5)
    assert model.joints["f1_joint"].q_slice == model.joints["fore_joint"].q_slice

    b = builder()
    b.add_body("f", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("foe_joint"))
    with refused("did you mean 'fore_joint'", lw.errors.UnknownNameError):
        b.build()

    b = builder()
    b.add_body("f1", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("f2_joint"))
    b.add_body("f2", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("f1_joint"))
    with refused("joints follow each other in a circle\n  got:     f1_joint -> f2_joint -> f1_joint"):
        b.build()

    with refused("joint 'ball_joint' cannot follow another"):
        builder().add_body("ball", "fore", lw.Spherical(), mass=1.0, mimic=lw.Mimic("fore_joint"))

    b = builder()
    b.add_body("ball", "fore", lw.Spherical(), mass=1.0, inertia=I)
    b.add_body("f", "ball", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("ball_joint"))
    with refused("joint 'f_joint' cannot follow 'ball_joint'"):
        b.build()

    for bad in (math.nan, math.inf):
        with refused("the mimic of joint 'f_joint' is not finite"):
            builder().add_body("f", "fore", lw.Prismatic(), mass=0.1, mimic=lw.Mimic("fore_joint", bad))
