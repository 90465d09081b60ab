"""A point that stays on a plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from linkwise.joints.base import unit_axis
from linkwise.joints.directions import RelativePose, directions
from linkwise.mechanism.closures.base import Closure
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True, init=False)
class PointOnPlane(Closure):
    """The origin of b stays on a plane through the origin of a.

    Args:
        normal: of the plane, in frame a.
    """

    normal: tuple[float, float, float]

    equations = ("height",)

    def __init__(self, normal: Sequence[float] = (0.0, 0.0, 1.0)) -> None:
        object.__setattr__(self, "normal", unit_axis(normal, "PointOnPlane"))

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [directions(self.normal).along(X.p)]
