"""All turns stay free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from linkwise.mechanism.closures.base import Closure, RelativePose
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True)
class SphericalClosure(Closure):
    """The origins coincide."""

    joins_origins: ClassVar[bool] = True
    equations = ("x", "y", "z")

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        return list(X.p)
