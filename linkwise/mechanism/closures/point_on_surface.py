"""A point that stays on a surface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure
from linkwise.mechanism.closures.functions import checked_function, values_of
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class PointOnSurface(Closure):
    """The origin of b stays on a surface of a: f(x, y, z) = 0.

    Args:
        f: function of the three coordinates in frame a, made of ``lw.math.sin``, … and arithmetic; its gradient must
            not vanish on the surface. Best scaled to metres: a gradient of length one.

    Example:
        The inside of a bowl of radius 2:
        ``lw.closures.PointOnSurface(lambda x, y, z: (x * x + y * y + z * z) / 4 - 1)``
    """

    f: Callable[[Scalar, Scalar, Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"f": ("x", "y", "z")}

    equations = ("f",)

    def __post_init__(self) -> None:
        checked_function(self.f, "the surface of PointOnSurface", "f(x, y, z)")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return values_of(self.f, list(X.p), 1, "the surface of PointOnSurface")
