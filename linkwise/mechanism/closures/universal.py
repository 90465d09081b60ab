"""Turns about two crossing axes stay free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.spatial.scalar import Scalar
from linkwise.spatial.vectors import Vec


@dataclass(frozen=True)
class UniversalClosure(Closure):
    """The origins coincide, and the angle between an axis of a and one of b stays what it is at R = 1.

    No false roots: whatever keeps that angle is a turn about the first axis followed by one about the second.

    Args:
        axis1: first axis, of length one, fixed in a.
        axis2: second axis, of length one, fixed in b.
    """

    axis1: tuple[float, float, float]
    axis2: tuple[float, float, float]

    joins_origins: ClassVar[bool] = True
    equations = ("x", "y", "z", "twist")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        u1, u2 = Vec.of(self.axis1), Vec.of(self.axis2)
        normal = u1.cross(u2)
        # Its slope by a turn about the normal to both axes is the sine of their angle: divided by it, one.
        return [*X.p, (u1.dot(u2) - u1.dot(X.R @ u2)) * (1.0 / normal.dot(normal) ** 0.5)]
