"""The same mechanism said in two ways: user-defined joints against built-in ones, one joint against two, welds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from tests.identities.relations import close
from tests.oracles.eager import Eager
from tests.random_trees import random_inertia, random_joint, random_placement, random_state

SAME_COORDINATES: list[tuple[str, lw.Joint]] = [
    ("revolute", lw.Revolute((0.6, 0.0, 0.8))),
    ("revolute z", lw.Revolute()),
    ("prismatic", lw.Prismatic((2 / 3, 1 / 3, -2 / 3))),
    ("helical", lw.Helical(0.4, (0.0, -1.0, 0.0))),
    ("cylindrical", lw.Cylindrical((0.6, 0.8, 0.0))),
    ("universal", lw.Universal((1, 0, 0), (0.6, 0.8, 0.0))),
]


def as_custom(joint: lw.Joint) -> lw.CustomJoint:
    """The same motion from its transform alone."""

    def pose(q: Any) -> Any:
        if isinstance(joint, lw.Universal):
            return matrix_product(turn(joint.axis1, q[0]), turn(joint.axis2, q[1]))
        assert joint.axis is not None
        angle, distance = {
            lw.Revolute: lambda: (q[0], 0.0),
            lw.Prismatic: lambda: (0.0, q[0]),
            lw.Helical: lambda: (q[0], q[0] * getattr(joint, "pitch", 0.0)),
            lw.Cylindrical: lambda: (q[0], q[1]),
        }[type(joint)]()
        X = turn(joint.axis, angle)
        for i in range(3):
            X[i][3] = distance * joint.axis[i]
        return X

    return lw.CustomJoint(pose, n=joint.nv)


def turn(axis: Any, angle: Any) -> list[list[Any]]:
    c, s = lw.math.cos(angle), lw.math.sin(angle)
    x, y, z = axis
    K = ((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0))
    R = [[(c if i == j else 0.0) + s * K[i][j] + (1 - c) * axis[i] * axis[j] for j in range(3)] for i in range(3)]
    return [[*R[0], 0.0], [*R[1], 0.0], [*R[2], 0.0], [0.0, 0.0, 0.0, 1.0]]


def matrix_product(A: Any, B: Any) -> list[list[Any]]:
    return [[sum(A[i][k] * B[k][j] for k in range(4)) for j in range(4)] for i in range(4)]


def chain(make: Callable[[int], lw.Joint], n: int = 4) -> lw.Model:
    rng = np.random.default_rng(3)
    b = lw.ModelBuilder("chain", gravity=(1.0, 2.0, -9.0))
    for k in range(n):
        b.add_body(
            f"b{k}", f"b{(k - 1) // 2}" if k else "world", make(k), random_placement(rng), **random_inertia(rng)
        )  # fmt: skip
    b.add_frame("tool", f"b{n - 1}", random_placement(rng))
    return b.build()


def same(a: lw.Model, b: lw.Model, tolerance: float = 1e-11) -> None:
    rng = np.random.default_rng(0)
    A, B = Eager(a), Eager(b)
    q, v, vdot = random_state(a, rng)
    close(A.inverse_dynamics(q, v, vdot), B.inverse_dynamics(q, v, vdot), tolerance)
    close(A.forward_dynamics(q, v, vdot), B.forward_dynamics(q, v, vdot), tolerance)
    close(A.mass_matrix(q), B.mass_matrix(q), tolerance)
    close(A.coriolis_matrix(q, v), B.coriolis_matrix(q, v), tolerance)
    close(A.pose(q, body="tool"), B.pose(q, body="tool"), tolerance)
    close(A.jacobian_rate(q, v, body="tool"), B.jacobian_rate(q, v, body="tool"), tolerance)
    close(A.momentum(q, v), B.momentum(q, v), tolerance)
    close(A.potential_energy(q), B.potential_energy(q), tolerance)


@pytest.mark.parametrize("joint", [j for _, j in SAME_COORDINATES], ids=[name for name, _ in SAME_COORDINATES])
def test_custom_joint_is_the_built_in(joint: lw.Joint) -> None:
    same(chain(lambda _: as_custom(joint)), chain(lambda _: joint))
    same(chain(lambda k: as_custom(joint) if k % 2 else joint), chain(lambda _: joint))


def test_custom_joint_compiled() -> None:
    joint = lw.Universal((1, 0, 0), (0.6, 0.8, 0.0))
    ours, builtin = chain(lambda _: as_custom(joint), 2), chain(lambda _: joint, 2)
    q, v, vdot = random_state(ours, np.random.default_rng(1), (3,))
    close(ours.inverse_dynamics(q, v, vdot), builtin.inverse_dynamics(q, v, vdot), 1e-12)
    close(ours.forward_dynamics(q, v, vdot), builtin.forward_dynamics(q, v, vdot), 1e-12)
    close(ours.coriolis_matrix(q, v), builtin.coriolis_matrix(q, v), 1e-12)


def test_custom_joint_with_a_branch() -> None:
    """A joint that turns about x, at half the rate beyond an angle: ``where``, seen through derivatives."""

    def pose(q: Any) -> Any:
        return turn((1.0, 0.0, 0.0), lw.math.where(q[0] < 0.5, q[0], 0.25 + 0.5 * q[0]))

    b = lw.ModelBuilder("stop")
    b.add_body("a", joint=lw.CustomJoint(pose, n=1), mass=2.0, com=(0, 0, -0.7))
    model = b.build()
    for q, ratio in ((0.2, 1.0), (0.9, 0.5)):
        angle = q if ratio == 1.0 else 0.25 + 0.5 * q
        expected = ratio * (2.0 * 0.49 * ratio * 3.0 + 2.0 * 9.81 * 0.7 * math.sin(angle))
        assert model.inverse_dynamics([q], [0.4], [3.0])[0] == pytest.approx(expected, rel=1e-13)
        J_dot = model.jacobian_rate([q], [0.4], "a", [0.0, 0.0, -1.0])
        assert J_dot[4, 0] == pytest.approx(-math.sin(angle) * ratio * 0.4 * ratio, rel=1e-13)


@pytest.mark.parametrize("kind", ["cylindrical", "universal"])
def test_two_freedoms_are_two_joints(kind: str) -> None:
    rng = np.random.default_rng(4)
    joint = random_joint(rng, kind, 0.0)
    X, body, tip = random_placement(rng), random_inertia(rng), random_placement(rng)
    if isinstance(joint, lw.Universal):
        pair = (lw.Revolute(joint.axis1), lw.Revolute(joint.axis2))
    else:
        assert joint.axis is not None
        pair = (lw.Revolute(joint.axis), lw.Prismatic(joint.axis))  # type: ignore[assignment]
    one, two = lw.ModelBuilder("one"), lw.ModelBuilder("two")
    one.add_body("a", joint=joint, placement=X, **body)
    two.add_body("between", joint=pair[0], placement=X)
    two.add_body("a", "between", joint=pair[1], **body)
    for b in (one, two):
        b.add_frame("tool", "a", tip)
    same(one.build(), two.build())


def test_welded_bodies_are_one() -> None:
    """Parts welded together, to a body or to each other, against one body with their sum; to the world, without."""
    rng = np.random.default_rng(5)
    X, A, B = random_placement(rng, 0.0), random_inertia(rng), random_inertia(rng)
    apart, whole = lw.ModelBuilder("apart"), lw.ModelBuilder("whole")
    apart.add_body("base", mass=100.0)
    apart.add_body("a", "base", lw.Spherical(), **A)
    apart.add_body("plate", "a", placement=X)
    apart.add_body("b", "plate", lw.Fixed(), placement=X, **B)
    apart.add_body("tip", "b", lw.Revolute(), placement=X, mass=1.0, com=(0.1, 0, 0))
    XX = X @ X
    com_b = XX[:3, :3] @ B["com"] + XX[:3, 3]
    mass = A["mass"] + B["mass"]
    com = (A["mass"] * np.array(A["com"]) + B["mass"] * com_b) / mass
    I = np.zeros((3, 3))
    for m, c, I_c in (
        (A["mass"], A["com"], A["inertia"]),
        (B["mass"], com_b, XX[:3, :3] @ B["inertia"] @ XX[:3, :3].T),
    ):
        d = np.array(c) - com
        I += I_c + m * (d @ d * np.eye(3) - np.outer(d, d))
    whole.add_body("a", joint=lw.Spherical(), mass=mass, com=com, inertia=I)
    whole.add_body("tip", "a", lw.Revolute(), placement=XX @ X, mass=1.0, com=(0.1, 0, 0))
    for builder, place in ((apart, ("b", X)), (whole, ("a", XX @ X))):
        builder.add_frame("tool", *place)
    same(apart.build(), whole.build())
    model = apart.build()
    assert model.frame("b").body == 0
    assert model.frame("base").body == -1
    assert model.mass == pytest.approx(mass + 1.0)


def test_a_mimic_is_a_constraint() -> None:
    """A mimic against the independent joints: v_all = G v, so that M = G* M_all G and τ = G* τ_all."""

    def build(follow: bool) -> lw.Model:
        rng = np.random.default_rng(6)
        b = lw.ModelBuilder("mimic")
        joints = (lw.Revolute((0, 1, 0)), lw.Prismatic((0, 0.6, 0.8)), lw.Helical(0.2), lw.Revolute((1, 0, 0)))
        for k, joint in enumerate(joints):
            mimic = {2: lw.Mimic("j0", -1.5, 0.3), 3: lw.Mimic("j2", 2.0, -0.1)}.get(k) if follow else None
            b.add_body(
                f"b{k}", f"b{k - 1}" if k else "world", joint, random_placement(rng), **random_inertia(rng),
                joint_name=f"j{k}", armature=0.1 * (k + 1), mimic=mimic,
            )  # fmt: skip
        return b.build()

    tied, free = build(True), build(False)
    assert (tied.nv, free.nv) == (2, 4)
    assert tied.joints["j3"].mimic == lw.Mimic("j0", -3.0, 2.0 * 0.3 - 0.1)  # a mimic of a mimic, resolved
    G = np.array([[1, 0], [0, 1], [-1.5, 0], [-3.0, 0]])
    q, v, vdot = np.array([0.3, 0.2]), np.array([1.0, -0.4]), np.array([0.7, 0.9])
    q_all, A, B = G @ q + [0, 0, 0.3, 0.5], Eager(tied), Eager(free)
    close(A.poses(q), B.poses(q_all), 1e-14)
    close(A.mass_matrix(q), G.T @ B.mass_matrix(q_all) @ G, 1e-13)
    close(A.inverse_dynamics(q, v, vdot), G.T @ B.inverse_dynamics(q_all, G @ v, G @ vdot), 1e-13)
    close(A.forward_dynamics(q, v, A.inverse_dynamics(q, v, vdot)), vdot, 1e-12)
    close(A.coriolis_matrix(q, v), G.T @ B.coriolis_matrix(q_all, G @ v) @ G, 1e-12)
    close(A.jacobian(q, body="b3"), B.jacobian(q_all, body="b3") @ G, 1e-13)
    close(A.regressor(q, v, vdot), G.T @ B.regressor(q_all, G @ v, G @ vdot), 1e-13)
    close(A.kinetic_energy(q, v), B.kinetic_energy(q_all, G @ v), 1e-13)
