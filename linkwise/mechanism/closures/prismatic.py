"""A slide along one direction stays free."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import directions, turn
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class PrismaticClosure(Closure):
    """The axes of the frames are parallel, and b's origin is on a line through a's.

    Args:
        axis: direction of the slide, of length one.
    """

    axis: tuple[float, float, float]

    @property
    def equations(self) -> tuple[str, ...]:
        return (*directions(self.axis).across_names, "turn x", "turn y", "turn z")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [*directions(self.axis).off(X.p), *turn(X)]
