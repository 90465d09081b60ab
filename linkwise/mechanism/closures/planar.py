"""Motion in a plane stays free."""

from __future__ import annotations

from dataclasses import dataclass

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import directions
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class PlanarClosure(Closure):
    """A plane through each origin, at right angles to the normal, is one plane.

    Args:
        normal: of the plane in both frames, of length one.
    """

    normal: tuple[float, float, float]

    @property
    def equations(self) -> tuple[str, ...]:
        plane = directions(self.normal)
        first, second = plane.across_names
        return (plane.axis_name, f"tilt {first}", f"tilt {second}")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        plane = directions(self.normal)
        return [plane.along(X.p), *plane.tilt(X)]
