"""The joint contract: all types keep it, and ``check_joint`` says what one that does not has wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import linkwise as lw
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Mat3, Sym3
from linkwise.spatial.transforms import Rotation, Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec
from tests.random_trees import ALL, random_joint, random_placement


@pytest.mark.parametrize("structured", [0.0, 1.0])
@pytest.mark.parametrize("kind", ALL)
def test_every_type_keeps_the_contract(kind: str, structured: float) -> None:
    for seed in range(3):
        lw.check_joint(random_joint(np.random.default_rng(seed), kind, structured), seed=seed)


class Cam(lw.Joint):
    """A turn about z by q, with a shift along x by c q²/2: knows nothing of where it is placed."""

    nq = 1
    nv = 1
    fixed_axes = False
    c = 0.3

    def neutral(self) -> tuple[float, ...]:
        return (0.0,)

    def transform(self, q: Sequence[Any]) -> Transform:
        return Transform(
            Shift(Vec(q[0] * q[0] * (0.5 * self.c), 0.0, 0.0)), Turn(2, lw.math.cos(q[0]), lw.math.sin(q[0]))
        )

    def subspace(self, q: Sequence[Any]) -> tuple[Motion, ...]:
        c, s, slope = lw.math.cos(q[0]), lw.math.sin(q[0]), q[0] * self.c
        return (Motion(Vec(0.0, 0.0, 1.0), Vec(slope * c, -(slope * s), 0.0)),)

    def subspace_rate(self, q: Sequence[Any], v: Sequence[Any]) -> Motion:
        c, s, k, w = lw.math.cos(q[0]), lw.math.sin(q[0]), self.c, v[0] * v[0]
        return Motion(Vec(0.0, 0.0, 0.0), Vec((k * c - k * q[0] * s) * w, -((k * s + k * q[0] * c) * w), 0.0))


def test_a_joint_need_not_know_how_the_layout_turns_it() -> None:
    """In any placement, between any joints, a joint of one's own moves as the same function does as a custom joint."""
    lw.check_joint(Cam())

    def rolled_out(q: Sequence[Any]) -> Any:
        c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
        return [[c, -s, 0, q[0] * q[0] * 0.15], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

    for seed in range(6):
        models = []
        for joint in (Cam(), lw.CustomJoint(rolled_out, n=1)):
            rng = np.random.default_rng(seed)
            b = lw.ModelBuilder("cam")
            body = {"mass": 2.0, "com": (0.1, 0.2, -0.1), "inertia": np.diag([1.0, 1.2, 0.9])}
            b.add_body("a", joint=lw.Revolute(rng.normal(size=3)), placement=random_placement(rng, 0.3), **body)
            b.add_body("b", "a", joint=joint, placement=random_placement(rng, 0.0), **body)
            b.add_body("c", "b", joint=lw.Prismatic(rng.normal(size=3)), placement=random_placement(rng, 0.0), **body)
            models.append(b.build())
        q, v, x = (np.random.default_rng(seed).normal(size=3) for _ in range(3))
        for at in (np.zeros(3), q):
            np.testing.assert_allclose(models[0].poses(at), models[1].poses(at), atol=1e-13)
        placed = np.array(models[0].bodies["b"].placement)
        np.testing.assert_allclose(
            models[0].poses(np.zeros(3))[1], models[0].poses(np.zeros(3))[0] @ placed, atol=1e-13
        )
        for name in ("inverse_dynamics", "forward_dynamics"):
            np.testing.assert_allclose(
                getattr(models[0], name)(q, v, x), getattr(models[1], name)(q, v, x), rtol=1e-11, atol=1e-11
            )


@pytest.mark.parametrize("angle", [0.0, 0.7, math.pi / 2, -math.pi, 3 * math.pi / 2, -2.1])
@pytest.mark.parametrize("kind", ALL)
def test_a_turn_before_a_joint(kind: str, angle: float) -> None:
    joint = random_joint(np.random.default_rng(1), kind, 1.0)
    q = list(joint.random(np.random.default_rng(2), [-math.inf] * joint.nq, [math.inf] * joint.nq))
    plain = Transform(Turn(2, math.cos(angle), math.sin(angle))).then(joint.transform(q)).matrix()
    joined = joint.transform(q).after_turn(2, angle).matrix()
    np.testing.assert_allclose(joined[0].m, plain[0].m, atol=4e-16)
    np.testing.assert_allclose(list(joined[1]), list(plain[1]), atol=4e-16)


def test_a_hinge_absorbs_a_turn() -> None:
    for joint in (lw.Revolute(), lw.Helical(0.3), lw.Cylindrical()):
        q = [0.4] * joint.nq
        assert len(joint.transform(q).after_turn(2, 0.7).factors) == len(joint.transform(q).factors)


class Mirrored(Cam):
    def transform(self, q: Sequence[Any]) -> Transform:
        c, s = lw.math.cos(q[0]), lw.math.sin(q[0])
        return Transform(Rotation(Mat3([[c, s, 0.0], [s, -c, 0.0], [0.0, 0.0, 1.0]])))


class WrongSpeed(Cam):
    def subspace(self, q: Sequence[Any]) -> tuple[Motion, ...]:
        return (Motion(Vec(0.0, 0.0, 2.0), Vec.zero()),)


class WrongRate(Cam):
    def subspace_rate(self, q: Sequence[Any], v: Sequence[Any]) -> Motion:
        return Motion.zero()

    fixed_axes = False


class WrongSplit(lw.Revolute):
    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia(0.0, M.h, M.J), RigidInertia(M.m, Vec.zero(), Sym3.of(0.1, 0.0, 0.0, 0.0, 0.0, 0.0))


class FeltSplit(lw.Revolute):
    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia.zero(), M


class WrongDifference(lw.Prismatic):
    def difference(self, q0: Sequence[Any], q1: Sequence[Any]) -> tuple[Any, ...]:
        return (q0[0] - q1[0],)


class WrongIntegrate(lw.Spherical):
    def integrate(self, q: Sequence[Any], dv: Sequence[Any]) -> tuple[Any, ...]:
        return super().integrate(q, [2.0 * x for x in dv])


class NotAdding(lw.Prismatic):
    quasi_velocities = True

    def rate(self, q: Sequence[Any], v: Sequence[Any]) -> tuple[Any, ...]:
        return (2.0 * v[0],)


class TooSymmetric(Cam):
    symmetry = "axis"


class Wandering(lw.Revolute):
    def random(self, rng: Any, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        return (float(rng.normal()),)


class Short(lw.Universal):
    def neutral(self) -> tuple[float, ...]:
        return (0.0,)


class NotFixed(Cam):
    fixed_axes = True


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (Mirrored(), ["transform is not a rotation", "det R = -1"]),
        (WrongSpeed(), ["column 0 of subspace is (0, 0, 2, 0, 0, 0); how transform moves: (0, 0, 1,"]),
        (WrongRate(), ["subspace_rate is (0, 0, 0, 0, 0, 0); how subspace moves: ("]),
        (WrongSplit(), ["the sum of the parts of split is (4,", "the inertia: (4,"]),
        (FeltSplit(), ["the momentum of what split sheds"]),
        (WrongDifference(), ["difference to where integrate leads", "transform after integrating a difference"]),
        (WrongIntegrate(), ["transform after integrate is", "following rate"]),
        (NotAdding(), ["column 0 of subspace is (0, 0, 0, 0, 0, 1)", "(0, 0, 0, 0, 0, 2)"]),
        (TooSymmetric(), ["symmetry 'axis'"]),
        (Wandering(), ["random leaves the limits"]),
        (Short(), ["neutral has 1 numbers, nq is 2"]),
        (NotFixed(), ["with fixed_axes = True"]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_inconsistent_is_told_with_numbers(joint: lw.Joint, words: list[str]) -> None:
    with pytest.raises(lw.ModelError) as error:
        lw.check_joint(joint)
    assert type(joint).__name__ in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_what_a_class_must_declare() -> None:
    with pytest.raises(lw.InputError, match="subspace_rate of its own") as error:

        class Undeclared(lw.Revolute):
            def subspace_rate(self, q: Any, v: Any) -> Motion:
                return Motion.zero()

    assert "write fixed_axes = False" in str(error.value)
    with pytest.raises(lw.InputError, match="rate of its own"):

        class Undeclared2(lw.Revolute):
            def rate(self, q: Any, v: Any) -> Any:
                return v


def test_only_joints_are_checked() -> None:
    with pytest.raises(lw.InputError, match="check_joint takes a joint"):
        lw.check_joint(lw.Revolute)  # type: ignore[arg-type]
