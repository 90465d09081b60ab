"""Free motion in a plane."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from linkwise.joints.base import Joint, SeriesJoint, lamina_and_symmetric, unit_axis
from linkwise.joints.directions import RelativePose, directions, turn_about_z
from linkwise.joints.mirrored import MirrorImage, Signs, mirrored_tail
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Scalar, atan2, cos, sin, where
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


class Planar(Joint):
    """Motion in a plane. q: [angle in rad, x, y in m]; v: [ω, vx, vy] in the child's frame, so q̇ ≠ v.

    Args:
        normal: normal of the plane in the joint frame. For (0, 0, 1), x and y are those of the joint frame.
    """

    nq = 3
    nv = 3
    quasi_velocities: ClassVar[bool] = True
    usual: ClassVar[tuple[float, ...]] = (math.pi, 1.0, 1.0)
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {"urdf": ("planar",)}
    axis: tuple[float, float, float]

    def __init__(self, normal: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(normal, "Planar")

    def transform(self, q: Flat) -> Transform:
        return Transform(Shift(Vec(q[1], q[2], 0.0)), Turn(2, cos(q[0]), sin(q[0])))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.unit(2), Motion.unit(3), Motion.unit(4))

    def rate(self, q: Flat, v: Flat) -> tuple[Scalar, ...]:
        c, s = cos(q[0]), sin(q[0])
        return (v[0], c * v[1] - s * v[2], s * v[1] + c * v[2])

    def integrate(self, q: Flat, dv: Flat) -> tuple[Scalar, ...]:
        # The exponential of SE(2): an arc, whose chord is V dv with V = [[a, -b], [b, a]].
        a, b = _arc(dv[0])
        c, s = cos(q[0]), sin(q[0])
        x, y = a * dv[1] - b * dv[2], b * dv[1] + a * dv[2]
        return (q[0] + dv[0], q[1] + c * x - s * y, q[2] + s * x + c * y)

    def difference(self, q0: Flat, q1: Flat) -> tuple[Scalar, ...]:
        turn = q1[0] - q0[0]
        turn = atan2(sin(turn), cos(turn))
        a, b = _arc(turn)
        c, s = cos(q0[0]), sin(q0[0])
        dx, dy = q1[1] - q0[1], q1[2] - q0[2]
        x, y = c * dx + s * dy, c * dy - s * dx
        scale = 1.0 / (a * a + b * b)
        return (turn, (a * x + b * y) * scale, (a * y - b * x) * scale)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        return lamina_and_symmetric(M)

    def closing_equations(self) -> tuple[str, ...]:
        plane = directions(self.axis)
        first, second = plane.across_names
        return (plane.axis_name, f"tilt {first}", f"tilt {second}")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """A plane through each origin, at right angles to the normal, is one plane."""
        plane = directions(self.axis)
        return [plane.along(X.p), *plane.tilt(X)]

    def nearest(self, X: RelativePose) -> Flat:
        return (turn_about_z(X.R), X.p.x, X.p.y)

    def mirrored(self, signs: Signs) -> MirrorImage:
        # About z, the reflection of y turns the angle and y over.
        image, flips = self.changed(axis=(0.0, 0.0, 1.0)), (-1.0, 1.0, -1.0)
        return MirrorImage(image, flips, flips, mirrored_tail(self.axis, signs))

    @classmethod
    def constant_names(cls) -> tuple[str, ...]:
        return ("axis",)

    @classmethod
    def from_constants(cls, **constants: Any) -> Self:
        return cls(normal=constants["axis"])

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("plane", self.axis),)


def _arc(turn: Scalar) -> tuple[Scalar, Scalar]:
    """sin θ/θ and (1 - cos θ)/θ, by their series near zero."""
    square = turn * turn
    small = square < 1e-4
    t = where(small, 1.0, turn)
    a = where(small, 1.0 - square * (1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0))), sin(t) / t)
    half = sin(t * 0.5)
    b = where(small, turn * (0.5 - square * (1.0 / 24.0 - square * (1.0 / 720.0))), 2.0 * half * half / t)
    return a, b
