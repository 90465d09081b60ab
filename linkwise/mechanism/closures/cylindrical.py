"""A turn about an axis and a slide along it stay free."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import directions
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class CylindricalClosure(Closure):
    """A line through each origin, along the axis, is one line.

    Args:
        axis: direction of the line in both frames, of length one.
    """

    axis: tuple[float, float, float]

    @property
    def equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return (first, second, f"tilt {first}", f"tilt {second}")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        line = directions(self.axis)
        return [*line.off(X.p), *line.tilt(X)]
