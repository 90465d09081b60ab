"""A turn about one axis stays free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import directions
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class RevoluteClosure(Closure):
    """The origins coincide, and so does an axis given in both frames.

    Args:
        axis: direction of the hinge, of length one.
    """

    axis: tuple[float, float, float]

    joins_origins: ClassVar[bool] = True

    @property
    def equations(self) -> tuple[str, ...]:
        first, second = directions(self.axis).across_names
        return ("x", "y", "z", f"tilt {first}", f"tilt {second}")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [*X.p, *directions(self.axis).tilt(X)]
