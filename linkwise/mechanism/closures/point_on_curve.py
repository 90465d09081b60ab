"""A point that stays on a curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure
from linkwise.mechanism.closures.functions import checked_function, values_of
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class PointOnCurve(Closure):
    """The origin of b stays on a curve of a, where two surfaces meet: f(x, y, z) = 0 and g(x, y, z) = 0.

    Args:
        f: function of the three coordinates in frame a, written with ``lw.math.sin``, … and arithmetic.
        g: another; where both vanish, their gradients must not be parallel.

    Example:
        A bead on a parabola: ``lw.closures.PointOnCurve(lambda x, y, z: z - x * x, lambda x, y, z: y)``
    """

    f: Callable[[Scalar, Scalar, Scalar], Scalar]
    g: Callable[[Scalar, Scalar, Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"f": ("x", "y", "z"), "g": ("x", "y", "z")}

    equations = ("f", "g")

    def __post_init__(self) -> None:
        for function in (self.f, self.g):
            checked_function(function, "a surface of PointOnCurve", "f(x, y, z) and g(x, y, z)")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [y for h in (self.f, self.g) for y in values_of(h, list(X.p), 1, "a surface of PointOnCurve")]
