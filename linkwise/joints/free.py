"""No constraint at all: a floating base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from linkwise.joints.base import Handle, Joint, SeriesJoint
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.joints.spherical import random_quaternion
from linkwise.spatial import quaternions
from linkwise.spatial.scalar import Scalar, cos, sin, sqrt, where
from linkwise.spatial.transforms import Rotation, Shift, Transform
from linkwise.spatial.vectors import Motion, Vec


class Free(Joint):
    """Six freedoms.

    q: [w, x, y, z, px, py, pz], quaternion and position in the joint frame; v: [ω, v] of the child's origin, in the
    child's frame.
    """

    nq = 7
    nv = 6
    quasi_velocities: ClassVar[bool] = True
    flies: ClassVar[bool] = True
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"urdf": ("floating",), "mjcf": ("free",)}

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform(Shift(Vec.of(q[4:7])), Rotation(quaternions.rotation_matrix(q[:4])))

    def subspace(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        return tuple(Motion.unit(i) for i in range(6))

    def rate(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        p_dot = quaternions.rotation_matrix(q[:4]) @ Vec.of(v[3:])
        return (*quaternions.rate(q[:4], Vec.of(v[:3])), *p_dot)

    def integrate(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> tuple[Scalar, ...]:
        # The exponential of SE(3): p + R V(ω) v along a screw.
        turn, shift = Vec.of(dv[:3]), Vec.of(dv[3:])
        a, b = _screw_coefficients(turn)
        across = turn.cross(shift)
        chord = shift + across * a + turn.cross(across) * b
        p = Vec.of(q[4:7]) + quaternions.rotation_matrix(q[:4]) @ chord
        return (*quaternions.moved(q[:4], turn), *p)

    def difference(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> tuple[Scalar, ...]:
        turn = quaternions.between(q0[:4], q1[:4])
        chord = quaternions.rotation_matrix(q0[:4]).transpose_times(Vec.of(q1[4:7]) - Vec.of(q0[4:7]))
        # V⁻¹ = 1 - ½ω~ + c ω~², c = (1 - θ cos(θ/2) / (2 sin(θ/2))) / θ².
        square = turn.dot(turn)
        small = square < 1e-4
        angle = sqrt(where(small, 1.0, square))
        exact = (1.0 - 0.5 * angle * cos(angle * 0.5) / sin(angle * 0.5)) / (angle * angle)
        c = where(small, 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30240.0)), exact)
        across = turn.cross(chord)
        return (*turn, *(chord - across * 0.5 + turn.cross(across) * c))

    def carried(self, v: Sequence[Scalar], turn: Sequence[Scalar]) -> tuple[Scalar, ...]:
        # As a sum: of a small turn, which many steps repeat, the rounding is then as small as the change.
        w, x, y, z = quaternions.exponential(Vec.of(turn[:3]))
        axis, shift = Vec(x, y, z), Vec.of(v[3:])
        across = axis.cross(shift)
        return (*v[:3], *(shift + (axis.cross(across) - across * w) * 2.0))

    def carry(self, q: Sequence[Scalar], dv: Sequence[Scalar]) -> tuple[Scalar, ...]:
        p = Vec.of(q[4:7]) + quaternions.rotation_matrix(q[:4]) @ Vec.of(dv[3:])
        return (*quaternions.moved(q[:4], Vec.of(dv[:3])), *p)

    def carry_rate(self, v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        return (0.0, 0.0, 0.0, *Vec.of(v[3:]).cross(Vec.of(v[:3])))

    def carry_way(self, q0: Sequence[Scalar], q1: Sequence[Scalar]) -> tuple[Scalar, ...]:
        chord = quaternions.rotation_matrix(q0[:4]).transpose_times(Vec.of(q1[4:7]) - Vec.of(q0[4:7]))
        return (*quaternions.between(q0[:4], q1[:4]), *chord)

    def carry_way_rate(self, u: Sequence[Scalar], w: Sequence[Scalar]) -> tuple[Scalar, ...]:
        return (*quaternions.vector_rate(Vec.of(u[:3]), Vec.of(w[:3])), *w[3:])

    def random(self, rng: np.random.Generator, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        return (*random_quaternion(rng), *(float(x) for x in rng.uniform(-1.0, 1.0, size=3)))

    def mirrored(self, signs: Signs) -> MirrorImage:
        turned = turning((1.0, 1.0, 1.0), signs)
        return MirrorImage(self, (1.0, *turned, *signs), (*turned, *signs))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("free"),)

    def handles(self) -> tuple[Handle, ...]:
        turns = [Handle(f" {axis} turn", "turn", part=k) for k, axis in enumerate("xyz")]
        return (*turns, *(Handle(f" {axis}", "coordinate", 4 + k, reach=None) for k, axis in enumerate("xyz")))


def _screw_coefficients(turn: Vec) -> tuple[Scalar, Scalar]:
    """(1 - cos θ)/θ² and (θ - sin θ)/θ³, by their series near zero."""
    square = turn.dot(turn)
    small = square < 1e-3
    angle = sqrt(where(small, 1.0, square))
    half_sine = sin(angle * 0.5) / angle
    a = where(
        small,
        0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0 - square * (1.0 / 40320.0))),
        2.0 * half_sine * half_sine,
    )
    b = where(
        small,
        1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0 - square * (1.0 / 362880.0))),
        (angle - sin(angle)) / (angle * angle * angle),
    )
    return a, b
