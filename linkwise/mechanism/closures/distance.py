"""A rod between two points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from linkwise.errors import InputError
from linkwise.joints.directions import RelativePose
from linkwise.mechanism.closures.base import Closure
from linkwise.mechanism.closures.functions import values_of
from linkwise.spatial.scalar import Scalar


@dataclass(frozen=True, init=False)
class Distance(Closure):
    """The origins of a and b stay at a distance L: (p·p - L²)/2L = 0, smooth also where the points meet.

    A rod without mass, with a ball at each end; where L is a function of time, an actuator.

    Args:
        length: L > 0 in m, or a function of the time t in s that returns it.
    """

    length: float | Callable[[Scalar], Scalar]

    functions: ClassVar[Mapping[str, tuple[str, ...]]] = {"length": ("t",)}

    numbers = ("length",)
    equations = ("length",)

    def __init__(self, length: float | Callable[[Scalar], Scalar]) -> None:
        if not callable(length):
            try:
                length = float(length)
            except (TypeError, ValueError):
                raise InputError(
                    "the length of Distance is not a number", got=repr(length), allowed="m, > 0, or a function of t"
                ) from None
            if not (math.isfinite(length) and length > 0.0):
                raise InputError(
                    "the length of Distance is not possible",
                    got=repr(length),
                    allowed="a finite length > 0 in m",
                    do="use lw.Spherical() for two points that coincide",
                )
        object.__setattr__(self, "length", length)

    @property
    def time_dependent(self) -> bool:
        return callable(self.length)

    def residual(self, X: RelativePose, t: Scalar) -> list[Scalar]:
        if callable(self.length):
            (L,) = values_of(self.length, [t], 1, "the length of Distance")
        else:
            L = self.length
        return [(X.p.dot(X.p) - L * L) / (2.0 * L)]
