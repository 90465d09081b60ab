"""A screw: a turn about an axis with a shift along it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from linkwise.errors import InputError
from linkwise.joints.base import Joint, lamina_and_symmetric, unit_axis
from linkwise.spatial.inertia import RigidInertia
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.transforms import Shift, Transform, Turn
from linkwise.spatial.vectors import Motion, Vec


class Helical(Joint):
    """A screw. q: angle in rad; v: its rate.

    Args:
        pitch: shift along the axis in m per rad of turn.
        axis: direction of the screw in the joint frame.
    """

    nq = 1
    nv = 1
    symmetry: ClassVar[Literal["axis", "direction", "none"]] = "axis"

    def __init__(self, pitch: float, axis: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = unit_axis(axis, "Helical")
        self.pitch = float(pitch)
        if not math.isfinite(self.pitch):
            raise InputError("the pitch of Helical is not finite", got=repr(pitch), allowed="m per rad")

    def neutral(self) -> tuple[float, ...]:
        return (0.0,)

    def transform(self, q: Sequence[Scalar]) -> Transform:
        return Transform(Shift(Vec(0.0, 0.0, q[0] * self.pitch)), Turn.by(2, q[0]))

    def subspace(self, q: Sequence[Scalar]) -> tuple[Motion, ...]:
        return (Motion(Vec(0.0, 0.0, 1.0), Vec(0.0, 0.0, self.pitch)),)

    def split(self, M: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
        J_lamina, J_symmetric = lamina_and_symmetric(M.J)
        return RigidInertia(M.m, M.h, J_lamina), RigidInertia(0.0, Vec.zero(), J_symmetric)
