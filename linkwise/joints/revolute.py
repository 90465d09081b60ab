"""A turn about one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from linkwise.joints.base import Joint, SeriesJoint, lamina_and_symmetric, unit_axis
from linkwise.joints.directions import RelativePose, directions, turn_about_z
from linkwise.joints.mirrored import MirrorImage, Signs, turning
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Flat, Scalar
from linkwise.spatial.transforms import Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


class Revolute(Joint):
    """A hinge. q: angle in rad; v: its rate. Also for URDF's ``continuous``: an angle without limits.

    Args:
        axis: direction of the hinge in the joint frame.
    """

    nq = 1
    nv = 1
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "axis"
    words: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "urdf": ("revolute", "continuous"),
        "sdf": ("revolute", "continuous"),
        "mjcf": ("hinge",),
    }
    joins_origins: ClassVar[bool] = True
    axis: tuple[float, float, float]

    def __init__(self, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Revolute")

    def transform(self, q: Flat) -> Transform:
        return Transform(Turn.by(2, q[0]))

    def subspace(self, q: Flat) -> tuple[Motion, ...]:
        return (Motion.unit(2),)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        # Mass on the axis, and a second moment symmetric about it with none along it, do not feel the spin.
        lamina, symmetric = lamina_and_symmetric(M)
        kept = RigidInertia(0.0, Vec(M.h.x, M.h.y, 0.0), lamina.J)
        return kept, RigidInertia(M.m, Vec(0.0, 0.0, M.h.z), symmetric.J)

    def closing_equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return ("x", "y", "z", f"tilt {first}", f"tilt {second}")

    def closing_residual(self, X: RelativePose) -> list[Scalar]:
        """The origins coincide, and so does the axis in both frames."""
        return [*X.p, *directions(self.axis).tilt(X)]

    def nearest(self, X: RelativePose) -> Flat:
        return (turn_about_z(X.R),)

    def mirrored(self, signs: Signs) -> MirrorImage:
        return MirrorImage(self.changed(axis=turning(self.axis, signs)))

    def series(self) -> tuple[SeriesJoint, ...]:
        return (SeriesJoint("turn", self.axis),)
