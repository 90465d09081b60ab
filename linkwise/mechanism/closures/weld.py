"""Nothing stays free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.mechanism.closures.directions import turn
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class WeldClosure(Closure):
    """The two frames coincide."""

    joins_origins: ClassVar[bool] = True
    equations = ("x", "y", "z", "turn x", "turn y", "turn z")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return [*X.p, *turn(X)]
