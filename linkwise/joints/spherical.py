"""A ball joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from linkwise.joints.base import Handle, Joint, SeriesJoint
from linkwise.joints.directions import RelativePose
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.spatial import quaternions
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.matrices import Sym3
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Rotation, Transform
from linkwise.spatial.vectors import Motion, Vec


class Spherical(Joint):
    """A ball joint.

    q: quaternion [w, x, y, z] of any length but zero (only its direction counts); v: angular velocity in the child's
    frame.
    """

    nq = 4
    nv = 3
    quasi_velocities: ClassVar[bool] = True
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"sdf": ("ball",), "mjcf": ("ball",)}
    joins_origins: ClassVar[bool] = True

    def neutral(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0)

    def transform(self, q: Flat) -> Transform:
        return Transform(Rotation(quaternions.rotation_matrix(q)))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.unit(0), Motion.unit(1), Motion.unit(2))

    def rate(self, q: Flat, v: Flat) -> tuple[Scalar, ...]:
        return quaternions.rate(q, Vec.of(v))

    def integrate(self, q: Flat, dv: Flat) -> tuple[Scalar, ...]:
        return quaternions.moved(q, Vec.of(dv))

    def difference(self, q0: Flat, q1: Flat) -> tuple[Scalar, ...]:
        return tuple(quaternions.between(q0, q1))

    def carry_way_rate(self, u: Sequence[Scalar], w: Sequence[Scalar]) -> tuple[Scalar, ...]:
        return tuple(quaternions.vector_rate(Vec.of(u), Vec.of(w)))

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return RigidInertia(0.0, M.h, M.J), RigidInertia(M.m, Vec.zero(), Sym3.zero())

    def random(self, rng: np.random.Generator, lower: Sequence[float], upper: Sequence[float]) -> tuple[float, ...]:
        return random_quaternion(rng)

    def closing_equations(self) -> tuple[str, ...]:
        return ("x", "y", "z")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """The origins coincide."""
        return list(X.p)

    def nearest(self, X: RelativePose) -> Flat:
        return quaternions.normalized(quaternions.from_matrix(X.R))

    def mirrored(self, signs: Signs) -> MirrorImage:
        turned = turning((1.0, 1.0, 1.0), signs)
        return MirrorImage(self, (1.0, *turned), turned)

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("ball"),)

    def handles(self) -> tuple[Handle, ...]:
        return tuple(Handle(f" {axis} turn", "turn", part=k) for k, axis in enumerate("xyz"))


def random_quaternion(rng: np.random.Generator) -> tuple[float, ...]:
    """Uniform over all rotations."""
    return tuple(float(x) for x in quaternions.normalized([float(x) for x in rng.normal(size=4)]))
